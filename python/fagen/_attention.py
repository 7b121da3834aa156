"""fagen.attention: dense batches of any library's tensors."""
from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple, Union

from . import _abi, _dense, _stage
from . import _shapes as shapes
from ._dropout import RNG, probability, state
from ._mask import Mask, Window, mask_of, scale_of
from ._plan import K, LSE, O, Plan, Plans, Q, V
from ._stage import Staged
from ._view import View, empty_like, fresh, is_jax, is_torch, view
from ._context import Context, context, simulator_named
from .errors import InvalidArgument, invalid

_plans = Plans()


def attention(q: Any, k: Any, v: Any, *, causal: bool = False, window: Window = None, diagonal: Union[str, int] = "bottom-right",
              scale: Optional[float] = None, return_lse: bool = False, out: Any = None, lse: Any = None, out_dtype: Optional[str] = None,
              tf32: bool = False, deterministic: bool = False, batch_invariant: bool = False, dropout_p: float = 0.0, rng: Any = None,
              softcap: float = 0.0, alibi_slopes: Any = None, attn_mask: Any = None, sinks: Any = None, score: Any = None,
              q_scale: Any = None, k_scale: Any = None, v_scale: Any = None, o_scale: Any = None, cache_format: Optional[str] = None,
              v_format: Optional[str] = None, head_dim_v: Optional[int] = None, stream: Optional[int] = None,
              device: Union[None, str, Context] = None) -> Any:
    """softmax(scale * Q K^T, masked) V, exact, in one kernel.

    q [b, sq, hq, d], k [b, sk, hkv, d], v [b, sk, hkv, dv]: PyTorch, JAX, numpy, or anything with DLPack or __cuda_array_interface__.
        float16, bfloat16 or float32, the same for all; d and dv from 1 to 576; hq a multiple of hkv: query head h reads key head
        h // (hq // hkv). Any strides, unit stride on the last dimension; expanded dimensions (stride 0) are fine.
    causal: query i sees the keys j with j <= i + off.
    window: (left, right): query i sees the keys j with -left <= j - (i + off) <= right; -1 or None: unbounded on that side. An integer is
        both. With causal, right is 0.
    diagonal: off: "bottom-right", sk - sq: the last query sees the last key; "top-left", 0; or an integer. A query that sees no key gives
        0, and an LSE of -inf.
    scale: above 0; None: 1 / sqrt(d).
    return_lse: (out, lse) instead of out; lse [b, hq, sq], float32, the natural logarithm of the sum of exp(scores).
    out, lse: tensors to write to; out [b, sq, hq, dv], which must not overlap the inputs, lse of any strides. None: new
        ones of q's library, packed.
    out_dtype: "float32", or None for q's. Not beside out, whose own type counts.
    tf32: float32 inputs are multiplied as TF32 on the matrix units; False: as float32. Gradients are multiplied as float32 always.
    deterministic: the gradients that PyTorch and JAX take of this call are the same bits each time. The output is so in any case.
    batch_invariant: the bits of a sequence do not depend on the others of the batch, nor on b. Not beside dropout.
    dropout_p: each weight is dropped with this probability, 0 to below 1, and the others are divided by 1 - dropout_p. The LSE is that of
        all. Which are dropped follows from rng and from batch, head, query and key alone.
    rng: int64 [2] on q's device, seed and offset, which each launch and each replay of a graph reads. None: with PyTorch drawn from its
        generator, so that torch.manual_seed() decides; with JAX a key of jax.random is needed, with other libraries rng itself.
    score: a score program, fagen.score("...") with its operands; docs/scores.md. With JAX its numbers are static.
    softcap: scores become softcap * tanh(scores / softcap); 0: none. alibi_slopes [hq] or [b, hq]: slope * |i + off - j| is subtracted
        from scores, after softcap. sinks [hq]: one more score of each row, of a key whose value is 0. Each as a program, as above.
    attn_mask: up to [b, hq, sq, sk], from the right; dimensions of length 1 are for all. Of bool: True where the query sees the key, beside
        causal and window; of float32, float16 or bfloat16: added to scores, after softcap. Read in place, expanded dimensions once.
    k, v of few bits (docs/lowbits.md): torch.float8_e4m3fn, float8_e5m2, int8, or uint8 with cache_format, the name of a format, whose last
        dimension are the bytes of a row; v_format: of v, where it is another one. k_scale, v_scale: float32: what they are multiplied by:
        [1], [hkv], [b, hkv], of each token, with the shape of k without its last dimension, of each page or sequence, [pages, 1, hkv], or
        of each column, [1, 1, hkv, d] or [b, 1, hkv, d]. No gradients; not with JAX, nor traced.
    q, k, v of 8 bits, on sm_90a: float8_e4m3fn or float8_e5m2, the same for all, or uint8 with cache_format "e4m3" or "e5m2"; d and dv
        multiples of 16. v may have its unit stride on sk, or be of float16 or bfloat16, in dense calls. out in bfloat16, float16,
        float32 or float8_e4m3fn, which is O / o_scale, at most 448. q_scale, o_scale: [1], [hq] or [b, hq]; k_scale, v_scale: [1], [hkv] or
        [b, hkv]. Otherwise as k and v of few bits. q and k of int8 beside v of float16 or bfloat16, on every chip: q_scale also
        [b, sq, hq], k_scale [b, sk, hkv].
    head_dim_v: V inside K, as FlashMLA has it: V is the first head_dim_v columns of k, v is None or k[..., :head_dim_v], and one read of a
        row of k serves both. For MLA's absorbed decoding: d = 576, head_dim_v = 512, hkv = 1. No gradients; not with JAX, nor traced, nor
        with few bits; autocast changes no type.
    stream: a CUDA stream's handle as a number; None: PyTorch's current one, or the one of q's __cuda_array_interface__, or the legacy
        default stream. The call does not wait for the kernel.
    device: a Context, or the name of one. Tensors in host memory need "sim:sm_80" or "sim:sm_90a", here or by fagen.simulator().

    The first call of a kind compiles its kernel, a few tenths of a second; later ones, in later processes too, find it.
    Raises fagen.FagenError: InvalidArgument, Unsupported, NoDriver, NoNvrtc, CaptureError and so on.
    Gradients: of q, k and v, by PyTorch's autograd and by jax.grad, not beside out; by PyTorch's also of operands of a program that are
        numbers with a fraction, among them alibi_slopes and sinks; of other libraries by fagen.attention_backward. A
    second derivative raises GradientUnsupported.
    """
    if v is None or head_dim_v is not None:
        from . import _inside
        return _inside.attention(q, k, v, head_dim_v, arrays=None, most=(None, None), causal=causal, window=window, diagonal=diagonal,
                                 scale=scale, return_lse=return_lse, out=out, lse=lse, out_dtype=out_dtype, tf32=tf32,
                                 deterministic=deterministic, batch_invariant=batch_invariant, dropout_p=dropout_p, rng=rng,
                                 softcap=softcap, alibi_slopes=alibi_slopes, attn_mask=attn_mask, sinks=sinks, score=score,
                                 q_scale=q_scale, k_scale=k_scale, v_scale=v_scale, o_scale=o_scale, cache_format=cache_format,
                                 v_format=v_format, stream=stream, device=device)
    dtype = getattr(q, "dtype", None)
    given = not q_scale is k_scale is v_scale is o_scale is cache_format is v_format is None
    if given or getattr(k, "dtype", None) is not dtype or getattr(dtype, "itemsize", 2) == 1:
        from . import _keywords, _low
        if _low.reads(k, v, q_scale, k_scale, v_scale, o_scale, cache_format, v_format):
            _low.refuse(q, tf32)
            program = _keywords.asked(score, softcap, alibi_slopes, attn_mask, sinks, causal, q, k)
            return _low.called(q)(q, k, v, arrays=None, most=(None, None), program=program, cache_format=cache_format, v_format=v_format,
                                  q_scale=q_scale, k_scale=k_scale, v_scale=v_scale, o_scale=o_scale, causal=causal, window=window,
                                  diagonal=diagonal, scale=scale, return_lse=return_lse, out=out, lse=lse, out_dtype=out_dtype,
                                  batch_invariant=batch_invariant, dropout_p=dropout_p, rng=rng, stream=stream, device=device)
    if softcap or not alibi_slopes is attn_mask is sinks is score is None:
        from . import _keywords, _score
        score = _keywords.asked(score, softcap, alibi_slopes, attn_mask, sinks, causal, q, k)
        if score is not None and (is_torch(q) or not is_jax(q)):  # what torch.compile traces sees no JAX
            options: Dict[str, Any] = dict(causal=causal, window=window, diagonal=diagonal, scale=scale, return_lse=return_lse, out=out,
                                           lse=lse, out_dtype=out_dtype, tf32=tf32, batch_invariant=batch_invariant, dropout_p=dropout_p,
                                           rng=rng, stream=stream, device=device)
            if is_torch(q):
                from . import torch as of_torch
                if of_torch.sees():
                    return of_torch.attention_score(score, q, k, v, **options)
            return _score.dense(score, q, k, v, deterministic=deterministic, **options)
    if is_torch(q):
        from . import torch as of_torch
        return of_torch.attention(q, k, v, causal=causal, window=window, diagonal=diagonal, scale=scale, return_lse=return_lse, out=out,
                                  lse=lse, out_dtype=out_dtype, tf32=tf32, deterministic=deterministic, batch_invariant=batch_invariant,
                                  dropout_p=dropout_p, rng=rng, stream=stream, device=device)
    if is_jax(q):
        from . import jax as of_jax
        shapes.unused({"out": out, "lse": lse, "stream": stream}, [None], "arrays of JAX are immutable, and XLA has the stream")
        return of_jax.attention(q, k, v, causal=causal, window=window, diagonal=diagonal, scale=scale, return_lse=return_lse,
                                out_dtype=out_dtype, tf32=tf32, deterministic=deterministic, batch_invariant=batch_invariant,
                                dropout_p=dropout_p, rng=rng, score=score, device=device)
    q_view, k_view, v_view = view("q", q, stream), view("k", k, stream), view("v", v, stream)
    if deterministic is not False or batch_invariant is not False:
        shapes.flag("deterministic", deterministic)
        shapes.flag("batch_invariant", batch_invariant)
    given, sums = None if out is None else view("out", out, stream), None if lse is None else view("lse", lse, stream)
    at = stream_of((q_view, k_view, v_view), stream)
    ctx = context_of(q_view, device)
    key = (ctx, q_view[1:6], k_view[1:6], v_view[1:6], given and given[1:6], sums and sums[1:6], causal, window, diagonal, scale,
           return_lse, out_dtype, tf32, batch_invariant, dropout_p)
    p = dropout_p if type(dropout_p) is float and dropout_p == 0 and rng is None else probability(dropout_p)
    random = state(rng, p, q_view, stream) if p or rng is not None else None
    try:
        plan = _plans.find(key)
    except TypeError:  # a window in a list, say
        plan = None
    if plan is None:
        mask, factor = mask_of(causal, window, diagonal), scale_of(scale)
        plan = _plan(ctx, (q_view, k_view, v_view), given, sums, mask, factor, return_lse, out_dtype, tf32, p, batch_invariant)
        if not isinstance(window, list):
            _plans.keep(key, plan)
    if given is None:
        out = empty_like(q, (*q_view.shape[:3], v_view.shape[3]), NAMES[plan.args.o_dtype or plan.args.dtype], "out")
        given = view("out", out, stream)
    if return_lse and sums is None:
        b, sq, hq, _ = q_view.shape
        lse = empty_like(q, (b, hq, sq), "float32", "lse")
        sums = view("lse", lse, stream)
    if plan.host:
        tensors = ((Q, q_view), (K, k_view), (V, v_view), (O, given)) + (((LSE, sums),) if sums is not None else ())
        tensors += ((RNG, random),) if random is not None else ()
        _stage.launch(plan, [Staged(w, x, w in (O, LSE)) for w, x in tensors])
        return (out, lse) if return_lse else out
    words = plan.words
    words[Q], words[K], words[V], words[O] = q_view.address, k_view.address, v_view.address, given.address
    if sums is not None:
        words[LSE] = sums.address
    if random is not None:
        words[RNG] = random.address
    plan.launch(at)
    return (out, lse) if return_lse else out


