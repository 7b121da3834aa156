"""The operators of dense batches. A call of them is what its host cost is measured on: calls, copies and checks are as few as can be."""
from __future__ import annotations

from typing import Any, Sequence, Tuple

import torch

from .. import _context as contexts
from .. import _dense
from .._attention import context_of
from .._dropout import RNG
from .._mask import options_of
from .._plan import K, LSE, O, Plan, Q, V
from .._view import packed, view
from . import dropout, fake, no_gradient, outputs, plans
from .dropout import Drop
from .launch import launch, on_device
from .outputs import Made
from .symbols import filled, number

_find = plans.find


def call(q: Any, k: Any, v: Any, out: Any, lse: Any, want: bool, scale: float, options: str, drop: Drop = None) -> Tuple[Any, Any]:
    """(out, lse); want: a new LSE, where the caller gives none."""
    if type(scale) is not float:
        scale = number(scale)
    index = q.get_device()
    key: Tuple[Any, ...] = (q.shape, k.shape, v.shape, q.stride(), k.stride(), v.stride(), q.dtype, k.dtype, v.dtype, index, k.get_device(),
                            v.get_device(), want, scale, options, contexts.generation)
    if index < 0:
        key += (contexts.simulator_named(), q.device, k.device, v.device)
    if out is not None:
        key += tuple((x.shape, x.stride(), x.dtype, x.device) for x in (out, lse) if x is not None)
    if drop is not None:
        key += dropout.key_of(drop)
    plan: Any = _find(key) or plans.keep(key, _plan(q, k, v, out, lse, want, scale, options, drop))
    if out is None:
        made = plan.made
        out = torch.empty_like(q) if made.like else torch.empty(made.shape, dtype=made.dtype, device=made.device)
        if want:
            lse = torch.empty(made.lse, dtype=torch.float32, device=made.device)
    if plan.host:
        launch(plan, index, [(Q, q), (K, k), (V, v), *outputs.given(out, lse), *dropout.tensors_of(drop)])
        return out, lse
    words = plan.words
    words[Q], words[K], words[V], words[O] = q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr()
    if lse is not None:
        words[LSE] = lse.data_ptr()
    if drop is not None:
        words[RNG] = drop[0].data_ptr()
    on_device(plan, index)
    return out, lse


def _plan(q: Any, k: Any, v: Any, out: Any, lse: Any, want: bool, scale: float, options: str, drop: Drop) -> Plan:
    asked = options_of(options)
    inputs = view("q", q), view("k", k), view("v", v)
    _dense.checked(*inputs)
    ctx = context_of(inputs[0], asked.device or None)
    shape, lse_shape = (*q.shape[:3], v.shape[3]), _dense.lse_shape(q)
    result, sums = outputs.views(inputs[0], shape, lse_shape, out, lse, want, asked.out_dtype)
    plan = _dense.plan(ctx, *inputs, result, sums, asked.mask, scale, asked.tf32, dropout.checked(drop, inputs[0]),
                       asked.batch_invariant)
    dtype = getattr(torch, result.dtype)
    plan.made = Made(shape, dtype, lse_shape, q.device, dtype == q.dtype and tuple(q.shape) == shape and q.stride() == packed(shape))
    return plan


def attention(q: Any, k: Any, v: Any, scale: Any, numbers: Sequence[int], options: str) -> Any:
    return call(q, k, v, None, None, False, scale, filled(options, numbers))[0]


def attention_lse(q: Any, k: Any, v: Any, scale: Any, numbers: Sequence[int], options: str) -> Any:
    return call(q, k, v, None, None, True, scale, filled(options, numbers))


def attention_dropout(q: Any, k: Any, v: Any, rng: Any, p: Any, scale: Any, numbers: Sequence[int], options: str) -> Any:
    return call(q, k, v, None, None, True, scale, filled(options, numbers), (rng, float(p)))


def attention_out(q: Any, k: Any, v: Any, out: Any, lse: Any, scale: Any, numbers: Sequence[int], options: str) -> None:
    no_gradient.refuse(no_gradient.OUT, q=q, k=k, v=v, out=out)
    call(q, k, v, out, lse, lse is not None, scale, filled(options, numbers))


def fake_attention(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    fake.checked(q, k, v, (4, 4))
    return q.new_empty((*q.shape[:3], v.shape[3]), dtype=fake.out_type(rest[-1], q.dtype))


def fake_attention_lse(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return fake_attention(q, k, v, *rest), q.new_empty(_dense.lse_shape(q), dtype=torch.float32)
