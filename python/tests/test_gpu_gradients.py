"""Gradients on a GPU, with PyTorch: against fp64, the bits of the C library, compile, graphs, streams, threads, checkpoints, memory.

FAGEN_TEST_REHEARSE=1 runs what needs no GPU at small sizes on the simulator, to show that the tests themselves are right. Each case compiles
kernels of its own, for seconds: some cases in turn run by default, all with FAGEN_TEST_FULL=1."""
from __future__ import annotations

import ctypes as C
import itertools
import os
import threading

import pytest
from conftest import CHIP, seen

import fagen
from fagen import _abi, _library

torch = pytest.importorskip("torch")
from torch.utils.checkpoint import checkpoint  # noqa: E402

from fagen.flash_attn import (flash_attn_func, flash_attn_kvpacked_func, flash_attn_qkvpacked_func,  # noqa: E402
                              flash_attn_varlen_func)

GPU = torch.cuda.is_available()
if not GPU and not os.environ.get("FAGEN_TEST_REHEARSE"):
    pytest.skip("no GPU", allow_module_level=True)

DEVICE = "cuda" if GPU else "cpu"
SQ, SK, ROUNDS = (500, 700, 200) if GPU else (40, 56, 3)
BF16, FP16, INT = torch.bfloat16, torch.float16, torch.int32
gpu = pytest.mark.skipif(not GPU, reason="no GPU")
grad = torch.autograd.grad


@pytest.fixture(autouse=True)
def where(no_device_named, monkeypatch):
    if not GPU:
        monkeypatch.setenv("FAGEN_DEVICE", CHIP)


def wait():
    if GPU:
        torch.cuda.synchronize()


def normal(seed, *shape, dtype=BF16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device=DEVICE, dtype=dtype)


def inputs(seed=1, b=2, sq=SQ, sk=SK, hq=8, hkv=2, d=128, dv=None, dtype=BF16):
    """q, k and v that want gradients, and one of out."""
    dv = dv or d
    shapes = (b, sq, hq, d), (b, sk, hkv, d), (b, sk, hkv, dv)
    return [normal(seed + i, *s, dtype=dtype).requires_grad_() for i, s in enumerate(shapes)], normal(seed + 3, b, sq, hq, dv, dtype=dtype)


def eager(q, k, v, left=-1, right=-1):
    """(out, lse) of [b, s, h, d] in q's type, step by step; the diagonal is bottom-right, and each query sees a key."""
    group, sq, sk = q.shape[2] // k.shape[2], q.shape[1], k.shape[1]
    k, v = (x.repeat_interleave(group, 2) for x in (k, v))
    s = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
    s = s.masked_fill(torch.from_numpy(~seen(sq, sk, left, right)).to(q.device), -torch.inf)
    return torch.einsum("bhij,bjhd->bihd", s.softmax(-1), v), s.logsumexp(-1)


def in_fp64(x):
    return [t.detach().double().requires_grad_() for t in x]


def ulp(x, dtype):
    """That of numbers as large as the largest of x."""
    most = x.abs().max().to(dtype)
    return (torch.nextafter(most.cpu(), torch.tensor(torch.inf, dtype=dtype)) - most.cpu()).double().item()


def right(found, wanted, naive, dtype):
    """The rule of `fagen verify`: at most twice the error of 16-bit attention step by step, and one ulp."""
    for name, have, want, plain in zip("qkv", found, wanted, naive):
        assert have.shape == want.shape and have.dtype == dtype
        errors = [(x.double() - want).abs().max().item() for x in (have, plain)]
        assert errors[0] <= 2 * errors[1] + ulp(want, dtype), f"gradient of {name}: {errors[0]} apart; naive {errors[1]}"
        assert want.abs().max() > 0


def held(call, plain, x, given):
    """The gradients of call(q, k, v), held against those of plain(q, k, v) in fp64 by the errors of plain in 16 bits."""
    found, high = grad(call(*x), x, given), in_fp64(x)
    naive = [t.detach().clone().requires_grad_() for t in x]
    right(found, grad(plain(*high), high, given.double()), grad(plain(*naive), naive, given), x[0].dtype)


