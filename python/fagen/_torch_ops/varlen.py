"""The operators of sequences of different lengths. `rest`: the five arrays of _varlen.ARRAYS, then the two maxima."""
from __future__ import annotations

from typing import Any, Sequence, Tuple

import torch

from .. import _dense, _varlen
from .._attention import context_of
from .._mask import options_of
from .._plan import K, Plan, Q, V
from . import dropout, fake, no_gradient, outputs, plans
from .dropout import Drop
from .launch import launch
from .outputs import Made
from .symbols import filled, number


def call(q: Any, k: Any, v: Any, rest: Tuple[Any, ...], out: Any, lse: Any, want: bool, scale: Any, numbers: Sequence[int],
         options: str, drop: Drop = None) -> Tuple[Any, Any]:
    """(out, lse); want: a new LSE, where the caller gives none."""
    scale, options, index = number(scale), filled(options, numbers), q.get_device()
    tensors = [(Q, q), (K, k), (V, v)] + [(w, x) for w, x in zip(_varlen.WORDS.values(), rest) if x is not None] + dropout.tensors_of(drop)
    key = (plans.described(tensors + outputs.given(out, lse)), rest[5:], want, scale, options, plans.where(index), drop and drop[1])
    plan: Any = plans.find(key) or plans.keep(key, _plan(q, k, v, rest, out, lse, want, scale, options, drop))
    if out is None:
        out, lse = outputs.new(plan.made, want)
    launch(plan, index, tensors + outputs.given(out, lse))
    return out, lse


def _plan(q: Any, k: Any, v: Any, rest: Tuple[Any, ...], out: Any, lse: Any, want: bool, scale: float, options: str, drop: Drop) -> Plan:
    asked = options_of(options)
    batch = _varlen.batch_of(q, k, v, dict(zip(_varlen.ARRAYS, rest)), *rest[5:])
    _varlen.checked(batch)
    ctx = context_of(batch.q, asked.device or None)
    shape, lse_shape = (*q.shape[:-1], v.shape[-1]), sums_shape(q, rest[0])
    result, sums = outputs.views(batch.q, shape, lse_shape, out, lse, want, asked.out_dtype)
    plan = _varlen.plan(ctx, batch, result, sums, asked.mask, scale, asked.tf32, dropout.checked(drop, batch.q),
                        asked.batch_invariant)
    plan.made = Made(shape, getattr(torch, result.dtype), lse_shape, q.device, False)
    return plan


def sums_shape(q: Any, starts: Any) -> Tuple[Any, ...]:
    return _dense.lse_shape(q) if starts is None else (q.shape[1], q.shape[0])


def attention(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return call(q, k, v, rest[:7], None, None, False, *rest[7:])[0]


def attention_lse(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return call(q, k, v, rest[:7], None, None, True, *rest[7:])


def attention_dropout(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    scale, numbers, options = rest[9:]
    return call(q, k, v, rest[:7], None, None, True, scale, numbers, options, (rest[7], float(rest[8])))


def attention_out(q: Any, k: Any, v: Any, *rest: Any) -> None:
    no_gradient.refuse(no_gradient.OUT, q=q, k=k, v=v, out=rest[7])
    call(q, k, v, rest[:7], rest[7], rest[8], rest[8] is not None, *rest[9:])


def fake_attention(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    fake.checked(q, k, v, (4 if rest[0] is None else 3, 4 if rest[1] is None else 3))
    return q.new_empty((*q.shape[:-1], v.shape[-1]), dtype=fake.out_type(rest[-1], q.dtype))


def fake_attention_lse(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return fake_attention(q, k, v, *rest), q.new_empty(sums_shape(q, rest[0]), dtype=torch.float32)
