"""The operators of gradients: of dense batches and of sequences with lengths."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import torch

from .. import _backward, _dense, _varlen
from .._attention import context_of
from .._mask import Options, options_of
from .._plan import K, LSE, O, Plan, Q, V
from . import dropout, fake, plans
from .dropout import Drop
from .launch import launch
from .symbols import filled, number


def _usable(grad_out: Any) -> Any:
    """A gradient with strides that kernels take: those of sums are expanded in every dimension."""
    if grad_out.is_contiguous():
        return grad_out
    plain = grad_out.stride(-1) == 1 or grad_out.shape[-1] == 1
    return grad_out if plain and any(s for n, s in zip(grad_out.shape[:-1], grad_out.stride()) if n > 1) else grad_out.contiguous()


def call(given: Tuple[Any, ...], rest: Optional[Tuple[Any, ...]], drop: Drop, scale: Any, numbers: Sequence[int],
         options: str) -> Tuple[Any, ...]:
    """The gradients of q, k and v. given: grad_out, q, k, v, out, lse, grad_lse. rest: the arrays of _varlen.ARRAYS less pages, then the
    two maxima; None of dense batches."""
    grad_out, q, k, v, out, lse, grad_lse = given
    scale, options = number(scale), filled(options, numbers)
    grad_out, index = _usable(grad_out), q.get_device()
    lse, grad_lse = lse.contiguous(), None if grad_lse is None else grad_lse.contiguous()
    asked = options_of(options)
    dtype = getattr(torch, asked.out_dtype) if asked.out_dtype else q.dtype
    # Every element of a dense gradient is written, of sequences with lengths no row past them.
    new = torch.empty if rest is None else torch.zeros
    device = q.device
    made = tuple([new(x.shape, dtype=dtype, device=device) for x in (q, k, v)])
    tensors = [(Q, q), (K, k), (V, v), (O, out), (LSE, lse), (_backward.GRAD_O, grad_out)]
    tensors += [] if grad_lse is None else [(_backward.GRAD_LSE, grad_lse)]
    tensors += [] if rest is None else [(w, x) for w, x in zip(_varlen.WORDS.values(), rest[:4]) if x is not None]
    tensors += dropout.tensors_of(drop)
    # What is written has the shapes of q, k and v, and no strides of its own.
    key = ("backward", plans.described(tensors), rest and rest[4:], scale, options, plans.where(index), drop and drop[1])
    plan: Any = plans.find(key) or plans.keep(key, _plan(grad_out, q, k, v, out, lse, grad_lse, rest, scale, asked, made, drop))
    tensors += zip(_backward.WRITTEN, made)
    launch(plan, index, tensors, _backward.WRITTEN)
    return made


def _plan(grad_out: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, grad_lse: Any, rest: Optional[Tuple[Any, ...]], scale: float,
          asked: Options, made: Tuple[Any, ...], drop: Drop) -> Plan:
    saved = _backward.saved_of(q, k, v, out, lse)
    batch = None if rest is None else _varlen.batch_of(q, k, v, dict(zip(_varlen.ARRAYS, (*rest[:4], None))), *rest[4:])
    if batch is None:
        _dense.checked(*saved[:3])
    else:
        _varlen.checked(batch)
    ctx = context_of(saved.q, asked.device or None)
    _, gradients = _backward.gradients_of((q, k, v), saved, grad_out, grad_lse, made, None, False, False, None)
    p = dropout.checked(drop, saved.q)
    if batch is None:
        args = _dense.arguments(ctx, *saved, asked.mask, scale, False, False, p)
    else:
        args = _varlen.arguments(ctx, batch, saved.out, saved.lse, asked.mask, scale, False, False, p)
    return Plan(ctx, _backward.with_gradients(args, saved, gradients, asked.deterministic, False))


def attention(*arguments: Any) -> Any:
    return call(arguments[:7], None, None, *arguments[7:])


def varlen_attention(*arguments: Any) -> Any:
    return call(arguments[:7], arguments[7:13], None, *arguments[13:])


def attention_dropout(*arguments: Any) -> Any:
    return call(arguments[:7], None, (arguments[7], float(arguments[8])), *arguments[9:])


def varlen_attention_dropout(*arguments: Any) -> Any:
    return call(arguments[:7], arguments[7:13], (arguments[13], float(arguments[14])), *arguments[15:])


def fake_gradients(grad_out: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
    fake.checked(q, k, v, (q.dim(), k.dim()))
    return tuple(x.new_empty(x.shape, dtype=fake.out_type(rest[-1], q.dtype)) for x in (q, k, v))
