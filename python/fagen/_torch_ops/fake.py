"""What operators give, without computing it: shapes may be symbols, and only what they do not need is checked."""
from __future__ import annotations

from typing import Any, Tuple

import torch

from .. import _shapes as shapes
from .._mask import options_of
from ..errors import InvalidArgument
from . import no_gradient


def out_type(options: str, of: torch.dtype) -> torch.dtype:
    name = options_of(options.replace("?", "0")).out_dtype
    return of if name is None else getattr(torch, name)


def checked(q: Any, k: Any, v: Any, ranks: Tuple[int, int]) -> None:
    """Raises InvalidArgument. ranks: of q, and of k and v."""
    for name, x, n in (("q", q, ranks[0]), ("k", k, ranks[1]), ("v", v, ranks[1])):
        if x.dim() != n:
            raise InvalidArgument(f"{name}.shape is {tuple(x.shape)}; accepted: {n} dimensions")
        shapes.dtype_of(name, str(x.dtype).replace("torch.", ""))
        if x.dtype != q.dtype or x.device != q.device:
            raise InvalidArgument(f"{name} is {x.dtype} on {x.device}; accepted: {q.dtype} on {q.device}, as q")


def written(*tensors: Any) -> None:
    """Of an operator that writes to out."""
    no_gradient.refuse(no_gradient.OUT, **{f"argument {i}": x for i, x in enumerate(tensors) if isinstance(x, torch.Tensor)})
