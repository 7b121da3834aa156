#!/usr/bin/env python3
"""Serving off the grid: what fa_launch() chooses for drawn batches of sequences with lengths of their own, beside what another tree
chooses, configs, and peers.

    python3 bench/races/serving_race.py --seed 1801 --count 25 --peers fa2,fa3,fa3split,fa3kv -o race.json
    python3 bench/races/serving_race.py --seed 1801 --count 60 --before old/libfagen_lever.so --moved
    python3 bench/races/serving_race.py --seed 1801 --kinds fewrows --rank 4 --family split_wgmma --family mixed_wgmma
    python3 bench/races/serving_race.py --list --seed 1801                  the batches and what is chosen, without a GPU

Batches are those of bench/common/batches.py. Calls are CUDA graphs, sampled in turns, each round in an order that is drawn, each behind
some milliseconds of its own; a time is the median over the rounds. Outputs are held beside the choice's: what differs is named and not
timed.
Peers: FlashAttention-2 of PyTorch (fa2), FlashAttention-3 with one split and with as many as it takes (fa3, fa3split), and its kvcache
(fa3kv), whose keys are padded where these lie in pages.
"""
import argparse
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
from common import batches
from common.stats import geomean

APART = 0.02    # of the norm: 16-bit rounding is some 0.004, a wrong tile far more
BEHIND = 1.3    # of the fastest config after a round: others are left out
CONTEXT = 12    # batches of a context, whose kernels are all loaded


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1801)
    p.add_argument("--count", type=int, default=25, help="of each kind (default 25)")
    p.add_argument("--kinds", default=",".join(batches.KINDS), help=f"default {','.join(batches.KINDS)}")
    p.add_argument("--only", default="", metavar="REGEX", help="of names, as --list has them")
    p.add_argument("--before", metavar="DIR|LIBRARY", help="beside it what is chosen with these templates, or by this libfagen_lever.so of "
                   "another build, as `before`")
    p.add_argument("--moved", action="store_true", help="those alone that --before chooses otherwise")
    p.add_argument("--config", action="append", default=[], help="as split_wgmma:br=64,ctas=2; may be given again")
    p.add_argument("--rank", type=int, default=0, metavar="N", help="the model's N cheapest beside it, of all families or of each --family")
    p.add_argument("--family", action="append", default=[])
    p.add_argument("--peers", default="", help="fa2,fa3,fa3split,fa3kv (default none)")
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--seconds", type=float, default=100, help="of races; a line says for how many batches there was no time (default 100)")
    p.add_argument("--threads", type=int, default=16, help="that compile")
    p.add_argument("--list", action="store_true")
    p.add_argument("-o", "--json")
    o = p.parse_args(argv)
    for kind in o.kinds.split(","):
        if kind not in batches.KINDS:
            p.error(f"the kind is \"{kind}\"; accepted: {', '.join(batches.KINDS)}")
    if o.moved and not o.before:
        p.error("--moved: there is no --before to hold choices against")
    return o


def context(fagen, at=None, **given):
    where = {"path" if os.path.isfile(at) else "template_dir": at} if at else {}
    return fagen.Fagen(lever=True, **where, **given)


def problem_of(fa, fagen, batch):
    return fa.problem(features=fagen.LENGTHS | (fagen.PAGES if batch.page else 0), **batch.fields())


def choice_of(fa, fagen, batch):
    return fagen.explained(fa.explain(problem=problem_of(fa, fagen, batch)))["config"].split()[0]


def configs_of(fa, fagen, batch, o):
    """Those to be raced by name."""
    problem, out = problem_of(fa, fagen, batch), list(o.config)
    for family in o.family or [None]:
        if o.rank:
            out += fa.rank(problem, o.rank, family)
    return list(dict.fromkeys(out))


def compiled(fa, fagen, batch, config):
    """The plan of a config, none of what is chosen, or why there is none."""
    try:
        problem = problem_of(fa, fagen, batch)
        if config is None:
            return fa.prepare(problem)
        return fa.plan(problem, fa.pick(problem, config))
    except fagen.Error as e:
        return str(e)


