"""A device with its compiler, cache and prepared kernels: what every call of fagen works on.

Most programs never name one: `context()` gives that of the device that the tensors are on, and makes it at the first call.
"""
from __future__ import annotations

import contextlib
import contextvars
import ctypes as C
import os
import threading
import weakref
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from . import _abi, _nvrtc
from ._library import check, lib
from .errors import CaptureError, InvalidArgument, invalid

ON_MISS = {"compile": _abi.FA_MISS_COMPILE, "nearest": _abi.FA_MISS_NEAREST, "fail": _abi.FA_MISS_FAIL}
WORKSPACES = {"context": _abi.FA_WORKSPACE_CONTEXT, "caller": _abi.FA_WORKSPACE_CALLER}
SIMULATOR = "sim:"  # before the names of simulated chips


def _text(value: Optional[str]) -> Optional[bytes]:
    return None if value is None else os.fsencode(value)


class Workspace(NamedTuple):
    """Device memory for kernels of one stream. `lock` is held while a launch is put on the stream: those of two threads must not mix."""
    address: int
    size: int
    lock: threading.Lock


_named: "weakref.WeakValueDictionary[str, Context]" = weakref.WeakValueDictionary()  # all that there are, by their names


class Context:
    """One device. Thread-safe; closed by `close()`, by `with`, or when the last reference goes.

    device: "cuda:N", "sim:sm_80", "sim:sm_90a", "sim:sm_80,sm_90a:1" (number 1 of two); None: FAGEN_DEVICE, else the current CUDA device.
    cache_dir: folder of compiled kernels; None: FAGEN_CACHE_DIR, else ~/.cache/fagen; "": none.
    template_dir: kernel templates that replace the library's, file by file.
    nvrtc: path of libnvrtc.so; None: FAGEN_NVRTC, else a wheel of this interpreter, else the loader's path and CUDA_HOME.
    on_miss: what a call does whose kernel is not prepared: "compile" in the call, run the "nearest" and compile beside it, "fail".
    in_order: no kernel begins before all that precedes it in the stream has ended.
    sram_budget: bytes of shared memory that a block may use; 0: what the chip offers.
    cache_limit: bytes of kernels on disk; 0: 4 GiB; -1: any amount.
    check_device_data: lengths and pages are looked at in each launch; None: on the simulator.
    workspace: "context" lends one to launches that bring none, "caller" does not; PyTorch's and all others here bring theirs.
    workload: file to which closing adds what was launched, for `fagen tune --workload`; None: FAGEN_WORKLOAD; "": none.
    shipped: bundle of kernels that ship compiled; None: the one of the wheel, where it has one; "": none.
    Raises NoDriver, InvalidArgument, Unsupported.
    """

    def __init__(self, device: Optional[str] = None, *, cache_dir: Optional[str] = None, template_dir: Optional[str] = None,
                 nvrtc: Optional[str] = None, on_miss: str = "compile", in_order: bool = False, sram_budget: int = 0,
                 cache_limit: int = 0, check_device_data: Optional[bool] = None,
                 workload: Optional[str] = None, workspace: str = "context", shipped: Optional[str] = None) -> None:
        if device is not None and not isinstance(device, str):
            raise invalid("device", repr(device), '"cuda:N", "sim:sm_80", "sim:sm_90a", or None')
        if on_miss not in ON_MISS:
            raise invalid("on_miss", repr(on_miss), ", ".join(f'"{word}"' for word in ON_MISS))
        if workspace not in WORKSPACES:
            raise invalid("workspace", repr(workspace), ", ".join(f'"{word}"' for word in WORKSPACES))
        self.device = device or os.environ.get("FAGEN_DEVICE") or None
        self.name = f"context:{id(self)}"
        self._handle: Optional[int] = None
        self._lock = threading.Lock()
        self._workspaces: Dict[Tuple[int, int], Workspace] = {}
        self._old: List[int] = []  # workspaces that were outgrown: kernels may still use them
        options = _abi.Options(size=C.sizeof(_abi.Options), device=_text(device), cache_dir=_text(cache_dir),
                               template_dir=_text(template_dir), nvrtc=_text(nvrtc or _nvrtc.choose()), log_level=_abi.FA_LOG_WARN,
                               sram_budget=sram_budget, in_order=int(in_order), cache_limit=cache_limit, on_miss=ON_MISS[on_miss],
                               check_device_data=0 if check_device_data is None else 1 if check_device_data else -1,
                               workload=_text(workload), workspace=WORKSPACES[workspace], shipped=_text(shipped))
        handle = C.c_void_p()
        check(lib.fa_create(C.byref(handle), C.byref(options)))
        self._handle = handle.value
        self._pid = os.getpid()
        _named[self.name] = self
        self._finalizer = weakref.finalize(self, _destroy, handle.value or 0, self._pid, self._workspaces, self._old)

    @property
    def simulated(self) -> bool:
        """Whether the device is a simulated chip, whose tensors lie in host memory."""
        return bool(self.device) and str(self.device).startswith(SIMULATOR)

    @property
    def handle(self) -> int:
        """The fa_context, for calls of the C library."""
        if self._handle is None:
            raise InvalidArgument("context is closed; accepted: one that is open")
        return self._handle

    def close(self) -> None:
        """Frees kernels and workspaces. No call may be running, no kernel of it be on a stream."""
        self._handle = None
        self._finalizer()

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"fagen.Context({self.device!r}{'' if self._handle else ', closed'})"

    def workspace(self, stream: int, size: int, op: int = _abi.FA_FORWARD) -> "Workspace":
        """At least `size` bytes for kernels of one stream and operation, initialised. It is kept, and grows. Not legal while the stream is
        captured and it has to grow: CaptureError. Kernels that have no counters write where those of another operation have theirs."""
        have = self._workspaces.get((stream, op))
        return have if have is not None and have.size >= size else self._grow(stream, size, op)

    def _grow(self, stream: int, size: int, op: int) -> "Workspace":
        with self._lock:
            have = self._workspaces.get((stream, op)) or Workspace(0, 0, threading.Lock())
            if have.size >= size:
                return have
            size = max(size, 2 * have.size)
            at = C.c_void_p()
            status = lib.fa_alloc(self.handle, C.byref(at), size)
            if status == _abi.FA_DEVICE:
                check_capture(status)
            check(status)
            assert at.value
            check(lib.fa_workspace_init(self.handle, at.value, size, stream))
            if have.address:
                self._old.append(have.address)
            self._workspaces[stream, op] = Workspace(at.value, size, have.lock)
            return self._workspaces[stream, op]


