"""fagen as an attention implementation of Hugging Face transformers (4.53 and later).

    import fagen.integrations.transformers as of_transformers
    of_transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="fagen")

Groups of query heads share their keys without copies. Padding on the left or on the right becomes lengths, read on the device; holes
inside a row's mask, packed sequences, blocks, softcap and sinks raise fagen.Unsupported. Gradients are autograd's. Dropout's seed is drawn
from PyTorch's generator.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from .. import torch as _torch
from .._shapes import unused
from ..errors import InvalidArgument, Unsupported

NAME = "fagen"
# Masks that causal, window and lengths say: the functions of transformers.masking_utils that make them.
PLAIN = ("causal_mask_function", "bidirectional_mask_function", "sliding_window_overlay.<locals>.inner_mask",
         "sliding_window_bidirectional_overlay.<locals>.inner_mask")
FEW = 16  # queries, up to which keys of left-padded sequences are read row by row instead of being copied


def register(name: str = NAME) -> str:
    """Makes `attn_implementation=name` known to transformers. Idempotent. Gives the name back. Raises ImportError without transformers."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, attention_mask)
    return name


def attention_mask(batch_size: int, q_length: int, kv_length: int, q_offset: Any = 0, kv_offset: Any = 0,
                   mask_function: Optional[Callable[..., Any]] = None, attention_mask: Optional[torch.Tensor] = None,
                   device: Any = None, **_: Any) -> Optional[torch.Tensor]:
    """What the layers get as their mask: None where causal or window says it all, else int32 [b, 1, 1, 3] with, for each sequence, the
    first key, the number of keys and the number of query rows; without the first where every sequence begins at row 0."""
    plain(mask_function)
    compiling = torch.compiler.is_compiling()
    end = q_offset + q_length - kv_offset  # the row of the last query among the keys
    fixed = not isinstance(end, torch.Tensor) and not isinstance(end, torch.SymInt) and end == kv_length
    if attention_mask is not None:
        if isinstance(kv_offset, torch.Tensor) or kv_offset or attention_mask.shape[-1] > kv_length:
            attention_mask = attention_mask[:, -kv_length:]
        if not compiling and bool(attention_mask.all()) and attention_mask.shape[1] >= kv_length:
            attention_mask = None
    if attention_mask is None and fixed:
        return None
    if attention_mask is None:
        rows = torch.full((batch_size,), q_length, dtype=torch.int32, device=device)
        keys = torch.zeros_like(rows) + end
        return torch.stack((keys.to(torch.int32), rows), -1)[:, None, None]
    seen = attention_mask.to(torch.bool)
    width = seen.shape[1]
    place = torch.arange(width, device=seen.device)
    seen = seen & (place < end)
    keys = seen.sum(-1)
    start = torch.where(keys > 0, seen.to(torch.int32).argmax(-1), 0)
    if not compiling and bool((torch.where(seen, place, -1).amax(-1) + 1 - start > keys).any()):
        raise Unsupported("attention_mask has holes; accepted: padding on the left or on the right of each row")
    behind = torch.where(keys > 0, end - start - keys, 0)  # padding on the right: rows that are no queries either
    rows = (q_length - behind).clamp(min=0)
    return torch.stack((start, keys, rows), -1).to(torch.int32)[:, None, None]


def plain(mask_function: Optional[Callable[..., Any]]) -> None:
    """Raises Unsupported for a mask that is more than causal, window and padding."""
    for name in leaves(mask_function):
        if name not in PLAIN:
            raise Unsupported(f"mask_function is made of {name}; accepted: causal and sliding-window masks, with padding")


def leaves(function: Optional[Callable[..., Any]]) -> List[str]:
    """The names of the functions that a mask is combined of."""
    if function is None:
        return []
    name = getattr(function, "__qualname__", repr(function))
    if not name.startswith("and_masks.<locals>"):
        return [name]
    inner: List[Any] = []
    for cell in function.__closure__ or ():
        held = cell.cell_contents
        inner += held if isinstance(held, (tuple, list)) else [held]
    return [leaf for f in inner if callable(f) for leaf in leaves(f)]


