#!/usr/bin/env python3
"""Configs of gradients beside what is chosen and beside FlashAttention-4, of named or random cases, dense or packed, on this GPU.

    python3 bench/races/gradient_race.py --off-grid 99 --count 8 --seconds 100 -o race.json
    python3 bench/races/gradient_race.py 'd=96,hq=48,hkv=6,b=4,s=1901,causal' --config dq=add,spread=1 \
        --config dq=add,spread=2 --without fa4
    python3 bench/races/gradient_race.py --list --off-grid 99            the cases alone, without a GPU
    python3 bench/races/gradient_race.py --off-grid 721-724 --count 30 --each 8 --kinds 'packed d=64 causal heads'

Calls are CUDA graphs, sampled in turns, each round in an order that is drawn, each behind some milliseconds of its own; a time is the
median over the rounds. Gradients of every contender are held beside those that fa_launch chooses: what differs is named and not timed. A
config names what it wants of flash_bwd_wgmma, the model adds the rest; where a case refuses it, the case goes without. Cases are timed
while kernels of later ones compile. FlashAttention-4 compiles for ten seconds for each kind of problem: processes of different kinds do so
side by side and time in turns, by --lock.
"""
import argparse
import collections
import itertools
import json
import os
import random
import re
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # bench/, whose modules these are

from choice import sample
from common.alone import alone
from sections import backward_cases

FAMILY = "flash_bwd_wgmma"
APART = 0.02  # of the norm: 16-bit rounding is some 0.004, a wrong tile far more


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", help="as tables name them: d=128,hq=16,hkv=4,b=1,s=8192,causal, or of a packed batch "
                   "d=64,hq=20,hkv=20,uniform,total=9920,seed=962,none")
    p.add_argument("--off-grid", type=backward_cases.seeds_of, metavar="SEEDS",
                   help="random cases beside them, as bench/backward.py draws them: of a seed, or of some: 721-724")
    p.add_argument("--count", type=int, default=8, help="of each section and seed (default 8)")
    p.add_argument("--each", type=int, help="of each kind the first so many; a kind is as `packed d=64 causal heads`, or groups")
    p.add_argument("--kinds", default="", metavar="REGEX", help="these alone")
    p.add_argument("--sections", default=",".join(backward_cases.SECTIONS), help="drawn from (default all: mha,gqa,packed)")
    p.add_argument("--config", action="append", default=[], help="as dq=add,spread=1; may be given again")
    p.add_argument("--before", metavar="DIR|LIBRARY", help="beside them what is chosen with these templates, or by this libfagen_lever.so "
                   "of another build, as `before`")
    p.add_argument("--without", action="append", default=[], help="fa4, cudnn or fa2; default: fa4 alone is beside")
    p.add_argument("--peers", default="fa4", help="fa4,cudnn,fa2 (default fa4)")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=100, help="of races; cases that are left out then are named (default 100)")
    p.add_argument("--lock", metavar="FILE", help="times while no other process does that has this file")
    p.add_argument("--list", action="store_true")
    p.add_argument("-o", "--json")
    return p.parse_args(argv)


def case_of(text):
    words = dict(w.split("=") for w in text.split(",") if "=" in w)
    bare = [w for w in text.split(",") if "=" not in w]
    n = {k: int(v) for k, v in words.items()}
    if "total" in n:
        return backward_cases.Packed(n["d"], n["hq"], n["hkv"], n["total"], bare[0], n["seed"], mask=bare[1])
    return backward_cases.Gradients(n["d"], n["hq"], n["hkv"], n["b"], n["s"], bare[0])


def cases_of(o):
    """Named ones, then drawn ones, section by section in turns, so that a race that ends early has some of each."""
    named = [case_of(t) for t in o.cases]
    if o.off_grid is None:
        return named
    drawn = collections.defaultdict(list)
    for section, c in backward_cases.off_grid(o.sections.split(","), o.off_grid, o.count, o.each, o.kinds):
        drawn[section].append(c)
    return named + [c for row in itertools.zip_longest(*drawn.values()) for c in row if c]


