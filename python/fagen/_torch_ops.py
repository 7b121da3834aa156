"""The operators torch.ops.fagen.*: what torch.compile, torch.export, autocast and CUDA graphs see of fagen.

They are defined by Library.define and impl, which cost a call less than half of what torch.library.custom_op costs. Options are numbers and
words of one order, the tail of every schema; fagen.torch has the functions for people.
"""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch

from . import _abi, _dense, _merge, _stage, _varlen
from . import _shapes as shapes
from . import _context as contexts
from ._attention import context_of
from ._library import check, lib
from ._mask import Mask
from ._plan import K, LSE, O, Plan, Plans, Q, V
from ._stage import Staged
from ._view import View, packed, view
from .errors import GradientUnsupported, InvalidArgument

DENSE = "Tensor q, Tensor k, Tensor v"
VARLEN = DENSE + ", Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, Tensor? seqlens_q, Tensor? seqlens_k, Tensor? page_table"
MAXIMA = "SymInt max_seqlen_q, SymInt max_seqlen_k"
MERGE = "Tensor parts, Tensor lses"
TO = "Tensor(a!) out, Tensor(b!)? lse"
OPTIONS = "int mask, int left, int right, int diagonal, int offset, float scale, ScalarType? out_dtype, bool tf32, str device"
MERGE_OPTIONS = "ScalarType? out_dtype, str device"

_plans = Plans()
_library = torch.library.Library("fagen", "DEF")
_tags = tuple(getattr(torch.Tag, name) for name in ("pt2_compliant_tag", "needs_exact_strides") if hasattr(torch.Tag, name))
_grad = torch.is_grad_enabled


def refuse_gradients(**tensors: Any) -> None:
    """Raises GradientUnsupported where autograd would want a backward."""
    if _grad():
        for name, x in tensors.items():
            if x is not None and x.requires_grad:
                raise GradientUnsupported(f"{name}.requires_grad is True; accepted: False, or a call within torch.no_grad(): this version "
                                          "of fagen computes no gradients")


def raw_stream(index: int) -> int:
    """PyTorch's current stream of a device, its handle."""
    return torch._C._cuda_getCurrentRawStream(index)


def capture_workspace(index: int, handle: int, kept: List[Any]) -> Callable[[int, int], Tuple[int, int]]:
    """Of a stream that is captured: memory of the graph's own pool, zeroed by the graph, so that graphs and eager calls share none."""
    def make(stream: int, size: int) -> Tuple[int, int]:
        space = torch.empty(size, dtype=torch.uint8, device=f"cuda:{index}")
        kept.append(space)
        check(lib.fa_workspace_init(handle, space.data_ptr(), size, stream))
        return space.data_ptr(), size
    return make


def launch(plan: Plan, index: int, tensors: Sequence[Tuple[int, torch.Tensor]]) -> None:
    """On the current stream of the tensors' device; those of host memory on the simulated chip."""
    if plan.host:
        _stage.launch(plan, [Staged(w, view("", x), w in (O, LSE)) for w, x in tensors])
        return
    words = plan.words
    for w, x in tensors:
        words[w] = x.data_ptr()
    if torch._C._cuda_getDevice() != index:
        with torch.cuda.device(index):
            return _on_current(plan, index)
    return _on_current(plan, index)


def _on_current(plan: Plan, index: int) -> None:
    if plan.need and torch.cuda.is_current_stream_capturing():
        kept: List[Any] = []
        plan.launch(raw_stream(index), capture_workspace(index, plan.context.handle, kept))
    else:
        plan.launch(raw_stream(index))


def chosen(q: torch.Tensor, device: str) -> Tuple[Any, int]:
    """(what a plan's key has of the device, its index): the simulated chip is the caller's to change between two calls."""
    index = q.get_device()
    return (index if index >= 0 else contexts.simulator_named(), contexts.generation), index


# Dense batches.

def _dense_call(q: Any, k: Any, v: Any, out: Any, lse: Any, want: bool, options: Tuple[Any, ...]) -> Tuple[Any, Any]:
    if _grad() and (q.requires_grad or k.requires_grad or v.requires_grad):
        refuse_gradients(q=q, k=k, v=v)
    where, index = chosen(q, options[8])
    new = out is None
    key = (q.shape, k.shape, v.shape, q.stride(), k.stride(), v.stride(), q.dtype, k.dtype, v.dtype, where, want, options)
    if not new or index < 0 or k.get_device() != index or v.get_device() != index:
        key += tuple((x.shape, x.stride(), x.dtype, x.device) if x is not None else None for x in (out, lse, k, v))
    plan = _plans.find(key)
    if plan is None:
        plan = _plans.keep(key, _dense_plan(q, k, v, out, lse, want, options))
    if new:
        out = torch.empty((*q.shape[:3], v.shape[3]), dtype=options[6] or q.dtype, device=q.device)
        if want:
            lse = torch.empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device)
    tensors = ((Q, q), (K, k), (V, v), (O, out))
    launch(plan, index, tensors if lse is None else tensors + ((LSE, lse),))
    return out, lse


