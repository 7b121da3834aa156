#!/usr/bin/env python3
"""Attention with dropout and its gradients on this GPU, beside FlashAttention-2 and cuDNN with the same probability, each with its own
generator; and, where one is named, beside a folder of templates of before.

    python3 bench/races/dropout_race.py [--old old/templates] [--rounds 7] [-o dropout.json]
    python3 bench/races/dropout_race.py --case 128,16,4,2048,causal --p 0.1

Calls are CUDA graphs, sampled in turns, forward and back; a time is the median over the rounds. Forward, backward, and the two together
are held beside the best peer. What the old and the new templates write is held beside each other: their generator is the same.
"""
import argparse
import json
import os
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, whose modules these are

CASES = ((64, 16, 4, 2048, "causal"), (128, 16, 4, 2048, "causal"), (64, 12, 3, 1500, "none"), (128, 20, 2, 1100, "none"),
         (128, 16, 1, 8192, "causal"), (64, 32, 8, 512, "causal"))  # d, heads, batch, length, mask
SEED, OFFSET = 1234, 0


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--case", action="append", default=[], metavar="D,H,B,S,MASK", help="in the place of the six cases of this file")
    p.add_argument("--p", type=float, default=0.1, help="probability of a weight to be dropped (default 0.1)")
    p.add_argument("--old", help="a folder of templates of before")
    p.add_argument("--forward", action="append", default=[], metavar="CONFIG", help="raced beside what is chosen; repeat")
    p.add_argument("--backward", action="append", default=[], metavar="CONFIG", help="the same of the gradients")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("-o", "--json", help="all samples")
    return p.parse_args(argv)


def cases(o):
    for text in o.case:
        *numbers, mask = text.split(",")
        yield (*map(int, numbers), mask)
    if not o.case:
        yield from CASES


def planned(fa, fagen, case, way, config):
    """The plan of a config, or why there is none; config None: what is chosen is prepared."""
    d, heads, b, s, mask = case
    problem = fa.problem(dtype="bf16", mask=mask, d=d, dv=d, b=b, hq=heads, hkv=heads, sq=s, sk=s, features=fagen.abi.FA_FEATURE_DROPOUT,
                         op=fagen.BACKWARD if way == "backward" else fagen.FORWARD)
    try:
        return fa.plan(problem, fa.pick(problem, config)) if config else fa.prepare(problem)
    except fagen.Error as e:
        return str(e)


def ours(fa, fagen, x, mask, p, plans=None):
    """Calls of the forward and of the backward, and the tensors that they write. plans: {(way, config): ..} of others, whose calls are
    named after them."""
    import torch
    q, k, v, grad_o = x
    o, lse = torch.empty_like(q), torch.empty(q.shape[0], q.shape[2], q.shape[1], device="cuda")
    grads = [torch.empty_like(t) for t in (q, k, v)]
    rng = torch.tensor([SEED, OFFSET], dtype=torch.int64, device="cuda")
    forward = fa.args(q, k, v, o, fagen.MASKS[mask], lse=lse)
    backward = fa.gradient_args(q, k, v, o, lse, grad_o, *grads, mask=fagen.MASKS[mask])
    for a in (forward, backward):
        a.rng, a.dropout = rng.data_ptr(), p
        a.holds.append(rng)
        fa.give_workspace(a)

    def run(a, out, plan=None):
        return lambda i: (fa.launch(a, plan), out)[1]
    calls = {"forward": run(forward, [o]), "backward": run(backward, grads)}
    for (way, config), plan in (plans or {}).items():
        of = forward if way == "forward" else backward
        a = fagen.Args.from_buffer_copy(of)
        a.holds = of.holds
        fa.give_workspace(a, plan)
        calls[f"{way} {config}"] = run(a, [o] if way == "forward" else grads, plan)
    return calls, [o, *grads]


def peer(name, x, causal, p):
    import torch
    aten = torch.ops.aten
    q, k, v, grad_o = (t.transpose(1, 2) for t in x)
    if name == "fa2":
        def forward(i):
            return aten._scaled_dot_product_flash_attention(q, k, v, p, causal, False)
        out, lse, first_q, first_k, sq, sk, seed, offset, _ = forward(0)
        saved = (out, lse, first_q, first_k, sq, sk, p, causal, seed, offset)
        return {"forward": lambda i: list(forward(i)[:1]),
                "backward": lambda i: list(aten._scaled_dot_product_flash_attention_backward(grad_o, q, k, v, *saved))}

    def forward(i):
        return aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, p, causal, False)
    out, lse, first_q, first_k, sq, sk, seed, offset, _ = forward(0)
    saved = (out, lse, seed, offset, None, first_q, first_k, sq, sk, p, causal)
    return {"forward": lambda i: list(forward(i)[:1]),
            "backward": lambda i: list(aten._scaled_dot_product_cudnn_attention_backward(grad_o, q, k, v, *saved))}


