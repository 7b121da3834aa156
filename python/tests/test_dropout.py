"""Dropout on the simulated chip: numpy, PyTorch and JAX against attention whose weights are dropped by a Philox of numpy."""
from __future__ import annotations

import numpy as np
import pytest
from conftest import CHIP, close, half, kept, seen

import fagen

B, SQ, SK, HQ, HKV, D, P = 2, 24, 37, 4, 2, 32, 0.25
RNG = np.array([0x123456789abcdef, 0x700000003], dtype=np.int64)
Q, K, V = half(1, B, SQ, HQ, D, dtype="float32"), half(2, B, SK, HKV, D, dtype="float32"), half(3, B, SK, HKV, D, dtype="float32")
G = half(4, B, SQ, HQ, D, dtype="float32")


def wanted(q, k, v, g, rng, p, causal=True):
    """(out, lse, grad_q, grad_k, grad_v) of a loss sum(g out), in fp64."""
    q, k, v, g = (np.asarray(x, dtype=np.float64) for x in (q, k, v, g))
    b, sq, hq, d = q.shape
    group, sk = hq // k.shape[2], k.shape[1]
    k, v = k.repeat(group, 2), v.repeat(group, 2)
    s = np.einsum("bihd,bjhd->bhij", q, k) * d ** -0.5
    s = np.where(seen(sq, sk, right=0 if causal else -1), s, -np.inf)
    lse = np.log(np.exp(s - s.max(-1, keepdims=True)).sum(-1)) + s.max(-1)
    w, z = np.exp(s - lse[..., None]), kept(rng, p, b, hq, sq, sk)
    out = np.einsum("bhij,bjhd->bihd", w * z, v)
    delta = np.einsum("bihd,bihd->bhi", g, out)
    ds = w * (z * np.einsum("bihd,bjhd->bhij", g, v) - delta[..., None]) * d ** -0.5

    def groups(x):
        return x.reshape(b, sk, hq // group, group, d).sum(3)
    return out, lse, np.einsum("bhij,bjhd->bihd", ds, k), groups(np.einsum("bhij,bihd->bjhd", ds, q)), \
        groups(np.einsum("bhij,bihd->bjhd", w * z, g))


def right(found, want, most=2e-5):
    for x, y in zip(found, want):
        close(x, y, most)


def test_numpy(chip):
    want = wanted(Q, K, V, G, RNG, P)
    out, lse = fagen.attention(Q, K, V, causal=True, return_lse=True, dropout_p=P, rng=RNG)
    right((out, lse), want)
    assert 0.72 < (kept(RNG, P, B, HQ, SQ, SK) > 0).mean() < 0.78
    right(fagen.attention_backward(G, Q, K, V, out, lse, causal=True, dropout_p=P, rng=RNG), want[2:])
    other = fagen.attention(Q, K, V, causal=True, dropout_p=P, rng=RNG + 1)
    assert not np.array_equal(out, other)
    assert np.array_equal(fagen.attention(Q, K, V), fagen.attention(Q, K, V, dropout_p=0.0))


def test_numpy_lengths(chip):
    q, k, v, g = (x.astype(np.float16) for x in (Q, K, V, G))
    a, b = np.array([0, SQ, 2 * SQ], np.int32), np.array([0, SK, 2 * SK], np.int32)
    rows = [x.reshape(-1, *x.shape[2:]) for x in (q, k, v, g)]
    lengths = dict(cu_seqlens_q=a, cu_seqlens_k=b, max_seqlen_q=SQ, max_seqlen_k=SK, causal=True, dropout_p=P, rng=RNG)
    out, lse = fagen.varlen_attention(*rows[:3], return_lse=True, **lengths)
    want = wanted(q, k, v, g, RNG, P)
    close(out.reshape(G.shape), want[0], 4e-3)
    found = fagen.varlen_attention_backward(rows[3], *rows[:3], out, lse, **lengths)
    for x, y in zip(found, want[2:]):
        close(x.reshape(y.shape), y, 2e-2)


NOT = [
    ("dropout_p is 1.0", dict(dropout_p=1.0, rng=RNG)),
    ("dropout_p is -0.1", dict(dropout_p=-0.1, rng=RNG)),
    ("dropout_p is nan", dict(dropout_p=float("nan"), rng=RNG)),
    ("dropout_p is True", dict(dropout_p=True, rng=RNG)),
    ("rng is None", dict(dropout_p=0.1)),
    ("rng is set and dropout_p is 0", dict(rng=RNG)),
    ("rng.dtype is float32", dict(dropout_p=0.1, rng=np.zeros(2, np.float32))),
    ("rng.shape is (3,)", dict(dropout_p=0.1, rng=np.zeros(3, np.int64))),
]


@pytest.mark.parametrize("words, options", NOT, ids=[row[0] for row in NOT])
def test_what_is_refused(chip, words, options):
    with pytest.raises(fagen.InvalidArgument) as told:
        fagen.attention(Q, K, V, **options)
    assert words in str(told.value) and "accepted" in str(told.value)


def test_problem():
    assert fagen.supported(dtype="bfloat16", d=64, dropout=True, device=CHIP)
    assert "features=dropout" in fagen.explain(dtype="bfloat16", d=64, dropout=True, device=CHIP)


# PyTorch

def tensors(*arrays, grad=True):
    torch = pytest.importorskip("torch")
    return [torch.tensor(x, requires_grad=grad) for x in arrays]


def drawn(seed):
    """What fagen draws from PyTorch's generator."""
    import torch
    torch.manual_seed(seed)
    return torch.randint(0, 2**63 - 1, (2,), dtype=torch.int64).numpy()


def test_torch_autograd(chip):
    q, k, v = tensors(Q, K, V)
    import torch
    want = wanted(Q, K, V, G, drawn(3), P)
    torch.manual_seed(3)
    out, lse = fagen.attention(q, k, v, causal=True, dropout_p=P, return_lse=True)
    right([x.detach().numpy() for x in (out, lse)], want)
    grads = torch.autograd.grad((out * torch.tensor(G)).sum(), (q, k, v))
    right([x.numpy() for x in grads], want[2:])
    torch.manual_seed(3)
    again = fagen.attention(q, k, v, causal=True, dropout_p=P)
    assert again.equal(out) and not fagen.attention(q, k, v, causal=True, dropout_p=P).equal(out)
    given = fagen.attention(q.detach(), k, v, causal=True, dropout_p=P, rng=torch.tensor(RNG))
    right([given.detach().numpy()], wanted(Q, K, V, G, RNG, P))
    with pytest.raises(fagen.InvalidArgument, match="out or lse is set beside dropout_p"):
        fagen.attention(q.detach(), k, v, dropout_p=P, out=torch.empty_like(q))


def test_torch_checkpoint_and_compile(chip):
    q, k, v = tensors(Q, K, V)
    g, = tensors(G, grad=False)
    import torch
    from torch.utils.checkpoint import checkpoint

    def loss(q, k, v):
        return (fagen.attention(q, k, v, causal=True, dropout_p=P) * g).sum()
    torch.manual_seed(5)
    plain = torch.autograd.grad(loss(q, k, v), (q, k, v))
    torch.manual_seed(5)
    found = torch.autograd.grad(checkpoint(loss, q, k, v, use_reentrant=False), (q, k, v))
    assert all(x.equal(y) for x, y in zip(plain, found))
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    torch.manual_seed(5)
    right([x.numpy() for x in torch.autograd.grad(compiled(q, k, v), (q, k, v))], [x.numpy() for x in plain])


def test_torch_backward(chip):
    q, k, v, g, rng = tensors(Q, K, V, G, RNG, grad=False)
    out, lse = fagen.attention(q, k, v, causal=True, return_lse=True, dropout_p=P, rng=rng)
    found = fagen.attention_backward(g, q, k, v, out, lse, causal=True, dropout_p=P, rng=rng)
    right([x.numpy() for x in found], wanted(Q, K, V, G, RNG, P)[2:])


def test_flash_attn(chip):
    torch = pytest.importorskip("torch")
    from fagen.flash_attn import flash_attn_func, flash_attn_varlen_func
    q, k, v = (torch.tensor(x).half().requires_grad_() for x in (Q, K, V))
    want = wanted(*(x.detach().numpy() for x in (q, k, v)), G, drawn(7), P)
    torch.manual_seed(7)
    out = flash_attn_func(q, k, v, P, causal=True)
    right([out.detach().numpy()], want, 4e-3)
    starts = [torch.tensor([0, n, 2 * n], dtype=torch.int32) for n in (SQ, SK)]
    torch.manual_seed(7)
    rows = flash_attn_varlen_func(*(x.flatten(0, 1) for x in (q, k, v)), *starts, SQ, SK, P, causal=True)
    right([rows.detach().reshape(out.shape).numpy()], want, 4e-3)
    for x, y in zip(torch.autograd.grad((rows * torch.tensor(G).half().flatten(0, 1)).sum(), (q, k, v)), want[2:]):
        close(x.numpy(), y, 2e-2)


def test_transformers(chip):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from fagen.integrations.transformers import attention_forward
    module = torch.nn.Module()
    q, k, v = (torch.tensor(x).transpose(1, 2) for x in (Q, K, V))
    want = wanted(Q, K, V, G, drawn(9), P)
    torch.manual_seed(9)
    out, _ = attention_forward(module, q, k, v, None, dropout=P)
    right([out.numpy()], want)


# JAX

def test_jax(chip):
    jax = pytest.importorskip("jax")
    import os

    from fagen import _jax_ffi
    if not os.path.exists(_jax_ffi.path()):
        pytest.skip(f"no {_jax_ffi.path()}")
    q, k, v = (jax.numpy.asarray(x) for x in (Q, K, V))
    key = jax.random.key(11)
    state = np.asarray(jax.random.bits(key, (4,), "uint32"))
    want = wanted(Q, K, V, G, state.view(np.uint64).view(np.int64), P)

    def loss(q, k, v, rng):
        return (fagen.attention(q, k, v, causal=True, dropout_p=P, rng=rng) * G).sum()
    out, lse = jax.jit(lambda q, k, v, rng: fagen.attention(q, k, v, causal=True, return_lse=True, dropout_p=P, rng=rng))(q, k, v, key)
    right((out, lse), want)
    for rng in (key, jax.numpy.asarray(state)):
        right(jax.jit(jax.grad(loss, (0, 1, 2)))(q, k, v, rng), want[2:])
    right(fagen.attention_backward(jax.numpy.asarray(G), q, k, v, out, lse, causal=True, dropout_p=P, rng=key), want[2:])
    keys = jax.random.split(key, 2)
    two = jax.vmap(lambda q, rng: fagen.attention(q, k, v, causal=True, dropout_p=P, rng=rng))(jax.numpy.stack([q, q]), keys)
    for i in range(2):
        assert np.array_equal(two[i], fagen.attention(q, k, v, causal=True, dropout_p=P, rng=keys[i]))
    with pytest.raises(fagen.InvalidArgument, match="rng is None"):
        fagen.attention(q, k, v, dropout_p=P)
