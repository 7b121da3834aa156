"""fagen.varlen_attention: sequences of different lengths, packed, padded or in pages."""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from . import _abi, _keywords, _score, _stage
from . import _shapes as shapes
from ._attention import context_of, output, stream_of
from ._dense import log_sums, lse_strides
from ._dropout import RNG, probability, state
from ._mask import INT32_MAX, Mask, Window, integer, mask_of, scale_of
from ._plan import K, LSE, O, Plan, Plans, Q, V, word
from ._view import View, empty_like, is_torch, view
from ._context import Context
from .errors import InvalidArgument, invalid

ARRAYS = tuple(_abi.SEQUENCES)
WORDS = {name: word(name) for name in ARRAYS}
_plans = Plans()


class Batch(NamedTuple):
    """The views of a call, None where an argument is; the most rows and keys of a sequence."""
    q: View
    k: View
    v: View
    arrays: Tuple[Optional[View], ...]  # in the order of ARRAYS
    sq: int
    sk: int

    def array(self, name: str) -> Optional[View]:
        return self.arrays[ARRAYS.index(name)]


def varlen_attention(q: Any, k: Any, v: Any, *, cu_seqlens_q: Any = None, cu_seqlens_k: Any = None, seqlens_q: Any = None,
                     seqlens_k: Any = None, page_table: Any = None, max_seqlen_q: Optional[int] = None, max_seqlen_k: Optional[int] = None,
                     causal: bool = False, window: Window = None, diagonal: Union[str, int] = "bottom-right",
                     scale: Optional[float] = None, return_lse: bool = False, out: Any = None, lse: Any = None,
                     out_dtype: Optional[str] = None, tf32: bool = False, deterministic: bool = False,
                     batch_invariant: bool = False, dropout_p: float = 0.0, rng: Any = None, softcap: float = 0.0,
                     alibi_slopes: Any = None, attn_mask: Any = None, sinks: Any = None, score: Any = None, q_scale: Any = None,
                     k_scale: Any = None, v_scale: Any = None, o_scale: Any = None, cache_format: Optional[str] = None,
                     v_format: Optional[str] = None,
                     head_dim_v: Optional[int] = None, stream: Optional[int] = None, device: Union[None, str, Context] = None) -> Any:
    """Attention for a batch of sequences of different lengths, which lie in device memory: a launch, or a replay of a graph, reads them.

    q: packed [total_q, hq, d] with cu_seqlens_q, else padded [b, sq, hq, d].
    k, v: packed [total_k, hkv, d] with cu_seqlens_k; pages [pages, page_size, hkv, d] with page_table; else padded [b, sk, hkv, d].
        A cache in the order [pages, hkv, page_size, d] is transposed by the caller, without a copy.
    cu_seqlens_q, cu_seqlens_k: int32 [b + 1]: sequence i has the rows from cu_seqlens[i] up to cu_seqlens[i + 1].
    seqlens_q, seqlens_k: int32 [b]: rows in use of padded sequences or of pages; beside cu_seqlens, which may have gaps then.
    page_table: int32 [b, n]: the pages of each sequence in order. Needs seqlens_k, excludes cu_seqlens_k.
    max_seqlen_q, max_seqlen_k: the most rows and keys that any sequence has, now or in a replay: needed of what is packed. None: what
        padding or page table have room for. A tensor of one element is read, for which the device is waited for.
    The rest is as in fagen.attention; the diagonal lies by each sequence's own lengths. Which weights dropout drops depends on where in the
        batch a sequence lies, and not on the others.
    Returns out, of q's shape with dv, or (out, lse), lse [b, hq, sq], of packed queries [hq, total_q]. Rows past a length are not written:
    in a new tensor they hold anything. Their gradients are 0. Keys in pages have no gradients: GradientUnsupported.
    Raises as fagen.attention does. Lengths and pages are not looked at on a GPU: kernels clamp what they find (Context's
    check_device_data refuses it instead).
    """
    options = dict(cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, seqlens_q=seqlens_q, seqlens_k=seqlens_k, page_table=page_table)
    program = None
    if v is None or head_dim_v is not None:
        from . import _inside
        return _inside.attention(q, k, v, head_dim_v, arrays=options, most=(max_seqlen_q, max_seqlen_k), causal=causal, window=window,
                                 diagonal=diagonal, scale=scale, return_lse=return_lse, out=out, lse=lse, out_dtype=out_dtype, tf32=tf32,
                                 deterministic=deterministic, batch_invariant=batch_invariant, dropout_p=dropout_p, rng=rng,
                                 softcap=softcap, alibi_slopes=alibi_slopes, attn_mask=attn_mask, sinks=sinks, score=score,
                                 q_scale=q_scale, k_scale=k_scale, v_scale=v_scale, o_scale=o_scale, cache_format=cache_format,
                                 v_format=v_format, stream=stream, device=device)
    dtype = getattr(q, "dtype", None)
    given = not q_scale is k_scale is v_scale is o_scale is cache_format is v_format is None
    if given or getattr(k, "dtype", None) is not dtype or getattr(dtype, "itemsize", 2) == 1:
        from . import _low
        if _low.reads(k, v, q_scale, k_scale, v_scale, o_scale, cache_format, v_format):
            _low.refuse(q, tf32)
            program = _keywords.asked(score, softcap, alibi_slopes, attn_mask, sinks, causal)
            return _low.called(q)(q, k, v, arrays=options, most=(max_seqlen_q, max_seqlen_k), program=program,
                                  cache_format=cache_format, v_format=v_format, q_scale=q_scale, k_scale=k_scale, v_scale=v_scale,
                                  o_scale=o_scale, causal=causal, window=window, diagonal=diagonal, scale=scale, return_lse=return_lse,
                                  out=out, lse=lse, out_dtype=out_dtype, batch_invariant=batch_invariant, dropout_p=dropout_p, rng=rng,
                                  stream=stream, device=device)
    if softcap or not alibi_slopes is attn_mask is sinks is score is None:
        program = _keywords.asked(score, softcap, alibi_slopes, attn_mask, sinks, causal)
        if program is not None and is_torch(q):
            from . import torch as of_torch
            if of_torch.sees():
                return of_torch.varlen_attention_score(program, q, k, v, arrays=options, max_seqlen_q=max_seqlen_q,
                                                       max_seqlen_k=max_seqlen_k, causal=causal, window=window, diagonal=diagonal,
                                                       scale=scale, return_lse=return_lse, out=out, lse=lse, out_dtype=out_dtype, tf32=tf32,
                                                       batch_invariant=batch_invariant, dropout_p=dropout_p, rng=rng, stream=stream,
                                                       device=device)
        if program is not None:
            if _score.wants_gradient(program, q=q, k=k, v=v):
                from . import _score_gradients
                _score.stream_of_torch(q, stream)
                return _score_gradients.varlen(program, q, k, v, lengths=options, max_seqlen_q=max_seqlen_q, max_seqlen_k=max_seqlen_k,
                                               causal=causal, window=window, diagonal=diagonal, scale=scale, return_lse=return_lse, out=out,
                                               lse=lse, out_dtype=out_dtype, tf32=tf32, deterministic=deterministic,
                                               batch_invariant=batch_invariant, dropout_p=dropout_p, rng=rng, device=device)
            stream = _score.stream_of_torch(q, stream)
    if program is None and is_torch(q):
        from . import torch as of_torch
        return of_torch.varlen_attention(q, k, v, **options, max_seqlen_q=max_seqlen_q, max_seqlen_k=max_seqlen_k, causal=causal,
                                         window=window, diagonal=diagonal, scale=scale, return_lse=return_lse, out=out, lse=lse,
                                         out_dtype=out_dtype, tf32=tf32, deterministic=deterministic, batch_invariant=batch_invariant,
                                         dropout_p=dropout_p, rng=rng,
                                         stream=stream, device=device)
    mask, factor = mask_of(causal, window, diagonal), scale_of(scale)
    shapes.flag("deterministic", deterministic)
    shapes.flag("batch_invariant", batch_invariant)
    batch = batch_of(q, k, v, options, max_seqlen_q, max_seqlen_k, stream)
    at, ctx = stream_of([batch.q, batch.k, batch.v], stream), context_of(batch.q, device)
    checked(batch)
    out, result = output(q, batch.q, out, (*batch.q.shape[:-1], batch.v.shape[-1]), out_dtype, stream)
    sums, lse_view = None, None
    if return_lse or lse is not None:
        sums = empty_like(q, lse_shape(batch), "float32", "lse") if lse is None else lse
        lse_view = view("lse", sums, stream)
    p = probability(dropout_p)
    if program is not None:
        _score.varlen(program, batch, q, out, result, lse_view, ctx=ctx, mask=mask, scale=factor, tf32=tf32, stream=at, dropout=p,
                      rng=state(rng, p, batch.q, stream), invariant=batch_invariant)
        return (out, sums) if return_lse else out
    run(ctx, batch, result, lse_view, mask, factor, tf32, at, p, state(rng, p, batch.q, stream), batch_invariant)
    return (out, sums) if return_lse else out


