"""The functions of the flash_attn package by fagen: the same names, argument order and defaults, for PyTorch.

    from fagen.flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache

What fagen does not compute raises fagen.Unsupported. Gradients are autograd's, but for flash_attn_with_kvcache and keys in pages;
`deterministic` makes them the same bits each time. Caches may be of few bits (docs/lowbits.md).
The last query sees the last key where causal, as there since version 2.1. LSE is the natural logarithm, float32. Where return_attn_probs
asks for it, the third of the results is None: no matrix of probabilities is made. Which weights dropout drops follows from PyTorch's
generator; they are not those that the flash_attn package would drop.
"""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple, Union

import torch

from . import _kvcache
from . import torch as _torch
from ._attention import attention
from ._shapes import not_computed
from ._torch_ops import no_gradient
from ._varlen import varlen_attention
from .errors import InvalidArgument, invalid

Pair = Union[int, Tuple[int, int]]


Count = Union[int, torch.Tensor]


# What the operators of PyTorch do not take: score programs, and caches of few bits.
BEYOND = {"softcap", "alibi_slopes", "k_scale", "v_scale", "cache_format", "v_format"}


def _of_operators(k: torch.Tensor, options: Dict[str, Any]) -> bool:
    return not options.keys() & BEYOND and k.dtype.itemsize > 1


def _dense(q: Any, k: Any, v: Any, **options: Any) -> Any:
    """fagen.attention, by the way of score programs where scores are changed."""
    return (_torch.attention if _of_operators(k, options) else attention)(q, k, v, **options)


def _varlen(q: Any, k: Any, v: Any, **options: Any) -> Any:
    return (_torch.varlen_attention if _of_operators(k, options) else varlen_attention)(q, k, v, **options)


def _options(softmax_scale: Optional[float], causal: bool, window_size: Pair, **others: Any) -> Dict[str, Any]:
    """Keywords of fagen.attention. Raises Unsupported for what is not computed."""
    scores = {name: others.pop(name) for name in ("softcap", "alibi_slopes")}
    not_computed(0.0, **others)
    if isinstance(window_size, int):
        window_size = (window_size, window_size)
    if not isinstance(window_size, (tuple, list)) or len(window_size) != 2:
        raise invalid("window_size", repr(window_size), "(left, right), -1 for unbounded, or one integer for both")
    left, right = window_size
    window = None if left in (-1, None) and right in (-1, None) else (left, right)
    changed = scores if scores["softcap"] or scores["alibi_slopes"] is not None else {}
    return {"causal": bool(causal), "window": window, "scale": softmax_scale, **changed}


def flash_attn_func(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                    causal: bool = False, window_size: Pair = (-1, -1), softcap: float = 0.0, alibi_slopes: Optional[torch.Tensor] = None,
                    deterministic: bool = False, return_attn_probs: bool = False) -> Any:
    """q [b, sq, hq, d], k and v [b, sk, hkv, d]. out [b, sq, hq, d], or (out, lse [b, hq, sq], None)."""
    options = _options(softmax_scale, causal, window_size, softcap=softcap, alibi_slopes=alibi_slopes)
    found = _dense(q, k, v, return_lse=return_attn_probs, deterministic=deterministic, dropout_p=dropout_p, **options)
    return (*found, None) if return_attn_probs else found


def flash_attn_kvpacked_func(q: torch.Tensor, kv: torch.Tensor, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                             causal: bool = False, window_size: Pair = (-1, -1), softcap: float = 0.0,
                             alibi_slopes: Optional[torch.Tensor] = None, deterministic: bool = False,
                             return_attn_probs: bool = False) -> Any:
    """kv [b, sk, 2, hkv, d]; the rest as in flash_attn_func."""
    return flash_attn_func(q, kv[:, :, 0], kv[:, :, 1], dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic,
                           return_attn_probs)


def flash_attn_qkvpacked_func(qkv: torch.Tensor, dropout_p: float = 0.0, softmax_scale: Optional[float] = None, causal: bool = False,
                              window_size: Pair = (-1, -1), softcap: float = 0.0, alibi_slopes: Optional[torch.Tensor] = None,
                              deterministic: bool = False, return_attn_probs: bool = False) -> Any:
    """qkv [b, s, 3, h, d]; the rest as in flash_attn_func."""
    return flash_attn_func(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes,
                           deterministic, return_attn_probs)


