"""New keys into caches on a GPU, with PyTorch: against fp64, in graphs that count their own keys, and below transformers.

FAGEN_TEST_REHEARSE=1 runs what needs no GPU on the simulator, to show that the tests themselves are right."""
from __future__ import annotations

import os

import pytest
from conftest import CHIP

import fagen

torch = pytest.importorskip("torch")
from fagen.flash_attn import flash_attn_with_kvcache  # noqa: E402

GPU = torch.cuda.is_available()
if not GPU and not os.environ.get("FAGEN_TEST_REHEARSE"):
    pytest.skip("no GPU", allow_module_level=True)

DEVICE = "cuda" if GPU else "cpu"
B, HQ, HKV, D, ROOM = (5, 16, 4, 128, 1024) if GPU else (2, 4, 2, 64, 32)
BLOCKS = {"q8_0": (32, 34), "q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "iq4_nl": (32, 18), "nvfp4": (64, 36)}
OWN = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "s8": torch.int8}
# What O may be off by, of keys and values of N(0, 1) beside some sixteenth of a key.
MOST = {"e4m3": 0.1, "e5m2": 0.2, "s8": 0.03, "q8_0": 0.03, "q4_0": 0.35, "q4_1": 0.3, "q5_0": 0.2, "q5_1": 0.2, "iq4_nl": 0.3,
        "nvfp4": 0.4}
gpu = pytest.mark.skipif(not GPU, reason="no GPU")


@pytest.fixture(autouse=True)
def where(no_device_named, monkeypatch):
    if not GPU:
        monkeypatch.setenv("FAGEN_DEVICE", CHIP)


def normal(seed, *shape, dtype=torch.float16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device=DEVICE, dtype=dtype)


