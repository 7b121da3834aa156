"""The cases of decode.py, as data: which caches are attended to. Knows no GPU.

MB are those of K and V together; every case is bf16, without a mask.
"""
import itertools
import math
import random
import re
from dataclasses import asdict, dataclass

HBM = 4.56e12  # bytes per second that an H200 reads


@dataclass(frozen=True)
class Case:
    b: int
    hq: int
    hkv: int
    sq: int
    sk: int
    d: int

    def bytes(self):
        """Of K and V, each once."""
        return kv_bytes(self.b * self.sk, self.hkv, self.d)

    def flops(self):
        return 4 * self.b * self.hq * self.sq * self.sk * self.d

    def name(self):
        return f"b={self.b},hq={self.hq},hkv={self.hkv},sq={self.sq},sk={self.sk},d={self.d}"

    def dict(self):
        return {**asdict(self), "name": self.name(), "bytes": self.bytes(), "flops": self.flops()}


def kv_bytes(tokens, hkv, d):
    return 2 * 2 * tokens * hkv * d


# b, hq, hkv, sq, sk; each with d = 64 and 128
SHAPES = (
    (1, 32, 8, 1, 1024),
    (1, 32, 8, 1, 8192),
    (1, 32, 8, 1, 131072),
    (8, 32, 8, 1, 8192),
    (64, 32, 8, 1, 8192),
    (64, 32, 8, 1, 1024),
    (1, 64, 8, 1, 32768),
    (16, 64, 8, 1, 32768),
    (1, 32, 32, 1, 8192),
    (32, 32, 32, 1, 4096),
    (256, 32, 8, 1, 2048),
    (8, 32, 8, 4, 8192),
    (1, 32, 8, 16, 8192),
)
LEFT_OUT = {(131072, 64)}  # (sk, d)
TABLE = [Case(*s, d) for s, d in itertools.product(SHAPES, (64, 128)) if (s[4], d) not in LEFT_OUT]

PAGE_SIZES = (16, 32, 64, 128, 256, 1)
PAGED = [Case(b, 32, 8, 1, sk, 128) for b, sk in ((1, 2048), (4, 2048), (4, 4096), (8, 4096), (16, 8192))]  # 8 to 537 MB


@dataclass(frozen=True)
class Ragged:
    """A batch whose sequences differ in length; the lengths follow from the seed."""
    sequences: int
    drawn: str  # log-uniform or uniform
    seed: int
    shortest: int = 16
    longest: int = 32768
    hq: int = 32
    hkv: int = 8
    d: int = 128
    page: int = 64

    def lengths(self):
        r = random.Random(self.seed)
        span = self.longest - self.shortest + 1
        if self.drawn == "uniform":
            return [self.shortest + int(r.random() * span) for _ in range(self.sequences)]
        return [min(self.longest, int(self.shortest * math.exp(r.random() * math.log((self.longest + 1) / self.shortest))))
                for _ in range(self.sequences)]

    def name(self):
        return f"b={self.sequences},{self.drawn},hq={self.hq},hkv={self.hkv},sq=1,d={self.d},seed={self.seed}"

    def dict(self):
        tokens = sum(self.lengths())
        return {**asdict(self), "name": self.name(), "tokens": tokens, "bytes": kv_bytes(tokens, self.hkv, self.d),
                "flops": 4 * tokens * self.hq * self.d, "padded": kv_bytes(self.sequences * max(self.lengths()), self.hkv, self.d)}


RAGGED = [Ragged(n, drawn, seed) for seed, (n, drawn) in enumerate(itertools.product((64, 256), ("log-uniform", "uniform")), 1)]


def sets_of(case, cold, least=200e6):
    """How many pairs of K and V take turns: 1, or where the L2 is to be cold at least 3 and together more than `least` bytes."""
    return max(3, math.floor(least / case.bytes()) + 1) if cold else 1


def tables(lengths, page, rng):
    """(rows, pages): the page table of sequences of these lengths, pages in shuffled order. Each row is as wide as the longest; what lies
    beyond a sequence names page 0, which it does not read."""
    need = [-(-n // page) for n in lengths]
    order = list(range(sum(need)))
    rng.shuffle(order)
    rows, at, width = [], 0, max(need, default=0)
    for n in need:
        rows.append(order[at:at + n] + [0] * (width - n))
        at += n
    return rows, len(order)


def changing(replays, b, longest, page, rng):
    """Lengths of b sequences for each replay: at random, and among them each border: 0, 1, a page's, the longest, all 0, all longest."""
    borders = [0, 1, page - 1, page, page + 1, longest - 1, longest]
    out = [[rng.choice(borders) if rng.random() < 0.2 else rng.randint(0, longest) for _ in range(b)] for _ in range(replays)]
    for at, lengths in ((1, [0] * b), (2, [longest] * b), (3, [1] * b)):
        if at < replays:
            out[at] = lengths
    return out


def select(cases, pattern):
    """Those whose name the regular expression finds; None finds all."""
    return [c for c in cases if not pattern or re.search(pattern, c.name())]
