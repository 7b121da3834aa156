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
    "gemma2": lambda: transformers.Gemma2ForCausalLM(transformers.Gemma2Config(
        **SMALL, num_hidden_layers=2, head_dim=16, sliding_window=8, attn_logit_softcapping=2.0, query_pre_attn_scalar=2)),
    "gpt_oss": lambda: transformers.GptOssForCausalLM(transformers.GptOssConfig(
        **SMALL, num_hidden_layers=2, head_dim=16, sliding_window=8, num_local_experts=2, num_experts_per_tok=1,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0})),
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
    found = FAMILIES[request.param]().eval()
    for name, x in found.named_parameters():
        if name.endswith("sinks"):
            torch.nn.init.normal_(x)
    return found


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


def t5():
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=100, d_model=64, d_kv=16, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0)).eval()
    for x in model.modules():
        if getattr(x, "has_relative_attention_bias", False):
            torch.nn.init.normal_(x.relative_attention_bias.weight)
    return model


@pytest.mark.parametrize("sides", [("none", "none"), ("left", "right"), ("right", "left")])
def test_position_bias(chip, sides):
    """T5: a table of buckets is added to scores, in the encoder and in the decoder, prompts and with a cache."""
    ours.register()
    torch.manual_seed(0)
    model = t5()
    given, shown = (mask_of(side) for side in sides)
    wanted, found = each(model, lambda: model(IDS, attention_mask=given, decoder_input_ids=IDS, decoder_attention_mask=shown).logits)
    assert not found.isnan().any() and (wanted - found)[shown.bool()].abs().max() < 1e-4 * wanted.abs().max()
    options = dict(max_new_tokens=4, do_sample=False, output_logits=True, return_dict_in_generate=True, attention_mask=given)
    wanted, found = each(model, lambda: model.generate(IDS, **options))
    assert wanted.sequences.equal(found.sequences)
    assert all((a - b).abs().max() < 1e-4 * a.abs().max() for a, b in zip(wanted.logits, found.logits))


def own_mask():
    """Of each query and key: causal, and some keys are hidden."""
    return (torch.rand(2, 1, 20, 20, generator=torch.Generator().manual_seed(2)) > 0.3).tril() | torch.eye(20, dtype=torch.bool)


@pytest.mark.parametrize("family", ["llama", "gemma2", "gemma3", "gpt_oss"])
def test_masks_of_one_s_own(chip, family):
    ours.register()
    torch.manual_seed(0)
    model, mask = FAMILIES[family]().eval(), own_mask()
    added = torch.where(mask, 0.0, torch.finfo(torch.float32).min)
    with torch.no_grad():
        model.set_attn_implementation("eager")
        wanted = model(IDS, attention_mask=added).logits
        model.set_attn_implementation(ours.NAME)
        for given in (mask, added, mask.expand(2, 4, 20, 20), added[:, :1]):
            assert (model(IDS, attention_mask=given).logits - wanted).abs().max() < 1e-5
    holes = torch.ones_like(IDS)
    holes[0, 3:5] = 0
    wanted, found = each(model, lambda: model(IDS, attention_mask=holes, use_cache=False).logits)
    assert (wanted - found)[holes.bool()].abs().max() < 1e-5


@pytest.mark.parametrize("family", ["gemma2", "gpt_oss"])
def test_compiled(chip, family):
    ours.register()
    torch.manual_seed(0)
    model = FAMILIES[family]().eval()
    model.set_attn_implementation(ours.NAME)
    for options in ({}, {"attention_mask": mask_of("left")}, {"attention_mask": own_mask()}):
        torch._dynamo.reset()
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        with torch.no_grad():
            found, wanted = (m(IDS, use_cache=False, **options).logits for m in (compiled, model))
        if options or family != "gemma2":
            assert found.equal(wanted)
        else:  # whether position_ids are of packed rows is not known to who traces: a matrix says it
            assert found.allclose(wanted, atol=1e-5)


def test_packed_rows_of_a_traced_program(chip):
    ours.register()
    torch.manual_seed(0)
    model = FAMILIES["llama"]().eval()
    with torch.no_grad():
        wanted = alone(model)
        model.set_attn_implementation(ours.NAME)
        torch._dynamo.reset()
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        assert (compiled(IDS[:1], position_ids=PLACES, use_cache=False).logits - wanted).abs().max() < 1e-5
        assert (compiled(IDS[:1], position_ids=torch.arange(20)[None], use_cache=False).logits - model(IDS[:1]).logits).abs().max() < 1e-5


def test_any_mask_function_is_a_matrix():
    from transformers import masking_utils as theirs
    chunked = theirs.chunked_causal_mask_function(6, torch.tensor([0, 2]))
    prefix = theirs.or_masks(theirs.causal_mask_function, lambda b, h, i, j: j < 3)
    for function, mask in ((chunked, None), (chunked, mask_of("left").bool()), (prefix, None)):
        options = dict(batch_size=2, q_length=20, kv_length=20, mask_function=function, attention_mask=mask)
        found = ours.attention_mask(**options)
        assert found.dtype == torch.bool and found.equal(theirs.sdpa_mask(**options, allow_is_causal_skip=False))


def gradients_of_each(model, call):
    """Of all parameters, with eager attention and with fagen's."""
    found = []
    for name in ("eager", ours.NAME):
        model.set_attn_implementation(name)
        model.zero_grad()
        call().sin().sum().backward()
        found.append({of: w.grad.clone() for of, w in model.named_parameters() if w.grad is not None})
    assert found[0] and found[0].keys() == found[1].keys()
    for of, its in found[0].items():
        assert (its - found[1][of]).abs().max() <= 1e-4 * its.abs().max() + 1e-6, of
    return found[0]


