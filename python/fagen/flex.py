"""FlexAttention's functions by fagen: score_mod and mask_mod of Python become score programs, which kernels are compiled with.

    from fagen.flex import flex_attention
    out = flex_attention(query, key, value, score_mod=lambda score, b, h, q, k: score + slopes[h] * (k - q))

A function is run once on numbers that stand for any; what it did is translated into a score program (docs/scores.md), which is compared
with the function at 4,096 random points. What has no translation, and what differs, raises fagen.Unsupported with the file and the line.
Tensors that the function holds become operands, read in place at each launch; numbers that it holds become scalars, so that another value
is no new program; divisors, shifts and exponents are part of the text. No block mask is needed, and none is made.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import torch

from . import _score
from . import _shapes as shapes
from . import torch as _torch
from ._attention import attention, context_of
from ._context import Context
from ._mods import blocks, translate
from ._view import view
from .errors import InvalidArgument, Unsupported, invalid

Mod = Callable[..., Any]
TANH = ("exact", "approximate")


def program(*, score_mod: Optional[Mod] = None, mask_mod: Optional[Mod] = None, B: int = 1, H: int = 1, Q_LEN: int = 1024,
            KV_LEN: int = 1024, device: Any = "cpu", tanh: str = "exact") -> _score.Score:
    """The score program of functions, with its operands: fagen.attention(..., score=fagen.flex.program(...)).

    score_mod(score, b, h, q_idx, kv_idx): the new score. mask_mod(b, h, q_idx, kv_idx): whether the query sees the key. One of them, or
    both.
    B, H, Q_LEN, KV_LEN: lengths within which translation and function are compared; the program is for any.
    device: where tensors lie that the functions make themselves.
    tanh: of torch.tanh, "exact" to 1.2e-7, or "approximate", the chip's own with a relative error of 2^-11, which is faster."""
    return _program(score_mod, mask_mod, (B, H, Q_LEN, KV_LEN), torch.device(device), tanh, None)


def _program(score_mod: Any, mask_mod: Any, lengths: Any, device: torch.device, tanh: str, check: Any) -> _score.Score:
    _not_traced()
    functions: Dict[str, Mod] = {}
    for name, word, f in (("score", "score_mod", score_mod), ("mask", "mask_mod", mask_mod)):
        if f is not None and not callable(f):
            raise invalid(word, repr(f), "a function, or None")
        if f is not None:
            functions[name] = f
    if not functions:
        raise InvalidArgument("score_mod and mask_mod are None; accepted: one of them or both")
    if tanh not in TANH:
        raise invalid("tanh", repr(tanh), ", ".join(f'"{word}"' for word in TANH))
    for name, n in zip(("B", "H", "Q_LEN", "KV_LEN"), lengths):
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise invalid(name, repr(n), "a number of at least 0")
    return translate.program(functions, tuple(lengths), device, tanh == "exact", check)


def _not_traced() -> None:
    if torch.compiler.is_compiling():
        raise Unsupported("a function is not translated while a program is traced; accepted: fagen.flex.program(...) before, and "
                          "fagen.attention(..., score=) of it in the program")


def flex_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, score_mod: Optional[Mod] = None, block_mask: Any = None,
                   scale: Optional[float] = None, enable_gqa: bool = False, return_lse: bool = False,
                   kernel_options: Optional[Dict[str, Any]] = None, *, return_aux: Any = None, mask_mod: Optional[Mod] = None,
                   tanh: str = "exact", device: Any = None) -> Any:
    """query [b, hq, sq, d], key [b, hkv, sk, d], value [b, hkv, sk, dv]; out [b, hq, sq, dv], or (out, lse [b, hq, sq]).

    As PyTorch's: q_idx and kv_idx count from 0, so that q_idx >= kv_idx is causal from the top left.
    block_mask: PyTorch's BlockMask, whose mask_mod is what is computed; its blocks are where they hide, or show, what mask_mod does not.
    mask_mod: the function itself instead, for which nothing is made.
    kernel_options: no effect; what kernels are like is fagen's to choose.
    return_aux: PyTorch's AuxRequest; lse.
    tanh, device: as in program() and fagen.attention."""
    _torch._tensors(query=query, key=key, value=value)
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != 4:
            raise invalid(f"{name}.shape", tuple(x.shape), "4 dimensions, [b, h, s, d]")
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise InvalidArgument(f"heads of query and key are {query.shape[1]} and {key.shape[1]}; accepted: one number, or enable_gqa=True")
    if kernel_options is not None and not isinstance(kernel_options, dict):
        raise invalid("kernel_options", repr(kernel_options), "a dict, or None")
    if getattr(return_aux, "max_scores", False):
        raise Unsupported("return_aux.max_scores is True; accepted by this version: False: kernels keep no maximum")
    if score_mod is not None or mask_mod is not None or block_mask is not None:
        _not_traced()
    lengths = (*query.shape[:3], key.shape[2])
    if block_mask is not None:
        if mask_mod is not None:
            raise InvalidArgument("block_mask and mask_mod are both set; accepted: one of them")
        mask_mod = blocks.function(block_mask, lengths, query.device)
    options: Dict[str, Any] = {}
    if score_mod is not None or mask_mod is not None:
        ctx = context_of(view("query", query), device)
        options["score"] = _program(score_mod, mask_mod, lengths, query.device, tanh, lambda score: score.made(ctx))
    want = return_lse or bool(getattr(return_aux, "lse", False))
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    found = attention(q, k, v, scale=scale, return_lse=want, device=device, **options)
    if not want:
        return found.transpose(1, 2)
    out, lse = found
    if return_aux is not None:
        from torch.nn.attention.flex_attention import AuxOutput
        return out.transpose(1, 2), AuxOutput(lse=lse)
    return out.transpose(1, 2), lse
