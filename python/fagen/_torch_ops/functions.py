"""The functions of autograd: a forward and its gradients. LSE is saved in any case; where no gradient of it comes, dLSE is 0."""
from __future__ import annotations

from typing import Any, Tuple

import torch

from .. import _context as contexts
from .._mask import options_of, words_of
from ..errors import GradientUnsupported
from . import dense, varlen
from .dispatch import below, ops


def _save(ctx: Any, tensors: Tuple[Any, ...], scale: float, options: str) -> None:
    """What the backward reads, and the simulated chip that it runs on, too."""
    ctx.save_for_backward(*tensors)
    ctx.set_materialize_grads(False)
    ctx.rest, ctx.chip = (scale, options), contexts.simulator_named()


def _gradients(ctx: Any, op: Any, saved: Tuple[Any, ...], grad_out: Any, grad_lse: Any, more: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """Of the inputs that want one."""
    if grad_out is None and grad_lse is None:
        return None, None, None
    if grad_out is None:
        grad_out = torch.zeros_like(saved[3])
    scale, options = ctx.rest
    with contexts.within(ctx.chip):
        found = op.default(grad_out, *saved, grad_lse, *more, scale, _deterministic(options))
    return tuple(x if needs else None for x, needs in zip(found, ctx.needs_input_grad))


def _deterministic(options: str) -> str:
    """Options of a backward: deterministic where the call or PyTorch says so, and without what speaks of the forward's output."""
    asked = options_of(options)
    return words_of(asked.mask, None, False, asked.device, asked.deterministic or torch.are_deterministic_algorithms_enabled())


class Attention(torch.autograd.Function):
    """attention_lse with its gradients."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, scale: float, options: str) -> Any:
        out, lse = below(ops.attention_lse, dense.attention_lse, q, k, v, scale, options)
        _save(ctx, (q, k, v, out, lse), scale, options)
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        return (*_gradients(ctx, ops.attention_backward, ctx.saved_tensors, grad_out, grad_lse, ()), *[None] * 2)


class AttentionDropout(torch.autograd.Function):
    """attention_dropout with its gradients."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, rng: Any, p: float, scale: float, options: str) -> Any:
        out, lse = below(ops.attention_dropout, dense.attention_dropout, q, k, v, rng, p, scale, options)
        _save(ctx, (q, k, v, out, lse, rng), scale, options)
        ctx.p = p
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        *saved, rng = ctx.saved_tensors
        return (*_gradients(ctx, ops.attention_dropout_backward, tuple(saved), grad_out, grad_lse, (rng, ctx.p)), *[None] * 4)


class VarlenAttention(torch.autograd.Function):
    """varlen_attention_lse with its gradients."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        out, lse = below(ops.varlen_attention_lse, varlen.attention_lse, q, k, v, *rest)
        _save(ctx, (q, k, v, out, lse, *rest[:4]), *rest[7:])
        ctx.maxima = rest[5:7]
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        q, k, v, out, lse, *arrays = ctx.saved_tensors
        found = _gradients(ctx, ops.varlen_attention_backward, (q, k, v, out, lse), grad_out, grad_lse, (*arrays, *ctx.maxima))
        return (*found, *[None] * 9)


class VarlenAttentionDropout(torch.autograd.Function):
    """varlen_attention_dropout with its gradients."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        out, lse = below(ops.varlen_attention_dropout, varlen.attention_dropout, q, k, v, *rest)
        _save(ctx, (q, k, v, out, lse, *rest[:4], rest[7]), *rest[9:])
        ctx.maxima, ctx.p = rest[5:7], rest[8]
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        q, k, v, out, lse, *arrays, rng = ctx.saved_tensors
        more = (*arrays, *ctx.maxima, rng, ctx.p)
        found = _gradients(ctx, ops.varlen_attention_dropout_backward, (q, k, v, out, lse), grad_out, grad_lse, more)
        return (*found, *[None] * 11)


class Backward(torch.autograd.Function):
    """An operator of gradients, as a function that has no derivative itself."""

    @staticmethod
    def forward(ctx: Any, op: Any, kernel: Any, *arguments: Any) -> Any:
        return below(op, kernel, *arguments)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise GradientUnsupported("a second derivative of attention was asked for; accepted: a first one, without create_graph, or with "
                                  "tensors that do not depend on it")