def batch_of(q: Any, k: Any, v: Any, arrays: Dict[str, Any], sq: Optional[int], sk: Optional[int], stream: Optional[int] = None) -> Batch:
    """Views of the arguments, and the maxima where the caller left them out."""
    views = {name: view(name, x, stream) for name, x in (("q", q), ("k", k), ("v", v))}
    listed = {name: None if x is None else view(name, x, stream) for name, x in arrays.items()}
    table = listed["page_table"]
    for side, given, name, room in (("q", sq, "q", None), ("k", sk, "k", table)):
        bound = f"max_seqlen_{side}"
        if given is not None:
            given = integer(bound, given, 0, INT32_MAX)
        elif listed[f"cu_seqlens_{side}"] is not None:
            raise invalid(bound, None, f"the most rows that any sequence has: cu_seqlens_{side} lies in device memory")
        else:
            shapes.rank(name, views[name], 4, "[b, s, h, d], or [pages, page_size, h, d] with page_table")
            given = views[name].shape[1]
            if room is not None:
                shapes.rank("page_table", room, 2, "[b, n]")
                given *= room.shape[1]
        sq, sk = (given, sk) if side == "q" else (sq, given)
    return Batch(views["q"], views["k"], views["v"], tuple(listed[name] for name in ARRAYS), sq or 0, sk or 0)


