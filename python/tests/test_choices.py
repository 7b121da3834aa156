"""Candidates as objects, what tune() returns, and the examples that show them."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import CHIP, HERE, close, exact, half

import fagen

P = fagen.Problem(dtype="float16", d=40, causal=True, b=1, hq=2, hkv=2, sq=128, sk=128)
EXAMPLES = os.path.join(HERE, "..", "examples")


def test_candidates_of_a_problem(chip):
    found = fagen.choice(P)
    prices = [c.seconds for c in found.candidates]
    assert found.chosen and found.chosen.config == found.config and len(prices) > 3 and prices == sorted(prices)
    assert all(0 < c.seconds < 1 and 0 < c.model < 1 and not c.why for c in found.candidates)
    assert [c.runs for c in found.candidates] == [True] + [False] * (len(prices) - 1) and all(c.why for c in found.refused)
    assert {c.source for c in found.candidates} <= {"start", "shipped"}
    assert all(bool(c.chip) == (c.source == "shipped") and c.measured is None for c in found.candidates)
    assert found.config in fagen.explain(P) and fagen.candidates(P) == found.candidates + found.refused
    assert fagen.choice(dtype="float16", d=40, causal=True, b=1, hq=2, hkv=2, sq=128, sk=128) == found


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A cache in which P was tuned, with its kernels; what was chosen before, what tune() told, and what was chosen then."""
    path = str(tmp_path_factory.mktemp("tuned"))
    with fagen.Context(CHIP, cache_dir=path) as own:
        return path, fagen.choice(P, device=own), fagen.tune(P, limit=2, device=own), fagen.choice(P, device=own)


def test_tune_tells_what_it_found(tuned):
    _, before, found, after = tuned
    assert found.config == after.config and found.before_config == before.config and before.chosen and after.chosen
    assert found.seconds == after.chosen.seconds and found.before == before.chosen.seconds and found.complete
    assert found.tried >= 2 and found.gain == found.before / found.seconds >= 1
    assert any(c.source == "guess" for c in after.candidates)


def test_tune_keeps_what_it_has_when_the_time_ends(tmp_path):
    with fagen.Context(CHIP, cache_dir=str(tmp_path)) as own:
        found = fagen.tune(P, seconds=1e-6, device=own)
        assert found.config == fagen.choice(P, device=own).config and found.tried < 40


def test_the_example(tuned):
    environment = {**os.environ, "FAGEN_CACHE_DIR": tuned[0]}
    words = ["--device", CHIP, "--limit", "2", "--length", "128", "--d", str(P.d)]
    told = subprocess.run([sys.executable, os.path.join(EXAMPLES, "choices.py"), *words], capture_output=True, text=True, env=environment)
    assert told.returncode == 0, told.stderr
    assert "times as fast as before" in told.stdout and told.stdout.count("* ") >= 2 and "out (1, 64, 4, 40)" in told.stdout


def test_a_pin_runs_until_it_is_taken_back(tuned):
    with fagen.Context(CHIP, cache_dir=tuned[0]) as own:
        before = fagen.choice(P, device=own)
        second = next(c for c in before.candidates if not c.runs)
        fagen.pin(P, config=second, device=own)
        now = fagen.choice(P, device=own)
        assert now.config == second.config and now.chosen.source == "pin" and second.config in fagen.explain(P, device=own)
        assert "kernel     loaded" in fagen.explain(P, device=own)  # prepared
        q, k, v = (half(i, 1, 128, 2, 40) for i in range(3))
        close(fagen.attention(q, k, v, causal=True, device=own), exact(q, k, v, right=0)[0])
        fagen.unpin(P, device=own)
        assert fagen.choice(P, device=own) == before and before.config in fagen.explain(P, device=own)
        fagen.pin(dtype="float16", d=40, causal=True, b=1, hq=2, hkv=2, sq=128, sk=128, config=second.config, device=own)
        fagen.unpin(device=own)
        assert fagen.choice(P, device=own) == before
        for config, kind, says in ((None, fagen.InvalidArgument, "config is None"), ("nonsense", fagen.InvalidArgument, "nonsense"),
                                   (second.config.rpartition(",")[0], fagen.InvalidArgument, "each tunable"),
                                   ("merge:warps=4,team=1,ahead=4", fagen.Unsupported, "merge")):
            with pytest.raises(kind, match=says):
                fagen.pin(P, config=config, device=own)
        assert fagen.choice(P, device=own) == before


def test_wisdom_travels(tmp_path):
    path, name = tmp_path / "records.txt", os.fspath(tmp_path / "records.txt")
    problem = fagen.Problem(dtype="float32", d=24, op="merge", b=1, hq=2, hkv=2, sq=128)  # nothing ships for it
    lines = []
    with fagen.Context(CHIP, cache_dir=str(tmp_path / "a")) as a, fagen.Context(CHIP, cache_dir=str(tmp_path / "b")) as b:
        fagen.tune(problem, limit=1, device=a)
        fagen.wisdom.export(path, device=a)
        assert fagen.wisdom.dumps(device=a) == path.read_bytes() and fagen.wisdom.dumps(P, device=a).count(b"\n") == 1
        for damaged in (b"", path.read_bytes()[:-1], path.read_bytes().replace(b"records 1", b"records 7")):
            with pytest.raises(fagen.InvalidArgument):
                fagen.wisdom.loads(damaged, device=b)
        with pytest.raises(fagen.FileError):
            fagen.wisdom.import_(tmp_path / "absent", device=b)
        path.chmod(0o666)
        with pytest.raises(fagen.InvalidArgument, match="writable"):
            fagen.wisdom.import_(name, device=b)
        path.chmod(0o600)
        with pytest.raises(fagen.Interrupted):
            fagen.wisdom.import_(name, progress=lambda line, done: True, device=b)
        with pytest.raises(ZeroDivisionError):
            fagen.wisdom.import_(name, progress=lambda line, done: 1 // 0, device=b)
        assert fagen.wisdom.dumps(device=b).count(b"\n") == 1
        took = fagen.wisdom.import_(name, progress=lambda line, done: lines.append(line), device=b)
        assert took.added == 1 and took.records == sum(took[1:]) and any("verify" in line for line in lines)
        assert fagen.choice(problem, device=b).config == fagen.choice(problem, device=a).config
        assert fagen.wisdom.loads(path.read_bytes(), device=b).there == 1
        assert fagen.wisdom.forget(P, device=b) == 0 and fagen.wisdom.forget(device=b) == 1
        assert fagen.wisdom.forget(device=a) == 0 and fagen.wisdom.forget(everything=True, device=a) == 1


def test_the_notebook(tmp_path):
    environment = {**os.environ, "FAGEN_CACHE_DIR": str(tmp_path), "FAGEN_DEVICE": "sim:sm_80", "LIMIT": "1"}
    told = subprocess.run([sys.executable, os.path.join(EXAMPLES, "wisdom.py")], capture_output=True, text=True, env=environment)
    assert told.returncode == 0, told.stderr
    assert told.stdout.count("refused: ") == 2 and "out (1, 128, 2, 72)" in told.stdout and "forgot 1" in told.stdout, told.stdout