MASKS = {"none": ({}, {}), "causal": ({"causal": True}, {"right": 0}), "window": ({"window": (90, 20)}, {"left": 90, "right": 20})}
SIZES = [(64, 64, 8, 2), (128, 128, 8, 2), (64, 64, 4, 4), (128, 128, 4, 4), (64, 128, 4, 1), (128, 64, 4, 2), (96, 96, 6, 3),
         (192, 128, 4, 2), (192, 192, 2, 2), (256, 256, 4, 2)]


def in_turn(cases, step):
    """Every step-th case, or all: values of the parameter that changes fastest take turns where step does not divide their number."""
    return cases if os.environ.get("FAGEN_TEST_FULL") else cases[::step]


@pytest.mark.parametrize("size, dtype, mask", in_turn(list(itertools.product(SIZES, (BF16, FP16), MASKS)), 5), ids=str)
def test_against_fp64(size, dtype, mask):
    d, dv, hq, hkv = size
    options, plain = MASKS[mask]
    x, given = inputs(hq=hq, hkv=hkv, d=d, dv=dv, dtype=dtype)
    held(lambda *x: fagen.attention(*x, **options), lambda *x: eager(*x, **plain)[0], x, given)


@gpu
@pytest.mark.parametrize("d, s, causal", in_turn(list(itertools.product((64, 96, 128, 192, 256), (1, 17, 512, 2048), (False, True))), 3))
def test_lengths_of_training(d, s, causal):
    x, given = inputs(b=1, sq=s, sk=s, hq=4, hkv=2, d=d)
    if s == 1:  # softmax of one score: gradients of q and k are 0 but for rounding
        found = grad(fagen.attention(*x, causal=causal), x, given)
        wanted = given.double().reshape(1, 1, 2, 2, d).sum(3)
        assert (found[2].double() - wanted).abs().max() <= ulp(wanted, BF16) and max(g.abs().max() for g in found[:2]) < 0.1
        return
    held(lambda *x: fagen.attention(*x, causal=causal), lambda *x: eager(*x, **({"right": 0} if causal else {}))[0], x, given)


@pytest.mark.parametrize("d", [64, 128])
def test_with_a_gradient_of_lse(d):
    x, given = inputs(d=d)
    of_lse = normal(9, 2, 8, SQ, dtype=torch.float32)

    def found(f, x, *given):
        return grad(f(*x), x, given)
    high, naive = in_fp64(x), [t.detach().clone().requires_grad_() for t in x]
    have = found(lambda *x: fagen.attention(*x, causal=True, return_lse=True), x, given, of_lse)
    wanted = found(lambda *x: eager(*x, right=0), high, given.double(), of_lse.double())
    right(have, wanted, found(lambda *x: eager(*x, right=0), naive, given, of_lse.to(BF16)), BF16)
    alone = fagen.attention(*x, causal=True, return_lse=True)[1]
    assert not grad(alone, x, of_lse)[2].any()


NEW, ALL = ([300, 0, 13, 512, 128], [300, 40, 130, 512, 700]) if GPU else ([9, 0, 3, 20], [9, 7, 12, 20])


def starts(lengths):
    return torch.tensor([0, *lengths], device=DEVICE).cumsum(0).to(INT)


def of_each(q, k, v, **mask):
    """Eager attention of packed sequences, one by one."""
    parts = zip(q.split(NEW), k.split(ALL), v.split(ALL))
    return torch.cat([eager(q[None], k[None], v[None], **mask)[0][0] for q, k, v in parts if len(q)])


def packed(d, dtype=BF16):
    shapes = (sum(NEW), 8, d), (sum(ALL), 2, d), (sum(ALL), 2, d)
    return [normal(5 + i, *s, dtype=dtype).requires_grad_() for i, s in enumerate(shapes)], normal(8, sum(NEW), 8, d, dtype=dtype)


BOUNDS = starts(NEW), starts(ALL), max(NEW), max(ALL)
WORDS = dict(zip(("cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k"), BOUNDS))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [BF16, FP16], ids=["bf16", "fp16"])
@pytest.mark.parametrize("d", [64, 128])
def test_packed_sequences(d, dtype, causal):
    x, given = packed(d, dtype)
    mask = {"right": 0} if causal else {}
    held(lambda *x: fagen.varlen_attention(*x, causal=causal, **WORDS), lambda *x: of_each(*x, **mask), x, given)
    ours = grad(fagen.varlen_attention(*x, causal=causal, deterministic=True, **WORDS), x, given)
    theirs = grad(flash_attn_varlen_func(*x, *BOUNDS, causal=causal, deterministic=True), x, given)
    assert all(a.equal(b) for a, b in zip(ours, theirs))


