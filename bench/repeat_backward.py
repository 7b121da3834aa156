#!/usr/bin/env python3
"""The same gradients, many times: are they the same bits? With FA_DETERMINISTIC they must be; in the free order that is counted alone.

    python3 bench/repeat_backward.py                               1,000 runs of each cell in either order
    python3 bench/repeat_backward.py --runs 5000 --cells 'd=128.*causal' -o repeats.json
    python3 bench/repeat_backward.py --dry-run                     3 runs of small cells on the CPU; needs PyTorch
    python3 bench/repeat_backward.py --dry-run --simulator sm_90a  the same, and fagen itself launches on the simulator

Each run writes over NaN. Beside every second one a product of matrices runs on a stream of its own, so that blocks are dealt out in another
order. Bits are compared on the GPU, and the first run is held against fp32. Ends with 1 where bits with FA_DETERMINISTIC differ.
"""
import argparse
import json
import re
import sys
import time

from sections import backward_cases

HEADS = {64: (32, 8), 128: (16, 4), 256: (8, 2)}  # of queries and of keys, by d
BATCH, LENGTH = 3, 2000                           # no multiple of a tile
ORDERS = ("deterministic", "free")
ACCURATE = 1e-2                                   # as stats.ACCURATE has it


def cells():
    return [backward_cases.Gradients(d, *heads, BATCH, LENGTH, mask) for d, heads in HEADS.items() for mask in backward_cases.MASKS]


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--runs", type=int, default=1000, help="of each cell in each order (default 1000)")
    p.add_argument("--cells", metavar="REGEX", default="", help="only cells whose name it finds, such as 'd=128.*causal'")
    p.add_argument("--order", choices=ORDERS, help="only this one (default: both)")
    p.add_argument("--seconds", type=float, default=80, help="no cell is begun after this time; what is left is a failure (default 80)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("-o", "--json", help="where the results go")
    p.add_argument("--list", action="store_true", help="print the cells and stop")
    p.add_argument("--dry-run", action="store_true", help="small cells on the CPU, 3 runs of each")
    p.add_argument("--simulator", metavar="ARCH", help="with --dry-run: fagen itself launches, on the simulator of sm_80 or sm_90a")
    o = p.parse_args(argv)
    if o.runs < 2:
        p.error(f"--runs is {o.runs}; accepted: 2 and more")
    try:
        o.jobs = [c for c in cells() if re.search(o.cells, c.name())]
    except re.error as e:
        p.error(f"--cells is \"{o.cells}\": {e}; accepted: a regular expression of Python")
    if not o.jobs:
        p.error(f"--cells is \"{o.cells}\", which finds no cell; accepted: what finds one of {'; '.join(c.name() for c in cells())}")
    if o.simulator and not o.dry_run:
        p.error("--simulator is given without --dry-run; accepted: both")
    return o


class Bench:
    """fagen, and where it launches."""

    def __init__(self, options):
        import torch
        self.o, self.gpu = options, not options.dry_run
        self.device = "cuda" if self.gpu else "cpu"
        if options.dry_run:
            from sections import backward_rehearsal
            torch.set_num_threads(1)
            options.runs = 3
            options.jobs = [c for _, c in backward_rehearsal.small([("", c) for c in options.jobs])]
            self.fa = backward_rehearsal.Simulated(options.simulator) if options.simulator else backward_rehearsal.Fagen()
        else:
            from common import fagen
            self.fa = fagen.Fagen()
            self.side, self.square = torch.cuda.Stream(), torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
            self.product = torch.empty_like(self.square)
        torch.manual_seed(options.seed)

    def disturb(self, i):
        """Work beside run i, on the stream of its own."""
        import torch
        if self.gpu and i % 2:
            with torch.cuda.stream(self.side):
                torch.mm(self.square, self.square, out=self.product)

    def randn(self, *shape):
        import torch
        return torch.randn(*shape, device=self.device, dtype=torch.bfloat16)

    def cell(self, case):
        """A row for each order of the one cell."""
        from sections import backward_oracle
        from sections import backward_sections
        from common import fagen
        import torch
        q, grad_out = (self.randn(case.b, case.s, case.hq, case.d) for _ in "qo")
        k, v = (self.randn(case.b, case.s, case.hkv, case.d) for _ in "kv")
        mask = fagen.MASKS[case.mask]
        out, lse = backward_sections.forward(self, q, k, v, mask)
        right = backward_oracle.Reference(case, q, k, v, grad_out)
        for order in ORDERS if self.o.order is None else (self.o.order,):
            written = [torch.empty_like(t) for t in (q, k, v)]
            flags = fagen.DETERMINISTIC if order == "deterministic" else 0
            args = self.fa.gradient_args(q, k, v, out, lse, grad_out, *written, mask=mask, flags=flags)
            yield self.repeated(case, order, args, written, right)

    def repeated(self, case, order, args, written, right):
        from sections import backward_oracle
        from common import fagen
        import torch
        begun = time.monotonic()
        space = self.fa.give_workspace(args)
        differ, first = torch.zeros(4, dtype=torch.int64, device=self.device), None
        for i in range(self.o.runs):
            for t in written:
                t.fill_(float("nan"))
            self.disturb(i)
            self.fa.launch(args)
            bits = [t.view(torch.int16) for t in written]
            if first is None:
                first = [b.clone() for b in bits]
                error = right.error(backward_oracle.Gradients(*written))[0]
            else:
                apart = torch.stack([(b != f).any() for b, f in zip(bits, first)])
                differ += torch.cat((apart, apart.any()[None]))
        counts = differ.tolist()
        del space
        config = fagen.explained(self.fa.explain(args)).get("config", "?")
        return {"cell": case.name(), "order": order, "config": config, "runs": self.o.runs, "differ": counts[3],
                **dict(zip(("dq", "dk", "dv"), counts)), "error": error, "took": time.monotonic() - begun}


def wrong(row):
    """Why a row ends the run with 1, or None."""
    if not row["error"] < ACCURATE:
        return f"relative error {row['error']:.2e} of the first run, accepted below {ACCURATE:.0e}"
    if row["order"] == "deterministic" and row["differ"]:
        return f"{row['differ']} of {row['runs'] - 1} runs differ from the first with FA_DETERMINISTIC, accepted 0"
    return None


def line(row):
    verdict = "WRONG" if wrong(row) else "ok   " if row["order"] == "deterministic" else "-    "
    return (f"{verdict} {row['cell']:36} {row['order']:13} {row['differ']:5} of {row['runs'] - 1} differ (dQ {row['dq']}, dK {row['dk']}, "
            f"dV {row['dv']})  error {row['error']:.1e}  {row['took']:.1f} s  {row['config']}")


def main(argv=None):
    o = parse(argv)
    if o.list:
        print("\n".join(c.name() for c in o.jobs))
        return 0
    bench, begun, rows, left, failed = Bench(o), time.monotonic(), [], [], []
    for case in o.jobs:
        if time.monotonic() - begun > o.seconds and not o.simulator:
            left.append(case.name())
            continue
        try:
            for row in bench.cell(case):
                rows.append(row)
                print(line(row), flush=True)
        except Exception as e:  # a kernel that is missing, or a lost device: each cell says so
            failed.append(f"{case.name()}: {type(e).__name__}: {e}")
            print(f"FAILED {failed[-1]}", flush=True)
    bad = [f"{r['cell']}, {r['order']}: {wrong(r)}" for r in rows if wrong(r)] + failed + [f"{n}: the time was over" for n in left]
    for why in bad:
        print(f"WRONG: {why}")
    held = [r for r in rows if r["order"] == "deterministic"]
    print(f"{sum(not wrong(r) for r in held)} of {len(held)} cells have the same bits in {o.runs} runs with FA_DETERMINISTIC; "
          f"in the free order {sum(r['differ'] > 0 for r in rows if r['order'] == 'free')} of {len(rows) - len(held)} differ; "
          f"{time.monotonic() - begun:.0f} s")
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"schema": 1, "rows": rows, "bad": bad, "seed": o.seed}, f, indent=1)
    return 1 if bad or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
