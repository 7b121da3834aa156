"""The cases of backward.py, as data: the field's grid of gradients, 16k tokens and heads that are 2048 wide together; heads of queries that
share keys as those of models do; and sequences of different lengths end to end. Knows no GPU."""
import collections
import itertools
import random
import re
from dataclasses import asdict, dataclass

from common import cells
from sections import prompts_cases

HEADS = {"mha": ((128, 16, 16), (64, 32, 32), (256, 8, 8), (192, 10, 10), (96, 21, 21)),  # (d, hq, hkv)
         "gqa": ((128, 64, 8), (128, 32, 4), (128, 16, 4))}
QUICK = (16384, 8192, 2048, 512)  # the most telling lengths first
LENGTHS = QUICK + (4096, 1024)
MASKS = ("causal", "none")
PRODUCTS = 5  # S, dP, dV, dQ, dK: 10 d FLOP for each visible pair; forward has two of them
PACKED = ((128, 16, 16), (64, 32, 32), (128, 32, 8))                # (d, hq, hkv)
DRAWN = {"equal": 1, "uniform": 2, "log-uniform": 3}                # with seeds: the lengths of prompts.py's first three cases
FORCED = {"mma": "flash_bwd_mma"}                                   # beside them: the family's config that the model takes for the fastest
SECTIONS = (*HEADS, "packed")
WORK_MOST = 6e12  # FLOP of a case that is drawn


@dataclass(frozen=True)
class Gradients:
    """A dense batch in bf16, with as many keys as queries."""
    d: int
    hq: int
    hkv: int
    b: int
    s: int
    mask: str

    def name(self):
        return f"d={self.d},hq={self.hq},hkv={self.hkv},b={self.b},s={self.s},{self.mask}"

    def cell(self):
        return cells.Cell("backward", "bf16", self.d, self.d, self.b, self.hq, self.hkv, self.s, self.s, self.mask)

    def dict(self):
        return {**asdict(self), "name": self.name(), "flops": self.cell().flops() * PRODUCTS // 2, "bytes": moved(self, self.b * self.s)}


@dataclass(frozen=True)
class Packed(prompts_cases.Packed):
    """Sequences end to end in bf16, each with as many keys as queries."""
    mask: str = "causal"

    def name(self):
        return f"d={self.d},hq={self.hq},hkv={self.hkv},{self.drawn},total={self.tokens},seed={self.seed},{self.mask}"

    def flops(self):
        """Of the visible pairs, exactly."""
        pairs = sum(prompts_cases.pairs(q, k) if self.mask == "causal" else q * k for q, k in self.lengths())
        return 2 * PRODUCTS * self.d * self.hq * pairs

    def dict(self):
        return {**super().dict(), "longest": max(n for n, _ in self.lengths()), "flops": self.flops(), "bytes": moved(self, self.tokens)}


def moved(case, rows):
    """Bytes of Q, K, V, O, dO and the gradients, each once."""
    return 2 * rows * case.d * (4 * case.hq + 4 * case.hkv)


def dense(sections, lengths):
    return [(section, Gradients(*heads, max(1, cells.TOKENS // s), s, mask)) for s in lengths
            for section, some in HEADS.items() if section in sections for heads, mask in itertools.product(some, MASKS)]


def packed():
    return [Packed(*heads, cells.TOKENS, drawn, seed, mask=mask)
            for (drawn, seed), heads, mask in itertools.product(DRAWN.items(), PACKED, MASKS)]


def off_grid(sections, seeds, count, each=None, kinds=""):
    """(section, case): `count` of each section and seed, heads, batches and lengths as they come; each a few ms of work, and few scores to
    check. Of those the kinds that the expression finds, and of every kind the first `each`."""
    of_kind = collections.Counter()
    for section, seed in itertools.product(sections, seeds):
        for c in drawn(section, random.Random(f"{section} {seed}"), count):
            of_kind[kind(section, c)] += 1
            if re.search(kinds, kind(section, c)) and of_kind[kind(section, c)] <= (each or count * len(seeds)):
                yield section, c


def kind(section, case):
    return f"{section} d={case.d} {case.mask} {'groups' if case.hq > case.hkv else 'heads'}"


def seeds_of(text):
    """Of 701 or 701-704."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def drawn(section, r, count):
    while count:
        mask, hkv = r.choice(MASKS), r.randint(1, 32 if section == "mha" else 8)
        hq, d = hkv * (1 if section == "mha" else r.randint(2, 8)), r.choice((64, 128) if section == "packed" else (64, 96, 128))
        if section == "packed":
            mixed = r.choice((True, False))
            hq, hkv = (hq, hkv) if mixed else (r.randint(2, 24),) * 2
            case = Packed(d, hq, hkv, 64 * r.randint(64, 400), r.choice(tuple(DRAWN)[1:]), r.randint(1, 999), mask=mask)
        else:
            case = Gradients(d, hq, hkv, r.randint(1, 4), prompts_cases.log_uniform(r, 200, 16384), mask)
        if case.dict()["flops"] <= WORK_MOST:
            count -= 1
            yield case


def cases(sections, lengths):
    """(section, case): dense ones, a length after the other, then packed ones."""
    return dense(sections, lengths) + [("packed", c) for c in packed() if "packed" in sections]
