"""The operators of attention with a score program. A program is its text in one line, as Inductor copies arguments into comments;
`names` are its operands between commas, each with a tensor: a scalar's has one element, so that a compiled program serves every value of
it."""
from __future__ import annotations

import re
from typing import Any, List, Sequence, Tuple

import torch

from .. import _score, _varlen
from .._attention import context_of
from .._dropout import probability, state
from .._mask import options_of
from .._view import view
from ..errors import Unsupported
from . import varlen
from .autograd import Kernel, outside
from .dispatch import below, ops, transformed
from .symbols import filled, number, traced


def line_of(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def of_line(line: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], line)


def program_of(operands: Sequence[Any], program: str, names: str) -> _score.Score:
    return _score.shared(of_line(program))(**dict(zip(names.split(",") if names else (), operands)))


def attention(q: Any, k: Any, v: Any, operands: Sequence[Any], program: str, names: str, rng: Any, dropout_p: Any, scale: Any,
              numbers: Sequence[int], options: str) -> Tuple[Any, Any]:
    asked = options_of(filled(options, numbers))
    found: Tuple[Any, Any] = _score.attend(program_of(operands, program, names), q, k, v, asked.mask, number(scale), True, None, None,
                                           asked.out_dtype, asked.tf32, asked.batch_invariant, float(dropout_p), rng,
                                           _score.stream_of_torch(q, None), asked.device or None)
    return found


def varlen_attention(q: Any, k: Any, v: Any, *rest: Any) -> Tuple[Any, Any]:
    operands, program, names, rng, dropout_p, scale, numbers, options = rest[7:]
    asked = options_of(filled(options, numbers))
    batch = _varlen.batch_of(q, k, v, dict(zip(_varlen.ARRAYS, rest[:5])), *rest[5:7])
    _varlen.checked(batch)
    ctx = context_of(batch.q, asked.device or None)
    dtype = q.dtype if asked.out_dtype is None else getattr(torch, asked.out_dtype)
    out = torch.empty((*q.shape[:-1], v.shape[-1]), dtype=dtype, device=q.device)
    lse = torch.empty(varlen.sums_shape(q, rest[0]), dtype=torch.float32, device=q.device)
    p = probability(float(dropout_p))
    _score.varlen(program_of(operands, program, names), batch, q, out, view("out", out), view("lse", lse), ctx=ctx, mask=asked.mask,
                  scale=number(scale), tf32=asked.tf32, stream=_score.stream_of_torch(q, None) or 0, dropout=p,
                  rng=state(rng, p, batch.q), invariant=asked.batch_invariant)
    return out, lse


def arguments_of(program: _score.Score) -> Tuple[List[Any], str, str]:
    """The operands of a program, its text and their names. Numbers are tensors, by a product that the compiler can keep as one."""
    names = sorted(program.operands)
    given = [program.operands[name] for name in names]
    one = torch.ones((), dtype=torch.float64, device="cpu")
    return [x if isinstance(x, torch.Tensor) else one * x for x in given], line_of(program.text), ",".join(names)


def autograd(name: str, kernel: Kernel) -> Kernel:
    """What autograd sees of an operator: it computes no gradients; eager calls do without it."""
    def call(*arguments: Any) -> Any:
        arguments = tuple(traced(arguments, True))
        if transformed():
            outside(name)
        refused(*arguments[:3], arguments[3:])
        return below(getattr(ops, name), kernel, *arguments)
    return call


def refused(q: Any, k: Any, v: Any, rest: Tuple[Any, ...]) -> None:
    """Raises where autograd wants gradients of an operator."""
    if not torch.is_grad_enabled():
        return
    operands, names = next((x, rest[i + 2]) for i, x in enumerate(rest) if isinstance(x, (list, tuple)) and i + 2 < len(rest))
    for name, x in [("q", q), ("k", k), ("v", v), *zip(names.split(","), operands)]:
        if x.requires_grad:
            raise Unsupported(f"{name}.requires_grad is True: gradients of score programs are not computed in a call that PyTorch "
                              "traces, or under autocast; accepted there: torch.no_grad(), or detached tensors")
