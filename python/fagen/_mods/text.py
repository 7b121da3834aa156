"""What was recorded of functions, as the text of a score program: declarations, a line for each value that is used twice."""
from __future__ import annotations

import math
import re
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from ..errors import Unsupported
from .captured import Path
from .operations import BOOL, FLOAT, INT, KNOWN, ROWS, Call, Value, as_number, bare, divides, literal, repeats
from .record import Node, Recorded, refuse

ELEMENTS = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8",
            torch.bool: "u8"}
NAMES = {"score": ("s", "b", "h", "i", "j"), "mask": ("b", "h", "i", "j")}
DEEP, LOCALS = 10, 60  # of parentheses in a line; names of a function
OPERANDS = 8
MOST = 2**30  # of integer scalars
_TAKEN = set("""and break do else elseif end false for function goto if in local nil not or repeat return then true until while off sq sk
group pi huge exp exp2 log log2 tanh tanh_exact sqrt rsqrt sigmoid abs floor ceil min max scalar f32 bf16 f16 i32 i64 u8 bits score mask
sink s b h i j math""".split())


class Written(NamedTuple):
    """A program. tensors and numbers: its operands by name; baked: numbers that the text has as they are."""
    text: str
    places: Dict[int, str]  # of its lines
    tensors: Dict[str, torch.Tensor]
    numbers: Dict[str, Path]
    baked: Set[Path]
    looked: bool  # whether functions asked for values of what they hold
    eps: float  # of the coarsest numbers that the functions computed with


def bounded(x: Any) -> bool:
    """Whether a scalar gets the bounds of a positive number: they are part of the program, and proofs."""
    return 1 <= x <= MOST if type(x) is int else 1e-6 <= x <= 1e30


class Writer:
    """values: of the numbers. named: names of tensors, by id. constants: every number is written as it is. exact: of tanh."""

    def __init__(self, values: Dict[Path, Any], named: Dict[int, str], constants: bool, exact: bool) -> None:
        self.values, self.named, self.constants = values, named, constants
        self.rows = ROWS if exact else {**ROWS, "aten::tanh": ROWS["approx::tanh"]}
        self.head: List[str] = []
        self.body: List[Tuple[str, str]] = []  # lines and places
        self.tensors: Dict[str, torch.Tensor] = {}
        self.numbers: Dict[str, Path] = {}
        self.baked: Set[Path] = set()
        self.eps = torch.finfo(torch.float32).eps
        self.looked = False
        self.hides = False  # whether scores may be -inf

    def function(self, name: str, recorded: Recorded, paths: Dict[str, Path]) -> None:
        """paths: of each number, by the name of its node."""
        self.looked |= recorded.looked
        _Function(self, name, recorded, paths).write(BOOL if name == "mask" else FLOAT)

    def finish(self) -> Written:
        if self.hides and not any([line.startswith("function mask") for line, _ in self.body]):  # else a row of -inf alone is NaN
            self.body.append(("function mask(b, h, i, j) return true end", ""))
        lines = [(x, "") for x in self.head] + self.body
        return Written("\n".join(x for x, _ in lines) + "\n", {i + 1: place for i, (_, place) in enumerate(lines) if place}, self.tensors,
                       self.numbers, self.baked, self.looked, self.eps)

    def name(self, wanted: str) -> str:
        base = re.sub(r"\W", "", wanted, flags=re.ASCII)[:24]
        base = base if re.match(r"[A-Za-z]", base) and not re.fullmatch(r"x\d+", base) else f"t{base}"
        taken, found, n = _TAKEN | self.tensors.keys() | self.numbers.keys(), base, 1
        while found in taken:
            n += 1
            found = f"{base}{n}"
        if len(self.tensors) + len(self.numbers) == OPERANDS:
            raise Unsupported(f"the functions hold more than {OPERANDS} tensors and numbers, the next one {wanted}; accepted: up to that")
        return found

    def array(self, x: torch.Tensor, place: str) -> str:
        for name, have in self.tensors.items():
            if have is x:
                return name
        shape = f"a tensor of {x.dtype} {tuple(x.shape)}"
        if x.dtype not in ELEMENTS:
            raise refuse(place, f"an operand is {shape}", ", ".join(str(t) for t in ELEMENTS))
        if x.dim() > 4 or 0 in x.shape:
            raise refuse(place, f"an operand is {shape}", "up to 4 dimensions, with elements")
        name = self.name(self.named.get(id(x), "t"))
        self.head.append(f'{name} = {ELEMENTS[x.dtype]} "{" ".join("?" * max(x.dim(), 1))}"')
        self.tensors[name] = x
        if x.dtype.is_floating_point:
            self.eps = max(self.eps, torch.finfo(x.dtype).eps)
        return name

    def scalar(self, path: Path) -> Optional[str]:
        """The name of a number; None where it is to be written as it is."""
        for name, have in self.numbers.items():
            if have == path:
                return name
        x = self.values[path]
        whole = type(x) is int
        if self.constants or not (abs(x) <= MOST if whole else abs(x) <= torch.finfo(torch.float32).max):
            self.baked.add(path)
            return None
        name = self.name(path[-1] if path else "n")
        bounds = (f', 1, {MOST}' if whole else ", 1e-6, 1e30") if bounded(x) else ""
        bounds = f', "{"int" if whole else "float"}"{bounds}'
        self.head.append(f"{name} = scalar({x!r}{bounds})")
        self.numbers[name] = path
        return name


