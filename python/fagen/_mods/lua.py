"""Score programs on vectors of points: the part of the language that translations use, read and computed by tensors. What is here knows
nothing of how a text was made: it is there to doubt it."""
from __future__ import annotations

import math
import re
from typing import Any, Callable, Dict, List, Sequence, Tuple

import torch

_WORD = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|\"([^\"]*)\"|(==|~=|<=|>=|<<|>>|//|[-+*/%^<>&|~()\[\],=]))")
# Binary operators, the weakest first.
_LEVELS: Sequence[Tuple[str, ...]] = (("or",), ("and",), ("<", ">", "<=", ">=", "~=", "=="), ("|",), ("~",), ("&",), ("<<", ">>"),
                                      ("+", "-"), ("*", "/", "//", "%"))
Scope = Dict[str, Any]
_FUNCTIONS: Dict[str, Callable[..., Any]] = {
    "exp": torch.exp, "exp2": torch.exp2, "log": torch.log, "log2": torch.log2, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "tanh_exact": torch.tanh}


def _number(x: torch.Tensor) -> torch.Tensor:
    return x if x.is_floating_point() else x.to(torch.float32)


def _mixed(f: Callable[..., Any]) -> Callable[..., Any]:
    """Two integers give one; else both are numbers."""
    def call(x: torch.Tensor, y: torch.Tensor) -> Any:
        whole = not (x.is_floating_point() or y.is_floating_point())
        return f(x, y) if whole else f(_number(x), _number(y))
    return call


_BINARY: Dict[str, Callable[..., Any]] = {
    "+": _mixed(torch.add), "-": _mixed(torch.sub), "*": _mixed(torch.mul), "/": lambda x, y: _number(x) / _number(y),
    "//": _mixed(torch.floor_divide), "%": _mixed(torch.remainder), "^": lambda x, y: _number(x) ** _number(y),
    "<": _mixed(torch.lt), "<=": _mixed(torch.le), ">": _mixed(torch.gt), ">=": _mixed(torch.ge), "==": torch.eq, "~=": torch.ne,
    "&": torch.bitwise_and, "|": torch.bitwise_or, "~": torch.bitwise_xor, "<<": torch.bitwise_left_shift, ">>": torch.bitwise_right_shift}


class Table:
    """An array, or what some of its indices leave of it."""

    def __init__(self, x: torch.Tensor, rank: int, indices: Tuple[torch.Tensor, ...] = ()) -> None:
        self.x, self.rank, self.indices = x, rank, indices

    def at(self, i: torch.Tensor) -> Any:
        found = Table(self.x, self.rank, (*self.indices, i))
        if len(found.indices) < self.rank:
            return found
        clamped = [k.clamp(0, n - 1) for k, n in zip(found.indices, self.x.shape)]
        value = self.x[tuple(torch.broadcast_tensors(*clamped))]
        return value.to(torch.float32) if value.is_floating_point() else value.to(torch.int64)


