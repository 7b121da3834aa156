"""What is known of problems without tensors: supported, prepare, tune, explain; contexts and messages."""
from __future__ import annotations

import json

import pytest
from conftest import CHIP, half

import fagen

P = fagen.Problem(dtype="float16", d=64, causal=True, b=2, hq=4, hkv=2, sq=24, sk=33)


def test_supported(chip):
    assert fagen.supported(P) and fagen.supported(P).reason == ""
    assert fagen.supported(dtype="bf16", d=72, dv=40, window=(100, 0))
    assert fagen.supported(P, page_size=16)
    assert fagen.supported(dtype="float32", d=128, op="merge")


def test_not_supported_says_why():
    with fagen.Context(CHIP, sram_budget=1) as small:
        told = fagen.supported(P, device=small)
        assert not told and "1" in told.reason


def test_prepare_and_explain(chip):
    assert fagen.prepare(P) == 1
    text = fagen.explain(P)
    assert "problem    fp16,d=64" in text and "hit: prepared" in text
    assert fagen.prepare(P, to=fagen.Problem(**{**P.__dict__, "sq": 60, "sk": 60})) >= 1


def test_explain_a_call(chip):
    q, k = half(1, 2, 24, 4, 64), half(2, 2, 33, 2, 64)
    text = fagen.explain(q, k, k, causal=True)
    assert "mask=causal" in text and "b=2,hq=4,hkv=2,sq=24,sk=33" in text
    assert fagen.problem_text(q, k, k, causal=True).startswith("fp16,d=64,dv=64,mask=causal,o=fp16,align=16,b=2,hq=4,hkv=2,sq=24,sk=33")


def test_tune_stops_where_progress_says_so(chip):
    lines = []

    def progress(line, done):
        lines.append((line, done))
        return True

    with pytest.raises(fagen.Interrupted):
        fagen.tune(P, limit=2, progress=progress)
    assert lines and all(0 <= done <= 1 for _, done in lines)


def test_an_exception_of_progress_passes_through(chip):
    def progress(line, done):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fagen.tune(P, limit=2, progress=progress)


def test_a_process_has_several_simulated_chips(chip):
    others = [fagen.Context("sim:sm_80", cache_dir=""), fagen.Context("sim:sm_80,sm_90a:1", cache_dir="")]
    archs = [next(word for word in fagen.explain(P, device=c).split() if word.startswith("sm_")) for c in others]
    assert archs == ["sm_80", "sm_90a"]
    with pytest.raises(fagen.FagenError, match="sim:sm_80:1; accepted: 0 to 0"):
        fagen.Context("sim:sm_80:1", cache_dir="")


def test_use_installs_a_context():
    own = fagen.Context(CHIP, on_miss="fail", cache_dir="")
    before = fagen.context(CHIP)
    try:
        fagen.use(own)
        with pytest.raises(fagen.NoKernel) as told:
            fagen.attention(half(1, 1, 8, 2, 48), half(2, 1, 8, 2, 48), half(3, 1, 8, 2, 48), device=CHIP)
        assert told.value.status_name == "FA_NO_KERNEL"
    finally:
        fagen.use(before)
    own.close()
    own.close()


def test_a_context_that_closes_tells_its_workload(tmp_path):
    file = tmp_path / "workload"
    with fagen.Context(CHIP, cache_dir="", workload=str(file)) as own:
        for _ in range(3):
            fagen.attention(half(1, 1, 8, 2, 48), half(2, 1, 8, 2, 48), half(3, 1, 8, 2, 48), device=own)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["launches"] for line in lines] == [3] and lines[0]["problem"].startswith("fp16,d=48,")