def test_padded_sequences():
    """Rows past a length have gradients of 0, whatever out and its gradient hold there."""
    x, given = inputs()
    rows, keys = SQ // 3, SK // 2
    lengths = {"seqlens_q": torch.tensor([SQ, rows], dtype=INT, device=DEVICE),
               "seqlens_k": torch.tensor([SK, keys], dtype=INT, device=DEVICE)}
    found = grad(fagen.varlen_attention(*x, causal=True, **lengths), x, given.index_fill(1, torch.arange(rows, SQ, device=DEVICE), 0))
    q, k, v = (t.detach()[1:] for t in x)
    short = [t.requires_grad_() for t in (q[:, :rows].clone(), k[:, :keys].clone(), v[:, :keys].clone())]
    high = in_fp64(short)
    part = given[1:, :rows]
    right([found[0][1:, :rows], found[1][1:, :keys], found[2][1:, :keys]], grad(eager(*high, right=0)[0], high, part.double()),
          grad(eager(*short, right=0)[0], short, part), BF16)
    assert not found[0][1, rows:].any() and not found[1][1, keys:].any() and not found[2][1, keys:].any()


@pytest.mark.parametrize("d", [64, 128])
def test_names_of_flash_attn(d):
    x, given = inputs(d=d, hq=4, hkv=4, sk=SQ)
    wanted = grad(fagen.attention(*x, causal=True, deterministic=True), x, given)
    held(lambda *x: flash_attn_func(*x, causal=True), lambda *x: eager(*x, right=0)[0], x, given)
    assert all(a.equal(b) for a, b in zip(grad(flash_attn_func(*x, causal=True, deterministic=True), x, given), wanted))
    qkv = torch.stack([t.detach() for t in x], 2).requires_grad_()
    found, = grad(flash_attn_qkvpacked_func(qkv, causal=True, deterministic=True), qkv, given)
    assert all(a.equal(b) for a, b in zip(found.unbind(2), wanted))
    q, kv = qkv.detach()[:, :, 0].requires_grad_(), qkv.detach()[:, :, 1:].requires_grad_()
    found = grad(flash_attn_kvpacked_func(q, kv, causal=True, deterministic=True), (q, kv), given)
    assert found[0].equal(wanted[0]) and all(a.equal(b) for a, b in zip(found[1].unbind(2), wanted[1:]))


def by_c(q, k, v, out, lse, given, of_lse, flags):
    """The gradients by fa_launch() on the current stream, in the context that the package has. All tensors are packed."""
    made = [torch.full_like(t, torch.nan) for t in (q, k, v)]
    args = _abi.Args(size=C.sizeof(_abi.Args), op=_abi.FA_BACKWARD, dtype=_abi.FA_BF16, d=q.shape[3], dv=v.shape[3], b=q.shape[0],
                     hq=q.shape[2], hkv=k.shape[2], sq=q.shape[1], sk=k.shape[1], mask=_abi.FA_MASK_CAUSAL, flags=flags, lse=lse.data_ptr(),
                     grad_lse=None if of_lse is None else of_lse.data_ptr())
    for name, x in zip(("q", "k", "v", "o", "grad_o", "grad_q", "grad_k", "grad_v"), (q, k, v, out, given, *made)):
        setattr(args, name, _abi.Tensor(x.data_ptr(), *x.stride()[:3]))
    context, need = fagen.context(f"cuda:{q.get_device()}"), C.c_size_t()
    stream = torch.cuda.current_stream().cuda_stream
    _library.check(_library.lib.fa_workspace_size(context.handle, C.addressof(args), C.byref(need)))
    space = torch.full((max(need.value, 1),), 255, dtype=torch.uint8, device="cuda")
    if need.value:
        args.workspace, args.workspace_size = space.data_ptr(), need.value
        _library.check(_library.lib.fa_workspace_init(context.handle, space.data_ptr(), need.value, stream))
    _library.check(_library.lib.fa_launch(context.handle, C.addressof(args), stream))
    torch.cuda.synchronize()
    return made