def sequences(batch: Batch) -> int:
    """b, of the first argument that tells it."""
    starts = batch.array("cu_seqlens_q")
    return (starts.shape[0] - 1 if len(starts.shape) == 1 else -1) if starts is not None else batch.q.shape[0]


def lse_shape(batch: Batch) -> Tuple[int, ...]:
    if batch.array("cu_seqlens_q") is not None:
        return batch.q.shape[1], batch.q.shape[0]
    return batch.q.shape[0], batch.q.shape[2], batch.q.shape[1]


def lse_layout(batch: Batch) -> str:
    return "[hq, total_q]" if batch.array("cu_seqlens_q") is not None else "[b, hq, sq]"


def checked(batch: Batch) -> int:
    """Raises InvalidArgument for what does not go together; the fa_dtype."""
    q, k, v = batch.q, batch.k, batch.v
    table = batch.array("page_table")
    packed_q, packed_k = batch.array("cu_seqlens_q") is not None, batch.array("cu_seqlens_k") is not None
    if all(x is None for x in batch.arrays):
        raise InvalidArgument(f"{', '.join(ARRAYS)} are all None; accepted: at least one: fagen.attention computes batches without lengths")
    if table is not None and packed_k:
        raise InvalidArgument("page_table and cu_seqlens_k are both set; accepted: one of them")
    if table is not None and batch.array("seqlens_k") is None:
        raise InvalidArgument("seqlens_k is None; accepted with page_table: int32 [b]")
    shapes.rank("q", q, 3 if packed_q else 4, "[total_q, hq, d] with cu_seqlens_q" if packed_q else "[b, sq, hq, d] without cu_seqlens_q")
    layout = "[total_k, hkv, d] with cu_seqlens_k" if packed_k else "[pages, page_size, hkv, d]" if table is not None else "[b, sk, hkv, d]"
    for name, x in (("k", k), ("v", v)):
        shapes.rank(name, x, 3 if packed_k else 4, layout)
        shapes.same(name, x, "dtype", q.dtype, "q")
        shapes.same(name, x, "device", q.device, "q")
    dtype = shapes.dtype_of("q", q.dtype)
    shapes.head_dim("q", q.shape[-1])
    shapes.head_dim("v", v.shape[-1])
    if k.shape[-1] != q.shape[-1]:
        raise invalid("k.shape", tuple(k.shape), f"{q.shape[-1]} as its last dimension, d of q")
    if v.shape[:-1] != k.shape[:-1]:
        raise invalid("v.shape", tuple(v.shape), f"{tuple(k.shape[:-1])} and dv: all but the last as k")
    shapes.heads(q.shape[-2], k.shape[-2], len(q.shape) - 2)
    b = sequences(batch)
    for name, given in zip(ARRAYS, batch.arrays):
        if given is not None:
            lengths_array(name, given, q, b)
    if not packed_k and table is None and k.shape[0] != b:
        raise invalid("k.shape", tuple(k.shape), f"({b}, sk, hkv, d): a sequence for each of q")
    if table is None and not packed_k and batch.sk > k.shape[1]:
        raise invalid("max_seqlen_k", batch.sk, f"at most {k.shape[1]}, the rows of k")
    if not packed_q and batch.sq > q.shape[1]:
        raise invalid("max_seqlen_q", batch.sq, f"at most {q.shape[1]}, the rows of q")
    if table is not None and k.shape[1] and batch.sk > k.shape[1] * table.shape[1]:
        raise invalid("max_seqlen_k", batch.sk, f"at most {k.shape[1] * table.shape[1]}: page_table.shape[1] pages of {k.shape[1]} tokens")
    if table is not None and k.shape[1] < 1:
        raise invalid("k.shape[1]", k.shape[1], "page_size, at least 1")
    return dtype


