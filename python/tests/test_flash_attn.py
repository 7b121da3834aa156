"""fagen.flash_attn: the names and the argument order of the flash_attn package."""
from __future__ import annotations

import pytest
from conftest import close, exact

import fagen

torch = pytest.importorskip("torch")
from fagen.flash_attn import (flash_attn_func, flash_attn_kvpacked_func, flash_attn_qkvpacked_func,  # noqa: E402
                              flash_attn_varlen_func, flash_attn_varlen_kvpacked_func, flash_attn_varlen_qkvpacked_func,
                              flash_attn_with_kvcache)

INT = torch.int32


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).half()


Q, K, V = normal(1, 2, 3, 4, 64), normal(2, 2, 33, 2, 64), normal(3, 2, 33, 2, 64)
N = torch.tensor([9, 30], dtype=INT)


def right(out, q, k, v, **mask):
    close(out, exact(*(x.double().numpy() for x in (q, k, v)), **mask)[0])


def test_func(chip):
    right(flash_attn_func(Q, K, V), Q, K, V)
    right(flash_attn_func(Q, K, V, 0.0, 0.25, True), Q, K, V, right=0, scale=0.25)
    right(flash_attn_func(Q, K, V, 0.0, None, False, (5, 2)), Q, K, V, left=5, right=2)
    out, lse, nothing = flash_attn_func(Q, K, V, causal=True, return_attn_probs=True)
    assert lse.shape == (2, 4, 3) and nothing is None
    assert flash_attn_kvpacked_func(Q, torch.stack([K, V], 2), causal=True).equal(out)
    x = normal(4, 2, 20, 3, 4, 64)
    right(flash_attn_qkvpacked_func(x, causal=True), x[:, :, 0], x[:, :, 1], x[:, :, 2], right=0)


def test_varlen(chip):
    q, k = normal(1, 24, 4, 64), normal(2, 30, 2, 64)
    a, b = torch.tensor([0, 10, 24], dtype=INT), torch.tensor([0, 14, 30], dtype=INT)
    out, lse, _ = flash_attn_varlen_func(q, k, k, a, b, 14, 16, causal=True, return_attn_probs=True)
    assert lse.shape == (4, 24)
    right(out[None, 10:], q[None, 10:], k[None, 14:], k[None, 14:], right=0)
    pages, table = normal(3, 4, 16, 2, 64), torch.tensor([[2], [1]], dtype=INT)
    out = flash_attn_varlen_func(q, pages, pages, a, b, 14, 16, causal=True, block_table=table)
    right(out[None, 10:], q[None, 10:], pages[1:2, :16], pages[1:2, :16], right=0)


def test_kvcache(chip):
    def each(out, k=K, v=V, starts=(0, 0)):
        for i, (a, n) in enumerate(zip(starts, N)):
            right(out[i:i + 1], Q[i:i + 1], k[i:i + 1, a:n], v[i:i + 1, a:n], right=0)

    each(flash_attn_with_kvcache(Q, K, V, cache_seqlens=N, causal=True))
    out, lse = flash_attn_with_kvcache(Q, K, V, cache_seqlens=20, causal=True, return_softmax_lse=True)
    assert lse.shape == (2, 4, 3)
    right(out, Q, K[:, :20], V[:, :20], right=0)
    right(flash_attn_with_kvcache(Q, K, V, causal=True), Q, K, V, right=0)
    swapped = torch.tensor([1, 0], dtype=INT)
    each(flash_attn_with_kvcache(Q, K, V, cache_seqlens=N, cache_batch_idx=swapped, causal=True), K.flip(0), V.flip(0))
    each(flash_attn_with_kvcache(Q, K, V, cache_seqlens=N, cache_leftpad=torch.tensor([4, 11], dtype=INT), causal=True), starts=(4, 11))
    pages, table = K[:, :32].reshape(4, 16, 2, 64), torch.tensor([[0, 1], [2, 3]], dtype=INT)
    each(flash_attn_with_kvcache(Q, pages, pages, cache_seqlens=N, block_table=table, causal=True), K, K)


