"""Gradients where scores are a program's: of q, k and v, and of the program's operands, for PyTorch's autograd."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable

from . import _abi, _backward, _dense, _keywords, _score, _varlen
from ._attention import context_of, stream_of
from ._dropout import probability, state
from ._mask import mask_of, scale_of
from ._plan import K, LSE, O, Q, V
from ._view import View, view
from .errors import Unsupported, invalid

Gradients = Tuple[Optional[torch.Tensor], ...]


class Call(NamedTuple):
    """A call of either kind. forward(program, q, k, v) is (out, lse); backward(program, q, k, v, out, lse, grad_out, grad_lse, asked) are
    the gradients of q, k, v and of the operands that are asked for, float32, an element for each of the program's."""
    program: _score.Score
    names: Tuple[str, ...]
    forward: Callable[..., Tuple[torch.Tensor, torch.Tensor]]
    backward: Callable[..., Tuple[torch.Tensor, ...]]


def is_wanted(program: _score.Score, **inputs: Any) -> bool:
    tensors = [x for x in (*inputs.values(), *program.operands.values()) if isinstance(x, torch.Tensor)]
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: Call, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *operands: torch.Tensor) -> Any:
        out, lse = call.forward(call.program(**dict(zip(call.names, operands))), q, k, v)
        ctx.call = call
        ctx.save_for_backward(q, k, v, out, lse, *operands)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_out: Optional[torch.Tensor], grad_lse: Optional[torch.Tensor]) -> Gradients:
        call: Call = ctx.call
        q, k, v, out, lse, *operands = ctx.saved_tensors
        asked = [name for name, needed in zip(call.names, ctx.needs_input_grad[4:]) if needed]
        grad_out = torch.zeros_like(out) if grad_out is None else grad_out
        program = call.program(**dict(zip(call.names, operands)))
        *inputs, found = call.backward(program, q, k, v, out, lse, grad_out.to(out.dtype), grad_lse, asked)
        of = {name: _as_operand(found[name], x) for name, x in zip(call.names, operands) if name in found}
        return (None, *inputs, *(of.get(name) for name in call.names))