def lengths_array(name: str, x: View, q: View, b: int) -> None:
    """int32, on q's device, with a row for each sequence."""
    if x.dtype != "int32":
        raise invalid(f"{name}.dtype", x.dtype, "int32")
    shapes.same(name, x, "device", q.device, "q")
    extents = _abi.SEQUENCES[name]
    wanted, bounds = len(extents), extents[0] == "b + 1"
    shapes.rank(name, x, wanted, f"[{', '.join(extents)}]")
    rows = b + 1 if bounds else b
    if x.shape[0] != rows or rows < (1 if bounds else 0):
        raise invalid(f"{name}.shape", tuple(x.shape), f"({max(rows, 1)}{', n' if wanted == 2 else ','}), of {max(b, 0)} sequences")


def tensor(name: str, x: View, b: int, broadcast: bool) -> Tuple[_abi.Tensor, bool]:
    """The fa_tensor of x, packed rows or [b, s, h, d], and whether a stride of 0 is meant."""
    if len(x.shape) != 3:
        return shapes.tensor(name, x, x.shape, x.strides, broadcast)
    step = x.shape[0] * max(x.strides[0], 1) or 1  # packed: the batch stride is ignored
    return shapes.tensor(name, x, (max(b, 1), *x.shape), (step, *x.strides), broadcast)


def plan(context: Context, batch: Batch, out: View, lse: Optional[View], mask: Mask, scale: float, tf32: bool,
         dropout: float = 0.0, invariant: bool = False) -> Plan:
    """The plan of a call. Raises InvalidArgument, Unsupported, NoFit."""
    args = arguments(context, batch, out, lse, mask, scale, tf32, True, dropout)
    args.flags |= _abi.FA_BATCH_INVARIANT if invariant else 0
    return Plan(context, args)


