"""Attention over caches of few bits: k and v of torch.float8_e4m3fn, float8_e5m2 or int8, or bytes of a format by its name. And of q, k
and v of 8 bits."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from . import _abi, _dense, _score, _stage, _varlen
from . import _shapes as shapes
from ._append import SET
from ._attention import context_of, dtype_name, output, stream_of
from ._dropout import RNG, probability, state
from ._formats import FORMATS, TYPES, format_of, scales_of, type_name
from ._mask import mask_of, scale_of
from ._plan import K, LSE, O, Plan, Plans, Q, V
from ._stage import Staged
from ._view import View, empty_like, is_jax, packed, is_torch, torch_module, view
from ._context import Context
from .errors import GradientUnsupported, Unsupported, invalid

Q_SCALE, K_SCALE, V_SCALE, O_SCALE = (getattr(_abi.Args, name).offset // 8 for name in ("q_scale", "k_scale", "v_scale", "o_scale"))
E4M3 = "float8_e4m3fn"
CODES = {short: name for name, short in TYPES.items() if name in shapes.EIGHT}  # of Q, K and V of 8 bits
WIDE = {"float16": _abi.FA_F16, "bfloat16": _abi.FA_BF16}  # of V beside Q and K of 8 bits
NOT_BESIDE = "not computed over k and v of few bits"
_plans = Plans()


def reads(k: Any, v: Any, *given: Any) -> bool:
    """Whether a call is one of few bits: by a keyword that was given, or by the type of k or v."""
    return any(x is not None for x in given) or type_name(k) in TYPES or type_name(v) in TYPES


def refuse(q: Any, tf32: bool) -> None:
    shapes.unused({"tf32": tf32}, [False], NOT_BESIDE)
    if is_jax(q):
        raise Unsupported(f"q is an array of JAX; accepted with k and v of few bits: PyTorch, numpy and others: {NOT_BESIDE}")
    if is_torch(q) and q.requires_grad and torch_module().is_grad_enabled():
        raise GradientUnsupported("q.requires_grad is True; accepted with k and v of few bits: False, or a call within torch.no_grad()")


def called(q: Any) -> Any:
    """attention(); within a program that PyTorch compiles the one that it calls, and does not trace."""
    if is_torch(q) and torch_module().compiler.is_compiling():
        from ._torch_ops import untraced
        return untraced.attention
    return attention


def check_eight(q: View, k: str, v: str, word: Optional[str], v_word: Optional[str]) -> None:
    """Q of 8 bits: K has its type, and so has V, where it is not of 16 bits."""
    shapes.unused({"cache_format": word, "v_format": v_word}, [None], f"q is of {q.dtype}, and so are k and v")
    for name, of in (("k", k), ("v", v)):
        own = TYPES[q.dtype] if name == "k" or q.dtype != "int8" else None
        if of != own and not (name == "v" and of in WIDE):
            accepted = ([f"{own}, that of q"] if own else []) + ([", ".join(WIDE)] if name == "v" else [])
            raise invalid(f"{name}.dtype", of, ", or ".join(accepted) + ("" if own else ", beside q in int8"))


def columns_of(v: View) -> Optional[View]:
    """V whose keys have unit stride, as [b, dv, hkv, sk]. None: it lies by rows."""
    if len(v.shape) != 4 or v.shape[3] == 1 or v.strides[3] == 1 or v.strides[1] != 1:
        return None
    return v._replace(shape=(v.shape[0], v.shape[3], v.shape[2], v.shape[1]), strides=(v.strides[0], v.strides[3], v.strides[2], 1))


def attention(q: Any, k: Any, v: Any, *, arrays: Optional[Dict[str, Any]], most: Tuple[Optional[int], Optional[int]],
              program: Optional[_score.Score],
              cache_format: Optional[str], v_format: Optional[str], q_scale: Any, k_scale: Any, v_scale: Any, o_scale: Any,
              causal: bool, window: Any,
              diagonal: Any, scale: Any, return_lse: bool, out: Any, lse: Any, out_dtype: Any, batch_invariant: bool, dropout_p: float,
              rng: Any, stream: Optional[int], device: Any) -> Any:
    """A dense batch, or with `arrays` one of sequences of different lengths. program: None: scores are as they are."""
    views = {name: view(name, x, stream) for name, x in (("q", q), ("k", k), ("v", v))}
    bytes_alone = views["q"].dtype == "uint8" and cache_format in CODES
    if bytes_alone:  # of libraries that have no such type
        views = {name: x._replace(dtype=CODES[cache_format]) if x.dtype == "uint8" else x for name, x in views.items()}
        cache_format = None
    wide = views["q"].dtype in shapes.EIGHT and views["v"].dtype in WIDE
    turned = columns_of(views["v"]) if views["q"].dtype in shapes.EIGHT and arrays is None and not wide else None
    if turned is not None:  # checked as if it lay by rows
        views["v"] = views["v"]._replace(strides=packed(views["v"].shape))
    of_k, low_k = format_of("k", views["k"], cache_format, "cache_format")
    of_v, low_v = views["v"].dtype, views["v"]
    if not wide:
        of_v, low_v = format_of("v", views["v"], v_format or (cache_format if views["v"].dtype == "uint8" else None), "v_format")
    q_view = views["q"]
    eight = q_view.dtype in shapes.EIGHT
    if eight:
        check_eight(q_view, of_k, of_v, cache_format, v_format)
    for name, x in (() if eight else (("q_scale", q_scale), ("o_scale", o_scale))):
        if x is not None:
            raise invalid(name, f"{type(x).__module__}.{type(x).__name__}", f"None, beside q in {q_view.dtype}")
    numbers = {"q": q_view, "k": low_k._replace(dtype=q_view.dtype), "v": low_v._replace(dtype=q_view.dtype)}
    given = {"q_scale": q_scale, "k_scale": k_scale, "v_scale": v_scale, "o_scale": o_scale}
    scales = {name: view(name, x, stream) for name, x in given.items() if x is not None}
    shapes.flag("batch_invariant", batch_invariant)
    at, ctx = stream_of(list(views.values()), stream), context_of(q_view, device)
    listed: List[Tuple[int, View]] = []
    if arrays is None:
        _dense.checked(numbers["q"], numbers["k"], numbers["v"])
        of_lse, b = _dense.lse_shape(q_view), q_view.shape[0]
    else:
        batch = _varlen.batch_of(q, k, v, arrays, *most, stream)._replace(**numbers)
        _varlen.checked(batch)
        of_lse, b, listed = _varlen.lse_shape(batch), _varlen.sequences(batch), _varlen.arrays_of(batch)
    of_o = (*q_view.shape[:-1], low_v.shape[-1])
    if bytes_alone and out is None and out_dtype is not None and dtype_name(out_dtype) == E4M3:
        out, out_dtype = empty_like(q, of_o, "uint8", "out"), None
    out, result = output(q, q_view, out, of_o, out_dtype, stream)
    if bytes_alone and result.dtype == "uint8":
        result = result._replace(dtype=E4M3)
    sums = empty_like(q, of_lse, "float32", "lse") if return_lse and lse is None else lse
    lse_view = None if sums is None else view("lse", sums, stream)
    mask, factor, p = mask_of(causal, window, diagonal), scale_of(scale), probability(dropout_p)
    random = state(rng, p, q_view, stream)
    tensors: List[Tuple[int, View]] = [(Q, q_view), (K, views["k"]), (V, turned or views["v"]), (O, result), *listed]
    tensors += [(LSE, lse_view)] if lse_view is not None else []
    tensors += [(RNG, random)] if random is not None else []
    words = ((Q_SCALE, "q_scale"), (K_SCALE, "k_scale"), (V_SCALE, "v_scale"), (O_SCALE, "o_scale"))
    tensors += [(word, scales[name]) for word, name in words if name in scales]
    key = (ctx, of_k, of_v, turned is None, arrays is not None and batch[4:], mask, factor, p, batch_invariant)

    def filled() -> _abi.Args:
        if arrays is None:
            args = _dense.arguments(ctx, numbers["q"], numbers["k"], numbers["v"], result, lse_view, mask, factor, False, True, p)
        else:
            args = _varlen.arguments(ctx, batch, result, lse_view, mask, factor, False, True, p)
        if turned is not None:
            args.v, args.layout_flags = shapes.tensor("v", turned, turned.shape, turned.strides, True)[0], _abi.FA_V_COLUMNS
        args.v_dtype = WIDE[of_v] if wide else args.v_dtype
        return of_formats(args, None if eight else (of_k, of_v), scales, (low_k, low_v), b, q_view, batch_invariant)

    if program is not None:
        of_rows = lengths_of(q_view, numbers["v"]) if arrays is None else _score.lengths_of(batch)
        _score.launch(ctx, program, key, filled, tensors, q_view, of_rows, at, of=q if stream is None else None)
        return (out, sums) if return_lse else out
    whole = (*key, tuple((w, x[1:6]) for w, x in tensors))
    found: Optional[Plan] = _plans.find(whole)
    if found is None:
        found = _plans.keep(whole, Plan(ctx, filled()))
    _stage.put(found, q, [Staged(w, x, w in (O, LSE)) for w, x in tensors], stream, at)
    return (out, sums) if return_lse else out


def lengths_of(q: View, v: View) -> Dict[str, int]:
    """What shapes of a program's operands are made of, of a dense batch."""
    (b, sq, hq, _), (_, sk, hkv, _) = q.shape, v.shape
    return {"b": b, "hq": hq, "hkv": hkv, "sq": sq, "sk": sk, "tq": b * sq, "tk": b * sk}


def of_formats(args: _abi.Args, formats: Optional[Tuple[str, str]], scales: Dict[str, View], caches: Tuple[View, View], b: int, q: View,
               invariant: bool) -> _abi.Args:
    """The arguments as they are without formats, with them. Raises InvalidArgument."""
    if formats is not None:
        args.kv_dtype, args.v_dtype = FORMATS[formats[0]][0], FORMATS[formats[1]][0]
        if args.dtype == _abi.FA_F32:  # Q alone has that type: products are of fp16
            args.dtype, args.q_dtype, args.o_dtype = _abi.FA_F16, _abi.FA_F32, args.o_dtype or _abi.FA_F32
    args.flags |= _abi.FA_BATCH_INVARIANT if invariant else 0
    words = (_abi.C.c_uint64 * (_abi.C.sizeof(_abi.Args) // 8)).from_buffer(args)
    for name, word, cache, heads in (("q_scale", Q_SCALE, q, args.hq), ("k_scale", K_SCALE, caches[0], args.hkv),
                                     ("v_scale", V_SCALE, caches[1], args.hkv), ("o_scale", O_SCALE, q, args.hq)):
        if name in scales:
            setattr(args, name, scales_of(name, scales[name], cache, b, heads, q))
            words[word] = SET
    return args
