"""fagen.attention over caches of few bits on the simulator: against the numbers that they mean, and what is refused."""
import os

import numpy as np
import pytest

import fagen

SIM = "sim:sm_90a"


def rows(*shape, seed=0, dtype=np.float16):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def codes(x, scale):
    return np.clip(np.rint(x / scale), -128, 127).astype(np.int8)


def test_integers_with_scales_of_heads_sequences_tokens_and_columns():
    q, x, y = rows(2, 1, 4, 32), rows(2, 40, 2, 32, seed=1), rows(2, 40, 2, 32, seed=2)
    for shape in ((2, 2), (2, 40, 2), (1, 1, 2, 32), (2, 1, 1, 32)):
        ks, vs = np.abs(rows(*shape, seed=3, dtype=np.float32)) / 100 + 0.02, np.abs(rows(*shape, seed=4, dtype=np.float32)) / 100 + 0.02
        wide = [s if s.ndim == 4 else s[..., None] if s.ndim == 3 else s.reshape(-1, 1, s.shape[-1], 1) for s in (ks, vs)]
        k, v = codes(x, wide[0]), codes(y, wide[1])
        got = fagen.attention(q, k, v, k_scale=ks, v_scale=vs, device=SIM)
        want = fagen.attention(q, (k * wide[0]).astype(np.float16), (v * wide[1]).astype(np.float16), device=SIM)
        assert np.allclose(got, want, atol=4e-3), shape
        assert np.array_equal(got, fagen.attention(q, k.view(np.uint8), v.view(np.uint8), cache_format="s8", k_scale=ks, v_scale=vs,
                                                   device=SIM))


