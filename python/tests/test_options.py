"""Options that few calls set: batch_invariant, strides of LSE, a context's workspace."""
from __future__ import annotations

import numpy as np
import pytest
from conftest import close, exact, exact_gradients, half

import fagen

Q, K, V = half(1, 3, 20, 4, 32), half(2, 3, 40, 2, 32), half(3, 3, 40, 2, 32)
LENGTHS = np.array([40, 7, 33], dtype=np.int32)


@pytest.fixture(params=["numpy", "torch"])
def of(request):
    """From an array to a tensor of the library."""
    return np.asarray if request.param == "numpy" else pytest.importorskip("torch").from_numpy


def test_a_batch_does_not_change_the_bits_of_its_sequences(chip, of):
    q, k, v, lengths = (of(x) for x in (Q, K, V, LENGTHS))
    out = fagen.attention(q, k, v, causal=True, batch_invariant=True)
    close(out, exact(Q, K, V, right=0)[0])
    assert (np.asarray(out[1:2]) == np.asarray(fagen.attention(q[1:2], k[1:2], v[1:2], causal=True, batch_invariant=True))).all()
    out = fagen.varlen_attention(q, k, v, seqlens_k=lengths, batch_invariant=True)
    last = fagen.varlen_attention(q[2:], k[2:], v[2:], seqlens_k=lengths[2:], batch_invariant=True)
    assert (np.asarray(out[2:]) == np.asarray(last)).all()
    with pytest.raises(fagen.InvalidArgument, match="batch_invariant is 1; accepted: True, False"):
        fagen.attention(q, k, v, batch_invariant=1)
    with pytest.raises(fagen.Unsupported):
        fagen.attention(q, k, v, batch_invariant=True, dropout_p=0.5, rng=of(np.array([1, 2])))
    with pytest.raises(fagen.InvalidArgument):  # gaps of the words: what a plan depends on
        fagen.varlen_attention(q, k, v, seqlens_k=lengths, batch_invariant="yes")


def test_a_problem_that_is_batch_invariant(chip):
    p = dict(dtype="float16", d=32, b=2, hq=2, hkv=2, sq=64, sk=64)
    assert "batch" in fagen.explain(**p, batch_invariant=True).splitlines()[0] and "batch" not in fagen.explain(**p).splitlines()[0]


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (1, 0, 2)])
def test_lse_of_any_strides(chip, of, order):
    q, k, v = (of(x) for x in (Q, K, V))
    room = np.full([(3, 4, 20)[i] for i in order], 7.0, dtype=np.float32)
    lse = of(room).transpose(*order) if of is np.asarray else of(room).permute(*np.argsort(order).tolist())
    if of is np.asarray:
        lse = room.transpose(np.argsort(order))
    out = of(np.empty_like(Q))
    fagen.attention(q, k, v, causal=True, return_lse=True, out=out, lse=lse)
    close(lse, exact(Q, K, V, right=0)[1], 1e-3)
    parts, sums = of(np.asarray(out)[None].astype(np.float32)), of(np.ascontiguousarray(np.asarray(lse))[None])
    merged = of(np.empty_like(room)) if of is not np.asarray else np.empty_like(room)
    merged = merged.permute(*np.argsort(order).tolist()) if of is not np.asarray else merged.transpose(np.argsort(order))
    fagen.merge(parts, sums, return_lse=True, out=of(np.empty(Q.shape, dtype=np.float32)), lse=merged)
    close(merged, np.asarray(lse), 1e-6)


def test_a_backward_reads_lse_of_any_strides(chip):
    out, lse = fagen.attention(Q, K, V, return_lse=True)
    apart = np.full((3, 4, 40), np.nan, dtype=np.float32)[..., ::2]
    apart[...] = lse
    grad = half(5, *Q.shape)
    found = fagen.attention_backward(grad, Q, K, V, out, apart)
    for have, want in zip(found, exact_gradients(grad, Q, K, V)):
        close(have, want, 2e-2)
    with pytest.raises(fagen.InvalidArgument, match="grad_lse.strides is .* those of lse"):
        fagen.attention_backward(grad, Q, K, V, out, apart, grad_lse=lse)


def test_the_workspace_of_a_context():
    with fagen.Context("sim:sm_90a", workspace="caller") as own:
        close(fagen.attention(Q, K, V, device=own), exact(Q, K, V)[0])
    with pytest.raises(fagen.InvalidArgument, match='workspace is \'mine\'; accepted: "context", "caller"'):
        fagen.Context("sim:sm_90a", workspace="mine")
