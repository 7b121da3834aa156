#!/usr/bin/env python3
"""The kernels that masks of score programs run before attention: their times by PyTorch's profiler, and the rate at which they read.

    python3 bench/prepass.py [--masks documents,matrix_u8,matrix] [--length 16384] [--head-dim 128] [--launches 20]

Masks are those of bench/masks.py. The rate is that of the operands' own bytes, each once, beside a copy of 1 GiB on the same chip, which
reads as much as it writes; also with the time taken off that a kernel of one element has. `before attention` is from the begin of the first
of these kernels to the end of the last: a later one may begin early, and its time has the wait.
"""
import argparse
import collections
import math
import statistics

import masks
import scores


def bytes_of(x):
    """Of a tensor's elements, each once where it is expanded."""
    return x.element_size() * math.prod(n for n, step in zip(x.shape, x.stride()) if step)


def copy_rate():
    """Bytes a second that a copy reads."""
    import torch
    a, b = (torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in "ab")
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(5):
        begin.record()
        b.copy_(a)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return 2 * a.numel() / min(times)


def profiled(run, launches):
    """{name: [(begin, end)]} in microseconds, of the kernels of so many runs."""
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as kept:
        for _ in range(launches):
            run()
            torch.cuda.synchronize()  # else the first kernel begins beside the launch before, and its time has the wait for it
    found = collections.defaultdict(list)
    for event in kept.events():
        if event.device_type == DeviceType.CUDA:
            found[event.name].append((event.time_range.start, event.time_range.end))
    return {name: sorted(spans) for name, spans in found.items()}


def lasted(spans):
    return statistics.median(end - begin for begin, end in spans)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--masks", default="documents,matrix_u8,matrix")
    p.add_argument("--length", type=int, default=16384)
    p.add_argument("--head-dim", type=int, default=128)
    p.add_argument("--launches", type=int, default=20)
    o = p.parse_args()
    from common import fagen
    import torch
    fa, rate = fagen.Fagen(), copy_rate()
    one = torch.zeros(1, device="cuda")
    least = min(lasted(spans) for spans in profiled(lambda: one.add_(1), o.launches).values())
    print(f"{torch.cuda.get_device_name()}, a copy moves {rate * 1e-12:.2f} TB/s, a kernel of one element takes {least:.1f} us")
    d, n = o.head_dim, o.length
    h, b = scores.WIDTH // d, max(1, scores.TOKENS // n)
    q, k, v = (torch.randn(b, n, h, d, device="cuda", dtype=torch.bfloat16) for _ in "qkv")
    for name in o.masks.split(","):
        values = masks.MASKS[name][0](b, h, n)
        size = sum(bytes_of(getattr(x, "words", x)) for x in values)
        out = torch.empty_like(q[:, :masks.queries_of(name, n)])
        args = fa.args(q[:, :masks.queries_of(name, n)], k, v, out, fagen.MASKS["none"], score=fa.score(masks.text_of(name)), values=values)
        space = fa.give_workspace(args)
        found = {kernel: spans for kernel, spans in profiled(lambda: fa.launch(args), o.launches).items() if kernel.startswith("fa_")}
        for kernel, spans in found.items():
            took, read = lasted(spans), ""
            if kernel == "fa_mask_tables":
                of = [size / t * 1e6 / rate for t in (took, max(took - least, 0.1))]
                read = f", {size / 1e6:.2f} MB at {size / took * 1e-6:.2f} TB/s, {of[0]:.2f} of the copy, {of[1]:.2f} after a launch"
            print(f"{name:10} {kernel:16} {took:8.1f} us{read}", flush=True)
        before = [spans for kernel, spans in found.items() if kernel.startswith("fa_mask")]
        if before:
            spans = [(min(x[0] for x in launch), max(x[1] for x in launch)) for launch in zip(*before)]
            print(f"{name:10} before attention {lasted(spans):8.1f} us", flush=True)
        del space


if __name__ == "__main__":
    main()