@pytest.mark.parametrize("model", ["gemma2", "gemma3", "gpt_oss"], indirect=True)
def test_gradients_are_those_of_eager(chip, model):
    """Beside softcap, and of sinks."""
    found = gradients_of_each(model, lambda: model(IDS, use_cache=False).logits)
    sinks = [of for of in found if of.endswith("sinks")]
    assert bool(sinks) == (model.config.model_type == "gpt_oss") and all(found[of].abs().max() > 0 for of in sinks)


def test_gradients_of_position_bias(chip):
    """T5's table of buckets, through what is added to scores."""
    ours.register()
    torch.manual_seed(0)
    model = t5()
    found = gradients_of_each(model, lambda: model(IDS, decoder_input_ids=IDS, use_cache=False).logits)
    assert sum(of.endswith("relative_attention_bias.weight") and x.abs().max() > 0 for of, x in found.items()) == 2


def test_what_is_not_computed_says_so(chip):
    ours.register()
    gemma = FAMILIES["gemma2"]()
    gemma.set_attn_implementation(ours.NAME)
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(fagen.Unsupported, match="q.requires_grad is True"):
        gemma(IDS)
    llama = FAMILIES["llama"]()
    llama.set_attn_implementation(ours.NAME)
    llama.eval()
    with torch.no_grad(), pytest.raises(fagen.Unsupported, match="attention_mask is torch.int64 .* accepted: of 4 dimensions truths"):
        llama(IDS, attention_mask=own_mask().long())
    wrong = r"attention_mask.shape is \(2, 1, 19, 20\); accepted: \(2, 4, 20, 20\)"
    with torch.no_grad(), pytest.raises(fagen.InvalidArgument, match=wrong):
        llama(IDS, attention_mask=own_mask()[:, :, 1:])
    rows = dict(cu_seq_lens_q=torch.tensor([0, 20, 40]), cu_seq_lens_k=torch.tensor([0, 20, 40]), max_length_q=20, max_length_k=20)
    with torch.no_grad(), pytest.raises(fagen.Unsupported, match="attention_mask is set beside cu_seq_lens_q; accepted: one of them"):
        llama(IDS, attention_mask=own_mask(), **rows)
    with torch.no_grad(), pytest.raises(fagen.Unsupported, match="^relative_bias is 1.5; .* not known whether it changes the result"):
        llama(IDS, relative_bias=1.5)
    with torch.no_grad(), pytest.raises(fagen.InvalidArgument, match="^cu_seq_lens_k and max_length_k is None; accepted: all of"):
        llama(IDS, cu_seq_lens_q=torch.tensor([0, 20, 40]), max_length_q=20)


PARTS = (7, 1, 12)  # of a row, sequences that are packed
PLACES = torch.cat([torch.arange(n) for n in PARTS])[None]


def alone(model):
    """The logits of each part of the first row by itself, with eager attention."""
    model.set_attn_implementation("eager")
    return torch.cat([model(part).logits for part in IDS[:1].split(PARTS, 1)], 1)


@pytest.mark.parametrize("use_cache", [False, True])
def test_packed_rows_do_not_see_each_other(chip, model, use_cache):
    with torch.no_grad():
        wanted = alone(model)
        model.set_attn_implementation(ours.NAME)
        found = model(IDS[:1], position_ids=PLACES, use_cache=use_cache).logits
        assert (wanted - found).abs().max() < 1e-5
        two = model(IDS[:1].expand(2, -1), position_ids=torch.cat([PLACES, torch.arange(20)[None]]), use_cache=use_cache).logits
        assert (two[0] - wanted[0]).abs().max() < 1e-5 and (two[1] - model(IDS[:1]).logits[0]).abs().max() < 1e-5
        bounds = torch.tensor([0, 7, 8, 20])
        for most in (12, torch.tensor(12)):
            found = model(IDS[:1], position_ids=PLACES, use_cache=use_cache, cu_seq_lens_q=bounds, cu_seq_lens_k=bounds.int(),
                          max_length_q=most, max_length_k=most).logits
            assert (wanted - found).abs().max() < 1e-5


def test_gradients_of_packed_rows(chip):
    ours.register()
    torch.manual_seed(0)
    model, found = FAMILIES["llama"]().train(), []
    for call in (alone, lambda model: model(IDS[:1], position_ids=PLACES).logits):
        model.zero_grad()
        logits = call(model)
        logits.square().sum().backward()
        found.append([p.grad.clone() for p in model.parameters()])
        model.set_attn_implementation(ours.NAME)
    for wanted, have in zip(*found):
        assert (wanted - have).abs().max() <= 1e-4 * max(1, wanted.abs().max())


def test_packed_rows_behind_a_cache_are_refused(chip):
    ours.register()
    model = FAMILIES["llama"]().eval()
    model.set_attn_implementation(ours.NAME)
    with torch.no_grad():
        cache = model(IDS[:1], use_cache=True).past_key_values
        with pytest.raises(fagen.Unsupported, match="position_ids begin at 0 again, 3 rows, beside a cache of 23"):
            model(IDS[:1, :3], position_ids=torch.tensor([[20, 0, 1]]), past_key_values=cache)
    places = PLACES.clone()
    assert ours.packing(places).tolist() == [0, 7, 8, 20]
    places.copy_(torch.arange(20))  # a tensor that was written to is looked at again
    assert ours.packing(places) is None
