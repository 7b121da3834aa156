"""fagen.attention_backward and fagen.varlen_attention_backward: the gradients of q, k and v from those of out and lse."""
from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Tuple, Union

from . import _abi, _dense, _stage, _varlen
from . import _shapes as shapes
from ._attention import context_of, dtype_name, stream_of
from ._dense import log_sums
from ._dropout import RNG, probability, state
from ._mask import Window, mask_of, scale_of
from ._plan import K, LSE, O, Plan, Plans, Q, V, word
from ._view import View, empty_like, is_jax, is_torch, view
from ._context import Context
from .errors import InvalidArgument, invalid

GRAD_O, GRAD_LSE = word("grad_o.ptr"), word("grad_lse")
NAMES = _abi.GRADIENTS
WRITTEN = tuple(word(f"{name}.ptr") for name in NAMES)
Triple = Tuple[Any, Any, Any]
_plans = Plans()


class Saved(NamedTuple):
    """Views of what the forward read and wrote."""
    q: View
    k: View
    v: View
    out: View
    lse: View


class Gradients(NamedTuple):
    """Views of what is given, of out and of lse, and of what is written."""
    out: View
    lse: Optional[View]
    written: Tuple[View, View, View]


def attention_backward(grad_out: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, *, grad_lse: Any = None, causal: bool = False,
                       window: Window = None, diagonal: Union[str, int] = "bottom-right", scale: Optional[float] = None,
                       grad_q: Any = None, grad_k: Any = None, grad_v: Any = None, grad_dtype: Optional[str] = None,
                       deterministic: bool = False, accumulate: bool = False, dropout_p: float = 0.0, rng: Any = None,
                       stream: Optional[int] = None, device: Union[None, str, Context] = None) -> Triple:
    """The gradients (grad_q, grad_k, grad_v) of what fagen.attention(q, k, v, return_lse=True) gave as (out, lse).

    grad_out [b, sq, hq, dv]: of out's type. grad_lse [b, hq, sq]: float32, packed; None: all 0.
    q, k, v, causal, window, diagonal, scale, dropout_p, rng: those of that call. S and dS are computed again from them and lse. A call with
        tf32 has gradients that are multiplied as float32.
    grad_q, grad_k, grad_v: tensors to write to, of the shapes of q, k and v and of one type; None: new ones, packed.
    grad_dtype: "float32", or None for q's. Not beside grad_q, grad_k or grad_v, whose own type counts.
    deterministic: equal arguments give equal bits. False: a kernel may add in the order in which its blocks finish.
    accumulate: the gradients are added to what grad_q, grad_k and grad_v hold, float32, all given.
    The rest is as in fagen.attention. Exactly 0: rows of queries that see no key, and of keys that no query sees.
    Tensors of PyTorch and JAX need no call of this: autograd and jax.grad make it."""
    options = dict(grad_lse=grad_lse, causal=causal, window=window, diagonal=diagonal, scale=scale, grad_dtype=grad_dtype,
                   deterministic=deterministic, dropout_p=dropout_p, rng=rng, device=device)
    given = (grad_q, grad_k, grad_v)
    if is_torch(q):
        from . import torch as of_torch
        not_here(given, accumulate, stream, "operators give new tensors, on PyTorch's current stream")
        return of_torch.attention_backward(grad_out, q, k, v, out, lse, **options)
    if is_jax(q):
        from . import jax as of_jax
        not_here(given, accumulate, stream, "arrays of JAX are immutable, and XLA has the stream")
        return of_jax.attention_backward(grad_out, q, k, v, out, lse, **options)
    saved = saved_of(q, k, v, out, lse, stream)
    _dense.checked(saved.q, saved.k, saved.v)
    ctx, at, mask, factor = context_of(saved.q, device), stream_of(saved, stream), mask_of(causal, window, diagonal), scale_of(scale)
    made, gradients = gradients_of((q, k, v), saved, grad_out, grad_lse, given, grad_dtype, accumulate, False, stream)
    p = probability(dropout_p)
    key = (ctx, mask, factor, deterministic, accumulate, p)
    tensors = tensors_of(saved, gradients, state(rng, p, saved.q, stream))

    def plan() -> Plan:
        args = _dense.arguments(ctx, saved.q, saved.k, saved.v, saved.out, saved.lse, mask, factor, False, False, p)
        return Plan(ctx, with_gradients(args, saved, gradients, deterministic, accumulate))
    run(key, tensors, plan, at)
    return made


