#!/usr/bin/env python3
"""fagen beside its peers on one GPU in one run: interleaved, random data, medians and their spread.

Before a cell is timed, every output is held against attention in fp32. A round times every runner once, in rotating order; a cell's
rate is the median over the rounds, a ratio the median of those within a round. The results go to a JSON file after each cell; tables
and figures are made from it, here or later:

    python3 bench/side_by_side.py                                      the main grid against cuDNN, FlashAttention-2 and -3
    python3 bench/side_by_side.py --grid fp16,odd --seconds 60 --json out.json --svg out.svg
    python3 bench/side_by_side.py --grid quick --d 128 --config 'flash_fwd_mma:br=128,bc=64,warps=4'
    python3 bench/side_by_side.py --replay out.json --svg out.svg      needs neither PyTorch nor a GPU
"""
import argparse
import contextlib
import json
import os
import sys
import time

from common import cells
from common import report
from common import stats

DEFAULT_ROUNDS, DEFAULT_SAMPLE = 9, 3e-3


def words(text):
    return tuple(w for w in text.split(",") if w)


def numbers(text):
    return tuple(int(w) for w in words(text))


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--grid", type=words, default=("main",), metavar="NAME,..", help=f"of {', '.join(cells.GRIDS)} (default main)")
    p.add_argument("--d", type=numbers, help="only or other head dims")
    p.add_argument("--s", type=numbers, help="only or other sequence lengths")
    p.add_argument("--mask", type=words, help="only or other masks")
    p.add_argument("--dtype", choices=["bf16", "fp16"], help="another type than the grid's")
    p.add_argument("--peer", type=words, help="of cudnn, fa2, fa3, flex (default: the grid's own)")
    p.add_argument("--config", help="this config instead of what fa_launch chooses; it may leave tunables out")
    p.add_argument("--rounds", type=int, default=DEFAULT_ROUNDS, help=f"at most (default {DEFAULT_ROUNDS})")
    p.add_argument("--sample", type=float, default=DEFAULT_SAMPLE, help=f"seconds of launches per sample (default {DEFAULT_SAMPLE})")
    p.add_argument("--seconds", type=float, help="for the whole run: rounds are left out to keep it, but for 3 per cell")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--json", help="write all results to this file")
    p.add_argument("--markdown", help="write the tables to this file too")
    p.add_argument("--svg", help="write the figure of the first grid to this file; further grids to NAME-GRID.svg")
    p.add_argument("--list", action="store_true", help="print the cells and stop")
    p.add_argument("--replay", metavar="FILE", help="time nothing: tables and figures of this JSON file")
    o = p.parse_args(argv)
    if o.sample < 200e-6:
        p.error(f"--sample is {o.sample}; accepted: 200e-6 and more")
    try:
        o.cells = [c for name in o.grid for c in cells.grid(name, d=o.d, s=o.s, mask=o.mask, dtype=o.dtype)]
    except ValueError as e:
        p.error(str(e))
    return o


def first_line(error):
    lines = str(error).strip().splitlines()
    return lines[0][:400] if lines else type(error).__name__


