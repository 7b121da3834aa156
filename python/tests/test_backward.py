"""fagen.attention_backward and fagen.varlen_attention_backward with numpy, on the simulated chip."""
from __future__ import annotations

import numpy as np
import pytest
from conftest import close, exact_gradients, half

import fagen

MOST = 1e-5  # of float32, in units of the largest gradient


def given(seed, b=2, sq=24, sk=33, hq=4, hkv=2, d=32, dv=32):
    """(grad_out, q, k, v) in float32."""
    shapes = ((b, sq, hq, dv), (b, sq, hq, d), (b, sk, hkv, d), (b, sk, hkv, dv))
    return [half(seed + i, *shape, dtype="float32") for i, shape in enumerate(shapes)]


def right(found, wanted):
    for have, want in zip(found, wanted):
        close(have, want, MOST * max(1, np.abs(want).max(initial=0)))


def both(tensors, grad_lse=None, **options):
    """The gradients by way of fagen's own out and lse."""
    grad_out, q, k, v = tensors
    out, lse = fagen.attention(q, k, v, return_lse=True, **options)
    return fagen.attention_backward(grad_out, q, k, v, out, lse, grad_lse=grad_lse, **options)


# Few classes of problems, here and below: most of the time is that of NVRTC.
@pytest.mark.parametrize("shape, options, mask", [
    ({}, {}, {}),
    ({"hkv": 1, "dv": 16}, {"causal": True}, {"right": 0}),
    ({"sq": 40, "hkv": 4, "dv": 16}, {"causal": True}, {"right": 0}),  # the first queries see no key
    ({"d": 20, "dv": 7}, {"window": (5, 2), "scale": 0.3}, {"left": 5, "right": 2, "scale": 0.3}),
    ({"d": 20, "dv": 7}, {"window": (3, 0), "diagonal": "top-left"}, {"left": 3, "right": 0, "off": 0}),  # the last keys are seen by none
])
def test_gradients(chip, shape, options, mask):
    x = given(1, **shape)
    found = both(x, **options)
    assert all(g.dtype == np.float32 and g.shape == t.shape for g, t in zip(found, x[1:]))
    right(found, exact_gradients(*x, **mask))


def test_what_is_hidden_has_gradients_of_exactly_0(chip):
    x = given(2, sq=40, dv=16)
    grad_q, _, _ = both(x, causal=True)
    assert not grad_q[:, :7].any() and grad_q[:, 7:].any()
    x = given(2, dv=16)
    x[2][:, 24:] = x[3][:, 24:] = np.nan
    _, grad_k, grad_v = found = both(x, causal=True, diagonal="top-left")
    assert not any(np.isnan(g).any() for g in found) and not grad_k[:, 24:].any() and not grad_v[:, 24:].any()


def test_a_gradient_of_lse(chip):
    x, grad_lse = given(3, dv=16), half(9, 2, 4, 24, dtype="float32")
    right(both(x, grad_lse, causal=True), exact_gradients(*x, grad_lse, right=0))


def test_tensors_of_the_caller(chip):
    """Any strides, written in place; added to what they hold."""
    grad_out, q, k, v = given(4)
    out, lse = fagen.attention(q, k, v, return_lse=True)
    q_t, grad_t = (x.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3) for x in (q, grad_out))
    into = np.ones((2, 4, 24, 32), np.float32).transpose(0, 2, 1, 3), np.ones_like(k), np.ones_like(v)
    wanted = exact_gradients(grad_out, q, k, v)
    names = dict(zip(("grad_q", "grad_k", "grad_v"), into))
    found = fagen.attention_backward(grad_t, q_t, k, v, out, lse, **names, deterministic=True)
    assert all(a is b for a, b in zip(found, into))
    right(into, wanted)
    fagen.attention_backward(grad_t, q_t, k, v, out, lse, **names, accumulate=True)
    right(into, [2 * g for g in wanted])


def test_sums_of_a_group_are_those_of_keys_that_are_repeated(chip):
    grad_out, q, k, v = given(5)
    wide_k, wide_v = (np.repeat(x, 2, 2) for x in (k, v))
    found, wide = both((grad_out, q, k, v)), both((grad_out, q, wide_k, wide_v))
    right(found[1:], [x.reshape(2, 33, 2, 2, 32).sum(3) for x in wide[1:]])


def test_no_rows(chip):
    x = given(6, sq=0)
    assert [g.any() for g in both(x)] == [False] * 3
    x = given(6, sk=0)
    assert not both(x)[0].any()
    assert both(given(6, b=0))[1].shape == (0, 33, 2, 32)


def test_packed_sequences(chip):
    rows, keys = np.array([0, 5, 5, 22], np.int32), np.array([0, 9, 12, 40], np.int32)
    grad_out, q, k, v = (x[0] for x in given(7, b=1, sq=24, sk=43))
    options = dict(cu_seqlens_q=rows, cu_seqlens_k=keys, max_seqlen_q=17, max_seqlen_k=28, causal=True)
    out, lse = fagen.varlen_attention(q, k, v, return_lse=True, **options)
    found = fagen.varlen_attention_backward(grad_out, q, k, v, out, lse, **options)
    for a, b, c, d in zip(rows, rows[1:], keys, keys[1:]):
        right((found[0][a:b], found[1][c:d], found[2][c:d]),
              [g[0] for g in exact_gradients(grad_out[None, a:b], q[None, a:b], k[None, c:d], v[None, c:d], right=0)])
    assert not found[0][22:].any() and not found[1][40:].any() and not found[2][40:].any()


def test_padded_sequences(chip):
    x = given(8)
    grad_out, q, k, v = x
    lengths = dict(seqlens_q=np.array([24, 5], np.int32), seqlens_k=np.array([0, 17], np.int32))
    out, lse = fagen.varlen_attention(q, k, v, return_lse=True, **lengths)
    out[1, 5:] = np.nan  # not read
    found = fagen.varlen_attention_backward(grad_out, q, k, v, out, lse, grad_lse=np.ones_like(lse), **lengths)
    right([g[1:, :n] for g, n in zip(found, (5, 17, 17))],
          exact_gradients(grad_out[1:, :5], q[1:, :5], k[1:, :17], v[1:, :17], np.ones((1, 4, 5))))
    assert not any(g[0].any() for g in found) and not found[0][1, 5:].any() and not found[1][1, 17:].any()


def test_16_bits(chip):
    told = fagen.supported(dtype="float16", d=32, op="backward")
    if not told:
        pytest.skip(told.reason)
    x = [t.astype(np.float16) for t in given(9)]
    found = both(x, causal=True)
    assert all(g.dtype == np.float16 for g in found)
    for have, want in zip(found, exact_gradients(*x, right=0)):
        close(have, want, 5e-3 * max(1, np.abs(want).max()))
