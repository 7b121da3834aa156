"""fagen with PyTorch: operators, compile, export, autocast; CPU tensors on the simulated chip."""
from __future__ import annotations

import threading

import pytest
from conftest import CHIP, close, exact

import fagen

torch = pytest.importorskip("torch")


def normal(seed, *shape, dtype=torch.float16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


Q, K, V = normal(1, 2, 24, 4, 64), normal(2, 2, 33, 2, 64), normal(3, 2, 33, 2, 64)
INT = torch.int32
STARTS, LENGTHS = torch.tensor([0, 10, 24], dtype=INT), torch.tensor([5, 33], dtype=INT)


def f64(x):
    return x.detach().to(torch.float64).numpy()


def right(out, q=Q, k=K, v=V, most=2e-3, **mask):
    close(f64(out), exact(f64(q), f64(k), f64(v), **mask)[0], most)


@pytest.mark.parametrize("dtype, most", [(torch.float16, 2e-3), (torch.bfloat16, 2e-2), (torch.float32, 1e-5)])
def test_types(chip, dtype, most):
    q, k, v = Q.to(dtype), K.to(dtype), V.to(dtype)
    out, lse = fagen.attention(q, k, v, causal=True, return_lse=True)
    assert out.dtype == dtype and lse.dtype == torch.float32 and out.is_contiguous()
    right(out, q, k, v, most, right=0)
    close(lse, exact(f64(q), f64(k), f64(v), right=0)[1], 1e-3)


def test_options(chip):
    right(fagen.attention(Q, K, V, window=(4, 3), diagonal="top-left"), left=4, right=3, off=0)
    right(fagen.attention(Q, K, V, causal=True, diagonal=5, scale=0.2), right=0, off=5, scale=0.2)
    out = fagen.attention(Q, K, V, out_dtype=torch.float32)
    assert out.dtype == torch.float32 and fagen.attention(Q, K, V, out_dtype="float32").equal(out)
    right(out)


def test_out_and_lse_are_written(chip):
    out, lse = torch.zeros(2, 4, 24, 64, dtype=torch.float16).transpose(1, 2), torch.zeros(2, 4, 24)
    assert fagen.attention(Q, K, V, out=out, lse=lse, return_lse=True)[0] is out
    right(out)
    assert fagen.attention(Q, K, V, return_lse=True)[1].equal(lse)


def test_strides(chip):
    q = Q.transpose(1, 2).contiguous().transpose(1, 2)
    right(fagen.attention(q, K[:, :, :1].expand(-1, -1, 2, -1), V), k=K[:, :, :1].expand(-1, -1, 2, -1))


def test_plain_calls_and_operators_give_the_same_bits(chip):
    out = fagen.attention(Q, K, V, causal=True)
    assert torch.ops.fagen.attention(Q, K, V, 0.0, (), "causal").equal(out)

    class Sees(torch.overrides.TorchFunctionMode):
        calls = 0

        def __torch_function__(self, f, types, args=(), kwargs=None):
            Sees.calls += f is torch.ops.fagen.attention.default
            return f(*args, **(kwargs or {}))

    with Sees():
        assert fagen.attention(Q, K, V, causal=True).equal(out)
    assert Sees.calls == 1, "a mode sees the operator"


def test_varlen_and_merge(chip):
    q, k = normal(1, 24, 4, 64), normal(2, 24, 2, 64)
    out, lse = fagen.varlen_attention(q, k, k, cu_seqlens_q=STARTS, cu_seqlens_k=STARTS, max_seqlen_q=14, max_seqlen_k=14, causal=True,
                                      return_lse=True)
    assert lse.shape == (4, 24)
    for a, b in ((0, 10), (10, 24)):
        right(out[None, a:b], q[None, a:b], k[None, a:b], k[None, a:b], right=0)
    out = fagen.varlen_attention(Q[:, :1], K, V, seqlens_k=LENGTHS, causal=True)
    right(out[:1], Q[:1, :1], K[:1, :5], V[:1, :5])
    table, pages = torch.tensor([[2, 0, 0], [1, 0, 3]], dtype=INT), normal(4, 4, 16, 2, 64)
    out = fagen.varlen_attention(Q[:, :1], pages, pages, seqlens_k=LENGTHS, page_table=table)
    keys = torch.cat([pages[1], pages[0], pages[3][:1]])[None]
    right(out[1:], Q[1:, :1], keys, keys)
    into = torch.zeros_like(out)
    fagen.varlen_attention(Q[:, :1], pages, pages, seqlens_k=LENGTHS, page_table=table, out=into)
    assert into.equal(out)
    halves = [fagen.attention(Q, K[:, a:b], V[:, a:b], out_dtype="float32", return_lse=True) for a, b in ((0, 9), (9, 33))]
    parts, sums = (torch.stack([h[i] for h in halves]) for i in (0, 1))
    right(fagen.merge(parts, sums, out_dtype=torch.float16))
    both = fagen.merge(parts, sums, return_lse=True)
    close(both[1], fagen.attention(Q, K, V, return_lse=True)[1], 1e-5)


F, F_OUT, F_LSE = [x.float()[:1, :9, :, :16] for x in (Q, K, V)], normal(5, 1, 9, 4, 16, dtype=torch.float32), torch.full((1, 4, 9), 2.0)
ROWS = [x[0] for x in F]
BOUNDS = torch.tensor([0, 4, 9], dtype=INT)
STATE = torch.tensor([5, 7])
SLOPES, SEEN = torch.tensor([0.5, 0.25, 0.125, 1.0]), normal(6, 2, 1, 9, 9) > -0.5
SCORES = "cap = scalar(1); slope = f32 'hq'; function score(s, b, h, i, j) return cap * tanh(s) + slope[h] * (j - i) end"
OPERATORS = [
    ("attention", (Q, K, V, 0.0, (), "causal")),
    ("attention_lse", (Q, K, V, 0.5, (3, -2), "window=?,0;offset=?")),
    ("attention_out", (Q, K, V, torch.zeros_like(Q), torch.zeros(2, 4, 24), 0.0, (), "")),
    ("varlen_attention", (Q, K, V, None, None, None, LENGTHS, None, 24, 33, 0.0, (), "")),
    ("varlen_attention_lse", (Q[0], K[0, :24], V[0, :24], STARTS, STARTS, None, None, None, 14, 14, 0.0, (), "causal")),
    ("varlen_attention_out", (Q, K, V, None, None, None, LENGTHS, None, 24, 33, torch.zeros_like(Q), None, 0.0, (), "")),
    ("attention_backward", (F_OUT, *F, F_OUT, F_LSE, F_LSE, 0.0, (), "causal;deterministic")),
    ("varlen_attention_backward", (F_OUT[0], *ROWS, F_OUT[0], F_LSE[0], None, BOUNDS, BOUNDS, None, None, 5, 5, 0.0, (), "")),
    ("attention_dropout", (Q, K, V, STATE, 0.2, 0.0, (), "causal")),
    ("varlen_attention_dropout", (Q, K, V, None, None, None, LENGTHS, None, 24, 33, STATE, 0.2, 0.0, (), "")),
    ("attention_dropout_backward", (F_OUT, *F, F_OUT, F_LSE, None, STATE, 0.2, 0.0, (), "causal")),
    ("varlen_attention_dropout_backward", (F_OUT[0], *ROWS, F_OUT[0], F_LSE[0], None, BOUNDS, BOUNDS, None, None, 5, 5, STATE, 0.2, 0.0, (),
                                           "")),
    ("attention_score", (Q, K, V, [torch.tensor(2.0), SLOPES], SCORES, "cap,slope", STATE, 0.2, 0.0, (), "causal")),
    ("varlen_attention_score", (Q, K, V, None, None, None, LENGTHS, None, 24, 33, [torch.tensor(2.0), SLOPES], SCORES, "cap,slope", STATE,
                                0.2, 0.0, (), "")),
    ("merge", (normal(1, 3, 2, 8, 4, 64, dtype=torch.float32), normal(2, 3, 2, 4, 8, dtype=torch.float32), "out=float16")),
    ("merge_lse", (normal(1, 3, 2, 8, 4, 64), normal(2, 3, 2, 4, 8, dtype=torch.float32), "")),
    ("merge_out", (normal(1, 3, 2, 8, 4, 64), normal(2, 3, 2, 4, 8, dtype=torch.float32), normal(1, 2, 8, 4, 64), None, "")),
]


OPERATORS += [(f"{name}_dynamic", (*(x if type(x) is not float else torch.tensor(0.25, dtype=torch.float64) for x in arguments[:-2]), (5,),
                                   "window=?,-1"))
              for name, arguments in OPERATORS if not name.startswith("merge")]


@pytest.mark.parametrize("name, arguments", OPERATORS, ids=[row[0] for row in OPERATORS])
def test_opcheck(chip, name, arguments):
    torch.library.opcheck(getattr(torch.ops.fagen, name).default, arguments)


def test_every_operator_is_checked():
    assert {name for name, _ in OPERATORS} == {n.split("::")[1] for n in torch._C._dispatch_get_all_op_names() if n.startswith("fagen::")}


def test_compile(chip):
    def block(q, k, v):
        out, lse = fagen.attention(q * 2, k, v, causal=True, return_lse=True)
        more = fagen.varlen_attention(out, k, v, seqlens_k=LENGTHS)
        return more + 1, lse

    wanted = block(Q, K, V)
    torch._dynamo.reset()
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager", dynamic=True)
    for a, b in zip(compiled(Q, K, V), wanted):
        assert a.equal(b)
    short = compiled(Q[:, :7], K, V)[0]
    assert short.equal(block(Q[:, :7], K, V)[0])


PROGRAM = fagen.score(SCORES)
PACKED = dict(cu_seqlens_q=BOUNDS, cu_seqlens_k=BOUNDS, max_seqlen_q=5)
NINE = torch.tensor([5, 9], dtype=INT)
# Of a function of q, k, v and a number n, which is 2 at least: each argument that may be a number that the compiler does not fix.
NUMBERS = [
    ("scale", lambda q, k, v, n: fagen.attention(q, k, v, causal=True, scale=n / 7)),
    ("an integer as scale", lambda q, k, v, n: fagen.attention(q, k, v, scale=n)),
    ("scale of a shape", lambda q, k, v, n: fagen.attention(q, k, v, scale=(n * q.shape[1]) ** -0.5)),
    ("a tensor as scale", lambda q, k, v, n: fagen.attention(q, k, v, scale=torch.ones(()) * (n / 7), dropout_p=n / 20, rng=STATE)),
    ("scale with LSE", lambda q, k, v, n: fagen.attention(q, k, v, scale=n / 14, return_lse=True)[1]),
    ("scale and lengths", lambda q, k, v, n: fagen.varlen_attention(q, k, v, seqlens_k=NINE, scale=n / 7)),
    ("the left side", lambda q, k, v, n: fagen.attention(q, k, v, window=(n, 0))),
    ("the right side", lambda q, k, v, n: fagen.attention(q, k, v, window=(None, n))),
    ("a window", lambda q, k, v, n: fagen.attention(q, k, v, causal=True, window=n, return_lse=True)[1]),
    ("the diagonal", lambda q, k, v, n: fagen.attention(q, k, v, causal=True, diagonal=n - 3)),
    ("a mask and lengths", lambda q, k, v, n: fagen.varlen_attention(q, k, v, seqlens_k=NINE, window=(n, n + 1), diagonal=n - 3)),
    ("the longest", lambda q, k, v, n: fagen.varlen_attention(q[0], k[0], v[0], max_seqlen_k=n + 4, **PACKED)),
    ("dropout_p", lambda q, k, v, n: fagen.attention(q, k, v, dropout_p=n / 20, rng=STATE)),
    ("all", lambda q, k, v, n: fagen.attention(q, k, v, scale=n / 7, window=(n, n + 1), diagonal=n - 3, dropout_p=n / 20, rng=STATE)),
    ("all, and lengths", lambda q, k, v, n: fagen.varlen_attention(q.half(), k.half(), v.half(), seqlens_k=NINE, scale=n / 7, window=n,
                                                                   diagonal=n, dropout_p=n / 20, rng=STATE)),
    ("flash_attn_func", lambda q, k, v, n: fagen.flash_attn.flash_attn_func(q, k, v, 0.0, n / 7, window_size=(n, 0))),
    ("sdpa", lambda q, k, v, n: fagen.sdpa.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), scale=n / 7,
                                                                        enable_gqa=True)),
]
CONSTANT = [
    ("out", lambda q, k, v, n: fagen.attention(q, k, v, scale=n / 7, window=n, out=torch.empty_like(q))),
    ("out and lengths", lambda q, k, v, n: fagen.varlen_attention(q, k, v, seqlens_k=NINE, scale=n / 7, window=n, out=torch.empty_like(q))),
    ("gradients", lambda q, k, v, n: fagen.attention_backward(q, q, k, v, q, F_LSE.expand(2, -1, -1), scale=n / 7, window=(n, 3),
                                                              dropout_p=n / 20, rng=STATE)[1]),
    ("gradients and lengths", lambda q, k, v, n: fagen.varlen_attention_backward(q, q, k, v, q, F_LSE.expand(2, -1, -1), seqlens_k=NINE,
                                                                                 scale=n / 7, causal=True, diagonal=n)[1]),
    ("softcap", lambda q, k, v, n: fagen.attention(q, k, v, softcap=n / 7, sinks=SLOPES, causal=True)),
    ("a mask", lambda q, k, v, n: fagen.attention(q, k, v, attn_mask=SEEN, scale=n / 7, window=(n, 2))),
    ("a bias", lambda q, k, v, n: fagen.attention(q, k, v, attn_mask=SEEN.expand(2, 4, 9, 9) * 0.5 * n, return_lse=True)[1]),
    ("a program", lambda q, k, v, n: fagen.attention(q, k, v, score=PROGRAM(cap=n / 3, slope=SLOPES * n), dropout_p=n / 20, rng=STATE)),
    ("a program and lengths", lambda q, k, v, n: fagen.varlen_attention(q, k, v, seqlens_k=NINE, score=PROGRAM(cap=n, slope=SLOPES))),
    ("alibi and lengths", lambda q, k, v, n: fagen.varlen_attention(q.half(), k.half(), v.half(), seqlens_k=NINE, softcap=n / 7, scale=n,
                                                                    alibi_slopes=SLOPES, return_lse=True)[1]),
    ("a mask of sdpa", lambda q, k, v, n: fagen.sdpa.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), SEEN,
                                                                                  scale=n / 7, enable_gqa=True)),
    ("softcap of flash_attn", lambda q, k, v, n: fagen.flash_attn.flash_attn_func(q, k, v, softcap=n / 7, alibi_slopes=SLOPES)),
    ("a cache", lambda q, k, v, n: fagen.flash_attn.flash_attn_with_kvcache(q[:, :1], k, v, cache_seqlens=n, num_splits=n, window_size=n)),
]


