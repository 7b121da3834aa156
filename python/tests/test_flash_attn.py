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


ANGLES = torch.randn(40, 16, generator=torch.Generator().manual_seed(7), dtype=torch.float64) * 3
COS, SIN = ANGLES.cos().float(), ANGLES.sin().float()


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


def turned(x, at, interleaved):
    """Rows of one sequence, [s, h, d], by the angles of their positions, in fp64."""
    x, (a, b) = x.double(), (slice(0, 32, 2), slice(1, 32, 2)) if interleaved else (slice(0, 16), slice(16, 32))
    c, s, out = ANGLES[at].cos()[:, None], ANGLES[at].sin()[:, None], x.clone()
    out[..., a], out[..., b] = x[..., a] * c - x[..., b] * s, x[..., a] * s + x[..., b] * c
    return out


def grown(k, v, k_new, v_new, before, interleaved=None):
    """The caches [b, s, h, d] in fp64, with new rows behind those before."""
    k, v = k.double().clone(), v.double().clone()
    for i, n in enumerate(before):
        at = torch.arange(k_new.shape[1]) + n
        k[i, at] = k_new[i].double() if interleaved is None else turned(k_new[i], at, interleaved)
        v[i, at] = v_new[i].double()
    return k, v


@pytest.mark.parametrize("interleaved", [None, True, False])
@pytest.mark.parametrize("way", ["rows", "one length", "index", "pages", "padding"])
def test_kvcache_with_new_keys(chip, way, interleaved):
    """Stored where they belong, rotated, and seen; queries are rotated as theirs."""
    before = [4, 9] if way != "one length" else [9, 9]
    k_new, v_new = normal(5, 2, 3, 2, 64), normal(6, 2, 3, 2, 64)
    wanted = grown(K[:, :32], V[:, :32], k_new, v_new, before, interleaved)
    options = dict(causal=True, cache_seqlens=9 if way == "one length" else torch.tensor(before, dtype=INT))
    if interleaved is not None:
        options.update(rotary_cos=COS, rotary_sin=SIN, rotary_interleaved=interleaved)
    k, v = K[:, :32].clone(), V[:, :32].clone()
    order, starts = torch.tensor([1, 0]), (0, 0)
    if way == "index":
        k, v, options["cache_batch_idx"] = k.flip(0), v.flip(0), order.int()
    if way == "pages":
        wide = torch.tensor([[1, 0, 9], [2, 3, 9]], dtype=INT)  # a table of rows further apart
        k, v, options["block_table"] = (x.reshape(4, 16, 2, 64)[[1, 0, 2, 3]].contiguous() for x in (k, v)), None, wide[:, :2]
        k, v = k
    if way == "padding":
        starts, options["cache_leftpad"] = (1, 4), torch.tensor([1, 4], dtype=INT)
    out, lse = flash_attn_with_kvcache(Q, k, v, k_new, v_new, return_softmax_lse=True, **options)
    assert lse.shape == (2, 4, 3)
    if way == "pages":
        k, v = (x[[1, 0, 2, 3]].reshape(2, 32, 2, 64) for x in (k, v))
    if way == "index":
        k, v = k.flip(0), v.flip(0)
    close(k, wanted[0].numpy(), 2e-3)
    close(v, wanted[1].numpy(), 0)
    for i, (n, a) in enumerate(zip(before, starts)):
        q = Q[i] if interleaved is None else turned(Q[i], torch.arange(3) + n, interleaved).half()
        right(out[i:i + 1], q[None], k[i:i + 1, a:n + 3], v[i:i + 1, a:n + 3], right=0)


def test_queries_that_are_not_the_new_keys_rows(chip):
    """One more key than queries, causal and not; queries all at one place without a mask; new keys of fewer rows than queries."""
    for causal, rows, new in ((True, 1, 2), (False, 3, 3), (False, 2, 1), (True, 3, 1)):
        k, v, k_new, v_new, q = K[:, :32].clone(), V[:, :32].clone(), normal(5, 2, new, 2, 64), normal(6, 2, new, 2, 64), Q[:, :rows]
        out = flash_attn_with_kvcache(q, k, v, k_new, v_new, COS, SIN, cache_seqlens=N - 5, causal=causal)
        for i, n in enumerate((N - 5).tolist()):
            at = torch.arange(rows) * causal + n
            mask = {"right": 0} if causal else {}
            right(out[i:i + 1], turned(q[i], at, True).half()[None], k[i:i + 1, :n + new], v[i:i + 1, :n + new], **mask)


def test_new_keys_in_a_compiled_program(chip):
    """Which is cut where they are stored."""
    def call(q, k, v, k_new, v_new, lengths):
        return flash_attn_with_kvcache(q * 2, k, v, k_new, v_new, COS, SIN, cache_seqlens=lengths, causal=True) + 1

    k_new, v_new, found = normal(5, 2, 3, 2, 64), normal(6, 2, 3, 2, 64), []
    torch._dynamo.reset()
    for f in (call, torch.compile(call, backend="aot_eager")):
        k, v = K[:, :32].clone(), V[:, :32].clone()
        found.append((f(Q, k, v, k_new, v_new, N - 5), k, v))
    assert all(a.equal(b) for a, b in zip(*found))


