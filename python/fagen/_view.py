"""A tensor of any library as address, shape, strides and type: PyTorch, numpy, and all that speaks DLPack or __cuda_array_interface__."""
from __future__ import annotations

import sys
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

from . import _dlpack
from .errors import InvalidArgument, invalid

BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int32": 4, "int64": 8, "uint8": 1}
HOST, GPU = "cpu", "cuda"


class View(NamedTuple):
    """Where a tensor's elements lie. Strides are in elements; `device` is "cpu", "cuda:N", or "cuda" where the interface does not say which.
    `keep` holds what must live as long; `stream` is the one of the interface, where it names one."""
    address: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    dtype: str
    device: str
    readonly: bool
    keep: Any
    stream: Optional[int] = None

    @property
    def host(self) -> bool:
        return self.device == HOST


def packed(shape: Sequence[int]) -> Tuple[int, ...]:
    """Row-major strides, in elements."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= max(int(n), 1)
    return tuple(reversed(out))


_torch_types: Dict[Any, str] = {}


def torch_module() -> Any:
    """PyTorch where the program has imported it; else None: no tensor can be its."""
    return sys.modules.get("torch")


def is_torch(x: Any) -> bool:
    """Whether x is a PyTorch tensor; false where PyTorch was never imported."""
    torch = torch_module()
    return torch is not None and isinstance(x, torch.Tensor)


def _of_torch(name: str, x: Any) -> View:
    if not _torch_types:
        torch = torch_module()
        _torch_types.update({getattr(torch, n): n for n in BYTES})
    if x.layout is not torch_module().strided:
        raise invalid(f"{name}.layout", x.layout, "torch.strided")
    if x.device.type not in (HOST, GPU):
        raise invalid(f"{name}.device", x.device, "a CUDA device, or the CPU with device=\"sim:sm_90a\"")
    device = HOST if x.device.type == HOST else f"cuda:{x.device.index or 0}"
    return View(x.data_ptr(), tuple(x.shape), tuple(x.stride()), _torch_types.get(x.dtype, str(x.dtype).replace("torch.", "")), device,
                False, x)


def _typestr(text: str, descr: Any = None) -> str:
    """The name of a type by its NumPy text, such as "<f2"."""
    kinds = {"f": "float", "i": "int", "u": "uint", "b": "bool", "c": "complex"}
    if text[:1] == ">":
        return f"big-endian {text}"
    kind, size = text[1:2], text[2:]
    return f"{kinds[kind]}{8 * int(size)}" if kind in kinds and size.isdigit() else text


def _of_interface(name: str, x: Any, how: Dict[str, Any], device: str) -> View:
    """__cuda_array_interface__ or __array_interface__."""
    named = getattr(getattr(x, "dtype", None), "name", "")
    dtype = "bfloat16" if named == "bfloat16" else _typestr(how["typestr"])
    size = BYTES.get(dtype, int("".join(c for c in how["typestr"][2:] if c.isdigit()) or 1))
    if how.get("mask") is not None:
        raise InvalidArgument(f"{name}.mask is set; accepted: an array without a mask")
    shape = tuple(how["shape"])
    strides = how.get("strides")
    if strides is not None and any(s % size for s in strides):
        raise invalid(f"{name}.strides", f"{tuple(strides)} bytes", f"multiples of the {size} bytes of {dtype}")
    elements = packed(shape) if strides is None else tuple(s // size for s in strides)
    address, readonly = how["data"]
    return View(address or 0, shape, elements, dtype, device, bool(readonly), x, how.get("stream"))


def view(name: str, x: Any, stream: Optional[int] = None) -> View:
    """Reads a tensor. name: of the argument, for messages. stream: the number of the CUDA stream that will use it, for DLPack's producer.
    Raises InvalidArgument."""
    if is_torch(x):
        return _of_torch(name, x)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.ndarray):
        return _of_interface(name, x, x.__array_interface__, HOST)
    where = getattr(x, "__dlpack_device__", None)
    if callable(where):
        kind, number = where()
        if kind in _dlpack.ON_CUDA or kind in _dlpack.ON_HOST:
            # 0 is not a stream in DLPack: 1 is the legacy default one
            b = _dlpack.borrow(x, None if kind in _dlpack.ON_HOST else stream or 1)
            return View(b.address, b.shape, b.strides or packed(b.shape), b.dtype, HOST if kind in _dlpack.ON_HOST else f"cuda:{number}",
                        False, (x, b.capsule))
        raise invalid(f"{name}.__dlpack_device__()", (int(kind), number), "a CUDA device (2 or 13) or host memory (1 or 3)")
    how = getattr(x, "__cuda_array_interface__", None)
    if isinstance(how, dict):
        return _of_interface(name, x, how, GPU)
    raise invalid(name, f"a {type(x).__module__}.{type(x).__name__}", "a tensor of PyTorch, numpy, or with DLPack or __cuda_array_interface__")


def empty_like(x: Any, shape: Sequence[int], dtype: str, argument: str) -> Any:
    """A new packed tensor of the library that x is of, on x's device. argument: what the caller can pass where there is no way to make one."""
    if is_torch(x):
        torch = torch_module()
        return torch.empty(tuple(shape), dtype=getattr(torch, dtype), device=x.device)
    root = type(x).__module__.split(".")[0]
    if root in ("numpy", "cupy"):
        library = sys.modules[root]
        if dtype == "bfloat16":
            kind = x.dtype if getattr(x.dtype, "name", "") == "bfloat16" else sys.modules["ml_dtypes"].bfloat16
        else:
            kind = getattr(library, dtype)
        return library.empty(tuple(shape), dtype=kind)
    space = getattr(x, "__array_namespace__", None)
    if callable(space) and root != "jax" and root != "jaxlib":
        library = space()
        return library.empty(tuple(shape), dtype=getattr(library, dtype), device=x.device)
    raise InvalidArgument(f"{argument} is None; accepted for a {type(x).__module__}.{type(x).__name__}: a tensor to write to")