class Case:
    """A case on the device: what a launch reads and writes."""

    def __init__(self, case):
        import torch
        self.case, self.packed, self.causal = case, hasattr(case, "drawn"), case.mask == "causal"
        if self.packed:
            lengths = [q for q, _ in case.lengths()]
            starts = torch.tensor([0, *lengths], dtype=torch.int32, device="cuda").cumsum(0).to(torch.int32)
            rows, self.sq = (sum(lengths),), max(lengths)
            self.where = dict(first_q=starts, first_k=starts, sq=self.sq, sk=self.sq)
        else:
            rows, self.sq, self.where = (case.b, case.s), case.s, {}
        self.q, self.grad_out, self.k, self.v = (torch.randn(*rows, h, case.d, device="cuda", dtype=torch.bfloat16)
                                                 for h in (case.hq, case.hq, case.hkv, case.hkv))
        self.out = torch.empty_like(self.q)
        self.lse = torch.empty(*rows[:-1], case.hq, rows[-1], device="cuda")
        self.written = [torch.empty_like(t) for t in (self.q, self.k, self.v)]

    def forward(self, fa, mask):
        import torch
        args = fa.args(self.q, self.k, self.v, self.out, mask, lse=self.lse, **self.where)
        space = fa.give_workspace(args)
        fa.launch(args)
        torch.cuda.synchronize()
        del space

    def args(self, fa, mask):
        return fa.gradient_args(self.q, self.k, self.v, self.out, self.lse, self.grad_out, *self.written, mask=mask, **self.where)

    def beside(self, peer):
        given = (self.q, self.k, self.v, self.grad_out, self.causal)
        if self.packed:
            return peer.packed(*given, self.where["first_q"], self.where["first_k"], self.sq, self.sq)
        return peer.backward(*given)


def planned(fa, fagen, case, config):
    """The plan of a config, or why there is none. The problem is told without tensors: kernels compile before a case has any."""
    packed = hasattr(case, "drawn")
    lengths = case.lengths() if packed else ()
    s = max(q for q, _ in lengths) if packed else case.s
    fields = dict(dtype="bf16", mask=case.mask, d=case.d, dv=case.d, b=len(lengths) if packed else case.b, hq=case.hq, hkv=case.hkv, sq=s, sk=s,
                  op=fagen.BACKWARD)
    if packed:
        fields["features"] = fagen.LENGTHS
    try:
        problem = fa.problem(**fields)
        if config is None:
            fa.prepare(problem)
            return None
        return fa.plan(problem, fa.pick(problem, f"{FAMILY}:{config}"))
    except fagen.Error as e:
        return str(e)


def timed(case, runs, told, notes, rounds):
    """{name: seconds per call of each round} of the runs whose gradients are those of the first; notes has why others are not."""
    from common import graphs
    import torch
    made, truth, same = {}, None, {}
    for name, run in runs.items():
        result = torch.cat([t.float().flatten() for t in run(0)])
        truth = result if truth is None else truth
        apart = ((result - truth).norm() / truth.norm()).item()
        if name in told and told[name] in same:
            notes[name] = "as " + same[told[name]]
        elif not apart <= APART:
            notes[name] = f"differs by {apart:.3g} of the norm"
        else:
            try:
                made[name] = graphs.capture(run, lasts=2e-3)
                same.setdefault(told.get(name, name), name)
            except Exception as e:
                notes[name] = f"under capture: {str(e)[:100]}"
        del result
    samples, left, draw = {name: [] for name in made}, list(made), random.Random(case)
    for _ in range(rounds + 1):
        draw.shuffle(left)
        for name in left:
            samples[name].append(sample(made[name], samples[name]))
    return samples


