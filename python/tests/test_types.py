"""The types of the package: what mypy says of each public function, and that none is Any."""
from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import subprocess
import sys

import pytest
from conftest import HERE

import fagen

EXAMPLES = os.path.join(HERE, "..", "examples")
PACKAGE = os.path.dirname(fagen.__file__)


def tree_of(file):
    with open(os.path.join(PACKAGE, file), encoding="utf-8") as f:
        return ast.parse(f.read())


# The modules whose names users have, as type checkers read them; of the private ones what fagen's own stub takes.
PUBLIC = ["__init__.pyi", "torch.pyi", "jax.pyi", "flash_attn.pyi", "flex.pyi", "sdpa.py", "wisdom.py", "errors.py",
          "integrations/transformers.py"]
IMPORTS = [node for node in tree_of("__init__.pyi").body if isinstance(node, ast.ImportFrom)]
PRIVATE, TAKEN = [f"{node.module}.py" for node in IMPORTS if str(node.module)[0] == "_"], {a.name for node in IMPORTS for a in node.names}


def any_in(*annotations):
    return any(isinstance(x, ast.Name) and x.id == "Any" for annotation in annotations for x in ast.walk(annotation))


def untyped(body, names, where):
    """The public functions, methods and aliases among statements that lack a type, or that have Any in one. names: those that count."""
    overloaded = {row.name for row in body if isinstance(row, ast.FunctionDef) and "overload" in map(ast.unparse, row.decorator_list)}
    for node in body:
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
        name = getattr(node, "name", getattr(target, "id", "_"))
        if name[0] == "_" or names is not None and name not in names:
            continue
        if isinstance(node, ast.ClassDef):
            yield from untyped(node.body, None, f"{where}.{name}")
        elif isinstance(node, ast.FunctionDef):
            if name in overloaded and not node.decorator_list:
                continue  # what its overloads say counts
            a = node.args
            given = [x for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x and x.arg not in ("self", "cls")]
            hints = [x.annotation for x in given] + [node.returns]
            if None in hints or any_in(*hints):
                yield f"{where}.{name}"
        elif any_in(node):
            yield f"{where}.{name}"


def test_no_public_name_is_any():
    found = [x for file in PUBLIC for x in untyped(tree_of(file).body, None, file[:file.rindex(".")].replace("/", " "))]
    found += [x for file in PRIVATE for x in untyped(tree_of(file).body, TAKEN, file[:-3])]
    assert not found
    seen = ast.parse("def f(x: Any): ...\ndef g(x) -> int: ...\ndef _h(x): ...\n"
                     "class C:\n    def m(self, *a: List[Any]) -> int: ...\nT = List[Any]")
    assert list(untyped(seen.body, None, "x")) == ["x.f", "x.g", "x.C.m", "x.T"]


