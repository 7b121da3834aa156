"""A cache of few bits below transformers: small random models say nearly what they say with eager attention and 16 bits."""
from __future__ import annotations

import pytest

import fagen

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from fagen.integrations import transformers as ours  # noqa: E402
from fagen.integrations import transformers_cache as of_cache  # noqa: E402
from fagen.integrations.transformers_cache import FewBitsCache  # noqa: E402
from test_transformers import FAMILIES, IDS, SMALL, mask_of  # noqa: E402


def blocks():
    """Heads of 32, as formats with blocks need."""
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**SMALL, "hidden_size": 128}, num_hidden_layers=2))


def logits_of(model, side, cache=None):
    """Of a prompt, of three tokens after it and of one more, by a cache; of all at once without one."""
    mask, found = mask_of(side), []
    places = (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        if cache is None:
            return model(IDS, attention_mask=mask, position_ids=places).logits
        for a, b in ((0, 16), (16, 19), (19, 20)):
            found.append(model(IDS[:, a:b], attention_mask=mask[:, :b], position_ids=places[:, a:b], past_key_values=cache).logits)
    return torch.cat(found, 1)


# Of numbers of some size: logits whose keys and values are not those of the format are as far away as their spread.
ROWS = [("llama", "s8", None, None), ("llama", "e4m3", None, True), ("gemma3", "s8", None, None), ("gemma2", "e4m3", 40, None),
        ("gpt_oss", "s8", 40, None), (None, "q8_0", 40, None), (None, "q4_0", None, None), (None, "q5_1", None, None)]
MOST = {"s8": 0.04, "q8_0": 0.03, "e4m3": 0.25, "q5_1": 0.15, "q4_0": 0.4}


@pytest.mark.parametrize("family, kind, size, by_token", ROWS)
def test_logits(chip, family, kind, size, by_token):
    ours.register()
    torch.manual_seed(0)
    model = (FAMILIES[family] if family else blocks)().eval()
    for side in ("none", "left"):
        model.set_attn_implementation("eager")
        wanted, shown = logits_of(model, side), mask_of(side).bool()
        model.set_attn_implementation(ours.NAME)
        cache = FewBitsCache(model.config, kind, max_cache_len=size, token_scales=by_token)
        error = (logits_of(model, side, cache) - wanted).abs() * shown[..., None]
        assert error[:, :16].max() < 1e-4, "the prompt's own keys are what they are"
        assert 0 < error[:, 16:].max() < MOST[kind] * wanted.std()
        assert int(cache.get_seq_length()) == 20 and cache.layers[0].keys.dtype.itemsize == 1


def test_compiled(chip):
    """The program is cut where codes are made and read."""
    ours.register()
    torch.manual_seed(0)
    model = blocks().eval()
    model.set_attn_implementation(ours.NAME)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="aot_eager")
    assert logits_of(compiled, "left", FewBitsCache(model.config, max_cache_len=32)).equal(
        logits_of(model, "left", FewBitsCache(model.config, max_cache_len=32)))


@pytest.mark.parametrize("beams", [1, 3])
def test_generation_with_two_formats(chip, beams):
    """The first token is that of the prompt's own keys."""
    ours.register()
    torch.manual_seed(0)
    model = blocks().eval()
    model.set_attn_implementation("eager")
    options = dict(num_beams=beams, max_new_tokens=3, do_sample=False, attention_mask=mask_of("none"))
    with torch.no_grad():
        wanted = model(IDS).logits[:, -1].argmax(-1)
        model.set_attn_implementation(ours.NAME)
        cache = FewBitsCache(model.config, "q8_0", "q5_1")
        found = model.generate(IDS, past_key_values=cache, **options)
    assert found.shape == (2, 23) and cache.get_seq_length() == 22 and (beams > 1 or found[:, 20].equal(wanted))


