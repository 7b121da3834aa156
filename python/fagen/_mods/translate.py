"""From functions to a program with its operands. A translation is kept by what its functions are and hold, values aside."""
from __future__ import annotations

import re
import threading
from typing import Any, Callable, Dict, Hashable, List, NamedTuple, Optional, Set, Tuple

import torch

from .._score import Score, shared
from ..errors import InvalidArgument, Unsupported
from .captured import Held, Path, held, opened
from .compare import Lengths, compare
from .record import record
from .text import NAMES, Writer, Written, bounded

INPUTS = {"s": torch.float32, "b": torch.int32, "h": torch.int32, "i": torch.int32, "j": torch.int32}
KEPT = 256  # translations
Check = Callable[[Score], object]  # raises InvalidArgument for a text that the library refuses
Functions = Dict[str, Callable[..., Any]]  # "score" and "mask"


class Kept(NamedTuple):
    text: str
    tensors: Dict[str, int]  # operands by name, as indices of what the functions hold
    numbers: Dict[str, Path]
    baked: Dict[Path, Any]  # numbers that the text has as they are


_kept: Dict[Hashable, List[Kept]] = {}
_lock = threading.Lock()


class _Holdings(NamedTuple):
    """What all functions of a program hold."""
    key: Optional[Hashable]
    numbers: Dict[Path, Any]
    tensors: List[Tuple[str, torch.Tensor]]


def _holdings(functions: Functions) -> _Holdings:
    each: Dict[str, Held] = {name: held(f) for name, f in functions.items()}
    keys = tuple((name, x.key) for name, x in each.items())
    numbers = {(name, *path): v for name, x in each.items() for path, v in x.numbers.items()}
    return _Holdings(None if any(k is None for _, k in keys) else keys, numbers, [t for x in each.values() for t in x.tensors])


def program(functions: Functions, lengths: Lengths, device: torch.device, exact: bool, check: Optional[Check]) -> Score:
    """The program of functions, which are there. exact: of tanh. Raises Unsupported for what has no translation."""
    have = _holdings(functions)
    key = (have.key, str(device), exact, check is None)
    with _lock:
        for kept in _kept.get(key, ()) if have.key is not None else ():
            same = all(have.numbers.get(path) == x for path, x in kept.baked.items())
            if same and all(bounded(have.numbers[path]) for path in kept.numbers.values()):
                return shared(kept.text)(**{name: operand(have.tensors[i][1]) for name, i in kept.tensors.items()},
                                         **{name: have.numbers[path] for name, path in kept.numbers.items()})
    try:
        written, found = attempt(functions, have, lengths, device, exact, check, not have.numbers)
    except (Unsupported, InvalidArgument, TypeError):
        if not have.numbers:
            raise
        written, found = attempt(functions, have, lengths, device, exact, check, True)  # with the numbers as they are
    index = {id(x): i for i, (_, x) in reversed(list(enumerate(have.tensors)))}
    held_all = not written.looked and all(id(x) in index for x in written.tensors.values())
    if have.key is not None and held_all and all(bounded(have.numbers[path]) for path in written.numbers.values()):
        read = written.baked if written.numbers else set(have.numbers)
        kept = Kept(written.text, {name: index[id(x)] for name, x in written.tensors.items()}, written.numbers,
                    {path: have.numbers[path] for path in read | _unopened(functions, have)})
        with _lock:
            if len(_kept) >= KEPT:
                _kept.clear()
            several = _kept.setdefault(key, [])
            several[:] = [kept, *several[:15]]
    return found


def _unopened(functions: Functions, have: _Holdings) -> Set[Path]:
    """Numbers that no tensor can stand for: those of functions of the module."""
    seen: Set[Path] = set()
    for name, f in functions.items():
        opened(f, lambda path, x: (seen.add((name, *path)), x)[1])  # type: ignore[func-returns-value]  # noqa: B023
    return set(have.numbers) - seen


def attempt(functions: Functions, have: _Holdings, lengths: Lengths, device: torch.device, exact: bool, check: Optional[Check],
            constants: bool) -> Tuple[Written, Score]:
    """A translation, compared. constants: numbers are written as they are; else they are scalars where that can be."""
    writer = Writer(have.numbers, {id(x): name for name, x in have.tensors}, constants, exact)
    for name, f in functions.items():
        numbers: List[Tuple[str, torch.Tensor]] = []
        paths: Dict[str, Path] = {}

        def make(path: Path, x: Any) -> Any:
            full = (name, *path)  # noqa: B023
            if constants or full not in have.numbers:
                return x
            numbers.append((f"number {len(numbers)}", torch.tensor(x, device=device, dtype=_NUMBER[type(x)])))  # noqa: B023
            paths[numbers[-1][0]] = full  # noqa: B023
            return numbers[-1][1]  # noqa: B023

        inputs = [(x, torch.zeros((), dtype=INPUTS[x], device=device)) for x in NAMES[name]]
        writer.function(name, record(opened(f, make), inputs, numbers), paths)
    written = writer.finish()
    operands = {name: operand(x) for name, x in written.tensors.items()}
    numbers_of = {name: have.numbers[path] for name, path in written.numbers.items()}
    compare(written, {**operands, **numbers_of}, functions, lengths, device)
    found = shared(written.text)(**operands, **numbers_of)
    if check is not None:
        try:
            check(found)
        except InvalidArgument as e:
            raise Unsupported(placed(str(e), written)) from e
    return written, found


_NUMBER = {int: torch.int64, float: torch.float64}


def placed(message: str, written: Written) -> str:
    """The library's message about a line of the text, with the line of the function."""
    at = re.match(r"score:(\d+):\d+: ", message)
    place = written.places.get(int(at[1])) if at else None
    return f"{place}: {message}" if place else message


def operand(x: torch.Tensor) -> torch.Tensor:
    """A captured tensor as a launch takes it, in place: truths as bytes, one element as an array of one, expanded dimensions as one."""
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    if x.dim() == 0:
        return x.reshape(1)
    for k, (n, step) in enumerate(zip(x.shape, x.stride())):
        x = x.narrow(k, 0, 1) if step == 0 and n > 1 else x
    return x