class _Reader:
    """One statement at a time. Values are tensors of the points' shape, or of one element."""

    def __init__(self, text: str, device: torch.device) -> None:
        self.words: List[Tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = _WORD.match(text, at)
            if not found:
                raise ValueError(f"no word at {text[at:at + 20]!r}")
            kind = "number" if found[1] else "name" if found[2] else "string" if found[3] is not None else "sign"
            self.words.append((kind, found[found.lastindex or 0]))
            at = found.end()
        self.i, self.device = 0, device

    def peek(self) -> str:
        return self.words[self.i][1] if self.i < len(self.words) and self.words[self.i][0] != "string" else ""

    def take(self, wanted: str = "") -> str:
        kind, word = self.words[self.i]
        if wanted and word != wanted:
            raise ValueError(f"{word!r} where {wanted!r} is to be")
        self.i += 1
        return word

    def constant(self, x: Any) -> torch.Tensor:
        return torch.tensor(x, dtype={bool: torch.bool, int: torch.int64, float: torch.float32}[type(x)], device=self.device)

    def expression(self, scope: Scope, level: int = 0) -> Any:
        if level == len(_LEVELS):
            return self.unary(scope)
        x = self.expression(scope, level + 1)
        while self.peek() in _LEVELS[level] and self.words[self.i][0] in ("sign", "name"):
            sign = self.take()
            y = self.expression(scope, level + 1)
            x = self.logic(sign, x, y) if level < 2 else _BINARY[sign](x, y)
        return x

    @staticmethod
    def logic(sign: str, x: Any, y: Any) -> Any:
        """and, or; c and x or y of numbers."""
        if isinstance(x, tuple):
            condition, value = x
            if value.is_floating_point() or y.is_floating_point():
                value, y = _number(value), _number(y)
            return torch.where(condition, value, y)
        if sign == "and" and y.dtype != torch.bool:
            return x, y
        return x & y if sign == "and" else x | y

    def unary(self, scope: Scope) -> Any:
        sign = self.peek()
        if sign == "not":
            self.take()
            return ~self.unary(scope)
        if sign in ("-", "~"):
            self.take()
            x = self.unary(scope)
            return -x if sign == "-" else torch.bitwise_not(x)
        x = self.postfix(scope)
        if self.peek() == "^":
            self.take()
            x = _BINARY["^"](x, self.unary(scope))
        return x

    def postfix(self, scope: Scope) -> Any:
        kind, word = self.words[self.i]
        self.i += 1
        if kind == "number":
            return self.constant(int(word) if word.isdigit() else float(word))
        if word == "(":
            x = self.expression(scope)
            self.take(")")
            return x
        if word in ("true", "false"):
            return self.constant(word == "true")
        if word in ("huge", "pi"):
            return self.constant(math.inf if word == "huge" else math.pi)
        if self.peek() == "(":
            return self.call(word, scope)
        x = scope[word]
        while self.peek() == "[":
            self.take()
            x = x.at(self.expression(scope))
            self.take("]")
        return x

    def call(self, name: str, scope: Scope) -> Any:
        self.take("(")
        given = [self.expression(scope)]
        while self.peek() == ",":
            self.take()
            given.append(self.expression(scope))
        self.take(")")
        if name in ("floor", "ceil"):
            return given[0] if not given[0].is_floating_point() else getattr(torch, name)(given[0]).to(torch.int64)
        if name == "abs":
            return given[0].abs()
        if name in ("min", "max"):
            x = given[0]
            for y in given[1:]:
                x = _mixed(torch.minimum if name == "min" else torch.maximum)(x, y)
            return x
        return _FUNCTIONS[name](_number(given[0]))


def compute(text: str, operands: Dict[str, Any], points: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """The value of each function of a program at points: score at s, b, h, i, j, mask at b, h, i, j. operands: tensors and numbers."""
    device = points["b"].device
    read, outside, found = _Reader(text, device), {}, {}  # type: _Reader, Scope, Dict[str, torch.Tensor]
    while read.i < len(read.words):
        name = read.take()
        if name != "function":
            read.take("=")
            outside[name] = _operand(read, operands[name])
            continue
        name, scope = read.take(), dict(outside)
        read.take("(")
        while read.peek() != ")":
            parameter = read.take()
            scope[parameter] = points[parameter]
            if read.peek() == ",":
                read.take()
        read.take(")")
        while read.peek() == "local":
            read.take()
            local = read.take()
            read.take("=")
            scope[local] = read.expression(scope)
        read.take("return")
        found[name] = read.expression(scope).expand(points["b"].shape)
        read.take("end")
    return found


def _operand(read: _Reader, x: Any) -> Any:
    """A declaration: scalar(v, "int", ...), or an element and a shape."""
    word = read.take()
    if word != "scalar":
        kind, shape = read.words[read.i]
        read.i += 1
        return Table(x, len(shape.split()))
    whole = False
    read.take("(")
    while read.peek() != ")":
        whole = whole or read.words[read.i] == ("string", "int")
        read.i += 1
    read.take(")")
    return read.constant(int(x) if whole else float(x))
