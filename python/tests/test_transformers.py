"""fagen as an attention implementation of transformers: small random models give what they give with eager attention."""
from __future__ import annotations

import pytest

import fagen

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
from fagen.integrations import transformers as ours  # noqa: E402

SMALL = dict(vocab_size=100, hidden_size=64, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2)
FAMILIES = {
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, num_hidden_layers=2)),
    "gemma3": lambda: transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(
        **SMALL, num_hidden_layers=3, head_dim=16, sliding_window=8,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"])),
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=100, n_positions=128, n_embd=64, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2, pad_token_id=0)),
}
IDS = torch.randint(3, 100, (2, 20), generator=torch.Generator().manual_seed(1))
PADDING = {"none": (slice(0, 0), slice(0, 0)), "left": (0, slice(0, 5)), "right": (0, slice(-5, None))}


def mask_of(side):
    mask = torch.ones_like(IDS)
    mask[PADDING[side]] = 0
    return mask


@pytest.fixture(params=list(FAMILIES))
def model(request):
    ours.register()
    torch.manual_seed(0)
    return FAMILIES[request.param]().eval()


def each(model, call):
    """What `call` gives with eager attention, and with fagen's."""
    out = []
    for name in ("eager", ours.NAME):
        model.set_attn_implementation(name)
        with torch.no_grad():
            out.append(call())
    return out


@pytest.mark.parametrize("side", list(PADDING))
def test_logits(chip, model, side):
    mask = mask_of(side)
    places = (mask.cumsum(-1) - 1).clamp(min=0)
    wanted, found = each(model, lambda: model(IDS, attention_mask=mask, position_ids=places).logits)
    assert not found.isnan().any()
    assert (wanted - found)[mask.bool()].abs().max() < 1e-5


@pytest.mark.parametrize("cache", [None, "static"])
@pytest.mark.parametrize("side", ["none", "left"])
def test_generation(chip, model, side, cache):
    options = dict(max_new_tokens=5, do_sample=False, output_logits=True, return_dict_in_generate=True, attention_mask=mask_of(side))
    if cache:
        options.update(cache_implementation=cache, disable_compile=True)
    wanted, found = each(model, lambda: model.generate(IDS, **options))
    assert wanted.sequences.equal(found.sequences)
    for a, b in zip(wanted.logits, found.logits):
        assert (a - b).abs().max() < 1e-5


@pytest.mark.parametrize("side", list(PADDING))
def test_training(chip, side):
    """Gradients of all parameters, of a loss over the rows that are no padding."""
    ours.register()
    torch.manual_seed(0)
    model, mask, found = FAMILIES["llama"]().train(), mask_of(side), []
    for name in ("eager", ours.NAME):
        model.set_attn_implementation(name)
        model.zero_grad()
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        model(IDS, attention_mask=mask, position_ids=places, use_cache=False).logits[mask.bool()].square().sum().backward()
        found.append([p.grad.clone() for p in model.parameters()])
    for wanted, have in zip(*found):
        assert (wanted - have).abs().max() <= 1e-4 * max(1, wanted.abs().max())


def test_what_is_not_computed_says_so(chip):
    ours.register()
    gemma = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**SMALL, num_hidden_layers=1, head_dim=16)).eval()
    gemma.set_attn_implementation(ours.NAME)
    with torch.no_grad(), pytest.raises(fagen.Unsupported, match="softcap is 50.0; accepted by this version: None"):
        gemma(IDS)
    llama = FAMILIES["llama"]()
    llama.set_attn_implementation(ours.NAME)
    llama.eval()
    holes = torch.ones_like(IDS)
    holes[0, 3:5] = 0
    with torch.no_grad(), pytest.raises(fagen.Unsupported, match="attention_mask has holes"):
        llama(IDS, attention_mask=holes)
    with torch.no_grad(), pytest.raises(fagen.FagenError, match="accepted"):
        llama(IDS, position_ids=torch.cat([torch.arange(10), torch.arange(10)])[None].expand(2, -1), use_cache=False)  # two in a row
