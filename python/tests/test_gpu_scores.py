"""Score programs of Python's functions and of keywords on a GPU, with PyTorch: against fp64, compiled, in graphs, beside PyTorch's own.

FAGEN_TEST_REHEARSE=1 runs what needs no GPU at small sizes on the simulator, to show that the tests themselves are right."""
from __future__ import annotations

import math
import os

import pytest
from conftest import CHIP

import fagen

torch = pytest.importorskip("torch")
from fagen import flex  # noqa: E402
from fagen._mods import compare  # noqa: E402

GPU = torch.cuda.is_available()
if not GPU and not os.environ.get("FAGEN_TEST_REHEARSE"):
    pytest.skip("no GPU", allow_module_level=True)

DEVICE = "cuda" if GPU else "cpu"
B, HQ, HKV, SQ, SK = (2, 8, 2, 500, 700) if GPU else (2, 4, 2, 33, 48)
gpu = pytest.mark.skipif(not GPU, reason="no GPU")


@pytest.fixture(autouse=True)
def where(no_device_named, monkeypatch):
    if not GPU:
        monkeypatch.setenv("FAGEN_DEVICE", CHIP)


def normal(seed, *shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device=DEVICE, dtype=dtype)


def inputs(d, dtype):
    return [normal(i, B, h, s, d, dtype=dtype) for i, (h, s) in enumerate(((HQ, SQ), (HKV, SK), (HKV, SK)), 1)]


SLOPES, BIAS, TABLE = normal(4, HQ).abs(), normal(5, HQ, SQ, SK, dtype=torch.bfloat16), normal(6, HQ, SQ + SK - 1)
DOCUMENT, ENDS = torch.arange(SK, device=DEVICE) // 97, torch.tensor([SK // 3, SK // 2], device=DEVICE)
SHOWN = normal(7, B, 1, SQ, SK) > -0.5
CAP, WIDTH = 3.0, 60


def causal(b, h, q, k):
    return q >= k


