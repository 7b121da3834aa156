"""What torch.func.vmap makes of a call: one call over a larger batch, or one for each index."""
from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import torch

from ..errors import Unsupported
from .dispatch import ops

Rule = Callable[..., Any]


def folded(apply: Callable[..., Any], count: int) -> Rule:
    """A rule for vmap that joins its dimension to the batch of the first `count` arguments, which are tensors [b, ...] or None."""
    def found(info: Any, in_dims: Tuple[Optional[int], ...], *arguments: Any) -> Any:
        def joined(x: Any, dim: Optional[int]) -> Any:
            if x is None:
                return None
            x = x.unsqueeze(0).expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            return x.flatten(0, 1)
        b = next(x.shape[0 if dim is None or dim > 0 else 1] for x, dim in zip(arguments, in_dims) if x is not None)
        results = apply(*(joined(x, dim) for x, dim in zip(arguments[:count], in_dims)), *arguments[count:])
        if not isinstance(results, tuple):
            return results.unflatten(0, (info.batch_size, b)), 0
        return tuple(x.unflatten(0, (info.batch_size, b)) for x in results), (0,) * len(results)
    return found


def one_by_one(apply: Callable[..., Any]) -> Rule:
    """A rule for vmap that makes a call for each index."""
    def found(info: Any, in_dims: Tuple[Optional[int], ...], *arguments: Any) -> Any:
        if not info.batch_size:
            raise Unsupported("vmap over 0 elements; accepted: 1 or more")
        results = [apply(*(x.select(dim, i) if isinstance(dim, int) else x for x, dim in zip(arguments, in_dims)))  # a list has a list
                   for i in range(info.batch_size)]
        if not isinstance(results[0], tuple):
            return torch.stack(results), 0
        return tuple(torch.stack(x) for x in zip(*results)), (0,) * len(results[0])
    return found


FOLDED = {"attention": 3, "attention_lse": 3, "attention_backward": 7}  # whose first arguments all have a batch


def rule(name: str, call: Optional[Callable[..., Any]] = None) -> Rule:
    """The rule of an operator, or of a call that stands for it."""
    def found(info: Any, in_dims: Tuple[Optional[int], ...], *arguments: Any) -> Any:
        made = call or getattr(ops, name).default
        return (folded(made, FOLDED[name]) if name in FOLDED else one_by_one(made))(info, in_dims, *arguments)
    return found