ANGLES = torch.arange(ROOM)[:, None] * 10000.0 ** (-torch.arange(0, D // 2, 2) / (D // 2))  # half of a head
COS, SIN = (f(ANGLES).to(DEVICE) for f in (torch.cos, torch.sin))
BEFORE = torch.randint(0, ROOM - 8, (B,), generator=torch.Generator().manual_seed(3)).tolist()


def turned(x, at, interleaved):
    """Rows of one sequence, [s, h, d], in fp64."""
    n = ANGLES.shape[1]
    x, (a, b) = x.double(), (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if interleaved else (slice(0, n), slice(n, 2 * n))
    c, s, out = COS.double()[at][:, None], SIN.double()[at][:, None], x.clone()
    out[..., a], out[..., b] = x[..., a] * c - x[..., b] * s, x[..., a] * s + x[..., b] * c
    return out


def attended(q, k, v):
    """[s, h, d] of one sequence in fp64, causal."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    s = torch.einsum("ihd,jhd->hij", q, k) * q.shape[-1] ** -0.5
    seen = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool, device=q.device).tril(k.shape[0] - q.shape[0])
    return torch.einsum("hij,jhd->ihd", torch.softmax(s.masked_fill(~seen, -torch.inf), -1), v)


@pytest.mark.parametrize("pages", [False, True], ids=["rows", "pages"])
@pytest.mark.parametrize("interleaved", [True, False], ids=["pairs", "halves"])
@pytest.mark.parametrize("dtype, new", [(torch.float16, 1), (torch.bfloat16, 4)], ids=["fp16", "bf16"])
def test_against_fp64(dtype, new, interleaved, pages):
    q, k_new, v_new = (normal(s, B, new, h, D, dtype=dtype) for s, h in ((1, HQ), (2, HKV), (3, HKV)))
    k, v = (normal(s, B, ROOM, HKV, D, dtype=dtype) for s in (4, 5))
    wide, options = [x.double().clone() for x in (k, v)], {}
    for i, n in enumerate(BEFORE):
        wide[0][i, n:n + new] = turned(k_new[i], slice(n, n + new), interleaved).to(dtype).double()
        wide[1][i, n:n + new] = v_new[i].double()
    if pages:
        order = torch.randperm(B * ROOM // 16, generator=torch.Generator().manual_seed(6)).to(DEVICE)
        k, v = (torch.empty_like(x).view(-1, 16, HKV, D).index_copy_(0, order, x.view(-1, 16, HKV, D)) for x in (k, v))
        options["block_table"] = order.int().view(B, -1)
    out = flash_attn_with_kvcache(q, k, v, k_new, v_new, COS, SIN, torch.tensor(BEFORE, dtype=torch.int32, device=DEVICE), causal=True,
                                  rotary_interleaved=interleaved, **options)
    if pages:
        k, v = (x[order].view(B, ROOM, HKV, D) for x in (k, v))
    ulp = 2.0 ** (-10 if dtype == torch.float16 else -7)
    assert (k.double() - wide[0]).abs().max() <= 4 * ulp and v.double().equal(wide[1])
    for i, n in enumerate(BEFORE):
        at = turned(q[i], slice(n, n + new), interleaved).to(dtype).double()
        assert (out[i].double() - attended(at, wide[0][i, :n + new], wide[1][i, :n + new])).abs().max() < 4 * ulp


def caches(kind):
    if kind in OWN:
        return [torch.zeros(B, ROOM, HKV, D, dtype=torch.uint8, device=DEVICE).view(OWN[kind]) for _ in range(2)], {}
    block, size = BLOCKS[kind]
    return [torch.zeros(B, ROOM, HKV, D // block * size, dtype=torch.uint8, device=DEVICE) for _ in range(2)], {"cache_format": kind}


@pytest.mark.parametrize("kind", [*OWN, *BLOCKS])
def test_few_bits(kind):
    """A prompt, then tokens one by one: near to what 16 bits give."""
    (k, v), options = caches(kind)
    if kind == "s8":
        options.update({name: torch.zeros(B, ROOM, HKV, device=DEVICE) for name in ("k_scale", "v_scale")})
    wide, rest = [normal(0, B, ROOM, HKV, D) * 0 for _ in range(2)], dict(causal=True, rotary_interleaved=False)
    n = 0
    for new in (ROOM // 2, 1, 3):
        q, k_new, v_new = (normal(10 * n + s, B, new, h, D) for s, h in ((1, HQ), (2, HKV), (3, HKV)))
        out, wanted = (flash_attn_with_kvcache(q, *x, k_new, v_new, COS, SIN, n, **rest, **o) for x, o in (((k, v), options), (wide, {})))
        n += new
        error = (out - wanted)[:, -1].abs().max()  # rows of few keys are off by the format alone
        assert 0 < error < MOST[kind], error


@gpu
@pytest.mark.parametrize("kind", [None, "e4m3", "s8", "q8_0", "q4_0"])
def test_a_graph_counts_its_own_keys(kind):
    (k, v), options = caches(kind) if kind else ([normal(0, B, ROOM, HKV, D) * 0 for _ in range(2)], {})
    if kind == "s8":
        options.update({name: torch.zeros(B, ROOM, HKV, device=DEVICE) for name in ("k_scale", "v_scale")})
    q, k_new, v_new = (normal(s, B, 1, h, D) for s, h in ((1, HQ), (2, HKV), (3, HKV)))
    lengths = torch.zeros(B, dtype=torch.int32, device=DEVICE)

    def step():
        out = flash_attn_with_kvcache(q, k, v, k_new, v_new, COS, SIN, lengths, causal=True, **options)
        lengths.add_(1)
        return out

    def start():
        lengths.copy_(torch.tensor([i * 37 % 100 for i in range(B)]))
        for x in (k, v):
            (x.view(torch.uint8) if x.dtype.itemsize == 1 else x).zero_()

    start()
    eager = []
    for i in range(4):
        q.copy_(normal(20 + i, B, 1, HQ, D)), k_new.copy_(normal(30 + i, B, 1, HKV, D)), v_new.copy_(normal(40 + i, B, 1, HKV, D))
        eager.append(step().clone())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step()
    start()
    for i in range(4):
        q.copy_(normal(20 + i, B, 1, HQ, D)), k_new.copy_(normal(30 + i, B, 1, HKV, D)), v_new.copy_(normal(40 + i, B, 1, HKV, D))
        graph.replay()
        assert out.equal(eager[i]), i


@gpu
@pytest.mark.parametrize("kind", [None, "e4m3", "s8", "q8_0", "q5_1"])
def test_transformers_in_a_graph(kind):
    """Decoding steps of a model, whose cache counts on the device."""
    transformers = pytest.importorskip("transformers")
    from fagen.integrations import transformers as ours
    from fagen.integrations.transformers_cache import FewBitsCache
    ours.register()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=100, hidden_size=256, intermediate_size=256, num_attention_heads=4, num_key_value_heads=2,
                                      num_hidden_layers=2, max_position_embeddings=512)
    model = transformers.LlamaForCausalLM(config).eval().to(DEVICE, torch.float16)
    model.set_attn_implementation(ours.NAME)
    ids = torch.randint(3, 100, (3, 40), generator=torch.Generator().manual_seed(1)).to(DEVICE)
    cache = FewBitsCache(config, kind, max_cache_len=64) if kind else transformers.StaticCache(config=config, max_cache_len=64)
    token, place = ids[:, 32:33].clone(), torch.full((3, 1), 32, device=DEVICE)
    with torch.no_grad():
        wide = model(ids).logits

        def step():
            return model(token, position_ids=place, past_key_values=cache).logits

        def prompt():
            cache.reset()
            model(ids[:, :32], past_key_values=cache)
            place.fill_(32)

        prompt()
        eager = []
        for i in range(32, 40):
            token.copy_(ids[:, i:i + 1]), place.fill_(i)
            eager.append(step().clone())
        assert (torch.cat(eager, 1) - wide[:, 32:]).abs().max() < 0.2 * wide.std()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = step()
        prompt()
        for i in range(32, 40):
            token.copy_(ids[:, i:i + 1]), place.fill_(i)
            graph.replay()
            assert out.equal(eager[i - 32]), i