def flash_attn_varlen_func(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seqlens_q: torch.Tensor,
                           cu_seqlens_k: Optional[torch.Tensor], max_seqlen_q: Count, max_seqlen_k: Count,
                           dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                           causal: bool = False, window_size: Pair = (-1, -1), softcap: float = 0.0,
                           alibi_slopes: Optional[torch.Tensor] = None,
                           deterministic: bool = False, return_attn_probs: bool = False, block_table: Optional[torch.Tensor] = None,
                           seqused_q: Optional[torch.Tensor] = None, seqused_k: Optional[torch.Tensor] = None) -> Any:
    """q [total_q, hq, d], k and v [total_k, hkv, d], or pages [n, page_size, hkv, d] with block_table [b, pages], where cu_seqlens_k tells
    the lengths alone. max_seqlen_q, max_seqlen_k: integers, or tensors of one, which are waited for. seqused_q, seqused_k: int32 [b], rows
    in use of each sequence; with block_table and seqused_k, cu_seqlens_k may be None. out [total_q, hq, d], or (out, lse [hq, total_q],
    None)."""
    options = _options(softmax_scale, causal, window_size, softcap=softcap, alibi_slopes=alibi_slopes)
    keys: Dict[str, Any] = {"cu_seqlens_k": cu_seqlens_k, "seqlens_q": seqused_q, "seqlens_k": seqused_k}
    if block_table is not None:
        if seqused_k is None and cu_seqlens_k is None:
            raise InvalidArgument("cu_seqlens_k and seqused_k are None; accepted with block_table: one of them")
        lengths = cu_seqlens_k.diff() if seqused_k is None else seqused_k
        keys = {"seqlens_q": seqused_q, "seqlens_k": lengths, "page_table": block_table}
    found = _varlen(q, k, v, cu_seqlens_q=cu_seqlens_q, max_seqlen_q=max_seqlen_q, max_seqlen_k=max_seqlen_k,
                                    return_lse=return_attn_probs, deterministic=deterministic, dropout_p=dropout_p, **keys, **options)
    return (*found, None) if return_attn_probs else found


def flash_attn_varlen_kvpacked_func(q: torch.Tensor, kv: torch.Tensor, cu_seqlens_q: torch.Tensor, cu_seqlens_k: torch.Tensor,
                                    max_seqlen_q: Count, max_seqlen_k: Count, dropout_p: float = 0.0, softmax_scale: Optional[float] = None,
                                    causal: bool = False, window_size: Pair = (-1, -1), softcap: float = 0.0,
                                    alibi_slopes: Optional[torch.Tensor] = None, deterministic: bool = False,
                                    return_attn_probs: bool = False, seqused_q: Optional[torch.Tensor] = None,
                                    seqused_k: Optional[torch.Tensor] = None) -> Any:
    """kv [total_k, 2, hkv, d]; the rest as in flash_attn_varlen_func."""
    return flash_attn_varlen_func(q, kv[:, 0], kv[:, 1], cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p, softmax_scale,
                                  causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs, None, seqused_q, seqused_k)


def flash_attn_varlen_qkvpacked_func(qkv: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: Count, dropout_p: float = 0.0,
                                     softmax_scale: Optional[float] = None, causal: bool = False, window_size: Pair = (-1, -1),
                                     softcap: float = 0.0, alibi_slopes: Optional[torch.Tensor] = None, deterministic: bool = False,
                                     return_attn_probs: bool = False, seqused_q: Optional[torch.Tensor] = None,
                                     seqused_k: Optional[torch.Tensor] = None) -> Any:
    """qkv [total, 3, h, d]; the rest as in flash_attn_varlen_func."""
    return flash_attn_varlen_func(qkv[:, 0], qkv[:, 1], qkv[:, 2], cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, dropout_p, softmax_scale,
                                  causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs, None, seqused_q, seqused_k)


