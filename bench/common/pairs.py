"""Which pairs (query, key) a mask lets through: asked of the library (gen/pairs.h, by bench/lever.h), so that no script here has a mask of its
own. The Python package's tests have one (python/tests/conftest.py), independent of it.
"""
import ctypes as C
import functools

from common import fagen


class Pairs:
    """Of one sequence of sq queries and sk keys, of every head: query i sees key j where first[i] <= j <= last[i], and so where
    i + lo <= j <= i + hi. lo or hi None: that side hides nothing. count: pairs that are seen."""

    def __init__(self, sq, sk, mask, left, right, diagonal):
        args = fagen.Args(size=C.sizeof(fagen.Args), sq=sq, sk=sk, mask=fagen.MASKS[mask], window_left=left, window_right=right,
                          diagonal=fagen.DIAGONALS[diagonal])
        self.first, self.last = (C.c_int64 * max(sq, 1))(), (C.c_int64 * max(sq, 1))()
        band, count = (C.c_int64 * 2)(), C.c_int64()
        fagen.check(library(), library().fa_lever_pairs(C.byref(args), band, C.byref(count), self.first, self.last))
        self.count = count.value
        self.lo, self.hi = (None if band[0] <= -sq else band[0]), (None if band[1] >= sk else band[1])

    def hide_(self, scores, at=0, group=1):
        """Fills scores [..., rows, keys], of queries from `at` on and the first keys, with -inf where a pair is hidden; returns them. group:
        rows of each query, one after the other."""
        import torch
        if self.lo is None and self.hi is None:
            return scores
        n, keys = scores.shape[-2] // group, torch.arange(scores.shape[-1], device=scores.device)
        first, last = (torch.frombuffer(x, dtype=torch.int64)[at:at + n].to(scores.device).repeat_interleave(group)[:, None]
                       for x in (self.first, self.last))
        return scores.masked_fill_((keys < first) | (keys > last), float("-inf"))


@functools.lru_cache(maxsize=None)
def library():
    return fagen.load(fagen.library("fagen_lever"))


@functools.lru_cache(maxsize=16)
def of(sq, sk, mask, left=-1, right=-1, diagonal="bottom-right"):
    """mask: none, causal, window; left, right as in fa_args."""
    return Pairs(sq, sk, mask, left, right, diagonal)
