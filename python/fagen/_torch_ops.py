"""The operators torch.ops.fagen.*: what torch.compile, torch.export, autocast and CUDA graphs see of fagen.

They are defined by Library.define and impl, which cost a call less than half of what torch.library.custom_op costs. `scale` 0 stands for
1/sqrt(d); `options` is a text, as "causal" or "window=255,0;tf32", which _mask.words_of makes. fagen.torch has the functions for people.
"""
from __future__ import annotations

import threading
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import torch

from . import _context as contexts
from . import _backward, _dense, _merge, _stage, _varlen
from . import _shapes as shapes
from ._attention import context_of
from ._context import Workspace
from ._dropout import RNG, probability, state
from ._library import check, lib
from ._mask import Options, options_of, words_of
from ._plan import K, LSE, O, Plan, Plans, Q, V
from ._stage import Staged
from ._view import View, fresh, packed, view
from .errors import GradientUnsupported, InvalidArgument

DENSE = "Tensor q, Tensor k, Tensor v"
LENGTHS = "Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, Tensor? seqlens_q, Tensor? seqlens_k"
VARLEN = f"{DENSE}, {LENGTHS}, Tensor? page_table"
MAXIMA = "SymInt max_seqlen_q, SymInt max_seqlen_k"
MERGE = "Tensor parts, Tensor lses"
TO = "Tensor(a!) out, Tensor(b!)? lse"
GRADIENTS = "Tensor grad_out, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor? grad_lse"
OPTIONS = "float scale, str options"
DROPOUT = "Tensor rng, float dropout_p"

ops = torch.ops.fagen
_C = torch._C
_WATCHERS = ("_len_torch_dispatch_stack", "_is_torch_function_mode_enabled", "_is_any_autocast_enabled")
_watched = not all(hasattr(_C, name) for name in _WATCHERS)  # a PyTorch that cannot be asked: always by the dispatcher
_plans = Plans()
_library = torch.library.Library("fagen", "DEF")
_tags = tuple(getattr(torch.Tag, name) for name in ("pt2_compliant_tag", "needs_exact_strides") if hasattr(torch.Tag, name))
_grad = torch.is_grad_enabled
_Tensor = torch.Tensor
_find = _plans.find


def plain() -> bool:
    """Whether an operator's kernel may be called without PyTorch's dispatcher, which costs microseconds: nothing wants to see the call."""
    return not (_watched or _C._len_torch_dispatch_stack() or _C._is_torch_function_mode_enabled() or _C._is_any_autocast_enabled()
                or _C._functorch.peek_interpreter_stack() is not None)


class Made(NamedTuple):
    """What a plan's new outputs are like. `like`: out is as torch.empty_like(q)."""
    shape: Tuple[int, ...]
    dtype: torch.dtype
    lse: Tuple[int, ...]
    device: torch.device
    like: bool


NO_MERGE = "no gradient of a merge is computed"
NO_PAGES = "no gradient of keys in pages is computed"
NO_OUT = "what is written to out has no gradient; leave out None"


def refuse_gradients(why: str, **tensors: Any) -> None:
    """Raises GradientUnsupported where autograd would want a backward."""
    if _grad():
        for name, x in tensors.items():
            if x is not None and x.requires_grad:
                raise GradientUnsupported(f"{name}.requires_grad is True; accepted: False, or a call within torch.no_grad(): {why}")


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


def launch(plan: Plan, index: int, tensors: List[Tuple[int, torch.Tensor]], written: Tuple[int, ...] = (O, LSE)) -> None:
    """On the tensors' device; those of host memory on the simulated chip. written: the words of outputs."""
    if plan.host:
        return _stage.launch(plan, [Staged(w, view("", x), w in written) for w, x in tensors])
    for w, x in tensors:
        plan.words[w] = x.data_ptr()
    return on_device(plan, index)


def where(index: int) -> Tuple[Any, ...]:
    """What else a plan depends on: the simulated chip and the contexts are the caller's to change between two calls."""
    return (index, contexts.generation) if index >= 0 else (contexts.simulator_named(), contexts.generation)