@pytest.mark.parametrize("name, call, learns", [(name, call, True) for name, call in NUMBERS] + [(*row, False) for row in CONSTANT],
                         ids=[name for name, _ in NUMBERS + CONSTANT])
def test_one_graph_serves_every_number(chip, name, call, learns):
    """Of what autograd differentiates its gradients too."""
    x = [t[:, :9].float().requires_grad_(learns) for t in (Q, K, V)]
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(lambda n: call(*x, n), fullgraph=True, backend="aot_eager", dynamic=True)
    for n in (2, 3, 5):
        out, wanted = compiled(n), call(*x, n)
        assert out.equal(wanted)
        if learns:
            gradients = [torch.autograd.grad(y.sin().sum(), x, allow_unused=True) for y in (out, wanted)]
            assert all(have is want is None or have.equal(want) for have, want in zip(*gradients))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_a_graph_serves_more_numbers_than_there_may_be_graphs(chip):
    """Of what dynamo alone has traced; without dynamic=True, where the second number makes a symbol. The ninth graph would raise."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    x = [t[:, :9] for t in (Q, K, V)]
    compiled = torch.compile(lambda s, n: fagen.attention(*x, scale=s, window=(n, 0)), fullgraph=True, backend="eager")
    for i in range(2, 14):
        assert compiled(i / 20, i).equal(fagen.attention(*x, scale=i / 20, window=(i, 0)))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2


def test_numbers_of_a_compiled_program_are_checked_when_it_runs(chip):
    torch._dynamo.reset()
    call = lambda n, s: fagen.attention(Q, K, V, window=(n, 0), scale=s)  # noqa: E731
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=True)
    assert compiled(4, torch.tensor(0.5)).equal(fagen.attention(Q, K, V, window=(4, 0), scale=0.5))
    for n, s, word in ((-3, 0.5, r"window\[0\] is -3"), (3, -0.5, "scale is -0.5"), (3, 0.0, "scale is nan")):
        with pytest.raises(fagen.InvalidArgument, match=word):
            compiled(n, torch.tensor(s))


def test_a_compiled_gradient_by_the_scale(chip):
    x = [t[:, :9].float() for t in (Q, K, V)]
    torch._dynamo.reset()
    compiled = torch.compile(lambda s: fagen.attention(*x, scale=s), fullgraph=True, backend="aot_eager")
    for value in (0.2, 0.4):
        s = torch.tensor(value, requires_grad=True)
        have, want = (torch.autograd.grad(call(s).sin().sum(), s)[0] for call in (compiled, lambda s: fagen.attention(*x, scale=s)))
        assert have.equal(want) and want != 0


def test_export(chip):
    class Layer(torch.nn.Module):
        def forward(self, q, k, v):
            return fagen.attention(q, k, v, window=(7, 0), scale=0.1)

    b, s, t = (torch.export.Dim(n) for n in "bst")
    program = torch.export.export(Layer(), (Q, K, V), dynamic_shapes=({0: b, 1: s}, {0: b, 1: t}, {0: b, 1: t}))
    assert [n.target for n in program.graph.nodes if n.op == "call_function"] == [torch.ops.fagen.attention.default]
    assert program.module()(Q[:1, :5], K[:1], V[:1]).equal(Layer()(Q[:1, :5], K[:1], V[:1]))


def test_shapes_without_a_device_are_those_of_the_operator():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        q, k = (torch.empty(2, *rest, 64, device="cuda", dtype=torch.bfloat16) for rest in ((24, 4), (33, 2)))
        out, lse = fagen.attention(q, k, k[..., :40], causal=True, return_lse=True, out_dtype="float32")
        assert (out.shape, out.dtype, out.device.type) == ((2, 24, 4, 40), torch.float32, "cuda")
        assert (lse.shape, lse.dtype) == ((2, 4, 24), torch.float32)


def test_autocast(chip):
    q, k, v = (x.float() for x in (Q, K, V))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = fagen.attention(q, k, v)
        assert out.dtype == torch.bfloat16
        assert fagen.varlen_attention(q, k, v, seqlens_k=LENGTHS).dtype == torch.bfloat16
    assert out.equal(fagen.attention(q.bfloat16(), k.bfloat16(), v.bfloat16()))
    assert fagen.attention(q, k, v).dtype == torch.float32


def test_threads(chip):
    wanted, found = fagen.attention(Q, K, V), [None] * 8

    def work(i):
        found[i] = fagen.attention(Q, K, V, device=CHIP)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(x.equal(wanted) for x in found)


REFUSED = [
    ("numpy beside", lambda: fagen.attention(Q, K.numpy(), V), ["k is a numpy.ndarray", "torch.Tensor"]),
    ("another type", lambda: fagen.attention(Q, K.float(), V), ["k.dtype is float32", "float16"]),
    ("float64", lambda: fagen.attention(Q.double(), K.double(), V.double()), ["q.dtype is float64"]),
    ("int64", lambda: fagen.attention(Q.long(), K, V), ["q.dtype is int64"]),
    ("three dimensions", lambda: fagen.attention(Q[0], K, V), ["q.shape is (24, 4, 64)"]),
    ("the meta device", lambda: fagen.attention(Q, K.to("meta"), V), ["k.device is meta"]),
    ("sparse", lambda: fagen.attention(Q.to_sparse(), K, V), ["sparse"]),
    ("no unit stride", lambda: fagen.attention(Q.transpose(1, 3).contiguous().transpose(1, 3), K, V), ["q.strides"]),
    ("keys of another d", lambda: fagen.attention(Q, K[..., :32], V), ["k.shape is (2, 33, 2, 32)"]),
    ("heads", lambda: fagen.attention(Q[:, :, :3], K, V), ["k.shape[2] is 2", "3 of q"]),
    ("a stream", lambda: fagen.attention(Q, K, V, stream=3), ["stream is 3", "current stream"]),
    ("a device", lambda: fagen.attention(Q, K, V, device=3), ["device is 3"]),
    ("a CUDA device", lambda: fagen.attention(Q, K, V, device="tpu"), ['"tpu"']),
    ("out_dtype", lambda: fagen.attention(Q, K, V, out_dtype=torch.int8), ["out_dtype is torch.int8"]),
    ("another half", lambda: fagen.attention(Q, K, V, out_dtype=torch.bfloat16),
     ["bfloat16", "float16 (fp16), that of q, or float32 (fp32)"]),
    ("out_dtype beside out", lambda: fagen.attention(Q, K, V, out=Q.clone(), out_dtype="float32"), ["out_dtype is 'float32'"]),
    ("lse without out", lambda: fagen.attention(Q, K, V, lse=torch.zeros(2, 4, 24)), ["out is None"]),
    ("out without lse", lambda: fagen.attention(Q, K, V, out=Q.clone(), return_lse=True), ["lse is None"]),
    ("out of another shape", lambda: fagen.attention(Q, K, V, out=K.clone()), ["out.shape is (2, 33, 2, 64)"]),
    ("out that is an array", lambda: fagen.attention(Q, K, V, out=Q.numpy()), ["out is a numpy.ndarray"]),
    ("maxima in a tensor", lambda: fagen.varlen_attention(Q[0], K[0], V[0], cu_seqlens_q=STARTS, cu_seqlens_k=STARTS,
                                                           max_seqlen_q=STARTS[1:], max_seqlen_k=24),
     ["max_seqlen_q is tensor([10, 24]", "a tensor of one"]),
    ("no maximum", lambda: fagen.varlen_attention(Q[0], K, V, cu_seqlens_q=STARTS, seqlens_k=LENGTHS), ["max_seqlen_q is None"]),
    ("lengths of int64", lambda: fagen.varlen_attention(Q, K, V, seqlens_k=LENGTHS.long()), ["seqlens_k.dtype is int64"]),
    ("no lengths", lambda: fagen.varlen_attention(Q, K, V), ["are all None"]),
    ("scale", lambda: fagen.attention(Q, K, V, scale=-2), ["scale is -2"]),
    ("options of an operator", lambda: torch.ops.fagen.attention(Q, K, V, 0.0, (), "cousal"), ['options is "cousal"']),
    ("a word for a number", lambda: torch.ops.fagen.attention(Q, K, V, 0.0, (), "window=a,b"), ['options is "window=a,b"']),
    ("a number too many", lambda: torch.ops.fagen.attention(Q, K, V, 0.0, (3, 4), "window=?,0"), ["numbers is (3, 4)", "1 for"]),
    ("a number that is no side", lambda: torch.ops.fagen.attention(Q, K, V, 0.0, (-2,), "window=?,0"), ["window[0] is -2"]),
    ("a tensor that is no scale", lambda: torch.ops.fagen.attention_dynamic(Q, K, V, torch.tensor(-1.0), (), ""), ["scale is -1.0"]),
]


@pytest.mark.parametrize("call, words", [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(chip, call, words):
    with pytest.raises(fagen.InvalidArgument) as told:
        call()
    for word in [*words, "accepted"]:
        assert word in str(told.value), str(told.value)


def test_the_cpu_needs_a_simulated_chip():
    with pytest.raises(fagen.InvalidArgument, match="q.device is cpu and device is None; accepted: .* device=\"sim:sm_90a\""):
        fagen.attention(Q, K, V)
    right(fagen.attention(Q, K, V, device=CHIP))
    with fagen.Context(CHIP) as own:
        right(fagen.attention(Q, K, V, device=own))


def test_programs_under_autocast_and_where_gradients_are_wanted(chip):
    x = [t[:, :9].float() for t in (Q, K, V)]
    with torch.autocast("cpu", torch.bfloat16):
        out = fagen.attention(*x, softcap=2.0)
    assert out.dtype == torch.bfloat16 and out.equal(fagen.attention(*(t.bfloat16() for t in x), softcap=2.0))
    learns = [t.clone().requires_grad_() for t in x]
    torch._dynamo.reset()
    for call in (lambda q, k, v: fagen.attention(q, k, v, softcap=2.0),
                 lambda q, k, v: fagen.varlen_attention(q, k, v, seqlens_k=NINE, softcap=2.0)):
        compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
        assert all(g.isfinite().all() and g.any() for g in torch.autograd.grad(call(*learns).sin().sum(), learns))
        with pytest.raises(Exception, match="q.requires_grad is True: gradients of score programs are not computed"):
            compiled(*learns)
        with torch.no_grad():
            assert compiled(*learns).equal(call(*x))
    with pytest.raises(Exception, match="out or lse is set beside a score program in a call that PyTorch traces"):
        torch.compile(lambda q, k, v: fagen.attention(q, k, v, softcap=2.0, out=torch.empty_like(q)), fullgraph=True, backend="eager")(*x)
