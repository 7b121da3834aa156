"""V inside K: v is the first head_dim_v columns of k, and one read of a row serves both, as in decoding with MLA's compressed cache."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from . import _abi, _dense, _keywords, _score, _stage, _varlen
from . import _shapes as shapes
from ._attention import context_of, output, stream_of
from ._dropout import RNG, probability, state
from ._mask import integer, mask_of, scale_of
from ._plan import K, LSE, O, Plan, Plans, Q
from ._stage import Staged
from ._view import View, empty_like, is_jax, is_torch, traced, view
from .errors import GradientUnsupported, Unsupported, invalid

WHY = "V inside K has no gradients, and is no operator of PyTorch or JAX"
_plans = Plans()


def columns(k: View, v: Any, head_dim_v: Any, stream: Optional[int]) -> View:
    """The view of v: the first columns of k. A v that is given must be just that. Raises InvalidArgument."""
    shapes.rank("k", k, max(len(k.shape), 1), "rows of d")
    shapes.head_dim("k", k.shape[-1])
    dv = integer("head_dim_v", head_dim_v, 1, k.shape[-1])
    of = k._replace(shape=(*k.shape[:-1], dv))
    if v is None:
        return of
    given, wanted = view("v", v, stream), f"None, or k[..., :{dv}], in k's memory, with head_dim_v={dv}"
    if given.shape != of.shape:
        raise invalid("v.shape", given.shape, f"{of.shape}: {wanted}")
    shapes.same("v", given, "dtype", k.dtype, "k")
    shapes.same("v", given, "device", k.device, "k")
    if 0 not in of.shape and given.address != k.address:
        raise invalid("v", f"a tensor at {given.address:#x}", wanted)
    if any(n > 1 and step != its for n, step, its in zip(of.shape, given.strides, k.strides)):
        raise invalid("v.strides", given.strides, f"{k.strides}, those of k: {wanted}")
    return of


def refuse(q: Any, k: Any, program: Optional[_score.Score], low: Dict[str, Any]) -> None:
    """Raises for what does not go with V inside K."""
    shapes.unused(low, [None], "K and V of few bits are tensors of their own, without head_dim_v")
    if is_jax(q):
        raise Unsupported(f"q is an array of JAX; accepted with head_dim_v: PyTorch, numpy and others; of JAX v as an array: {WHY}")
    if not is_torch(q):
        return
    from ._torch_ops import dispatch, no_gradient
    if traced() or dispatch.functorch():
        raise Unsupported(f"q is a tensor of a program that PyTorch traces, or within torch.func; accepted with head_dim_v: a call outside "
                          f"of torch.compile, as by torch.compiler.disable(), or v as a tensor: {WHY}")
    no_gradient.refuse(WHY, q=q, **({"k": k} if is_torch(k) else {}))
    if program is not None and _score.wants_gradient(program, q=q, k=k):
        raise GradientUnsupported(f"score has operands whose requires_grad is True; accepted with head_dim_v: none, or a call within "
                                  f"torch.no_grad(): {WHY}")


def attention(q: Any, k: Any, v: Any, head_dim_v: Any, *, arrays: Optional[Dict[str, Any]], most: Tuple[Any, Any], causal: Any, window: Any,
              diagonal: Any, scale: Any, return_lse: bool, out: Any, lse: Any, out_dtype: Any, tf32: Any, deterministic: Any,
              batch_invariant: Any, dropout_p: Any, rng: Any, softcap: Any, alibi_slopes: Any, attn_mask: Any, sinks: Any, score: Any,
              q_scale: Any, k_scale: Any, v_scale: Any, o_scale: Any, cache_format: Any, v_format: Any, stream: Optional[int], device: Any) -> Any:
    """A dense batch, or with `arrays` one of sequences of different lengths."""
    if head_dim_v is None:
        raise invalid("v", None, "a tensor; or None beside head_dim_v, where V is the first head_dim_v columns of k")
    dense = arrays is None
    program = _keywords.asked(score, softcap, alibi_slopes, attn_mask, sinks, causal, *((q, k) if dense else ()))
    refuse(q, k, program, dict(q_scale=q_scale, k_scale=k_scale, v_scale=v_scale, o_scale=o_scale, cache_format=cache_format, v_format=v_format))
    shapes.flag("deterministic", deterministic)
    shapes.flag("batch_invariant", batch_invariant)
    current = _score.stream_of_torch(q, stream)
    q_view, k_view = view("q", q, stream), view("k", k, stream)
    inputs = q_view, k_view, columns(k_view, v, head_dim_v, stream)
    at, ctx = stream_of(inputs[:2], current), context_of(q_view, device)
    listed: List[Tuple[int, View]] = []
    if arrays is None:
        _dense.checked(*inputs)
        of_lse, (b, sq), sk = _dense.lse_shape(q_view), q_view.shape[:2], k_view.shape[1]
        lengths = {"b": b, "hq": q_view.shape[2], "hkv": k_view.shape[2], "sq": sq, "sk": sk, "tq": b * sq, "tk": b * sk}
    else:
        batch = _varlen.batch_of(q, k, k, arrays, *most, stream)._replace(v=inputs[2])
        _varlen.checked(batch)
        of_lse, lengths, listed = _varlen.lse_shape(batch), _score.lengths_of(batch), _varlen.arrays_of(batch)
    out, result = output(q, q_view, out, (*q_view.shape[:-1], inputs[2].shape[-1]), out_dtype, stream)
    sums = empty_like(q, of_lse, "float32", "lse") if return_lse and lse is None else lse
    lse_view = None if sums is None else view("lse", sums, stream)
    mask, factor, p = mask_of(causal, window, diagonal), scale_of(scale), probability(dropout_p)
    random = state(rng, p, q_view, stream)
    tensors: List[Tuple[int, View]] = [(Q, q_view), (K, k_view), (O, result), *listed]  # V has no word of its own
    tensors += [(LSE, lse_view)] if lse_view is not None else []
    tensors += [(RNG, random)] if random is not None else []

    def arguments() -> _abi.Args:
        args = _dense.arguments(ctx, *inputs, result, lse_view, mask, factor, tf32, True, p) if dense else \
            _varlen.arguments(ctx, batch, result, lse_view, mask, factor, tf32, True, p)
        args.v, args.layout_flags = _abi.Tensor(), _abi.FA_V_IN_K
        args.flags |= _abi.FA_BATCH_INVARIANT if batch_invariant else 0
        return args

    key: Tuple[Any, ...] = (ctx, inputs[2].shape[-1], dense or batch[4:], mask, factor, tf32, p, batch_invariant)
    if program is not None:
        _score.launch(ctx, program, ("v in k", *key), arguments, tensors, q_view, lengths, at)
        return (out, sums) if return_lse else out
    key += (tuple((w, x[1:6]) for w, x in tensors),)
    found: Optional[Plan] = _plans.find(key)
    if found is None:
        found = _plans.keep(key, Plan(ctx, arguments()))
    _stage.put(found, q, [Staged(w, x, w in (O, LSE)) for w, x in tensors], stream, at)
    return (out, sums) if return_lse else out
