"""out and LSE of a forward: the caller's, or new ones."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

import torch

from .._plan import LSE, O
from .._view import View, fresh, view
from .launch import Tensors


class Made(NamedTuple):
    """What a plan's new outputs are like. `like`: out is as torch.empty_like(q)."""
    shape: Tuple[int, ...]
    dtype: torch.dtype
    lse: Tuple[int, ...]
    device: torch.device
    like: bool


def views(of: View, shape: Tuple[int, ...], lse_shape: Tuple[int, ...], out: Any, lse: Any, want: bool,
          out_dtype: Optional[str]) -> Tuple[View, Optional[View]]:
    """What a plan is made of; new tensors are packed, on the device of `of`. want: LSE too."""
    result = fresh(of, shape, out_dtype or of.dtype) if out is None else view("out", out)
    return result, view("lse", lse) if lse is not None else fresh(of, lse_shape, "float32") if want else None


def new(made: Made, want: bool) -> Tuple[Any, Any]:
    out = torch.empty(made.shape, dtype=made.dtype, device=made.device)
    return out, torch.empty(made.lse, dtype=torch.float32, device=made.device) if want else None


def given(out: Any, lse: Any) -> Tensors:
    return [(w, x) for w, x in ((O, out), (LSE, lse)) if x is not None]
