"""On a GPU, with JAX: the custom call on XLA's stream, under jit, grad, vmap and shard_map, gives the bits of the package without XLA.

FAGEN_TEST_REHEARSE=1 runs it at small sizes on the simulator, to show that the tests themselves are right."""
from __future__ import annotations

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from conftest import CHIP, exact_gradients, seen  # noqa: E402

import fagen  # noqa: E402

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
from fagen import _jax_ffi  # noqa: E402

GPU = jax.default_backend() == "gpu"
if not GPU and not os.environ.get("FAGEN_TEST_REHEARSE"):
    pytest.skip("JAX's backend is no GPU", allow_module_level=True)
if not os.path.exists(_jax_ffi.path()):
    pytest.skip(f"no {_jax_ffi.path()}", allow_module_level=True)


@pytest.fixture(autouse=True)
def where(no_device_named, monkeypatch):
    if not GPU:
        monkeypatch.setenv("FAGEN_DEVICE", CHIP)


def normal(seed, *shape):
    return jax.random.normal(jax.random.PRNGKey(seed), shape, jnp.float32).astype(jnp.bfloat16)


SQ, SK, CALLS = (500, 700, 1000) if GPU else (40, 56, 2)
Q, K, V = normal(1, 2, SQ, 8, 128), normal(2, 2, SK, 2, 128), normal(3, 2, SK, 2, 128)


def same(a, b):
    return np.array_equal(np.asarray(a.astype(jnp.float32)), np.asarray(b.astype(jnp.float32)))