NAMES = {_abi.FA_F16: "float16", _abi.FA_BF16: "bfloat16", _abi.FA_F32: "float32", _abi.FA_TF32: "float32"}


def _plan(ctx: Context, inputs: Tuple[View, View, View], out: Optional[View], lse: Optional[View], mask: Mask, scale: float, want: bool,
          out_dtype: Any, tf32: bool, dropout: float, invariant: bool) -> Plan:
    """The plan of a call; a tensor that the caller leaves out is a packed one that is yet to be made."""
    q, _, v = inputs
    _dense.checked(*inputs)
    if out is not None and out_dtype is not None:
        raise invalid("out_dtype", repr(out_dtype), "None beside out, whose own type counts")
    if out is None:
        name = q.dtype if out_dtype is None else dtype_name(out_dtype)
        shapes.output_dtype("out_dtype", name, q.dtype)
        out = fresh(q, (*q.shape[:3], v.shape[3]), name)
    if lse is None and want:
        lse = fresh(q, (q.shape[0], q.shape[2], q.shape[1]), "float32")
    return _dense.plan(ctx, *inputs, out, lse, mask, scale, tf32, dropout, invariant)


def output(q: Any, of: View, out: Any, shape: Tuple[int, ...], out_dtype: Optional[str], stream: Optional[int]) -> Tuple[Any, View]:
    """The tensor to write to, the caller's or a new one, and its view."""
    if out is None:
        own = "bfloat16" if of.dtype in shapes.EIGHT else of.dtype
        name = own if out_dtype is None else dtype_name(out_dtype)
        shapes.output_dtype("out_dtype", name, of.dtype)
        out = empty_like(q, shape, name, "out")
    elif out_dtype is not None:
        raise invalid("out_dtype", repr(out_dtype), "None beside out, whose own type counts")
    return out, view("out", out, stream)


