"""Gradients that are not computed: autograd is told so, instead of being given none."""
from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

from ..errors import GradientUnsupported

MERGE = "no gradient of a merge is computed"
PAGES = "no gradient of keys in pages is computed"
FORWARD = "forward-mode derivatives are those of fagen.attention without dropout alone"
OUT = "what is written to out has no gradient; leave out None"
_grad = torch.is_grad_enabled
_dual: Any = forward_ad.unpack_dual


def refuse(why: str, **tensors: Any) -> None:
    """Raises GradientUnsupported where autograd would want a backward, or a tangent of what is computed."""
    if _grad():
        for name, x in tensors.items():
            if x is not None and x.requires_grad:
                raise GradientUnsupported(f"{name}.requires_grad is True; accepted: False, or a call within torch.no_grad(): {why}")
    if forward_ad._current_level >= 0:
        for name, x in tensors.items():
            if x is not None and _dual(x).tangent is not None:
                raise GradientUnsupported(f"{name} has a tangent; accepted: a tensor without one: {why}")