def test_quantized_cache_of_transformers(chip):
    """It hands out 16 bits, or 32."""
    ours.register()
    torch.manual_seed(0)
    model = blocks().eval()
    try:
        caches = [transformers.QuantizedCache("fp8", model.config) for _ in range(2)]
    except (AttributeError, ImportError, TypeError, ValueError) as e:
        pytest.skip(f"transformers {transformers.__version__} has none that needs no other package: {e}")
    found = []
    for name, cache in zip(("eager", ours.NAME), caches):
        model.set_attn_implementation(name)
        found.append(logits_of(model, "left", cache))
    assert ((found[0] - found[1]).abs() * mask_of("left")[..., None]).max() < 0.1 * found[0].std()  # a code may be the next one


@pytest.mark.parametrize("size", [None, 30])
def test_a_layer(chip, size, monkeypatch):
    """It grows, takes sequences, forgets, and starts again; integers mean what was stored."""
    monkeypatch.setattr(of_cache, "STEP", 8)
    layer = of_cache.FewBitsLayer("s8", "s8", (True, True), size)
    k, v = (torch.randn(2, 3, 20, 16, generator=torch.Generator().manual_seed(s)) for s in (1, 2))

    def numbers(codes, scale):
        return codes.float() * scale.transpose(1, 2)[..., None]

    def holds(k, v, n):
        assert int(layer.get_seq_length()) == n
        for x, codes, scale in ((k, layer.keys, layer.scales[0]), (v, layer.values, layer.scales[1])):
            assert (numbers(codes, scale)[:, :, :n] - x[:, :, :n]).abs().max() < 0.02

    first = layer.update(k[:, :, :5], v[:, :, :5])
    assert first[0].equal(k[:, :, :5]) and first[1].equal(v[:, :, :5]) and not hasattr(first[0], of_cache.CODES)
    for a, b in ((5, 6), (6, 20)):
        assert layer.get_mask_sizes(b - a)[0] >= b
        room = layer.get_mask_sizes(b - a)[0]
        keys, values = layer.update(k[:, :, a:b], v[:, :, a:b])
        assert keys.shape[2] == values.shape[2] == room and getattr(keys, of_cache.CODES).width == 16
    holds(k, v, 20)
    address = layer.keys.data_ptr()
    layer.reorder_cache(torch.tensor([1, 0]))
    assert layer.keys.data_ptr() == address
    holds(k.flip(0), v.flip(0), 20)
    layer.batch_repeat_interleave(2)
    holds(k.flip(0).repeat_interleave(2, 0), v.flip(0).repeat_interleave(2, 0), 20)
    layer.batch_select_indices(torch.tensor([2, 0]))
    holds(k, v, 20)
    layer.crop(-4)
    holds(k, v, 16)
    layer.update(v[:, :, :1], k[:, :, :1])
    holds(torch.cat((k[:, :, :16], v[:, :, :1]), 2), torch.cat((v[:, :, :16], k[:, :, :1]), 2), 17)
    layer.reset()
    assert int(layer.get_seq_length()) == 0 and layer.update(v, k)[0].equal(v)
    holds(v, k, 20)


def test_what_is_refused(chip):
    config = transformers.LlamaConfig(**SMALL, num_hidden_layers=2)
    for words, options in (("key_format is 'q9'; accepted: e4m3", dict(key_format="q9")), ("max_cache_len is 0", dict(max_cache_len=0)),
                           ("token_scales is True beside q8_0 and s8", dict(value_format="s8", token_scales=True))):
        with pytest.raises(fagen.InvalidArgument, match=words):
            FewBitsCache(config, **options)
    with pytest.raises(fagen.InvalidArgument, match=r"k.shape\[-1\] is 16; accepted: a multiple of 32 with q8_0"):
        FewBitsCache(config).update(torch.zeros(1, 1, 1, 16), torch.zeros(1, 1, 1, 16), 0)
    with pytest.raises(fagen.InvalidArgument, match=r"key_states.shape\[2\] is 5; accepted: at most 4"):
        FewBitsCache(config, "s8", max_cache_len=4).update(torch.zeros(1, 1, 5, 16), torch.zeros(1, 1, 5, 16), 0)
