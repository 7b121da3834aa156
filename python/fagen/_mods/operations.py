"""Operators of PyTorch in the language of score programs: a row for each. A value is a text, what it is (truth, integer, number) and how
deep its parentheses are."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, NamedTuple, Optional

import torch

from .record import Node, refuse

BOOL, INT, FLOAT = "truth", "integer", "number"


class Value(NamedTuple):
    text: str
    kind: str
    depth: int = 0
    whole: str = ""  # the integer that a number is, where it is one


class Call(NamedTuple):
    """An operator's call: its arguments as values (None as None), others by name, and the node for messages."""
    arguments: "list[Any]"
    options: Dict[str, Any]
    node: Node
    kind: str  # of its result

    def given(self, i: int, name: str, otherwise: Any = None) -> Any:
        return self.arguments[i] if i < len(self.arguments) else self.options.get(name, otherwise)


Row = Callable[[Call], Value]


def literal(x: Any, place: str) -> Value:
    """A number or a truth of Python. Raises Unsupported for NaN."""
    if isinstance(x, bool):
        return Value("true" if x else "false", BOOL)
    if isinstance(x, int):
        return Value(str(x) if x >= 0 else f"({x})", INT, int(x < 0))
    if math.isnan(x):
        raise refuse(place, "a NaN is a constant", "numbers")
    text = "huge" if math.isinf(x) else repr(abs(x))
    return Value(text if math.copysign(1, x) > 0 else f"(-{text})", FLOAT, int(x < 0))


def apply(text: str, kind: str, *of: Value) -> Value:
    """`text` with a place for each of the values: within parentheses, or a call of a function."""
    call = not text.startswith("(")
    return Value(text.format(*(bare(x.text) if call else x.text for x in of)), kind, 1 + max((x.depth for x in of), default=0))