def varlen_attention_backward(grad_out: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, *, grad_lse: Any = None, cu_seqlens_q: Any = None,
                              cu_seqlens_k: Any = None, seqlens_q: Any = None, seqlens_k: Any = None, max_seqlen_q: Optional[int] = None,
                              max_seqlen_k: Optional[int] = None, causal: bool = False, window: Window = None,
                              diagonal: Union[str, int] = "bottom-right", scale: Optional[float] = None, grad_q: Any = None,
                              grad_k: Any = None, grad_v: Any = None, grad_dtype: Optional[str] = None, deterministic: bool = False,
                              accumulate: bool = False, dropout_p: float = 0.0, rng: Any = None, stream: Optional[int] = None,
                              device: Union[None, str, Context] = None) -> Triple:
    """The gradients (grad_q, grad_k, grad_v) of what fagen.varlen_attention(q, k, v, return_lse=True) gave as (out, lse).

    grad_out has the shape of out, grad_lse that of lse. Lengths are those of that call; keys in pages have no gradients. Rows past a
    length are neither read nor written: in new tensors they are 0. The rest is as in fagen.attention_backward."""
    options = dict(grad_lse=grad_lse, causal=causal, window=window, diagonal=diagonal, scale=scale, grad_dtype=grad_dtype,
                   deterministic=deterministic, dropout_p=dropout_p, rng=rng, device=device)
    lengths = dict(cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, seqlens_q=seqlens_q, seqlens_k=seqlens_k)
    given = (grad_q, grad_k, grad_v)
    if is_torch(q):
        from . import torch as of_torch
        not_here(given, accumulate, stream, "operators give new tensors, on PyTorch's current stream")
        return of_torch.varlen_attention_backward(grad_out, q, k, v, out, lse, max_seqlen_q=max_seqlen_q, max_seqlen_k=max_seqlen_k,
                                                  **lengths, **options)
    batch = _varlen.batch_of(q, k, v, {**lengths, "page_table": None}, max_seqlen_q, max_seqlen_k, stream)
    _varlen.checked(batch)
    saved = Saved(batch.q, batch.k, batch.v, view("out", out, stream), view("lse", lse, stream))
    ctx, at, mask, factor = context_of(saved.q, device), stream_of(saved, stream), mask_of(causal, window, diagonal), scale_of(scale)
    made, gradients = gradients_of((q, k, v), saved, grad_out, grad_lse, given, grad_dtype, accumulate, True, stream)
    p = probability(dropout_p)
    key = (ctx, batch.sq, batch.sk, mask, factor, deterministic, accumulate, p)
    tensors = tensors_of(saved, gradients, state(rng, p, saved.q, stream)) + _varlen.arrays_of(batch)

    def plan() -> Plan:
        args = _varlen.arguments(ctx, batch, saved.out, saved.lse, mask, factor, False, False, p)
        return Plan(ctx, with_gradients(args, saved, gradients, deterministic, accumulate))
    run(key, tensors, plan, at)
    return made


def not_here(given: Tuple[Any, ...], accumulate: bool, stream: Any, why: str) -> None:
    """What only libraries without autograd have."""
    shapes.unused({**dict(zip(NAMES, given)), "stream": stream}, [None], why)
    shapes.unused({"accumulate": accumulate}, [False], why)


def saved_of(q: Any, k: Any, v: Any, out: Any, lse: Any, stream: Optional[int] = None) -> Saved:
    return Saved(*(view(name, x, stream) for name, x in zip(Saved._fields, (q, k, v, out, lse))))