generation = 0  # counts calls of use(): what was kept of a device's context before is stale
def check_capture(status: int) -> None:
    """An allocation that a capture forbids, in words of what to do."""
    from ._library import last_error
    message = last_error()
    if "CAPTURE" in message.upper():
        raise CaptureError(f"workspace: {message}; accepted: a first call on the stream before its capture begins")


def _destroy(handle: int, pid: int, workspaces: Dict[Tuple[int, int], Workspace], old: List[int]) -> None:
    if os.getpid() != pid:  # of a parent: fork() leaves nothing that could be freed here
        return
    for at in [w.address for w in workspaces.values()] + old:
        lib.fa_free(handle, at)
    lib.fa_destroy(handle)


_contexts: Dict[Optional[str], Context] = {}
_lock = threading.Lock()
_simulator: "contextvars.ContextVar[Optional[str]]" = contextvars.ContextVar("fagen_simulator", default=None)


def context(device: Union[None, str, Context] = None) -> Context:
    """The process's context of a device, made at the first call with defaults; a Context is given back as it is."""
    if isinstance(device, Context):
        return device
    found = _contexts.get(device) if device is None or isinstance(device, str) else None
    if found is not None and found._handle is not None:
        return found
    if isinstance(device, str) and device in _named:
        return _named[device]
    with _lock:
        found = _contexts.get(device) if isinstance(device, (str, type(None))) else None
        if found is None or found._handle is None:
            found = Context(device)
            _contexts[device] = found
        return found


def use(new: Context) -> Context:
    """From now on `context(new.device)` is this one, for tensors of that device without another context. Gives it back."""
    global generation
    if not isinstance(new, Context):
        raise invalid("new", repr(new), "a fagen.Context; fagen.simulator() is for a simulated chip")
    with _lock:
        _contexts[new.device] = new
        generation += 1
    return new


@contextlib.contextmanager
def simulator(device: str = "sim:sm_90a") -> Iterator[Context]:
    """Within it, tensors in host memory run on a simulated chip: numpy arrays, and PyTorch's and JAX's on the CPU.

    Slow, and exact: the kernels are those of the GPU. "sim:sm_80", "sim:sm_90a"."""
    if not isinstance(device, str) or not device.startswith(SIMULATOR):
        raise invalid("device", repr(device), '"sim:sm_80", "sim:sm_90a"')
    token = _simulator.set(device)
    try:
        yield context(device)
    finally:
        _simulator.reset(token)


@contextlib.contextmanager
def within(chip: Optional[str]) -> Iterator[None]:
    """As simulator(), for a name that simulator_named() gave; None changes nothing."""
    token = None if chip is None else _simulator.set(chip)
    try:
        yield
    finally:
        if token is not None:
            _simulator.reset(token)


def simulator_named() -> Optional[str]:
    """The simulated chip of the enclosing `simulator()`, else that of FAGEN_DEVICE; None where no caller named one."""
    named = _simulator.get() or os.environ.get("FAGEN_DEVICE", "")
    return named if named.startswith(SIMULATOR) else None


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _contexts.clear()  # of the parent; the C library refuses them here


os.register_at_fork(after_in_child=_after_fork)
