#!/usr/bin/env python3
"""Configs of fp8_wgmma raced for each cell, beside fagen's bf16 and cuDNN's fp8: each is pinned, captured in a CUDA graph, held against
attention in fp64, then all are timed in turns.

    python3 bench/races/fp8_race.py -o race.json                       the published cells
    python3 bench/races/fp8_race.py --shape 128,3,20,20,2500,causal    a shape: d,b,hq,hkv,n,mask; repeat for more
    python3 bench/winners.py --chip 'NVIDIA H200' race.json      the rows of runtime/choose/defaults.inc
"""
import argparse
import json
import os
import statistics
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, whose modules these are

import torch
import fagen
import fp8
from common.config_text import expand

TAIL = "q_bufs=1,grid=persistent,sections=1,cluster=1,rescale=always"
HOW = "schedule=plain|exponents,overlap=in_turn"
AHEAD = "schedule=plain|exponents,overlap=sums_ahead"
BEFORE = f"stages_k=2,stages_v=2,stages_t=1,{TAIL}"  # V is transposed before
ONES = f"{BEFORE},row_sums=multiplied,transpose=before,exp=looked_up|halved|quartered"
CONFIGS = {
    64: [f"br=192,ctas=1,feeder=32,schedule=plain|pingpong,overlap=in_turn,bc=192,sums=1,box=64,stages_k=2|3,stages_v=2,stages_t=2,{TAIL}",
         f"br=192,ctas=1,feeder=32,schedule=plain,overlap=in_turn,bc=192,sums=1,box=64,{ONES}"],
    128: [f"br=192,ctas=1,feeder=32,{HOW},bc=128,sums=2,box=128,stages_k=2,stages_v=2,stages_t=2,{TAIL}",
          f"br=128,ctas=1,feeder=24,schedule=exponents,overlap=in_turn|split,bc=256,sums=1,box=128,{ONES}"],
    256: [f"br=128,ctas=1,feeder=40,{AHEAD},bc=128,sums=4,box=128,stages_k=2,stages_v=1,stages_t=2,{TAIL}",
          f"br=128,ctas=1,feeder=24,{HOW},bc=192,sums=2,box=128,{BEFORE},transpose=before",
          f"br=128,ctas=1,feeder=24,{AHEAD},bc=160,sums=4,box=128,{BEFORE},transpose=before"],
}


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--d", default="64,128,256", help="head_dims (default 64,128,256)")
    p.add_argument("--n", default="4096,16384", help="lengths (default 4096,16384)")
    p.add_argument("--masks", default="none,causal", help="masks (default none,causal)")
    p.add_argument("--heads", type=int, default=16, help="query heads, and of K and V (default 16)")
    p.add_argument("--tokens", type=int, default=16384, help="tokens of a batch (default 16384)")
    p.add_argument("--shape", action="append", default=[], metavar="D,B,HQ,HKV,N,MASK", help="shapes in place of --d, --n and --masks")
    p.add_argument("--config", action="append", default=[], help="configs in place of the head_dim's; a value may be a choice, a|b")
    p.add_argument("--templates", action="append", default=[], help="a folder of templates that goes before the library's; repeat")
    p.add_argument("--peak", type=float, default=1.0, help="what Q is multiplied by (default 1): scores are as much further apart")
    p.add_argument("--left", type=int, default=8, help="configs that are timed to the end, the fastest of one round (default 8)")
    p.add_argument("--rounds", type=int, default=9, help="of those (default 9)")
    p.add_argument("--anyway", action="store_true", help="what is wrong is timed, too: pieces of templates left out")
    p.add_argument("--chosen", action="store_true", help="only what fa_launch chooses")
    p.add_argument("--threads", type=int, default=min(24, os.cpu_count()), help="that compile")
    p.add_argument("-o", "--output", help="a JSON file, which bench/winners.py reads")
    return p.parse_args(argv)


def cells(o):
    if o.shape:
        for text in o.shape:
            *numbers, mask = text.split(",")
            yield (*map(int, numbers), mask)
        return
    for d in map(int, o.d.split(",")):
        for n in map(int, o.n.split(",")):
            for mask in o.masks.split(","):
                yield d, max(1, o.tokens // n), o.heads, o.heads, n, mask


def tensors(b, n, hq, hkv, d, peak):
    g = torch.Generator(device="cuda").manual_seed(1)
    q, k, v = (torch.randn(b, n, h, d, device="cuda", generator=g, dtype=torch.float16) for h in (hq, hkv, hkv))
    return [x.to(torch.float8_e4m3fn) for x in (peak * q, k, v)]


def problem(d, b, hq, hkv, n, mask):
    return fagen.Problem("float8_e4m3fn", d, d, causal=mask == "causal", out_dtype="bfloat16", b=b, hq=hq, hkv=hkv, sq=n, sk=n)


def compiled(p, configs, threads, templates):
    """The configs that compile here; those refused are told once each."""
    own, local = [], threading.local()

    def one(config):
        if not hasattr(local, "context"):
            local.context = fagen.Context("cuda:0", template_dir=templates)
            own.append(local.context)
        try:
            fagen.pin(p, config=config, device=local.context)
            return config, None
        except fagen.FagenError as e:
            return config, str(e)
    with ThreadPoolExecutor(threads) as pool:
        told = list(pool.map(one, configs))
    for context in own:
        context.close()
    refused = {}
    for config, why in told:
        if why:
            refused.setdefault(why.split("constraint")[-1][:110], []).append(config)
    for why, some in refused.items():
        print(f"  {len(some)} refused: {why}", flush=True)
    return [config for config, why in told if not why]


def graph(call, times):
    call()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g, capture_error_mode="thread_local"):
        for _ in range(times):
            call()
    return g