FUNCTIONS = {
    "softcap of documents": (lambda score, b, h, q, k: CAP * torch.tanh(score / CAP),
                             lambda b, h, q, k: causal(b, h, q, k) & (DOCUMENT[q] == DOCUMENT[k])),
    "alibi in a window": (lambda score, b, h, q, k: score + SLOPES[h] * (k - q), lambda b, h, q, k: (q - k).abs() <= WIDTH),
    "a table and a prefix": (lambda score, b, h, q, k: score + TABLE[h][k - q + SQ - 1],
                             lambda b, h, q, k: causal(b, h, q, k) | (k < ENDS[b])),
    "a bias": (lambda score, b, h, q, k: score + BIAS[h, q, k], None),
    "truths": (None, lambda b, h, q, k: SHOWN[b, 0, q, k]),
    "chunks": (None, lambda b, h, q, k: causal(b, h, q, k) & (q // 128 == k // 128)),
}


def exact(q, k, v, score, mask):
    """(out, lse) [b, h, ...] in fp64, by the functions themselves at each pair."""
    grid = [x.flatten() for x in torch.meshgrid(*(torch.arange(n, device=q.device) for n in (B, HQ, SQ, SK)), indexing="ij")]
    q, k, v = (x.double() for x in (q, k, v))
    k, v = (x.repeat_interleave(HQ // HKV, 1) for x in (k, v))
    s = q @ k.mT * q.shape[-1] ** -0.5
    if score is not None:
        s = compare.values(score, [s.flatten(), *grid])[0].view(s.shape).double()
    if mask is not None:
        s = torch.where(compare.values(mask, grid)[0].view(s.shape), s, -math.inf)
    lse = torch.logsumexp(s, -1)
    return torch.softmax(s, -1).nan_to_num() @ v, lse


def near(have, want, most):
    have, want = have.double(), want.double()
    error = torch.where(have == want, 0, (have - want).abs())  # infinities
    assert have.shape == want.shape and error.max() <= most, error.max()


@pytest.mark.parametrize("name", list(FUNCTIONS))
@pytest.mark.parametrize("d, dtype, most", [(64, torch.bfloat16, 2e-2), (128, torch.float16, 4e-3), (64, torch.float32, 5e-5)],
                         ids=["64, bf16", "128, fp16", "64, fp32"])
def test_functions(name, d, dtype, most):
    x = inputs(d, dtype)
    score, mask = FUNCTIONS[name]
    out, lse = flex.flex_attention(*x, score_mod=score, mask_mod=mask, enable_gqa=True, return_lse=True)
    wanted = exact(*x, score, mask)
    near(out, wanted[0], most)
    # fagen.h: 2^-23 of |LSE| by exponents of base 2, beside what fp32 loses of the scores themselves, 2^-24 of the largest.
    largest = wanted[1][wanted[1].isfinite()].abs().max().item()
    near(lse, wanted[1], 1e-3 if dtype != torch.float32 else 2e-6 + 1.5 * 2 ** -23 * largest)


def test_keywords():
    q, k, v = (x.transpose(1, 2) for x in inputs(128, torch.bfloat16))
    own = torch.nn.functional.scaled_dot_product_attention
    wide = [x.transpose(1, 2).float() for x in (q, k, v)]
    for mask in (SHOWN, SHOWN[:, :, :1], BIAS, BIAS.float(), torch.where(SHOWN, 0.0, -math.inf)):
        theirs = mask if mask.dtype == torch.bool else mask.float()
        near(fagen.attention(q, k, v, attn_mask=mask).transpose(1, 2), own(*wide, theirs, enable_gqa=True), 2e-2)
        near(fagen.sdpa.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), mask, enable_gqa=True),
             own(*wide, theirs, enable_gqa=True), 2e-2)


@pytest.mark.parametrize("backend", ["inductor", "aot_eager"] if GPU else ["aot_eager"])
def test_compiled(backend):
    q, k, v = (x.transpose(1, 2) for x in inputs(64, torch.bfloat16))
    program = flex.program(score_mod=FUNCTIONS["alibi in a window"][0], mask_mod=FUNCTIONS["alibi in a window"][1], B=B, H=HQ, Q_LEN=SQ,
                           KV_LEN=SK, device=DEVICE)

    def call(q, k, v, cap):
        out = fagen.attention(q * 2, k, v, softcap=cap, attn_mask=SHOWN, sinks=SLOPES) + 1
        return fagen.attention(out, k, v, score=program)
    torch._dynamo.reset()
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend=backend)
    for cap in (0.5, 2.0, 3.0):
        near(compiled(q, k, v, cap), call(q, k, v, cap), 1e-2 if backend == "inductor" else 0)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 1


@gpu
def test_graphs_read_operands_in_place():
    q, k, v = inputs(64, torch.bfloat16)
    slopes = SLOPES.clone()

    def call():
        return flex.flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + slopes[h] * (j - i), enable_gqa=True)
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()
    for factor in (1.0, 0.5, -2.0):
        slopes.copy_(SLOPES * factor)
        graph.replay()
        torch.cuda.synchronize()
        assert out.equal(call())


@gpu
@pytest.mark.parametrize("name", ["softcap of documents", "alibi in a window", "a bias", "chunks"])
def test_beside_pytorch(name):
    theirs = pytest.importorskip("torch.nn.attention.flex_attention")
    x = inputs(64, torch.bfloat16)
    score, mask = FUNCTIONS[name]
    made = None if mask is None else theirs.create_block_mask(mask, B, HQ, SQ, SK, device=DEVICE)
    wanted = torch.compile(theirs.flex_attention)(*x, score_mod=score, block_mask=made, enable_gqa=True)
    near(flex.flex_attention(*x, score_mod=score, block_mask=made, enable_gqa=True), wanted, 4e-2)
