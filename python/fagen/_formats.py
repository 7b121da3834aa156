"""The formats of caches of few bits, and tensors of their bytes."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from . import _abi
from . import _shapes as shapes
from ._view import View
from .errors import invalid

FORMATS = {"e4m3": (_abi.FA_E4M3, 1, 1), "e5m2": (_abi.FA_E5M2, 1, 1), "s8": (_abi.FA_S8, 1, 1), "q8_0": (_abi.FA_Q8_0, 32, 34),
           "q4_0": (_abi.FA_Q4_0, 32, 18), "q4_1": (_abi.FA_Q4_1, 32, 20), "q5_0": (_abi.FA_Q5_0, 32, 22), "q5_1": (_abi.FA_Q5_1, 32, 24),
           "iq4_nl": (_abi.FA_IQ4_NL, 32, 18), "nvfp4": (_abi.FA_NVFP4, 64, 36)}  # fa_dtype, elements of a block, its bytes
TYPES = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "int8": "s8"}  # whose elements are codes


def format_of(name: str, x: View, word: Optional[str], option: str) -> Tuple[str, View]:
    """The format of k or v, and its view as if it had the numbers: rows of d elements, strides in blocks."""
    if word is not None and word not in FORMATS:
        raise invalid(option, repr(word), f"None, {', '.join(FORMATS)}")
    own = TYPES.get(x.dtype, word)
    if own is None or (word is not None and own != word) or x.dtype not in (*TYPES, "uint8"):
        raise invalid(f"{name}.dtype", x.dtype, f"uint8, the bytes of {word}" if word else f"{', '.join(TYPES)}, or uint8 with {option}")
    _, block, size = FORMATS[own]
    shapes.rank(name, x, len(x.shape), "bytes of rows side by side")
    if x.shape[-1] % size:
        raise invalid(f"{name}.shape[-1]", x.shape[-1], f"a multiple of the {size} bytes of a block of {own}")
    if any(n > 1 and step % size for n, step in zip(x.shape[:-1], x.strides[:-1])):
        raise invalid(f"{name}.strides", x.strides, f"multiples of the {size} bytes of a block of {own}")
    return own, x._replace(shape=(*x.shape[:-1], x.shape[-1] // size * block), strides=(*(step // size for step in x.strides[:-1]), 1))


def type_name(x: Any) -> str:
    return str(getattr(x, "dtype", "")).replace("torch.", "")


def scales_of(name: str, x: View, k: View, b: int, hkv: int, q: View, beside: str = "q") -> _abi.Scale:
    """The fa_scale of a tensor of hkv heads, its address left out. k: the tensor with its numbers; q: what it lies beside, by its name."""
    shapes.same(name, x, "dtype", "float32", "every scale")
    shapes.same(name, x, "device", q.device, beside)
    steps = [0 if n == 1 else step for n, step in zip(x.shape, x.strides)]
    if x.shape == k.shape[:-1] and (len(x.shape) == 3 or x.shape[0] != b):
        sb, ss, sh = steps if len(steps) == 3 else (0, *steps)
        return _abi.Scale(dtype=_abi.FA_F32, by=_abi.FA_SCALE_TOKEN, sb=sb, ss=ss, sh=sh)
    if name != "q_scale" and len(k.shape) == 4 and x.shape == (k.shape[0], 1, k.shape[2]):  # of each page, or of each sequence
        return _abi.Scale(dtype=_abi.FA_F32, by=_abi.FA_SCALE_TOKEN, sb=steps[0], ss=0, sh=steps[2])
    columns = k.shape[-1]
    if name != "q_scale" and len(x.shape) == 4 and columns > 1 and x.shape in [(i, 1, h, columns) for i in (1, b) for h in (1, hkv)]:
        return _abi.Scale(dtype=_abi.FA_F32, by=_abi.FA_SCALE_CHANNEL, sb=steps[0], ss=x.strides[3], sh=steps[2])
    if x.shape not in ((1,), (hkv,), (1, hkv), (b, 1), (b, hkv)):
        raise invalid(f"{name}.shape", x.shape, f"(1,), ({hkv},), a scale for each head, ({b}, {hkv}), of each sequence, (1, 1, {hkv}, "
                                                f"{columns}), of each column, or {k.shape[:-1]}, of each token, 1 for tokens: of each page")
    return _abi.Scale(dtype=_abi.FA_F32, by=_abi.FA_SCALE_FOLDED, sb=steps[0] if len(steps) == 2 else 0, sh=steps[-1])