@pytest.mark.parametrize("name, block, size", [("q5_0", 32, 22), ("nvfp4", 64, 36)][:2 if os.environ.get("FAGEN_TEST_FULL") else 1])
def test_pages_of_what_was_appended(name, block, size):
    k, v, q = rows(2, 8, 2, 64), rows(2, 8, 2, 64, seed=1), rows(2, 3, 2, 64, seed=2)
    table, lengths = np.array([[2, 0], [1, 3]], np.int32), np.array([8, 7], np.int32)
    pages = [np.zeros((4, 4, 2, 64 // block * size), np.uint8) for _ in range(2)]
    fagen.append(k, v, *pages, page_table=table, seqlens_k=np.full(2, 8, np.int32), cache_format=name, device=SIM)
    got, lse = fagen.varlen_attention(q, *pages, page_table=table, seqlens_k=lengths, cache_format=name, causal=True, return_lse=True,
                                      device=SIM)
    want, sums = fagen.varlen_attention(q, k, v, seqlens_k=lengths, causal=True, return_lse=True, device=SIM)
    assert np.abs(got - want).max() < 0.5 and np.allclose(lse, sums, atol=0.5)
    mixed = fagen.varlen_attention(q, pages[0], np.ones((4, 4, 2, 64), np.int8), page_table=table, seqlens_k=lengths, cache_format=name,
                                   v_scale=np.full(2, 0.5, np.float32), causal=True, device=SIM)
    assert np.allclose(mixed, 0.5, atol=1e-3)


def test_queries_in_fp32():
    q, x, y = rows(2, 2, 4, 32, dtype=np.float32), rows(2, 40, 2, 32, seed=1), rows(2, 40, 2, 32, seed=2)
    scale, lengths = np.full(2, 0.02, np.float32), np.array([40, 31], np.int32)
    k, v = codes(x, 0.02), codes(y, 0.02)
    numbers = [z.astype(np.float32) * np.float32(0.02) for z in (k, v)]
    for form, given in ((fagen.attention, {}), (fagen.varlen_attention, {"seqlens_k": lengths})):
        got, lse = form(q, k, v, k_scale=scale, v_scale=scale, causal=True, return_lse=True, device=SIM, **given)
        want, sums = form(q, *numbers, causal=True, return_lse=True, device=SIM, **given)
        assert got.dtype == np.float32 and np.allclose(got, want, atol=4e-3) and np.allclose(lse, sums, atol=4e-3)
        small = form(q / 2**40, k, v, k_scale=scale, v_scale=scale, causal=True, scale=float(2**40 / 32**0.5), device=SIM, **given)
        assert np.array_equal(got, small), "rows have powers of their own"


def test_score_programs():
    """Slopes, sinks and a mask over integers in a dense call, a softcap and sinks over blocks in pages."""
    q, k, v = rows(2, 2, 4, 32), codes(rows(2, 40, 2, 32, seed=1), 0.03), codes(rows(2, 40, 2, 32, seed=2), 0.03)
    scale, mask = np.full(2, 0.03, np.float32), np.random.default_rng(4).random((2, 1, 2, 40)) < 0.7
    numbers = [(x * np.float32(0.03)).astype(np.float16) for x in (k, v)]
    mask[..., 0] = True
    sinks, slopes = rows(4, seed=5, dtype=np.float32), np.array([0.1, 0.2, 0.0, 1.0], np.float32)
    for options in (dict(alibi_slopes=slopes, sinks=sinks), dict(attn_mask=mask)):
        got = fagen.attention(q, k, v, k_scale=scale, v_scale=scale, device=SIM, **options)
        assert np.allclose(got, fagen.attention(q, *numbers, device=SIM, **options), atol=4e-3), options
        assert not np.allclose(got, fagen.attention(q, *numbers, device=SIM), atol=4e-3)
    pages, table = [np.zeros((4, 20, 2, 34), np.uint8) for _ in range(2)], np.array([[2, 0], [1, 3]], np.int32)
    lengths = np.array([40, 9], np.int32)
    fagen.append(*numbers, *pages, page_table=table, seqlens_k=np.full(2, 40, np.int32), cache_format="q8_0", device=SIM)
    got = fagen.varlen_attention(q, *pages, page_table=table, seqlens_k=lengths, cache_format="q8_0", softcap=1.5, sinks=sinks, device=SIM)
    want = fagen.varlen_attention(q, *numbers, seqlens_k=lengths, softcap=1.5, sinks=sinks, device=SIM)
    assert np.abs(got - want).max() < 0.03


def test_scales_of_pages():
    """One of each page and head: strides of 0 from token to token."""
    q, k, v = rows(2, 1, 4, 32), codes(rows(4, 5, 2, 32, seed=1), 0.03), codes(rows(4, 5, 2, 32, seed=2), 0.03)
    table, lengths = np.array([[2, 0], [1, 3]], np.int32), np.array([10, 7], np.int32)
    scales = [np.abs(rows(4, 1, 2, seed=s, dtype=np.float32)) / 100 + 0.02 for s in (3, 4)]
    wide = [np.broadcast_to(s, (4, 5, 2)) for s in scales]
    got = fagen.varlen_attention(q, k, v, page_table=table, seqlens_k=lengths, k_scale=wide[0], v_scale=wide[1], device=SIM)
    numbers = [(x * s[..., None]).astype(np.float16) for x, s in zip((k, v), scales)]
    assert np.allclose(got, fagen.varlen_attention(q, *numbers, page_table=table, seqlens_k=lengths, device=SIM), atol=4e-3)
    assert np.array_equal(got, fagen.varlen_attention(q, k, v, page_table=table, seqlens_k=lengths, k_scale=scales[0], v_scale=scales[1],
                                                      device=SIM)), "[pages, 1, hkv] is such a one"


def test_types_of_pytorch():
    torch = pytest.importorskip("torch")
    q, x = torch.randn(1, 1, 2, 32).half(), torch.randn(1, 20, 2, 32)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        k = x.to(dtype)
        got = fagen.attention(q, k, k, device=SIM)
        want = fagen.attention(q, k.half(), k.half(), device=SIM)
        assert torch.allclose(got, want, atol=4e-3)
    with pytest.raises(fagen.GradientUnsupported, match="q.requires_grad is True"):
        fagen.attention(q.requires_grad_(), k, k, device=SIM)


def test_a_launch_is_put_on_the_current_stream_of_pytorch(monkeypatch):
    """Of tensors of PyTorch where the caller names no stream; other tensors have that of their interface."""
    torch = pytest.importorskip("torch")
    import fagen.torch  # noqa: F401, the operators
    told = []

    class Plan:
        host, words = False, [0, 0]
        launch = staticmethod(told.append)

    monkeypatch.setattr(fagen._torch_ops.launch, "on_device", lambda plan, index: told.append((plan.words[1], index)))
    array = rows(2, 2)
    staged = [fagen._stage.Staged(1, fagen._view.view("q", array), False)]
    for q, stream in ((torch.zeros(1), None), (torch.zeros(1), 5), (array, None)):
        fagen._stage.put(Plan, q, staged, stream, 7)
    assert told == [(array.ctypes.data, 0), 7, 7]


@pytest.mark.parametrize("change, words", [
    (dict(cache_format="q9"), "cache_format is 'q9'; accepted: None, e4m3, e5m2"),
    (dict(cache_format="q8_0"), "k.dtype is int8; accepted: uint8, the bytes of q8_0"),
    (dict(k_scale=np.ones(3, np.float32)), r"k_scale.shape is \(3,\); accepted: \(1,\), \(2,\), a scale for each head"),
    (dict(v_scale=np.ones(2, np.float16)), "v_scale.dtype is float16"),
    (dict(tf32=True), "tf32 is True; accepted by this version: False"),
])
def test_what_is_refused(change, words):
    q, k = rows(1, 1, 2, 32), np.zeros((1, 4, 2, 32), np.int8)
    with pytest.raises(fagen.FagenError, match=words):
        fagen.attention(q, k, k, device=SIM, **change)


def eight_bits(x):
    """Codes of e4m3 of multiples of 1/4 from -3 to 3, and these."""
    numbers = np.clip(np.rint(x * 4), -12, 12) / 4
    size = np.abs(numbers)
    e = np.floor(np.log2(np.maximum(size, 0.25)))
    codes = np.where(size == 0, 0, (e + 7) * 8 + (size / 2.0 ** e - 1) * 8).astype(np.uint8)
    return np.where(numbers < 0, codes | 128, codes).astype(np.uint8), numbers.astype(np.float16)


def test_q_k_and_v_of_8_bits():
    (q, of_q), (k, of_k), (v, of_v) = (eight_bits(rows(2, 40, h, 32, seed=s)) for h, s in ((4, 1), (2, 2), (2, 3)))
    scales = [np.abs(rows(2, h, seed=s, dtype=np.float32)) + 0.5 for h, s in ((4, 4), (2, 5), (2, 6))]
    wide = [(x * s[:, None, :, None]).astype(np.float32) for x, s in zip((of_q, of_k, of_v), scales)]
    got, lse = fagen.attention(q, k, v, causal=True, q_scale=scales[0], k_scale=scales[1], v_scale=scales[2], cache_format="e4m3",
                               out_dtype="float32", return_lse=True, device=SIM)
    want, sums = fagen.attention(*wide, causal=True, return_lse=True, device=SIM)
    assert got.dtype == np.float32 and np.allclose(lse, sums, atol=2e-3)
    assert np.abs(got - want).max() < 0.06 * np.abs(want).max()
    wide_rows = np.zeros((2, 2, 32, 48), np.uint8)  # keys side by side
    wide_rows[..., :40] = v.transpose(0, 2, 3, 1)
    by_columns = fagen.attention(q, k, wide_rows[..., :40].transpose(0, 3, 1, 2), causal=True, q_scale=scales[0], k_scale=scales[1],
                                 v_scale=scales[2], cache_format="e4m3", out_dtype="float32", device=SIM)
    assert np.allclose(by_columns, got, rtol=1e-5, atol=1e-5)
    narrow = fagen.attention(q, k, v, causal=True, q_scale=scales[0], k_scale=scales[1], v_scale=scales[2], o_scale=scales[0] / 16,
                             cache_format="e4m3", out_dtype="float8_e4m3fn", device=SIM)
    codes = (got / (scales[0] / 16)[:, None, :, None]).astype(np.float32)
    size, e = (narrow & 7) / 8 + (narrow & 0x78 != 0), np.maximum((narrow >> 3 & 15).astype(int), 1) - 7
    numbers = np.where(narrow & 128, -1, 1) * size * 2.0 ** e
    assert narrow.dtype == np.uint8 and (np.abs(numbers - codes) <= np.maximum(np.abs(codes), 2.0 ** -6) / 14).all()
    half = fagen.attention(q, k, of_v, causal=True, q_scale=scales[0], k_scale=scales[1], v_scale=scales[2], cache_format="e4m3",
                           out_dtype="float32", device=SIM)  # V and P of 16 bits
    assert np.abs(half - want).max() < 0.004 * np.abs(want).max() < np.abs(got - want).max()
    lengths = np.array([40, 13], np.int32)
    ragged = fagen.varlen_attention(q, k, v, seqlens_k=lengths, cache_format="e4m3", out_dtype="float16", device=SIM)
    assert np.abs(ragged - fagen.varlen_attention(of_q, of_k, of_v, seqlens_k=lengths, device=SIM)).max() < 0.2
    for changed, words in (({"cache_format": "e4m3", "k": k.view(np.int8)}, "k.dtype is s8; accepted: e4m3, that of q"),
                           ({"cache_format": "e4m3", "q_scale": scales[1]}, r"q_scale.shape is \(2, 2\)"),
                           ({"cache_format": "e4m3", "out_dtype": "float64"}, "out_dtype is float64"),
                           ({"cache_format": "e4m3", "o_scale": scales[1], "out_dtype": "float8_e4m3fn"}, r"o_scale.shape is \(2, 2\)"),
                           ({"q": of_q, "cache_format": "e4m3", "q_scale": scales[0]}, "q_scale is numpy.ndarray; accepted: None")):
        with pytest.raises(fagen.InvalidArgument, match=words):
            fagen.attention(**{"q": q, "k": k, "v": v, "out_dtype": "float16", "device": SIM, **changed})


def test_float8_of_pytorch():
    torch = pytest.importorskip("torch")
    q = torch.randn(1, 30, 2, 64).to(torch.float8_e4m3fn)
    got, want = fagen.attention(q, q, q, device=SIM), fagen.attention(q.half(), q.half(), q.half(), device=SIM)
    assert got.dtype == torch.bfloat16 and (got - want).abs().max() < 0.2


def test_q_and_k_of_integers():
    """Codes of rows, and a scale of each row or of each head, V of 16 bits; dense and with lengths."""
    def integers(x, of_rows):
        scale = np.abs(x).max(axis=3 if of_rows else (1, 3)).astype(np.float32) / 127
        wide = scale[..., None] if of_rows else scale[:, None, :, None]
        codes = np.clip(np.rint(x / wide), -127, 127).astype(np.int8)
        return codes, scale, (codes * wide).astype(np.float32)

    x, y, v = (rows(2, 40, h, 48, seed=s) for h, s in ((4, 1), (2, 2), (2, 3)))
    for of_rows in (True, False):
        (q, qs, of_q), (k, ks, of_k) = integers(x, of_rows), integers(y, of_rows)
        options = dict(q_scale=qs, k_scale=ks, out_dtype="float32", device=SIM)
        got, lse = fagen.attention(q, k, v, causal=True, return_lse=True, **options)
        want, sums = fagen.attention(of_q, of_k, v.astype(np.float32), causal=True, return_lse=True, device=SIM)
        assert np.abs(got - want).max() < 0.004 * np.abs(want).max() and np.allclose(lse, sums, atol=1e-4)
    lengths = np.array([40, 13], np.int32)
    ragged = fagen.varlen_attention(q, k, v, seqlens_k=lengths, **options)
    right = fagen.varlen_attention(of_q, of_k, v.astype(np.float32), seqlens_k=lengths, device=SIM)
    assert np.abs(ragged - right).max() < 0.004 * np.abs(right).max()
    for changed, words in (({"v": k}, "v.dtype is s8; accepted: float16, bfloat16, beside q in int8"),
                           ({"k": v}, "k.dtype is float16"),
                           ({"q_scale": ks}, r"q_scale.shape is \(2, 2\)")):
        with pytest.raises(fagen.InvalidArgument, match=words):
            fagen.attention(**{"q": q, "k": k, "v": v, **options, **changed})