# Dense batches. `drop`, here and below: rng and the probability.

Drop = Optional[Tuple[Any, float]]


def _dense_call(q: Any, k: Any, v: Any, out: Any, lse: Any, want: bool, scale: float, options: str, drop: Drop = None) -> Tuple[Any, Any]:
    index = q.get_device()
    key: Tuple[Any, ...] = (q.shape, k.shape, v.shape, q.stride(), k.stride(), v.stride(), q.dtype, k.dtype, v.dtype, index, k.get_device(),
                            v.get_device(), want, scale, options, contexts.generation)
    if index < 0:
        key += (contexts.simulator_named(), q.device, k.device, v.device)
    if out is not None:
        key += tuple((x.shape, x.stride(), x.dtype, x.device) for x in (out, lse) if x is not None)
    if drop is not None:
        key += _drop_key(drop)
    plan: Any = _find(key) or _plans.keep(key, _dense_plan(q, k, v, out, lse, want, scale, options, drop))
    if out is None:
        made = plan.made
        out = torch.empty_like(q) if made.like else torch.empty(made.shape, dtype=made.dtype, device=made.device)
        if want:
            lse = torch.empty(made.lse, dtype=torch.float32, device=made.device)
    if plan.host:
        launch(plan, index, [(Q, q), (K, k), (V, v), (O, out)] + ([] if lse is None else [(LSE, lse)]) + _drop_tensors(drop))
        return out, lse
    words = plan.words
    words[Q], words[K], words[V], words[O] = q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr()
    if lse is not None:
        words[LSE] = lse.data_ptr()
    if drop is not None:
        words[RNG] = drop[0].data_ptr()
    on_device(plan, index)
    return out, lse


def _drop_key(drop: Drop) -> Tuple[Any, ...]:
    return () if drop is None else (drop[1], drop[0].shape, drop[0].stride(), drop[0].dtype, drop[0].device)


def _drop_tensors(drop: Drop) -> List[Tuple[int, Any]]:
    return [] if drop is None else [(RNG, drop[0])]


def _dropped(drop: Drop, q: View) -> float:
    """The probability. Raises InvalidArgument for one that is none, or another rng than is read."""
    if drop is None:
        return 0.0
    p = probability(drop[1])
    state(drop[0], p, q)
    return p


def _dense_plan(q: Any, k: Any, v: Any, out: Any, lse: Any, want: bool, scale: float, options: str, drop: Drop) -> Plan:
    asked = options_of(options)
    views = view("q", q), view("k", k), view("v", v)
    _dense.checked(*views)
    ctx = context_of(views[0], asked.device or None)
    shape, sums_shape = (*q.shape[:3], v.shape[3]), (q.shape[0], q.shape[2], q.shape[1])
    result = fresh(views[0], shape, asked.out_dtype or views[0].dtype) if out is None else view("out", out)
    sums = view("lse", lse) if lse is not None else fresh(views[0], sums_shape, "float32") if want else None
    plan = _dense.plan(ctx, *views, result, sums, asked.mask, scale, asked.tf32, _dropped(drop, views[0]))
    dtype = getattr(torch, result.dtype)
    plan.made = Made(shape, dtype, sums_shape, q.device, dtype == q.dtype and tuple(q.shape) == shape and q.stride() == packed(shape))
    return plan


def _attention(q: Any, k: Any, v: Any, scale: float, options: str) -> Any:
    return _dense_call(q, k, v, None, None, False, scale, options)[0]


def _attention_lse(q: Any, k: Any, v: Any, scale: float, options: str) -> Any:
    return _dense_call(q, k, v, None, None, True, scale, options)


def _attention_dropout(q: Any, k: Any, v: Any, rng: Any, p: float, scale: float, options: str) -> Any:
    return _dense_call(q, k, v, None, None, True, scale, options, (rng, p))


def _attention_out(q: Any, k: Any, v: Any, out: Any, lse: Any, scale: float, options: str) -> None:
    refuse_gradients(NO_OUT, q=q, k=k, v=v, out=out)
    _dense_call(q, k, v, out, lse, lse is not None, scale, options)


