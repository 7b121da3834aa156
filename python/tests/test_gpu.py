"""On a GPU, with PyTorch: the bits of the C library, graphs, streams, threads, compile, and memory that stays where it is."""
from __future__ import annotations

import ctypes as C
import threading

import pytest

import fagen
from fagen import _abi, _library

torch = pytest.importorskip("torch")
import fagen.flash_attn  # noqa: E402

if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

HALF = torch.bfloat16


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device="cuda", dtype=HALF)


Q, K, V = normal(1, 2, 1000, 8, 128), normal(2, 2, 1000, 2, 128), normal(3, 2, 1000, 2, 128)
LENGTHS = torch.tensor([700, 1000], dtype=torch.int32, device="cuda")


def decode():
    return fagen.varlen_attention(Q[:, :1], K, V, seqlens_k=LENGTHS, causal=True)


def by_c(q, k, v):
    """(out, lse) of a causal call by fa_launch() on the current stream, in the context that the package has."""
    out = torch.empty_like(q)
    lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], device="cuda")
    args = _abi.Args(size=C.sizeof(_abi.Args), dtype=_abi.FA_BF16, d=q.shape[3], dv=v.shape[3], b=q.shape[0], hq=q.shape[2], hkv=k.shape[2],
                     sq=q.shape[1], sk=k.shape[1], mask=_abi.FA_MASK_CAUSAL, lse=lse.data_ptr())
    for name, x in (("q", q), ("k", k), ("v", v), ("o", out)):
        setattr(args, name, _abi.Tensor(x.data_ptr(), *x.stride()[:3]))
    context, need, stream = fagen.context(f"cuda:{q.get_device()}"), C.c_size_t(), torch.cuda.current_stream().cuda_stream
    _library.check(_library.lib.fa_workspace_size(context.handle, C.addressof(args), C.byref(need)))
    space = torch.zeros(max(need.value, 1), dtype=torch.uint8, device="cuda")
    if need.value:
        args.workspace, args.workspace_size = space.data_ptr(), need.value
    _library.check(_library.lib.fa_launch(context.handle, C.addressof(args), stream))
    torch.cuda.synchronize()
    return out, lse


def test_bits_are_those_of_the_c_library():
    out, lse = fagen.attention(Q, K, V, causal=True, return_lse=True)
    wanted, sums = by_c(Q, K, V)
    assert out.equal(wanted) and lse.equal(sums)
    exact = torch.nn.functional.scaled_dot_product_attention(
        *(x.double().transpose(1, 2) for x in (Q, K.repeat_interleave(4, 2), V.repeat_interleave(4, 2))), is_causal=True).transpose(1, 2)
    assert (out.double() - exact).abs().max() < 2e-2


@pytest.mark.parametrize("call", [lambda: fagen.attention(Q, K, V, causal=True), decode], ids=["dense", "lengths"])
def test_a_graph_gives_the_same_bits(call):
    wanted = call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()
        again = call()
    for _ in range(3):
        out.zero_()
        again.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert out.equal(wanted) and again.equal(wanted)


def test_two_streams_and_eight_threads():
    wanted, few = fagen.attention(Q, K, V, causal=True), decode()
    torch.cuda.synchronize()
    wrong = []

    def work(i):
        with torch.cuda.stream(torch.cuda.Stream()) if i % 2 else torch.cuda.stream(torch.cuda.default_stream()):
            for _ in range(20):
                a, b = fagen.attention(Q, K, V, causal=True), decode()
                torch.cuda.current_stream().synchronize()
                if not (a.equal(wanted) and b.equal(few)):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# Functions of tensors alone, each with its arguments.
FUNCTIONS = {
    "attention": (lambda q, k, v: fagen.attention(q, k, v, causal=True) * 2, (Q, K, V)),
    "with_lse": (lambda q, k, v: fagen.attention(q, k, v, return_lse=True)[1] * 2, (Q, K, V)),
    "varlen": (lambda q, k, v, n: fagen.varlen_attention(q, k, v, seqlens_k=n, causal=True) * 2, (Q[:, :1], K, V, LENGTHS)),
    "merge": (lambda p, s: fagen.merge(p, s) * 2, (torch.stack([Q, Q + 1]), torch.zeros(2, 2, 8, 1000, device="cuda"))),
    "flash_attn": (lambda q, k, v: fagen.flash_attn.flash_attn_func(q, k, v, causal=True) * 2, (Q, K, V)),
    "kvcache": (lambda q, k, v, n: fagen.flash_attn.flash_attn_with_kvcache(q, k, v, cache_seqlens=n, causal=True) * 2,
                (Q[:, :1], K, V, LENGTHS)),
}


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compile(name, mode):
    call, args = FUNCTIONS[name]
    torch._dynamo.reset()
    f = torch.compile(call, fullgraph=True, mode=mode)
    with torch.no_grad():
        for _ in range(4):
            assert f(*args).equal(call(*args))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_export(name):
    call, args = FUNCTIONS[name]

    class Module(torch.nn.Module):
        def forward(self, *x):
            return call(*x)

    with torch.no_grad():
        program = torch.export.export(Module(), args)
        assert program.module()(*args).equal(call(*args))


