"""torch.func.* and forward-mode differentiation of fagen, lazy views, and derivatives by the scale: on the simulated chip, against eager
attention in fp64."""
from __future__ import annotations

import pytest

import fagen

torch = pytest.importorskip("torch")
from test_gradients import INT, close, eager, inputs, loss, normal  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402

import fagen.torch  # noqa: E402
from fagen.flash_attn import flash_attn_func, flash_attn_with_kvcache  # noqa: E402

MASKS = [
    ({}, {}, {}),
    ({"hkv": 1, "dv": 16, "sq": 40}, {"causal": True}, {"right": 0}),  # the first queries see no key
    ({"d": 20, "dv": 7}, {"window": (5, 2), "scale": 0.3}, {"left": 5, "right": 2, "scale": 0.3}),
    ({}, {"window": (3, 0), "diagonal": "top-left"}, {"left": 3, "right": 0, "off": 0}),
    ({"sq": 33, "sk": 24}, {"causal": True, "diagonal": 4}, {"right": 0, "off": 4}),
]
SMALL = dict(b=1, sq=4, sk=5, hq=2, hkv=1, d=8, dv=8)
LENGTHS = dict(seqlens_q=torch.tensor([24, 5], dtype=INT), seqlens_k=torch.tensor([12, 33], dtype=INT))


def plain(**shape):
    return [x.detach() for x in inputs(**shape)]


def finite(pair):
    return pair[0], torch.where(pair[1].isfinite(), pair[1], 0)


def doubles(*tensors):
    return tuple(x.double() for x in tensors)


@pytest.mark.parametrize("shape, options, mask", MASKS)
def test_jvp(chip, shape, options, mask):
    x, t = plain(**shape), [normal(7 + i, *x.shape) for i, x in enumerate(plain(**shape))]
    wanted = torch.func.jvp(lambda *x: finite(eager(*x, **mask)), doubles(*x), doubles(*t))[1]
    values, found = torch.func.jvp(lambda *x: finite(fagen.attention(*x, return_lse=True, **options)), tuple(x), tuple(t))
    close(found, wanted)
    close(values, finite(eager(*x, **mask)))
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(fagen.attention(forward_ad.make_dual(x[0], t[0]), *x[1:], **options)).tangent
    close([found], torch.func.jvp(lambda q: eager(q, *doubles(*x[1:]), **mask)[0], doubles(x[0]), doubles(t[0]))[1:])


def test_hidden_nan_reaches_no_tangent(chip):
    q, k, v = plain()
    k[:, 30:], v[:, 30:] = torch.nan, torch.nan
    options = {"causal": True, "diagonal": 0}
    found = torch.func.jvp(lambda q: fagen.attention(q, k, v, **options), (q,), (q,))[1]
    close([found], [torch.func.jvp(lambda q: fagen.attention(q, k[:, :30], v[:, :30], **options), (q,), (q,))[1]], 1e-6)


def test_linearize(chip):
    q, k, v = plain()
    out, push = torch.func.linearize(lambda q: fagen.attention(q, k, v, causal=True), q)
    close([push(2 * q)], [torch.func.jvp(lambda q: eager(q, k, v, right=0)[0], (q.double(),), (2 * q.double(),))[1]])


@pytest.mark.parametrize("jacobian", [torch.func.jacfwd, torch.func.jacrev])
def test_jacobians(chip, jacobian):
    x = plain(**SMALL)
    found = jacobian(lambda *x: fagen.attention(*x, causal=True), argnums=(0, 1, 2))(*x)
    close(found, jacobian(lambda *x: eager(*x, right=0)[0], argnums=(0, 1, 2))(*doubles(*x)))


def test_grad_and_vjp(chip):
    x = plain()
    wanted = torch.func.grad(lambda *x: loss(*eager(*x, right=0)), argnums=(0, 1, 2))(*doubles(*x))
    close(torch.func.grad(lambda *x: loss(*fagen.attention(*x, causal=True, return_lse=True)), argnums=(0, 1, 2))(*x), wanted)
    close(torch.func.vjp(lambda *x: loss(*fagen.attention(*x, causal=True, return_lse=True)), *x)[1](torch.tensor(1.0)), wanted)