# Sequences of different lengths. `rest`: the five arrays of _varlen.ARRAYS, then the two maxima.

def _varlen_call(q: Any, k: Any, v: Any, rest: Tuple[Any, ...], out: Any, lse: Any, want: bool, scale: float, options: str,
                 drop: Drop = None) -> Any:
    index = q.get_device()
    tensors = [(Q, q), (K, k), (V, v)] + [(w, x) for w, x in zip(_varlen.WORDS.values(), rest) if x is not None] + _drop_tensors(drop)
    given = [(w, x) for w, x in ((O, out), (LSE, lse)) if x is not None]
    key = (tuple((w, x.shape, x.stride(), x.dtype, x.device) for w, x in tensors + given), rest[5:], want, scale, options, where(index),
           drop and drop[1])
    plan: Any = _find(key) or _plans.keep(key, _varlen_plan(q, k, v, rest, out, lse, want, scale, options, drop))
    if out is None:
        made = plan.made
        out = torch.empty(made.shape, dtype=made.dtype, device=made.device)
        if want:
            lse = torch.empty(made.lse, dtype=torch.float32, device=made.device)
    launch(plan, index, tensors + [(O, out)] + ([(LSE, lse)] if lse is not None else []))
    return out, lse


def _lse_shape(q: Any, starts: Any) -> Tuple[Any, ...]:
    return (q.shape[1], q.shape[0]) if starts is not None else (q.shape[0], q.shape[2], q.shape[1])


def _varlen_plan(q: Any, k: Any, v: Any, rest: Tuple[Any, ...], out: Any, lse: Any, want: bool, scale: float, options: str,
                 drop: Drop) -> Plan:
    asked = options_of(options)
    batch = _varlen.batch_of(q, k, v, dict(zip(_varlen.ARRAYS, rest)), *rest[5:])
    _varlen.checked(batch)
    ctx = context_of(batch.q, asked.device or None)
    shape, sums_shape = (*q.shape[:-1], v.shape[-1]), _lse_shape(q, rest[0])
    result = fresh(batch.q, shape, asked.out_dtype or batch.q.dtype) if out is None else view("out", out)
    sums = view("lse", lse) if lse is not None else fresh(batch.q, sums_shape, "float32") if want else None
    plan = _varlen.plan(ctx, batch, result, sums, asked.mask, scale, asked.tf32, _dropped(drop, batch.q))
    plan.made = Made(shape, getattr(torch, result.dtype), sums_shape, q.device, False)
    return plan