def race(fa, fagen, case, plans, peers, o, before=None):
    import torch
    mask = fagen.MASKS[case.mask]
    with alone(o.lock):  # what it writes would be in a time of another's
        x = Case(case)
        x.forward(fa, mask)
    runs, notes, spaces, told = {}, {}, [], {}
    for name, plan in plans.items():
        if isinstance(plan, str):
            notes[name] = plan
            continue
        side = before if name == "before" else fa
        args = x.args(side, mask)
        spaces.append((side.give_workspace(args, plan), args))
        told[name] = plan.config if plan else fagen.explained(side.explain(args))["config"]
        if name == "before":
            told[name] += " of " + o.before  # other text, or other portions of the same
        runs[name] = lambda _, side=side, plan=plan, args=args: (side.launch(args, plan), x.written)[1]
    for name, peer in peers.items():
        try:
            run = x.beside(peer)
            run(0)
            runs[name] = lambda i, run=run: run(i).tensors
        except Exception as e:  # whatever a peer raises: the case goes without it
            notes[name] = str(e).splitlines()[0][:120] if str(e) else type(e).__name__
    with alone(o.lock):
        samples = timed(case.name(), runs, told, notes, o.rounds)
    del spaces
    return {"case": case.name(), "device": torch.cuda.get_device_name(), "us": {n: 1e6 * statistics.median(s[1:]) for n, s in samples.items()},
            "configs": told, "notes": notes}


def told(row):
    us, beside = row["us"], [n for n in row["us"] if n not in row["configs"]]
    line = f"{row['case']:60}"
    if "ours" in us and beside:
        best = min(beside, key=us.get)
        line += f" {us[best] / us['ours']:.3f} of {best}"
    line += "; " + " ".join(f"{n}={t:.0f}" for n, t in sorted(us.items(), key=lambda t: t[1]))
    notes = {n: w for n, w in row["notes"].items() if not w.startswith("as ")}
    return line + "; " + re.sub(r"^\w+:", "", row["configs"].get("ours", "")) + (f" {notes}" if notes else "")


def main():
    o = parse()
    cases = cases_of(o)
    if o.list:
        return print("\n".join(c.name() for c in cases))
    import torch
    from sections import backward_peers
    from common import fagen
    from common import tournament
    fa = fagen.Fagen(lever=True)
    peers = {}
    for name in o.peers.split(","):
        peer = backward_peers.PEERS[name]() if name and name not in o.without else None
        if peer and not peer.available():
            peers[name] = peer
    pool = ThreadPoolExecutor(16)
    names = {"ours": None, **{c: c for c in o.config}}
    other = {"path" if os.path.isfile(o.before) else "template_dir": o.before} if o.before else None
    before = fagen.Fagen(lever=True, **other) if other else None
    names.update({"before": None} if before else {})
    made = {(c, n): pool.submit(planned, before if n == "before" else fa, fagen, c, config) for c in cases for n, config in names.items()}
    tournament.warm_up()
    begun, out, left = time.monotonic(), [], []
    for c in cases:
        if time.monotonic() - begun > o.seconds:
            left.append(c.name())
            continue
        try:
            row = race(fa, fagen, c, {n: made[c, n].result() for n in names}, peers, o, before)
        except Exception as e:  # out of memory, say: the other cases go on
            print(c.name(), type(e).__name__, str(e)[:200], flush=True)
            continue
        out.append(row)
        print(told(row), flush=True)
        torch.cuda.empty_cache()  # other processes want memory, too
        if o.json:
            with open(o.json, "w") as f:
                json.dump(out, f, indent=1)
    pool.shutdown(cancel_futures=True)
    for name in (*peers, *(["before"] if before else [])):
        ratios = [r["us"][name] / r["us"]["ours"] for r in out if name in r["us"] and "ours" in r["us"]]
        if ratios:
            print(f"beside {name}: {len(ratios)} cases, mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    if left:
        print(f"no time for {len(left)}: {'; '.join(left)}")


if __name__ == "__main__":
    main()