def test_a_gradient_of_a_tangent(chip):
    """Reverse over forward: tangents are made of differentiable operations."""
    x = plain(**SMALL)
    t = tuple(normal(9 + i, *y.shape) for i, y in enumerate(x))

    def of(f, x, t):
        return torch.func.grad(lambda *x: torch.func.jvp(f, x, t)[1].sin().sum(), argnums=(0, 1, 2))(*x)
    close(of(lambda *x: fagen.attention(*x, causal=True), tuple(x), t), of(lambda *x: eager(*x, right=0)[0], doubles(*x), doubles(*t)))


@pytest.mark.parametrize("dims", [(0, 0, 0), (1, None, None), (None, 2, 0)])
def test_vmap(chip, dims):
    x = [y if dim is None else torch.stack([y, 2 * y, -y], dim) for y, dim in zip(plain(), dims)]
    found = torch.func.vmap(lambda *x: fagen.attention(*x, causal=True, return_lse=True), in_dims=dims)(*x)
    for i in range(3):
        one = [y if dim is None else y.select(dim, i) for y, dim in zip(x, dims)]
        close([y[i] for y in found], fagen.attention(*one, causal=True, return_lse=True), 1e-6)


def test_per_sample_gradients(chip):
    x = [torch.stack([y, 0.5 * y]) for y in plain(**SMALL)]
    found = torch.func.vmap(torch.func.grad(lambda *x: loss(fagen.attention(*x)), argnums=(0, 1, 2)))(*x)
    for i in range(2):
        close([y[i] for y in found], torch.func.grad(lambda *x: loss(eager(*x)[0]), argnums=(0, 1, 2))(*doubles(*(y[i] for y in x))))


def test_batched_gradients_of_autograd(chip):
    x = inputs(**SMALL)
    out = fagen.attention(*x)
    weights = normal(3, 4, *out.shape)
    found = torch.autograd.grad(out, x, weights, is_grads_batched=True, retain_graph=True)
    for i in range(4):
        close([y[i] for y in found], torch.autograd.grad(out, x, weights[i], retain_graph=True))


def test_sequences_and_dropout_within_torch_func(chip):
    x, rng = plain(), torch.tensor([3, 4])
    for f in (lambda *x: fagen.varlen_attention(*x, return_lse=True, **LENGTHS)[0][:1, :5],
              lambda *x: fagen.attention(*x, dropout_p=0.3, rng=rng),
              lambda *x: fagen.varlen_attention(*(y.half() for y in x), dropout_p=0.3, rng=rng, **LENGTHS)[:1, :5]):
        y = [t.clone().requires_grad_() for t in x]
        wanted = torch.autograd.grad(loss(f(*y)), y)
        for have, want in zip(torch.func.grad(lambda *x: loss(f(*x)), argnums=(0, 1, 2))(*x), wanted):
            assert have.equal(want)
        two = torch.func.vmap(lambda q: f(q, *x[1:]))(torch.stack([x[0], 2 * x[0]]))
        assert two[1].equal(f(2 * x[0], *x[1:]))


def test_autocast_within_torch_func(chip):
    x = plain()
    with torch.autocast("cpu", torch.bfloat16):
        out, tangent = torch.func.jvp(lambda q: fagen.attention(q, *x[1:]), (x[0],), (x[0],))
    assert out.dtype == tangent.dtype == torch.bfloat16 and out.equal(fagen.attention(*(y.bfloat16() for y in x)))