def bare(text: str) -> str:
    """Without the parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and i + 1 < len(text):
            return text
    return text[1:-1]


def as_number(x: Value, kind: str) -> Value:
    """A value in the kind of a result. A truth counts as 1 and 0."""
    if x.kind == kind:
        return x
    if x.kind == BOOL:
        return apply("({0} and 1 or 0)" if kind == INT else "({0} and 1.0 or 0.0)", kind, x)
    if kind == BOOL:
        return apply("({0} ~= 0)", BOOL, x)
    if kind == FLOAT:
        return apply("(1.0 * {0})", FLOAT, x)
    return Value(x.whole, INT, x.depth) if x.whole else apply("({0} < 0 and ceil({0}) or floor({0}))", INT, x)  # towards 0


def _plain(x: Value) -> Value:
    return as_number(x, INT) if x.kind == BOOL else x


def binary(sign: str) -> Row:
    def row(c: Call) -> Value:
        x, y = (_plain(v) for v in c.arguments[:2])
        return apply(f"({{0}} {sign} {{1}})", FLOAT if FLOAT in (x.kind, y.kind) or sign in "/^" else INT, x, y)
    return row


def scaled(sign: str, swapped: bool = False) -> Row:
    """x + alpha * y."""
    def row(c: Call) -> Value:
        x, y = (_plain(v) for v in c.arguments[:2])
        if swapped:
            x, y = y, x
        alpha = c.given(2, "alpha")
        if alpha is not None and alpha.text != "1":
            x, y = (apply("({0} * {1})", _both(x, alpha), x, alpha), y) if swapped else (x, apply("({0} * {1})", _both(y, alpha), y, alpha))
        return apply(f"({{0}} {sign} {{1}})", _both(x, y), x, y)
    return row


def _both(x: Value, y: Value) -> str:
    return FLOAT if FLOAT in (x.kind, y.kind) else INT


def divided(c: Call) -> Value:
    """x / y; with rounding_mode to the integer below, or towards 0."""
    x, y = (_plain(v) for v in c.arguments[:2])
    mode = c.options.get("rounding_mode")
    if mode is None:
        return apply("({0} / {1})", FLOAT, x, y)
    if mode == "floor":
        return apply("({0} // {1})", _both(x, y), x, y)
    if _both(x, y) == FLOAT:
        raise refuse(c.node.place, "a quotient of numbers with a fraction is rounded towards 0", 'rounding_mode="floor", or integers')
    return apply("((({0} < 0) ~= ({1} < 0)) and -(abs({0}) // abs({1})) or abs({0}) // abs({1}))", INT, x, y)


def compared(sign: str) -> Row:
    def row(c: Call) -> Value:
        x, y = c.arguments[:2]
        if (x.kind == BOOL) != (y.kind == BOOL) or x.kind == BOOL and sign not in ("==", "~="):
            x, y = _plain(x), _plain(y)
        return apply(f"({{0}} {sign} {{1}})", BOOL, x, y)
    return row


def logic(sign: str) -> Row:
    return lambda c: apply(f"({{0}} {sign} {{1}})", BOOL, *(as_number(v, BOOL) for v in c.arguments[:2]))


def bits(of_truths: str, of_integers: str) -> Row:
    def row(c: Call) -> Value:
        x, y = c.arguments[:2]
        if x.kind == y.kind == BOOL:
            return apply(f"({{0}} {of_truths} {{1}})", BOOL, x, y)
        return apply(f"({{0}} {of_integers} {{1}})", INT, _plain(x), _plain(y))
    return row


def inverted(c: Call) -> Value:
    x = c.arguments[0]
    return apply("(not {0})", BOOL, x) if x.kind == BOOL else apply("(~{0})", INT, x)


def function(name: str) -> Row:
    """Of a number; a number with a fraction."""
    return lambda c: apply(f"{name}({{0}})", FLOAT, _plain(c.arguments[0]))


def same_kind(name: str) -> Row:
    def row(c: Call) -> Value:
        values = [_plain(v) for v in c.arguments[:2]]
        kind = FLOAT if any(v.kind == FLOAT for v in values) else INT
        return apply(f"{name}({', '.join('{%d}' % i for i in range(len(values)))})", kind, *values)
    return row


def rounded(name: str, text: str) -> Row:
    """floor and ceil give an integer in the language, which an index may be; of unbounded numbers `text` is the number."""
    def row(c: Call) -> Value:
        x = _plain(c.arguments[0])
        return x if x.kind == INT else apply(text, FLOAT, x)._replace(whole=f"{name}({bare(x.text)})")
    return row


def clamped(c: Call) -> Value:
    x = _plain(c.arguments[0])
    for i, name, word in ((1, "min", "max"), (2, "max", "min")):
        bound = c.given(i, name)
        if bound is not None:
            bound = _plain(bound)
            x = apply(f"{word}({{0}}, {{1}})", _both(x, bound), x, bound)
    return x


def selected(c: Call) -> Value:
    condition, x, y = c.arguments[:3]
    if x.kind != y.kind:
        kind = FLOAT if FLOAT in (x.kind, y.kind) else INT
        x, y = as_number(x, kind), as_number(y, kind)
    if x.kind == BOOL:
        return apply("(({0} and {1}) or (not {0} and {2}))", BOOL, condition, x, y)
    return apply("({0} and {1} or {2})", x.kind, as_number(condition, BOOL), x, y)


def first(c: Call) -> Value:
    x: Value = c.arguments[0]
    return x


def filled(value: Optional[Any]) -> Row:
    """A constant of a tensor's shape. value None: it is the second argument."""
    def row(c: Call) -> Value:
        x: Value = c.arguments[1] if value is None else literal(value, c.node.place)
        return x
    return row


def squared(c: Call) -> Value:
    x = _plain(c.arguments[0])
    return apply("({0} * {0})", x.kind, x)