def _as_operand(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Summed over the indices that read the same element, in the operand's shape and type."""
    front = gradient.dim() - x.dim()
    over = [k for k in range(gradient.dim()) if k < front or (x.shape[k - front] == 1 and gradient.shape[k] > 1)]
    return (gradient.sum(over, keepdim=True) if over else gradient).reshape(x.shape).to(x.dtype)


def _apply(program: _score.Score, forward: Callable[..., Any], backward: Callable[..., Any], q: Any, k: Any, v: Any,
           return_lse: bool) -> Any:
    names = tuple(name for name, x in program.operands.items() if isinstance(x, torch.Tensor))
    out, lse = Attention.apply(Call(program, names, forward, backward), q, k, v, *(program.operands[name] for name in names))
    return (out, lse) if return_lse else out


def _new_outputs(out: Any, lse: Any) -> None:
    if out is not None or lse is not None:
        raise Unsupported(f"{'out' if out is not None else 'lse'} is set where a gradient is wanted; accepted: None, a new tensor")


def dense(program: _score.Score, q: Any, k: Any, v: Any, *, return_lse: bool, out: Any, lse: Any, deterministic: bool,
          **options: Any) -> Any:
    """fagen.attention where a gradient is wanted."""
    _new_outputs(out, lse)

    def forward(own: _score.Score, *inputs: torch.Tensor) -> Any:
        return _score.dense(own, *inputs, return_lse=True, out=None, lse=None, deterministic=deterministic, **options)

    def backward(own: _score.Score, q: Any, k: Any, v: Any, out: Any, lse: Any, grad_out: Any, grad_lse: Any, asked: Sequence[str]) -> Any:
        stream = _score.stream_of_torch(q, None)
        saved = _backward.saved_of(q, k, v, out, lse, stream)
        ctx, at, p = context_of(saved.q, options["device"]), stream_of(saved, stream), probability(options["dropout_p"])
        mask, factor = mask_of(options["causal"], options["window"], options["diagonal"]), scale_of(options["scale"])
        made, gradients = _backward.gradients_of((q, k, v), saved, grad_out, _packed(grad_lse), (None, None, None), None, False, False,
                                                 stream)

        def arguments() -> _abi.Args:
            args = _dense.arguments(ctx, saved.q, saved.k, saved.v, saved.out, saved.lse, mask, factor, False, True, p)
            return _backward.with_gradients(args, saved, gradients, deterministic, False)
        (b, sq, hq, _), (_, sk, hkv, _) = saved.q.shape, saved.v.shape
        lengths = {"b": b, "hq": hq, "hkv": hkv, "sq": sq, "sk": sk, "tq": b * sq, "tk": b * sk}
        tensors = _backward.tensors_of(saved, gradients, state(options["rng"], p, saved.q, stream))
        key = ("backward", ctx, mask, factor, p, deterministic)
        return (*made, _launch(ctx, own, key, arguments, tensors, saved.q, q, lengths, at, asked))
    return _apply(program, forward, backward, q, k, v, return_lse)


def varlen(program: _score.Score, q: Any, k: Any, v: Any, *, lengths: Dict[str, Any], return_lse: bool, out: Any, lse: Any,
           deterministic: bool, **options: Any) -> Any:
    """fagen.varlen_attention where a gradient is wanted."""
    _new_outputs(out, lse)
    if lengths.get("page_table") is not None:
        raise Unsupported("page_table is set where a gradient is wanted; accepted: None: keys in pages have no gradients")

    def forward(own: _score.Score, *inputs: torch.Tensor) -> Any:
        return _varlen.varlen_attention(*inputs, return_lse=True, score=own, deterministic=deterministic, **lengths, **options)

    def backward(own: _score.Score, q: Any, k: Any, v: Any, out: Any, lse: Any, grad_out: Any, grad_lse: Any, asked: Sequence[str]) -> Any:
        stream = _score.stream_of_torch(q, None)
        batch = _varlen.batch_of(q, k, v, lengths, options["max_seqlen_q"], options["max_seqlen_k"], stream)
        saved = _backward.Saved(batch.q, batch.k, batch.v, view("out", out, stream), view("lse", lse, stream))
        ctx, at, p = context_of(saved.q, options["device"]), stream_of(saved, stream), probability(options["dropout_p"])
        mask, factor = mask_of(options["causal"], options["window"], options["diagonal"]), scale_of(options["scale"])
        made, gradients = _backward.gradients_of((q, k, v), saved, grad_out, _packed(grad_lse), (None, None, None), None, False, True,
                                                 stream)

        def arguments() -> _abi.Args:
            args = _varlen.arguments(ctx, batch, saved.out, saved.lse, mask, factor, False, True, p)
            return _backward.with_gradients(args, saved, gradients, deterministic, False)
        tensors = _backward.tensors_of(saved, gradients, state(options["rng"], p, saved.q, stream)) + _varlen.arrays_of(batch)
        key = ("varlen backward", ctx, batch.sq, batch.sk, mask, factor, p, deterministic)
        return (*made, _launch(ctx, own, key, arguments, tensors, saved.q, q, _score.lengths_of(batch), at, asked))
    return _apply(program, forward, backward, q, k, v, return_lse)


def _packed(x: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    return None if x is None else x.contiguous()


def _launch(ctx: Any, program: _score.Score, key: Any, arguments: Callable[[], _abi.Args], tensors: List[Tuple[int, View]], like: View,
            q: Any, lengths: Dict[str, int], stream: int, asked: Sequence[str]) -> Dict[str, torch.Tensor]:
    """A launch, and the gradients of the operands that are asked for."""
    found: Dict[str, torch.Tensor] = {}
    for o in program.made(ctx).operands:
        if o.name not in asked:
            continue
        if o.shape and _score.DTYPES[o.kind] not in _keywords.WORDS:
            raise invalid(f"{o.name}.requires_grad", True, "False: an operand of integers has no gradient")
        x = program.operands[o.name]
        full = _score.extents(o.shape, lengths)
        given = [1] * (len(full) - x.dim()) + list(x.shape)
        found[o.name] = torch.empty([m if n is None else n for n, m in zip(full, given)], dtype=torch.float32, device=q.device)
    written = (*_backward.WRITTEN,)
    _score.launch(ctx, program, key, arguments, tensors, like, lengths, stream, written, found)
    return found
