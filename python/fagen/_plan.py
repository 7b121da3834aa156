"""One kind of call, checked and laid out: fa_args whose addresses alone change from one launch to the next.

A plan belongs to the thread that made it. `Plans` keeps a thread's plans by what they depend on: shapes, strides, types and options.
"""
from __future__ import annotations

import ctypes as C
import threading
from typing import Any, Callable, Dict, Hashable, Optional

from . import _abi
from ._library import check, error_of, lib
from ._context import Context, Workspace

_launch = lib.fa_launch
Allocator = Callable[[int, int], Workspace]


def word(path: str) -> int:
    """The index of an 8-byte field of fa_args, such as "q.ptr", among its 8-byte words."""
    field, _, part = path.partition(".")
    at = getattr(_abi.Args, field).offset + (getattr(_abi.Tensor, part).offset if part else 0)
    assert at % 8 == 0
    return at // 8


Q, K, V, O, LSE = word("q.ptr"), word("k.ptr"), word("v.ptr"), word("o.ptr"), word("lse")
WORKSPACE, WORKSPACE_SIZE = word("workspace"), word("workspace_size")
_WORDS = C.c_uint64 * (C.sizeof(_abi.Args) // 8)


class Plan:
    """fa_args of a context. `words[Q] = address` sets a field; then `launch`. `made` is its caller's: what new outputs are like."""
    __slots__ = ("args", "words", "reference", "context", "need", "host", "made")

    def __init__(self, context: Context, args: _abi.Args) -> None:
        args.size = C.sizeof(_abi.Args)
        self.args = args
        self.words = _WORDS.from_buffer(args)
        self.reference = C.addressof(args)
        self.context = context
        self.host = context.simulated
        self.need = 0
        self.made: Any = None
        self.ask()

    def ask(self) -> None:
        """Looks up the bytes of workspace: they change when kernels are prepared or tuned."""
        need = C.c_size_t()
        check(lib.fa_workspace_size(self.context.handle, self.reference, C.byref(need)))
        self.need = need.value

    def launch(self, stream: int, workspace: Optional[Allocator] = None) -> None:
        """On a stream of the device. workspace(stream, bytes) gives one that is initialised; None: the context's own."""
        status = self.put(stream, workspace)
        if status:
            self.again(status, stream, workspace)

    def put(self, stream: int, workspace: Optional[Allocator]) -> int:
        """fa_launch(), with what workspace it needs."""
        if not self.need:
            return _launch(self.context.handle, self.reference, stream)
        space = workspace(stream, self.need) if workspace else self.context.workspace(stream, self.need, self.args.op)
        self.words[WORKSPACE], self.words[WORKSPACE_SIZE] = space.address, space.size
        with space.lock:
            return _launch(self.context.handle, self.reference, stream)

    def again(self, status: int, stream: int, workspace: Optional[Allocator]) -> None:
        """A second launch where another kernel took over that needs more workspace; else what the status means."""
        error, before = error_of(status), self.need
        if status != _abi.FA_INVALID or "workspace_size" not in str(error):
            raise error
        self.ask()
        if self.need <= before:
            raise error
        check(self.put(stream, workspace))


class Plans(threading.local):
    """The plans of each thread. Bounded: a program of ever new shapes keeps the last few thousand at most."""
    LIMIT = 4096

    def __init__(self) -> None:
        self.kept: Dict[Hashable, Any] = {}

    def find(self, key: Hashable) -> Optional[Any]:
        plan = self.kept.get(key)
        return plan if plan is not None and plan.context._handle is not None else None

    def keep(self, key: Hashable, plan: Any) -> Any:
        if len(self.kept) >= self.LIMIT:
            self.kept.clear()
        self.kept[key] = plan
        return plan
