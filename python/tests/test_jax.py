"""fagen with JAX: jit, grad, vmap, shard_map; on the CPU, by the custom call, on the simulated chip."""
from __future__ import annotations

import functools
import os
import subprocess
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from conftest import CHIP, close, exact, exact_gradients, half  # noqa: E402

import fagen  # noqa: E402

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
from fagen import _jax_ffi  # noqa: E402

if not os.path.exists(_jax_ffi.path()):
    pytest.skip(f"no {_jax_ffi.path()}", allow_module_level=True)
if jax.default_backend() != "cpu":
    pytest.skip("JAX's backend is no CPU", allow_module_level=True)

Q, K, V = (jnp.asarray(x) for x in (half(1, 2, 24, 4, 64), half(2, 2, 33, 2, 64), half(3, 2, 33, 2, 64)))


def same(a, b):
    return np.array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("options, mask", [
    ({}, {}),
    ({"causal": True}, {"right": 0}),
    ({"window": (5, 2), "scale": 0.3}, {"left": 5, "right": 2, "scale": 0.3}),
    ({"causal": True, "diagonal": -3}, {"right": 0, "off": -3}),
])
def test_masks(chip, options, mask):
    out, lse = fagen.attention(Q, K, V, return_lse=True, **options)
    wanted, sums = exact(Q, K, V, **mask)
    close(out, wanted)
    close(lse, sums, 1e-4)


def test_types(chip):
    out = fagen.attention(*(x.astype(jnp.bfloat16) for x in (Q, K, V)))
    assert out.dtype == jnp.bfloat16
    out = fagen.attention(Q, K, V, out_dtype=jnp.float32)
    assert out.dtype == jnp.float32
    close(out, exact(Q, K, V)[0])
    assert fagen.attention(Q[:0], K[:0], V[:0]).shape == (0, 24, 4, 64)
    assert not fagen.attention(Q, K[:, :0], V[:, :0]).any()


def test_jit(chip):
    found = jax.jit(lambda q, k, v: fagen.attention(q + 1, k, v, causal=True) * 2)(Q, K, V)
    assert same(found, fagen.attention(Q + 1, K, V, causal=True) * 2)


def test_vmap(chip):
    many = jnp.stack([Q, Q + 1, Q - 1])
    out, lse = jax.vmap(lambda q: fagen.attention(q, K, V, return_lse=True))(many)
    assert out.shape == (3, 2, 24, 4, 64) and lse.shape == (3, 2, 4, 24)
    close(out[1], exact(Q + 1, K, V)[0])  # a larger batch may have another kernel
    alone = functools.partial(fagen.attention, batch_invariant=True)
    assert same(jax.vmap(lambda q: alone(q, K, V))(many)[1], alone(Q + 1, K, V))
    assert same(jax.vmap(alone, in_axes=(1, None, None))(jnp.stack([Q, Q], 1), K, V)[0], alone(Q, K, V))
    with pytest.raises(fagen.InvalidArgument, match="batch_invariant is set beside dropout_p"):
        alone(Q, K, V, dropout_p=0.5, rng=jax.random.key(1))


@pytest.mark.parametrize("axis", [0, 2])
def test_shard_map(chip, axis):
    if len(jax.devices()) < 2:
        pytest.skip("one device")
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    spec = jax.sharding.PartitionSpec(*([None] * axis), "x")
    options = {"causal": True, "batch_invariant": axis == 0}  # a shard of heads may have another kernel
    f = jax.jit(jax.shard_map(lambda q, k, v: fagen.attention(q, k, v, **options), mesh=mesh, in_specs=spec, out_specs=spec))
    close(f(Q, K, V), exact(Q, K, V, right=0)[0])
    assert axis or same(f(Q, K, V), fagen.attention(Q, K, V, **options))


F32 = [jnp.asarray(half(seed, *shape, dtype="float32")) for seed, shape in ((1, (2, 24, 4, 32)), (2, (2, 33, 2, 32)), (3, (2, 33, 2, 16)))]
GRAD_OUT, GRAD_LSE = half(4, 2, 24, 4, 16, dtype="float32"), half(5, 2, 4, 24, dtype="float32")


def loss(q, k, v, **options):
    out, lse = fagen.attention(q, k, v, causal=True, return_lse=True, **options)
    return (out * GRAD_OUT).sum() + (lse * GRAD_LSE).sum()


def right(found, grad_lse=None):
    for have, want in zip(found, exact_gradients(GRAD_OUT, *F32, grad_lse, right=0)):
        close(have, want, 1e-5 * max(1, np.abs(want).max()))


def test_gradients(chip):
    right(jax.grad(lambda *x: (fagen.attention(*x, causal=True) * GRAD_OUT).sum(), (0, 1, 2))(*F32))
    found = jax.grad(loss, (0, 1, 2))(*F32)
    right(found, GRAD_LSE)
    compiled = jax.jit(jax.value_and_grad(loss, (0, 1, 2)), static_argnames="deterministic")(*F32, deterministic=True)[1]
    right(compiled, GRAD_LSE)
    assert not jax.grad(lambda q: fagen.attention(*map(jax.lax.stop_gradient, (q, K, V))).astype(jnp.float32).sum())(Q).any()


def test_gradients_under_vmap_and_remat(chip):
    q, k, v = F32
    found = jax.vmap(jax.grad(lambda q: loss(q, k, v)))(jnp.stack([q + 1, q]))
    right([found[1]], GRAD_LSE)
    right(jax.grad(jax.checkpoint(loss), (0, 1, 2))(*F32), GRAD_LSE)


