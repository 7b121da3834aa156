"""What the tensors of a call may look like: checks that name the argument, its value and what is accepted; and their fields of fa_args."""
from __future__ import annotations

from typing import Any, Dict, Iterable, Optional, Sequence, Tuple

from . import _abi
from ._view import View, packed
from ._context import Context
from .errors import InvalidArgument, Unsupported, invalid

FLOATS = {"float16": _abi.FA_F16, "bfloat16": _abi.FA_BF16, "float32": _abi.FA_F32}
SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}  # as the command and the C library print them
EIGHT = {"float8_e4m3fn": _abi.FA_E4M3, "float8_e5m2": _abi.FA_E5M2, "int8": _abi.FA_S8}  # of Q and K of 8 bits, and of V, but beside int8
BESIDE_EIGHT = {"bfloat16": 0, "float16": _abi.FA_F16, "float32": _abi.FA_F32, "float8_e4m3fn": _abi.FA_E4M3}  # the field o_dtype
NAMES = ", ".join(f"{name} ({short})" for name, short in SHORT.items())
D_MAX = 576


def dtype_of(name: str, dtype: str) -> int:
    """The fa_dtype of Q, K or V. Raises InvalidArgument."""
    if dtype in EIGHT:
        return EIGHT[dtype]
    if dtype not in FLOATS:
        raise invalid(f"{name}.dtype", dtype, NAMES)
    return FLOATS[dtype]


def both(word: Any) -> str:
    """A type's two words, as "float16 (fp16)"; what is no such type as it is."""
    return f"{word} ({SHORT[word]})" if word in SHORT else str(word)


def rank(name: str, x: View, n: int, layout: str) -> None:
    """Raises where x has not n dimensions with unit stride on the last."""
    if len(x.shape) != n:
        raise invalid(f"{name}.shape", x.shape, f"{n} dimensions, {layout}")
    if x.shape[-1] > 1 and x.strides[-1] != 1:
        raise invalid(f"{name}.strides", x.strides, "unit stride on the last dimension (elements)")


def same(name: str, x: View, what: str, value: Any, other: str) -> None:
    """Raises where x's dtype or device is not that of another argument."""
    have = getattr(x, what)
    if have != value and not (what == "device" and "cuda" in (have, value) and str(have)[:4] == str(value)[:4]):
        raise invalid(f"{name}.{what}", both(have), f"{both(value)}, that of {other}")


def equal(name: str, x: View, wanted: Sequence[int], layout: str) -> None:
    """Raises where x has another shape than `wanted`."""
    if tuple(x.shape) != tuple(wanted):
        raise invalid(f"{name}.shape", tuple(x.shape), f"{tuple(wanted)}, {layout}")


def writable(name: str, x: View) -> None:
    """Raises where x cannot be written to, or where two of its elements are one."""
    if x.readonly:
        raise InvalidArgument(f"{name} is read-only; accepted: a tensor that can be written to")
    if any(n > 1 and s == 0 for n, s in zip(x.shape, x.strides)):
        raise invalid(f"{name}.strides", x.strides, "no stride of 0: an expanded tensor cannot be written to")


def head_dim(name: str, d: int) -> None:
    if not 1 <= d <= D_MAX:
        raise invalid(f"{name}.shape[-1]", d, f"1 to {D_MAX}")


def heads(hq: int, hkv: int, axis: int) -> None:
    if hq < 1:
        raise invalid(f"q.shape[{axis}]", hq, "at least 1 head")
    if hkv < 1 or hq % hkv:
        raise invalid(f"k.shape[{axis}]", hkv, f"a number of heads that divides the {hq} of q")


def output_dtype(name: str, dtype: Optional[str], of: str) -> int:
    """The field o_dtype: 0 where it is as the input, beside 8 bits bfloat16."""
    if of in EIGHT:
        if dtype is not None and dtype not in BESIDE_EIGHT:
            raise invalid(name, both(dtype), f"{NAMES}, float8_e4m3fn, beside q in {of}")
        return BESIDE_EIGHT[dtype or "bfloat16"]
    if dtype is None or dtype == of:
        return 0
    if dtype != "float32":
        raise invalid(name, both(dtype), f"{both(of)}, that of q, or float32 (fp32)")
    return _abi.FA_F32


def place(context: Context, device: str, name: str) -> None:
    """Raises where tensors of `device` cannot be the context's."""
    if context.simulated and device != "cpu":
        raise invalid(f"{name}.device", device, f"host memory with device=\"{context.device}\"")
    if not context.simulated and device == "cpu":
        raise invalid(f"{name}.device", device, "a CUDA device, or host memory with device=\"sim:sm_90a\", a simulated chip")


def tensor(name: str, x: View, shape: Sequence[int], strides: Sequence[int], broadcast: bool) -> Tuple[_abi.Tensor, bool]:
    """The fa_tensor of x as [b, s, h, d], its address left out, and whether a stride of 0 is meant."""
    own = packed(shape)
    steps = [st if n > 1 else usual for n, st, usual in zip(shape, strides, own)][:3]
    expanded = any(st == 0 and n > 1 for n, st in zip(shape, steps))
    if expanded and not broadcast:
        raise invalid(f"{name}.strides", x.strides, "no stride of 0")
    if not any(steps) and 0 not in shape:
        raise invalid(f"{name}.strides", x.strides, "one of the dimensions b, s and h that is not expanded")
    return _abi.Tensor(0, *steps), expanded


def flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise invalid(name, repr(value), "True, False")


def precision(dtype: int, tf32: bool) -> int:
    """fp32 tensors are multiplied as TF32 where the caller says so."""
    flag("tf32", tf32)
    return _abi.FA_TF32 if tf32 and dtype == _abi.FA_F32 else dtype


SCORES = "it is not computed: scores are scale * Q K^T, masked by causal and window"


def not_computed(softcap: Any, **others: Any) -> None:
    """Raises Unsupported for what would change the scores. softcap may be 0, all else is None."""
    unused({} if softcap is None else {"softcap": float(softcap)}, [0.0], SCORES)
    unused(others, [None], SCORES)


def unused(options: Dict[str, Any], neutral: Iterable[Any], why: str) -> None:
    """Raises Unsupported for each option whose value is none of `neutral`."""
    for name, value in options.items():
        if not any(value is n or (type(value) is type(n) and value == n) for n in neutral):
            text = f"a {type(value).__module__}.{type(value).__name__}" if hasattr(value, "shape") else repr(value)
            raise Unsupported(f"{name} is {text}; accepted by this version: {' or '.join(map(repr, neutral))}: {why}")
