"""Who computes prompts beside fagen. Each has
    title, available(), version()    as in peers.py
and those of these that its library offers, causal but for dense; each returns a function of the call's number that returns O:
    dense(cell, sets)                            sets: (q, k, v) of [b, s, h, d], used in turn
    packed(q, k, v, first_q, first_k, sq, sk)    q [rows, hq, d], k, v [rows, hkv, d], sequence after sequence; sq, sk: the most of one
    padded(q, k, v, first_q, lengths, sq)        k, v [b, keys, hkv, d], of which the first lengths[i] rows count
    paged(q, k, v, first_q, lengths, table, sq)  k, v [pages, tokens, hkv, d]
Whatever they raise is why a case goes without the peer.
"""
import functools
import importlib

import torch

from common import peers
from sections.decode_peers import first


class Sdpa(peers.Sdpa):
    """A backend of PyTorch's scaled_dot_product_attention: dense batches."""

    def dense(self, cell, sets):
        run = self.runner(cell, sets)

        def call(i):
            with self.context():
                return run(i)
        return call


class Fa2(Sdpa):
    """FlashAttention-2's own package; PyTorch's copy of its kernels where that is not there."""

    def __init__(self):
        super().__init__("fa2", "FLASH_ATTENTION")
        try:
            self.module = importlib.import_module("flash_attn")
        except Exception:  # an extension that does not fit this PyTorch may raise anything
            self.module = None

    def available(self):
        return None if self.module else super().available()

    def version(self):
        return f"flash_attn {getattr(self.module, '__version__', '?')}" if self.module else super().version()

    def dense(self, cell, sets):
        if not self.module:
            return super().dense(cell, sets)
        return lambda i: first(self.module.flash_attn_func(*sets[i % len(sets)], causal=cell.mask == "causal"))

    def packed(self, q, k, v, first_q, first_k, sq, sk):
        if self.module:
            return lambda i: first(self.module.flash_attn_varlen_func(q, k, v, first_q, first_k, sq, sk, causal=True))
        return lambda i: first(torch.ops.aten._flash_attention_forward(q, k, v, first_q, first_k, sq, sk, 0.0, True, False))


class Fa3Splits(peers.Fa3):
    """FlashAttention-3 where it chooses the number of splits."""
    title, splits = "fa3split", 0

    def packed(self, q, k, v, first_q, first_k, sq, sk):
        return lambda i: first(self.module.flash_attn_varlen_func(q, k, v, cu_seqlens_q=first_q, cu_seqlens_k=first_k, max_seqlen_q=sq,
                                                                  max_seqlen_k=sk, causal=True, num_splits=self.splits))


class Fa3(Fa3Splits):
    """FlashAttention-3 as it is called where nothing is said of splits: with one."""
    title, splits = "fa3", 1

    def dense(self, cell, sets):
        return self.runner(cell, sets)


class Fa3Cache(peers.Fa3):
    """FlashAttention-3 by its entry for caches, with the lengths on the device; it chooses the number of splits."""
    title = "fa3kv"

    def call(self, q, k, v, first_q, lengths, sq, **given):
        return lambda i: first(self.module.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, cu_seqlens_q=first_q, max_seqlen_q=sq,
                                                                   causal=True, num_splits=0, **given))

    def padded(self, q, k, v, first_q, lengths, sq):
        return self.call(q, k, v, first_q, lengths, sq)

    def paged(self, q, k, v, first_q, lengths, table, sq):
        return self.call(q, k, v, first_q, lengths, sq, page_table=table)


PEERS = {
    "cudnn": functools.partial(Sdpa, "cudnn", "CUDNN_ATTENTION"),
    "fa2": Fa2,
    "fa3": Fa3,
    "fa3split": Fa3Splits,
    "fa3kv": Fa3Cache,
}
