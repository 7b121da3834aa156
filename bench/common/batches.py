"""Batches of sequences with lengths of their own, as engines serve them, drawn by a seed: which heads, which lengths, where keys lie. Knows
no GPU.

A batch is drawn by its kind, the seed and its number: a seed's first n batches are the same however many are drawn.
"""
import random
from dataclasses import dataclass, replace

HELD = 2e9      # bytes of K and V of a batch at most, which memory holds beside peers' copies
PADDED = 6e9    # the same where every sequence has the room of the longest
PAIRS = 1.5e12  # FLOP of packed prompts at most
PAGE = 128      # tokens of a page, from which on classes are one


@dataclass(frozen=True)
class Batch:
    kind: str      # of KINDS
    number: int    # of its kind and seed
    dtype: str
    d: int
    hq: int
    hkv: int
    mask: str
    keys: str      # packed, padded, pages
    page: int      # tokens of a page, 0 where there are none
    lens: tuple    # (queries, keys) of each sequence
    whole: bool    # every sequence has as many queries: q is [b, sq, h, d]

    @property
    def sq(self):
        return max(q for q, _ in self.lens)

    @property
    def sk(self):
        return max(k for _, k in self.lens)

    def fields(self):
        """Of the problem that a launch derives."""
        out = {"dtype": self.dtype, "mask": self.mask, "d": self.d, "dv": self.d, "b": len(self.lens), "hq": self.hq, "hkv": self.hkv,
               "sq": self.sq, "sk": self.sk}
        return {**out, "page": min(self.page, PAGE)} if self.page else out

    def name(self):
        lie = f"pages of {self.page}" if self.page else self.keys
        return (f"{self.kind} {self.number}: {self.dtype} d={self.d} {self.mask} {self.hq}/{self.hkv}, {len(self.lens)} sequences to {self.sq} "
                f"over {self.sk}, {sum(q for q, _ in self.lens)} rows over {sum(k for _, k in self.lens)} keys, {lie}")


def logarithmic(r, least, most):
    return int(least * (most / least) ** r.random())


def heads(r):
    hkv = r.choice((1, 2, 4, 4, 8, 8))
    return hkv * r.choice((1, 2, 4, 4, 5, 7, 8)), hkv


def held(hkv, d, lens):
    """Whether memory holds it beside peers' copies, of which some have the room of the longest sequence for each."""
    size = 4.0 * hkv * d
    return size * sum(k for _, k in lens) <= HELD and size * len(lens) * max(k for _, k in lens) <= PADDED


def dtype(r):
    return "fp16" if r.random() < 0.3 else "bf16"


def packed(r):
    """Whole prompts end to end."""
    d, of_heads = r.choice((64, 80, 96, 128, 128, 128, 192, 256)), heads(r)
    total, uniform = logarithmic(r, 600, 40000), r.choice((True, False))
    mean, lens = logarithmic(r, 60, 5000), []
    while total > 0:
        n = min(total, r.randint(1, 2 * mean) if uniform else logarithmic(r, 8, 8 * mean))
        lens.append((n, n))
        total -= n
    if not 1 < len(lens) <= 300 or 4.0 * of_heads[0] * d * sum(q * k for q, k in lens) > PAIRS:
        return None
    mask = r.choice(("causal", "causal", "none"))
    return Batch("packed", 0, dtype(r), d, *of_heads, mask, "packed", 0, tuple(lens), False)


def fewrows(r):
    """65 to 256 rows of a group of heads over long keys: what several tokens of a draft ask for, or the last piece of a prompt."""
    d, of_heads, n = r.choice((64, 96, 128, 128, 128, 192, 256)), heads(r), logarithmic(r, 1, 24)
    sq = max(1, r.randint(65, 256) // (of_heads[0] // of_heads[1]))
    rows = [max(1, int(sq * r.uniform(0.7, 1))) if r.random() < 0.5 else sq for _ in range(n)]
    longest = logarithmic(r, 1500, 40000)
    lens = [(q, q + int(longest * r.uniform(0.5, 1))) for q in rows]
    if not held(of_heads[1], d, lens):
        return None
    lie = r.choice((("packed", 0), ("padded", 0), ("pages", 16), ("pages", 64)))
    return Batch("fewrows", 0, dtype(r), d, *of_heads, "causal", *lie, tuple(lens), False)


def mixed(r):
    """A token of each user, and chunks of prompts beside them."""
    d, of_heads = r.choice((64, 128, 128, 128, 256, 96, 192)), heads(r)
    users, chunks = logarithmic(r, 4, 257), r.choice((0, 1, 1, 2, 4))
    new, longest = logarithmic(r, 64, 3000), logarithmic(r, 2000, 33000)
    lens = [(1, 1 + logarithmic(r, 16, longest - 1)) for _ in range(users)]
    lens += [(new, new + logarithmic(r, 16, max(17, longest - new))) for _ in range(chunks)]
    if not held(of_heads[1], d, lens):
        return None
    lie = r.choice((("packed", 0), ("pages", 16), ("pages", 64), ("pages", 256)))
    return Batch("mixed", 0, dtype(r), d, *of_heads, "causal", *lie, tuple(lens), False)


def paged(r):
    """Decoding: one to sixteen tokens of each sequence, over keys in pages or padded."""
    d, of_heads = r.choice((64, 80, 96, 128, 128, 192, 256)), heads(r)
    sq, n, longest = r.choice((1, 1, 1, 2, 4, 5, 8, 16)), logarithmic(r, 1, 200), logarithmic(r, 500, 40000)
    how = r.choice(("equal", "uniform", "log"))

    def length():
        return longest if how == "equal" else r.randint(sq, longest) if how == "uniform" else logarithmic(r, 16, longest)
    lens = [(sq, max(sq, length())) for _ in range(n)]
    if not held(of_heads[1], d, lens):
        return None
    lie = r.choice((("padded", 0), ("pages", 16), ("pages", 64), ("pages", 256)))
    return Batch("paged", 0, dtype(r), d, *of_heads, "causal", *lie, tuple(lens), True)


KINDS = {"packed": packed, "fewrows": fewrows, "mixed": mixed, "paged": paged}


def draw(kind, seed, count):
    """The first batches of a kind and seed."""
    r, out = random.Random(f"{kind}/{seed}"), []
    while len(out) < count:
        made = KINDS[kind](r)
        if made:
            out.append(replace(made, number=len(out)))
    return out
