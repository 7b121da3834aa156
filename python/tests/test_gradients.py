"""Autograd of fagen with PyTorch, on the simulated chip: gradients of float32 against eager attention in fp64, compile, checkpoints."""
from __future__ import annotations

import contextlib
import threading

import pytest
from conftest import CHIP, seen

import fagen

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import fagen.torch  # noqa: E402
from fagen.flash_attn import flash_attn_func, flash_attn_qkvpacked_func, flash_attn_varlen_func, flash_attn_with_kvcache  # noqa: E402

MOST = 1e-5  # of float32 gradients, in units of the largest one
INT = torch.int32


def normal(seed, *shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def inputs(seed=1, b=2, sq=24, sk=33, hq=4, hkv=2, d=32, dv=32):
    """q, k and v that want gradients."""
    return [normal(seed + i, *shape).requires_grad_() for i, shape in enumerate(((b, sq, hq, d), (b, sk, hkv, d), (b, sk, hkv, dv)))]


def eager(q, k, v, left=-1, right=-1, off=None, scale=None):
    """(out, lse) of [b, s, h, d] in fp64; a query that sees no key gives 0 and -inf."""
    group, sq, sk = q.shape[2] // k.shape[2], q.shape[1], k.shape[1]
    q, k, v = q.double(), *(x.double().repeat_interleave(group, 2) for x in (k, v))
    s = torch.einsum("bihd,bjhd->bhij", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    known = torch.from_numpy(seen(sq, sk, left, right, off))
    some = known.any(-1)
    lse = torch.where(known | ~some[:, None], s, -torch.inf).logsumexp(-1)
    p = torch.where(known, (s - lse[..., None]).exp(), 0)
    return torch.einsum("bhij,bjhd->bihd", p, v), torch.where(some, lse, -torch.inf)


def loss(out, lse=None):
    """Of values whose gradients differ from one another."""
    total = (out.double().sin() * torch.linspace(0.5, 2, out.shape[1], dtype=torch.float64)[:, None, None]).sum()
    return total if lse is None else total + torch.where(lse.isfinite(), lse, 0).double().square().sum()


def close(found, wanted, most=MOST):
    for have, want in zip(found, wanted):
        assert have.shape == want.shape
        error, size = (have.double() - want.double()).abs().max().item(), max(1, want.abs().max().item())
        assert error <= most * size, f"{error} apart; accepted: {most * size}"


grad = torch.autograd.grad


@pytest.mark.parametrize("shape, options, mask", [
    ({}, {}, {}),
    ({"hkv": 1, "dv": 16}, {"causal": True}, {"right": 0}),
    ({"sq": 40, "hkv": 4}, {"causal": True}, {"right": 0}),  # the first queries see no key
    ({"d": 20, "dv": 7}, {"window": (5, 2), "scale": 0.3}, {"left": 5, "right": 2, "scale": 0.3}),
    ({}, {"window": (3, 0), "diagonal": "top-left"}, {"left": 3, "right": 0, "off": 0}),
    ({}, {"causal": True, "diagonal": 4}, {"right": 0, "off": 4}),
])
def test_gradients(chip, shape, options, mask):
    x = inputs(**shape)
    close(grad(loss(fagen.attention(*x, **options)), x), grad(loss(eager(*x, **mask)[0]), x))
    close(grad(loss(*fagen.attention(*x, return_lse=True, **options)), x), grad(loss(*eager(*x, **mask)), x))


def test_a_gradient_of_lse_alone(chip):
    x = inputs()
    _, lse = fagen.attention(*x, return_lse=True)
    found = grad(lse.square().sum(), x)
    close(found[:2], grad(eager(*x)[1].square().sum(), x[:2]))
    assert not found[2].any()


@pytest.mark.parametrize("which", [0, 1, 2])
def test_inputs_that_want_none_have_none(chip, which):
    x = inputs()
    for i, t in enumerate(x):
        t.requires_grad_(i == which)
    out = fagen.attention(*x, causal=True)
    loss(out).backward()
    assert [t.grad is not None for t in x] == [i == which for i in range(3)]
    close([x[which].grad], grad(loss(eager(*x, right=0)[0]), x[which]))
    with torch.no_grad():
        assert not fagen.attention(*x).requires_grad
    assert not fagen.attention(*(t.detach() for t in x)).requires_grad


WEIGHTS = normal(9, 24, 2, 32, 4)
LAYOUTS = {
    "expanded in all dimensions": lambda out: out.sum(),
    "expanded in one": lambda out: (out.sum(1) * WEIGHTS[0].transpose(1, 2)).sum(),
    "no unit stride": lambda out: (out.permute(1, 0, 3, 2) * WEIGHTS).sum(),
    "heads in front": lambda out: (out.transpose(1, 2) * WEIGHTS.permute(1, 3, 0, 2).contiguous()).sum(),
}


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_layouts_of_the_gradient_of_out(chip, layout):
    x = inputs()
    close(grad(LAYOUTS[layout](fagen.attention(*x)), x), grad(LAYOUTS[layout](eager(*x)[0]), x))


def test_views_as_inputs(chip):
    qkv = normal(1, 2, 3, 4, 20, 32).requires_grad_()

    def call(f):
        q, k, v = (qkv[:, i].transpose(1, 2) for i in range(3))
        return loss(f(q, k[:, :, :1].expand(-1, -1, 4, -1), v))
    close(grad(call(fagen.attention), qkv), grad(call(lambda *x: eager(*x)[0]), qkv))


def of_each(q, k, v, rows, keys, **mask):
    """Eager attention of packed sequences, one by one."""
    return torch.cat([eager(q[None, a:b], k[None, c:d], v[None, c:d], **mask)[0][0] for a, b, c, d in zip(rows, rows[1:], keys, keys[1:])])


def test_packed_sequences(chip):
    x = [t[0].detach().requires_grad_() for t in inputs(b=1, sq=22, sk=40)]
    rows, keys = [0, 5, 5, 22], [0, 9, 12, 40]
    bounds = dict(cu_seqlens_q=torch.tensor(rows, dtype=INT), cu_seqlens_k=torch.tensor(keys, dtype=INT), max_seqlen_q=17, max_seqlen_k=28)
    wanted = grad(loss(of_each(*x, rows, keys, right=0)[None]), x)
    close(grad(loss(fagen.varlen_attention(*x, causal=True, **bounds)[None]), x), wanted)
    out, lse, _ = flash_attn_varlen_func(*x, *bounds.values(), causal=True, return_attn_probs=True, deterministic=True)
    close(grad(loss(out[None]), x, retain_graph=True), wanted)
    assert grad(lse.sum(), x)[0].any()


def test_padded_sequences(chip):
    """Rows past a length: whatever out holds there, their gradients are 0."""
    x = inputs()
    lengths = dict(seqlens_q=torch.tensor([24, 5], dtype=INT), seqlens_k=torch.tensor([12, 33], dtype=INT))
    out, lse = fagen.varlen_attention(*x, return_lse=True, **lengths)
    found = grad(loss(out[:1], lse[:1]) + loss(out[1:, :5], lse[1:, :, :5]), x)
    q, k, v = x
    wanted = grad(loss(*eager(q[:1], k[:1, :12], v[:1, :12])) + loss(*eager(q[1:, :5], k[1:], v[1:])), x)
    close(found, wanted)
    assert not found[0][1, 5:].any() and not found[1][0, 12:].any() and not found[2][0, 12:].any()


def test_flash_attn(chip):
    x = inputs()
    close(grad(loss(flash_attn_func(*x, 0.0, 0.2, True)), x), grad(loss(eager(*x, right=0, scale=0.2)[0]), x))
    qkv = normal(4, 1, 20, 3, 2, 32).requires_grad_()
    wanted = grad(loss(eager(*qkv.unbind(2))[0]), qkv)
    close(grad(loss(flash_attn_qkvpacked_func(qkv)), qkv), wanted)


def test_gradcheck_by_finite_differences(chip):
    """Forward and backward agree with each other, without any reference."""
    x, way = inputs(b=1, sq=9, sk=12, hq=2, hkv=1, d=16, dv=16), normal(8, 3, 1, 12, 2, 16)
    h = 1e-2
    for i, t in enumerate(x):
        step = way[i, :, :t.shape[1], :t.shape[2]]
        moved = [loss(*fagen.attention(*(s.detach() + h * sign * step if s is t else s.detach() for s in x), causal=True, return_lse=True))
                 for sign in (1, -1)]
        slope = (grad(loss(*fagen.attention(*x, causal=True, return_lse=True)), t)[0].double() * step).sum()
        assert abs((moved[0] - moved[1]) / (2 * h) - slope) <= 5e-3 * max(1, abs(slope))


def test_saved_tensors_are_used_twice(chip):
    x = inputs()
    out = fagen.attention(*x, causal=True)
    first = grad(loss(out), x, retain_graph=True)
    assert all(a.equal(b) for a, b in zip(first, grad(loss(out), x)))
    with pytest.raises(RuntimeError, match="second time"):
        grad(loss(out), x)
    q, k, v = inputs()
    key = k * 1
    out = fagen.attention(q, key, v)
    with torch.no_grad():
        key.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss(out).backward()


def block(q, k, v):
    out, lse = fagen.attention(q * 2, k, v, causal=True, return_lse=True)
    lengths = torch.tensor([24, 20], dtype=INT)
    more = fagen.varlen_attention(out, k, v, seqlens_k=lengths)
    return more + lse.transpose(1, 2)[..., None]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(chip, reentrant):
    x, y = inputs(), inputs()
    loss(block(*x)).backward()
    loss(checkpoint(block, *y, use_reentrant=reentrant)).backward()
    assert all(a.grad.equal(b.grad) for a, b in zip(x, y))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(chip, dynamic):
    x = inputs()
    wanted = grad(loss(block(*x)), x)
    torch._dynamo.reset()
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    assert all(a.equal(b) for a, b in zip(grad(loss(compiled(*x)), x), wanted))
    short = inputs(sq=7)
    assert all(a.equal(b) for a, b in zip(grad(loss(compiled(*short)), short), grad(loss(block(*short)), short)))
    torch._dynamo.reset()
    both = torch.compile(lambda *x: checkpoint(block, *x, use_reentrant=False), fullgraph=True, backend="aot_eager")
    assert all(a.equal(b) for a, b in zip(grad(loss(both(*x)), x), wanted))


class Calls(TorchDispatchMode):
    """Options of the backward operators that were called."""

    def __init__(self):
        super().__init__()
        self.options = []

    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        if "backward" in f.name():
            self.options.append(args[-1])
        return f(*args, **(kwargs or {}))


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def test_determinism(chip):
    x, found = inputs(), []
    lengths = torch.tensor([9, 20], dtype=INT)
    for call, around in ((lambda: fagen.attention(*x, causal=True), contextlib.nullcontext()),
                         (lambda: fagen.attention(*x, causal=True), deterministic()),
                         (lambda: flash_attn_func(*x, deterministic=True), contextlib.nullcontext()),
                         (lambda: fagen.varlen_attention(*x, seqlens_k=lengths, deterministic=True), contextlib.nullcontext())):
        with Calls() as calls, around:
            grad(loss(call()), x)
        found += calls.options
    assert found == ["causal", "causal;deterministic", "deterministic", "deterministic"]


def test_a_second_derivative_is_refused(chip):
    x = inputs()
    first, = grad(loss(fagen.attention(*x)), x[0], create_graph=True)
    with pytest.raises(fagen.GradientUnsupported, match="a second derivative of attention was asked for; accepted: a first one"):
        first.sum().backward()


Q, K, V = (t.detach() for t in inputs())
LENGTHS, TABLE = torch.tensor([5, 33], dtype=INT), torch.tensor([[0, 1], [2, 3]], dtype=INT)
PAGES = normal(5, 4, 16, 2, 32)


def asks(x):
    return x.clone().requires_grad_()


REFUSED = {
    "pages": ("q", lambda: fagen.varlen_attention(asks(Q[:, :1]), PAGES, PAGES, seqlens_k=LENGTHS - 1, page_table=TABLE)),
    "keys in pages": ("k", lambda: fagen.varlen_attention(Q[:, :1], asks(PAGES), PAGES, seqlens_k=LENGTHS - 1, page_table=TABLE)),
    "a cache": ("v_cache", lambda: flash_attn_with_kvcache(Q, K, asks(V), cache_seqlens=LENGTHS)),
    "parts": ("parts", lambda: fagen.merge(asks(Q)[None], torch.zeros(1, 2, 4, 24))),
    "lses": ("lses", lambda: fagen.merge(Q[None], asks(torch.zeros(1, 2, 4, 24)))),
    "beside out": ("k", lambda: fagen.attention(Q, asks(K), V, out=Q.clone())),
    "out": ("out", lambda: fagen.attention(Q, K, V, out=asks(Q))),
    "beside out, with lengths": ("v", lambda: fagen.varlen_attention(Q, K, asks(V), seqlens_k=LENGTHS, out=Q.clone())),
}


@pytest.mark.parametrize("name, call", REFUSED.values(), ids=list(REFUSED))
def test_what_has_no_gradient_says_so(chip, name, call):
    with pytest.raises(fagen.GradientUnsupported, match=f"{name}.requires_grad is True; accepted: False, or a call within torch.no_grad"):
        call()
    with torch.no_grad():
        call()


def test_refused_where_compiled(chip):
    torch._dynamo.reset()
    with pytest.raises(Exception, match="requires_grad is True; accepted"):
        torch.compile(lambda q: fagen.varlen_attention(q, PAGES, PAGES, seqlens_k=LENGTHS - 1, page_table=TABLE), fullgraph=True,
                      backend="aot_eager")(asks(Q[:, :1]))


def of_operator(**change):
    out, lse = torch.zeros_like(Q), torch.zeros(2, 4, 24)
    return lambda: fagen.attention_backward(**{**dict(grad_out=out, q=Q, k=K, v=V, out=out, lse=lse), **change})


BAD = [
    (of_operator(grad_out=Q[:, :5]), ["grad_out.shape is (2, 5, 4, 32)", "that of out"]),
    (of_operator(grad_out=Q.half()), ["grad_out.dtype is float16"]),
    (of_operator(grad_out=Q.numpy()), ["grad_out is a numpy.ndarray", "torch.Tensor"]),
    (of_operator(lse=torch.zeros(2, 24, 4)), ["lse.shape is (2, 24, 4)"]),
    (of_operator(grad_lse=torch.zeros(2, 4)), ["grad_lse.shape is (2, 4)", "that of lse"]),
    (of_operator(k=K[..., :16]), ["k.shape is (2, 33, 2, 16)"]),
    (of_operator(grad_dtype="float16"), ["float16", "float32"]),
    (of_operator(grad_dtype="int4"), ["grad_dtype is 'int4'"]),
    (of_operator(deterministic=1), ["deterministic is 1"]),
    (of_operator(scale=-1), ["scale is -1"]),
    (lambda: fagen.attention(asks(Q), K, V, deterministic="yes"), ["deterministic is 'yes'"]),
]


@pytest.mark.parametrize("call, words", BAD, ids=[row[1][0] for row in BAD])
def test_bad_input(chip, call, words):
    with pytest.raises(fagen.InvalidArgument) as told:
        call()
    for word in [*words, "accepted"]:
        assert word in str(told.value), str(told.value)


def test_what_only_numpy_has_says_so(chip):
    for change in ({"grad_q": Q}, {"accumulate": True}, {"stream": 3}):
        with pytest.raises(fagen.Unsupported, match=f"{next(iter(change))} is .*accepted by this version"):
            of_operator(**change)()


def test_the_operator_gives_what_autograd_does(chip):
    x = inputs()
    out, lse = fagen.attention(*x, causal=True, return_lse=True)
    grad_out = normal(7, *out.shape)
    wanted = grad(out, x, grad_out)
    found = fagen.attention_backward(grad_out, *x, out, lse, causal=True)
    assert all(a.detach().equal(b) for a, b in zip(found, wanted))


def test_backward_runs_on_the_chip_of_the_forward():
    x = inputs()
    with fagen.simulator(CHIP):
        out = fagen.attention(*x)
    close(grad(loss(out), x), grad(loss(eager(*x)[0]), x))


def test_few_queries(chip):
    """Kernels of the forward that count in their workspace, before and after those of the backward."""
    x = inputs(sq=7)
    wanted = grad(loss(*eager(*x, right=0)), x)
    for _ in range(3):
        close(grad(loss(*fagen.attention(*x, causal=True, return_lse=True)), x), wanted)


def test_threads(chip):
    found = [None] * 4

    def work(i):
        x = inputs(i)
        found[i] = grad(loss(fagen.attention(*x, device=CHIP)), x)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, have in enumerate(found):
        x = inputs(i)
        close(have, grad(loss(eager(*x)[0]), x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bits_and_autocast(chip, dtype):
    told = fagen.supported(dtype=dtype, d=32, causal=True, op="backward")
    if not told:
        pytest.skip(told.reason)
    x = inputs()
    most = 2e-2 if dtype == torch.bfloat16 else 3e-3
    low = [t.detach().to(dtype).requires_grad_() for t in x]
    close(grad(loss(fagen.attention(*low, causal=True)), low), grad(loss(eager(*low, right=0)[0]), low), most)
    with torch.autocast("cpu", dtype=dtype):
        out = fagen.attention(*x, causal=True)
    assert out.dtype == dtype
    found = grad(loss(out), x)
    assert all(g.dtype == torch.float32 for g in found)
    close(found, grad(loss(eager(*x, right=0)[0]), x), most)


def test_a_type_without_a_backward_says_so(chip):
    told = fagen.supported(dtype="float16", d=32, op="backward")
    if told:
        pytest.skip("every type has one")
    x = [t.detach().half().requires_grad_() for t in inputs()]
    out = fagen.attention(*x)
    with pytest.raises(fagen.Unsupported, match="no kernel family computes fp16"):
        loss(out).backward()