def _dense_plan(q: Any, k: Any, v: Any, out: Any, lse: Any, want: bool, options: Tuple[Any, ...]) -> Plan:
    views = [view(name, x) for name, x in (("q", q), ("k", k), ("v", v))]
    _dense.checked(*views)
    ctx = context_of(views[0], options[8] or None)
    result = fresh(views[0], (*q.shape[:3], v.shape[3]), options[6]) if out is None else view("out", out)
    sums = view("lse", lse) if lse is not None else fresh(views[0], (q.shape[0], q.shape[2], q.shape[1]), torch.float32) if want else None
    return _dense.plan(ctx, *views, result, sums, Mask(*options[:5]), options[5], options[7])


def fresh(of: View, shape: Tuple[int, ...], dtype: Optional[torch.dtype]) -> View:
    """The view of a packed tensor that is yet to be made."""
    name = of.dtype if dtype is None else str(dtype).replace("torch.", "")
    return View(0, shape, packed(shape), name, of.device, False, None)


def _attention(q: Any, k: Any, v: Any, *options: Any) -> Any:
    return _dense_call(q, k, v, None, None, False, options)[0]


def _attention_lse(q: Any, k: Any, v: Any, *options: Any) -> Any:
    return _dense_call(q, k, v, None, None, True, options)


def _attention_out(q: Any, k: Any, v: Any, out: Any, lse: Any, *options: Any) -> None:
    refuse_gradients(out=out)
    _dense_call(q, k, v, out, lse, lse is not None, options)


# Sequences of different lengths.

def _varlen_call(q: Any, k: Any, v: Any, rest: Tuple[Any, ...], out: Any, lse: Any, want: bool, options: Tuple[Any, ...]) -> Any:
    arrays, (sq, sk) = rest[:5], rest[5:]
    if _grad():
        refuse_gradients(q=q, k=k, v=v)
    where, index = chosen(q, options[8])
    tensors = [(Q, q), (K, k), (V, v)] + [(_varlen.WORDS[n], x) for n, x in zip(_varlen.ARRAYS, arrays) if x is not None]
    given = [(w, x) for w, x in ((O, out), (LSE, lse)) if x is not None]
    key = (tuple((w, x.shape, x.stride(), x.dtype, x.get_device()) for w, x in tensors + given), where, want, sq, sk, options)
    plan = _plans.find(key)
    if plan is None:
        plan = _plans.keep(key, _varlen_plan(q, k, v, arrays, sq, sk, out, lse, want, options))
    if out is None:
        out = torch.empty((*q.shape[:-1], v.shape[-1]), dtype=options[6] or q.dtype, device=q.device)
        if want:
            lse = torch.empty(_lse_shape(q, arrays[0]), dtype=torch.float32, device=q.device)
    launch(plan, index, tensors + [(O, out)] + ([(LSE, lse)] if lse is not None else []))
    return out, lse


def _lse_shape(q: Any, starts: Any) -> Tuple[Any, ...]:
    return (q.shape[1], q.shape[0]) if starts is not None else (q.shape[0], q.shape[2], q.shape[1])


def _varlen_plan(q: Any, k: Any, v: Any, arrays: Tuple[Any, ...], sq: int, sk: int, out: Any, lse: Any, want: bool,
                 options: Tuple[Any, ...]) -> Plan:
    batch = _varlen.batch_of(q, k, v, dict(zip(_varlen.ARRAYS, arrays)), sq, sk)
    _varlen.checked(batch)
    ctx = context_of(batch.q, options[8] or None)
    result = fresh(batch.q, (*q.shape[:-1], v.shape[-1]), options[6]) if out is None else view("out", out)
    sums = view("lse", lse) if lse is not None else fresh(batch.q, _lse_shape(q, arrays[0]), torch.float32) if want else None
    return _varlen.plan(ctx, batch, result, sums, Mask(*options[:5]), options[5], options[7])


