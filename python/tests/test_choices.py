"""Candidates as objects, what tune() returns, the example that shows them, and the types of the package."""
from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys

import pytest
from conftest import CHIP, HERE

import fagen

P = fagen.Problem(dtype="float16", d=40, causal=True, b=1, hq=2, hkv=2, sq=128, sk=128)
EXAMPLES = os.path.join(HERE, "..", "examples")
PACKAGE = os.path.dirname(fagen.__file__)


def test_candidates_of_a_problem(chip):
    found = fagen.choice(P)
    prices = [c.seconds for c in found.candidates]
    assert found.chosen and found.chosen.config == found.config and len(prices) > 3 and prices == sorted(prices)
    assert all(0 < c.seconds < 1 and 0 < c.model < 1 and c.source for c in found.candidates)
    assert found.config in fagen.explain(P)
    assert fagen.choice(dtype="float16", d=40, causal=True, b=1, hq=2, hkv=2, sq=128, sk=128) == found


def test_tune_tells_what_it_found(tmp_path):
    with fagen.Context(CHIP, cache_dir=str(tmp_path)) as own:
        before = fagen.choice(P, device=own)
        found = fagen.tune(P, limit=2, device=own)
        after = fagen.choice(P, device=own)
        assert found.config == after.config and found.before_config == before.config and before.chosen and after.chosen
        assert found.seconds == after.chosen.seconds and found.before == before.chosen.seconds and found.complete
        assert found.tried >= 2 and found.gain == found.before / found.seconds >= 1
        assert any("record" in c.source for c in after.candidates)


def test_tune_keeps_what_it_has_when_the_time_ends(tmp_path):
    with fagen.Context(CHIP, cache_dir=str(tmp_path)) as own:
        found = fagen.tune(P, seconds=1e-6, device=own)
        assert found.config == fagen.choice(P, device=own).config and found.tried < 40


def test_the_example(tmp_path):
    environment = {**os.environ, "FAGEN_CACHE_DIR": str(tmp_path)}
    told = subprocess.run([sys.executable, os.path.join(EXAMPLES, "choices.py"), "--device", CHIP, "--limit", "2", "--length", "128"],
                          capture_output=True, text=True, env=environment)
    assert told.returncode == 0, told.stderr
    assert "times as fast as before" in told.stdout and told.stdout.count("* ") >= 2 and "out (1, 64, 4, 64)" in told.stdout


def test_types_have_the_arguments_of_the_functions():
    with open(os.path.join(PACKAGE, "__init__.pyi"), encoding="utf-8") as f:
        tree = ast.parse(f.read())
    fields = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            own = {row.target.id for row in node.body if isinstance(row, ast.AnnAssign)}
            fields[node.name] = own.union(*(fields.get(base.id, set()) for base in node.bases))
    seen = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            named = {a.arg for a in node.args.args + node.args.kwonlyargs} | fields[node.args.kwarg.annotation.slice.id]
            assert named == set(inspect.signature(getattr(fagen, node.name)).parameters), node.name
            seen.add(node.name)
    assert seen == {"attention", "varlen_attention", "merge", "attention_backward", "varlen_attention_backward"}
    names = {a.asname or a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}
    assert set(fagen.__all__) <= names | seen


TYPED = """
import numpy as np
from typing import Tuple
import fagen
x = np.zeros((1, 2, 2, 8), np.float16)
a: np.ndarray[Tuple[int, int, int, int], np.dtype[np.float16]] = fagen.attention(x, x, x)
b, c = fagen.attention(x, x, x, return_lse=True, causal=True)
d: int = fagen.tune(dtype="bf16", d=64).tried
fagen.attention(x, x, x, causl=True)  # error
e: int = fagen.attention(x, x, x)  # error
"""


def test_mypy_of_the_examples(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "typed.py"
    program.write_text(TYPED)
    files = [os.path.join(EXAMPLES, "choices.py")]
    try:
        import torch  # noqa: F401
        files.append(os.path.join(EXAMPLES, "compare.py"))
    except ImportError:
        pass
    environment = {**os.environ, "MYPYPATH": os.path.dirname(PACKAGE)}
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "--cache-dir", str(tmp_path / "cache")]
    told = subprocess.run([*command, *files], capture_output=True, text=True, env=environment)
    assert told.returncode == 0, told.stdout + told.stderr
    told = subprocess.run([*command, str(program)], capture_output=True, text=True, env=environment)
    wrong = [n for n, line in enumerate(TYPED.splitlines(), 1) if line.endswith("# error")]
    assert sorted({int(line.split(":")[1]) for line in told.stdout.splitlines() if ": error:" in line}) == wrong, told.stdout
