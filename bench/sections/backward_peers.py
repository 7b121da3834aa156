"""Who computes gradients beside fagen. Each has
    title, available(), version()         as in peers.py
    backward(q, k, v, grad_out, causal)   of [b, s, h, d]; runs its own forward once, and returns a function of the call's number that runs
                                          the backward alone and returns backward_oracle.Gradients
and those that have them:
    packed(q, k, v, grad_out, causal, first_q, first_k, sq, sk)    the same of [rows, h, d], sequence after sequence; first_q, first_k:
                                          where each begins, on the device; sq, sk: the most of one
    deterministic(...), packed_deterministic(...)                  the same, with equal bits each time
Whatever they raise is why a case goes without the peer.
"""
import importlib

import torch

from common import peers
from sections.backward_oracle import Gradients

aten = torch.ops.aten


class Cudnn(peers.Sdpa):
    """cuDNN by PyTorch's own operators."""

    def __init__(self):
        super().__init__("cudnn", "CUDNN_ATTENTION")

    def ready(self, q, k, v, causal):
        """What the backward takes of a forward, before and after the flag."""
        made = aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False)
        out, lse, first_q, first_k, sq, sk, seed, offset, _ = made
        return aten._scaled_dot_product_cudnn_attention_backward, (out, lse, seed, offset, None, first_q, first_k, sq, sk, 0.0, causal)

    def backward(self, q, k, v, grad_out, causal):
        q, k, v, grad_out = (t.transpose(1, 2) for t in (q, k, v, grad_out))

        def grouped(k, v):
            op, saved = self.ready(q, k, v, causal)
            return lambda i: Gradients(*(t.transpose(1, 2) for t in op(grad_out, q, k, v, *saved)))
        return self.shared(grouped, q.shape[1] // k.shape[1], k, v)

    @staticmethod
    def shared(grouped, group, k, v):
        """What grouped(k, v) gives; where it refuses groups of heads, with as many heads as of queries. Heads are dimension 1."""
        try:
            run = grouped(k, v)
            run(0)
            return run
        except RuntimeError:
            if group == 1:
                raise
        whole = grouped(*(t.repeat_interleave(group, 1) for t in (k, v)))

        def summed(i):
            grad_q, *of_keys = whole(i).tensors
            return Gradients(grad_q, *(t.unflatten(-2, (-1, group)).sum(-2) for t in of_keys))
        summed.note = "K and V expanded beforehand, their gradients summed after it"
        return summed


class Fa2(Cudnn):
    """FlashAttention-2, PyTorch's copy of its kernels."""

    def __init__(self):
        peers.Sdpa.__init__(self, "fa2", "FLASH_ATTENTION")

    def ready(self, q, k, v, causal):
        out, lse, first_q, first_k, sq, sk, seed, offset, _ = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False)
        return aten._scaled_dot_product_flash_attention_backward, (out, lse, first_q, first_k, sq, sk, 0.0, causal, seed, offset)

    def packed(self, q, k, v, grad_out, causal, *where):
        def grouped(k, v):
            out, lse, state, unused, _ = aten._flash_attention_forward(q, k, v, *where, 0.0, causal, False)
            return lambda i: Gradients(*aten._flash_attention_backward(grad_out, q, k, v, out, lse, *where, 0.0, causal, state, unused))
        return self.shared(grouped, q.shape[1] // k.shape[1], k, v)


class Fa4(peers.Peer):
    """FlashAttention-4, in CuTe DSL. The first call of a kind compiles for some ten seconds."""
    title = "fa4"

    def __init__(self):
        self.module, self.why = None, ""
        try:
            self.module = importlib.import_module("flash_attn.cute.interface")
        except Exception as e:  # an extension that does not fit this PyTorch may raise anything
            self.why = f"flash_attn.cute.interface: {type(e).__name__}: {e}"

    def available(self):
        return None if self.module else self.why

    def version(self):
        from importlib import metadata
        try:
            return f"flash-attn-4 {metadata.version('flash-attn-4')}"
        except metadata.PackageNotFoundError:
            return self.module.__file__

    def backward(self, q, k, v, grad_out, causal, **options):
        return self.behind(self.module.flash_attn_func, q, k, v, grad_out, causal, options)

    def packed(self, q, k, v, grad_out, causal, first_q, first_k, sq, sk, **options):
        options.update(cu_seqlens_q=first_q, cu_seqlens_k=first_k, max_seqlen_q=sq, max_seqlen_k=sk)
        return self.behind(self.module.flash_attn_varlen_func, q, k, v, grad_out, causal, options)

    def behind(self, forward, q, k, v, grad_out, causal, options):
        """What the backward of its autograd function calls; the node itself runs once."""
        out, lse = forward(q, k, v, causal=causal, return_lse=True, **options)
        return lambda i: Gradients(*self.module._flash_attn_bwd(q, k, v, out, grad_out, lse, q.shape[-1] ** -0.5, causal, **options)[:3])

    def deterministic(self, *given):
        return self.backward(*given, deterministic=True)

    def packed_deterministic(self, *given):
        return self.packed(*given, deterministic=True)


PEERS = {"fa4": Fa4, "cudnn": Cudnn, "fa2": Fa2}
