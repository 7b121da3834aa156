"""Heads above 256, d and dv each its own, and V inside K, on the simulator: against fp64, and what is refused."""
from __future__ import annotations

import numpy as np
import pytest
from conftest import CHIP, close, exact, half

import fagen

TABLE, LENGTHS = np.array([[4, 0], [2, 9999], [1, 3]], np.int32), np.array([27, 0, 32], np.int32)


def test_d_and_dv_each_its_own(chip):
    q, k, v = half(1, 1, 9, 4, 72), half(2, 1, 21, 2, 72), half(3, 1, 21, 2, 300)
    out, lse = fagen.attention(q, k, v, causal=True, return_lse=True)
    wanted, sums = exact(q, k, v, right=0)
    close(out, wanted)
    close(lse, sums, 1e-4)


def test_mla_over_pages(chip):
    """d = 576, head_dim_v = 512, one head of keys. What the table does not name, and rows past a length, are NaN."""
    q, pages = half(1, 3, 2, 16, 576), half(2, 5, 16, 1, 576)
    pages[4, :] = half(3, 16, 1, 576)
    pages[3, :] = half(4, 16, 1, 576)
    pages[0, 11:] = np.nan
    pages[2] = np.nan
    out, lse = fagen.varlen_attention(q, pages, None, head_dim_v=512, seqlens_k=LENGTHS, page_table=TABLE, causal=True, return_lse=True,
                                      scale=192 ** -0.5)
    assert out.shape == (3, 2, 16, 512)
    for i, n in enumerate(LENGTHS):
        k = pages[np.clip(TABLE[i], 0, 4)].reshape(1, 32, 1, 576)[:, :n]
        wanted, sums = exact(q[i:i + 1], k, k[..., :512], right=0, scale=192 ** -0.5)
        close(out[i:i + 1], wanted)
        close(lse[i:i + 1], sums, 2e-4)


def test_dense_as_with_a_v_of_its_own(chip):
    """v is None, or the columns themselves. Without head_dim_v these are a v of its own, and a plan of one kind is never the other's."""
    q, cache = half(1, 2, 5, 4, 48), half(2, 2, 9, 2, 64)
    k = cache[..., 8:56]
    wanted, sums = exact(q, k, k[..., :40])
    for _ in range(2):
        for v, options in ((None, dict(head_dim_v=40)), (k[..., :40], dict(head_dim_v=40)), (k[..., :40], {})):
            out, lse = fagen.attention(q, k, v, return_lse=True, **options)
            close(out, wanted)
            close(lse, sums, 1e-4)
        close(fagen.attention(q, k, cache[..., :40]), exact(q, k, cache[..., :40])[0])


def test_packed_rows_with_a_program(chip):
    """And an output in fp32."""
    q, k, cap = half(1, 10, 4, 48), half(2, 18, 2, 48), 2.0
    starts = np.array([0, 2, 10], np.int32), np.array([0, 3, 18], np.int32)
    out = np.empty((10, 4, 40), np.float32)
    assert fagen.varlen_attention(q, k, k[..., :40], head_dim_v=40, cu_seqlens_q=starts[0], cu_seqlens_k=starts[1], max_seqlen_q=8,
                                  max_seqlen_k=15, softcap=cap, out=out) is out
    for a, b, c, d in zip(starts[0], starts[0][1:], starts[1], starts[1][1:]):
        keys = k[c:d].astype(float).repeat(2, 1)
        p = np.exp(cap * np.tanh(np.einsum("ihd,jhd->hij", q[a:b].astype(float), keys) * 48 ** -0.5 / cap))
        close(out[a:b], np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), keys[..., :40]))


def test_problems_of_it():
    assert fagen.supported(dtype="bfloat16", d=576, dv=512, hq=128, hkv=1, page_size=64, v_in_k=True, device=CHIP)
    text = fagen.explain(dtype="float16", d=576, dv=512, hq=16, hkv=1, lengths=True, v_in_k=True, device=CHIP)
    assert "v-in-k" in text
    with pytest.raises(fagen.InvalidArgument, match="dv is 72 and features has v-in-k; accepted with d=64: 1 to 64"):
        fagen.supported(dtype="float16", d=64, dv=72, v_in_k=True, device=CHIP)


def test_of_pytorch():
    """The same as a v of its own; gradients, and programs that are traced, are refused by name."""
    torch = pytest.importorskip("torch")
    q, k = torch.from_numpy(half(1, 2, 5, 4, 48)), torch.from_numpy(half(2, 2, 9, 2, 48))
    wanted = exact(q, k, k[..., :40])[0]
    close(fagen.attention(q, k, None, head_dim_v=40, device=CHIP), wanted)
    with torch.no_grad():
        close(fagen.attention(q.requires_grad_(), k, k[..., :40], head_dim_v=40, device=CHIP), wanted)
    with pytest.raises(fagen.GradientUnsupported, match="q.requires_grad is True; accepted: False, or a call within torch.no_grad"):
        fagen.attention(q, k, None, head_dim_v=40, device=CHIP)
    q = q.detach()
    with pytest.raises(fagen.GradientUnsupported, match="k.requires_grad is True"):
        fagen.varlen_attention(q, k.requires_grad_(), None, head_dim_v=40, seqlens_k=torch.tensor([9, 2]).int(), device=CHIP)
    k = k.detach()
    with pytest.raises(fagen.GradientUnsupported, match="operands whose requires_grad is True; accepted with head_dim_v: none"):
        fagen.attention(q, k, None, head_dim_v=40, sinks=torch.zeros(4, requires_grad=True), device=CHIP)
    with pytest.raises(fagen.Unsupported, match="within torch.func; accepted with head_dim_v: a call outside of torch.compile"):
        torch.func.vmap(lambda x: fagen.attention(x, k, None, head_dim_v=40, device=CHIP))(q[None])


def test_of_jax():
    jax = pytest.importorskip("jax")
    q, k = jax.numpy.zeros((1, 2, 2, 48)), jax.numpy.zeros((1, 3, 1, 48))
    with pytest.raises(fagen.Unsupported, match="q is an array of JAX; accepted with head_dim_v: PyTorch, numpy and others"):
        fagen.attention(q, k, None, head_dim_v=40, device=CHIP)
    with pytest.raises(fagen.InvalidArgument, match="v is None; accepted: a tensor; or None beside head_dim_v"):
        fagen.attention(q, k, None, device=CHIP)
