"""The launch of a plan on tensors of PyTorch: on their device and its current stream, or on the simulated chip."""
from __future__ import annotations

import threading
from typing import Any, Callable, List, Tuple

import torch

from .. import _stage
from .._context import Workspace
from .._library import check, lib
from .._plan import LSE, O, Plan
from .._stage import Staged
from .._view import view

Tensors = List[Tuple[int, torch.Tensor]]  # with their words of fa_args


def capture_workspace(index: int, handle: int, kept: List[Any]) -> Callable[[int, int], Workspace]:
    """Of a stream that is captured: memory of the graph's own pool, zeroed by the graph, so that graphs and eager calls share none."""
    def make(stream: int, size: int) -> Workspace:
        space = torch.empty(size, dtype=torch.uint8, device=f"cuda:{index}")
        kept.append(space)
        check(lib.fa_workspace_init(handle, space.data_ptr(), size, stream))
        return Workspace(space.data_ptr(), size, threading.Lock())
    return make


def on_device(plan: Plan, index: int) -> None:
    """Launches a plan whose addresses are set on PyTorch's current stream of the device."""
    if torch._C._cuda_getDevice() != index:
        with torch.cuda.device(index):
            return on_device(plan, index)
    stream = torch._C._cuda_getCurrentRawStream(index)
    if plan.need and torch.cuda.is_current_stream_capturing():
        kept: List[Any] = []
        return plan.launch(stream, capture_workspace(index, plan.context.handle, kept))
    return plan.launch(stream)


def launch(plan: Plan, index: int, tensors: Tensors, written: Tuple[int, ...] = (O, LSE)) -> None:
    """On the tensors' device; those of host memory on the simulated chip. written: the words of outputs."""
    if plan.host:
        return _stage.launch(plan, [Staged(w, view("", x), w in written) for w, x in tensors])
    for w, x in tensors:
        plan.words[w] = x.data_ptr()
    return on_device(plan, index)
