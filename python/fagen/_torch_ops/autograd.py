"""The operators' kernels for autograd. An operator whose tensors want no gradient costs what it would cost without these."""
from __future__ import annotations

from typing import Any, Callable

import torch

from ..errors import GradientUnsupported
from . import dense, transforms
from .dispatch import below, functorch, ops, plain, resolved, transformed
from .functions import Attention, Backward
from .symbols import operator, traced

Kernel = Callable[..., Any]
_grad = torch.is_grad_enabled
_Tensor = torch.Tensor


def outside(name: str) -> None:
    """Raises where torch.func.* has taken its part of a call already, and cannot be told what autograd is to see."""
    if functorch():
        raise GradientUnsupported(f"torch.ops.fagen.{name} is called within torch.func.grad, jvp or their like; accepted there: fagen's "
                                  "functions, outside of torch.compile")


def wanted(q: Any, k: Any, v: Any) -> bool:
    """Whether autograd wants gradients of a call."""
    return _grad() and (q.requires_grad or k.requires_grad or v.requires_grad)


def attention(*arguments: Any) -> Any:
    q, k, v = arguments[:3]
    if transformed():
        outside("attention")
        return transforms.Attention.apply(*arguments)[0]
    if _grad() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return Attention.apply(*traced(arguments, False))[0]
    if type(q) is type(k) is type(v) is _Tensor and plain():
        return dense.attention(*resolved(arguments))
    return below(ops.attention, dense.attention, *traced(arguments, False))


def forward(name: str, kernel: Kernel, differentiable: Kernel, of_transforms: Kernel) -> Kernel:
    """Of an operator and its kernel; differentiable: what autograd sees instead where it wants gradients; of_transforms: what torch.func
    and forward-mode differentiation see."""
    dropout = "dropout" in name

    def call(*arguments: Any) -> Any:
        arguments = tuple(traced(arguments, dropout))
        if transformed():
            outside(name)
            return of_transforms(*arguments)
        if wanted(*arguments[:3]):
            return differentiable(*arguments)
        return below(getattr(ops, name), kernel, *arguments)
    return call


def constant(name: str) -> Kernel:
    """Of an operator without gradients, which refuses tensors that want one itself."""
    def call(*arguments: Any) -> Any:
        arguments = tuple(traced(arguments, False))
        with torch._C._AutoDispatchBelowAutograd():
            return operator(getattr(ops, name), arguments).default(*arguments)
    return call


def out_of(differentiable: Kernel) -> Kernel:
    """Of an operator that gives out without LSE."""
    return lambda *arguments: differentiable(*arguments)[0]


def backward(name: str, kernel: Kernel) -> Kernel:
    """Of an operator of gradients."""
    def call(*arguments: Any) -> Any:
        op, arguments = getattr(ops, name), tuple(traced(arguments, "dropout" in name))
        if transformed() or _grad() and any(x is not None and x.requires_grad for x in arguments[:7]):
            outside(name)
            return Backward.apply(op, kernel, *arguments)
        return below(op, kernel, *arguments)
    return call
