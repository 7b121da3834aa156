#!/usr/bin/env python3
"""What `fagen-dev judge --draw` lists, raced on this GPU: of each shape the cheapest candidates and some random configs.

    fagen-dev judge --draw few --shapes 14 --seed 33 --random 12 --arch h100 --json > few.json           anywhere
    python3 bench/choice.py few.json --candidates 12 --random 8 --seconds 110 -o h100.json               on the GPU
    fagen-dev judge --arch h100 h100.json                                                                anywhere

Calls are CUDA graphs, sampled in turns, forward and back; a time is the median over the rounds. Nothing is checked: verify does that.
"""
import argparse
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import cells


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("drawn", nargs="+", help="what judge --draw --json printed")
    p.add_argument("--candidates", type=int, default=8, help="of each shape, the cheapest by their price (default 8)")
    p.add_argument("--random", type=int, default=8, help="random configs of each shape (default 8)")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=240, help="of races; what is left out then is named (default 240)")
    p.add_argument("-o", "--json", required=True, help="the recording, as variants.py writes it")
    return p.parse_args(argv)


def shapes_of(o):
    out = []
    for path in o.drawn:
        with open(path) as f:
            for shape in json.load(f)["shapes"]:
                out.append((shape["problem"], list(dict.fromkeys(shape["candidates"][:o.candidates] + shape["random"][:o.random]))))
    return out


def compile_all(fa, fagen, shapes):
    def make(job):
        text, config = job
        cell = cells.parse(text)
        problem = fa.problem(**{n: getattr(cell, n) for n in ("dtype", "mask", "d", "dv", "b", "hq", "hkv", "sq", "sk")}, op=fagen.FORWARD)
        try:
            return fa.plan(problem, fa.pick(problem, config))
        except fagen.Error as e:
            return str(e)
    jobs = [(text, config) for text, configs in shapes for config in configs]
    with ThreadPoolExecutor(16) as pool:
        return dict(zip(jobs, pool.map(make, jobs)))


def race(fa, fagen, text, plans, rounds):
    import graphs
    import torch
    c = cells.parse(text)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[c.dtype]
    q, k, v, o = (torch.randn(c.b, s, h, d, device="cuda", dtype=kind) for s, h, d in
                  ((c.sq, c.hq, c.d), (c.sk, c.hkv, c.d), (c.sk, c.hkv, c.dv), (c.sq, c.hq, c.dv)))
    args = fa.args(q, k, v, o, fagen.MASKS[c.mask], diagonal=fagen.DIAGONALS[c.diagonal])
    spaces, runs, rows = [], {}, []
    for config, plan in plans.items():
        if isinstance(plan, str):
            rows.append({"config": config, "why": plan})
            continue
        spaces.append(fa.give_workspace(args, plan))

        def run(_, plan=plan, at=args.workspace, size=args.workspace_size):
            args.workspace, args.workspace_size = at, size
            fa.launch(args, plan)
            return [o]
        runs[config] = graphs.capture(run, lasts=2e-3)
    samples = {config: [] for config in runs}
    for n in range(rounds + 1):
        for config in list(runs)[::-1 if n % 2 else 1]:
            samples[config].append(runs[config].sample())
    return rows + [{"config": config, "seconds": s[1:]} for config, s in samples.items()]  # the first round settles the clock


def main():
    o = parse()
    import fagen
    import torch
    import tournament
    fa, shapes = fagen.Fagen(lever=True), shapes_of(o)
    made = compile_all(fa, fagen, shapes)
    tournament.warm_up()
    begun, out, left_out = time.monotonic(), [], []
    for text, configs in shapes:
        if time.monotonic() - begun > o.seconds:
            left_out.append(text)
            continue
        rows = race(fa, fagen, text, {c: made[text, c] for c in configs}, o.rounds)
        out.append({"problem": text, "device": torch.cuda.get_device_name(), "variants": rows})
        times = {r["config"]: statistics.median(r["seconds"]) for r in rows if "seconds" in r}
        first = times.get(configs[0])
        print(f"{text:100} {min(times.values()) * 1e6:9.1f} us" + (f", chosen {first / min(times.values()):.3f} times that" if first else ""),
              flush=True)
    with open(o.json, "w") as f:
        json.dump(out, f, indent=1)
    if left_out:
        print(f"no time for {len(left_out)}: {', '.join(left_out)}")


if __name__ == "__main__":
    main()
