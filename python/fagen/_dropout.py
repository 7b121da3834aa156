"""Dropout: its probability, and the seed and offset in device memory that say which weights are dropped."""
from __future__ import annotations

from typing import Any, Optional

from . import _shapes as shapes
from ._plan import word
from ._view import View, view
from .errors import InvalidArgument, invalid

RNG = word("rng")
STATE = "two 64-bit integers on q's device, seed and offset"


def probability(dropout_p: Any) -> float:
    """dropout_p as a float. Raises InvalidArgument."""
    if not isinstance(dropout_p, (int, float)) and getattr(dropout_p, "shape", None) == ():
        dropout_p = dropout_p.item()  # of a tensor
    if isinstance(dropout_p, bool) or not isinstance(dropout_p, (int, float)) or not 0 <= dropout_p < 1:
        raise invalid("dropout_p", repr(dropout_p), "the probability of a weight to be dropped, 0 to below 1")
    return float(dropout_p)


def state(rng: Any, dropout_p: float, q: View, stream: Optional[int] = None) -> Optional[View]:
    """The view of rng; None where nothing is dropped. Raises InvalidArgument."""
    if not dropout_p:
        if rng is not None:
            raise InvalidArgument("rng is set and dropout_p is 0; accepted: both, or neither")
        return None
    if rng is None:
        raise invalid("rng", None, f"{STATE}, with dropout_p")
    x = view("rng", rng, stream)
    if x.dtype not in ("int64", "uint64"):
        raise invalid("rng.dtype", x.dtype, "int64, uint64")
    if x.shape != (2,) or x.strides != (1,):
        raise invalid("rng.shape", x.shape, f"(2,), packed: {STATE}")
    shapes.same("rng", x, "device", q.device, "q")
    return x