ROWS: Dict[str, Row] = {
    "aten::add": scaled("+"), "aten::sub": scaled("-"), "aten::rsub": scaled("-", True), "aten::mul": binary("*"),
    "aten::div": divided, "aten::floor_divide": binary("//"), "aten::remainder": binary("%"), "aten::pow": binary("^"),
    "aten::neg": lambda c: apply("(-{0})", _plain(c.arguments[0]).kind, _plain(c.arguments[0])),
    "aten::abs": same_kind("abs"), "aten::minimum": same_kind("min"), "aten::maximum": same_kind("max"),
    "aten::floor": rounded("floor", "({0} // 1.0)"), "aten::ceil": rounded("ceil", "(-(-{0} // 1.0))"),
    "aten::trunc": lambda c: apply("({0} < 0 and -(-{0} // 1.0) or {0} // 1.0)", FLOAT, _plain(c.arguments[0])),
    "aten::clamp": clamped, "aten::clamp_min": lambda c: clamped(c._replace(arguments=c.arguments[:2])),
    "aten::clamp_max": lambda c: clamped(c._replace(arguments=[c.arguments[0], None, *c.arguments[1:]])),
    "aten::relu": lambda c: apply("max({0}, 0)", _plain(c.arguments[0]).kind, _plain(c.arguments[0])),
    "aten::square": squared, "aten::reciprocal": lambda c: apply("(1.0 / {0})", FLOAT, _plain(c.arguments[0])),
    "aten::sign": lambda c: apply("(({0} > 0 and 1 or 0) - ({0} < 0 and 1 or 0))", INT, _plain(c.arguments[0])),
    "aten::lt": compared("<"), "aten::le": compared("<="), "aten::gt": compared(">"), "aten::ge": compared(">="),
    "aten::eq": compared("=="), "aten::ne": compared("~="),
    "aten::logical_and": logic("and"), "aten::logical_or": logic("or"), "aten::logical_xor": logic("~="),
    "aten::logical_not": lambda c: apply("(not {0})", BOOL, as_number(c.arguments[0], BOOL)),
    "aten::bitwise_and": bits("and", "&"), "aten::bitwise_or": bits("or", "|"), "aten::bitwise_xor": bits("~=", "~"),
    "aten::__and__": bits("and", "&"), "aten::__or__": bits("or", "|"), "aten::__xor__": bits("~=", "~"),
    "aten::bitwise_not": inverted, "aten::bitwise_left_shift": binary("<<"), "aten::bitwise_right_shift": binary(">>"),
    "aten::__lshift__": binary("<<"), "aten::__rshift__": binary(">>"),
    "aten::where": selected,
    "aten::full_like": filled(None), "aten::zeros_like": filled(0), "aten::ones_like": filled(1),
    "aten::new_zeros": filled(0), "aten::new_ones": filled(1),
    "aten::tanh": function("tanh_exact"), "approx::tanh": function("tanh"),
    **{f"aten::{name}": function(name) for name in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sigmoid")},
    **{f"aten::{name}": first for name in ("_to_copy", "clone", "detach", "alias", "lift_fresh_copy", "lift_fresh", "_conj", "positive")},
}
_DIVISORS = {"aten::remainder", "aten::floor_divide", "aten::bitwise_left_shift", "aten::bitwise_right_shift", "aten::__lshift__",
             "aten::__rshift__", "aten::pow"}


def divides(node: Node) -> bool:
    """Whether the second argument has to be a constant, where it is a number: the language proves bounds by it."""
    return node.op in _DIVISORS or node.op == "aten::div" and node.options.get("rounding_mode") is not None


def repeats(node: Node) -> bool:
    """Whether the text of an argument is there more than once."""
    given = node.arguments[0] if node.arguments else None
    whole = node.op == "aten::_to_copy" and not node.dtype.is_floating_point
    whole = whole and getattr(given, "op", "") not in ("aten::floor", "aten::ceil")
    return whole or node.op in ("aten::sign", "aten::square", "aten::trunc") or node.op == "aten::where" and node.dtype == torch.bool \
        or node.options.get("rounding_mode") == "trunc"


KNOWN = ", ".join(sorted({name.partition("::")[2].strip("_") for name in ROWS} - {"to_copy", "conj", "alias", "lift_fresh"})) + ", to"
