#!/usr/bin/env python3
"""What `fagen-dev judge --draw` lists, raced on this GPU: of each shape the cheapest candidates, some random configs and the peers.

    fagen-dev judge --draw few --shapes 14 --seed 33 --random 12 --arch h100 --json > few.json           anywhere
    python3 bench/choice.py few.json --candidates 12 --random 8 --seconds 110 -o h100.json               on the GPU
    fagen-dev judge --arch h100 h100.json                                                                anywhere
Gradients (--draw gradients) are raced without peers, which bench/backward.py --off-grid has.

What is chosen beside the peers, of the sets of 100 shapes that it is held to, and beside itself without a workspace:

    for kind in few-queries unequal-lengths; do fagen-dev judge --draw $kind --shapes 100 --seed 35 --random 0 --json > $kind.json; done
    python3 bench/choice.py few-queries.json --candidates 1 --random 0 --peers cudnn,fa2,fa3,fa3kv -o raced.json
    python3 bench/choice.py few-queries.json --lent --rounds 9 -o lent.json
    python3 bench/choice_report.py raced.json
Beside a workspace of the call's own --lent has another one, which says what noise and the memory's place do, the context's, and none;
then the first and the context's again, launched one by one (singly).

Calls are CUDA graphs, sampled in turns, each round in an order that is drawn, each behind some milliseconds of its own; a time is the
median over the rounds. Kernels are compiled while earlier shapes run. All run two rounds; what is then slower than the best by --keep
leaves, but for the first candidate and the peers. O of every contender is held beside that of the first: what differs is named, and no time
of it counts.
"""
import argparse
import json
import math
import random
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from choice_report import BESIDE
from common import cells

CONTEXT = 10  # shapes to a context: the captured launches of a context keep words of its memory as long as it lives
APART = 0.02  # of the norm of O: 16-bit rounding is some 0.003, a wrong tile far more
# Seconds of a contender's own launches before its sample. At its power limit a chip has the clock that the kernel before left it: on an H200
# launches of some ms took 0.83 of their time behind FlashAttention-2, and in a fixed order one contender has that neighbour always.
LEAD = 4e-3


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("drawn", nargs="+", help="what judge --draw --json printed")
    p.add_argument("--candidates", type=int, default=8, help="of each shape, the cheapest by their price (default 8)")
    p.add_argument("--random", type=int, default=8, help="random configs of each shape (default 8)")
    p.add_argument("--peers", default="", help="raced beside them, as cudnn,fa2,fa3,fa3kv")
    p.add_argument("--lent", action="store_true", help="in the place of all that: what fa_launch() chooses with a workspace of the "
                   "call's own, with another of its own, with one that the context lends, and with none")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--keep", type=float, default=1.25,
                   help="configs slower than the best by this factor leave after two rounds (default 1.25)")
    p.add_argument("--seconds", type=float, default=240, help="of races; what is left out then is named (default 240)")
    p.add_argument("--lock", metavar="FILE", help="races while no other process does that has this file")
    p.add_argument("-o", "--json", required=True, help="the recording, as variants.py writes it")
    return p.parse_args(argv)


def shapes_of(o):
    """[(problem, configs)]: the kinds in turns, so that a race that ends early has some of each."""
    kinds = []
    for path in o.drawn:
        with open(path) as f:
            kinds.append([(s["problem"], list(dict.fromkeys(s["candidates"][:o.candidates] + s["random"][:o.random])))
                          for s in json.load(f)["shapes"]])
    return [kind[i] for i in range(max(map(len, kinds))) for kind in kinds if i < len(kind)]


def backward(text):
    return ",op=backward" in text


def cell_of(text):
    return cells.parse(",".join(w for w in text.split(",") if not w.startswith(("op=", "grad="))))


def compiled(fa, fagen, job):
    """The plan of a config, or why there is none."""
    text, config = job
    cell = cell_of(text)
    problem = fa.problem(**{n: getattr(cell, n) for n in ("dtype", "mask", "d", "dv", "b", "hq", "hkv", "sq", "sk")},
                         op=fagen.BACKWARD if backward(text) else fagen.FORWARD)
    try:
        return fa.plan(problem, fa.pick(problem, config))
    except fagen.Error as e:
        return str(e)


def peer_runs(cell, names, q, k, v):
    """{name: call} of the peers that take the cell, and {name: why} of the others. All are told of a bottom-right diagonal."""
    import torch
    from sections import decode_peers
    from sections import prompts_peers
    causal, runs, why = cell.mask == "causal", {}, {}
    for name in names:
        try:
            if name == "fa2":  # PyTorch's copy by its own entry: it groups heads, splits keys, and its causal mask is bottom-right
                def run(_):
                    return torch.ops.aten._flash_attention_forward(q, k, v, None, None, cell.sq, cell.sk, 0.0, causal, False)[0]
            elif name == "cudnn":
                run = prompts_peers.PEERS[name]().dense(cell, [(q, k, v)])
            else:
                run = fa3_run(decode_peers.PEERS[name](), name, q, k, v, causal)
            run(0)
            runs[name] = run
        except Exception as e:  # whatever a peer raises is why it is not in the race
            why[name] = str(e).splitlines()[0][:120] if str(e) else type(e).__name__
    return runs, why


