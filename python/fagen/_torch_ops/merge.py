"""The operators that merge partial results. Of their options "out" and "device" have a meaning."""
from __future__ import annotations

from typing import Any, Tuple

import torch

from .. import _merge
from .._attention import context_of
from .._mask import options_of
from .._plan import Plan
from .._view import view
from . import fake, no_gradient, outputs, plans
from .launch import launch
from .outputs import Made


def call(parts: Any, lses: Any, out: Any, lse: Any, want: bool, options: str) -> Tuple[Any, Any]:
    """(out, lse); want: a new LSE, where the caller gives none."""
    no_gradient.refuse(no_gradient.MERGE, parts=parts, lses=lses)
    index = parts.get_device()
    tensors = [(_merge.PART, parts), (_merge.PART_LSE, lses)]
    key = ("merge", plans.described(tensors + outputs.given(out, lse)), want, options, plans.where(index))
    plan: Any = plans.find(key) or plans.keep(key, _plan(parts, lses, out, lse, want, options))
    if out is None:
        out, lse = outputs.new(plan.made, want)
    launch(plan, index, tensors + outputs.given(out, lse))
    return out, lse


def _plan(parts: Any, lses: Any, out: Any, lse: Any, want: bool, options: str) -> Plan:
    asked = options_of(options)
    p, s = view("parts", parts), view("lses", lses)
    _merge.checked(p, s)
    ctx = context_of(p, asked.device or None)
    shape, lse_shape = p.shape[1:], _merge.lse_shape(p)
    result, sums = outputs.views(p, shape, lse_shape, out, lse, want, asked.out_dtype)
    plan = _merge.plan(ctx, p, s, result, sums)
    plan.made = Made(shape, getattr(torch, result.dtype), lse_shape, parts.device, False)
    return plan


def merge(parts: Any, lses: Any, options: str) -> Any:
    return call(parts, lses, None, None, False, options)[0]


def merge_lse(parts: Any, lses: Any, options: str) -> Any:
    return call(parts, lses, None, None, True, options)


def merge_out(parts: Any, lses: Any, out: Any, lse: Any, options: str) -> None:
    no_gradient.refuse(no_gradient.MERGE, out=out)
    call(parts, lses, out, lse, lse is not None, options)


def fake_merge(parts: Any, lses: Any, options: str) -> Any:
    no_gradient.refuse(no_gradient.MERGE, parts=parts, lses=lses)
    return parts.new_empty(parts.shape[1:], dtype=fake.out_type(options, parts.dtype))


def fake_merge_lse(parts: Any, lses: Any, options: str) -> Any:
    return fake_merge(parts, lses, options), parts.new_empty(_merge.lse_shape(parts), dtype=torch.float32)
