"""On a GPU, with JAX: the custom call on XLA's stream, under jit, vmap and shard_map, gives the bits of the package without XLA."""
from __future__ import annotations

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import fagen  # noqa: E402

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
from fagen import _jax_ffi  # noqa: E402

if jax.default_backend() != "gpu":
    pytest.skip("JAX's backend is no GPU", allow_module_level=True)
if not os.path.exists(_jax_ffi.path()):
    pytest.skip(f"no {_jax_ffi.path()}", allow_module_level=True)


def normal(seed, *shape):
    return jax.random.normal(jax.random.PRNGKey(seed), shape, jnp.float32).astype(jnp.bfloat16)


Q, K, V = normal(1, 2, 500, 8, 128), normal(2, 2, 700, 2, 128), normal(3, 2, 700, 2, 128)


def same(a, b):
    return np.array_equal(np.asarray(a.astype(jnp.float32)), np.asarray(b.astype(jnp.float32)))


def exact(q, k, v):
    """Causal attention in fp64, on the host; bottom-right diagonal."""
    q, k, v = (np.asarray(x.astype(jnp.float32), np.float64).transpose(0, 2, 1, 3) for x in (q, k, v))
    k, v = (x.repeat(q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[3])
    rows, keys = np.arange(s.shape[2])[:, None], np.arange(s.shape[3])
    s = np.where(keys - rows > s.shape[3] - s.shape[2], -np.inf, s)
    p = np.exp(s - s.max(3, keepdims=True))
    return (p / p.sum(3, keepdims=True) @ v).transpose(0, 2, 1, 3)


def test_values():
    out, lse = fagen.attention(Q, K, V, causal=True, return_lse=True)
    assert np.abs(np.asarray(out.astype(jnp.float32)) - exact(Q, K, V)).max() < 2e-2
    assert lse.shape == (2, 8, 500) and np.isfinite(np.asarray(lse)).all()


def test_bits_are_those_of_torch():
    torch = pytest.importorskip("torch")
    out, lse = fagen.attention(Q, K, V, causal=True, return_lse=True)
    theirs = fagen.attention(*(torch.from_dlpack(x) for x in (Q, K, V)), causal=True, return_lse=True)
    torch.cuda.synchronize()
    assert np.array_equal(np.asarray(out.astype(jnp.float32)), theirs[0].float().cpu().numpy())
    assert np.array_equal(np.asarray(lse), theirs[1].cpu().numpy())


def test_jit_and_vmap():
    wanted = fagen.attention(Q, K, V, causal=True)
    f = jax.jit(lambda q, k, v: fagen.attention(q, k, v, causal=True) * 2)
    for _ in range(3):
        assert same(f(Q, K, V), wanted * 2)
    many = jax.jit(jax.vmap(lambda q: fagen.attention(q, K, V, causal=True)))(jnp.stack([Q + 1, Q]))
    assert np.abs(np.asarray(many[1].astype(jnp.float32)) - exact(Q, K, V)).max() < 2e-2


@pytest.mark.parametrize("axis", [0, 2])
def test_shard_map(axis):
    if len(jax.devices()) < 2:
        pytest.skip("one device")
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    spec = jax.sharding.PartitionSpec(*([None] * axis), "x")
    f = jax.jit(jax.shard_map(lambda q, k, v: fagen.attention(q, k, v, causal=True), mesh=mesh, in_specs=spec, out_specs=spec))
    assert np.abs(np.asarray(f(Q, K, V).astype(jnp.float32)) - exact(Q, K, V)).max() < 2e-2


def test_a_thousand_calls_in_one_program():
    @jax.jit
    def chain(q):
        return jax.lax.fori_loop(0, 1000, lambda _, x: fagen.attention(x, K, V, causal=True), q)
    out = chain(Q)
    assert np.isfinite(np.asarray(out.astype(jnp.float32))).all() and same(out, chain(Q))
