"""What a function does with tensors of one element, operation by operation, each with the line that asked for it."""
from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from ..errors import Unsupported

_INSIDE = tuple(os.path.dirname(os.path.abspath(x)) + os.sep for x in (torch.__file__, os.path.dirname(__file__)))
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


class Node:
    """A value. op: "input", "lookup", or an operator's schema, such as "aten::add". Arguments are nodes, tensors and numbers."""
    __slots__ = ("op", "arguments", "options", "dtype", "shape", "place", "name")

    def __init__(self, op: str, arguments: Sequence[Any], options: Dict[str, Any], of: torch.Tensor, place: str, name: str = "") -> None:
        self.op, self.arguments, self.options = op, tuple(arguments), options
        self.dtype, self.shape, self.place, self.name = of.dtype, tuple(of.shape), place, name


class Recorded(NamedTuple):
    result: Any  # a node, a number, or a tensor that depends on no input
    fresh: Dict[int, torch.Tensor]  # tensors that the function made of constants, by id
    looked: bool  # whether it asked for the value of a tensor that it holds


def where() -> str:
    """file:line of the innermost frame that is neither PyTorch's nor fagen's."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame = frame.f_back  # type: ignore[assignment]
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def refuse(place: str, what: str, accepted: str) -> Unsupported:
    return Unsupported(f"{place}: {what}; accepted: {accepted}")


class _Operators(TorchDispatchMode):
    """Operators that see a value that is known, or what was made of one."""

    def __init__(self) -> None:
        super().__init__()
        self.of: Dict[int, Node] = {}
        self.fresh: Dict[int, torch.Tensor] = {}
        self.looked = False
        self.kept: List[Any] = []  # so that no id is used a second time

    def know(self, x: torch.Tensor, node: Node) -> torch.Tensor:
        self.kept.append(x)
        self.of[id(x)] = node
        return x

    def known(self, x: Any) -> Any:
        """The node of a tensor that has one; else x."""
        return self.of.get(id(x), x) if isinstance(x, torch.Tensor) else x

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Optional[Dict[str, Any]] = None) -> Any:
        kwargs = kwargs or {}
        leaves, _ = tree_flatten((args, kwargs))
        name = func._schema.name
        if not any([isinstance(x, torch.Tensor) and id(x) in self.of for x in leaves]):
            found = func(*args, **kwargs)
            self.looked |= name == "aten::_local_scalar_dense"
            constant = name in ("aten::lift_fresh", "aten::lift_fresh_copy") or all(
                [id(x) in self.fresh for x in leaves if isinstance(x, torch.Tensor)])
            for x in tree_flatten(found)[0]:
                if isinstance(x, torch.Tensor):
                    self.kept.append(x)
                    self.fresh.update({id(x): x} if constant else {})
            return found
        if name == "aten::_local_scalar_dense":
            raise refuse(where(), "the function asks for the value of a score or an index (if, and, or, not, int(), math.* of a tensor)",
                         "torch.where, &, |, ~, and functions of torch")
        node = Node(name, [self.known(x) for x in args], {k: self.known(x) for k, x in kwargs.items()}, torch.empty(()), where())
        found = func(*args, **kwargs)
        if not isinstance(found, torch.Tensor):
            raise refuse(node.place, f"{func} gives {type(found).__name__}", "operations with one result")
        node.dtype, node.shape = found.dtype, tuple(found.shape)
        if func._schema.is_mutable:  # x += 1: from here on x is the sum
            node.op = name[:-1] if name.endswith("_") else name
        return self.know(found, node)


class _Lookups(TorchFunctionMode):
    """table[q_idx]: PyTorch would read an index of one element as a number."""

    def __init__(self, operators: _Operators) -> None:
        super().__init__()
        self.operators = operators

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Optional[Dict[str, Any]] = None) -> Any:
        if func is not torch.Tensor.__getitem__:
            return func(*args, **(kwargs or {}))
        table, index = args
        index = index if isinstance(index, tuple) else (index,)
        of, known = self.operators.known(table), [self.operators.known(x) for x in index]
        if not isinstance(of, Node) and not any([isinstance(x, Node) for x in known]):
            return func(*args)
        place = where()
        if isinstance(of, Node) and of.op != "lookup":
            raise refuse(place, "a value is indexed", "indices of captured tensors")
        before = of.arguments if isinstance(of, Node) else (table,)
        shape = tuple(table.shape)
        if len(index) > len(shape):
            raise refuse(place, f"{len(index)} indices of a tensor of shape {shape}", f"{len(shape)}")
        for x in index:
            number = isinstance(x, int) and not isinstance(x, bool)
            if not number and not (isinstance(x, torch.Tensor) and x.dim() == 0 and x.dtype in _INTEGERS):
                raise refuse(place, f"an index is {_text(x)}", "integers, and tensors of one integer")
        found = table.new_zeros(()).expand(shape[len(index):])
        return self.operators.know(found, Node("lookup", (*before, *known), {}, found, place))


def _text(x: Any) -> str:
    return f"a tensor of {x.dtype} {tuple(x.shape)}" if isinstance(x, torch.Tensor) else repr(x)


Named = Sequence[Tuple[str, torch.Tensor]]


def record(function: Callable[..., Any], inputs: Named, numbers: Named) -> Recorded:
    """What a function of the inputs does. inputs and numbers: names and tensors of one element; numbers are what the function holds."""
    operators = _Operators()
    for name, x in (*inputs, *numbers):
        operators.know(x, Node("input", (), {}, x, "", name))
    with torch.no_grad(), operators, _Lookups(operators):
        found = function(*(x for _, x in inputs))
    if isinstance(found, torch.Tensor):
        return Recorded(operators.known(found), operators.fresh, operators.looked)
    if not isinstance(found, (bool, int, float)):
        raise Unsupported(f"{_named(function)} gives a {type(found).__name__}; accepted: a tensor of one element")
    return Recorded(found, operators.fresh, operators.looked)


def _named(function: Any) -> str:
    return str(getattr(function, "__qualname__", None) or repr(function))
