#!/usr/bin/env python3
"""Tunes, lists, pins, exports and imports, cell by cell, as in a notebook: what a tuning finds is carried to another cache.

    python3 wisdom.py                                   # on the current CUDA device, for a minute
    FAGEN_DEVICE=sim:sm_90a LIMIT=1 python3 wisdom.py   # without a GPU: nothing is timed, prices are the model's

Needs numpy alone.
"""
# %% The device, and a problem that nothing ships for
from __future__ import annotations

import os
import tempfile

import numpy as np

import fagen

folder = tempfile.TemporaryDirectory()
here = fagen.Context(os.environ.get("FAGEN_DEVICE"), cache_dir=os.path.join(folder.name, "here"))
there = fagen.Context(os.environ.get("FAGEN_DEVICE"), cache_dir=os.path.join(folder.name, "there"))
problem = fagen.Problem(dtype="float16", d=72, causal=True, b=1, hq=2, hkv=2, sq=128, sk=128)


def table(rows: list[fagen.Candidate], most: int = 5) -> None:
    """The cheapest candidates; a star marks the one that runs."""
    for c in rows[:most]:
        measured = "not measured" if c.measured is None else f"{c.measured * 1e6:9.3f} us"
        print(f"{'*' if c.runs else ' '} {c.seconds * 1e6:9.3f} us  {measured:>12}  {c.source:8} {c.config}  {c.why}")


# %% What runs, among what, and what a search makes of it
table(fagen.candidates(problem, device=here))
found = fagen.tune(problem, seconds=60, limit=int(os.environ.get("LIMIT", "0")), device=here)
print(f"tried {found.tried}: {found.gain:.2f} times as fast as before")
table(fagen.candidates(problem, device=here))

# %% Another config, by name: for this problem and context, and back
second = next(c for c in fagen.candidates(problem, device=here) if not c.runs and not c.why)
fagen.pin(problem, config=second, device=here)
pinned = fagen.choice(problem, device=here)
assert pinned.chosen is not None and pinned.chosen.source == "pin" and pinned.config == second.config
try:
    fagen.pin(problem, config="flash_fwd_mma:br=64", device=here)
except fagen.InvalidArgument as e:
    print("refused:", e)
fagen.unpin(problem, device=here)

# %% To another machine: a file, checked whole and verified before it counts
path = os.path.join(folder.name, "records.txt")
fagen.wisdom.export(path, problem, device=here)
took = fagen.wisdom.import_(path, progress=lambda line, done: print(f"{done:4.0%} {line}"), device=there)
print(took)
assert took.added == 1 and fagen.choice(problem, device=there).config == fagen.choice(problem, device=here).config

# %% A damaged one changes nothing
try:
    fagen.wisdom.loads(fagen.wisdom.dumps(device=here)[:-10], device=there)
except fagen.InvalidArgument as e:
    print("refused:", e)

# %% It computes; and what was imported can be forgotten
if there.simulated:
    q, k, v = (np.random.default_rng(i).standard_normal((1, 128, 2, 72)).astype(np.float16) for i in range(3))
    out = fagen.attention(q, k, v, causal=True, device=there)
    print(f"out {out.shape}")
print(f"forgot {fagen.wisdom.forget(device=there)}")
here.close()
there.close()