def test_tables_of_angles(chip):
    """Side by side in memory, apart, changed in place, of inference mode, of 16 bits."""
    from fagen._kvcache import side_by_side
    both = torch.cat((COS, SIN), 1)
    assert side_by_side(both[:, :16], both[:, 16:]).data_ptr() == both.data_ptr()
    cos, sin = COS.clone(), SIN.clone()
    assert side_by_side(cos, sin).equal(both) and side_by_side(cos, sin) is side_by_side(cos, sin)
    assert side_by_side(cos, sin.clone()).equal(both)
    sin.mul_(2)
    assert side_by_side(cos, sin)[:, 16:].equal(2 * SIN)
    with torch.inference_mode():
        cos = COS.clone()
        assert side_by_side(cos, sin)[:, :16].equal(COS)
        cos.zero_()
        assert not side_by_side(cos, sin)[:, :16].any()
    k_new, v_new = normal(5, 2, 3, 2, 64), normal(6, 2, 3, 2, 64)
    k, v = K[:, :32].clone(), V[:, :32].clone()
    flash_attn_with_kvcache(Q, k, v, k_new, v_new, COS.bfloat16(), SIN.bfloat16(), cache_seqlens=4)
    close(k, grown(K[:, :32], V[:, :32], k_new, v_new, (4, 4), True)[0].numpy(), 3e-2)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2", "s8", "q8_0", "q4_0", "two"])
def test_caches_of_few_bits(chip, kind):
    """New keys become codes, and are read as such: beside the same calls of attention and of fagen.append."""
    dtype = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "s8": torch.int8}.get(kind)
    block = {"q8_0": 34, "q4_0": 18, "two": 34}.get(kind)
    shape = (2, 20, 2, 64 // 32 * block) if block else (2, 20, 2, 64)
    k, v = (torch.zeros(shape, dtype=dtype or torch.uint8) for _ in range(2))
    options = {"cache_format": "q8_0" if kind == "two" else kind} if block else {}
    if kind == "two":
        v, options["v_format"] = torch.zeros((2, 20, 2, 36), dtype=torch.uint8), "q4_0"
    if kind == "s8":  # found of each token
        options.update(k_scale=torch.zeros(2, 20, 2), v_scale=torch.zeros(2, 20, 2))
    if kind == "e4m3":
        options.update(k_scale=torch.tensor([0.5, 2.0]), v_scale=torch.tensor([[1.0, 0.25], [2.0, 1.0]]))
    k_new, v_new = normal(5, 2, 12, 2, 64), normal(6, 2, 12, 2, 64)
    most = {"e5m2": 0.3, "q4_0": 0.4, "two": 0.4, "e4m3": 0.2}.get(kind, 0.03)
    wide = [torch.zeros(2, 20, 2, 64).half() for _ in range(2)]
    for n, new, rows in ((0, slice(0, 10), 3), (10, slice(10, 12), 2)):  # a prompt, then two tokens
        given = dict(cache_seqlens=n, causal=True, softcap=5.0 if n else 0.0, rotary_interleaved=False)
        out = flash_attn_with_kvcache(Q[:, :rows], k, v, k_new[:, new], v_new[:, new], COS, SIN, **given, **options)
        wanted = flash_attn_with_kvcache(Q[:, :rows], *wide, k_new[:, new], v_new[:, new], COS, SIN, **given)
        assert 0 < (out - wanted).abs().max() < most
    again = flash_attn_with_kvcache(Q[:, :2], k, v, cache_seqlens=12, causal=True, softcap=5.0, **options)
    assert again.shape == out.shape and not again.isnan().any()
    if kind == "s8":
        assert options["k_scale"][:, :12].min() > 0 and not options["k_scale"][:, 12:].any()


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
    ("scalar is -30 (softcap)", lambda: flash_attn_func(Q, K, V, softcap=-30.0)),
    ("alibi_slopes is", lambda: flash_attn_func(Q, K, V, alibi_slopes=torch.ones(4, 1, 1))),
    ("v is None", lambda: flash_attn_with_kvcache(Q, K, V, Q[:, :, :2])),
    ("cache_seqlens is None", lambda: flash_attn_with_kvcache(Q, K, V, Q[:, :, :2], Q[:, :, :2])),
    ("cache_seqlens is 31", lambda: flash_attn_with_kvcache(Q, K, V, Q[:, :, :2], Q[:, :, :2], cache_seqlens=31)),
    ("rotary_cos is set and k is None", lambda: flash_attn_with_kvcache(Q, K, V, rotary_cos=COS, rotary_sin=SIN)),
    ("rotary_sin is None", lambda: flash_attn_with_kvcache(Q, K, V, K[:, :1], V[:, :1], COS, cache_seqlens=3)),
    ("rotary_cos.shape is (32, 16)", lambda: flash_attn_with_kvcache(Q, K, V, K[:, :1], V[:, :1], COS[:32], SIN[:32], cache_seqlens=3)),
    ("rotary_sin.dtype is", lambda: flash_attn_with_kvcache(Q, K, V, K[:, :1], V[:, :1], COS, SIN.half(), cache_seqlens=3)),
    ("k.shape is (1, 3, 2, 64)", lambda: flash_attn_with_kvcache(Q, K, V, K[:1, :3], V[:1, :3], cache_seqlens=3)),
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