class Calls:
    """In the place of a graph where a capture failed."""

    def __init__(self, call, times):
        self.call, self.times = call, times

    def replay(self):
        for _ in range(self.times):
            self.call()


def race(cell, o, cudnn, sides, out):
    d, b, hq, hkv, n, mask = cell
    causal, p = mask == "causal", problem(*cell)
    q, k, v = tensors(b, n, hq, hkv, d, o.peak)
    at = torch.randint(0, n, (fp8.ROWS,), device="cuda")
    right = fp8.right_of(q, k, v, causal, at)
    work = 4 * b * hq * n * n * d / (2 if causal else 1)
    times = max(1, int(2e-3 * 700e12 / work))
    asked = [] if o.chosen else [t.removeprefix("fp8_wgmma:") for t in o.config or CONFIGS[d]]
    texts = list(dict.fromkeys(c for t in asked for c in expand("fp8_wgmma:" + t)))
    runs, o8 = {}, torch.empty(b, n, hq, d, dtype=torch.bfloat16, device="cuda")

    def add(name, call, got, **more):
        try:
            made = graph(call, times)
        except Exception as e:  # a peer raises its own kinds
            print(f"  {name}: {str(e).splitlines()[0][:150]}", flush=True)
            made = Calls(call, times)
        made.replay()
        torch.cuda.synchronize()
        error = fp8.errors(got(), right, at)["rms_error"]
        if error > .08 and not o.anyway:
            print(f"  WRONG, error {error:.3f}: {name}")
        else:
            runs[name] = {"graph": made, "error": error, "seconds": [], **more}

    def ours(context=None):
        return lambda: fagen.attention(q, k, v, causal=causal, out=o8, device=context)
    add("chosen", ours(), lambda: o8, peer=True)
    for templates, context in sides.items():
        for config in compiled(p, texts, o.threads, templates):
            fagen.pin(p, config=config, device=context)
            add(f"{templates} {config}" if templates else config, ours(context), lambda: o8, side=(config, context))
        fagen.unpin(device=context)
    wide, o16 = [t.to(torch.bfloat16) for t in (q, k, v)], torch.empty_like(o8)
    add("bf16", lambda: fagen.attention(*wide, causal=causal, out=o16), lambda: o16, peer=True)
    if cudnn:
        try:
            run, got, keep = cudnn.build(q, k, v, causal)

            def call():
                cudnn.cudnn.set_stream(handle=cudnn.handle, stream=torch.cuda.current_stream().cuda_stream)
                run()
            add("cudnn", call, lambda: got.view(torch.float8_e4m3fn).float(), peer=True, keep=keep)
        except Exception as e:
            print(f"  cudnn: {str(e).splitlines()[0][:150]}")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def rounds(names, count):
        for i in range(count):
            turn = i % len(names)
            for name in names[turn:] + names[:turn]:
                if isinstance(runs[name]["graph"], Calls) and not runs[name].get("peer"):
                    config, context = runs[name]["side"]
                    fagen.pin(p, config=config, device=context)
                begin.record()
                runs[name]["graph"].replay()
                end.record()
                end.synchronize()
                runs[name]["seconds"].append(begin.elapsed_time(end) * 1e-3 / times)
    rounds(list(runs), 2)
    fastest = sorted((name for name in runs if not runs[name].get("peer")), key=lambda x: min(runs[x]["seconds"]))[:o.left]
    last = fastest + [name for name in runs if runs[name].get("peer")]
    for name in last:
        runs[name]["seconds"].clear()
    rounds(last, o.rounds)
    middle = {name: statistics.median(runs[name]["seconds"]) for name in last}
    print(f"d {d} b {b} heads {hq}/{hkv} n {n} {mask}: {len(runs)} raced", flush=True)
    for name in sorted(last, key=middle.get):
        print(f"  {work / middle[name] / 1e12:7.1f} TFLOP/s {middle[name] * 1e6:9.1f} us  error {runs[name]['error']:.4f}  "
              + name.replace("fp8_wgmma:", "").removesuffix("," + TAIL), flush=True)
    if "cudnn" in middle and fastest:
        best = min(middle[x] for x in fastest)
        print(f"  best over cudnn {middle['cudnn'] / best:.3f}, over bf16 {middle['bf16'] / best:.3f}", flush=True)
    out.append({"problem": fagen.problem_text(q, k, v, causal=causal, out_dtype="bfloat16"),
                "variants": [{"config": x, "seconds": runs[x]["seconds"], "error": runs[x]["error"],
                              **({"peer": True} if runs[x].get("peer") else {})} for x in last]})


def main(argv=None):
    o, out = parse(argv), []
    try:
        cudnn = fp8.Cudnn()
    except Exception as e:  # no package, or one that does not fit
        cudnn = None
        print(f"cudnn is not there: {e}", file=sys.stderr)
    print(torch.cuda.get_device_name(), flush=True)
    sides = {None: None, **{templates: fagen.Context("cuda:0", template_dir=templates) for templates in o.templates}}
    for cell in cells(o):
        race(cell, o, cudnn, sides, out)
        if o.output:
            with open(o.output, "w") as f:
                json.dump(out, f, indent=1)


if __name__ == "__main__":
    main()