def test_the_function_gives_what_grad_does(chip):
    out, lse = fagen.attention(*F32, causal=True, return_lse=True)
    right(fagen.attention_backward(jnp.asarray(GRAD_OUT), *F32, out, lse, causal=True))
    found = fagen.attention_backward(jnp.asarray(GRAD_OUT), *F32, out, lse, grad_lse=jnp.asarray(GRAD_LSE), causal=True, deterministic=True)
    right(found, GRAD_LSE)
    with pytest.raises(fagen.InvalidArgument, match="grad_out.shape is"):
        fagen.attention_backward(jnp.asarray(GRAD_OUT)[:1], *F32, out, lse)


def test_no_queries_have_keys_with_gradients_of_0(chip):
    q, k, v = F32
    found = jax.grad(lambda k: fagen.attention(q[:, :0], k, v).sum() + (k * 0).sum())(k)
    assert found.shape == k.shape and not found.any()


def test_a_second_derivative_is_refused(chip):
    with pytest.raises(fagen.GradientUnsupported, match="a second derivative of attention was asked for; accepted: a first one"):
        jax.grad(lambda q: jax.grad(lambda q: loss(q, *F32[1:]))(q).sum())(F32[0])


REFUSED = [
    (lambda: fagen.attention(Q, K[..., :32], V), "k.shape is (2, 33, 2, 32)"),
    (lambda: fagen.attention(Q, K, V.astype(jnp.float32)), "v.dtype is float32"),
    (lambda: fagen.attention(Q, K, "v"), "v is a builtins.str"),
    (lambda: fagen.attention(Q, K, V, out_dtype="int8"), "out_dtype is int8"),
    (lambda: fagen.attention(Q, K, V, out=Q), "out is"),
    (lambda: fagen.attention(Q, K, V, stream=3), "stream is 3"),
    (lambda: fagen.attention(Q, K, V, scale=0.0), "scale is 0.0"),
    (lambda: fagen.attention(Q, K, V, tf32=2), "tf32 is 2"),
    (lambda: jax.jit(lambda q: fagen.attention(q[0], K, V))(Q), "q.shape is (24, 4, 64)"),
]


@pytest.mark.parametrize("call, words", REFUSED, ids=[row[1] for row in REFUSED])
def test_refused(chip, call, words):
    with pytest.raises(fagen.FagenError) as told:
        call()
    assert words in str(told.value) and "accepted" in str(told.value)


def test_the_cpu_needs_a_simulated_chip():
    with pytest.raises(fagen.InvalidArgument, match="device is None and JAX's backend is the CPU; accepted: device=\"sim:sm_90a\""):
        fagen.attention(Q, K, V)
    close(fagen.attention(Q, K, V, device=CHIP), exact(Q, K, V)[0])


def test_the_declarations_are_those_of_xla(tmp_path):
    """xla_ffi.h against the header of this jaxlib."""
    rows = {"call": ("CallFrame", {"api": "api", "execution": "ctx", "stage": "stage", "arguments": "args", "results": "rets",
                                   "attributes": "attrs"}),
            "api": ("Api", {"version": "api_version", "error_create": "XLA_FFI_Error_Create", "stream_get": "XLA_FFI_Stream_Get"}),
            "buffer": ("Buffer", {"dtype": "dtype", "data": "data", "rank": "rank", "dims": "dims"}),
            "buffers": ("Args", {"n": "size", "types": "types", "at": "args"}),
            "attributes": ("Attrs", {"n": "size", "types": "types", "names": "names", "values": "attrs"}),
            "metadata": ("Metadata", {"version": "api_version", "traits": "traits"}),
            "metadata_extension": ("Metadata_Extension", {"metadata": "metadata"}),
            "stream_get_args": ("Stream_Get_Args", {"execution": "ctx", "stream": "stream"}),
            "error_create_args": ("Error_Create_Args", {"message": "message", "code": "errc"}),
            "scalar": ("Scalar", {"dtype": "dtype", "value": "value"}), "text": ("ByteSpan", {"at": "ptr", "size": "len"})}
    text = '#include "xla/ffi/api/c_api.h"\n#include "xla_ffi.h"\n'
    for mine, (theirs, fields) in rows.items():
        for a, b in fields.items():
            text += f'_Static_assert(offsetof(xla_{mine}, {a}) == offsetof(struct XLA_FFI_{theirs}, {b}), "{mine}.{a}");\n'
    for mine, theirs in (("XLA_METADATA", "Extension_Metadata"), ("XLA_SCALAR", "AttrType_SCALAR"),
                         ("XLA_EXECUTE", "ExecutionStage_EXECUTE"), ("XLA_F16", "DataType_F16"), ("XLA_F32", "DataType_F32"),
                         ("XLA_BF16", "DataType_BF16"), ("XLA_S32", "DataType_S32"),
                         ("XLA_INVALID_ARGUMENT", "Error_Code_INVALID_ARGUMENT"), ("XLA_UNIMPLEMENTED", "Error_Code_UNIMPLEMENTED")):
        text += f'_Static_assert((int){mine} == (int)XLA_FFI_{theirs}, "{mine}");\n'
    (tmp_path / "check.c").write_text(text)
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    try:
        done = subprocess.run(["cc", "-std=c17", "-fsyntax-only", "-I", jax.ffi.include_dir(), "-I", here, str(tmp_path / "check.c")],
                              capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no C compiler")
    assert done.returncode == 0, done.stderr
    assert sys.maxsize > 2**32
