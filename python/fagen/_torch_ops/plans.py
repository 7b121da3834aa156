"""The plans of all operators, and what they depend on."""
from __future__ import annotations

from typing import Any, Tuple

from .. import _context as contexts
from .._plan import Plans
from .launch import Tensors

plans = Plans()
find, keep = plans.find, plans.keep


def described(tensors: Tensors) -> Tuple[Any, ...]:
    """All of the tensors but their addresses."""
    return tuple([(w, x.shape, x.stride(), x.dtype, x.get_device() if x.is_cuda else x.device) for w, x in tensors])


def where(index: int) -> Tuple[Any, ...]:
    """What else a plan depends on: the simulated chip and the contexts are the caller's to change between two calls."""
    return (index, contexts.generation) if index >= 0 else (contexts.simulator_named(), contexts.generation)