def gradients_of(inputs: Triple, saved: Saved, grad_out: Any, grad_lse: Any, given: Triple, grad_dtype: Any, accumulate: bool,
                 cleared: bool, stream: Optional[int]) -> Tuple[Triple, Gradients]:
    """The tensors to write to, the caller's or new ones, cleared where not all rows are written; and the views of all gradients."""
    if grad_dtype is not None and any(x is not None for x in given):
        raise invalid("grad_dtype", repr(grad_dtype), "None beside grad_q, grad_k or grad_v, whose own type counts")
    for name, x in zip(NAMES, given):
        if accumulate and x is None:
            raise InvalidArgument(f"{name} is None; accepted with accumulate: a tensor to add to")
    like = next((view(name, x, stream).dtype for name, x in zip(NAMES, given) if x is not None), None)
    dtype = like or (saved.q.dtype if grad_dtype is None else dtype_name(grad_dtype))
    if like is None:
        shapes.output_dtype("grad_dtype", dtype, saved.q.dtype)
    made: List[Any] = []
    for name, x, of, its in zip(NAMES, given, inputs, saved):
        if x is None:
            x = empty_like(of, its.shape, dtype, name)
            if cleared:
                x[...] = 0
        made.append(x)
    q, k, v = (view(name, x, stream) for name, x in zip(NAMES, made))
    lse = None if grad_lse is None else view("grad_lse", grad_lse, stream)
    return (made[0], made[1], made[2]), Gradients(view("grad_out", grad_out, stream), lse, (q, k, v))


def with_gradients(args: _abi.Args, saved: Saved, gradients: Gradients, deterministic: bool, accumulate: bool) -> _abi.Args:
    """The forward's fa_args, made those of its backward. Raises InvalidArgument."""
    shapes.flag("deterministic", deterministic)
    shapes.flag("accumulate", accumulate)
    shapes.rank("grad_out", gradients.out, len(saved.out.shape), "those of out")
    shapes.same("grad_out", gradients.out, "dtype", saved.out.dtype, "out")
    shapes.same("grad_out", gradients.out, "device", saved.q.device, "q")
    shapes.equal("grad_out", gradients.out, saved.out.shape, "that of out")
    if gradients.lse is not None:
        log_sums("grad_lse", gradients.lse, saved.q, saved.lse.shape, "that of lse", False)
        if any(n > 1 and s != of for n, s, of in zip(saved.lse.shape, gradients.lse.strides, saved.lse.strides)):
            raise invalid("grad_lse.strides", gradients.lse.strides, f"{saved.lse.strides}, those of lse")
    dtype = gradients.written[0].dtype
    for name, x, its, of in zip(NAMES, gradients.written, saved, "qkv"):
        shapes.rank(name, x, len(its.shape), f"those of {of}")
        shapes.equal(name, x, its.shape, f"that of {of}")
        shapes.same(name, x, "device", saved.q.device, "q")
        shapes.writable(name, x)
        args_dtype = shapes.output_dtype(f"{name}.dtype", x.dtype, saved.q.dtype)
        shapes.same(name, x, "dtype", dtype, "grad_q")
        args.grad_dtype = args_dtype
        setattr(args, name, _varlen.tensor(name, x, args.b, False)[0])
    if accumulate and dtype != "float32":
        raise invalid("grad_q.dtype", dtype, "float32 with accumulate")
    args.grad_o, expanded = _varlen.tensor("grad_out", gradients.out, args.b, True)
    args.op = _abi.FA_BACKWARD
    args.flags |= (_abi.FA_BROADCAST if expanded else 0) | (_abi.FA_DETERMINISTIC if deterministic else 0) \
        | (_abi.FA_ACCUMULATE if accumulate else 0)
    return args


def tensors_of(saved: Saved, gradients: Gradients, rng: Optional[View] = None) -> List[Tuple[int, View]]:
    """Each view with its word of fa_args."""
    both = list(zip((Q, K, V, O, LSE), saved)) + list(zip(WRITTEN, gradients.written)) + [(GRAD_O, gradients.out)]
    return both + ([] if gradients.lse is None else [(GRAD_LSE, gradients.lse)]) + ([] if rng is None else [(RNG, rng)])


def run(key: Tuple[Any, ...], tensors: List[Tuple[int, View]], plan: Callable[[], Plan], stream: int) -> None:
    """Finds or makes the plan, and launches it."""
    key += tuple((w, x.shape, x.strides, x.dtype, x.device, x.readonly) for w, x in tensors)
    found: Optional[Plan] = _plans.find(key)
    if found is None:
        found = _plans.keep(key, plan())
    _stage.run(found, tensors, WRITTEN, stream)
