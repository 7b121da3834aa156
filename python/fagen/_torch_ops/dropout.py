"""Dropout of an operator's call: rng and the probability, or None."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from .._dropout import RNG, probability, state
from .._view import View
from .launch import Tensors

Drop = Optional[Tuple[Any, float]]


def key_of(drop: Drop) -> Tuple[Any, ...]:
    """What a plan depends on."""
    return () if drop is None else (drop[1], drop[0].shape, drop[0].stride(), drop[0].dtype, drop[0].device)


def tensors_of(drop: Drop) -> Tensors:
    return [] if drop is None else [(RNG, drop[0])]


def checked(drop: Drop, q: View) -> float:
    """The probability. Raises InvalidArgument for one that is none, or another rng than is read."""
    if drop is None:
        return 0.0
    p = probability(drop[1])
    state(drop[0], p, q)
    return p
