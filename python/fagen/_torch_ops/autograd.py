"""The operators' kernels for autograd. An operator whose tensors want no gradient costs what it would cost without these."""
from __future__ import annotations

from typing import Any, Callable

import torch

from . import dense, no_gradient
from .dispatch import below, ops, plain
from .functions import Attention, Backward

Kernel = Callable[..., Any]
_grad = torch.is_grad_enabled
_Tensor = torch.Tensor


def wanted(q: Any, k: Any, v: Any) -> bool:
    """Whether autograd wants gradients of a call."""
    return _grad() and (q.requires_grad or k.requires_grad or v.requires_grad)


def attention(q: Any, k: Any, v: Any, scale: float, options: str) -> Any:
    if _grad() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return Attention.apply(q, k, v, scale, options)[0]
    if type(q) is type(k) is type(v) is _Tensor and plain():
        return dense.call(q, k, v, None, None, False, scale, options)[0]
    return below(ops.attention, dense.attention, q, k, v, scale, options)


def forward(name: str, kernel: Kernel, differentiable: Kernel) -> Kernel:
    """Of an operator and its kernel; differentiable: what autograd sees instead where it wants gradients."""
    def call(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        if wanted(q, k, v):
            return differentiable(q, k, v, *rest)
        return below(getattr(ops, name), kernel, q, k, v, *rest)
    return call


def without_pages(differentiable: Kernel) -> Kernel:
    """Of sequences with lengths."""
    def call(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        if rest[4] is not None:
            no_gradient.refuse(no_gradient.PAGES, q=q, k=k, v=v)
        return differentiable(q, k, v, *rest)
    return call


def out_of(differentiable: Kernel) -> Kernel:
    """Of an operator that gives out without LSE."""
    return lambda *arguments: differentiable(*arguments)[0]


def backward(name: str, kernel: Kernel) -> Kernel:
    """Of an operator of gradients."""
    def call(*arguments: Any) -> Any:
        op = getattr(ops, name)
        if _grad() and any(x is not None and x.requires_grad for x in arguments[:7]):
            return Backward.apply(op, kernel, *arguments)
        return below(op, kernel, *arguments)
    return call
