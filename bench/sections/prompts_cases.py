"""The cases of prompts.py, as data: prompts, chunks of them after cached prefixes, mixed batches, dense ragged lengths. Knows no GPU.

Every case is bf16; all but the dense ones are causal. Lengths follow from the seeds that stand here.
"""
import itertools
import math
import random
from dataclasses import asdict, dataclass

from common import cells
from sections.decode_cases import kv_bytes

HEADS = {64: (32, 8), 128: (32, 8), 256: (16, 16)}


def pairs(sq, sk):
    """Visible pairs of a causal sequence of sq queries, the last of which sees all of sk >= sq keys."""
    return sq * (sk - sq) + sq * (sq + 1) // 2


def flops(lengths, hq, d):
    """lengths: (queries, keys) of each sequence."""
    return 4 * hq * d * sum(pairs(*n) for n in lengths)


def log_uniform(r, least, most):
    return min(most, int(least * math.exp(r.random() * math.log((most + 1) / least))))


class Named:
    """What every case tells. It has d, hq, hkv and lengths(): (queries, keys) of each sequence."""

    def dict(self):
        lengths = self.lengths()
        return {**asdict(self), "name": self.name(), "sequences": len(lengths), "tokens": sum(q for q, _ in lengths),
                "bytes": kv_bytes(sum(k for _, k in lengths), self.hkv, self.d), "flops": flops(lengths, self.hq, self.d)}


@dataclass(frozen=True)
class Packed(Named):
    """Whole prompts end to end: so many tokens together."""
    d: int
    hq: int
    hkv: int
    tokens: int
    drawn: str  # equal, uniform, log-uniform
    seed: int
    typical: int = 2048  # the equal length, and the mean of the uniform ones
    shortest: int = 16   # of log-uniform ones
    longest: int = 16384

    def lengths(self):
        r, out, left = random.Random(self.seed), [], self.tokens
        while left > 0:
            n = (self.typical if self.drawn == "equal" else r.randint(1, 2 * self.typical - 1) if self.drawn == "uniform"
                 else log_uniform(r, self.shortest, self.longest))
            out.append((min(n, left),) * 2)
            left -= out[-1][0]
        return out

    def name(self):
        return f"{self.drawn},tokens={self.tokens},hq={self.hq},hkv={self.hkv},d={self.d},seed={self.seed}"


PACKED = [Packed(d, *HEADS[d], tokens, drawn, seed) for seed, (d, tokens, drawn) in
          enumerate(itertools.product(HEADS, (16384, 65536), ("equal", "uniform", "log-uniform")), 1)]


@dataclass(frozen=True)
class Chunk(Named):
    """New tokens of one sequence after those that its cache has."""
    d: int
    hq: int
    hkv: int
    new: int
    cached: int

    def lengths(self):
        return [(self.new, self.cached + self.new)]

    def name(self):
        return f"new={self.new},cached={self.cached},hq={self.hq},hkv={self.hkv},d={self.d}"


CHUNKS = [Chunk(d, *HEADS[d], new, cached) for d, new, cached in
          itertools.product((128, 64), (512, 2048, 8192), (8192, 32768, 131072))]
PAGE_SIZES = (16, 64)


@dataclass(frozen=True)
class Mixed(Named):
    """A step of an engine: users that get a token each, whose caches are log-uniform up to the longest, and chunks of prompts after
    cached prefixes likewise. The tokens come first."""
    d: int
    hq: int
    hkv: int
    users: int
    chunks: int
    new: int
    longest: int
    seed: int
    shortest: int = 16

    def lengths(self):
        r = random.Random(self.seed)
        return ([(1, 1 + log_uniform(r, self.shortest, self.longest - 1)) for _ in range(self.users)]
                + [(self.new, self.new + log_uniform(r, self.shortest, self.longest - self.new)) for _ in range(self.chunks)])

    def name(self):
        return (f"users={self.users},chunks={self.chunks},new={self.new},longest={self.longest},hq={self.hq},hkv={self.hkv},d={self.d},"
                f"seed={self.seed}")


STEPS = ((32, 1, 512, 8192), (64, 1, 2048, 8192), (128, 2, 1024, 32768), (256, 1, 512, 4096), (16, 4, 512, 16384))
MIXED = [Mixed(d, *HEADS[d], *step, seed) for seed, (d, step) in
         enumerate([*itertools.product((128, 64), STEPS), *((256, s) for s in STEPS[:2])], 1)]


@dataclass(frozen=True)
class Dense:
    """A dense batch of a length that is no power of two."""
    cell: cells.Cell

    def name(self):
        c = self.cell
        return f"d={c.d},{c.mask},b={c.b},h={c.hq},s={c.sq}"

    def dict(self):
        return {**self.cell.dict(), "name": self.name(), "bytes": kv_bytes(self.cell.b * self.cell.sk, self.cell.hkv, self.cell.d),
                "flops": self.cell.flops()}


def ragged_grid(seed=17, each=4):
    """`each` shapes of every d, mask and width h d; lengths log-uniform in 300 to 14,000, b 1 to 3."""
    r, out = random.Random(seed), []
    for d, mask, width in itertools.product((64, 128, 256), ("none", "causal"), (2048, 4096)):
        for _ in range(each):
            s, b = log_uniform(r, 300, 14000), r.randint(1, 3)
            out.append(Dense(cells.Cell("ragged", "bf16", d, d, b, width // d, width // d, s, s, mask)))
    return out


DENSE = ragged_grid()


@dataclass(frozen=True)
class Watched(Named):
    """A sequence whose bits are watched, in batches with up to `others` others of up to `longest` keys, of which some are chunks."""
    d: int
    hq: int
    hkv: int
    new: int
    keys: int
    page: int  # 0: packed keys
    others: int = 40
    longest: int = 6000
    most: int = 600  # rows of a chunk
    seed: int = 5

    def lengths(self):
        return [(self.new, self.keys)]

    def batches(self, n):
        """(place of the sequence among the others, (queries, keys) of these) of each batch; the first has none."""
        r = random.Random(self.seed)
        out = [(0, [])]
        while len(out) < n:
            some = []
            for _ in range(r.randint(0, self.others)):
                keys = log_uniform(r, 1, self.longest)
                chunk = r.random() < 0.15
                some.append((min(keys, log_uniform(r, 2, self.most)) if chunk else min(keys, r.choice((0, 1, 1, 1, 1, 2, 4))), keys))
            out.append((r.randint(0, len(some)), some))
        return out

    def name(self):
        return f"new={self.new},keys={self.keys},page={self.page},hq={self.hq},hkv={self.hkv},d={self.d}"


WATCHED = [Watched(d, *HEADS[d], new, keys, page) for d in (128, 64) for new, keys, page in
           ((1, 5000, 16), (4, 3001, 64), (1, 777, 0), (512, 4600, 16), (700, 700, 0))]
