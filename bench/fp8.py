#!/usr/bin/env python3
"""Attention of Q, K and V in e4m3 beside fagen's own bf16 and cuDNN's fp8 (the package nvidia-cudnn-frontend, where it is there), in one
run.

Each case times its contenders in turns, and each output is held against attention in fp64 over the same numbers, of some query rows. The
gains are <O, right> / <right, right> for V of mean 1: sums that lose what many keys bring are below 1.

    python3 bench/fp8.py -o fp8.json
    python3 bench/fp8.py --d 128 --n 16384 --seconds 20
    python3 bench/fp8.py --n 16384 --gains none --sustained 1

In turns all contenders have the clock of their mixture, which the chip's power limits. Sustained, each runs alone before it is timed, as one
of a model's many layers does, and has the clock that its own power leaves it.
"""
import argparse
import json
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch

import fagen

ROWS = 64  # query rows that are held against fp64


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--d", default="64,128,256", help="head_dims (default 64,128,256)")
    p.add_argument("--n", default="1024,4096,16384", help="lengths (default 1024,4096,16384)")
    p.add_argument("--masks", default="none,causal", help="masks (default none,causal)")
    p.add_argument("--heads", type=int, default=16, help="query heads, and of K and V (default 16)")
    p.add_argument("--tokens", type=int, default=16384, help="tokens of a batch (default 16384)")
    p.add_argument("--gains", default="1024,16384,131072", help="keys of the table of gains (default 1024,16384,131072); none: no table")
    p.add_argument("--config", action="append", default=[],
                   help="of that table also these configs of fp8_wgmma for d = 128; repeat for more")
    p.add_argument("--seconds", type=float, default=1.0, help="of each case's times (default 1)")
    p.add_argument("--sustained", type=float, default=0.0, metavar="SECONDS",
                   help="also each contender alone for twice as long, and its rate in the second half")
    p.add_argument("-o", "--output", help="a JSON file")
    return p.parse_args(argv)


class Cudnn:
    """cuDNN's attention of 8 bits: O is of 8 bits, too. A graph for each shape and mask."""

    def __init__(self):
        import cudnn
        self.cudnn, self.handle, self.built = cudnn, cudnn.create_handle(), {}

    def build(self, q, k, v, causal):
        c = self.cudnn
        graph = c.pygraph(io_data_type=c.data_type.FP8_E4M3, intermediate_data_type=c.data_type.FLOAT, compute_data_type=c.data_type.FLOAT,
                          handle=self.handle)
        wide = {n: t.view(torch.uint8).transpose(1, 2) for n, t in (("q", q), ("k", k), ("v", v))}  # [b, h, s, d] by strides
        names = {n: graph.tensor(name=n, dim=list(t.shape), stride=list(t.stride()), data_type=c.data_type.FP8_E4M3)
                 for n, t in wide.items()}
        one = torch.ones(1, 1, 1, 1, device=q.device)
        factors = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")
        names.update({n: graph.tensor(name=n, dim=[1, 1, 1, 1], stride=[1, 1, 1, 1], data_type=c.data_type.FLOAT) for n in factors})
        o, _, amax_s, amax_o = graph.sdpa_fp8(**{n: names[n] for n in ("q", "k", "v")}, **{n: names[n] for n in factors}, is_inference=True,
                                              attn_scale=q.shape[3] ** -0.5, use_causal_mask=causal, use_padding_mask=False)
        out = torch.empty(*q.shape[:3], v.shape[3], dtype=torch.uint8, device=q.device)
        o.set_output(True).set_dim(list(out.transpose(1, 2).shape)).set_stride(list(out.transpose(1, 2).stride()))
        o.set_data_type(c.data_type.FP8_E4M3)
        most = [torch.zeros(1, 1, 1, 1, device=q.device) for _ in range(2)]
        for x in (amax_s, amax_o):
            x.set_output(True).set_dim([1, 1, 1, 1]).set_stride([1, 1, 1, 1]).set_data_type(c.data_type.FLOAT)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([c.heur_mode.A, c.heur_mode.FALLBACK])
        graph.check_support()
        graph.build_plans()
        space = torch.empty(max(1, graph.get_workspace_size()), dtype=torch.uint8, device=q.device)
        pack = {names[n]: t for n, t in wide.items()}
        of_p = {"scale_s": 256.0, "descale_s": 1 / 256}
        scales = {n: torch.full_like(one, of_p.get(n, 1.0)) for n in factors}
        pack.update({names[n]: t for n, t in scales.items()})
        pack.update({o: out.transpose(1, 2), amax_s: most[0], amax_o: most[1]})
        return lambda: graph.execute(pack, space, handle=self.handle), out, (wide, scales, most)

    def contender(self, q, k, v, causal):
        run, out, keep = self.build(q, k, v, causal)
        self.cudnn.set_stream(handle=self.handle, stream=torch.cuda.current_stream().cuda_stream)
        return run, lambda: out.view(torch.float8_e4m3fn).float(), keep