def fa3_run(peer, name, q, k, v, causal):
    import torch
    from sections.decode_peers import first
    if peer.available():
        raise RuntimeError(peer.available())
    if name == "fa3":
        return lambda _: first(peer.module.flash_attn_func(q, k, v, causal=causal, num_splits=0))
    whole = torch.full((k.shape[0],), k.shape[1], dtype=torch.int32, device=k.device)
    return lambda _: first(peer.module.flash_attn_with_kvcache(q, k, v, cache_seqlens=whole, causal=causal, num_splits=0))


def tensors(text):
    import torch
    c = cell_of(text)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[c.dtype]
    q, k, v, out = (torch.randn(c.b, s, h, d, device="cuda", dtype=kind) for s, h, d in
                    ((c.sq, c.hq, c.d), (c.sk, c.hkv, c.d), (c.sk, c.hkv, c.dv), (c.sq, c.hq, c.dv)))
    return c, q, k, v, out


def prepared(fa, lean, fagen, text):
    """Compiles what fa_launch() chooses with a workspace and without one: launches find it, or say why there is none."""
    cell = cell_of(text)
    for by, features in ((fa, 0), (lean, fagen.abi.FA_FEATURE_NO_WORKSPACE)):
        try:
            by.prepare(fa.problem(**{n: getattr(cell, n) for n in ("dtype", "mask", "d", "dv", "b", "hq", "hkv", "sq", "sk")},
                                  features=features))
        except fagen.Error:
            pass


