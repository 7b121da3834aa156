"""PyTorch's dispatcher: whether a call has to go by it, and the way to an operator below autograd."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import torch
from torch.autograd import forward_ad

ops = torch.ops.fagen
_C = torch._C
_WATCHERS = ("_len_torch_dispatch_stack", "_is_torch_function_mode_enabled", "_is_any_autocast_enabled")
_watched = not all(hasattr(_C, name) for name in _WATCHERS)  # a PyTorch that cannot be asked: always by the dispatcher
_Tensor = torch.Tensor


def plain() -> bool:
    """Whether an operator's kernel may be called without PyTorch's dispatcher, which costs microseconds: nothing wants to see the call."""
    return not (_watched or _C._len_torch_dispatch_stack() or _C._is_torch_function_mode_enabled() or _C._is_any_autocast_enabled()
                or forward_ad._current_level >= 0 or _C._functorch.peek_interpreter_stack() is not None)


def functorch() -> bool:
    """Whether a call is within torch.func.*."""
    return _C._functorch.peek_interpreter_stack() is not None


def transformed() -> bool:
    """Whether a call is within torch.func.* or a level of forward-mode differentiation."""
    return forward_ad._current_level >= 0 or functorch()


def resolved(arguments: Sequence[Any]) -> Sequence[Any]:
    """The arguments, with tensors whose sign is a bit beside their memory written out: kernels read memory alone."""
    for x in arguments:
        if type(x) is _Tensor and x.is_neg():
            return [y.resolve_neg() if isinstance(y, _Tensor) else y for y in arguments]
    return arguments


SCALED = "_scaled"  # behind the name of an operator whose scale is a tensor, float64 [] on the CPU


def traced(scale: Any) -> Any:
    """A scale that a compiled program does not fix becomes a tensor, by a product that the compiler can keep as one."""
    return torch.ones((), dtype=torch.float64) * scale if isinstance(scale, torch.SymFloat) else scale


def number(scale: Any) -> float:
    """The scale of an operator as a number."""
    return float(scale.item() if isinstance(scale, _Tensor) else scale)


def operator(op: Any, arguments: Sequence[Any]) -> Any:
    """The operator, or the one that takes the tensor that the scale is, the last argument but one."""
    return getattr(ops, op._qualified_op_name.rpartition("::")[2] + SCALED) if isinstance(arguments[-2], _Tensor) else op


def below(op: Any, kernel: Callable[..., Any], *arguments: Any) -> Any:
    """The operator below autograd; its kernel where nothing wants to see the call."""
    if type(arguments[0]) is type(arguments[1]) is type(arguments[2]) is _Tensor and plain():
        return kernel(*resolved(arguments))
    with torch._C._AutoDispatchBelowAutograd():
        return operator(op, arguments).default(*arguments)
