"""fagen.append on the simulator: against NumPy, with attention over what it wrote, and what is refused."""
import numpy as np
import pytest

import fagen

SIM = "sim:sm_90a"


def rows(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def turned(x, table, positions):
    """In float32, each operation rounded by itself."""
    half = table.shape[1] // 2
    c, s = table[positions][:, :, None, :half], table[positions][:, :, None, half:]
    a, b = x[..., :half], x[..., half:2 * half]
    return np.concatenate((a * c - b * s, b * c + a * s, x[..., 2 * half:]), -1)


def test_rows_are_stored_by_slots_and_queries_are_rotated():
    k, v, q, table = rows(2, 3, 2, 16), rows(2, 3, 2, 16, seed=1), rows(2, 3, 4, 16, seed=2), rows(9, 8, seed=3)
    slots = np.array([[5, -1, 3], [11, 3, 99]])
    positions = np.array([[0, 1, 2], [3, 4, 8]], dtype=np.int32)
    k_cache, v_cache, skipped = np.zeros((3, 4, 2, 16), np.float32), np.zeros((3, 4, 2, 16), np.float16), np.zeros(1, np.int64)
    out = fagen.append(k, v, k_cache, v_cache, slots=slots, q=q, cos_sin=table, positions=positions, skipped=skipped, device=SIM)
    assert np.array_equal(out, turned(q, table, positions)) and skipped[0] == 2
    expected_k, expected_v = np.zeros((12, 2, 16), np.float32), np.zeros((12, 2, 16), np.float16)
    new_k = turned(k, table, positions)
    for i in range(6):
        if 0 <= slots.flat[i] < 12:
            expected_k[slots.flat[i]], expected_v[slots.flat[i]] = new_k.reshape(6, 2, 16)[i], v.reshape(6, 2, 16)[i]
    assert np.array_equal(k_cache.reshape(12, 2, 16), expected_k) and np.array_equal(v_cache.reshape(12, 2, 16), expected_v)


def test_attention_reads_what_was_appended():
    k, v, q = rows(2, 8, 2, 16, dtype=np.float16), rows(2, 8, 2, 16, seed=1, dtype=np.float16), rows(2, 1, 2, 16, seed=2, dtype=np.float16)
    table = np.array([[2, 0], [1, 3]], np.int32)
    pages_k, pages_v = np.zeros((4, 4, 2, 16), np.float16), np.zeros((4, 4, 2, 16), np.float16)
    for length, new in ((5, slice(0, 5)), (8, slice(5, 8))):
        lengths = np.full(2, length, np.int32)
        assert fagen.append(k[:, new], v[:, new], pages_k, pages_v, page_table=table, seqlens_k=lengths, device=SIM) is None
    assert np.array_equal(pages_k[table].reshape(2, 8, 2, 16), k)
    paged = fagen.varlen_attention(q, pages_k, pages_v, page_table=table, seqlens_k=lengths, max_seqlen_k=8, device=SIM)
    assert np.allclose(paged, fagen.attention(q, k, v, device=SIM), atol=2e-3)


def test_few_bits():
    k = rows(1, 4, 2, 32)
    caches = [np.zeros((1, 6, 2, 34), np.uint8) for _ in range(2)]
    fagen.append(k, k, *caches, seqlens_k=np.array([6], np.int32), cache_format="q8_0", device=SIM)
    scale = caches[0][0, 2:, :, :2].copy().view(np.float16).astype(np.float32)
    codes = caches[0][0, 2:, :, 2:].copy().view(np.int8)
    assert np.abs(codes * scale - k[0]).max() < np.abs(k).max() / 250 and not caches[0][0, :2].any()
    found, wide = np.zeros((1, 6, 2), np.float32), [np.zeros((1, 6, 2, 32), np.uint8) for _ in range(2)]
    fagen.append(k, k, *wide, seqlens_k=np.array([6], np.int32), cache_format="s8", k_scale_out=found, v_scale=np.full(2, 0.05, np.float32),
                 device=SIM)
    assert np.array_equal(found[0, 2:], np.abs(k[0]).max(-1) / np.float32(127))
    assert np.array_equal(wide[1][0, 2:].view(np.int8), np.clip(np.rint(k[0] / np.float32(0.05)), -128, 127).astype(np.int8))


@pytest.mark.parametrize("change, says", [
    (dict(slots=np.zeros((1, 2), np.int32)), "slots.dtype is int32; accepted: int64"),
    (dict(slots=np.zeros((2, 1), np.int64)), "slots.shape is (2, 1); accepted: (1, 2)"),
    (dict(rotary_style="thirds"), "rotary_style is 'thirds'; accepted: halves, pairs"),
    (dict(positions=np.zeros((1, 2), np.int64)), "cos_sin is None"),
    (dict(cache_format="q9"), "cache_format is 'q9'; accepted: None, e4m3, e5m2, s8, q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl, nvfp4"),
    (dict(cache_format="e4m3"), "k_cache.dtype is float32; accepted: uint8"),
    (dict(cos_sin=np.zeros((4, 3), np.float32)), "rotary_dim is 3"),
    (dict(hadamard_k=1), "hadamard_k is 1; accepted: True, False"),
])
def test_what_is_wrong_is_named(change, says):
    k, cache = rows(1, 2, 1, 8), np.zeros((1, 4, 1, 8), np.float32)
    given = dict(slots=np.zeros((1, 2), np.int64), device=SIM)
    with pytest.raises(fagen.FagenError) as e:
        fagen.append(k, k, cache, cache.copy(), **{**given, **change})
    assert says in str(e.value)