def tensors(b, n, h, d, mean, seed):
    """Codes of Q, K and V, N(0, 1), of V about `mean`."""
    g = torch.Generator(device="cuda").manual_seed(seed)
    made = [torch.randn(b, n, h, d, device="cuda", generator=g, dtype=torch.float16) for _ in range(3)]
    made[2] += mean
    return [x.to(torch.float8_e4m3fn) for x in made]


def right_of(q, k, v, causal, rows):
    """Attention in fp64 of the rows of the first sequence's first head."""
    x, y, z = (t[0, :, 0].double() for t in (q, k, v))
    s = x[rows] @ y.T * q.shape[3] ** -0.5
    if causal:
        seen = torch.arange(y.shape[0], device=s.device)[None] <= rows[:, None] + y.shape[0] - x.shape[0]
        s = s.masked_fill(~seen, float("-inf"))
    return s.softmax(-1) @ z


def errors(out, right, rows):
    got = out[0, rows, 0].double()
    rms = (right * right).mean().sqrt()
    return {"rms_error": float(((got - right) ** 2).mean().sqrt() / rms), "gain": float((got * right).sum() / (right * right).sum())}


def contenders(q, k, v, causal, cudnn):
    """(name, a call, its output): those that do not run here are told."""
    out8 = torch.empty(*q.shape[:3], v.shape[3], dtype=torch.bfloat16, device="cuda")
    yield "fagen e4m3", lambda: fagen.attention(q, k, v, causal=causal, out=out8), lambda: out8, None
    by_columns = v.view(torch.uint8).permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2).view(torch.float8_e4m3fn)
    yield "columns", lambda: fagen.attention(q, k, by_columns, causal=causal, out=out8), lambda: out8, by_columns
    wide = [t.to(torch.bfloat16) for t in (q, k, v)]
    out16 = torch.empty_like(out8)
    yield "fagen bf16", lambda: fagen.attention(*wide, causal=causal, out=out16), lambda: out16, wide
    if cudnn is not None:
        try:
            yield ("cudnn e4m3", *cudnn.contender(q, k, v, causal))
        except Exception as e:  # a shape that it does not take raises its own kinds
            print(f"  cudnn e4m3: {str(e).splitlines()[0][:150]}", file=sys.stderr)


def times(calls, seconds):
    """Medians of microseconds, in turns."""
    taken = {name: [] for name in calls}
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    spent = 0.0
    while spent < seconds * 1e3 or min(len(x) for x in taken.values()) < 5:
        for name, call in calls.items():
            begin.record()
            for _ in range(4):
                call()
            end.record()
            end.synchronize()
            taken[name].append(begin.elapsed_time(end) * 250)
            spent += taken[name][-1] / 250
    return {name: statistics.median(x) for name, x in taken.items()}


