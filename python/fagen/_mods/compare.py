"""A function against its translation, at random points of the call's lengths."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch.overrides import TorchFunctionMode

from ..errors import Unsupported
from . import lua
from .text import NAMES, Written

POINTS = 4096
SPREAD = 8.0  # of scores
ROUNDINGS = 32  # of the coarsest type, by which numbers may differ

Lengths = Tuple[int, int, int, int]  # batch, heads, queries, keys


def points(lengths: Lengths, device: torch.device) -> Dict[str, torch.Tensor]:
    """The same for the same lengths: first the corners, then random ones."""
    source = torch.Generator().manual_seed(20)
    found = {}
    for k, (name, n) in enumerate(zip("bhij", lengths)):
        x = torch.randint(0, max(n, 1), (POINTS,), generator=source)
        corner = torch.arange(16) >> k & 1
        x[:16] = corner * (max(n, 1) - 1)
        found[name] = x.to(device)
    found["s"] = (torch.randn(POINTS, generator=source) * SPREAD).to(device)
    return found


class _Inside(TorchFunctionMode):
    """Lookups of many points at a time. One that is outside of its table, at which PyTorch would fail, is marked, and reads an element."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: List[torch.Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Optional[Dict[str, Any]] = None) -> Any:
        if func is not torch.Tensor.__getitem__:
            return func(*args, **(kwargs or {}))
        table, index = args
        index = index if isinstance(index, tuple) else (index,)
        if not any([isinstance(x, torch.Tensor) for x in index]):
            return func(*args)
        at = []
        for x, n in zip(index, table.shape):
            x = x.long() if isinstance(x, torch.Tensor) else torch.tensor(x, device=table.device)
            x = torch.where(x < 0, x + n, x)
            self.outside.append((x < 0) | (x >= n))
            at.append(x.clamp(0, n - 1))
        return torch.ops.aten.index.Tensor(table, at)


def values(function: Callable[..., Any], inputs: List[torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
    """What a function gives at points, and where it cannot be asked."""
    def one(*given: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        mode = _Inside()
        with mode:
            found = function(*given)
        outside = torch.zeros_like(given[-1], dtype=torch.bool)
        for x in mode.outside:
            outside = outside | x
        if not isinstance(found, torch.Tensor):
            found = torch.full_like(given[-1], found, dtype=torch.bool if isinstance(found, bool) else torch.float32)
        return found, outside
    with torch.no_grad():
        x, outside = torch.vmap(one)(*inputs)
    return x, outside


def compare(written: Written, operands: Dict[str, Any], functions: Dict[str, Callable[..., Any]], lengths: Lengths,
            device: torch.device) -> None:
    """functions: "score" and "mask". Raises Unsupported where a translation gives something else at a point."""
    at = points(lengths, device)
    found = lua.compute(written.text, operands, at)
    for name, function in functions.items():
        wanted, outside = values(function, [at[x].clone() for x in NAMES[name]])
        have = found[name]
        if name == "mask":
            same = have == wanted.bool()
        else:
            wanted, have = wanted.float(), have.float()
            room = ROUNDINGS * written.eps * torch.maximum(torch.maximum(wanted.abs(), have.abs()), torch.ones_like(have))
            near = wanted.isfinite() & have.isfinite() & ((wanted - have).abs() <= room)
            same = (wanted == have) | (wanted.isnan() & have.isnan()) | near
        wrong = ~(same | outside)
        if bool(wrong.any()):
            k = int(wrong.to(torch.int8).argmax())
            where = ", ".join(f"{x} = {at[x][k].item():.6g}" for x in NAMES[name])
            raise Unsupported(f"{place(function)}: at {where} the function gives {wanted[k].item()}, its translation {have[k].item()}, so "
                              f"at {int(wrong.sum())} of {POINTS} points; accepted: a function whose translation is the same. It is\n"
                              f"{written.text}")


def place(function: Any) -> str:
    """Where a function begins."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)