def dtype_name(dtype: Any) -> str:
    """ "float32" of itself, of torch.float32, of a numpy type."""
    text = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}.get(text, text.replace("torch.", ""))


def context_of(q: View, device: Union[None, str, Context]) -> Context:
    """The context that the caller named, else the one of the device that q lies on. Raises InvalidArgument."""
    if device is None and q.host:
        device = simulator_named()
        if device is None:
            raise InvalidArgument("q.device is cpu and device is None; accepted: tensors on a CUDA device, or device=\"sim:sm_90a\" (or "
                                  "\"sim:sm_80\"), which runs the kernels on a simulated chip")
    if device is None:
        device = None if q.device == "cuda" else q.device
    ctx = context(device)
    shapes.place(ctx, q.device, "q")
    return ctx


def stream_of(inputs: Sequence[View], stream: Optional[int]) -> int:
    """The stream to launch on: the caller's; else the one that the inputs' interfaces name, which must be one. 0: the legacy default."""
    if stream is not None:
        if isinstance(stream, bool) or not isinstance(stream, int) or stream < 0:
            raise invalid("stream", repr(stream), "a CUDA stream's handle as an integer, or None")
        return 0 if stream == 1 else stream
    found = 0
    for x in inputs:
        if x.stream is not None and x.stream > 1 and x.stream != found:
            if found:
                raise InvalidArgument(f"streams of the inputs are {found} and {x.stream}; accepted: one, or stream=, which waits for all")
            found = x.stream
    return found
