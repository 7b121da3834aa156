"""Gradients that are not computed: autograd is told so, instead of being given none."""
from __future__ import annotations

from typing import Any

import torch

from ..errors import GradientUnsupported

MERGE = "no gradient of a merge is computed"
PAGES = "no gradient of keys in pages is computed"
OUT = "what is written to out has no gradient; leave out None"
_grad = torch.is_grad_enabled


def refuse(why: str, **tensors: Any) -> None:
    """Raises GradientUnsupported where autograd would want a backward."""
    if _grad():
        for name, x in tensors.items():
            if x is not None and x.requires_grad:
                raise GradientUnsupported(f"{name}.requires_grad is True; accepted: False, or a call within torch.no_grad(): {why}")
