"""PyTorch's dispatcher: whether a call has to go by it, and the way to an operator below autograd."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import torch
from torch.autograd import forward_ad

from .symbols import operator

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


def below(op: Any, kernel: Callable[..., Any], *arguments: Any) -> Any:
    """The operator below autograd; its kernel where nothing wants to see the call."""
    if type(arguments[0]) is type(arguments[1]) is type(arguments[2]) is _Tensor and plain():
        return kernel(*resolved(arguments))
    with torch._C._AutoDispatchBelowAutograd():
        return operator(op, arguments).default(*arguments)