def race(sides, fagen, case, plans, o):
    import torch
    from common import graphs
    d, heads, b, s, mask = case
    x = [torch.randn(b, s, heads, d, device="cuda", dtype=torch.bfloat16) for _ in range(4)]
    runs, written, notes = {}, {}, {}
    notes.update({config: why[:100] for (_, config), why in plans.items() if isinstance(why, str)})
    plans = {key: plan for key, plan in plans.items() if not isinstance(plan, str)}
    for name, fa in sides.items():
        runs[name], written[name] = ours(fa, fagen, x, mask, o.p, plans if name == "ours" else None)
    for name in ("fa2", "cudnn"):
        try:
            runs[name] = peer(name, x, mask == "causal", o.p)
        except RuntimeError as e:
            notes[name] = str(e).splitlines()[0][:120]
    made = {}
    for name, calls in runs.items():
        for way in calls:  # the backward reads what the forward wrote
            calls[way](0)
            torch.cuda.synchronize()
            made[name, way] = graphs.capture(calls[way], lasts=3e-3)
    if len(written) == 2:
        notes["apart"] = max(((a.float() - b.float()).norm() / a.float().norm()).item() for a, b in zip(*written.values()))
    samples = {key: [] for key in made}
    for n in range(o.rounds + 1):
        for key in list(made)[::-1 if n % 2 else 1]:
            samples[key].append(made[key].sample())
    us = {f"{name} {way}": 1e6 * statistics.median(t[1:]) for (name, way), t in samples.items()}
    return {"case": f"d={d},h={heads},b={b},s={s},{mask}", "us": us, "notes": notes}


def told(row):
    us = row["us"]

    def together(name, ways):
        return sum(us[f"{name} {way}"] for way in ways)
    peers = {key.split()[0] for key in us} & {"fa2", "cudnn"}
    parts = [row["case"]]
    for ways in (("forward",), ("backward",), ("forward", "backward")):
        best = min((together(name, ways) for name in peers), default=float("nan"))
        text = f"{' and '.join(ways)} {together('ours', ways):.0f} us, {best / together('ours', ways):.3f} of the best peer"
        if "old forward" in us:
            text += f", {together('ours', ways) / together('old', ways):.3f} of the old one's time"
        parts.append(text)
    others = sorted((t, key) for key, t in us.items() if len(key.split()) > 2)
    for way in ("forward", "backward"):
        if best := [(t, key) for t, key in others if key.split()[1] == way]:
            parts.append(f"of {len(best)} configs {best[0][1].split()[2]} {best[0][0] / us[f'ours {way}']:.3f} of the chosen one's time")
    return "; ".join(parts) + (f"; {row['notes']}" if row["notes"] else "")


def main():
    o = parse()
    from common import fagen, tournament
    sides = {"ours": fagen.Fagen(lever=bool(o.forward or o.backward)), **({"old": fagen.Fagen(template_dir=o.old)} if o.old else {})}
    tournament.warm_up()
    rows, ways = [], (("forward", o.forward), ("backward", o.backward))
    pool = ThreadPoolExecutor(16)
    ready = [pool.submit(planned, fa, fagen, case, way, None) for case in cases(o) for way, _ in ways for fa in sides.values()]
    plans = {case: {(way, config): pool.submit(planned, sides["ours"], fagen, case, way, config) for way, some in ways for config in some}
             for case in cases(o)}
    for job in ready:
        job.result()
    for case in cases(o):
        rows.append(race(sides, fagen, case, {key: plan.result() for key, plan in plans[case].items()}, o))
        print(told(rows[-1]), flush=True)
    ratios = []
    for row in rows:
        peers = {key.split()[0] for key in row["us"]} & {"fa2", "cudnn"}
        if peers:
            both = {name: row["us"][f"{name} forward"] + row["us"][f"{name} backward"] for name in (*peers, "ours")}
            ratios.append(min(both[name] for name in peers) / both["ours"])
    if ratios:
        print(f"forward and backward over the best peer: {len(ratios)} cases, mean {statistics.geometric_mean(ratios):.3f}, "
              f"least {min(ratios):.3f}")
    if o.json:
        import torch
        with open(o.json, "w") as f:
            json.dump({"device": torch.cuda.get_device_name(), "p": o.p, "rows": rows}, f, indent=1)


if __name__ == "__main__":
    main()
