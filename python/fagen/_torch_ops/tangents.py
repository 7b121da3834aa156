"""Forward-mode derivatives of dense attention, by PyTorch's own operations: plain, of the size of the score matrix, differentiable."""
from __future__ import annotations

from typing import Any, Sequence, Tuple

import torch

from .. import _abi
from .._mask import Mask, options_of
from .symbols import filled


def seen(mask: Mask, sq: int, sk: int, device: torch.device) -> torch.Tensor:
    """Which keys each query sees, [sq, sk]."""
    off = {_abi.FA_TOP_LEFT: 0, _abi.FA_OFFSET: mask.offset}.get(mask.diagonal, sk - sq)
    ahead = torch.arange(sk, device=device)[None] - (torch.arange(sq, device=device)[:, None] + off)
    left, right = {_abi.FA_MASK_NONE: (-1, -1), _abi.FA_MASK_CAUSAL: (-1, 0)}.get(mask.mask, (mask.left, mask.right))
    found = torch.ones_like(ahead, dtype=torch.bool)
    if left >= 0:
        found &= ahead >= -left
    if right >= 0:
        found &= ahead <= right
    return found


def attention(inputs: Tuple[Any, Any, Any], tangents: Tuple[Any, Any, Any], scale: float, numbers: Sequence[int],
              options: str) -> Tuple[Any, Any]:
    """The tangents of out and LSE. A tangent that is None is 0."""
    q, k, v = inputs
    asked, factor, group = options_of(filled(options, numbers)), scale or q.shape[3] ** -0.5, q.shape[2] // k.shape[2]
    known = seen(asked.mask, q.shape[1], k.shape[1], q.device)
    of_some = known.any(0)[:, None, None]  # NaN in keys that no query sees reaches nothing

    def rows(x: Any) -> Any:
        return x.float().unflatten(2, (-1, group))

    def keys(x: Any) -> Any:
        return torch.where(of_some, x.float(), 0)

    def scores(left: Any, right: Any) -> Any:
        return torch.einsum("bihgd,bjhd->bhgij", rows(left), keys(right)) * factor

    s = torch.where(known, scores(q, k), -torch.inf)
    most = s.detach().amax(-1, keepdim=True) if k.shape[1] else s.new_zeros((*s.shape[:-1], 1))
    e = torch.exp(s - torch.where(most.isfinite(), most, 0))
    z = e.sum(-1, keepdim=True)
    p = e / torch.where(z > 0, z, 1)
    dq, dk, dv = tangents
    ds = torch.zeros_like(s) + (0 if dq is None else scores(dq, k)) + (0 if dk is None else scores(q, dk))
    mean = (p * ds).sum(-1, keepdim=True)
    out = torch.einsum("bhgij,bjhd->bihgd", p * (ds - mean), keys(v))
    if dv is not None:
        out = out + torch.einsum("bhgij,bjhd->bihgd", p, keys(dv))
    dtype = q.dtype if asked.out_dtype is None else getattr(torch, asked.out_dtype)
    return out.flatten(2, 3).to(dtype), mean.squeeze(-1).flatten(1, 2)