def singly(run, seconds):
    """Seconds of a call among as many as last some milliseconds, launched one by one."""
    import torch
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    calls = max(8, math.ceil(LEAD / seconds))
    for _ in range(calls // 4):
        run(0)
    start.record()
    for _ in range(calls):
        run(0)
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / calls


def race_lent(fa, lean, fagen, text, config, o):
    """The same launch with a workspace of its own, with another, and with none, captured, in turns, and what a context that lends none runs
    in their place. The first launch of a stream is not in it."""
    from common import graphs
    c, q, k, v, out = tensors(text)
    args = fa.args(q, k, v, out, fagen.MASKS[c.mask], diagonal=fagen.DIAGONALS[c.diagonal])
    spaces = [(fa.give_workspace(args), args.workspace, args.workspace_size) for _ in range(2)]  # kept until the graphs are gone
    own, another = ((at, size) for _, at, size in spaces)
    runs, made, results, rows = {}, {}, {}, []
    for name, by, at in (("own", fa, own), ("another", fa, another), ("lent", fa, (None, 0)), ("none", lean, (None, 0))):
        def run(_, by=by, at=at):
            args.workspace, args.workspace_size = at
            by.launch(args)
            return out
        runs[name], results[name] = run, run(0).clone()
        made[name] = graphs.capture(run, lasts=1e-3)
    if not results["own"].equal(results["lent"]):
        rows.append({"config": config, "why": "O differs without a workspace"})
    apart = ((results["none"].float() - results["own"].float()).norm() / results["own"].float().norm()).item()
    if not apart <= APART:
        rows.append({"config": config, "why": f"O of a context that lends none differs by {apart:.3g} of its norm"})
    samples, names, draw = {name: [] for name in made}, list(made), random.Random(text)
    for _ in range(o.rounds + 1):
        draw.shuffle(names)
        for name in names:
            samples[name].append(sample(made[name], samples[name]))
    for name in ("own", "lent"):
        samples[f"{name} singly"] = []
    for _ in range(o.rounds + 1):
        for name in ("own", "lent"):
            samples[f"{name} singly"].append(singly(runs[name], samples[name][-1]))
    del spaces
    return rows + [{"config": config, "workspace": name, "bytes": own[1] or 0, "seconds": s[1:]} for name, s in samples.items()]


def call(fa, fagen, text):
    """The arguments of the launch, what it writes, and q, k, v."""
    import torch
    c, q, k, v, out = tensors(text)
    how = {"mask": fagen.MASKS[c.mask], "diagonal": fagen.DIAGONALS[c.diagonal]}
    if not backward(text):
        return c, fa.args(q, k, v, out, **how), [out], (q, k, v)
    saved = torch.ops.aten._flash_attention_forward(q, k, v, None, None, c.sq, c.sk, 0.0, c.mask == "causal", False)
    grads = [torch.empty_like(t) for t in (q, k, v)]
    return c, fa.gradient_args(q, k, v, saved[0], saved[1], out.normal_(), *grads, **how), grads, (q, k, v, out, saved)


def sample(graph, before):
    """Seconds of a call, behind LEAD seconds of the same; before: what it took so far. sample() itself leads with one replay."""
    for _ in range(math.ceil(LEAD / (before[-1] * graph.calls)) - 1 if before else 0):
        graph.replay()
    return graph.sample()


def race(fa, fagen, text, plans, o):
    from common import graphs
    import torch
    c, args, outs, given = call(fa, fagen, text)
    q, k, v = given[:3]
    spaces, runs, rows = [], {}, []
    for config, plan in plans.items():
        if isinstance(plan, str):
            rows.append({"config": config, "why": plan})
            continue
        spaces.append(fa.give_workspace(args, plan))

        def run(_, plan=plan, at=args.workspace, size=args.workspace_size):
            args.workspace, args.workspace_size = at, size
            fa.launch(args, plan)
            return outs[0]
        runs[config] = run
    peers, why = peer_runs(c, o.peers.split(",") if o.peers else [], q, k, v)
    rows += [{"peer": name, "why": reason} for name, reason in why.items()]
    made, truth = {}, None
    for name, run in {**runs, **peers}.items():
        written = run(0)
        result = torch.cat([t.float().flatten() for t in ([written] if name in peers else outs)])
        truth = result if truth is None else truth
        apart = ((result - truth).norm() / truth.norm()).item()
        if apart <= APART:
            made[name] = graphs.capture(run, lasts=1e-3)
        else:
            rows.append({"peer" if name in peers else "config": name, "why": f"O differs by {apart:.3g} of its norm"})
    samples, left, first, draw = {name: [] for name in made}, list(made), next(iter(runs)), random.Random(text)
    for n in range(o.rounds + 1):
        draw.shuffle(left)
        for name in left:
            samples[name].append(sample(made[name], samples[name]))
        if n == 1:
            best = min(min(samples[name]) for name in left if name in runs)
            left = [name for name in left if name in peers or name == first or min(samples[name]) <= o.keep * best]
    return rows + [{"peer" if name in peers else "config": name, "seconds": s[1:]} for name, s in samples.items()]  # round 0: the clock settles


def told_lent(text, rows):
    at = {r["workspace"]: statistics.median(r["seconds"]) for r in rows if "seconds" in r}
    beside = {name: at[name] / at[own] for name, own in BESIDE.items() if name in at}
    line = f"{text:96} {at['own'] * 1e6:9.1f} us" + "".join(f", {name} {x:.3f} times that" for name, x in beside.items())
    return line + "".join(f"\n    {r['why']}" for r in rows if "why" in r)


def told(text, rows, first):
    times = {r.get("config") or r["peer"]: statistics.median(r["seconds"]) for r in rows if "seconds" in r}
    ours = {r["config"]: times[r["config"]] for r in rows if r.get("config") in times}
    peers = {r["peer"]: times[r["peer"]] for r in rows if r.get("peer") in times}
    line = f"{text:96} {min(ours.values()) * 1e6:9.1f} us"
    if first in ours:
        line += f", chosen {ours[first] / min(ours.values()):.3f} times that"
    if peers:
        best = min(peers, key=peers.get)
        line += f", best peer {best} {peers[best] * 1e6:.1f} us"
    return line + "".join(f"\n    {r.get('config') or r['peer']}: {r['why']}" for r in rows if "differs" in r.get("why", ""))


def main():
    o = parse()
    from common import fagen
    import torch
    from common import tournament
    from common.alone import alone
    shapes, pool = shapes_of(o), ThreadPoolExecutor(16)
    contexts = [fagen.Fagen(lever=True) for _ in range(0, len(shapes), CONTEXT)]
    lean = [fagen.Fagen(lever=True, lends=False) for _ in contexts] if o.lent else []
    made = {} if o.lent else {(text, c): pool.submit(compiled, contexts[i // CONTEXT], fagen, (text, c))
                              for i, (text, configs) in enumerate(shapes) for c in configs}
    ready = [pool.submit(prepared, contexts[i // CONTEXT], lean[i // CONTEXT], fagen, text) for i, (text, _) in enumerate(shapes) if o.lent]
    tournament.warm_up()
    begun, out, left_out = time.monotonic(), [], []
    for i, (text, configs) in enumerate(shapes):
        if time.monotonic() - begun > o.seconds:
            left_out.append(text)
            continue
        fa = contexts[i // CONTEXT]
        if o.lent:
            ready[i].result()
            with alone(o.lock):
                rows = race_lent(fa, lean[i // CONTEXT], fagen, text, configs[0], o)
        else:
            plans = {c: made[text, c].result() for c in configs}
            with alone(o.lock):
                rows = race(fa, fagen, text, plans, o)
        out.append({"problem": text, "device": torch.cuda.get_device_name(), "chosen": configs[0], "variants": rows})
        print(told_lent(text, rows) if o.lent else told(text, rows, configs[0]), flush=True)
        with open(o.json, "w") as f:
            json.dump(out, f, indent=1)
    pool.shutdown(cancel_futures=True)
    if left_out:
        print(f"no time for {len(left_out)}: {', '.join(left_out)}")


if __name__ == "__main__":
    main()