class Served:
    """A batch on the device: what a launch reads and writes."""

    def __init__(self, batch, device="cuda"):
        import torch
        self.batch, self.device = batch, device
        self.causal = batch.mask == "causal"
        queries, keys = zip(*batch.lens)
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[batch.dtype]
        self.ends_q, self.ends_k = (list(itertools.accumulate(n, initial=0)) for n in (queries, keys))
        numbers = (self.ends_q, self.ends_k, keys)
        self.first_q, self.first_k, self.lengths = (torch.tensor(n, dtype=torch.int32, device=device) for n in numbers)
        self.rows, *self.packed = (torch.randn(n, h, batch.d, device=device, dtype=kind)
                                   for n, h in ((sum(queries), batch.hq), (sum(keys), batch.hkv), (sum(keys), batch.hkv)))
        self.q = self.rows.unflatten(0, (len(batch.lens), batch.sq)) if batch.whole else self.rows
        self.out, self.table, self.held = torch.empty_like(self.q), None, self.packed
        if batch.keys == "padded":
            self.held = [self.padded(t) for t in self.packed]
        elif batch.keys == "pages":
            self.held = self.in_pages(batch.page)

    def padded(self, t):
        import torch
        out = torch.zeros(len(self.batch.lens), self.batch.sk, *t.shape[1:], device=self.device, dtype=t.dtype)
        for i, (_, n) in enumerate(self.batch.lens):
            out[i, :n] = t[self.ends_k[i]:self.ends_k[i + 1]]
        return out

    def in_pages(self, size):
        import torch
        need = [-(-n // size) for _, n in self.batch.lens]
        order, width, rows = list(range(sum(need))), -(-self.batch.sk // size), []
        random.Random(self.batch.name()).shuffle(order)
        for n in need:
            rows.append(order[:n])
            order = order[n:]
        self.table = torch.tensor([r + [0] * (width - len(r)) for r in rows], dtype=torch.int32, device=self.device)
        made = []
        for t in self.packed:
            out = torch.zeros(sum(need), size, *t.shape[1:], device=self.device, dtype=t.dtype)
            for i, pages in enumerate(rows):
                own = t[self.ends_k[i]:self.ends_k[i + 1]]
                full = torch.nn.functional.pad(own, (0, 0, 0, 0, 0, -len(own) % size)).unflatten(0, (-1, size))
                out[torch.tensor(pages, device=self.device)] = full
            made.append(out)
        return made

    def args(self, fa, fagen):
        how = {} if self.batch.whole else {"first_q": self.first_q, "sq": self.batch.sq}
        if self.batch.keys == "packed":
            how.update(first_k=self.first_k, sk=self.batch.sk)
        else:
            how.update(lengths=self.lengths)
        if self.table is not None:
            how.update(table=self.table, sk=self.batch.sk)
        return fa.args(self.q, *self.held, self.out, mask=fagen.MASKS[self.batch.mask], **how)

    def peer(self, name, fa3):
        """A call of its."""
        import torch
        most = (self.batch.sq, self.batch.sk)

        def first(out):
            return (out[0] if isinstance(out, (tuple, list)) else out).view(self.out.shape)
        if name == "fa2":
            return lambda _: first(torch.ops.aten._flash_attention_forward(
                self.rows, *self.packed, self.first_q, self.first_k, *most, 0.0, self.causal, False))
        if name in ("fa3", "fa3split"):
            return lambda _: first(fa3.flash_attn_varlen_func(
                self.rows, *self.packed, cu_seqlens_q=self.first_q, cu_seqlens_k=self.first_k, max_seqlen_q=most[0], max_seqlen_k=most[1],
                causal=self.causal, num_splits=1 if name == "fa3" else 0))
        k, v = self.held if self.batch.keys == "padded" else map(self.padded, self.packed)
        rows = {} if self.batch.whole else {"cu_seqlens_q": self.first_q, "max_seqlen_q": most[0]}
        rows.update(cache_seqlens=self.lengths, causal=self.causal, num_splits=0)
        return lambda _: first(fa3.flash_attn_with_kvcache(self.q, k, v, **rows))


def timed(batch, runs, ours, rounds):
    """({name: seconds of each round}, {name: why not})."""
    from common import graphs
    made, truth, notes = {}, None, {}
    for name, run in runs.items():
        try:
            got = run(0).float().flatten()
            truth = got.clone() if truth is None else truth
            apart = ((got - truth).norm() / truth.norm()).item()
            if not apart <= APART:
                notes[name] = f"O differs by {apart:.3g} of the norm"
                continue
            made[name] = graphs.capture(run, lasts=0.7e-3)
        except Exception as e:  # whatever a peer raises: the batch goes without it
            notes[name] = (str(e).splitlines() or [type(e).__name__])[0][:120]
    samples, left, draw = {name: [] for name in made}, list(made), random.Random(batch.name())
    for n in range(rounds + 1):
        draw.shuffle(left)
        for name in left:
            samples[name].append(sample(made[name], samples[name]))
        if n == 0:
            least = min(samples[name][0] for name in left if name in ours)
            left = [x for x in left if x in ("ours", "before") or samples[x][0] <= BEHIND * least]
    return samples, notes


def race(sides, fagen, batch, plans, o, fa3):
    """sides: {"ours": context, "before": another}."""
    x = Served(batch)
    runs, notes, told = {}, {}, {}
    for name, plan in plans.items():
        if isinstance(plan, str):
            notes[name] = plan[:150]
            continue
        fa = sides.get(name, sides["ours"])
        args = x.args(fa, fagen)
        fa.give_workspace(args, plan)
        told[name] = plan.config if plan else fagen.explained(fa.explain(args))["config"].split()[0]
        runs[name] = lambda _, fa=fa, args=args, plan=plan: (fa.launch(args, plan), x.out)[1]
    for name in o.peers.split(",") if o.peers else ():
        if name != "fa3kv" or batch.mask == "causal" and batch.kind != "packed":
            runs[name] = x.peer(name, fa3)
    samples, notes_timed = timed(batch, runs, told, o.rounds)
    return {"batch": batch.name(), "kind": batch.kind, "lens": batch.lens, "configs": told, "notes": {**notes, **notes_timed},
            "us": {n: round(1e6 * statistics.median(s[1:] or s), 2) for n, s in samples.items()}}


def best_peer(row):
    beside = [n for n in row["us"] if n not in row["configs"]]
    return min(beside, key=row["us"].get) if beside else None


def told(row):
    us, peer = row["us"], best_peer(row)
    best = min(row["configs"].keys() & us.keys(), key=us.get)
    words = [f"{row['batch']}: {us['ours']:.1f} us"]
    words += [f"{us[peer] / us['ours']:.3f} of {peer}"] if peer else []
    words += [f"{us['ours'] / us['before']:.3f} of the time before"] if "before" in us else []
    words += [f"{us['ours'] / us[best]:.3f} of the fastest, {best}"] if best not in ("ours", "before") else []
    wrong = {n: w for n, w in row["notes"].items() if "differs" in w or n in ("ours", "before")}
    return ", ".join(words) + (f" {wrong}" if wrong else "")


def summary(rows):
    for kind in dict.fromkeys(r["kind"] for r in rows):
        some = [r for r in rows if r["kind"] == kind and "ours" in r["us"]]
        peers = [r["us"][best_peer(r)] / r["us"]["ours"] for r in some if best_peer(r)]
        before = [r["us"]["ours"] / r["us"]["before"] for r in some if "before" in r["us"]]
        words = [f"{kind}: {len(some)} batches"]
        if peers:
            words.append(f"{geomean(peers):.3f} ({min(peers):.3f}) of the best peer, {sum(x < 0.95 for x in peers)} below 0.95")
        if before:
            above = sum(x > 1.05 for x in before)
            words.append(f"{geomean(before):.3f} ({min(before):.3f} to {max(before):.3f}) of the time before, {above} above 1.05")
        print("; ".join(words))


def drawn(fagen, o):
    """Kind by kind in turns, so that a race that ends early has some of each; without a device."""
    columns = [batches.draw(kind, o.seed, o.count) for kind in o.kinds.split(",")]
    some = [b for row in zip(*columns) for b in row if re.search(o.only, b.name())]
    if not o.moved:
        return some
    now, before = context(fagen, device="sim:h200", cache_dir=""), context(fagen, o.before, device="sim:h200", cache_dir="")
    return [b for b in some if choice_of(now, fagen, b) != choice_of(before, fagen, b)]


def main():
    o = parse()
    from common import fagen
    some = drawn(fagen, o)
    if o.list:
        fa = context(fagen, device="sim:h200", cache_dir="")
        for b in some:
            print(b.name(), choice_of(fa, fagen, b), *configs_of(fa, fagen, b, o))
        return
    import torch
    from common import machine, tournament
    from common import peers as table
    host = machine.described()
    print(host, flush=True)
    fa3 = table.Fa3().module
    pool = ThreadPoolExecutor(o.threads)
    parts = range(0, len(some), CONTEXT)
    sides = [{"ours": context(fagen), **({"before": context(fagen, o.before)} if o.before else {})} for _ in parts]
    made = []
    for i, b in enumerate(some):
        at = sides[i // CONTEXT]
        names = {**{n: None for n in at}, **{c: c for c in configs_of(at["ours"], fagen, b, o)}}
        made.append({n: pool.submit(compiled, at.get(n, at["ours"]), fagen, b, c) for n, c in names.items()})
    tournament.warm_up()
    begun, rows = time.monotonic(), []
    for i, b in enumerate(some):
        if time.monotonic() - begun > o.seconds:
            print("no time for", len(some) - i)
            break
        try:
            with torch.no_grad():
                row = race(sides[i // CONTEXT], fagen, b, {n: j.result() for n, j in made[i].items()}, o, fa3)
        except Exception as e:  # out of memory, say: the other batches go on
            print(b.name(), type(e).__name__, str(e)[:200], flush=True)
            continue
        rows.append(row)
        print(told(row), flush=True)
        if i % 8 == 7:
            torch.cuda.empty_cache()
        if o.json:
            with open(o.json, "w") as f:
                json.dump({**host, "seed": o.seed, "rows": rows}, f)
    summary(rows)
    pool.shutdown(cancel_futures=True)
    sys.stdout.flush()
    os._exit(0)  # kernels that still compile are not waited for


if __name__ == "__main__":
    main()