@gpu
@pytest.mark.parametrize("with_lse", [False, True])
@pytest.mark.parametrize("d, dv", [(64, 64), (128, 128), (128, 64), (256, 256)])
def test_bits_are_those_of_the_c_library(d, dv, with_lse):
    x, given = inputs(d=d, dv=dv)
    of_lse = normal(9, 2, 8, SQ, dtype=torch.float32) if with_lse else None
    out, lse = fagen.attention(*x, causal=True, return_lse=True, deterministic=True)
    found = grad((out, lse), x, (given, of_lse)) if with_lse else grad(out, x, given)
    q, k, v = (t.detach() for t in x)
    wanted = by_c(q, k, v, out.detach(), lse.detach(), given, of_lse, _abi.FA_DETERMINISTIC)
    assert all(a.equal(b) for a, b in zip(found, wanted))
    asked = fagen.attention_backward(given, q, k, v, out.detach(), lse.detach(), grad_lse=of_lse, causal=True, deterministic=True)
    assert all(a.equal(b) for a, b in zip(asked, wanted))


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("name", ["dense", "packed"])
def test_deterministic_gradients_have_the_same_bits_each_time(name, d):
    x, given = inputs(d=d) if name == "dense" else packed(d)
    call = fagen.attention if name == "dense" else fagen.varlen_attention
    out = call(*x, causal=True, deterministic=True, **({} if name == "dense" else WORDS))
    wanted, differ = grad(out, x, given, retain_graph=True), torch.zeros((), dtype=torch.int64, device=DEVICE)
    for _ in range(ROUNDS):
        for a, b in zip(grad(out, x, given, retain_graph=True), wanted):
            differ += (a.view(torch.int16) != b.view(torch.int16)).any()
    assert not differ.item() and all(g.isfinite().all() for g in wanted)


LENGTHS = torch.tensor([SK - 17, SK], dtype=INT, device=DEVICE)


def block(q, k, v):
    """Two calls of attention, the one of what the other gives, and an LSE that counts. Gradients are deterministic."""
    out, lse = fagen.attention(q * 2, k, v, causal=True, return_lse=True, deterministic=True)
    return fagen.varlen_attention(out, k, v, seqlens_k=LENGTHS, deterministic=True), lse


def gradients(call, x, given, **options):
    """Of call(*x), which gives out, or out and LSE. The gradient of LSE is made of that of out."""
    out = call(*x)
    return grad(out, x, (given, given[..., 0].float().transpose(1, 2).contiguous()) if isinstance(out, tuple) else given, **options)


def same(found, wanted):
    return len(found) == len(wanted) and all(a.equal(b) for a, b in zip(found, wanted))


def test_saved_tensors_are_used_twice():
    x, given = inputs()
    out = block(*x)
    first = gradients(lambda *_: out, x, given, retain_graph=True)
    torch.empty(1 << 24, dtype=torch.uint8, device=DEVICE).fill_(255)  # what the first pass has freed, if it freed anything
    assert same(gradients(lambda *_: out, x, given), first)
    with pytest.raises(RuntimeError, match="second time"):
        gradients(lambda *_: out, x, given)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    (x, given), (y, _) = inputs(), inputs()
    wanted = gradients(block, x, given)
    out, lse = checkpoint(block, *y, use_reentrant=reentrant)
    torch.autograd.backward([out, lse], [given, given[..., 0].float().transpose(1, 2).contiguous()])
    assert same([t.grad for t in y], wanted)


COMPILED = {
    "attention": lambda q, k, v: fagen.attention(q, k, v, causal=True, deterministic=True) * 2,
    "block": block,
    "flash_attn": lambda q, k, v: flash_attn_func(q, k, v, causal=True, deterministic=True) * 2,
    "checkpoint": lambda q, k, v: checkpoint(block, q, k, v, use_reentrant=False),
}


@gpu
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("name", COMPILED)
def test_compile(name, mode):
    torch._dynamo.reset()
    f = torch.compile(COMPILED[name], fullgraph=True, mode=mode)
    for seed in range(4):
        x, given = inputs(seed)
        wanted = gradients(COMPILED[name], x, given)
        torch.compiler.cudagraph_mark_step_begin()
        assert same([g.clone() for g in gradients(f, x, given)], wanted)


@pytest.mark.parametrize("name", COMPILED)
def test_compile_without_code(name):
    """What is traced, without a code generator."""
    torch._dynamo.reset()
    f = torch.compile(COMPILED[name], fullgraph=True, backend="aot_eager")
    x, given = inputs()
    assert same(gradients(f, x, given), gradients(COMPILED[name], x, given))


OPTIONS = "causal;deterministic"


