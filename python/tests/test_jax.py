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


SCALE = 1 / np.sqrt(32)
SLOPES, SINKS, SEEN, BIAS = half(6, 4, dtype="float32"), half(7, 4, dtype="float32"), half(8, 2, 1, 24, 33) > -0.5, half(9, 4, 24, 33)


def changed(change, seen=None, sinks=None):
    """(out, lse) in fp64 of F32, with the scores [b, hq, sq, sk] changed."""
    q, k, v = (np.asarray(x, np.float64) for x in F32)
    k, v = k.repeat(2, 2), v.repeat(2, 2)
    s = change(np.einsum("bihd,bjhd->bhij", q, k) * SCALE)
    e = np.exp(s if seen is None else np.where(seen, s, -np.inf))
    z = e.sum(-1, keepdims=True) + (0 if sinks is None else np.exp(sinks.astype(np.float64))[:, None, None])
    return np.einsum("bhij,bjhd->bihd", e / z, v), np.log(z)[..., 0]


def test_programs(chip):
    """Under jit and vmap, and with dropout: tensors are traced, of any type and any broadcast."""
    f = jax.jit(lambda q, k, v, mask, sinks: fagen.attention(q, k, v, attn_mask=mask, sinks=sinks, softcap=2.0, return_lse=True))
    wanted = changed(lambda s: 2 * np.tanh(s / 2), SEEN, SINKS)
    for _ in range(2):
        out, lse = f(*F32, SEEN, SINKS)
        close(out, wanted[0], 2e-3)
        close(lse, wanted[1], 2e-3)
    program = fagen.score("t = bf16 'hq sq sk'; c = scalar(1)\nfunction score(s, b, h, i, j) return s * c + t[h][i][j] end")
    bias = jnp.asarray(BIAS, jnp.bfloat16)
    g = functools.partial(fagen.attention, score=program(t=bias, c=0.5))
    wanted = changed(lambda s: s / 2 + np.asarray(bias, np.float64))[0]
    close(g(*F32), wanted, 1e-5)
    close(g(*F32, causal=True, diagonal=40), wanted, 1e-5)  # another kernel
    many = jax.jit(jax.vmap(lambda q, t: fagen.attention(q, *F32[1:], score=program(t=t, c=0.5))))(jnp.stack([F32[0] + 1, F32[0]]),
                                                                                                  jnp.stack([bias, bias]))
    close(many[1], wanted, 1e-5)
    rng = jax.random.key(3)
    dropped = fagen.attention(*F32, score=program(t=bias * 0), dropout_p=0.5, rng=rng)
    close(dropped, fagen.attention(*F32, dropout_p=0.5, rng=rng), 1e-6)
    seen = jnp.asarray(SEEN[:1, 0, :1])
    close(fagen.attention(*F32, attn_mask=seen), changed(lambda s: s, SEEN[:1, :1, :1])[0], 1e-5)
    assert _jax_ffi.bind(_jax_ffi.HOST_SLOT, chip) is None
    close(g(*F32), wanted, 1e-5)


def test_programs_in_another_context(chip):
    program = fagen.score("function score(s, b, h, i, j) return s * 2 end")
    f = jax.jit(lambda *x: fagen.attention(*x, score=program))
    wanted = changed(lambda s: s * 2)[0]
    close(f(*F32), wanted, 1e-5)
    with fagen.Context("sim:sm_80") as other:
        _jax_ffi.bind(_jax_ffi.HOST_SLOT, other)  # the program was traced for the first
        close(f(*F32), wanted, 1e-5)
        _jax_ffi.bind(_jax_ffi.HOST_SLOT, chip)
    close(f(*F32), wanted, 1e-5)


TABLE = fagen.score("t = f32 'hq sk'; c = scalar(1, 'float', 0.5, 4)\nfunction score(s, b, h, i, j) return s * c + t[h][j] end")
PROGRAMS = [
    (lambda: fagen.attention(*F32, score=TABLE), "t is None"),
    (lambda: fagen.attention(*F32, score=TABLE(t=SLOPES)), "t.shape is (4,)"),
    (lambda: fagen.attention(*F32, score=TABLE(t=BIAS[:, 0])), "t.dtype is float16"),
    (lambda: jax.jit(lambda c: fagen.attention(*F32, softcap=2.0, sinks=SINKS * c, attn_mask=SEEN[:, :, 1:]))(2.0),
     "attn_mask.shape is (2, 1, 23, 33)"),
    (lambda: fagen.attention(*F32, score=TABLE(t=jnp.zeros((4, 33)), c=8.0)), "scalar is 8 (c)"),
    (lambda: fagen.attention(*F32, score="text"), "score is 'text'"),
    (lambda: jax.jit(lambda c: fagen.attention(*F32, score=TABLE(t=jnp.zeros((4, 33)), c=c)))(2.0), "accepted: a number"),
    (lambda: jax.grad(lambda q: fagen.attention(q, *F32[1:], softcap=2.0).sum())(F32[0]), "a gradient beside a score program"),
    (lambda: jax.grad(lambda t: fagen.attention(*F32, score=TABLE(t=t)).sum())(jnp.zeros((4, 33))), "a gradient beside a score program"),
]


@pytest.mark.parametrize("call, words", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_refused(chip, call, words):
    with pytest.raises(Exception) as told:  # XLA's own error where the launch refuses
        jax.block_until_ready(call())
    assert words in str(told.value) and "accepted" in str(told.value)


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
            "scalar": ("Scalar", {"dtype": "dtype", "value": "value"}),
            "array": ("Array", {"dtype": "dtype", "size": "size", "data": "data"}),
            "text": ("ByteSpan", {"at": "ptr", "size": "len"})}
    text = '#include "xla/ffi/api/c_api.h"\n#include "xla_ffi.h"\n'
    for mine, (theirs, fields) in rows.items():
        for a, b in fields.items():
            text += f'_Static_assert(offsetof(xla_{mine}, {a}) == offsetof(struct XLA_FFI_{theirs}, {b}), "{mine}.{a}");\n'
    for mine, theirs in (("XLA_METADATA", "Extension_Metadata"), ("XLA_SCALAR", "AttrType_SCALAR"),
                         ("XLA_EXECUTE", "ExecutionStage_EXECUTE"), ("XLA_F16", "DataType_F16"), ("XLA_F32", "DataType_F32"),
                         ("XLA_BF16", "DataType_BF16"), ("XLA_S32", "DataType_S32"), ("XLA_ARRAY", "AttrType_ARRAY"),
                         ("XLA_STRING", "AttrType_STRING"), ("XLA_PRED", "DataType_PRED"), ("XLA_S64", "DataType_S64"),
                         ("XLA_U8", "DataType_U8"), ("XLA_U32", "DataType_U32"), ("XLA_F64", "DataType_F64"),
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