def _varlen_attention(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return _varlen_call(q, k, v, rest[:7], None, None, False, rest[7:])[0]


def _varlen_attention_lse(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return _varlen_call(q, k, v, rest[:7], None, None, True, rest[7:])


def _varlen_attention_out(q: Any, k: Any, v: Any, *rest: Any) -> None:
    refuse_gradients(out=rest[7])
    _varlen_call(q, k, v, rest[:7], rest[7], rest[8], rest[8] is not None, rest[9:])


# Merging.

def _merge_call(parts: Any, lses: Any, out: Any, lse: Any, want: bool, out_dtype: Any, device: str) -> Any:
    refuse_gradients(parts=parts, lses=lses)
    where, index = chosen(parts, device)
    tensors = [(_merge.PART, parts), (_merge.PART_LSE, lses)]
    given = [(w, x) for w, x in ((O, out), (LSE, lse)) if x is not None]
    key = ("merge", tuple((w, x.shape, x.stride(), x.dtype, x.get_device()) for w, x in tensors + given), where, want, out_dtype, device)
    plan = _plans.find(key)
    if plan is None:
        p, s = view("parts", parts), view("lses", lses)
        _merge.checked(p, s)
        ctx = context_of(p, device or None)
        result = fresh(p, p.shape[1:], out_dtype) if out is None else view("out", out)
        sums = view("lse", lse) if lse is not None else fresh(p, _merge.lse_shape(p), torch.float32) if want else None
        plan = _plans.keep(key, _merge.plan(ctx, p, s, result, sums))
    if out is None:
        out = torch.empty(parts.shape[1:], dtype=out_dtype or parts.dtype, device=parts.device)
        if want:
            _, b, s, h, _ = parts.shape
            lse = torch.empty((b, h, s), dtype=torch.float32, device=parts.device)
    launch(plan, index, tensors + [(O, out)] + ([(LSE, lse)] if lse is not None else []))
    return out, lse


def _merge_one(parts: Any, lses: Any, out_dtype: Any, device: str) -> Any:
    return _merge_call(parts, lses, None, None, False, out_dtype, device)[0]


def _merge_lse(parts: Any, lses: Any, out_dtype: Any, device: str) -> Any:
    return _merge_call(parts, lses, None, None, True, out_dtype, device)


def _merge_out(parts: Any, lses: Any, out: Any, lse: Any, out_dtype: Any, device: str) -> None:
    refuse_gradients(out=out)
    _merge_call(parts, lses, out, lse, lse is not None, out_dtype, device)


# What the operators give, without computing it: shapes may be symbols, and only what they do not need is checked.

def _fake_checked(q: Any, k: Any, v: Any, ranks: Tuple[int, int]) -> None:
    refuse_gradients(q=q, k=k, v=v)
    for name, x, n in (("q", q, ranks[0]), ("k", k, ranks[1]), ("v", v, ranks[1])):
        if x.dim() != n:
            raise InvalidArgument(f"{name}.shape is {tuple(x.shape)}; accepted: {n} dimensions")
        shapes.dtype_of(name, str(x.dtype).replace("torch.", ""))
        if x.dtype != q.dtype or x.device != q.device:
            raise InvalidArgument(f"{name} is {x.dtype} on {x.device}; accepted: {q.dtype} on {q.device}, as q")


def _fake_attention(q: Any, k: Any, v: Any, *options: Any) -> Any:
    _fake_checked(q, k, v, (4, 4))
    return q.new_empty((*q.shape[:3], v.shape[3]), dtype=options[6] or q.dtype)


def _fake_attention_lse(q: Any, k: Any, v: Any, *options: Any) -> Any:
    return _fake_attention(q, k, v, *options), q.new_empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32)


def _fake_varlen(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    _fake_checked(q, k, v, (4 if rest[0] is None else 3, 4 if rest[1] is None else 3))
    return q.new_empty((*q.shape[:-1], v.shape[-1]), dtype=rest[7 + 6] or q.dtype)


def _fake_varlen_lse(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return _fake_varlen(q, k, v, *rest), q.new_empty(_lse_shape(q, rest[0]), dtype=torch.float32)


def _fake_merge(parts: Any, lses: Any, out_dtype: Any, device: str) -> Any:
    refuse_gradients(parts=parts, lses=lses)
    return parts.new_empty(parts.shape[1:], dtype=out_dtype or parts.dtype)


def _fake_merge_lse(parts: Any, lses: Any, out_dtype: Any, device: str) -> Any:
    _, b, s, h, _ = parts.shape
    return _fake_merge(parts, lses, out_dtype, device), parts.new_empty((b, h, s), dtype=torch.float32)


def _fake_none(*_: Any) -> None:
    refuse_gradients(out=None)


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
    ("attention_out", f"{DENSE}, {TO}, {OPTIONS}) -> ()", _attention_out, _fake_none, False),
    ("varlen_attention", f"{VARLEN}, {MAXIMA}, {OPTIONS}) -> Tensor", _varlen_attention, _fake_varlen, True),
    ("varlen_attention_lse", f"{VARLEN}, {MAXIMA}, {OPTIONS}) -> (Tensor, Tensor)", _varlen_attention_lse, _fake_varlen_lse, True),
    ("varlen_attention_out", f"{VARLEN}, {MAXIMA}, {TO}, {OPTIONS}) -> ()", _varlen_attention_out, _fake_none, False),
    ("merge", f"{MERGE}, {MERGE_OPTIONS}) -> Tensor", _merge_one, _fake_merge, False),
    ("merge_lse", f"{MERGE}, {MERGE_OPTIONS}) -> (Tensor, Tensor)", _merge_lse, _fake_merge_lse, False),
    ("merge_out", f"{MERGE}, {TO}, {MERGE_OPTIONS}) -> ()", _merge_out, _fake_none, False),
):
    _define(*_row)
