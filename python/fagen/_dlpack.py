"""DLPack's structs, as far as a consumer that only borrows needs them: https://dmlc.github.io/dlpack/latest/c_api.html."""
from __future__ import annotations

import ctypes as C
from typing import Any, NamedTuple, Optional, Tuple

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
ON_CUDA = (CUDA, CUDA_MANAGED)
ON_HOST = (CPU, CUDA_HOST)
TYPES = {(0, 8): "int8", (0, 32): "int32", (0, 64): "int64", (1, 8): "uint8", (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
         (4, 16): "bfloat16"}  # (code, bits)
KINDS = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat", 5: "complex", 6: "bool"}


class _Device(C.Structure):
    _fields_ = [("kind", C.c_int32), ("number", C.c_int32)]


class _Type(C.Structure):
    _fields_ = [("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16)]


class _Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device", _Device), ("ndim", C.c_int32), ("dtype", _Type), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


_pointer = C.pythonapi.PyCapsule_GetPointer
_pointer.restype = C.c_void_p
_pointer.argtypes = [C.py_object, C.c_char_p]


class Borrowed(NamedTuple):
    """A tensor that a capsule holds: it is valid for as long as the capsule is kept."""
    address: int
    shape: Tuple[int, ...]
    strides: Optional[Tuple[int, ...]]  # elements; None: packed
    dtype: str
    kind: int
    number: int
    capsule: Any


def borrow(x: Any, stream: Optional[int]) -> Borrowed:
    """What x.__dlpack__() gives. stream: the one that will use it, a number; None where x lies in host memory."""
    capsule = x.__dlpack__() if stream is None else x.__dlpack__(stream=stream)
    t = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    n = t.ndim
    code, bits = t.dtype.code, t.dtype.bits
    dtype = TYPES.get((code, bits), f"{KINDS.get(code, f'code {code} of ')}{bits}") if t.dtype.lanes == 1 else f"{t.dtype.lanes} lanes"
    return Borrowed((t.data or 0) + t.byte_offset, tuple(t.shape[:n]), tuple(t.strides[:n]) if t.strides else None, dtype,
                    t.device.kind, t.device.number, capsule)
