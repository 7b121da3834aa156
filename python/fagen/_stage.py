"""A launch of tensors where they lie; those of host memory on a simulated chip: copied there, computed, copied back."""
from __future__ import annotations

import ctypes as C
import itertools
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from . import _abi
from ._library import check, lib
from ._plan import Plan
from ._view import BYTES, View, is_torch, packed


class Staged(NamedTuple):
    """A tensor of a plan: the word of fa_args that takes its address, and whether it comes back."""
    word: int
    view: View
    output: bool


def put(plan: Plan, q: Any, tensors: List[Staged], stream: Optional[int], at: int) -> None:
    """Launches a plan. stream: the caller's; None: the current one of PyTorch where q is its, in whose captures a workspace is the graph's,
    else `at`, that of the tensors' interfaces."""
    if plan.host:
        launch(plan, tensors)
        return
    for t in tensors:
        plan.words[t.word] = t.view.address
    if stream is None and is_torch(q):
        from ._torch_ops.launch import on_device
        on_device(plan, q.device.index or 0)
    else:
        plan.launch(at)


def span(x: View) -> Tuple[int, int]:
    """(first byte relative to the address, bytes) from the lowest to the highest element."""
    size = BYTES[x.dtype]
    low = sum((n - 1) * s for n, s in zip(x.shape, x.strides) if s < 0)
    high = sum((n - 1) * s for n, s in zip(x.shape, x.strides) if s > 0)
    return low * size, (high - low + 1) * size


def run(plan: Plan, tensors: Sequence[Tuple[int, View]], outputs: Sequence[int], stream: int) -> None:
    """Launches the plan on these tensors by their words, wherever they lie."""
    if plan.host:
        launch(plan, [Staged(w, x, w in outputs) for w, x in tensors])
        return
    for w, x in tensors:
        plan.words[w] = x.address
    plan.launch(stream)


def launch(plan: Plan, tensors: List[Staged]) -> None:
    """plan.launch() for tensors in host memory. Rows that no kernel writes keep what they held."""
    handle = plan.context.handle
    there: List[Tuple[Staged, int, int, int]] = []
    try:
        for t in tensors:
            if 0 in t.view.shape:
                plan.words[t.word] = 0
                continue
            low, size = span(t.view)
            at = C.c_void_p()
            check(lib.fa_alloc(handle, C.byref(at), size))
            assert at.value
            there.append((t, at.value, low, size))
            check(lib.fa_copy(handle, at.value, t.view.address + low, size, _abi.FA_TO_DEVICE))
            plan.words[t.word] = at.value - low
        plan.launch(0)
        for t, device, low, size in there:
            if t.output:
                bring(handle, t.view, device, low, size)
    finally:
        for t, device, _, _ in there:
            plan.words[t.word] = 0
            lib.fa_free(handle, device)


def bring(handle: int, x: View, device: int, low: int, size: int) -> None:
    """Device memory back into a tensor of any strides, its rows alone."""
    if tuple(x.strides) == packed(x.shape):
        check(lib.fa_copy(handle, x.address, device, size, _abi.FA_FROM_DEVICE))
        return
    copy = C.create_string_buffer(size)
    check(lib.fa_copy(handle, C.addressof(copy), device, size, _abi.FA_FROM_DEVICE))
    bytes_of = BYTES[x.dtype]
    whole = 1 if x.strides[-1] == 1 or x.shape[-1] == 1 else 0  # dimensions that are copied at once
    row = (x.shape[-1] if whole else 1) * bytes_of
    for index in itertools.product(*(range(n) for n in x.shape[:len(x.shape) - whole])):
        at = sum(i * s for i, s in zip(index, x.strides)) * bytes_of
        C.memmove(x.address + at, C.addressof(copy) - low + at, row)
