"""Numbers that a compiled program does not fix, so that one graph serves all their values: the numbers of a mask, the scale, the
probability of dropout.

Integers are an operator's `numbers`, which stand for the question marks of its options: "window=?,?;offset=?". Floating-point numbers are
tensors of the operator whose name ends in DYNAMIC: a compiler fixes those that are none, and compiles again for each value."""
from __future__ import annotations

import functools
from typing import Any, List, Optional, Sequence, Tuple, Union

import torch

from .._mask import Window, check_pair, options_of, scale_of, text_of
from ..errors import invalid

DYNAMIC = "_dynamic"
_Tensor, _SymInt, _SymFloat = torch.Tensor, torch.SymInt, torch.SymFloat
_MASK = ("causal", "window", "top-left", "offset")


def mask_of(causal: bool, window: Window, diagonal: Union[str, int]) -> Optional[Tuple[List[str], List[Any]]]:
    """The words of a mask and its numbers, which are compared with nothing before the program runs. None where there are none, or what
    stands for one is no integer. Within dynamo each integer may be a symbol: they cannot be told apart."""
    sides: Sequence[Any] = () if window is None else window if isinstance(window, (tuple, list)) else (window, window)
    numbers = [x for x in sides if x is not None]
    words = ["causal"] if causal else []
    if window is not None:
        check_pair(sides)
        words.append("window=" + ",".join(["-1" if x is None else "?" for x in sides]))
    if not isinstance(diagonal, str):
        words.append("offset=?")
        numbers.append(diagonal)
    elif diagonal == "top-left":
        words.append(diagonal)
    elif diagonal != "bottom-right":
        return None
    if not numbers or not isinstance(causal, bool):
        return None
    for x in numbers:
        if isinstance(x, bool) or not isinstance(x, (int, _SymInt)):
            return None
    return (words, numbers) if torch.compiler.is_dynamo_compiling() or any([isinstance(x, _SymInt) for x in numbers]) else None


def filled(options: str, numbers: Sequence[int]) -> str:
    """The options with their numbers."""
    return _filled(options, tuple(numbers)) if numbers or "?" in options else options


@functools.lru_cache(maxsize=1024)
def _filled(options: str, numbers: Tuple[int, ...]) -> str:
    pieces = options.split("?")
    if len(pieces) != len(numbers) + 1:
        raise invalid("numbers", numbers, f"{len(pieces) - 1} for \"{options}\"")
    return pieces[0] + "".join(f"{n}{piece}" for n, piece in zip(numbers, pieces[1:]))


@functools.lru_cache(maxsize=1024)
def of_gradients(options: str, deterministic: bool) -> str:
    """Options of a backward: deterministic where the call or PyTorch says so, and without what speaks of the forward's output."""
    asked = options_of(options.replace("?", "0"))
    mask = [word for word in options.split(";") if word.partition("=")[0] in _MASK]
    return text_of(mask, None, False, asked.device, asked.deterministic or deterministic, False)


def traced(arguments: Sequence[Any], dropout: bool) -> Sequence[Any]:
    """The arguments of an operator: where a float is a symbol, scale and probability as tensors, by a product that the compiler can keep
    as one. The last are [dropout_p,] scale, numbers, options."""
    last = len(arguments)
    floats = (last - 4, last - 3) if dropout else (last - 3,)
    if not any([isinstance(arguments[i], (_SymFloat, _Tensor)) for i in floats]):
        return arguments
    found = list(arguments)
    for i in floats:
        if not isinstance(found[i], _Tensor):
            found[i] = torch.ones((), dtype=torch.float64, device="cpu") * found[i]
    return found


def number(x: Any) -> float:
    """A float of an operator. Raises InvalidArgument for a tensor with a number that is no scale; 0 stands for 1/sqrt(d)."""
    if not isinstance(x, _Tensor):
        return float(x)
    x = x.item()
    return scale_of(x) if x else 0.0


def operator(op: Any, arguments: Sequence[Any]) -> Any:
    """The operator, or the one that takes the tensor that the scale is."""
    return getattr(torch.ops.fagen, op._qualified_op_name.rpartition("::")[2] + DYNAMIC) if isinstance(arguments[-3], _Tensor) else op


def held(scale: torch.Tensor) -> torch.Tensor:
    """A scale that only the operator reads. What would stand for 1/sqrt(d) there is a number that it refuses."""
    return torch.where(scale == 0, torch.nan, scale)


def call(name: str) -> Any:
    """The operator; the one whose floats are tensors, where the scale is one."""
    def found(*arguments: Any) -> Any:
        if isinstance(arguments[-3], _Tensor):
            return getattr(torch.ops.fagen, name + DYNAMIC).default(*traced(arguments, "dropout" in name or "score" in name))
        return getattr(torch.ops.fagen, name).default(*arguments)
    return found