def test_what_has_no_tangent_says_so(chip):
    q, k, v = plain()
    calls = {
        "dropout": lambda q: fagen.attention(q, k, v, dropout_p=0.5),
        "lengths": lambda q: fagen.varlen_attention(q, k, v, **LENGTHS),
        "lengths and dropout": lambda q: fagen.varlen_attention(q.half(), k.half(), v.half(), dropout_p=0.5, **LENGTHS),
        "merge": lambda q: fagen.merge(q[None], torch.zeros(1, 2, 4, 24)),
        "out": lambda q: fagen.attention(q, k, v, out=torch.empty(2, 24, 4, 32)),
        "cache": lambda q: flash_attn_with_kvcache(q, k, v, cache_seqlens=20),
    }
    for name, call in calls.items():
        with pytest.raises(fagen.GradientUnsupported, match="tangent"):
            torch.func.jvp(call, (q,), (q,))
        with forward_ad.dual_level(), pytest.raises(fagen.GradientUnsupported, match="tangent"):
            call(forward_ad.make_dual(q, q))
    with pytest.raises(fagen.GradientUnsupported, match="second derivative"):
        torch.func.hessian(lambda q: fagen.attention(q, k, v).sum())(q)
    with pytest.raises(fagen.GradientUnsupported, match="second derivative"):
        torch.autograd.functional.jvp(lambda q: fagen.attention(q, k, v), q, q)
    with pytest.raises(fagen.GradientUnsupported, match="vectorize"):
        torch.autograd.functional.jacobian(lambda q: fagen.attention(q, k, v), q, strategy="forward-mode", vectorize=True)
    with pytest.raises(fagen.GradientUnsupported, match="torch.ops.fagen.attention"):
        torch.func.jvp(lambda q: torch.ops.fagen.attention(q, k, v, 0.0, (), ""), (q,), (q,))


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.filterwarnings("ignore")
def test_nested_tensors_are_refused(chip, layout):
    q, k, v = plain()
    x = torch.nested.nested_tensor([q[0], q[1, :3]], layout=layout)
    for call in (lambda: fagen.attention(x, k, v), lambda: fagen.attention(q, x, v), lambda: fagen.attention(x, x, x, dropout_p=0.5),
                 lambda: fagen.varlen_attention(x, x, x, **LENGTHS), lambda: fagen.merge(x, x)):
        with pytest.raises(fagen.Unsupported, match="is a nested tensor; accepted: fagen.varlen_attention"):
            call()


def negative(x):
    """-x, whose sign is a bit beside its memory."""
    y = torch._neg_view(x)
    assert y.is_neg() and y.data_ptr() == x.data_ptr()
    return y


@pytest.mark.parametrize("which", [0, 1, 2])
def test_lazy_negatives_as_inputs(chip, which):
    x = plain()
    lazy, real = ([f(y) if i == which else y for i, y in enumerate(x)] for f in (negative, torch.neg))
    rng = torch.tensor([3, 4])
    for call in (lambda *x: fagen.attention(*x, causal=True), lambda *x: fagen.attention(*x, dropout_p=0.5, rng=rng),
                 lambda *x: fagen.attention(*x, out=torch.empty(2, 24, 4, 32)), lambda *x: flash_attn_func(*x),
                 lambda *x: torch.ops.fagen.attention(*x, 0.0, (), ""),
                 lambda *x: fagen.varlen_attention(*x, out=torch.zeros(2, 24, 4, 32), **LENGTHS),
                 lambda *x: fagen.varlen_attention(*x, **LENGTHS)[:1]):
        assert call(*lazy).equal(call(*real))

    def gradients(x):
        x = [y.requires_grad_() for y in x]
        return torch.autograd.grad(negative(fagen.attention(*x)), x, negative(normal(5, 2, 24, 4, 32)))
    for have, want in zip(gradients(lazy), gradients(real)):
        assert have.equal(want)


def test_lazy_negatives_elsewhere(chip):
    q, k, v = plain()
    out, lse = fagen.attention(q, k, v, return_lse=True)
    assert fagen.merge(negative(out[None]), negative(-lse[None])).equal(fagen.merge(-out[None], lse[None]))
    found = fagen.attention_backward(negative(out), q, k, v, out, negative(-lse))
    for have, want in zip(found, fagen.attention_backward(-out, q, k, v, out, lse)):
        assert have.equal(want)
    for name in ("out", "lse"):
        given = {"out": torch.empty_like(out), "lse": torch.empty_like(lse)}
        given[name] = negative(given[name])
        with pytest.raises(fagen.InvalidArgument, match=f"^{name} is a lazy negative, .*; accepted: {name}.resolve_neg"):
            fagen.attention(q, k, v, return_lse=True, **given)
        with pytest.raises(fagen.InvalidArgument, match=f"^{name} is a lazy negative"):
            fagen.merge(out[None], lse[None], return_lse=True, **given)
    part = torch.randn(2, 24, 4, 32, dtype=torch.complex64).conj()
    with pytest.raises(fagen.InvalidArgument, match="^q.dtype is complex64"):
        fagen.attention(part, part, part)
    with pytest.raises(fagen.InvalidArgument, match="is a tensor whose values are not in its memory"):
        fagen.attention(torch._efficientzerotensor(q.shape), k, v)