def exact(q, k, v):
    """Causal attention in fp64, on the host; bottom-right diagonal."""
    q, k, v = (np.asarray(x.astype(jnp.float32), np.float64).transpose(0, 2, 1, 3) for x in (q, k, v))
    k, v = (x.repeat(q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[3])
    s = np.where(seen(*s.shape[2:], right=0), s, -np.inf)
    p = np.exp(s - s.max(3, keepdims=True))
    return (p / p.sum(3, keepdims=True) @ v).transpose(0, 2, 1, 3)


def test_values():
    out, lse = fagen.attention(Q, K, V, causal=True, return_lse=True)
    assert np.abs(np.asarray(out.astype(jnp.float32)) - exact(Q, K, V)).max() < 2e-2
    assert lse.shape == (2, 8, SQ) and np.isfinite(np.asarray(lse)).all()


def test_bits_are_those_of_torch():
    torch = pytest.importorskip("torch")
    out, lse = fagen.attention(Q, K, V, causal=True, return_lse=True)
    theirs = fagen.attention(*(torch.from_dlpack(x) for x in (Q, K, V)), causal=True, return_lse=True)
    if GPU:
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
        return jax.lax.fori_loop(0, CALLS, lambda _, x: fagen.attention(x, K, V, causal=True), q)
    out = chain(Q)
    assert np.isfinite(np.asarray(out.astype(jnp.float32))).all() and same(out, chain(Q))


# Gradients: of X, given those of out (GIVEN) and of LSE (OF_LSE). The host computes the exact ones.

ROWS, KEYS = (160, 240) if GPU else (SQ, SK)
X = Q[:, :ROWS], K[:, :KEYS], V[:, :KEYS]
GIVEN, OF_LSE = normal(4, 2, ROWS, 8, 128), normal(5, 2, 8, ROWS).astype(jnp.float32)


def f64(x):
    return np.asarray(x.astype(jnp.float32), np.float64)


def loss(q, k, v, **options):
    out, lse = fagen.attention(q, k, v, causal=True, return_lse=True, **options)
    return (out.astype(jnp.float32) * GIVEN.astype(jnp.float32)).sum() + (lse * OF_LSE).sum()


def naive(q, k, v):
    """The same loss by attention in q's type, step by step."""
    k, v = (x.repeat(q.shape[2] // x.shape[2], 2) for x in (k, v))
    s = jnp.einsum("bihd,bjhd->bhij", q, k) * jnp.asarray(q.shape[3] ** -0.5, q.dtype)
    s = jnp.where(seen(q.shape[1], k.shape[1], right=0), s, -jnp.inf)
    out, lse = jnp.einsum("bhij,bjhd->bihd", jax.nn.softmax(s), v), jax.nn.logsumexp(s, -1)
    return (out * GIVEN).astype(jnp.float32).sum() + (lse.astype(jnp.float32) * OF_LSE).sum()


ALL = (0, 1, 2)
EPS = 2.0 ** -8  # of bf16


def right(found, wanted, plain):
    """At most twice the error of 16-bit attention step by step, and one ulp."""
    for have, want, rough in zip(found, wanted, plain):
        assert have.dtype == jnp.bfloat16 and have.shape == want.shape
        errors = [np.abs(f64(x) - want).max() for x in (have, rough)]
        assert errors[0] <= 2 * errors[1] + EPS * np.abs(want).max(), errors


def test_gradients():
    wanted = exact_gradients(f64(GIVEN), *map(f64, X), f64(OF_LSE), right=0)
    plain = jax.jit(jax.grad(naive, ALL))(*X)
    right(jax.grad(loss, ALL)(*X), wanted, plain)
    compiled = jax.jit(jax.value_and_grad(loss, ALL))
    for _ in range(3):
        right(compiled(*X)[1], wanted, plain)
    right(jax.jit(jax.grad(jax.checkpoint(loss), ALL))(*X), wanted, plain)
    mapped = jax.jit(jax.vmap(jax.grad(loss), in_axes=(0, None, None)))(jnp.stack([X[0] + 1, X[0]]), *X[1:])
    right([mapped[1]], wanted[:1], plain[:1])


@pytest.mark.parametrize("options, mask", [({}, {}), ({"window": (90, 20)}, {"left": 90, "right": 20}), ({"causal": True}, {"right": 0})])
@pytest.mark.parametrize("d, dv", [(64, 64), (128, 64)])
def test_gradients_by_size_and_mask(d, dv, options, mask):
    q, k, v, given = X[0][..., :d], X[1][..., :d], X[2][..., :dv], GIVEN[..., :dv]
    found = jax.jit(lambda *x: jax.vjp(lambda *y: fagen.attention(*y, **options), *x)[1](given))(q, k, v)
    for have, want in zip(found, exact_gradients(f64(given), f64(q), f64(k), f64(v), **mask)):
        assert np.abs(f64(have) - want).max() <= 2e-2 * max(1, np.abs(want).max())


def test_deterministic_gradients_are_those_of_the_function():
    out, lse = fagen.attention(*X, causal=True, return_lse=True)
    wanted = fagen.attention_backward(GIVEN, *X, out, lse, grad_lse=OF_LSE, causal=True, deterministic=True)
    f = jax.jit(jax.grad(lambda *x: loss(*x, deterministic=True), ALL))
    for _ in range(5):
        assert all(same(a, b) for a, b in zip(f(*X), wanted))


def test_bits_of_gradients_are_those_of_torch():
    torch = pytest.importorskip("torch")
    out, lse = fagen.attention(*X, causal=True, return_lse=True)
    given = (GIVEN, *X, out, lse)
    ours = fagen.attention_backward(*given, causal=True, deterministic=True)
    theirs = fagen.attention_backward(*(torch.from_dlpack(x) for x in given), causal=True, deterministic=True)
    if GPU:
        torch.cuda.synchronize()
    assert all(np.array_equal(np.asarray(a.astype(jnp.float32)), b.float().cpu().numpy()) for a, b in zip(ours, theirs))


def test_a_thousand_gradients_in_one_program():
    @jax.jit
    def descend(q):
        return jax.lax.fori_loop(0, CALLS, lambda _, x: x - 1e-3 * jax.grad(lambda y: loss(y, *X[1:], deterministic=True))(x), q)
    found = descend(X[0])
    assert np.isfinite(f64(found)).all() and same(found, descend(X[0])) and not same(found, X[0])