class Bench:
    """One run: the context, the peers that are there, and the document that grows."""

    def __init__(self, options):
        from common import fagen
        from common import machine
        from common import peers
        self.o, self.fagen, self.machine = options, fagen, machine
        wanted = {n for name in options.grid for n in self.named_peers(name)}
        if wanted - set(peers.PEERS):
            raise SystemExit(f"--peer is \"{', '.join(sorted(wanted - set(peers.PEERS)))}\"; accepted: {', '.join(peers.PEERS)}")
        self.fa = fagen.Fagen(lever=bool(options.config))
        self.peers, about = {}, {}
        for name in (n for n in peers.PEERS if n in wanted):
            peer = peers.PEERS[name]()
            why = peer.available()
            about[name] = {"missing": why} if why else {"version": peer.version()}
            if why:
                print(f"{name} is left out: {why}\n", flush=True)
            else:
                self.peers[name] = peer
        self.doc = {"schema": 2, "host": machine.described(), "fagen": {"version": self.fa.version(), "library": self.fa.path},
                    "peers": about, "protocol": {"rounds": options.rounds, "sample": options.sample, "seconds": options.seconds,
                                                 "buffers": 2, "seed": options.seed},
                    "clocks": {"before": machine.clocks()}, "cells": []}

    def named_peers(self, grid):
        return self.o.peer or cells.GRIDS[grid]["peers"]

    def ours(self, cell, sets, outs, config=None):
        """Our kernel for the cell as a function of the launch's number, and a function that tells which config that is."""
        import torch
        fagen, fa = self.fagen, self.fa
        args = [fa.args(q, k, v, o, fagen.MASKS[cell.mask], window=(cell.left, cell.right), diagonal=fagen.DIAGONALS[cell.diagonal])
                for (q, k, v), o in zip(sets, outs)]
        plan, keep = None, []
        if config:
            problem = fa.problem(**{n: getattr(cell, n) for n in ("dtype", "mask", "d", "dv", "b", "hq", "hkv", "sq", "sk")})
            plan = fa.plan(problem, fa.pick(problem, config))
        for a in args:
            n = fa.workspace(a, plan)
            if n:
                keep.append(torch.empty(n, dtype=torch.uint8, device="cuda"))
                a.workspace, a.workspace_size = keep[-1].data_ptr(), n

        def run(i, keep=keep):
            fa.launch(args[i % 2], plan)
            return outs[i % 2]

        def told():
            if plan:
                return {"config": plan.config, "origin": "named", "resources": " ".join(f"{k}={v}" for k, v in plan.told.items())}
            lines = fagen.explained(fa.explain(args[0]))
            return {k: lines[k] for k in ("config", "origin", "why", "resources", "launch") if k in lines}
        return run, told

    def contenders(self, cell, sets, outs):
        """(name, the cell it computes, a function that makes its runner, what enters its record once it ran)."""
        def make(c, config):
            run, told = self.ours(c, sets, outs, config)
            return run, contextlib.nullcontext, lambda: {"kind": "ours", **told()}

        def make_peer(name):
            run = self.peers[name].runner(cell, sets)
            note = {"note": run.note} if hasattr(run, "note") else {}
            return run, self.peers[name].context, lambda: {"kind": "peer", **note}
        yield "ours", cell, lambda: make(cell, self.o.config)
        for mask in cells.GRIDS[cell.grid].get("beside", ()):
            c = cell.beside(mask)
            yield f"ours, {mask}", c, lambda c=c: make(c, None)
        for name in self.named_peers(cell.grid):
            if name in self.peers:
                yield name, cell, lambda name=name: make_peer(name)

    def cell(self, cell, seconds):
        """Checks and times one cell: its row of the document."""
        from common import tournament
        from common import oracle
        import torch
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[cell.dtype]
        shapes = ((cell.sq, cell.hq, cell.d), (cell.sk, cell.hkv, cell.d), (cell.sk, cell.hkv, cell.dv))
        sets = [[torch.randn(cell.b, *shape, device="cuda", dtype=kind) for shape in shapes] for _ in range(2)]
        outs = [torch.empty(cell.b, cell.sq, cell.hq, cell.dv, device="cuda", dtype=kind) for _ in sets]
        row = {**cell.dict(), "flops": cell.flops(), "runs": {}, "skipped": {}}
        runners, references = {}, {}
        for name, computed, make in self.contenders(cell, sets, outs):
            outs[0].fill_(float("nan"))
            try:
                run, context, told = make()
                with context():
                    out = run(0)
                torch.cuda.synchronize()
                row["runs"][name] = told()
            except Exception as e:  # a peer may raise anything: the cell goes without it and the record says why
                row["skipped"][name] = first_line(e)
                continue
            if computed.mask not in references:
                references[computed.mask] = oracle.Reference(computed, *sets[0])
            error, worst = references[computed.mask].error(out)
            row["runs"][name].update(error=error, worst=worst)
            if computed is not cell:
                row["runs"][name].update(mask=computed.mask, flops=computed.flops())
            runners[name] = tournament.Runner(run, context)
        row["reference"] = references[cell.mask].share if cell.mask in references else None
        del references
        stats.judge(row["runs"])
        racing = {n: r for n, r in runners.items() if "wrong" not in row["runs"][n]}
        if racing:
            tournament.rounds(list(racing.values()), self.o.rounds, self.o.sample, seconds)
        for name, r in racing.items():
            row["runs"][name].update(seconds=r.seconds, launches=r.launches)
        return row

    def run(self):
        from common import tournament
        import torch
        torch.manual_seed(self.o.seed)
        begun = time.monotonic()
        tournament.warm_up()
        with torch.no_grad():
            for n, cell in enumerate(self.o.cells):
                start = time.monotonic()
                left = None if self.o.seconds is None else (self.o.seconds - (start - begun)) / (len(self.o.cells) - n)
                row = self.cell(cell, left)
                row["took"] = time.monotonic() - start
                self.doc["cells"].append(row)
                print(report.line(row), flush=True)
                self.doc["clocks"]["after"] = self.machine.clocks()
                self.doc["took"] = time.monotonic() - begun
                self.save()
        return self.doc

    def save(self):
        if self.o.json:
            with open(self.o.json + ".part", "w") as f:
                json.dump(self.doc, f, indent=1)
            os.replace(self.o.json + ".part", self.o.json)


def write(options, doc):
    text = report.markdown(doc)
    print(text)
    if options.markdown:
        with open(options.markdown, "w") as f:
            f.write(text)
    if options.svg:
        from common import figure
        for n, (name, picture) in enumerate(figure.of(doc).items()):
            base, end = os.path.splitext(options.svg)
            with open(options.svg if n == 0 else f"{base}-{name}{end}", "w") as f:
                f.write(picture)


def main():
    options = parse()
    if options.list:
        print("\n".join(f"{c.grid}: {c.name()}  {c.problem()}" for c in options.cells))
        return 0
    if options.replay:
        with open(options.replay) as f:
            doc = json.load(f)
    else:
        doc = Bench(options).run()
    write(options, doc)
    return 1 if report.failures(doc) else 0


if __name__ == "__main__":
    sys.exit(main())
