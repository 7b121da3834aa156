"""A tensor of any library as address, shape, strides and type: PyTorch, numpy, and all that speaks DLPack or __cuda_array_interface__."""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from . import _dlpack
from .errors import InvalidArgument, invalid

BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int32": 4, "int64": 8, "uint64": 8, "uint8": 1, "int8": 1, "float8_e4m3fn": 1,
         "float8_e5m2": 1}
HOST, GPU = "cpu", "cuda"


class View(NamedTuple):
    """Where a tensor's elements lie. Strides are in elements; `device` is "cpu", "cuda:N", or "cuda" where the interface does not say
    which. `keep` holds what must live as long; `stream` is the one of the interface, where it names one."""
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
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_jax(x: Any) -> bool:
    """Whether x is an array, or a tracer, of JAX; false where JAX was never imported."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(x, jax.Array)


def traced() -> bool:
    """Whether PyTorch traces a program, or a mode sees what is called: tensors may have no memory then."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack())


def _of_torch(name: str, x: Any, stream: Optional[int]) -> View:
    if not _torch_types:
        torch = torch_module()
        _torch_types.update({getattr(torch, n): n for n in BYTES if hasattr(torch, n)})
    if x.layout is not torch_module().strided:
        raise invalid(f"{name}.layout", x.layout, "torch.strided")
    if x.device.type not in (HOST, GPU):
        raise invalid(f"{name}.device", x.device, "a CUDA device, or the CPU with device=\"sim:sm_90a\"")
    if x.is_neg() or x._is_zerotensor():
        raise InvalidArgument(f"{name or 'an argument'} is a tensor whose values are not in its memory, a lazy negative or zero; accepted: "
                              "its resolve_neg() or clone()")
    device = HOST if x.device.type == HOST else f"cuda:{x.device.index or 0}"
    return View(x.data_ptr(), tuple(x.shape), tuple(x.stride()), _torch_types.get(x.dtype, str(x.dtype).replace("torch.", "")), device,
                False, x)


def _typestr(text: str) -> str:
    """The name of a type by its NumPy text, such as "<f2"."""
    kinds = {"f": "float", "i": "int", "u": "uint", "b": "bool", "c": "complex"}
    if text[:1] == ">":
        return f"big-endian {text}"
    kind, size = text[1:2], text[2:]
    return f"{kinds[kind]}{8 * int(size)}" if kind in kinds and size.isdigit() else text


Layout = Tuple[Tuple[int, ...], Tuple[int, ...], str]
_layouts: Dict[Any, Layout] = {}  # by what interfaces say, which repeats from call to call
LAYOUTS = 4096  # kept at most


def _layout(name: str, shape: Sequence[int], strides: Optional[Sequence[int]], typestr: str, bfloat16: bool) -> Layout:
    """Shape, strides in elements and type of an array interface."""
    dtype = "bfloat16" if bfloat16 else _typestr(typestr)
    size = BYTES.get(dtype, int("".join(c for c in typestr[2:] if c.isdigit()) or 1))
    if strides is not None and any(s % size for s in strides):
        raise invalid(f"{name}.strides", f"{tuple(strides)} bytes", f"multiples of the {size} bytes of {dtype}")
    return tuple(shape), packed(shape) if strides is None else tuple(s // size for s in strides), dtype


def _of_interface(name: str, x: Any, how: Dict[str, Any], device: str) -> View:
    """__cuda_array_interface__ or __array_interface__."""
    typestr, strides = how["typestr"], how.get("strides")
    bfloat16 = typestr[1] == "V" and getattr(getattr(x, "dtype", None), "name", "") == "bfloat16"
    key = (how["shape"], strides, typestr, bfloat16)
    layout = _layouts.get(key)
    if layout is None:
        if how.get("mask") is not None:
            raise InvalidArgument(f"{name}.mask is set; accepted: an array without a mask")
        layout = _layout(name, how["shape"], strides, typestr, bfloat16)
        if len(_layouts) >= LAYOUTS:
            _layouts.clear()
        _layouts[key] = layout
    address, readonly = how["data"]
    return View(address or 0, *layout, device, readonly, x, how.get("stream"))


def _of_numpy(name: str, x: Any, stream: Optional[int]) -> View:
    if hasattr(x, "mask"):
        raise InvalidArgument(f"{name} is a masked array, whose mask no kernel reads; accepted: an array without a mask")
    return _of_interface(name, x, x.__array_interface__, HOST)


def _of_cuda(name: str, x: Any, stream: Optional[int]) -> View:
    return _of_interface(name, x, x.__cuda_array_interface__, GPU)


def _of_dlpack(name: str, x: Any, stream: Optional[int]) -> View:
    kind, number = x.__dlpack_device__()
    if kind not in _dlpack.ON_CUDA and kind not in _dlpack.ON_HOST:
        raise invalid(f"{name}.__dlpack_device__()", (int(kind), number), "a CUDA device (2 or 13) or host memory (1 or 3)")
    host = kind in _dlpack.ON_HOST
    b = _dlpack.borrow(x, None if host else stream or 1)  # 0 is no stream in DLPack: 1 is the legacy default one
    return View(b.address, b.shape, b.strides or packed(b.shape), b.dtype, HOST if host else f"cuda:{number}", False, (x, b.capsule))


def _reader(x: Any) -> Optional[Callable[[str, Any, Optional[int]], View]]:
    """How a tensor is read; None where it is none."""
    if is_torch(x):
        return _of_torch
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.ndarray):
        return _of_numpy
    if isinstance(getattr(x, "__cuda_array_interface__", None), dict) and not callable(getattr(x, "__dlpack_device__", None)):
        return _of_cuda
    return _of_dlpack if callable(getattr(x, "__dlpack_device__", None)) else None


def layout_of(name: str, x: Any) -> Layout:
    """Shape, strides and type of a tensor, whose memory may not be there yet while PyTorch traces a program."""
    if traced() and is_torch(x):
        return tuple(x.shape), tuple(x.stride()), str(x.dtype).replace("torch.", "")
    if is_jax(x):
        return tuple(x.shape), packed(x.shape), x.dtype.name
    v = view(name, x)
    return v.shape, v.strides, v.dtype


_readers: Dict[type, Callable[[str, Any, Optional[int]], View]] = {}


def view(name: str, x: Any, stream: Optional[int] = None) -> View:
    """Reads a tensor. name: of the argument, for messages. stream: the number of the CUDA stream that will use it, for DLPack's
    producer. Raises InvalidArgument."""
    read = _readers.get(type(x))
    if read is None:
        read = _reader(x)
        if read is None:
            raise invalid(name, f"a {type(x).__module__}.{type(x).__name__}",
                          "a tensor of PyTorch, numpy, or with DLPack or __cuda_array_interface__")
        _readers[type(x)] = read
    try:
        return read(name, x, stream)
    except (BufferError, RuntimeError, TypeError, KeyError) as e:  # of the producer
        raise InvalidArgument(f"{name} is a {type(x).__module__}.{type(x).__name__} that cannot be read: {e}; accepted: a tensor with "
                              "DLPack or __cuda_array_interface__") from e


def fresh(of: View, shape: Sequence[int], dtype: str) -> View:
    """The view of a packed tensor that is yet to be made, on the device of another."""
    return View(0, tuple(shape), packed(shape), dtype, of.device, False, None)


def empty_like(x: Any, shape: Sequence[int], dtype: str, argument: str) -> Any:
    """A new packed tensor of the library that x is of, on x's device. argument: what the caller can pass where there is no way to make
    one."""
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
