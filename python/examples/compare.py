#!/usr/bin/env python3
"""fagen beside PyTorch's own attention: tunes, explains, and draws TFLOP/s over length.

    python3 compare.py [--d 128] [--heads 16] [--lengths 1024,2048,4096,8192] [--causal] [--tune SECONDS] [--plot compare.svg]
    python3 compare.py --device sim:sm_90a      # without a GPU: one short length, computed and compared, nothing timed

Needs PyTorch; matplotlib for --plot alone. Time is the median of CUDA events around batches of calls; FLOPs are 4 b h s s d, half of that
under a causal mask.
"""
from __future__ import annotations

import argparse
import statistics
from typing import Callable, Dict, List

import torch

import fagen

TOKENS = 16384  # b * s of each length
BATCH = 10  # calls between two events


def tensors(s: int, heads: int, d: int, device: str, tokens: int) -> List[torch.Tensor]:
    """q, k, v as [b, s, h, d] in bfloat16."""
    return [torch.randn(max(1, tokens // s), s, heads, d, device=device, dtype=torch.bfloat16) for _ in range(3)]


def of_torch(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """PyTorch's attention, whose layout is [b, h, s, d]."""
    a, b, c = (x.transpose(1, 2) for x in (q, k, v))
    return torch.nn.functional.scaled_dot_product_attention(a, b, c, is_causal=causal).transpose(1, 2)


def seconds(call: Callable[[], object], samples: int = 15) -> float:
    """Of one call on the GPU: the median of `samples` batches, after one that does not count."""
    event: Callable[..., torch.cuda.Event] = torch.cuda.Event
    times: List[float] = []
    for _ in range(samples + 1):
        start, end = event(enable_timing=True), event(enable_timing=True)
        start.record()
        for _ in range(BATCH):
            call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3 / BATCH)
    return statistics.median(times[1:])


def largest_error(out: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> float:
    """Against PyTorch in float32."""
    return float((out.float() - of_torch(q.float(), k.float(), v.float(), causal)).abs().max())


def plot(file: str, lengths: List[int], rates: Dict[str, List[float]], title: str) -> None:
    import matplotlib  # type: ignore[import-not-found,unused-ignore]
    matplotlib.use("Agg")
    from matplotlib import pyplot  # type: ignore[import-not-found,unused-ignore]
    figure, axes = pyplot.subplots(figsize=(6, 4))
    for name, values in rates.items():
        axes.plot(lengths, values, marker="o", label=name)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("length")
    axes.set_ylabel("TFLOP/s")
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.legend()
    figure.savefig(file, bbox_inches="tight")
    print(f"{file} is written")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--d", type=int, default=128)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--lengths", default="1024,2048,4096,8192")
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--tune", type=float, default=0, metavar="SECONDS", help="search first, so long for each length")
    parser.add_argument("--plot", metavar="FILE")
    parser.add_argument("--device", help="sim:sm_90a or sim:sm_80: on the simulator, on the CPU")
    a = parser.parse_args()
    if a.device:
        q, k, v = tensors(64, 2, a.d, "cpu", 64)
        with fagen.simulator(a.device), torch.no_grad():
            print(fagen.explain(q, k, v, causal=a.causal))
            print(f"largest error: {largest_error(fagen.attention(q, k, v, causal=a.causal), q, k, v, a.causal):.2g}")
        return
    lengths = [int(n) for n in a.lengths.split(",")]
    rates: Dict[str, List[float]] = {"fagen": [], "torch": []}
    for s in lengths:
        q, k, v = tensors(s, a.heads, a.d, "cuda", TOKENS)
        problem = fagen.Problem(dtype="bfloat16", d=a.d, causal=a.causal, b=q.shape[0], hq=a.heads, hkv=a.heads, sq=s, sk=s)
        if a.tune:
            fagen.tune(problem, seconds=a.tune, progress=lambda line, done: print(f"{done:4.0%} {line}"))
        print(fagen.explain(q, k, v, causal=a.causal))
        flops = 4 * q.shape[0] * a.heads * s * s * a.d / (2 if a.causal else 1)
        with torch.no_grad():
            error = largest_error(fagen.attention(q, k, v, causal=a.causal), q, k, v, a.causal)
            rates["fagen"].append(flops / seconds(lambda: fagen.attention(q, k, v, causal=a.causal)) / 1e12)
            rates["torch"].append(flops / seconds(lambda: of_torch(q, k, v, a.causal)) / 1e12)
        print(f"length {s}: fagen {rates['fagen'][-1]:.0f} TFLOP/s, torch {rates['torch'][-1]:.0f}; largest error {error:.2g}\n")
    if a.plot:
        plot(a.plot, lengths, rates, f"{torch.cuda.get_device_name()}, bfloat16, d={a.d}, {'causal' if a.causal else 'no mask'}")


if __name__ == "__main__":
    main()