def arguments(context: Context, batch: Batch, out: View, lse: Optional[View], mask: Mask, scale: float, tf32: bool,
              written: bool = True, dropout: float = 0.0) -> _abi.Args:
    """fa_args of a forward call, addresses left out. written: False where out and lse are read. Raises InvalidArgument."""
    dtype = checked(batch)
    q, k, v, table = batch.q, batch.k, batch.v, batch.array("page_table")
    shape = (*q.shape[:-1], v.shape[-1])
    shapes.rank("out", out, len(shape), "[total_q, hq, dv]" if len(shape) == 3 else "[b, sq, hq, dv]")
    shapes.same("out", out, "device", q.device, "q")
    shapes.equal("out", out, shape, "q's with dv")
    if written:
        shapes.writable("out", out)
    if lse is not None:
        log_sums("lse", lse, q, lse_shape(batch), lse_layout(batch), written)
    shapes.place(context, q.device, "q")
    args = _abi.Args(dtype=shapes.precision(dtype, tf32), o_dtype=shapes.output_dtype("out.dtype", out.dtype, q.dtype), d=q.shape[-1],
                     dv=v.shape[-1], b=sequences(batch), hq=q.shape[-2], hkv=k.shape[-2], sq=batch.sq if q.shape[0] else 0,
                     sk=batch.sk if k.shape[0] else 0, mask=mask.mask,
                     window_left=mask.left, window_right=mask.right, diagonal=mask.diagonal, offset=mask.offset, scale=scale,
                     dropout=dropout)
    expanded = False
    for name, field, x in (("q", "q", q), ("k", "k", k), ("v", "v", v), ("out", "o", out)):
        t, zero = tensor(name, x, args.b, field != "o" or not written)
        setattr(args, field, t)
        expanded |= zero
    expanded |= table is not None and table.shape[0] > 1 and table.strides[0] == 0
    args.flags = _abi.FA_BROADCAST if expanded else 0
    lse_strides(args, lse)
    args.total_q = q.shape[0] if len(q.shape) == 3 else 0
    args.total_k = k.shape[0] if len(k.shape) == 3 else 0
    if table is not None:
        args.page_table_stride = table.strides[0] if table.shape[0] > 1 else max(table.shape[1], 1)
        args.page_size, args.pages = k.shape[1], k.shape[0]
    for name, given in zip(ARRAYS, batch.arrays):  # which of them there are is part of what is asked
        if given is not None:
            setattr(args, name, 256)
    return args


def arrays_of(batch: Batch) -> List[Tuple[int, View]]:
    """The arrays of lengths and pages that there are, with their words of fa_args."""
    return [(WORDS[name], x) for name, x in zip(ARRAYS, batch.arrays) if x is not None]


def run(ctx: Context, batch: Batch, out: View, lse: Optional[View], mask: Mask, scale: float, tf32: bool, stream: int,
        dropout: float = 0.0, rng: Optional[View] = None, invariant: bool = False) -> None:
    """Finds or makes the plan, and launches it."""
    tensors: List[Tuple[int, View]] = [(Q, batch.q), (K, batch.k), (V, batch.v), (O, out), *arrays_of(batch)]
    if lse is not None:
        tensors.append((LSE, lse))
    if rng is not None:
        tensors.append((RNG, rng))
    key = (ctx, batch.sq, batch.sk, mask, scale, tf32, dropout, invariant,
           tuple((w, x.shape, x.strides, x.dtype, x.device, x.readonly) for w, x in tensors))
    found: Optional[Plan] = _plans.find(key)
    if found is None:
        found = _plans.keep(key, plan(ctx, batch, out, lse, mask, scale, tf32, dropout, invariant))
    _stage.run(found, tensors, (O, LSE), stream)
