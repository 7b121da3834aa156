#!/usr/bin/env python3
"""On a GPU: fagen.attention by PyTorch beside fa_launch() by ctypes, on the 60 cells of the benchmarks; the ratio of their times.

    PYTHONPATH=SITE python3 python/tests/gpu_speed.py [--rounds 20]

Both launch the same kernel on the same Q, K and V, in turns that begin with either; a time is the median of CUDA events around batches of
at least 3 ms and four launches.
"""
from __future__ import annotations

import argparse
import os
import statistics
import sys
from typing import Callable

import torch

import fagen
from fagen._library import lib
from fagen._plan import O
from fagen._torch_ops.plans import plans

# After the package, whose name a script of that folder has, too.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import cells  # noqa: E402


def seconds(call: Callable[[], object], n: int) -> float:
    """Of one of n calls, after one that keeps the GPU busy while the host sends the next."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    call()
    start.record()
    for _ in range(n):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / n


def in_turns(a: Callable[[], object], b: Callable[[], object], n: int, other_first: bool) -> tuple[float, float]:
    """Seconds of a and of b; the clock falls within a pair, so that the second of them has it harder."""
    if other_first:
        return tuple(reversed(in_turns(b, a, n, False)))  # type: ignore[return-value]
    return seconds(a, n), seconds(b, n)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    ratios = []
    for cell in cells.grid("main"):
        q, k, v = (torch.randn(cell.b, s, h, cell.d, device="cuda", dtype=torch.bfloat16)
                   for s, h in ((cell.sq, cell.hq), (cell.sk, cell.hkv), (cell.sk, cell.hkv)))
        causal = cell.mask == "causal"
        call = lambda: fagen.attention(q, k, v, causal=causal)  # noqa: E731
        out = call()
        plan = list(plans.kept.values())[-1]
        plan.words[O] = out.data_ptr()
        handle, reference, stream = plan.context.handle, plan.reference, torch.cuda.current_stream().cuda_stream
        by_c = lambda: lib.fa_launch(handle, reference, stream)  # noqa: E731
        n = max(4, int(3e-3 / seconds(by_c, 10)))
        pairs = [in_turns(call, by_c, n, i % 2 > 0) for i in range(rounds + 1)][1:]
        ours, of_c = (statistics.median(p[i] for p in pairs) for i in (0, 1))
        ratio = statistics.median(a / b for a, b in pairs)
        ratios.append((of_c, ratio))
        print(f"{str(cell):60s} {of_c * 1e6:9.1f} us by C {ours * 1e6:9.1f} us by PyTorch  ratio {ratio:.4f}")
    long = [r for t, r in ratios if t >= 20e-6]
    print(f"from 20 us up: {len(long)} cells, ratio {statistics.median(long):.4f}, at most {max(long):.4f}")


if __name__ == "__main__":
    main()
