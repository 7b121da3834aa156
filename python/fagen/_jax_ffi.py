"""libfagen_jax.so: fagen's custom call of XLA, registered with JAX, and the contexts that it launches in."""
from __future__ import annotations

import ctypes as C
import os
import threading
from typing import Any, Dict, List

import jax

from ._context import Context, context
from ._library import lib
from ._library import path as library_path
from .errors import FileError, InternalError

FORWARD, BACKWARD = "fagen_attention", "fagen_attention_backward"  # targets
DROPOUT, DROPOUT_BACKWARD = "fagen_attention_dropout", "fagen_attention_dropout_backward"
HOST_SLOT = 64  # of the simulated chip; CUDA devices have their ordinals
FUNCTIONS = ("fa_launch", "fa_workspace_size", "fa_workspace_init", "fa_alloc", "fa_free", "fa_copy", "fa_last_error", "fa_score_create")
SYMBOLS = {FORWARD: "fagen_jax_attention", BACKWARD: "fagen_jax_backward", DROPOUT: "fagen_jax_dropout",
           DROPOUT_BACKWARD: "fagen_jax_dropout_backward"}
SUFFIXES = {"CUDA": "", "cpu": "_host"}  # of symbols, by platform of JAX

_lock = threading.Lock()
_open: List[Any] = []
_bound: Dict[int, Context] = {}


def path() -> str:
    """Where libfagen_jax.so is: beside libfagen.so."""
    return os.path.join(os.path.dirname(library_path()), "libfagen_jax.so")


def _library() -> Any:
    """Opens and registers it, once."""
    if not _open:
        if not os.path.exists(path()):
            raise FileError(f"{path()} is not there; accepted: a package that was installed by pip, which builds it")
        library = C.CDLL(path())
        addresses = [C.cast(getattr(lib, name), C.c_void_p).value for name in FUNCTIONS]
        try:
            addresses.append(C.cast(C.CDLL("libcuda.so.1").cuPointerGetAttribute, C.c_void_p).value)
        except OSError:
            addresses.append(None)
        library.fagen_jax_functions_set((C.c_void_p * len(addresses))(*addresses))
        library.fagen_jax_context_set.argtypes = [C.c_int, C.c_void_p]
        for target, symbol in SYMBOLS.items():
            for platform, suffix in SUFFIXES.items():
                jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(getattr(library, symbol + suffix)), platform=platform)
        _open.append(library)
    return _open[0]


def bind(slot: int, ctx: Context) -> None:
    """Calls on the device of the slot launch in this context from now on."""
    with _lock:
        library = _library()
        if _bound.get(slot) is not ctx:
            if library.fagen_jax_context_set(slot, ctx.handle):
                raise InternalError(f"slot is {slot}; accepted: 0 to {HOST_SLOT}")
            _bound[slot] = ctx


def any_context() -> Context:
    """One that is bound: a score program is the same in each."""
    return next(iter(_bound.values()))


def bind_devices() -> None:
    """Those of JAX's CUDA devices of this process that have no context yet."""
    with _lock:
        _library()
    for device in jax.local_devices() if jax.default_backend() in ("gpu", "cuda") else []:
        slot = device.local_hardware_id if device.local_hardware_id is not None else device.id
        ctx = context(f"cuda:{slot}")
        if _bound.get(slot) is not ctx:
            bind(slot, ctx)