BATCHES = {  # (new tokens, all tokens) of sequences
    "prompts": [(700, 700), (13, 13), (1500, 1500), (128, 128)],
    "chunk": [(512, 9000)],
    "mixed": [(1, 900), (1, 5000), (512, 3000), (4, 70), (1, 1)],
}


@pytest.mark.parametrize("page", [0, 16, 64])
@pytest.mark.parametrize("d", [64, 128, 256])
@pytest.mark.parametrize("name", BATCHES)
def test_two_hundred_launches_give_the_same_bits(name, d, page):
    new, all_ = zip(*BATCHES[name])
    q, first = normal(1, sum(new), 8, d), torch.tensor([0, *new], device="cuda").cumsum(0).int()
    keys, options = sum(all_), {"cu_seqlens_q": first, "max_seqlen_q": max(new), "max_seqlen_k": max(all_), "causal": True}
    if page:
        counts = [-(-n // page) for n in all_]
        ids = torch.randperm(sum(counts), generator=torch.Generator().manual_seed(4)).int()
        table = torch.full((len(all_), max(counts)), -1, dtype=torch.int32)
        for i, row in enumerate(ids.split(counts)):
            table[i, :len(row)] = row
        k, v = (normal(seed, sum(counts), page, 2, d) for seed in (2, 3))
        options.update(page_table=table.cuda(), seqlens_k=torch.tensor(all_, dtype=torch.int32, device="cuda"))
    else:
        k, v = normal(2, keys, 2, d), normal(3, keys, 2, d)
        options["cu_seqlens_k"] = torch.tensor([0, *all_], device="cuda").cumsum(0).int()
    wanted = fagen.varlen_attention(q, k, v, **options)
    differ = torch.zeros((), dtype=torch.int64, device="cuda")
    for _ in range(200):
        differ += (fagen.varlen_attention(q, k, v, **options).view(torch.int16) != wanted.view(torch.int16)).any()
    assert not differ.item() and wanted.isfinite().all()


def merged_exactly(parts, lses):
    """(out, lse) in fp64, of parts [n, b, s, h, d]."""
    lse = torch.logsumexp(lses.double(), 0)
    weights = (lses.double() - lse).exp().nan_to_num(0)
    return (parts.double() * weights.transpose(2, 3)[..., None]).sum(0), lse


@pytest.mark.parametrize("seed", range(40))
def test_merge(seed):
    r = torch.Generator().manual_seed(seed)
    n, b, s, h = (int(torch.randint(1, most, (1,), generator=r)) for most in (9, 4, 300, 9))
    d = 8 * int(torch.randint(1, 33, (1,), generator=r))
    kind = (torch.float32, torch.bfloat16, torch.float16)[seed % 3]
    parts = torch.randn(n, b, s, h, d, generator=r).to("cuda", kind)
    lses = torch.randn(n, b, h, s, generator=r).mul(3).cuda()
    lses[torch.rand(n, b, h, s, generator=r).cuda() < 0.2] = -torch.inf
    out, lse = fagen.merge(parts, lses, return_lse=True)
    wanted, sums = merged_exactly(parts, lses)
    seen = lse > -torch.inf
    assert lse[seen].double().sub(sums[seen]).abs().max() < 1e-5 and (sums[~seen] == -torch.inf).all()
    assert (out.double() - wanted).abs().max() < {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}[kind]
    again = [fagen.merge(parts, lses) for _ in range(20)]
    assert all(x.equal(out) for x in again)


def test_ten_thousand_calls_leak_nothing():
    for _ in range(100):
        fagen.attention(Q, K, V, causal=True)
        decode()
    torch.cuda.synchronize()
    before, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
    for _ in range(5000):
        fagen.attention(Q, K, V, causal=True)
        decode()
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before and free - torch.cuda.mem_get_info()[0] < 64 << 20


def test_another_device_and_wrong_devices():
    with pytest.raises(fagen.InvalidArgument, match="k.device is cpu; accepted: cuda:0"):
        fagen.attention(Q, K.cpu(), V)
    with pytest.raises(fagen.InvalidArgument, match="sim:sm_90a"):
        fagen.attention(Q, K, V, device="sim:sm_90a")
    if torch.cuda.device_count() > 1:
        q, k, v = (x.to("cuda:1") for x in (Q, K, V))
        assert fagen.attention(q, k, v, causal=True).cpu().equal(fagen.attention(Q, K, V, causal=True).cpu())
