"""The operators torch.ops.fagen.*: what torch.compile, torch.export, autocast and CUDA graphs see of fagen.

They are defined by Library.define and impl, which cost a call less than half of what torch.library.custom_op costs. `scale` 0 stands for
1/sqrt(d); `options` is a text, as "causal" or "window=255,0;tf32", which _mask.words_of makes. fagen.torch has the functions for people.
"""
from __future__ import annotations

import threading
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import torch

from . import _context as contexts
from . import _dense, _merge, _stage, _varlen
from . import _shapes as shapes
from ._attention import context_of
from ._context import Workspace
from ._library import check, lib
from ._mask import options_of
from ._plan import K, LSE, O, Plan, Plans, Q, V
from ._stage import Staged
from ._view import View, fresh, packed, view
from .errors import GradientUnsupported, InvalidArgument

DENSE = "Tensor q, Tensor k, Tensor v"
VARLEN = DENSE + ", Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, Tensor? seqlens_q, Tensor? seqlens_k, Tensor? page_table"
MAXIMA = "SymInt max_seqlen_q, SymInt max_seqlen_k"
MERGE = "Tensor parts, Tensor lses"
TO = "Tensor(a!) out, Tensor(b!)? lse"
OPTIONS = "float scale, str options"

_plans = Plans()
_library = torch.library.Library("fagen", "DEF")
_tags = tuple(getattr(torch.Tag, name) for name in ("pt2_compliant_tag", "needs_exact_strides") if hasattr(torch.Tag, name))
_grad = torch.is_grad_enabled
_find = _plans.find


class Made(NamedTuple):
    """What a plan's new outputs are like. `like`: out is as torch.empty_like(q)."""
    shape: Tuple[int, ...]
    dtype: torch.dtype
    lse: Tuple[int, ...]
    device: torch.device
    like: bool


def refuse_gradients(**tensors: Any) -> None:
    """Raises GradientUnsupported where autograd would want a backward."""
    if _grad():
        for name, x in tensors.items():
            if x is not None and x.requires_grad:
                raise GradientUnsupported(f"{name}.requires_grad is True; accepted: False, or a call within torch.no_grad(): this version "
                                          "of fagen computes no gradients")


def capture_workspace(index: int, handle: int, kept: List[Any]) -> Callable[[int, int], Workspace]:
    """Of a stream that is captured: memory of the graph's own pool, zeroed by the graph, so that graphs and eager calls share none."""
    def make(stream: int, size: int) -> Workspace:
        space = torch.empty(size, dtype=torch.uint8, device=f"cuda:{index}")
        kept.append(space)
        check(lib.fa_workspace_init(handle, space.data_ptr(), size, stream))
        return Workspace(space.data_ptr(), size, threading.Lock())
    return make


def on_device(plan: Plan, index: int) -> None:
    """Launches a plan whose addresses are set on PyTorch's current stream of the device."""
    if torch._C._cuda_getDevice() != index:
        with torch.cuda.device(index):
            return on_device(plan, index)
    stream = torch._C._cuda_getCurrentRawStream(index)
    if plan.need and torch.cuda.is_current_stream_capturing():
        kept: List[Any] = []
        return plan.launch(stream, capture_workspace(index, plan.context.handle, kept))
    return plan.launch(stream)


def launch(plan: Plan, index: int, tensors: List[Tuple[int, torch.Tensor]]) -> None:
    """On the tensors' device; those of host memory on the simulated chip."""
    if plan.host:
        return _stage.launch(plan, [Staged(w, view("", x), w in (O, LSE)) for w, x in tensors])
    for w, x in tensors:
        plan.words[w] = x.data_ptr()
    return on_device(plan, index)


def where(index: int) -> Tuple[Any, ...]:
    """What else a plan depends on: the simulated chip and the contexts are the caller's to change between two calls."""
    return (index, contexts.generation) if index >= 0 else (contexts.simulator_named(), contexts.generation)


# Dense batches.