def alone(call, seconds):
    """Microseconds of a call among others of its kind, after as many of them as take so many seconds."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(2):  # the first half is not counted
        calls, until = 0, time.monotonic() + seconds
        begin.record()
        while time.monotonic() < until:
            for _ in range(8):
                call()
            calls += 8
            if calls % 64 == 0:  # no more of them are queued than end soon
                torch.cuda.current_stream().synchronize()
        end.record()
        end.synchronize()
    return begin.elapsed_time(end) * 1e3 / calls


def prepare(options):
    """Compiles what the table launches, side by side."""
    def one(job):
        d, n, mask, dtype = job
        b, h = max(1, options.tokens // n), options.heads
        fagen.prepare(fagen.Problem(dtype, d, d, causal=mask == "causal", out_dtype="bfloat16", b=b, hq=h, hkv=h, sq=n, sk=n))
    jobs = [(int(d), int(n), mask, dtype) for d in options.d.split(",") for n in options.n.split(",") for mask in options.masks.split(",")
            for dtype in ("float8_e4m3fn", "bfloat16")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, jobs))


def main(argv=None):
    options, rows = parse(argv), []
    try:
        cudnn = Cudnn()
    except Exception as e:  # no package, or one that does not fit
        cudnn = None
        print(f"cudnn e4m3 is not there: {e}", file=sys.stderr)
    print(torch.cuda.get_device_name())
    prepare(options)
    for d in map(int, options.d.split(",")):
        for n in map(int, options.n.split(",")):
            for mask in options.masks.split(","):
                causal, b = mask == "causal", max(1, options.tokens // n)
                q, k, v = tensors(b, n, options.heads, d, 0, 1)
                at = torch.randint(0, n, (ROWS,), device="cuda")
                right = right_of(q, k, v, causal, at)
                found = list(contenders(q, k, v, causal, cudnn))
                for _, call, _, _ in found:
                    call()
                torch.cuda.synchronize()
                row = {"d": d, "n": n, "b": b, "mask": mask, "runs": {name: errors(out(), right, at) for name, _, out, _ in found}}
                work = 4 * b * options.heads * n * n * d / (2 if causal else 1)
                for name, us in times({name: call for name, call, _, _ in found}, options.seconds).items():
                    row["runs"][name].update(us=us, tflops=work / us / 1e6)
                for name, call, _, _ in found if options.sustained else []:
                    row["runs"][name]["sustained_tflops"] = work / alone(call, options.sustained) / 1e6
                rows.append(row)
                told = [f"{name} {x['us']:9.1f} us {x['tflops']:6.1f} TFLOP/s, error {x['rms_error']:.4f}"
                        for name, x in row["runs"].items()]
                print(f"d {d:3} n {n:6} {mask:6} " + "  ".join(told), flush=True)
                if options.sustained:
                    told = [f"{name} {x['sustained_tflops']:6.1f}" for name, x in row["runs"].items()]
                    print("      sustained, TFLOP/s: " + "  ".join(told), flush=True)
                del found
    for keys in [] if options.gains == "none" else map(int, options.gains.split(",")):
        q, k, v = tensors(1, keys, 2, 128, 1, 2)
        q = q[:, :128]
        at = torch.arange(ROWS, device="cuda")
        right = right_of(q, k, v, False, at)
        row = {"gain_of": keys}
        for name, call, out, _ in contenders(q, k, v, False, cudnn):
            call()
            torch.cuda.synchronize()
            row[name] = errors(out(), right, at)["gain"]
        for config in options.config:
            p = fagen.Problem("float8_e4m3fn", 128, 128, out_dtype="bfloat16", b=1, hq=2, hkv=2, sq=128, sk=keys)
            fagen.pin(p, config=config)
            row[config] = errors(fagen.attention(q, k, v, out_dtype="bfloat16"), right, at)["gain"]
            fagen.unpin(p)
        rows.append(row)
        print(f"V of mean 1, {keys} keys: gain " + "  ".join(f"{name} {x:.5f}" for name, x in row.items() if name != "gain_of"), flush=True)
    if options.output:
        with open(options.output, "w") as f:
            json.dump({"device": torch.cuda.get_device_name(), "rows": rows}, f, indent=1)


if __name__ == "__main__":
    main()
