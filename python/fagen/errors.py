"""What fagen raises: one class for each status of the C library, all of them FagenError.

Each message says what was wrong with which argument, its value and what is accepted. `status` is the C library's number.
"""
from __future__ import annotations

from typing import Dict, Type

from . import _abi


class FagenError(Exception):
    """Base of all: `status` is the fa_status of fagen.h, `status_name` its name."""
    status: int = _abi.FA_INTERNAL

    @property
    def status_name(self) -> str:
        return NAMES.get(self.status, str(self.status))


class InvalidArgument(FagenError, ValueError):
    """An argument is wrong."""
    status = _abi.FA_INVALID


class Unsupported(FagenError, NotImplementedError):
    """Well-formed, but nothing in this version computes it."""
    status = _abi.FA_UNSUPPORTED


class GradientUnsupported(Unsupported):
    """A gradient was asked for of what has none: keys in pages, a merge, a call that writes to `out`, a gradient."""


class NoDriver(FagenError):
    """libcuda.so.1 or a device is missing."""
    status = _abi.FA_NO_DRIVER


class NoNvrtc(FagenError):
    """libnvrtc is missing or older than 12.4."""
    status = _abi.FA_NO_NVRTC


class CompileError(FagenError):
    """NVRTC refused a kernel."""
    status = _abi.FA_COMPILE


class DeviceError(FagenError):
    """The driver, or the simulator, reported an error."""
    status = _abi.FA_DEVICE


class NoFit(FagenError):
    """No tile fits the shared memory or the registers."""
    status = _abi.FA_NO_FIT


class NoKernel(FagenError):
    """No kernel is prepared and compiling was ruled out, or a tuning had no candidate that ran."""
    status = _abi.FA_NO_KERNEL


class FileError(FagenError):
    """A file that the caller named could not be read or written."""
    status = _abi.FA_IO


class OutOfMemory(FagenError, MemoryError):
    """Host or device memory ran out."""
    status = _abi.FA_NOMEM


class InternalError(FagenError):
    """A defect of fagen: please report it."""
    status = _abi.FA_INTERNAL


class CaptureError(FagenError):
    """The stream is being captured and the kernel, or its workspace, is not prepared."""
    status = _abi.FA_CAPTURE


class TemplateError(FagenError):
    """A kernel template or its .lua failed."""
    status = _abi.FA_TEMPLATE


class VerificationFailed(FagenError):
    """A kernel gave a wrong result under verification."""
    status = _abi.FA_WRONG


class Interrupted(FagenError):
    """The caller stopped a search; what was found so far is kept."""
    status = _abi.FA_INTERRUPTED


OF_STATUS: Dict[int, Type[FagenError]] = {kind.status: kind for kind in (
    InvalidArgument, Unsupported, NoDriver, NoNvrtc, CompileError, DeviceError, NoFit, NoKernel, FileError, OutOfMemory, InternalError,
    CaptureError, TemplateError, VerificationFailed, Interrupted)}
NAMES: Dict[int, str] = {value: name for name, value in vars(_abi).items() if name in {
    "FA_OK", "FA_INVALID", "FA_UNSUPPORTED", "FA_NO_DRIVER", "FA_NO_NVRTC", "FA_COMPILE", "FA_DEVICE", "FA_NO_FIT", "FA_NO_KERNEL", "FA_IO",
    "FA_NOMEM", "FA_INTERNAL", "FA_CAPTURE", "FA_TEMPLATE", "FA_WRONG", "FA_INTERRUPTED"}}


def invalid(name: str, value: object, accepted: str) -> InvalidArgument:
    """The exception for an argument: its name, its value, what is accepted."""
    return InvalidArgument(f"{name} is {value}; accepted: {accepted}")