def _dense_call(q: Any, k: Any, v: Any, out: Any, lse: Any, want: bool, scale: float, options: str) -> Tuple[Any, Any]:
    if _grad() and (q.requires_grad or k.requires_grad or v.requires_grad):
        refuse_gradients(q=q, k=k, v=v)
    index = q.get_device()
    key: Tuple[Any, ...] = (q.shape, k.shape, v.shape, q.stride(), k.stride(), v.stride(), q.dtype, k.dtype, v.dtype, index, k.get_device(),
                            v.get_device(), want, scale, options, contexts.generation)
    if index < 0:
        key += (contexts.simulator_named(), q.device, k.device, v.device)
    if out is not None:
        key += tuple((x.shape, x.stride(), x.dtype, x.device) for x in (out, lse) if x is not None)
    plan: Any = _find(key) or _plans.keep(key, _dense_plan(q, k, v, out, lse, want, scale, options))
    if out is None:
        made = plan.made
        out = torch.empty_like(q) if made.like else torch.empty(made.shape, dtype=made.dtype, device=made.device)
        if want:
            lse = torch.empty(made.lse, dtype=torch.float32, device=made.device)
    if plan.host:
        launch(plan, index, [(Q, q), (K, k), (V, v), (O, out)] + ([] if lse is None else [(LSE, lse)]))
        return out, lse
    words = plan.words
    words[Q], words[K], words[V], words[O] = q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr()
    if lse is not None:
        words[LSE] = lse.data_ptr()
    on_device(plan, index)
    return out, lse


def _dense_plan(q: Any, k: Any, v: Any, out: Any, lse: Any, want: bool, scale: float, options: str) -> Plan:
    asked = options_of(options)
    views = view("q", q), view("k", k), view("v", v)
    _dense.checked(*views)
    ctx = context_of(views[0], asked.device or None)
    shape, sums_shape = (*q.shape[:3], v.shape[3]), (q.shape[0], q.shape[2], q.shape[1])
    result = fresh(views[0], shape, asked.out_dtype or views[0].dtype) if out is None else view("out", out)
    sums = view("lse", lse) if lse is not None else fresh(views[0], sums_shape, "float32") if want else None
    plan = _dense.plan(ctx, *views, result, sums, asked.mask, scale, asked.tf32)
    dtype = getattr(torch, result.dtype)
    plan.made = Made(shape, dtype, sums_shape, q.device, dtype == q.dtype and tuple(q.shape) == shape and q.stride() == packed(shape))
    return plan


def _attention(q: Any, k: Any, v: Any, scale: float, options: str) -> Any:
    return _dense_call(q, k, v, None, None, False, scale, options)[0]


def _attention_lse(q: Any, k: Any, v: Any, scale: float, options: str) -> Any:
    return _dense_call(q, k, v, None, None, True, scale, options)


def _attention_out(q: Any, k: Any, v: Any, out: Any, lse: Any, scale: float, options: str) -> None:
    refuse_gradients(out=out)
    _dense_call(q, k, v, out, lse, lse is not None, scale, options)


# Sequences of different lengths. `rest`: the five arrays of _varlen.ARRAYS, then the two maxima.

def _varlen_call(q: Any, k: Any, v: Any, rest: Tuple[Any, ...], out: Any, lse: Any, want: bool, scale: float, options: str) -> Any:
    if _grad():
        refuse_gradients(q=q, k=k, v=v)
    index = q.get_device()
    tensors = [(Q, q), (K, k), (V, v)] + [(w, x) for w, x in zip(_varlen.WORDS.values(), rest) if x is not None]
    given = [(w, x) for w, x in ((O, out), (LSE, lse)) if x is not None]
    key = (tuple((w, x.shape, x.stride(), x.dtype, x.device) for w, x in tensors + given), rest[5:], want, scale, options, where(index))
    plan: Any = _find(key) or _plans.keep(key, _varlen_plan(q, k, v, rest, out, lse, want, scale, options))
    if out is None:
        made = plan.made
        out = torch.empty(made.shape, dtype=made.dtype, device=made.device)
        if want:
            lse = torch.empty(made.lse, dtype=torch.float32, device=made.device)
    launch(plan, index, tensors + [(O, out)] + ([(LSE, lse)] if lse is not None else []))
    return out, lse


def _lse_shape(q: Any, starts: Any) -> Tuple[Any, ...]:
    return (q.shape[1], q.shape[0]) if starts is not None else (q.shape[0], q.shape[2], q.shape[1])


