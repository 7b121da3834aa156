"""PyTorch's dispatcher: whether a call has to go by it, and the way to an operator below autograd."""
from __future__ import annotations

from typing import Any, Callable

import torch

ops = torch.ops.fagen
_C = torch._C
_WATCHERS = ("_len_torch_dispatch_stack", "_is_torch_function_mode_enabled", "_is_any_autocast_enabled")
_watched = not all(hasattr(_C, name) for name in _WATCHERS)  # a PyTorch that cannot be asked: always by the dispatcher
_Tensor = torch.Tensor


def plain() -> bool:
    """Whether an operator's kernel may be called without PyTorch's dispatcher, which costs microseconds: nothing wants to see the call."""
    return not (_watched or _C._len_torch_dispatch_stack() or _C._is_torch_function_mode_enabled() or _C._is_any_autocast_enabled()
                or _C._functorch.peek_interpreter_stack() is not None)


def below(op: Any, kernel: Callable[..., Any], *arguments: Any) -> Any:
    """The operator below autograd; its kernel where nothing wants to see the call."""
    if type(arguments[0]) is type(arguments[1]) is type(arguments[2]) is _Tensor and plain():
        return kernel(*arguments)
    with torch._C._AutoDispatchBelowAutograd():
        return op.default(*arguments)
