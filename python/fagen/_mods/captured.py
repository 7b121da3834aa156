"""What a function of Python holds: numbers, tensors and functions of its closure, its defaults and its module."""
from __future__ import annotations

import functools
import types
from typing import Any, Callable, Dict, Hashable, Iterable, List, NamedTuple, Optional, Set, Tuple

import torch

Path = Tuple[str, ...]  # from the function, by names of its closure, its defaults and its module
_LITERAL = (bool, str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device, complex)


def is_number(x: Any) -> bool:
    return type(x) in (int, float)


class Held(NamedTuple):
    """What a function holds. key: all of it but the values of numbers and the contents of tensors; None: it holds what may change
    unseen."""
    key: Optional[Hashable]
    numbers: Dict[Path, Any]
    tensors: List[Tuple[str, torch.Tensor]]


def _names(code: types.CodeType) -> List[str]:
    """Global names of a function, and of those that are written in it."""
    found = list(code.co_names)
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            found += _names(x)
    return found


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _cells(x: types.FunctionType) -> List[Tuple[str, Any]]:
    return [(name, _content(cell)) for name, cell in zip(x.__code__.co_freevars, x.__closure__ or ())]


def _defaults(x: types.FunctionType) -> List[Tuple[str, Any]]:
    given = x.__defaults__ or ()
    names = x.__code__.co_varnames[:x.__code__.co_argcount]
    return list(zip(names[len(names) - len(given):], given))


def _globals(x: types.FunctionType) -> List[Tuple[str, Any]]:
    have = x.__globals__
    return [(name, have[name]) for name in dict.fromkeys(_names(x.__code__)) if name in have]


def _of_torch(x: Any) -> bool:
    return str(getattr(x, "__module__", "")).startswith("torch.")


def held(function: Any) -> Held:
    """Walks a function, and all functions that it holds."""
    numbers: Dict[Path, Any] = {}
    tensors: List[Tuple[str, torch.Tensor]] = []
    seen: Set[int] = set()
    sure = [True]

    def each(path: Path, things: Iterable[Tuple[str, Any]]) -> Tuple[Hashable, ...]:
        return tuple((name, walk((*path, name), x)) for name, x in things)

    def walk(path: Path, x: Any) -> Hashable:
        if is_number(x):
            numbers[path] = x
            return type(x)
        if isinstance(x, _LITERAL):
            return type(x), x
        if isinstance(x, torch.Tensor):
            tensors.append((path[-1] if path else "x", x))
            return "tensor", x.dtype, tuple(x.shape), str(x.device)
        if isinstance(x, (tuple, list)):
            return type(x), each(path, ((str(i), y) for i, y in enumerate(x)))
        if isinstance(x, functools.partial):
            return "partial", walk(path, x.func), each(path, _partial(x))
        if isinstance(x, types.FunctionType) and id(x) in seen:
            return "seen", x.__code__
        if isinstance(x, types.FunctionType):
            seen.add(id(x))
            return x.__code__, each(path, _cells(x)), *(() if _of_torch(x) else (each(path, _all_defaults(x)), each(path, _globals(x))))
        if not isinstance(x, (types.ModuleType, types.BuiltinFunctionType, type)) and not (callable(x) and _of_torch(x)):
            sure[0] = False
        return id(x)

    key = walk((), function)
    return Held(key if sure[0] else None, numbers, tensors)


def _partial(x: "functools.partial[Any]") -> List[Tuple[str, Any]]:
    return [(f"argument {i}", y) for i, y in enumerate(x.args)] + list(x.keywords.items())


def _all_defaults(x: types.FunctionType) -> List[Tuple[str, Any]]:
    return _defaults(x) + list((x.__kwdefaults__ or {}).items())


def opened(function: Any, make: Callable[[Path, Any], Any]) -> Any:
    """The function with make(path, number) in the place of each number that it holds, and that functions of its closure hold."""
    made: Dict[int, Any] = {}

    def replace(path: Path, x: Any) -> Any:
        if is_number(x):
            return make(path, x)
        if type(x) in (tuple, list) and any([isinstance(y, types.FunctionType) for y in x]):
            return type(x)(replace((*path, str(i)), y) for i, y in enumerate(x))
        if isinstance(x, functools.partial):
            given = [replace((*path, name), y) for name, y in _partial(x)]
            n = len(x.args)
            return functools.partial(replace(path, x.func), *given[:n], **dict(zip(x.keywords, given[n:])))
        if isinstance(x, types.FunctionType):
            return made[id(x)] if id(x) in made else rebuilt(path, x)
        return x

    def rebuilt(path: Path, x: types.FunctionType) -> Any:
        made[id(x)] = x
        cells = tuple(types.CellType(replace((*path, k), y)) for k, y in _cells(x))
        changed = {} if _of_torch(x) else {k: replace((*path, k), y) for k, y in _globals(x) if is_number(y)}
        new = types.FunctionType(x.__code__, {**x.__globals__, **changed} if changed else x.__globals__, x.__name__,
                                 tuple(replace((*path, k), y) for k, y in _defaults(x)), cells or None)
        new.__kwdefaults__ = {k: replace((*path, k), y) for k, y in x.__kwdefaults__.items()} if x.__kwdefaults__ else None
        new.__module__, new.__qualname__ = x.__module__, x.__qualname__
        made[id(x)] = new
        return new

    return replace((), function)
