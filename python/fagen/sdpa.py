"""torch.nn.functional.scaled_dot_product_attention by fagen: its signature and its layout, [b, h, s, d], and a way to put it in its place.

    with fagen.sdpa.patched():          # models that call scaled_dot_product_attention run on fagen
        model(x)

A call that fagen does not compute (gradients beside an attn_mask under autocast) raises fagen.Unsupported, or goes to PyTorch's own function where the
caller says so.
"""
from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Dict, Iterator, Optional, Union

import torch

from . import torch as _torch
from ._attention import attention
from ._context import Context
from .errors import InvalidArgument, Unsupported, invalid

OTHERWISE = ("raise", "torch")
_functional = torch.nn.functional


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: Optional[torch.Tensor] = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False,
                                 *, device: Union[None, str, Context] = None) -> torch.Tensor:
    """query [..., hq, sq, d], key [..., hkv, sk, d], value [..., hkv, sk, dv]; out [..., hq, sq, dv].

    As PyTorch's: dimensions before s and d are optional and broadcast, is_causal is top-left (query i sees the keys j <= i), heads of
    keys are fewer where enable_gqa says so. attn_mask broadcasts to [..., hq, sq, sk]; of bool: True where the query sees the key; else it
    is added to scores; not beside is_causal. Nothing is copied where there are four dimensions. Raises as fagen.attention does. Gradients
    are autograd's; none beside an attn_mask."""
    _torch._tensors(query=query, key=key, value=value, attn_mask=attn_mask)
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() < 2:
            raise invalid(f"{name}.shape", tuple(x.shape), "2 dimensions or more, [..., s, d]")
    front = _front(query, key, value, enable_gqa)
    q, k, v = (_rows(x, front) for x in (query, key, value))
    options: Dict[str, Any] = {"causal": is_causal, "diagonal": "top-left", "scale": scale, "dropout_p": dropout_p, "device": device}
    if attn_mask is None:
        out = _torch.attention(q, k, v, **options)
    else:
        if is_causal:
            raise InvalidArgument("attn_mask is set beside is_causal; accepted: one of them")
        out = attention(q, k, v, attn_mask=_mask(attn_mask, front, query), **options)
    out = out.transpose(1, 2)
    return out if query.dim() == 4 else out.reshape((*front, *((out.shape[1],) if query.dim() > 2 else ()), *out.shape[2:]))


def _front(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enable_gqa: bool) -> torch.Size:
    """The dimensions before heads, broadcast. Raises InvalidArgument."""
    heads = [x.shape[-3] if x.dim() > 2 else 1 for x in (query, key, value)]
    if not enable_gqa and len(set(heads)) > 1:
        raise InvalidArgument(f"heads of query, key and value are {heads}; accepted: one number, or enable_gqa=True")
    try:
        return torch.broadcast_shapes(*(x.shape[:-3] for x in (query, key, value)))
    except RuntimeError as e:
        raise InvalidArgument(f"query.shape, key.shape and value.shape are {tuple(query.shape)}, {tuple(key.shape)} and "
                              f"{tuple(value.shape)}; accepted: dimensions before the last three that broadcast") from e


def _rows(x: torch.Tensor, front: torch.Size) -> torch.Tensor:
    """[..., h, s, d] as [b, s, h, d]."""
    if x.dim() == 2:
        x = x[None]
    if x.shape[:-3] != front:
        x = x.expand(*front, *x.shape[-3:])
    return (x if x.dim() == 4 else x.reshape(-1, *x.shape[-3:])).transpose(1, 2)


def _mask(mask: torch.Tensor, front: torch.Size, query: torch.Tensor) -> torch.Tensor:
    """[..., sq, sk] as up to four dimensions; copied where it has more, and differs among them."""
    if query.dim() == 2 and mask.dim() == 3 and mask.shape[0] == 1:
        mask = mask[0]
    while mask.dim() > 3 and len(front) != 1 and mask.shape[0] == 1:
        mask = mask[0]
    if len(front) == 1 or mask.dim() <= 3:
        return mask
    return mask.expand(*front, *mask.shape[-3:]).reshape(-1, *mask.shape[-3:])


def install(otherwise: str = "raise", *, device: Union[None, str, Context] = None) -> None:
    """Makes torch.nn.functional.scaled_dot_product_attention fagen's, for the process.

    otherwise: what becomes of a call that fagen does not compute: "raise" fagen.Unsupported, or PyTorch's own function, "torch".
    device: as in fagen.attention. Idempotent; the last call counts.
    Modules that took the function before under a name of their own keep it."""
    if otherwise not in OTHERWISE:
        raise invalid("otherwise", repr(otherwise), ", ".join(f'"{word}"' for word in OTHERWISE))
    own = original()

    @functools.wraps(scaled_dot_product_attention)
    def patch(*arguments: Any, **options: Any) -> torch.Tensor:
        try:
            return scaled_dot_product_attention(*arguments, **options, device=device)
        except Unsupported:
            if otherwise == "raise":
                raise
        return own(*arguments, **options)
    patch._of_torch = own  # type: ignore[attr-defined]
    _functional.scaled_dot_product_attention = patch  # type: ignore[assignment]


def original() -> Callable[..., torch.Tensor]:
    """PyTorch's own function."""
    found = _functional.scaled_dot_product_attention
    return getattr(found, "_of_torch", found)


def uninstall() -> None:
    """PyTorch's own function again."""
    _functional.scaled_dot_product_attention = original()


@contextlib.contextmanager
def patched(otherwise: str = "raise", *, device: Union[None, str, Context] = None) -> Iterator[None]:
    """install() for a block; for all threads."""
    before = _functional.scaled_dot_product_attention
    install(otherwise, device=device)
    try:
        yield
    finally:
        _functional.scaled_dot_product_attention = before
