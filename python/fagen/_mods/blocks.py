"""PyTorch's BlockMask as one function of query and key."""
from __future__ import annotations

from typing import Any, Callable, Optional, Tuple

import torch

from ..errors import InvalidArgument, invalid
from .compare import Lengths, values

PAIRS = 16  # of each block that are looked at


def function(mask: Any, lengths: Lengths, device: torch.device) -> Optional[Callable[..., Any]]:
    """The mask_mod of a block mask, where it hides all of the blocks that are left out and shows all of those that are full, at random
    pairs of each; else with the blocks; None: nothing is hidden."""
    for name in ("mask_mod", "kv_num_blocks", "kv_indices", "BLOCK_SIZE", "seq_lengths"):
        if not hasattr(mask, name):
            raise invalid("block_mask", f"a {type(mask).__module__}.{type(mask).__name__}", "a BlockMask of PyTorch's, or None")
    b, h, sq, sk = lengths
    if mask.kv_num_blocks.shape[0] not in (1, b) or mask.kv_num_blocks.shape[1] not in (1, h):
        raise InvalidArgument(f"block_mask is of {tuple(mask.kv_num_blocks.shape[:2])} sequences and heads; accepted: {(b, h)}, or 1")
    if tuple(mask.seq_lengths) != (sq, sk):
        raise InvalidArgument(f"block_mask is of {tuple(mask.seq_lengths)} queries and keys; accepted: {(sq, sk)}")
    rows, columns = mask.BLOCK_SIZE
    partial = _table(mask.kv_num_blocks, mask.kv_indices, sq, sk, rows, columns)
    full = torch.zeros_like(partial) if mask.full_kv_num_blocks is None else _table(mask.full_kv_num_blocks, mask.full_kv_indices, sq, sk,
                                                                                    rows, columns)
    mod = None if getattr(mask.mask_mod, "__name__", "") == "noop_mask" else mask.mask_mod
    if mod is None and bool((partial | full).all()):
        return None
    if mod is not None and _says_it_all(mod, partial, full, lengths, rows, columns, device):
        return mod  # type: ignore[no-any-return]
    at_b, at_h, either, no_full = partial.shape[0] > 1, partial.shape[1] > 1, partial | full, not bool(full.any())

    def blocks(b: Any, h: Any, q: Any, k: Any) -> Any:
        at = (b if at_b else 0, h if at_h else 0, q // rows, k // columns)
        if mod is None:
            return either[at]
        return partial[at] & mod(b, h, q, k) if no_full else full[at] | (partial[at] & mod(b, h, q, k))
    return blocks


def _table(counts: torch.Tensor, indices: torch.Tensor, sq: int, sk: int, rows: int, columns: int) -> torch.Tensor:
    """Lists of blocks as truths [b or 1, h or 1, rows of blocks, columns of blocks]."""
    n = -(-sk // columns)
    listed = torch.arange(indices.shape[-1], device=indices.device) < counts[..., None]
    found = torch.zeros((*indices.shape[:-1], n + 1), dtype=torch.int32, device=indices.device)
    found.scatter_(-1, torch.where(listed, indices, n).long(), 1)
    return found[..., :-(-sq // rows), :n].bool().contiguous()


def _says_it_all(mod: Callable[..., Any], partial: torch.Tensor, full: torch.Tensor, lengths: Lengths, rows: int, columns: int,
                 device: torch.device) -> bool:
    """Whether a function hides pairs of blocks that are in no list, and shows those of full ones."""
    source = torch.Generator().manual_seed(21)
    for blocks, shown in ((~(partial | full), False), (full, True)):
        at = blocks.nonzero().repeat_interleave(PAIRS, 0)
        i, j = (at[:, c] * n + torch.randint(0, n, (len(at),), generator=source).to(device) for c, n in ((2, rows), (3, columns)))
        inside = (i < lengths[2]) & (j < lengths[3])
        given = [x[inside].to(torch.int32) for x in (*_any(at, partial, lengths, source), i, j)]
        if given[0].numel() and not bool((values(mod, given)[0].bool() == shown).all()):
            return False
    return True


def _any(at: torch.Tensor, table: torch.Tensor, lengths: Lengths, source: torch.Generator) -> Tuple[torch.Tensor, torch.Tensor]:
    """Sequence and head of blocks; any one, where the table is of all."""
    found = [at[:, k] if table.shape[k] > 1 else torch.randint(0, lengths[k], (len(at),), generator=source).to(at.device) for k in (0, 1)]
    return found[0], found[1]