def typed(stub):
    """The arguments that a stub gives to each function, in their order, and its keywords; and the names that it imports."""
    tree = tree_of(stub)
    fields, found = {"TypedDict": set()}, {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            own = {row.target.id for row in node.body if isinstance(row, ast.AnnAssign)}
            fields[node.name] = own.union(*(fields.get(base.id, set()) for base in node.bases))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            more = fields[node.args.kwarg.annotation.slice.id] if node.args.kwarg else set()
            found.setdefault(node.name, []).append(([a.arg for a in node.args.args + node.args.kwonlyargs], more))
    return found, {a.asname or a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}


DENSE = {"attention", "attention_backward"}
ALL = DENSE | {"varlen_attention", "varlen_attention_backward", "merge"}
FLASH = {f"flash_attn_{name}" for name in ("func", "kvpacked_func", "qkvpacked_func", "varlen_func", "varlen_kvpacked_func",
                                           "varlen_qkvpacked_func", "with_kvcache")}


@pytest.mark.parametrize("module, wanted", [("fagen", ALL | {"append"}), ("fagen.torch", ALL), ("fagen.jax", DENSE | {"bind", "state"}),
                                            ("fagen.flash_attn", FLASH), ("fagen.flex", {"program", "flex_attention"})])
def test_types_have_the_arguments_of_the_functions(module, wanted):
    if "." in module:
        pytest.importorskip({"fagen.flash_attn": "torch", "fagen.flex": "torch"}.get(module, module.split(".")[1]))
    of = importlib.import_module(module)
    found, names = typed("__init__.pyi" if of is fagen else module.split(".")[1] + ".pyi")
    assert set(found) == wanted
    for name, rows in found.items():
        wanted = list(inspect.signature(getattr(of, name)).parameters)
        for own, more in rows:
            assert own == [x for x in wanted if x in own] and more == set(wanted) - set(own), name
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
h: np.ndarray[Tuple[int, int, int, int], np.dtype[np.float16]] = fagen.attention(x, x, None, head_dim_v=4)
fagen.varlen_attention(x, x, None, seqlens_k=x, head_dim_v="4")  # error
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
    e: str = fagen.explain(p, device=own) + fagen.explain(dtype="bf16", d=64, causal=True)
    j: str = fagen.explain("q", "k", "v", causal=True, scale=0.5) + fagen.problem_text("q", "k", "v", window=3)
    k: int = fagen.wisdom.forget(dtype="bf16", d=64, device=own)
    f: str = d.candidates[0].config
    g: fagen.Context = fagen.context(own)
    with fagen.use(own):
        h: str = fagen.version()
l: str = fagen.explain(dtype="bf16", d=576, dv=512, v_in_k=True)
i: int = fagen.explain(p)  # error
fagen.tune(dtype="bf16", d=64, limt=3)  # error
fagen.supported(d="64")  # error
fagen.wisdom.dumps(causl=True)  # error
fagen.problem_text("q", "k", "v", causl=True)  # error
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
i: torch.Tensor = fagen.attention(q, q, q) + fagen.attention(q, q, None, head_dim_v=4)
k: Tuple[torch.Tensor, torch.Tensor] = fagen.varlen_attention(q, q, None, head_dim_v=4, seqlens_k=n, page_table=n, return_lse=True)
ft.attention(q, q, q, window="3")  # error
j: torch.Tensor = ft.attention(q, q, q, return_lse=True)  # error
ft.varlen_attention(q, q, q, seqlen_k=n)  # error
ft.merge(q, b, tf32=True)  # error
"""

TYPED_FLASH = """
from typing import Optional, Tuple, Union
import torch
from fagen import flash_attn as fa, sdpa
q = torch.zeros(2, 2, 2, 8)
n = torch.zeros(2, dtype=torch.int32)
a: torch.Tensor = fa.flash_attn_func(q, q, q, 0.0, None, True, (-1, 3), 0.0, None, False)
b, c, nothing = fa.flash_attn_func(q, q, q, causal=True, window_size=4, return_attn_probs=True)
none: None = nothing
d: torch.Tensor = fa.flash_attn_kvpacked_func(q, q, softmax_scale=0.1)
e: Tuple[torch.Tensor, torch.Tensor, None] = fa.flash_attn_qkvpacked_func(q, deterministic=True, return_attn_probs=True)
f: torch.Tensor = fa.flash_attn_varlen_func(q, q, q, n, None, 3, n[0], block_table=n, seqused_k=n)
g: Tuple[torch.Tensor, torch.Tensor, None] = fa.flash_attn_varlen_func(q, q, q, n, n, 3, 3, return_attn_probs=True, seqused_q=n)
h: torch.Tensor = fa.flash_attn_varlen_kvpacked_func(q, q, n, n, 3, 3, 0.1)
i: torch.Tensor = fa.flash_attn_varlen_qkvpacked_func(q, n, 3, causal=True)
j: torch.Tensor = fa.flash_attn_with_kvcache(q, q, q, cache_seqlens=3, causal=True, num_splits=4)
k, lse = fa.flash_attn_with_kvcache(q, q, q, cache_seqlens=n, block_table=n, return_softmax_lse=True)
def either(more: bool) -> Union[torch.Tensor, Tuple[torch.Tensor, torch.Tensor, None]]:
    return fa.flash_attn_func(q, q, q, return_attn_probs=more)
with sdpa.patched("torch"):
    m: torch.Tensor = sdpa.scaled_dot_product_attention(q, q, q, None, 0.0, True, scale=0.1, enable_gqa=True)
sums: torch.Tensor = a + b + c + d + e[0] + f + g[1] + h + i + j + k + lse + m
fa.flash_attn_func(q, q, q, softmax_scal=0.1)  # error
o: torch.Tensor = fa.flash_attn_func(q, q, q, return_attn_probs=True)  # error
p: torch.Tensor = fa.flash_attn_with_kvcache(q, q, q, return_softmax_lse=True)  # error
fa.flash_attn_varlen_func(q, q, q, n, n, "3", 3)  # error
"""

TYPED_FLEX = """
from typing import Tuple
import torch
import fagen
from fagen.flex import flex_attention, program
q = torch.zeros(2, 2, 2, 8)
def alibi(score: torch.Tensor, b: torch.Tensor, h: torch.Tensor, q_idx: torch.Tensor, kv_idx: torch.Tensor) -> torch.Tensor:
    return score + q[0, 0, 0][h] * (kv_idx - q_idx)
a: torch.Tensor = flex_attention(q, q, q, alibi, scale=0.1, enable_gqa=True)
b: Tuple[torch.Tensor, torch.Tensor] = flex_attention(q, q, q, score_mod=alibi, return_lse=True, device="sim:sm_90a")
c: torch.Tensor = fagen.attention(q, q, q, score=program(score_mod=alibi, B=2, tanh="approximate"))
flex_attention(q, q, q, alibi, maskmod=None)  # error
d: torch.Tensor = flex_attention(q, q, q, alibi, return_lse=True)  # error
program(score_mod=3)  # error
"""

TYPED_TRANSFORMERS = """
from typing import Optional
import torch
import fagen.integrations.transformers as ours
name: str = ours.register()
q = torch.zeros(2, 2, 2, 8)
mask: Optional[torch.Tensor] = ours.attention_mask(2, 3, 4, q_offset=q.sum(), device="cpu")
out, nothing = ours.attention_forward(torch.nn.Linear(2, 2), q, q, q, mask, scaling=0.1, position_ids=None)
none: None = nothing
sums: torch.Tensor = out + 1
ours.register(3)  # error
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


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """mypy --strict of files; what it has read of other packages is kept for the next."""
    pytest.importorskip("mypy")
    environment = {**os.environ, "MYPYPATH": os.path.dirname(PACKAGE)}
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "--cache-dir", str(tmp_path_factory.mktemp("mypy"))]
    return lambda *words: subprocess.run([*command, *map(str, words)], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("module, programs", [("fagen", [TYPED_FAGEN]), ("numpy", [TYPED]), ("jax", [TYPED_JAX]),
                                              ("torch", [TYPED_TORCH, TYPED_FLASH, TYPED_FLEX, TYPED_TRANSFORMERS])])
def test_mypy_of_every_public_function(tmp_path, mypy, module, programs):
    """Exactly the lines that say so are errors. No expression is Any, but in numpy's own types."""
    pytest.importorskip(module)
    files = [tmp_path / f"typed{i}.py" for i, _ in enumerate(programs)]
    for path, program in zip(files, programs):
        path.write_text(program)
    told = mypy(*([] if module == "numpy" else ["--disallow-any-expr"]), *files)
    found = {tuple(line.split(":")[:2]) for line in told.stdout.splitlines() if ": error:" in line}
    wrong = {(str(path), str(n)) for path, program in zip(files, programs) for n, line in enumerate(program.splitlines(), 1)
             if line.endswith("# error")}
    assert found == wrong and told.returncode == 1, told.stdout + told.stderr


def test_mypy_of_the_examples(mypy):
    files = [os.path.join(EXAMPLES, name) for name in ("choices.py", "wisdom.py")]
    if importlib.util.find_spec("torch"):
        files.append(os.path.join(EXAMPLES, "compare.py"))
    told = mypy(*files)
    assert told.returncode == 0, told.stdout + told.stderr
