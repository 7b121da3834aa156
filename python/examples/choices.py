#!/usr/bin/env python3
"""What runs for a problem, among what, and what a search makes of it: lists the candidates, tunes, lists again, computes.

    python3 choices.py [--d 64] [--length 1024] [--seconds 60] [--limit 48] [--device cuda:0]
    python3 choices.py --device sim:sm_90a --limit 2      # without a GPU: nothing is timed, prices are the model's

Needs numpy alone; the last step computes where the device is a simulated chip.
"""
from __future__ import annotations

import argparse

import numpy as np

import fagen


def table(choice: fagen.Choice, rows: int) -> None:
    """The cheapest candidates; a star marks the one that runs."""
    for c in choice.candidates[:rows]:
        print(f"{'*' if c == choice.chosen else ' '} {c.seconds * 1e6:9.3f} us  {c.source:8}  {c.config}")


def report(found: fagen.Tuning) -> None:
    time = "unknown" if found.seconds is None else f"{found.seconds * 1e6:.3f} us"
    end = "" if found.complete else ", until the time was up"
    print(f"tried {found.tried} configs{end}: {time}, {found.gain:.2f} times as fast as before")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--d", type=int, default=64)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--limit", type=int, default=0, help="candidates that are tried; 0: 48")
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--device", help="cuda:N, sim:sm_90a; by default the current CUDA device")
    a = parser.parse_args()
    ctx = fagen.context(a.device)
    problem = fagen.Problem(dtype="float16", d=a.d, causal=True, b=1, hq=4, hkv=4, sq=a.length, sk=a.length)
    table(fagen.choice(problem, device=ctx), a.rows)
    report(fagen.tune(problem, seconds=a.seconds, limit=a.limit, device=ctx))
    table(fagen.choice(problem, device=ctx), a.rows)
    if ctx.simulated:
        q, k, v = (np.random.default_rng(i).standard_normal((1, 64, 4, a.d)).astype(np.float16) for i in range(3))
        out, lse = fagen.attention(q, k, v, causal=True, return_lse=True, device=ctx)
        print(f"out {out.shape}, LSE from {lse.min():.3f} to {lse.max():.3f}")


if __name__ == "__main__":
    main()
