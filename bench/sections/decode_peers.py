"""Who decodes beside fagen: the peers of peers.py by their entry points for one or a few query rows against a long cache. Each has
    title, available(), version()    as in peers.py
and those of these that its library offers; each returns a function of the call's number that returns O [b, sq, hq, d]:
    dense(q, sets)                              sets: (k, v) pairs [b, sk, hkv, d], used in turn
    padded(q, k, v, lengths)                    k, v [b, sk, hkv, d], of which the first lengths[i] rows count
    paged(q, k, v, lengths, table)              k, v [pages, tokens, hkv, d]
    packed(q, k, v, first_q, first_k, longest)  k, v [rows, hkv, d], sequence after sequence
Whatever they raise is why a case goes without the peer.
"""
import functools
import importlib

import torch

from common import peers
from sections.cudnn_graph import CudnnGraph


def first(out):
    """O of what a library returns."""
    return out[0] if isinstance(out, (tuple, list)) else out


class Sdpa(peers.Sdpa):
    """A backend of PyTorch's scaled_dot_product_attention by its own grouping of heads: expanded K and V would be more bytes."""

    def dense(self, q, sets):
        wide, grouped = q.transpose(1, 2), q.shape[2] != sets[0][0].shape[2]
        views = [tuple(t.transpose(1, 2) for t in s) for s in sets]

        def run(i):
            k, v = views[i % len(views)]
            with self.context():
                return torch.nn.functional.scaled_dot_product_attention(wide, k, v, enable_gqa=grouped).transpose(1, 2)
        self.probe(run)  # with the warnings that say why it refuses
        return run


class Fa2:
    """FlashAttention-2's own package; PyTorch's copy of its kernels where that is not there."""
    title = "fa2"

    def __init__(self):
        try:
            self.module, self.other = importlib.import_module("flash_attn"), None
        except Exception:  # an extension that does not fit this PyTorch may raise anything
            self.module, self.other = None, Sdpa("fa2", "FLASH_ATTENTION")

    def available(self):
        return self.other.available() if self.other else None

    def version(self):
        return self.other.version() if self.other else f"flash_attn {getattr(self.module, '__version__', '?')}"

    def dense(self, q, sets):
        if self.other:
            return self.other.dense(q, sets)
        return lambda i: first(self.module.flash_attn_func(q, *sets[i % len(sets)]))

    def paged(self, q, k, v, lengths, table):
        if self.other:
            raise RuntimeError("PyTorch's copy takes no pages")
        return lambda i: first(self.module.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, block_table=table))


class Fa3(peers.Fa3):
    """FlashAttention-3, plain; it chooses the number of splits."""

    def dense(self, q, sets):
        return lambda i: first(self.module.flash_attn_func(q, *sets[i % len(sets)], num_splits=0))

    def packed(self, q, k, v, first_q, first_k, longest):
        flat = q.flatten(0, 1)

        def run(i):
            out = first(self.module.flash_attn_varlen_func(flat, k, v, cu_seqlens_q=first_q, cu_seqlens_k=first_k, max_seqlen_q=q.shape[1],
                                                           max_seqlen_k=longest, num_splits=0))
            return out.unflatten(0, q.shape[:2])
        return run


class Fa3Cache(peers.Fa3):
    """FlashAttention-3 by its entry for caches, with the lengths on the device; it chooses the number of splits."""
    title = "fa3kv"

    def call(self, q, k, v, **given):
        return first(self.module.flash_attn_with_kvcache(q, k, v, num_splits=0, **given))

    def dense(self, q, sets):
        k = sets[0][0]
        whole = torch.full((k.shape[0],), k.shape[1], dtype=torch.int32, device=k.device)
        return lambda i: self.call(q, *sets[i % len(sets)], cache_seqlens=whole)

    def padded(self, q, k, v, lengths):
        return lambda i: self.call(q, k, v, cache_seqlens=lengths)

    def paged(self, q, k, v, lengths, table):
        return lambda i: self.call(q, k, v, cache_seqlens=lengths, page_table=table)


PEERS = {
    "cudnn": functools.partial(Sdpa, "cudnn", "CUDNN_ATTENTION"),
    "fa2": Fa2,
    "fa3": Fa3,
    "fa3kv": Fa3Cache,
    "cudnn graph": CudnnGraph,
}