def _varlen_plan(q: Any, k: Any, v: Any, rest: Tuple[Any, ...], out: Any, lse: Any, want: bool, scale: float, options: str) -> Plan:
    asked = options_of(options)
    batch = _varlen.batch_of(q, k, v, dict(zip(_varlen.ARRAYS, rest)), *rest[5:])
    _varlen.checked(batch)
    ctx = context_of(batch.q, asked.device or None)
    shape, sums_shape = (*q.shape[:-1], v.shape[-1]), _lse_shape(q, rest[0])
    result = fresh(batch.q, shape, asked.out_dtype or batch.q.dtype) if out is None else view("out", out)
    sums = view("lse", lse) if lse is not None else fresh(batch.q, sums_shape, "float32") if want else None
    plan = _varlen.plan(ctx, batch, result, sums, asked.mask, scale, asked.tf32)
    plan.made = Made(shape, getattr(torch, result.dtype), sums_shape, q.device, False)
    return plan


def _varlen_attention(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return _varlen_call(q, k, v, rest[:7], None, None, False, *rest[7:])[0]


def _varlen_attention_lse(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return _varlen_call(q, k, v, rest[:7], None, None, True, *rest[7:])


def _varlen_attention_out(q: Any, k: Any, v: Any, *rest: Any) -> None:
    refuse_gradients(out=rest[7])
    _varlen_call(q, k, v, rest[:7], rest[7], rest[8], rest[8] is not None, *rest[9:])


# Merging; of the options "out" and "device" have a meaning.

def _merge_call(parts: Any, lses: Any, out: Any, lse: Any, want: bool, options: str) -> Any:
    refuse_gradients(parts=parts, lses=lses)
    index = parts.get_device()
    tensors = [(_merge.PART, parts), (_merge.PART_LSE, lses)]
    given = [(w, x) for w, x in ((O, out), (LSE, lse)) if x is not None]
    key = ("merge", tuple((w, x.shape, x.stride(), x.dtype, x.device) for w, x in tensors + given), want, options, where(index))
    plan: Any = _find(key) or _plans.keep(key, _merge_plan(parts, lses, out, lse, want, options))
    if out is None:
        made = plan.made
        out = torch.empty(made.shape, dtype=made.dtype, device=made.device)
        if want:
            lse = torch.empty(made.lse, dtype=torch.float32, device=made.device)
    launch(plan, index, tensors + [(O, out)] + ([(LSE, lse)] if lse is not None else []))
    return out, lse


def _merge_plan(parts: Any, lses: Any, out: Any, lse: Any, want: bool, options: str) -> Plan:
    asked = options_of(options)
    p, s = view("parts", parts), view("lses", lses)
    _merge.checked(p, s)
    ctx = context_of(p, asked.device or None)
    result = fresh(p, p.shape[1:], asked.out_dtype or p.dtype) if out is None else view("out", out)
    sums = view("lse", lse) if lse is not None else fresh(p, _merge.lse_shape(p), "float32") if want else None
    plan = _merge.plan(ctx, p, s, result, sums)
    plan.made = Made(p.shape[1:], getattr(torch, result.dtype), _merge.lse_shape(p), parts.device, False)
    return plan


def _merge_one(parts: Any, lses: Any, options: str) -> Any:
    return _merge_call(parts, lses, None, None, False, options)[0]


def _merge_lse(parts: Any, lses: Any, options: str) -> Any:
    return _merge_call(parts, lses, None, None, True, options)


def _merge_out(parts: Any, lses: Any, out: Any, lse: Any, options: str) -> None:
    refuse_gradients(out=out)
    _merge_call(parts, lses, out, lse, lse is not None, options)


# What the operators give, without computing it: shapes may be symbols, and only what they do not need is checked.

def _out_type(options: str, of: torch.dtype) -> torch.dtype:
    name = options_of(options).out_dtype
    return of if name is None else getattr(torch, name)


def _fake_checked(q: Any, k: Any, v: Any, ranks: Tuple[int, int]) -> None:
    refuse_gradients(q=q, k=k, v=v)
    for name, x, n in (("q", q, ranks[0]), ("k", k, ranks[1]), ("v", v, ranks[1])):
        if x.dim() != n:
            raise InvalidArgument(f"{name}.shape is {tuple(x.shape)}; accepted: {n} dimensions")
        shapes.dtype_of(name, str(x.dtype).replace("torch.", ""))
        if x.dtype != q.dtype or x.device != q.device:
            raise InvalidArgument(f"{name} is {x.dtype} on {x.device}; accepted: {q.dtype} on {q.device}, as q")


def _fake_attention(q: Any, k: Any, v: Any, scale: float, options: str) -> Any:
    _fake_checked(q, k, v, (4, 4))
    return q.new_empty((*q.shape[:3], v.shape[3]), dtype=_out_type(options, q.dtype))


def _fake_attention_lse(q: Any, k: Any, v: Any, scale: float, options: str) -> Any:
    return _fake_attention(q, k, v, scale, options), q.new_empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32)


def _fake_varlen(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    _fake_checked(q, k, v, (4 if rest[0] is None else 3, 4 if rest[1] is None else 3))
    return q.new_empty((*q.shape[:-1], v.shape[-1]), dtype=_out_type(rest[8], q.dtype))


def _fake_varlen_lse(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return _fake_varlen(q, k, v, *rest), q.new_empty(_lse_shape(q, rest[0]), dtype=torch.float32)


def _fake_merge(parts: Any, lses: Any, options: str) -> Any:
    refuse_gradients(parts=parts, lses=lses)
    return parts.new_empty(parts.shape[1:], dtype=_out_type(options, parts.dtype))


def _fake_merge_lse(parts: Any, lses: Any, options: str) -> Any:
    _, b, s, h, _ = parts.shape
    return _fake_merge(parts, lses, options), parts.new_empty((b, h, s), dtype=torch.float32)


def _fake_out(*tensors: Any) -> None:
    refuse_gradients(**{f"argument {i}": x for i, x in enumerate(tensors) if isinstance(x, torch.Tensor)})


def _autocast(name: str, device_type: str) -> Callable[..., Any]:
    """q, k and v in the type of autocast; all else as it is."""
    key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA if device_type == "cuda" else torch._C.DispatchKey.AutocastCPU)

    def cast(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(key):
            to = torch.get_autocast_dtype(device_type)
            low = [x.to(to) if x.dtype in (torch.float16, torch.bfloat16, torch.float32) else x for x in (q, k, v)]
            return getattr(torch.ops.fagen, name).default(*low, *rest)
    return cast


def _define(name: str, schema: str, kernel: Callable[..., Any], fake: Callable[..., Any], casts: bool) -> None:
    _library.define(f"{name}({schema}", tags=_tags)
    for key in ("CUDA", "CPU"):
        _library.impl(name, kernel, key)
    torch.library.register_fake(f"fagen::{name}", fake, lib=_library)
    if casts:
        for key, kind in (("AutocastCUDA", "cuda"), ("AutocastCPU", "cpu")):
            _library.impl(name, _autocast(name, kind), key)


for _row in (
    ("attention", f"{DENSE}, {OPTIONS}) -> Tensor", _attention, _fake_attention, True),
    ("attention_lse", f"{DENSE}, {OPTIONS}) -> (Tensor, Tensor)", _attention_lse, _fake_attention_lse, True),
    ("attention_out", f"{DENSE}, {TO}, {OPTIONS}) -> ()", _attention_out, _fake_out, False),
    ("varlen_attention", f"{VARLEN}, {MAXIMA}, {OPTIONS}) -> Tensor", _varlen_attention, _fake_varlen, True),
    ("varlen_attention_lse", f"{VARLEN}, {MAXIMA}, {OPTIONS}) -> (Tensor, Tensor)", _varlen_attention_lse, _fake_varlen_lse, True),
    ("varlen_attention_out", f"{VARLEN}, {MAXIMA}, {TO}, {OPTIONS}) -> ()", _varlen_attention_out, _fake_out, False),
    ("merge", f"{MERGE}, str options) -> Tensor", _merge_one, _fake_merge, False),
    ("merge_lse", f"{MERGE}, str options) -> (Tensor, Tensor)", _merge_lse, _fake_merge_lse, False),
    ("merge_out", f"{MERGE}, {TO}, str options) -> ()", _merge_out, _fake_out, False),
):
    _define(*_row)
