"""The functions of autograd under torch.func.* and forward-mode differentiation: with tangents, and rules for vmap.

Those of functions.py cost a call less, and know none of it."""
from __future__ import annotations

from typing import Any, Callable, Tuple

import torch

from ..errors import GradientUnsupported
from . import dense, functions, no_gradient, tangents
from . import varlen as lengths
from .dispatch import below, ops
from .vmap import rule

class _Forward(torch.autograd.Function):
    """Of an operator that gives (out, lse): its name, and where in its arguments what the backward reads stands."""

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise GradientUnsupported(f"an input has a tangent; accepted: none: {no_gradient.FORWARD}")


class Attention(_Forward):
    """attention_lse, with its gradients and its tangents."""

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return below(ops.attention_lse, dense.attention_lse, *arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        functions.save(ctx, (*inputs[:3], *output), *inputs[3:])
        ctx.save_for_forward(*inputs[:3])

    backward = functions.Attention.backward

    @staticmethod
    def jvp(ctx: Any, *given: Any) -> Any:
        try:
            return tangents.attention(ctx.saved_tensors[:3], given[:3], *ctx.rest)
        except RuntimeError as e:  # vmap over tangents alone, outside of torch.func
            if "Batching rule" not in str(e):
                raise
            raise GradientUnsupported(f"tangents of q, k and v cannot be read here ({e}); accepted: torch.func.jvp, jacfwd and linearize, "
                                      "or dual tensors without torch.autograd's vectorize") from e

    @staticmethod
    def vmap(*arguments: Any) -> Any:
        return rule("attention_lse", Attention.apply)(*arguments)


class AttentionDropout(_Forward):
    """attention_dropout with its gradients."""

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return below(ops.attention_dropout, dense.attention_dropout, *arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        functions.save_dropout(ctx, inputs, output)

    backward = functions.AttentionDropout.backward

    @staticmethod
    def vmap(*arguments: Any) -> Any:
        return rule("attention_dropout", AttentionDropout.apply)(*arguments)


class VarlenAttention(_Forward):
    """varlen_attention_lse with its gradients."""

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return below(ops.varlen_attention_lse, lengths.attention_lse, *arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        functions.save_varlen(ctx, inputs, output)

    backward = functions.VarlenAttention.backward

    @staticmethod
    def vmap(*arguments: Any) -> Any:
        return rule("varlen_attention_lse", VarlenAttention.apply)(*arguments)


class VarlenAttentionDropout(_Forward):
    """varlen_attention_dropout with its gradients."""

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return below(ops.varlen_attention_dropout, lengths.attention_dropout, *arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        functions.save_varlen_dropout(ctx, inputs, output)

    backward = functions.VarlenAttentionDropout.backward

    @staticmethod
    def vmap(*arguments: Any) -> Any:
        return rule("varlen_attention_dropout", VarlenAttentionDropout.apply)(*arguments)


def without_pages(call: Callable[..., Any]) -> Callable[..., Any]:
    """Of sequences with lengths, whose arguments begin with q, k, v and the five arrays."""
    def found(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        if rest[4] is not None:
            no_gradient.refuse(no_gradient.PAGES, q=q, k=k, v=v)
        return call(q, k, v, *rest)
    return found


varlen, varlen_dropout = without_pages(VarlenAttention.apply), without_pages(VarlenAttentionDropout.apply)
