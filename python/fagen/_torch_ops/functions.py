"""The functions of autograd: a forward and its gradients. LSE is saved in any case; where no gradient of it comes, dLSE is 0."""
from __future__ import annotations

import functools
from typing import Any, Callable, Sequence, Tuple

import torch

from .. import _context as contexts
from ..errors import GradientUnsupported
from . import backward, dense, varlen
from .dispatch import below, functorch, ops, plain, resolved
from .symbols import of_gradients, operator
from .vmap import rule

_compiling, _grad, _Tensor = torch.compiler.is_compiling, torch.is_grad_enabled, torch.Tensor
SECOND = ("a second derivative of attention was asked for; accepted: a first one, without create_graph, or with tensors that do not "
          "depend on it")


def save(ctx: Any, tensors: Tuple[Any, ...], scale: Any, numbers: Sequence[Any], options: str) -> None:
    """What the backward reads, and the simulated chip that it runs on, too."""
    ctx.save_for_backward(*tensors)
    ctx.set_materialize_grads(False)
    ctx.rest, ctx.chip = (scale, numbers, options), contexts.simulator_named()


def save_dropout(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Any, Any]) -> None:
    """inputs, here and below: the arguments of the operator."""
    save(ctx, (*inputs[:3], *output, inputs[3]), *inputs[5:])
    ctx.p = inputs[4]


def save_varlen(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Any, Any]) -> None:
    save(ctx, (*inputs[:3], *output, *inputs[3:7]), *inputs[10:])
    ctx.maxima = inputs[8:10]


def save_varlen_dropout(ctx: Any, inputs: Tuple[Any, ...], output: Tuple[Any, Any]) -> None:
    save(ctx, (*inputs[:3], *output, *inputs[3:7], inputs[10]), *inputs[12:])
    ctx.maxima, ctx.p = inputs[8:10], inputs[11]


def _gradients(ctx: Any, op: Any, kernel: Callable[..., Any], saved: Tuple[Any, ...], grad_out: Any, grad_lse: Any,
               more: Tuple[Any, ...]) -> Tuple[Any, ...]:
    """Of the inputs that want one."""
    if grad_out is None and grad_lse is None:
        return None, None, None
    if grad_out is None:
        grad_out = torch.zeros_like(saved[3])
    scale, numbers, options = ctx.rest
    arguments = (grad_out, *saved, grad_lse, *more, scale, numbers, of_gradients(options, torch.are_deterministic_algorithms_enabled()))
    if grad_out.is_cuda and not _grad() and not _compiling() and type(grad_out) is type(saved[0]) is type(saved[1]) is _Tensor and plain():
        found = kernel(*resolved(arguments))  # as below(): nothing wants to see the call, and autograd no second derivative
    else:
        call = functools.partial(Backward.apply, op, kernel) if functorch() and not _compiling() else operator(op, ctx.rest).default
        with contexts.within(ctx.chip):
            found = call(*arguments)
    return tuple(x if needs else None for x, needs in zip(found, ctx.needs_input_grad))


class Attention(torch.autograd.Function):
    """attention_lse with its gradients."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        out, lse = below(ops.attention_lse, dense.attention_lse, q, k, v, *rest)
        save(ctx, (q, k, v, out, lse), *rest)
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        return (*_gradients(ctx, ops.attention_backward, backward.attention, ctx.saved_tensors, grad_out, grad_lse, ()), *[None] * 3)


class AttentionDropout(torch.autograd.Function):
    """attention_dropout with its gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        found = below(ops.attention_dropout, dense.attention_dropout, *inputs)
        save_dropout(ctx, inputs, found)
        return found

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        *saved, rng = ctx.saved_tensors
        found = _gradients(ctx, ops.attention_dropout_backward, backward.attention_dropout, tuple(saved), grad_out, grad_lse, (rng, ctx.p))
        return (*found, *[None] * 5)


class VarlenAttention(torch.autograd.Function):
    """varlen_attention_lse with its gradients."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        found = below(ops.varlen_attention_lse, varlen.attention_lse, q, k, v, *rest)
        save_varlen(ctx, (q, k, v, *rest), found)
        return found

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        q, k, v, out, lse, *arrays = ctx.saved_tensors
        found = _gradients(ctx, ops.varlen_attention_backward, backward.varlen_attention, (q, k, v, out, lse), grad_out, grad_lse,
                           (*arrays, *ctx.maxima))
        return (*found, *[None] * 10)


class VarlenAttentionDropout(torch.autograd.Function):
    """varlen_attention_dropout with its gradients."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        found = below(ops.varlen_attention_dropout, varlen.attention_dropout, q, k, v, *rest)
        save_varlen_dropout(ctx, (q, k, v, *rest), found)
        return found

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        q, k, v, out, lse, *arrays, rng = ctx.saved_tensors
        more = (*arrays, *ctx.maxima, rng, ctx.p)
        found = _gradients(ctx, ops.varlen_attention_dropout_backward, backward.varlen_attention_dropout, (q, k, v, out, lse), grad_out,
                           grad_lse, more)
        return (*found, *[None] * 12)


class Backward(torch.autograd.Function):
    """An operator of gradients, as a function that has no derivative itself."""

    @staticmethod
    def forward(op: Any, kernel: Any, *arguments: Any) -> Any:
        return below(op, kernel, *arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise GradientUnsupported(SECOND)

    jvp = backward

    @staticmethod
    def vmap(info: Any, in_dims: Sequence[Any], op: Any, kernel: Any, *arguments: Any) -> Any:
        name = op._qualified_op_name.rpartition("::")[2]
        return rule(name, functools.partial(Backward.apply, op, kernel))(info, tuple(in_dims[2:]), *arguments)