def attention_forward(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                      attention_mask: Optional[torch.Tensor], dropout: float = 0.0, scaling: Optional[float] = None,
                      sliding_window: Optional[int] = None, softcap: Optional[float] = None, is_causal: Optional[bool] = None,
                      **others: Any) -> Tuple[torch.Tensor, None]:
    """query [b, hq, sq, d], key and value [b, hkv, sk, d]; (out [b, sq, hq, dv], None)."""
    unused({"softcap": softcap, "s_aux": others.get("s_aux"), "sinks": others.get("sinks"), "position_bias": others.get("position_bias")},
           [None], "it is not computed; attn_implementation=\"eager\" does")
    unused({"output_attentions": others.get("output_attentions") or False}, [False], "no matrix of probabilities is made")
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    window = None if sliding_window is None else (sliding_window - 1, 0 if causal else sliding_window - 1)
    options: Dict[str, Any] = {"causal": causal, "window": window, "scale": scaling, "dropout_p": float(dropout)}
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    if attention_mask is None:
        return _torch.attention(q, k, v, **options), None
    if attention_mask.dim() != 4 or attention_mask.dtype != torch.int32 or attention_mask.shape[1:3] != (1, 1):
        raise InvalidArgument(f"attention_mask is {attention_mask.dtype} {tuple(attention_mask.shape)}; accepted: None, or what the mask "
                              f"function of \"{NAME}\" makes of a 2-dimensional mask")
    words = attention_mask[:, 0, 0].unbind(-1)
    rows, keys = words[-1].contiguous(), words[-2].contiguous()
    # Rows of padding are not written. A call that writes to `out` has no gradient, and no dropout.
    learns = dropout > 0 or torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    options["out"] = None if learns else q.new_zeros((*q.shape[:3], v.shape[3]))
    if len(words) == 2:
        out = _torch.varlen_attention(q, k, v, seqlens_q=rows, seqlens_k=keys, **options)
    else:
        out = from_the_left(q, k, v, words[0], keys, rows, learns, options)
    if learns:
        place = torch.arange(q.shape[1], device=q.device)
        out = torch.where((place < rows[:, None])[:, :, None, None], out, 0)
    return out, None


def from_the_left(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, start: torch.Tensor, keys: torch.Tensor, rows: torch.Tensor,
                  learns: bool, options: Dict[str, Any]) -> torch.Tensor:
    """Sequences whose keys begin at a row of their own: as packed rows with gaps, or, of few queries that want no gradient, as pages of
    one row."""
    b, s, heads, d = k.shape
    few = q.shape[1] <= FEW and not learns
    if few and k.transpose(1, 2).is_contiguous() and v.transpose(1, 2).is_contiguous() and heads > 1 and d == v.shape[3]:
        pages = (b - 1) * heads * s + s  # head by head in memory: a row of a sequence is `heads * s` rows after that of the one before
        one, two = (x.as_strided((pages, 1, heads, d), (d, d, s * d, 1)) for x in (k, v))
        first = torch.arange(b, dtype=torch.int32, device=q.device) * (heads * s) + start
        table = first[:, None] + torch.arange(s, dtype=torch.int32, device=q.device)
        return _torch.varlen_attention(q, one, two, seqlens_q=rows, seqlens_k=keys, page_table=table, max_seqlen_k=s, **options)
    starts = torch.arange(b + 1, dtype=torch.int32, device=q.device) * s
    starts[:b] += start
    k, v = (x.contiguous().flatten(0, 1) for x in (k, v))
    return _torch.varlen_attention(q, k, v, seqlens_q=rows, cu_seqlens_k=starts, seqlens_k=keys, max_seqlen_k=s, **options)
