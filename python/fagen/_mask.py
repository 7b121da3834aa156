"""Masks in words: causal, window and diagonal as the numbers of fa_args."""
from __future__ import annotations

import functools
import re
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _abi
from .errors import invalid

# Times log2(e) it is a number of fp32, too.
MOST_SCALE = 2.358e38

Window = Union[None, int, Tuple[Optional[int], Optional[int]]]
DIAGONALS = {"bottom-right": _abi.FA_BOTTOM_RIGHT, "top-left": _abi.FA_TOP_LEFT}
INT32_MAX = 2**31 - 1
_NUMBERS = re.compile(r"-?\d+(,-?\d+)?")


class Mask(NamedTuple):
    """The fields mask, window_left, window_right, diagonal, offset of fa_args."""
    mask: int
    left: int
    right: int
    diagonal: int
    offset: int


ALL = Mask(_abi.FA_MASK_NONE, 0, 0, _abi.FA_BOTTOM_RIGHT, 0)


def integer(name: str, value: Any, least: int, most: int = INT32_MAX) -> int:
    """value as an int. Raises InvalidArgument."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = value.__index__()
    except (AttributeError, TypeError):
        raise invalid(name, repr(value), f"an integer from {least} to {most}") from None
    if not least <= number <= most:
        raise invalid(name, number, f"{least} to {most}")
    return int(number)


def _side(name: str, value: Any) -> int:
    return -1 if value is None else integer(name, value, -1)


def check_pair(window: Sequence[Any]) -> None:
    if len(window) != 2:
        raise invalid("window", repr(window), "(left, right): keys before and after the diagonal, -1 or None for unbounded; or one number")


def mask_of(causal: bool, window: Window, diagonal: Union[str, int]) -> Mask:
    """causal and a window together hide what either hides. Raises InvalidArgument."""
    if not isinstance(causal, bool):
        raise invalid("causal", repr(causal), "True, False")
    if isinstance(diagonal, str):
        if diagonal not in DIAGONALS:
            raise invalid("diagonal", f'"{diagonal}"', '"bottom-right", "top-left", or an integer offset')
        where, offset = DIAGONALS[diagonal], 0
    else:
        where, offset = _abi.FA_OFFSET, integer("diagonal", diagonal, -INT32_MAX)
    if window is None:
        kind = _abi.FA_MASK_CAUSAL if causal else _abi.FA_MASK_NONE
        return Mask(kind, 0, 0, where if causal else _abi.FA_BOTTOM_RIGHT, offset if causal else 0)
    if not isinstance(window, (tuple, list)):
        width = _side("window", window)
        window = (width, width)
    check_pair(window)
    left, right = _side("window[0]", window[0]), _side("window[1]", window[1])
    if causal:
        right = 0
    if left < 0 and right < 0:
        return ALL
    if left < 0 and right == 0:
        return Mask(_abi.FA_MASK_CAUSAL, 0, 0, where, offset)
    return Mask(_abi.FA_MASK_WINDOW, left, right, where, offset)


class Options(NamedTuple):
    """What a call asks beside its tensors and its scale."""
    mask: Mask
    out_dtype: Optional[str]
    tf32: bool
    device: str
    deterministic: bool
    batch_invariant: bool = False


def words_of(mask: Mask, out_dtype: Optional[str], tf32: bool, device: str, deterministic: bool = False,
             batch_invariant: bool = False) -> str:
    """Options as a text that programs keep: "" for none, "causal", "window=-1,4;offset=7;out=float32;tf32;device=sim:sm_90a". `out` is the
    type of what is written: of a backward, of the gradients."""
    if mask == ALL and out_dtype is None and not tf32 and not device and not deterministic and not batch_invariant:
        return ""
    words: List[str] = []
    if mask.mask == _abi.FA_MASK_CAUSAL:
        words.append("causal")
    if mask.mask == _abi.FA_MASK_WINDOW:
        words.append(f"window={mask.left},{mask.right}")
    if mask.diagonal == _abi.FA_TOP_LEFT:
        words.append("top-left")
    if mask.diagonal == _abi.FA_OFFSET:
        words.append(f"offset={mask.offset}")
    return text_of(words, out_dtype, tf32, device, deterministic, batch_invariant)


def text_of(mask: List[str], out_dtype: Optional[str], tf32: bool, device: str, deterministic: bool, batch_invariant: bool) -> str:
    """The words of a mask, and what else is asked."""
    words = list(mask)
    if out_dtype is not None:
        words.append(f"out={out_dtype}")
    if tf32:
        words.append("tf32")
    if deterministic:
        words.append("deterministic")
    if batch_invariant:
        words.append("batch-invariant")
    if device:
        words.append(f"device={device}")
    return ";".join(words)


@functools.lru_cache(maxsize=1024)
def options_of(text: str) -> Options:
    """The inverse of words_of. Raises InvalidArgument."""
    causal, window, diagonal = False, None, "bottom-right"  # type: bool, Window, Union[str, int]
    out_dtype, tf32, device, deterministic, invariant = None, False, "", False, False
    for part in text.split(";") if text else []:
        name, _, value = part.partition("=")
        if part == "causal":
            causal = True
        elif name == "window" and _NUMBERS.fullmatch(value):
            window = tuple(int(n) for n in value.split(","))  # type: ignore[assignment]
        elif part == "top-left":
            diagonal = part
        elif name == "offset" and _NUMBERS.fullmatch(value):
            diagonal = int(value)
        elif name == "out":
            out_dtype = value
        elif part == "tf32":
            tf32 = True
        elif part == "deterministic":
            deterministic = True
        elif part == "batch-invariant":
            invariant = True
        elif name == "device":
            device = value
        else:
            raise invalid("options", f'"{text}"', "causal, window=L,R, top-left, offset=N, out=TYPE, tf32, deterministic, "
                          "batch-invariant, device=NAME, between semicolons")
    return Options(mask_of(causal, window, diagonal), out_dtype, tf32, device, deterministic, invariant)


def scale_of(scale: Any) -> float:
    """The field scale: 0 stands for 1/sqrt(d). Raises InvalidArgument."""
    if scale is None:
        return 0.0
    if isinstance(scale, bool) or not isinstance(scale, (int, float)):
        try:
            scale = float(scale.__float__())
        except (AttributeError, TypeError, ValueError):
            raise invalid("scale", repr(scale), "a number above 0, or None for 1/sqrt(d)") from None
    if not 2.0**-150 < scale <= MOST_SCALE:  # else it would be 0 in fp32, which stands for 1/sqrt(d)
        raise invalid("scale", scale, "a number above 0 from 1.41e-45 to 2.358e38, or None for 1/sqrt(d); for a negative scale negate q or "
                      "k")
    return float(scale)