def test_packed_forms_and_rows_in_use(chip):
    q, kv = normal(1, 24, 4, 64), normal(2, 30, 2, 2, 64)
    a, b, used = torch.tensor([0, 10, 24], dtype=INT), torch.tensor([0, 14, 30], dtype=INT), torch.tensor([5, 11], dtype=INT)
    k, v = kv[:, 0], kv[:, 1]
    wanted = flash_attn_varlen_func(q, k, v, a, b, 14, 16, causal=True)
    assert flash_attn_varlen_kvpacked_func(q, kv, a, b, 14, 16, causal=True).equal(wanted)
    assert flash_attn_varlen_kvpacked_func(q, kv, a, b, torch.tensor(14), torch.tensor(16, dtype=INT), causal=True).equal(wanted)
    out = flash_attn_varlen_func(q, k, v, a, b, 14, 16, seqused_q=torch.tensor([10, 3], dtype=INT), seqused_k=used)
    right(out[None, 10:13], q[None, 10:13], k[None, 14:25], v[None, 14:25])
    qkv = normal(3, 24, 3, 4, 64)
    assert flash_attn_varlen_qkvpacked_func(qkv, a, 14, causal=True).equal(
        flash_attn_varlen_func(*qkv.unbind(1), a, a, 14, 14, causal=True))
    pages, table = normal(3, 4, 16, 2, 64), torch.tensor([[2], [1]], dtype=INT)
    out = flash_attn_varlen_func(q, pages, pages, a, None, 14, 16, causal=True, block_table=table, seqused_k=used)
    right(out[None, 10:], q[None, 10:], pages[1:2, :11], pages[1:2, :11], right=0)


def test_a_window_of_one_number(chip):
    right(flash_attn_func(Q, K, V, window_size=4), Q, K, V, left=4, right=4)
    right(fagen.attention(Q, K, V, window=4, causal=True), Q, K, V, left=4, right=0)
    assert flash_attn_func(Q, K, V, window_size=-1).equal(flash_attn_func(Q, K, V))


def test_merge_of_lists(chip):
    parts = [fagen.attention(Q, k, v, out_dtype="float32", return_lse=True) for k, v in ((K[:, :9], V[:, :9]), (K[:, 9:], V[:, 9:]))]
    out = fagen.merge([o for o, _ in parts], tuple(lse for _, lse in parts))
    right(out, Q, K, V)
    assert out.equal(fagen.merge(torch.stack([o for o, _ in parts]), torch.stack([lse for _, lse in parts])))


NOT = [
    ("dropout_p is 1.0", lambda: flash_attn_func(Q, K, V, 1.0)),
    ("scalar is -30 (cap)", lambda: flash_attn_func(Q, K, V, softcap=-30.0)),
    ("alibi_slopes is", lambda: flash_attn_func(Q, K, V, alibi_slopes=torch.ones(4, 1, 1))),
    ("k is", lambda: flash_attn_with_kvcache(Q, K, V, Q, Q)),
    ("rotary_cos is", lambda: flash_attn_with_kvcache(Q, K, V, rotary_cos=Q)),
    ("q.requires_grad is True", lambda: flash_attn_with_kvcache(Q.clone().requires_grad_(), K, V)),
    ("window_size is 0.5", lambda: flash_attn_func(Q, K, V, window_size=0.5)),
    ("cu_seqlens_k and seqused_k are None", lambda: flash_attn_varlen_func(Q[0], K, K, N, None, 3, 33, block_table=N[:, None])),
    ("max_seqlen_q is tensor(3.)", lambda: flash_attn_varlen_func(Q[0], K[0], K[0], N, N, torch.tensor(3.0), 3)),
    ("cache_seqlens is 34", lambda: flash_attn_with_kvcache(Q, K, V, cache_seqlens=34)),
    ("cache_batch_idx and block_table are both set", lambda: flash_attn_with_kvcache(Q, K, V, cache_batch_idx=N, block_table=N)),
    ("k_cache.strides", lambda: flash_attn_with_kvcache(Q, K.flip(0)[:, ::2], V[:, ::2], cache_seqlens=N, cache_leftpad=N)),
]


@pytest.mark.parametrize("words, call", NOT, ids=[row[0] for row in NOT])
def test_what_is_not_computed_says_so(chip, words, call):
    with pytest.raises((fagen.Unsupported, fagen.InvalidArgument)) as told:
        call()
    assert words in str(told.value) and "accepted" in str(told.value)