def flash_attn_with_kvcache(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, k: Optional[torch.Tensor] = None,
                            v: Optional[torch.Tensor] = None, rotary_cos: Optional[torch.Tensor] = None,
                            rotary_sin: Optional[torch.Tensor] = None, cache_seqlens: Union[None, int, torch.Tensor] = None,
                            cache_batch_idx: Optional[torch.Tensor] = None, cache_leftpad: Optional[torch.Tensor] = None,
                            block_table: Optional[torch.Tensor] = None, softmax_scale: Optional[float] = None, causal: bool = False,
                            window_size: Pair = (-1, -1), softcap: float = 0.0, rotary_interleaved: bool = True,
                            alibi_slopes: Optional[torch.Tensor] = None, num_splits: int = 0, return_softmax_lse: bool = False, *,
                            k_scale: Optional[torch.Tensor] = None, v_scale: Optional[torch.Tensor] = None,
                            cache_format: Optional[str] = None, v_format: Optional[str] = None) -> Any:
    """q [b, sq, hq, d]; k_cache and v_cache [b, s, hkv, d], or pages [n, page_size, hkv, d] with block_table [b, pages].

    cache_seqlens: keys of each sequence, int32 [b] or one int; None: all.
    k, v [b, s_new, hkv, d]: new keys, which a launch before that of attention stores in the cache, in place, behind the cache_seqlens that
        are there; attention sees them. An integer that leaves them no room is refused. A tensor is not looked at on a GPU: then the last
        rows of the cache become the new keys, and nothing beyond it.
    rotary_cos, rotary_sin [positions, rotary_dim / 2] of any of the three types: new key i is rotated by row cache_seqlens + i, and so is
        query i where causal or a window is set; else all queries by row cache_seqlens. rotary_interleaved: elements 2 i and 2 i + 1 turn
        together; False: i and i + rotary_dim / 2. The cache must not be longer than the table.
    k_cache, v_cache of few bits: torch.float8_e4m3fn, float8_e5m2 or int8, or uint8 with cache_format, and v_format where v_cache has
        another one. k_scale, v_scale: as in fagen.attention; those of each token, [b, s, hkv] or [n, page_size, hkv], are found for new
        keys, and written.
    num_splits has no effect: each launch divides its work by the lengths. A graph may hold the call, once it was made before.
    out, or (out, lse [b, hq, sq])."""
    options = _options(softmax_scale, causal, window_size, softcap=softcap, alibi_slopes=alibi_slopes)
    options["return_lse"] = return_softmax_lse
    given = {"k_scale": k_scale, "v_scale": v_scale, "cache_format": cache_format, "v_format": v_format}
    low = {name: x for name, x in given.items() if x is not None}
    no_gradient.refuse("a cache has no gradient; flash_attn_func computes it", q=q, k_cache=k_cache, v_cache=v_cache, k=k, v=v)
    several = [name for name, x in (("cache_batch_idx", cache_batch_idx), ("cache_leftpad", cache_leftpad), ("block_table", block_table))
               if x is not None]
    if len(several) > 1:
        raise InvalidArgument(f"{' and '.join(several)} are both set; accepted: one of them")
    if (k is None) != (v is None):
        raise InvalidArgument(f"{'k' if k is None else 'v'} is None; accepted: k and v, or neither")
    if q.dim() != 4:
        raise invalid("q.shape", tuple(q.shape), "4 dimensions, [b, sq, hq, d]")
    if k_cache.dim() != 4:
        raise invalid("k_cache.shape", tuple(k_cache.shape), "4 dimensions, [b, s, hkv, d] or pages [n, page_size, hkv, d]")
    b, s = q.shape[0], k_cache.shape[1] * (block_table.shape[1] if block_table is not None else 1)
    rotation = _kvcache.rotation_of(rotary_cos, rotary_sin, rotary_interleaved, k, s)
    if isinstance(cache_seqlens, bool) or not isinstance(cache_seqlens, (int, torch.Tensor, type(None))):
        raise invalid("cache_seqlens", repr(cache_seqlens), "int32 [b], an integer, or None")
    room = s if k is None else s - k.shape[1]
    if isinstance(cache_seqlens, int) and not 0 <= cache_seqlens <= room:
        raise invalid("cache_seqlens", cache_seqlens, f"0 to {room}" + ("" if k is None else f", beside {k.shape[1]} new keys"))
    if cache_seqlens is None and k is not None:
        raise invalid("cache_seqlens", None, "int32 [b] or an integer beside k: the keys that are there")
    if cache_seqlens is None and not several:
        return _dense(q, k_cache, v_cache, **options, **low)
    if not isinstance(cache_seqlens, torch.Tensor):
        cache_seqlens = torch.full((b,), s if cache_seqlens is None else cache_seqlens, dtype=torch.int32, device=q.device)
    table = block_table
    if cache_batch_idx is not None:  # each cached sequence is a page
        table = cache_batch_idx.to(torch.int32).reshape(b, 1)
    if k is not None:
        assert v is not None
        q, cache_seqlens = _kvcache.stored(q, k, v, k_cache, v_cache, cache_seqlens, table, rotation,
                                           causal or options["window"] is not None, {n: low[n] for n in low if "format" in n}, given)
    if table is not None:
        return _varlen(q, k_cache, v_cache, seqlens_k=cache_seqlens, page_table=table, **options, **low)
    if cache_leftpad is not None:
        if not (k_cache.is_contiguous() and v_cache.is_contiguous()):
            raise invalid("k_cache.strides", k_cache.stride(), "contiguous k_cache and v_cache beside cache_leftpad")
        starts = torch.arange(b + 1, dtype=torch.int32, device=q.device) * s
        starts[:b] += cache_leftpad.to(torch.int32)
        low = {name: x.flatten(0, 1) if isinstance(x, torch.Tensor) and x.dim() == 3 else x for name, x in low.items()}
        return _varlen(q, k_cache.flatten(0, 1), v_cache.flatten(0, 1), cu_seqlens_k=starts, max_seqlen_k=s,
                       seqlens_k=(cache_seqlens - cache_leftpad).to(torch.int32), **options, **low)
    return _varlen(q, k_cache, v_cache, seqlens_k=cache_seqlens, **options, **low)
