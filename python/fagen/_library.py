"""libfagen.so: found, opened once, with the prototypes of fagen.h; and its statuses as exceptions."""
from __future__ import annotations

import ctypes as C
import os
from typing import Any

from . import _abi
from .errors import OF_STATUS, FagenError


def path() -> str:
    """Where libfagen.so is: FAGEN_LIBRARY, else the package's own."""
    return os.environ.get("FAGEN_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libfagen.so")


def _open() -> Any:
    lib = C.CDLL(path())
    for name, (result, parameters) in _abi.FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = parameters
    return lib


lib = _open()


def last_error() -> str:
    """The message of this thread's last call that failed."""
    return lib.fa_last_error().decode(errors="replace")


def error_of(status: int) -> FagenError:
    """The exception of a status, with the C library's message."""
    kind = OF_STATUS.get(status, FagenError)
    error = kind(last_error() or lib.fa_status_name(status).decode())
    error.status = status
    return error


def check(status: int) -> None:
    """Raises what a status other than FA_OK means."""
    if status:
        raise error_of(status)


def version() -> str:
    """major.minor.patch of the library."""
    v = lib.fa_version()
    return f"{v // 10000}.{v // 100 % 100}.{v % 100}"
