"""New keys of flash_attn_with_kvcache: rotated and stored by fagen.append, queries rotated beside them."""
from __future__ import annotations

import weakref
from typing import Any, Dict, MutableMapping, NamedTuple, Optional, Tuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from . import _append
from .errors import InvalidArgument, invalid


class Rotation(NamedTuple):
    """rotary_cos and rotary_sin [positions, rotary_dim / 2], and which elements turn together."""
    cos: torch.Tensor
    sin: torch.Tensor
    style: str


def rotation_of(cos: Optional[torch.Tensor], sin: Optional[torch.Tensor], interleaved: bool, k: Optional[torch.Tensor],
                room: int) -> Optional[Rotation]:
    """None: nothing is rotated. room: keys that a sequence may have. Raises InvalidArgument."""
    if cos is None and sin is None:
        return None
    if cos is None or sin is None:
        raise InvalidArgument(f"rotary_{'cos' if cos is None else 'sin'} is None; accepted: rotary_cos and rotary_sin, or neither")
    if k is None:
        raise InvalidArgument("rotary_cos is set and k is None; accepted: both, as new keys are rotated, or neither")
    if cos.dim() != 2 or cos.shape[0] < room:
        raise invalid("rotary_cos.shape", tuple(cos.shape), f"[positions, rotary_dim / 2] with at least {room} positions, the cache's room")
    for what, have, wanted in (("shape", tuple(sin.shape), tuple(cos.shape)), ("dtype", sin.dtype, cos.dtype)):
        if have != wanted:
            raise invalid(f"rotary_sin.{what}", have, f"{wanted}, that of rotary_cos")
    return Rotation(cos, sin, "pairs" if interleaved else "halves")


# Tables of cosines and sines side by side, by the cosines' tensor: the sines', both versions, and the table.
_tables: MutableMapping[torch.Tensor, Tuple[Any, int, int, torch.Tensor]] = WeakTensorKeyDictionary()


def side_by_side(cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """[positions, rotary_dim]: cosines, then sines. Where they lie so, no copy; else one that is kept for as long as they are unchanged.
    Tensors of inference mode, which count no changes, are copied each time, as are those of a graph that is captured."""
    rows, half = cos.shape
    if cos.stride() == sin.stride() == (2 * half, 1) and sin.data_ptr() == cos.data_ptr() + half * cos.element_size():
        return cos.as_strided((rows, 2 * half), (2 * half, 1))
    counted = not (cos.is_inference() or sin.is_inference())
    known = _tables.get(cos) if counted else None
    if known is not None and known[0]() is sin and known[1:3] == (cos._version, sin._version):
        return known[3]
    table = torch.cat((cos, sin), 1)
    if counted and not (cos.is_cuda and torch.cuda.is_current_stream_capturing()):
        _tables[cos] = weakref.ref(sin), cos._version, sin._version, table
    return table


@torch.compiler.disable  # type: ignore[untyped-decorator]
def stored(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, before: torch.Tensor,
           table: Optional[torch.Tensor], rotation: Optional[Rotation], one_by_one: bool, formats: Dict[str, Any],
           scales: Dict[str, Any]) -> Tuple[torch.Tensor, torch.Tensor]:
    """Stores k and v behind `before` keys of each sequence; (q rotated, keys with the new ones). one_by_one: queries have the positions
    before, before + 1, ...; else all that of the first new key. Scales of each token are found and written, others divided by."""
    if k.dim() != 4 or k.shape[0] != q.shape[0]:
        raise invalid("k.shape", tuple(k.shape), f"4 dimensions, ({q.shape[0]}, s_new, hkv, d)")
    new, rows = k.shape[1], q.shape[1]
    lengths = before + new
    where: Dict[str, Any] = {"seqlens_k": lengths, **({} if table is None else {"page_table": table}), **formats}
    for name, cache in (("k_scale", k_cache), ("v_scale", v_cache)):
        scale = scales.get(name)
        found = scale is not None and tuple(scale.shape) == tuple(cache.shape[:3])
        where[f"{name}_out" if found else name] = scale
    if rotation is None:
        _append.append(k, v, k_cache, v_cache, **where)
        return q, lengths
    turn: Dict[str, Any] = {"cos_sin": side_by_side(rotation.cos, rotation.sin), "rotary_style": rotation.style}
    if rows == new and (one_by_one or rows == 1):
        return _append.append(k, v, k_cache, v_cache, q=q, **turn, **where), lengths
    _append.append(k, v, k_cache, v_cache, **turn, **where)
    # Queries by a launch of their own, whose keys are skipped: they count as many rows as q has.
    heads = k.shape[2]
    nowhere = torch.full((q.shape[0], rows), -1, dtype=torch.int64, device=q.device)
    positions = before[:, None] + (torch.arange(rows, dtype=torch.int32, device=q.device) if one_by_one else before.new_zeros(rows))
    spare = q[:, :, :heads]
    caches = (q.new_empty((1, 1, heads, q.shape[3])) for _ in range(2))
    turned: torch.Tensor = _append.append(spare, spare, *caches, slots=nowhere, q=q, positions=positions, **turn)
    return turned, lengths