def by_scale(f, x, scale):
    scale = torch.tensor(scale, dtype=x[0].dtype).requires_grad_()
    return torch.autograd.grad(loss(*f(*x, scale)), [*x, scale])


@pytest.mark.parametrize("shape, options, mask", MASKS[:2])
def test_a_gradient_by_the_scale(chip, shape, options, mask):
    x = inputs(**shape)
    found = by_scale(lambda *x: fagen.attention(*x[:3], scale=x[3], return_lse=True, **options), x, 0.25)
    close(found, by_scale(lambda *x: eager(*x[:3], scale=x[3], **mask), [y.detach().double().requires_grad_() for y in x], 0.25))
    for y in x:
        y.requires_grad_(False)
    scale = torch.tensor(0.25, requires_grad=True)
    out = fagen.attention(*x, scale=scale, **options)
    assert out.equal(fagen.attention(*x, scale=0.25, **options))
    close(torch.autograd.grad(flash_attn_func(*x[:3], softmax_scale=scale, causal=bool(options)).sin().sum(), scale),
          torch.autograd.grad(out.sin().sum(), scale), 1e-6) if x[2].shape[3] == x[0].shape[3] else None
    with torch.no_grad():
        assert not fagen.attention(*x, scale=scale).requires_grad


def test_a_gradient_by_the_scale_of_padded_sequences(chip):
    """Rows past a length may hold NaN."""
    x = plain()
    x[0][1, 5:] = torch.nan
    scale = torch.tensor(0.25, requires_grad=True)
    out = fagen.varlen_attention(*x, scale=scale, **LENGTHS)
    found = torch.autograd.grad(out[0].sin().sum() + out[1, :5].sin().sum(), scale)
    parts = (([y[:1, :n] for y, n in zip(x, (24, 12, 12))]), [y[1:, :n] for y, n in zip(x, (5, 33, 33))])
    wanted = sum(torch.autograd.grad(fagen.attention(*part, scale=scale).sin().sum(), scale)[0] for part in parts)
    close(found, [wanted])


def test_a_tangent_of_the_scale(chip):
    x, one = plain(), torch.tensor(1.0)
    found = torch.func.jvp(lambda s: fagen.attention(*x, scale=s), (torch.tensor(0.25),), (one,))[1]
    close([found], [torch.func.jvp(lambda s: eager(*x, scale=s)[0], (torch.tensor(0.25).double(),), (one.double(),))[1]])
    with pytest.raises(fagen.Unsupported, match="^scale has no one value here"):
        torch.func.vmap(lambda s: fagen.attention(*x, scale=s))(torch.tensor([0.25, 0.5]))
    with pytest.raises(fagen.InvalidArgument, match=r"^scale.shape is \(2,\); accepted: \(\): one number"):
        fagen.attention(*x, scale=torch.tensor([0.25, 0.5]))


def test_a_probability_of_dropout_has_no_derivative(chip):
    x, p = plain(), torch.tensor(0.0, requires_grad=True)
    for call in (lambda p: fagen.attention(*x, dropout_p=p), lambda p: fagen.varlen_attention(*x, dropout_p=p, **LENGTHS),
                 lambda p: flash_attn_func(*x, dropout_p=p)):
        with pytest.raises(fagen.GradientUnsupported, match="^dropout_p.requires_grad is True"):
            call(p)
        with pytest.raises(fagen.GradientUnsupported, match="^dropout_p has a tangent"):
            torch.func.jvp(call, (torch.tensor(0.5),), (torch.tensor(1.0),))
    rng = torch.tensor([1, 2])
    assert fagen.attention(*x, dropout_p=torch.tensor(0.5), rng=rng).equal(fagen.attention(*x, dropout_p=0.5, rng=rng))
