"""Candidates as objects, what tune() returns, the example that shows them, and the types of the package."""
from __future__ import annotations

import ast
import importlib
import inspect
import os
import subprocess
import sys

import pytest
from conftest import CHIP, HERE, close, exact, half

import fagen

P = fagen.Problem(dtype="float16", d=40, causal=True, b=1, hq=2, hkv=2, sq=128, sk=128)
EXAMPLES = os.path.join(HERE, "..", "examples")
PACKAGE = os.path.dirname(fagen.__file__)


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


def test_tune_tells_what_it_found(tmp_path):
    with fagen.Context(CHIP, cache_dir=str(tmp_path)) as own:
        before = fagen.choice(P, device=own)
        found = fagen.tune(P, limit=2, device=own)
        after = fagen.choice(P, device=own)
        assert found.config == after.config and found.before_config == before.config and before.chosen and after.chosen
        assert found.seconds == after.chosen.seconds and found.before == before.chosen.seconds and found.complete
        assert found.tried >= 2 and found.gain == found.before / found.seconds >= 1
        assert any(c.source == "guess" for c in after.candidates)


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


def test_a_pin_runs_until_it_is_taken_back(tmp_path):
    with fagen.Context(CHIP, cache_dir=str(tmp_path)) as own:
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


def typed(stub):
    """The arguments that a stub gives to each function, and the names that it imports."""
    with open(os.path.join(PACKAGE, stub), encoding="utf-8") as f:
        tree = ast.parse(f.read())
    fields, found = {"TypedDict": set()}, {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            own = {row.target.id for row in node.body if isinstance(row, ast.AnnAssign)}
            fields[node.name] = own.union(*(fields.get(base.id, set()) for base in node.bases))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            more = fields[node.args.kwarg.annotation.slice.id] if node.args.kwarg else set()
            found.setdefault(node.name, []).append({a.arg for a in node.args.args + node.args.kwonlyargs} | more)
    assert "Any" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return found, {a.asname or a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}


DENSE = {"attention", "attention_backward"}
ALL = DENSE | {"varlen_attention", "varlen_attention_backward", "merge"}


@pytest.mark.parametrize("module, wanted", [("fagen", ALL), ("fagen.torch", ALL), ("fagen.jax", DENSE | {"bind", "state"})])
def test_types_have_the_arguments_of_the_functions(module, wanted):
    if "." in module:
        pytest.importorskip(module.split(".")[1])
    of = importlib.import_module(module)
    found, names = typed("__init__.pyi" if of is fagen else module.split(".")[1] + ".pyi")
    assert set(found) == wanted
    for name, rows in found.items():
        for row in rows:
            assert row == set(inspect.signature(getattr(of, name)).parameters), name
    assert of is not fagen or set(fagen.__all__) <= names | set(found)


TYPED = """
import numpy as np
from typing import Optional, Tuple
import fagen
x = np.zeros((1, 2, 2, 8), np.float16)
a: np.ndarray[Tuple[int, int, int, int], np.dtype[np.float16]] = fagen.attention(x, x, x)
b, c = fagen.attention(x, x, x, return_lse=True, causal=True)
d: int = fagen.tune(dtype="bf16", d=64).tried
f: Optional[float] = fagen.candidates(dtype="bf16", d=64)[0].measured
g: int = fagen.wisdom.import_("file", progress=lambda line, done: done > 0.5).added
fagen.pin(fagen.Problem("bf16", 64), config=fagen.choice(dtype="bf16", d=64).candidates[0])
fagen.attention(x, x, x, causl=True)  # error
e: int = fagen.attention(x, x, x)  # error
fagen.pin(fagen.Problem("bf16", 64), config=3)  # error
fagen.wisdom.loads("text")  # error
"""


# Every public function, with no expression of type Any. What stands in a line with "error" is one.
TYPED_FAGEN = """
import fagen
p = fagen.Problem(dtype="bf16", d=64)
with fagen.Context("sim:sm_90a") as own, fagen.simulator("sm_80"):
    a: bool = bool(fagen.supported(p, device=own))
    b: int = fagen.prepare(p, device=own)
    c: fagen.Tuning = fagen.tune(p, limit=2, device=own)
    d: fagen.Choice = fagen.choice(p, device=own)
    e: str = fagen.explain(p, device=own)
    f: str = d.candidates[0].config
    g: fagen.Context = fagen.context(own)
    with fagen.use(own):
        h: str = fagen.version()
i: int = fagen.explain(p)  # error
"""

TYPED_TORCH = """
from typing import Tuple
import torch
import fagen
from fagen import torch as ft
q = torch.zeros(1, 2, 2, 8)
n = torch.zeros(2, dtype=torch.int32)
a: torch.Tensor = ft.attention(q, q, q, causal=True, window=(3, None), diagonal="top-left", scale=q.sum(), out_dtype=torch.float32)
b, c = ft.attention(q, q, q, return_lse=True, batch_invariant=True, device="sim:sm_90a")
d: torch.Tensor = ft.varlen_attention(q, q, q, seqlens_k=n, max_seqlen_k=n[0])
e: Tuple[torch.Tensor, torch.Tensor] = ft.varlen_attention(q, q, q, seqlens_k=n, return_lse=True)
f: torch.Tensor = ft.merge(q, b)
g, h = ft.merge(q, b, return_lse=True, out=q, lse=b)
dq, dk, dv = ft.attention_backward(b, q, q, q, b, c, grad_lse=c, deterministic=True)
dq, dk, dv = ft.varlen_attention_backward(b, q, q, q, b, c, cu_seqlens_q=n, max_seqlen_q=3)
sums: torch.Tensor = b.sum() + c.sum() + g.sum() + h.sum() + dq + dk + dv
i: torch.Tensor = fagen.attention(q, q, q)
ft.attention(q, q, q, window="3")  # error
j: torch.Tensor = ft.attention(q, q, q, return_lse=True)  # error
ft.varlen_attention(q, q, q, seqlen_k=n)  # error
ft.merge(q, b, tf32=True)  # error
"""

TYPED_JAX = """
from typing import Tuple
import jax
import jax.numpy as jnp
from fagen import jax as fj
def f(q: jax.Array, key: jax.Array) -> jax.Array:
    fj.bind("sim:sm_90a")
    a: jax.Array = fj.attention(q, q, q, causal=True, window=4, out_dtype="float32", batch_invariant=True)
    b, c = fj.attention(q, q, q, return_lse=True, dropout_p=0.5, rng=fj.state(key, 0.5))
    d: Tuple[jax.Array, jax.Array] = fj.attention(q, q, q, return_lse=True, tf32=True, device="sim:sm_90a")
    dq, dk, dv = fj.attention_backward(b, q, q, q, b, c, grad_lse=c, grad_dtype="float32")
    fj.attention(q, q, q, stream=3)  # error
    e: jax.Array = fj.attention(q, q, q, return_lse=True)  # error
    return a + b + d[0] + dq + dk + dv
"""


@pytest.mark.parametrize("module, program", [("fagen", TYPED_FAGEN), ("torch", TYPED_TORCH), ("jax", TYPED_JAX)])
def test_mypy_of_every_public_function(tmp_path, module, program):
    pytest.importorskip("mypy")
    pytest.importorskip(module)
    mypy(tmp_path, program, "--disallow-any-expr")


def mypy(tmp_path, program, *more):
    """Exactly the lines that say so are errors."""
    path = tmp_path / "typed.py"
    path.write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", *more, "--follow-imports", "silent", "--cache-dir", str(tmp_path / "cache")]
    told = subprocess.run([*command, str(path)], capture_output=True, text=True, env={**os.environ, "MYPYPATH": os.path.dirname(PACKAGE)})
    wrong = [n for n, line in enumerate(program.splitlines(), 1) if line.endswith("# error")]
    assert sorted({int(line.split(":")[1]) for line in told.stdout.splitlines() if ": error:" in line}) == wrong, told.stdout


def test_mypy_of_the_examples(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "typed.py"
    program.write_text(TYPED)
    files = [os.path.join(EXAMPLES, name) for name in ("choices.py", "wisdom.py")]
    try:
        import torch  # noqa: F401
        files.append(os.path.join(EXAMPLES, "compare.py"))
    except ImportError:
        pass
    environment = {**os.environ, "MYPYPATH": os.path.dirname(PACKAGE)}
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "--cache-dir", str(tmp_path / "cache")]
    told = subprocess.run([*command, *files], capture_output=True, text=True, env=environment)
    assert told.returncode == 0, told.stdout + told.stderr
    mypy(tmp_path, TYPED)