class _Function:
    def __init__(self, writer: Writer, name: str, recorded: Recorded, paths: Dict[str, Path]) -> None:
        self.writer, self.name, self.recorded, self.paths = writer, name, recorded, paths
        self.uses: Dict[int, int] = {}
        self.values: Dict[int, Value] = {}
        self.free: Set[int] = set()  # what is more than a divisor
        self.locals = 0

    def write(self, kind: str) -> None:
        result = self.recorded.result
        if isinstance(result, Node) and result.op == "lookup" and result.shape:
            raise refuse(result.place, f"the result has the shape {result.shape}", "one element")
        order = self.order(result) if isinstance(result, Node) else []
        self.writer.body.append((f"function {self.name}({', '.join(NAMES[self.name])})", ""))
        for node in order:
            self.values[id(node)] = self.settled(node)
            self.writer.hides |= self.name == "score" and hides(node, self.recorded.fresh)
        place = result.place if isinstance(result, Node) else ""
        found = as_number(self.value(result, place), kind)
        self.writer.body += [(f"  return {bare(found.text)}", place), ("end", "")]

    def order(self, root: Node) -> List[Node]:
        """Nodes after what they are made of."""
        out: List[Node] = []
        open_: List[Tuple[Node, bool]] = [(root, False)]
        done: Set[int] = set()
        while open_:
            node, left = open_.pop()
            if left:
                out.append(node)
            elif id(node) not in done:
                done.add(id(node))
                inner = [x for x in (*node.arguments, *node.options.values()) if isinstance(x, Node)]
                self.free |= {id(x) for i, x in enumerate(node.arguments) if not (divides(node) and i == 1)}
                self.free |= {id(x) for x in node.options.values()}
                for x in inner:
                    self.uses[id(x)] = self.uses.get(id(x), 0) + 1 + repeats(node)
                open_.append((node, True))
                open_ += [(x, False) for x in reversed(inner)]
        return out

    def settled(self, node: Node) -> Value:
        """The value of a node; a name of a line of its own where it is used twice, or deep."""
        found = self.computed(node)
        if found.depth and (self.uses.get(id(node), 0) > 1 or found.depth >= DEEP) and self.locals < LOCALS:
            self.locals += 1
            self.writer.body.append((f"  local x{self.locals} = {bare(found.text)}", node.place))
            return Value(f"x{self.locals}", found.kind)
        return found

    def computed(self, node: Node) -> Value:
        if node.op == "input":
            return self.input(node)
        if node.op == "lookup":
            return self.lookup(node)
        if node.shape:
            raise refuse(node.place, f"{node.op} gives the shape {node.shape}", "single elements, of captured tensors by an index of each "
                         "dimension")
        row = self.writer.rows.get(node.op)
        if row is None:
            raise refuse(node.place, f"{node.op} has no translation", KNOWN)
        if node.dtype.is_complex:
            raise refuse(node.place, f"{node.op} gives {node.dtype}", "truths, integers and real numbers")
        if node.dtype in (torch.float16, torch.bfloat16):
            self.writer.eps = max(self.writer.eps, torch.finfo(node.dtype).eps)
        arguments = [self.given(x, node, divides(node) and i == 1) for i, x in enumerate(node.arguments)]
        options = {k: x if k in ("rounding_mode", "dtype") else self.given(x, node, False) for k, x in node.options.items()}
        kind = _kind(node.dtype)
        found = row(Call(arguments, options, node, kind))
        return as_number(found, kind)

    def given(self, x: Any, node: Node, constant: bool) -> Any:
        """An argument: a value; as it is where it is no number."""
        if constant and isinstance(x, Node) and x.op == "input" and x.name in self.paths:
            path = self.paths[x.name]
            self.writer.baked.add(path)
            return literal(self.writer.values[path], node.place)
        return self.value(x, node.place) if isinstance(x, (Node, torch.Tensor, bool, int, float)) else None

    def input(self, node: Node) -> Value:
        if node.name not in self.paths:
            return Value(node.name, _kind(node.dtype))
        path = self.paths[node.name]
        name = self.writer.scalar(path) if id(node) in self.free or self.recorded.result is node else None
        return literal(self.writer.values[path], node.place) if name is None else Value(name, _kind(node.dtype))

    def lookup(self, node: Node) -> Value:
        table, *indices = node.arguments
        if node.shape:
            return Value("?", FLOAT)  # of fewer indices than dimensions: only what has them all is written
        text = self.writer.array(table, node.place)
        values = [self.value(x, node.place) for x in indices]
        bound = "".join(f"[{bare(x.text)}]" for x in values)
        found = Value(text + bound, _kind(table.dtype), 1 + max(x.depth for x in values))
        return Value(f"({found.text} ~= 0)", BOOL, found.depth + 1) if table.dtype == torch.bool else found

    def value(self, x: Any, place: str) -> Value:
        if isinstance(x, Node):
            return self.values[id(x)]
        if not isinstance(x, torch.Tensor):
            return literal(x, place)
        if x.dim():
            raise refuse(place, f"a tensor of shape {tuple(x.shape)} takes part without an index", "single elements of captured tensors")
        if id(x) in self.recorded.fresh:
            return literal(x.item(), place)
        found = Value(self.writer.array(x, place) + "[0]", _kind(x.dtype), 1)
        return Value(f"({found.text} ~= 0)", BOOL, 2) if x.dtype == torch.bool else found


def hides(node: Node, fresh: Dict[int, torch.Tensor]) -> bool:
    """Whether a score may be -inf by a node: by a constant, or by an element of a tensor for each query and key."""
    for x in node.arguments:
        x = x.item() if isinstance(x, torch.Tensor) and id(x) in fresh and x.dim() == 0 else x
        if isinstance(x, float) and math.isinf(x):
            return True
    return node.op == "lookup" and node.dtype.is_floating_point and {"i", "j"} <= {name for x in node.arguments[1:] for name in _reads(x)}


def _reads(x: Any) -> Set[str]:
    """The inputs that a value is made of."""
    if not isinstance(x, Node):
        return set()
    return {x.name} if x.op == "input" else {name for y in x.arguments for name in _reads(y)}


def _kind(dtype: torch.dtype) -> str:
    return BOOL if dtype == torch.bool else FLOAT if dtype.is_floating_point else INT