def test_operators_keep_the_rules_of_pytorch():
    x, given = inputs(b=1, hq=2, hkv=1, d=64)
    torch.library.opcheck(torch.ops.fagen.attention_lse.default, (*x, 0.0, (), OPTIONS))
    out, lse = (t.detach() for t in fagen.attention(*x, causal=True, return_lse=True))
    torch.library.opcheck(torch.ops.fagen.attention_backward.default, (given, *(t.detach() for t in x), out, lse, None, 0.0, (), OPTIONS))


def warm(call):
    """Calls on a side stream, as a capture asks for."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()


GRAPHS = {
    "attention": lambda q, k, v: fagen.attention(q, k, v, causal=True, deterministic=True),
    "window": lambda q, k, v: flash_attn_func(q, k, v, window_size=(90, 20), deterministic=True),
    "block": block,
}


@gpu
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_of_both_passes(name, d):
    """Replayed on other inputs each time, beside eager calls whose workspaces it must not share."""
    call, (x, given) = GRAPHS[name], inputs(d=d)
    warm(lambda: gradients(call, x, given))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = gradients(call, x, given)
    for seed in range(5):
        fresh, other = inputs(10 * seed, d=d)
        with torch.no_grad():
            for to, of in zip((*x, given), (*fresh, other)):
                to.copy_(of)
        for g in found:
            g.fill_(torch.nan)
        graph.replay()
        wanted = gradients(call, fresh, other)
        torch.cuda.synchronize()
        assert same(found, wanted)


@gpu
def test_a_graphed_module():
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(normal(5, 128))

        def forward(self, q, k, v):
            return fagen.attention(q * self.weight, k, v, causal=True, deterministic=True)

    plain, graphed = Module(), Module()
    x, given = inputs()
    graphed = torch.cuda.make_graphed_callables(graphed, tuple(t.detach().clone().requires_grad_() for t in x))
    for seed in range(3):
        y, given = inputs(seed)
        wanted = grad(plain(*y), [*y, plain.weight], given)
        assert same(grad(graphed(*y), [*y, graphed.weight], given), wanted)


@gpu
def test_two_streams():
    """Passes in flight on both at once, each with a workspace of its own; the backward follows its forward's stream."""
    streams, work = [torch.cuda.Stream() for _ in range(2)], [inputs(10 * i) for i in range(2)]
    wanted = [gradients(block, x, given) for x, given in work]
    torch.cuda.synchronize()
    found = []
    for _ in range(50):
        for stream, (x, given) in zip(streams, work):
            with torch.cuda.stream(stream):
                found.append(gradients(block, x, given))
    torch.cuda.synchronize()
    assert all(same(f, wanted[i % 2]) for i, f in enumerate(found))


def test_eight_threads():
    work = [inputs(10 * i, sq=SQ - 8 * (i % 2)) for i in range(8 if GPU else 2)]
    wanted = [gradients(block, x, given) for x, given in work]
    wait()
    wrong = []

    def run(i):
        x, given = work[i]
        try:
            with torch.cuda.stream(torch.cuda.Stream() if i % 2 else torch.cuda.default_stream()) if GPU else torch.enable_grad():
                for _ in range(20 if GPU else 1):
                    found = gradients(block, x, given)
                    if GPU:
                        torch.cuda.current_stream().synchronize()
                    if not same(found, wanted[i]):
                        wrong.append(i)
        except Exception as e:
            wrong.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(work))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_autocast():
    x, given = inputs(dtype=torch.float32)
    low = [t.detach().to(BF16).requires_grad_() for t in x]
    with torch.autocast(DEVICE, dtype=BF16):
        out = fagen.attention(*x, causal=True, deterministic=True)
    found = grad(out, x, given.to(BF16))
    wanted = grad(fagen.attention(*low, causal=True, deterministic=True), low, given.to(BF16))
    assert out.dtype == BF16 and same(found, [g.float() for g in wanted])


@gpu
def test_a_thousand_passes_leak_nothing():
    x, given = inputs()
    y, other = packed(64)

    def both():
        return grad(fagen.attention(*x, causal=True), x, given), grad(fagen.varlen_attention(*y, causal=True, **WORDS), y, other)
    for _ in range(50):
        both()
    torch.cuda.synchronize()
    before, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
    for _ in range(1000):
        both()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before and free - torch.cuda.mem_get_info()[0] < 64 << 20