def _varlen_attention(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return _varlen_call(q, k, v, rest[:7], None, None, False, *rest[7:])[0]


def _varlen_attention_lse(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return _varlen_call(q, k, v, rest[:7], None, None, True, *rest[7:])


def _varlen_attention_dropout(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return _varlen_call(q, k, v, rest[:7], None, None, True, *rest[9:], (rest[7], rest[8]))


def _varlen_attention_out(q: Any, k: Any, v: Any, *rest: Any) -> None:
    refuse_gradients(NO_OUT, q=q, k=k, v=v, out=rest[7])
    _varlen_call(q, k, v, rest[:7], rest[7], rest[8], rest[8] is not None, *rest[9:])


# Merging; of the options "out" and "device" have a meaning.

def _merge_call(parts: Any, lses: Any, out: Any, lse: Any, want: bool, options: str) -> Any:
    refuse_gradients(NO_MERGE, parts=parts, lses=lses)
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
    refuse_gradients(NO_MERGE, out=out)
    _merge_call(parts, lses, out, lse, lse is not None, options)


# Gradients: of dense batches and, `arrays` being those of _varlen.ARRAYS less pages, of sequences with lengths.

def _usable(grad_out: Any) -> Any:
    """A gradient with strides that kernels take: those of sums are expanded in every dimension."""
    plain = grad_out.stride(-1) == 1 or grad_out.shape[-1] == 1
    return grad_out if plain and any(s for n, s in zip(grad_out.shape[:-1], grad_out.stride()) if n > 1) else grad_out.contiguous()


def _backward_call(grad_out: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, grad_lse: Any, rest: Optional[Tuple[Any, ...]], scale: float,
                   options: str, drop: Drop = None) -> Any:
    grad_out, index = _usable(grad_out), q.get_device()
    grad_lse = None if grad_lse is None else grad_lse.contiguous()
    asked = options_of(options)
    dtype = getattr(torch, asked.out_dtype) if asked.out_dtype else q.dtype
    # Every element of a dense gradient is written, of sequences with lengths no row past them.
    new = torch.empty if rest is None else torch.zeros
    made = tuple(new(x.shape, dtype=dtype, device=q.device) for x in (q, k, v))
    tensors = [(Q, q), (K, k), (V, v), (O, out), (LSE, lse), (_backward.GRAD_O, grad_out), *zip(_backward.WRITTEN, made)]
    tensors += [] if grad_lse is None else [(_backward.GRAD_LSE, grad_lse)]
    tensors += [] if rest is None else [(w, x) for w, x in zip(_varlen.WORDS.values(), rest[:4]) if x is not None]
    tensors += _drop_tensors(drop)
    key = ("backward", tuple((w, x.shape, x.stride(), x.dtype, x.device) for w, x in tensors), rest and rest[4:], scale, options,
           where(index), drop and drop[1])
    plan: Any = _find(key) or _plans.keep(key, _backward_plan(grad_out, q, k, v, out, lse, grad_lse, rest, scale, asked, made, drop))
    launch(plan, index, tensors, _backward.WRITTEN)
    return made


def _backward_plan(grad_out: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, grad_lse: Any, rest: Optional[Tuple[Any, ...]], scale: float,
                   asked: Options, made: Tuple[Any, ...], drop: Drop) -> Plan:
    saved = _backward.saved_of(q, k, v, out, lse)
    batch = None if rest is None else _varlen.batch_of(q, k, v, dict(zip(_varlen.ARRAYS, (*rest[:4], None))), *rest[4:])
    if batch is None:
        _dense.checked(*saved[:3])
    else:
        _varlen.checked(batch)
    ctx = context_of(saved.q, asked.device or None)
    _, gradients = _backward.gradients_of((q, k, v), saved, grad_out, grad_lse, made, None, False, False, None)
    if batch is None:
        args = _dense.arguments(ctx, *saved, asked.mask, scale, False, False, _dropped(drop, saved.q))
    else:
        args = _varlen.arguments(ctx, batch, saved.out, saved.lse, asked.mask, scale, False, False, _dropped(drop, saved.q))
    return Plan(ctx, _backward.with_gradients(args, saved, gradients, asked.deterministic, False))


def _attention_backward(grad_out: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, grad_lse: Any, scale: float, options: str) -> Any:
    return _backward_call(grad_out, q, k, v, out, lse, grad_lse, None, scale, options)


def _varlen_attention_backward(grad_out: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, grad_lse: Any, *rest: Any) -> Any:
    return _backward_call(grad_out, q, k, v, out, lse, grad_lse, rest[:6], *rest[6:])


def _attention_dropout_backward(grad_out: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, grad_lse: Any, rng: Any, p: float, scale: float,
                                options: str) -> Any:
    return _backward_call(grad_out, q, k, v, out, lse, grad_lse, None, scale, options, (rng, p))


def _varlen_attention_dropout_backward(grad_out: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, grad_lse: Any, *rest: Any) -> Any:
    return _backward_call(grad_out, q, k, v, out, lse, grad_lse, rest[:6], *rest[8:], (rest[6], rest[7]))


# What the operators give, without computing it: shapes may be symbols, and only what they do not need is checked.

def _out_type(options: str, of: torch.dtype) -> torch.dtype:
    name = options_of(options).out_dtype
    return of if name is None else getattr(torch, name)


def _fake_checked(q: Any, k: Any, v: Any, ranks: Tuple[int, int]) -> None:
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


def _fake_attention_dropout(q: Any, k: Any, v: Any, rng: Any, p: float, scale: float, options: str) -> Any:
    return _fake_attention_lse(q, k, v, scale, options)


def _fake_varlen(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    _fake_checked(q, k, v, (4 if rest[0] is None else 3, 4 if rest[1] is None else 3))
    return q.new_empty((*q.shape[:-1], v.shape[-1]), dtype=_out_type(rest[-1], q.dtype))


def _fake_varlen_lse(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    return _fake_varlen(q, k, v, *rest), q.new_empty(_lse_shape(q, rest[0]), dtype=torch.float32)


def _fake_backward(grad_out: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
    ranks = q.dim(), k.dim()
    _fake_checked(q, k, v, ranks)
    return tuple(x.new_empty(x.shape, dtype=_out_type(rest[-1], q.dtype)) for x in (q, k, v))


def _fake_merge(parts: Any, lses: Any, options: str) -> Any:
    refuse_gradients(NO_MERGE, parts=parts, lses=lses)
    return parts.new_empty(parts.shape[1:], dtype=_out_type(options, parts.dtype))


def _fake_merge_lse(parts: Any, lses: Any, options: str) -> Any:
    _, b, s, h, _ = parts.shape
    return _fake_merge(parts, lses, options), parts.new_empty((b, h, s), dtype=torch.float32)


def _fake_out(*tensors: Any) -> None:
    refuse_gradients(NO_OUT, **{f"argument {i}": x for i, x in enumerate(tensors) if isinstance(x, torch.Tensor)})


def _autocast(name: str, device_type: str) -> Callable[..., Any]:
    """q, k and v in the type of autocast; all else as it is."""
    key = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA if device_type == "cuda" else torch._C.DispatchKey.AutocastCPU)

    def cast(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(key):
            to = torch.get_autocast_dtype(device_type)
            low = [x.to(to) if x.dtype in (torch.float16, torch.bfloat16, torch.float32) else x for x in (q, k, v)]
            return getattr(torch.ops.fagen, name).default(*low, *rest)
    return cast


# Autograd. An operator whose tensors want no gradient costs what it would cost without these.

def wanted(q: Any, k: Any, v: Any) -> bool:
    """Whether autograd wants gradients of a call."""
    return _grad() and (q.requires_grad or k.requires_grad or v.requires_grad)


def _deterministic(options: str) -> str:
    """Options of a backward: deterministic where the call or PyTorch says so, and without what speaks of the forward's output."""
    asked = options_of(options)
    return words_of(asked.mask, None, False, asked.device, asked.deterministic or torch.are_deterministic_algorithms_enabled())


class Attention(torch.autograd.Function):
    """attention_lse with its gradients. LSE is saved in any case; where no gradient of it comes, dLSE is 0."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, scale: float, options: str) -> Any:
        out, lse = _below(ops.attention_lse, _attention_lse, q, k, v, scale, options)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.set_materialize_grads(False)
        ctx.rest, ctx.chip = (scale, options), contexts.simulator_named()
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        q, k, v, out, lse = ctx.saved_tensors
        return (*_gradients(ctx, ops.attention_backward, (q, k, v, out, lse), grad_out, grad_lse, ()), None, None)


class VarlenAttention(torch.autograd.Function):
    """varlen_attention_lse with its gradients."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        out, lse = _below(ops.varlen_attention_lse, _varlen_attention_lse, q, k, v, *rest)
        ctx.save_for_backward(q, k, v, out, lse, *rest[:4])
        ctx.set_materialize_grads(False)
        ctx.rest, ctx.chip, ctx.maxima = rest[7:], contexts.simulator_named(), rest[5:7]
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        q, k, v, out, lse, *arrays = ctx.saved_tensors
        found = _gradients(ctx, ops.varlen_attention_backward, (q, k, v, out, lse), grad_out, grad_lse, (*arrays, *ctx.maxima))
        return (*found, *[None] * 9)


class AttentionDropout(torch.autograd.Function):
    """attention_dropout with its gradients."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, rng: Any, p: float, scale: float, options: str) -> Any:
        out, lse = _below(ops.attention_dropout, _attention_dropout, q, k, v, rng, p, scale, options)
        ctx.save_for_backward(q, k, v, out, lse, rng)
        ctx.set_materialize_grads(False)
        ctx.rest, ctx.chip, ctx.p = (scale, options), contexts.simulator_named(), p
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        *saved, rng = ctx.saved_tensors
        return (*_gradients(ctx, ops.attention_dropout_backward, tuple(saved), grad_out, grad_lse, (rng, ctx.p)), *[None] * 4)


class VarlenAttentionDropout(torch.autograd.Function):
    """varlen_attention_dropout with its gradients."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, *rest: Any) -> Any:
        out, lse = _below(ops.varlen_attention_dropout, _varlen_attention_dropout, q, k, v, *rest)
        ctx.save_for_backward(q, k, v, out, lse, *rest[:4], rest[7])
        ctx.set_materialize_grads(False)
        ctx.rest, ctx.chip, ctx.maxima, ctx.p = rest[9:], contexts.simulator_named(), rest[5:7], rest[8]
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad_out: Any, grad_lse: Any) -> Any:
        q, k, v, out, lse, *arrays, rng = ctx.saved_tensors
        more = (*arrays, *ctx.maxima, rng, ctx.p)
        found = _gradients(ctx, ops.varlen_attention_dropout_backward, (q, k, v, out, lse), grad_out, grad_lse, more)
        return (*found, *[None] * 11)


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


class Backward(torch.autograd.Function):
    """attention_backward, or the varlen one, as a function that has no derivative itself."""

    @staticmethod
    def forward(ctx: Any, op: Any, kernel: Any, *arguments: Any) -> Any:
        return _below(op, kernel, *arguments)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        raise GradientUnsupported("a second derivative of attention was asked for; accepted: a first one, without create_graph, or with "
                                  "tensors that do not depend on it")


def _below(op: Any, kernel: Callable[..., Any], *arguments: Any) -> Any:
    """The operator below autograd; its kernel where nothing wants to see the call."""
    if type(arguments[0]) is type(arguments[1]) is type(arguments[2]) is _Tensor and plain():
        return kernel(*arguments)
    with torch._C._AutoDispatchBelowAutograd():
        return op.default(*arguments)


def _autograd_attention(q: Any, k: Any, v: Any, scale: float, options: str) -> Any:
    if _grad() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return Attention.apply(q, k, v, scale, options)[0]
    if type(q) is type(k) is type(v) is _Tensor and plain():
        return _dense_call(q, k, v, None, None, False, scale, options)[0]
    return _below(ops.attention, _attention, q, k, v, scale, options)


def _autograd_attention_lse(q: Any, k: Any, v: Any, scale: float, options: str) -> Any:
    if wanted(q, k, v):
        return Attention.apply(q, k, v, scale, options)
    return _below(ops.attention_lse, _attention_lse, q, k, v, scale, options)


def _autograd_attention_dropout(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    if wanted(q, k, v):
        return AttentionDropout.apply(q, k, v, *rest)
    return _below(ops.attention_dropout, _attention_dropout, q, k, v, *rest)


def _autograd_varlen_dropout(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    if not wanted(q, k, v):
        return _below(ops.varlen_attention_dropout, _varlen_attention_dropout, q, k, v, *rest)
    if rest[4] is not None:
        refuse_gradients(NO_PAGES, q=q, k=k, v=v)
    return VarlenAttentionDropout.apply(q, k, v, *rest)


def _autograd_varlen(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    if wanted(q, k, v):
        return _varlen_with_gradients(q, k, v, *rest)[0]
    return _below(ops.varlen_attention, _varlen_attention, q, k, v, *rest)


def _autograd_varlen_lse(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    if wanted(q, k, v):
        return _varlen_with_gradients(q, k, v, *rest)
    return _below(ops.varlen_attention_lse, _varlen_attention_lse, q, k, v, *rest)


def _varlen_with_gradients(q: Any, k: Any, v: Any, *rest: Any) -> Any:
    if rest[4] is not None:
        refuse_gradients(NO_PAGES, q=q, k=k, v=v)
    return VarlenAttention.apply(q, k, v, *rest)


def _autograd_backward(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        op = getattr(ops, name)
        if _grad() and any(x is not None and x.requires_grad for x in arguments[:7]):
            return Backward.apply(op, kernel, *arguments)
        return _below(op, kernel, *arguments)
    return call


def _define(name: str, schema: str, kernel: Callable[..., Any], fake: Callable[..., Any], casts: bool,
            autograd: Optional[Callable[..., Any]] = None) -> None:
    _library.define(f"{name}({schema}", tags=_tags)
    for key in ("CUDA", "CPU"):
        _library.impl(name, kernel, key)
    torch.library.register_fake(f"fagen::{name}", fake, lib=_library)
    if autograd is not None:
        _library.impl(name, autograd, "Autograd")
    if casts:
        for key, kind in (("AutocastCUDA", "cuda"), ("AutocastCPU", "cpu")):
            _library.impl(name, _autocast(name, kind), key)


for _row in (
    ("attention", f"{DENSE}, {OPTIONS}) -> Tensor", _attention, _fake_attention, True, _autograd_attention),
    ("attention_lse", f"{DENSE}, {OPTIONS}) -> (Tensor, Tensor)", _attention_lse, _fake_attention_lse, True, _autograd_attention_lse),
    ("attention_out", f"{DENSE}, {TO}, {OPTIONS}) -> ()", _attention_out, _fake_out, False),
    ("varlen_attention", f"{VARLEN}, {MAXIMA}, {OPTIONS}) -> Tensor", _varlen_attention, _fake_varlen, True,
     _autograd_varlen),
    ("varlen_attention_lse", f"{VARLEN}, {MAXIMA}, {OPTIONS}) -> (Tensor, Tensor)", _varlen_attention_lse, _fake_varlen_lse,
     True, _autograd_varlen_lse),
    ("varlen_attention_out", f"{VARLEN}, {MAXIMA}, {TO}, {OPTIONS}) -> ()", _varlen_attention_out, _fake_out, False),
    ("attention_backward", f"{GRADIENTS}, {OPTIONS}) -> (Tensor, Tensor, Tensor)", _attention_backward, _fake_backward, False,
     _autograd_backward("attention_backward", _attention_backward)),
    ("varlen_attention_backward", f"{GRADIENTS}, {LENGTHS}, {MAXIMA}, {OPTIONS}) -> (Tensor, Tensor, Tensor)", _varlen_attention_backward,
     _fake_backward, False, _autograd_backward("varlen_attention_backward", _varlen_attention_backward)),
    ("attention_dropout", f"{DENSE}, {DROPOUT}, {OPTIONS}) -> (Tensor, Tensor)", _attention_dropout, _fake_attention_dropout, True,
     _autograd_attention_dropout),
    ("varlen_attention_dropout", f"{VARLEN}, {MAXIMA}, {DROPOUT}, {OPTIONS}) -> (Tensor, Tensor)", _varlen_attention_dropout,
     _fake_varlen_lse, True, _autograd_varlen_dropout),
    ("attention_dropout_backward", f"{GRADIENTS}, {DROPOUT}, {OPTIONS}) -> (Tensor, Tensor, Tensor)", _attention_dropout_backward,
     _fake_backward, False, _autograd_backward("attention_dropout_backward", _attention_dropout_backward)),
    ("varlen_attention_dropout_backward", f"{GRADIENTS}, {LENGTHS}, {MAXIMA}, {DROPOUT}, {OPTIONS}) -> (Tensor, Tensor, Tensor)",
     _varlen_attention_dropout_backward, _fake_backward, False,
     _autograd_backward("varlen_attention_dropout_backward", _varlen_attention_dropout_backward)),
    ("merge", f"{MERGE}, str options) -> Tensor", _merge_one, _fake_merge, False),
    ("merge_lse", f"{MERGE}, str options) -> (Tensor, Tensor)", _merge_lse, _fake_merge_lse, False),
    ("merge_out", f"{MERGE}, {TO}, str options) -> ()", _merge_out, _fake_out, False),
):
    _define(*_row)
