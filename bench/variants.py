#!/usr/bin/env python3
"""Many configs of a few problems, each checked, then raced: a table per problem, the fastest first.

    python3 bench/variants.py --problem 128,causal,4096 --problem fp16,64,none,16384 CONFIG ...
    python3 bench/variants.py --problem 128,none,4096 --file configs.txt --top 40 --family flash_fwd_mma --peer cudnn
    echo 'flash_fwd_mma:br=64|128,bc=32|64|96,warps=4,...' | python3 bench/variants.py --grid quick --file -

A config may leave tunables out (then the model's best of those that it can mean), and a value may be a choice: br=64|128 stands for
both. A kernel that hangs or faults takes only itself along: the work is done in a child process, which is replaced.
"""
import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time

from common import cells
from common import stats
import variants_worker
from common.config_text import expand, tunables


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("config", nargs="*")
    p.add_argument("--file", help="configs, a line each; - is standard input; text from a # on is a comment")
    p.add_argument("--problem", action="append", default=[], help="D,MASK,S, or as fagen prints it; repeat for more")
    p.add_argument("--grid", help="the cells of a grid of side_by_side.py")
    p.add_argument("--d", help="of the grid, only these head dims")
    p.add_argument("--top", type=int, default=0, help="also this many configs that the model ranks first")
    p.add_argument("--family", help="of --top")
    p.add_argument("--around", type=int, default=0, help="also what differs from a given config, or the chosen one, in up to this many tunables")
    p.add_argument("--chosen", action="store_true", help="also what fa_launch chooses")
    p.add_argument("--vary", metavar="CHOICES", help="also that with all of these values that fit, as 'q_bufs=1|2,ahead=0|1,o_path=0|1|2'; needs --chosen")
    p.add_argument("--peer", help="also these peers, as cudnn,fa3")
    p.add_argument("--rounds", type=int, default=9, help="of the configs that are left at the end (default 9)")
    p.add_argument("--sample", type=float, default=1e-3, help="seconds of launches per sample (default 0.001)")
    p.add_argument("--keep", type=float, default=1.15, help="configs slower than the best by this factor leave the race (default 1.15)")
    p.add_argument("--hang", type=float, default=6, help="seconds after which a launch is given up (default 6)")
    p.add_argument("--casualties", type=int, default=6, help="hangs and faults after which no more are risked (default 6)")
    p.add_argument("--rows", type=int, default=20, help="rows of a table (default 20)")
    p.add_argument("--json", help="write all results to this file")
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="that compile")
    p.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    o = p.parse_args(argv)
    if o.worker:
        return o
    try:
        o.cells = [cells.parse(t) for t in o.problem]
        if o.grid:
            o.cells += cells.grid(o.grid, d=tuple(int(x) for x in o.d.split(",")) if o.d else None)
    except ValueError as e:
        p.error(str(e))
    texts = list(o.config)
    if o.file:
        with (sys.stdin if o.file == "-" else open(o.file)) as f:
            texts += [line.split("#")[0].strip() for line in f]
    o.configs = list(dict.fromkeys(c for t in texts if t for c in expand(t)))
    if o.vary and not o.chosen:
        p.error(f"--vary is {o.vary!r} without --chosen; accepted: both")
    if not o.cells or not (o.configs or o.top or o.chosen):
        p.error("nothing to race; accepted: at least one --problem or --grid, and configs, --file, --top or --chosen")
    return o


def varying(configs):
    """The tunables that are not the same everywhere: {config: its text of them}, and the text of those that are."""
    split = {c: tunables(c)[1] for c in configs}
    families = {tunables(c)[0] for c in configs}
    names = list(dict.fromkeys(n for s in split.values() for n in s))
    same = [n for n in names if len({s.get(n) for s in split.values()}) == 1] if len(configs) > 1 else []
    common = (f"{families.pop()}:" if len(families) == 1 else "") + ",".join(f"{n}={next(iter(split.values()))[n]}" for n in same)
    short = {c: ("" if ":" in common else c.partition(":")[0] + ":") + ",".join(f"{n}={v}" for n, v in s.items() if n not in same)
             for c, s in split.items()}
    return short, common


def tables(results, rows):
    """Text: per problem, the fastest first; then what did not run."""
    out = []
    for r in results:
        timed = sorted((v for v in r["variants"] if v.get("seconds")), key=lambda v: stats.statistics.median(v["seconds"]))
        out.append(f"\n{r['problem']}")
        if timed:
            best = stats.statistics.median(timed[0]["seconds"])
            configs = [v["config"] for v in timed if not v.get("peer")]
            short, common = varying(configs)
            out.append(f"  {'TFLOP/s':>8} {'ratio':>6} {'+-%':>4} {'n':>3} {'regs':>4} {'spill':>5} {'smem':>7} {'thr':>4} {'error':>8}  "
                       + common)
            for v in timed[:rows] + [v for v in timed[rows:] if v.get("peer")]:
                t = stats.statistics.median(v["seconds"])
                told = v.get("told", {})
                out.append(f"  {r['flops'] / t / 1e12:8.1f} {best / t:6.3f} {100 * stats.spread(v['seconds']):4.1f} {len(v['seconds']):3} "
                           f"{told.get('registers', '-'):>4} {told.get('spills', '-'):>5} {told.get('smem', '-'):>7} "
                           f"{told.get('threads', '-'):>4} {v['error']:8.1e}  "
                           + (f"== {v['config']}" if v.get("peer") else ("* " if v.get("chosen") else "") + short[v["config"]])
                           + ("  SERIALIZED" if told.get("serialized") else ""))
            if len(timed) > rows:
                out.append(f"  ... {len(timed) - rows} more")
            if configs:
                out.append(f"  best: {configs[0]}")
        failed = {}
        for v in r["variants"]:
            if v.get("why"):
                failed.setdefault(v["why"].replace(v["config"], "it"), []).append(v["config"])
        for why, some in failed.items():
            out.append(f"  {len(some)} x {why[:200]}\n      such as {some[0]}")
    return "\n".join(out)


class Parent:
    """Drives workers, each from where the last one died."""

    def __init__(self, options, worker=(sys.executable, os.path.abspath(__file__), "--worker")):
        self.worker, self.over = worker, None
        self.o, self.done, self.dead, self.at, self.why, self.casualties = options, {}, {}, None, None, 0

    def go(self):
        """The results, in the order of the problems; self.over says why some are missing."""
        while len(self.done) < len(self.o.cells) and not self.over:
            before = (len(self.done), sum(len(d) for d in self.dead.values()))
            why = self.work()
            if len(self.done) == len(self.o.cells):
                break
            if self.at is not None:
                problem, config = self.at
                if config == variants_worker.RACE:  # no single config is to blame
                    self.done[problem] = {"problem": problem, "flops": 0, "variants": [{"config": variants_worker.RACE, "why": why}]}
                else:
                    self.reap(problem, config, why)
                print(f"  {problem}: {config}: {why}; going on without it", flush=True)
            if before == (len(self.done), sum(len(d) for d in self.dead.values())):
                self.over = f"no progress: {why}"
        return [self.done[c.problem()] for c in self.o.cells if c.problem() in self.done]

    def reap(self, problem, config, why):
        """The same kernel is not tried again: that is the config under the problem's types, head dims and mask, whatever the shape."""
        def kernel(c):
            return c.dtype, c.d, c.dv, c.mask
        mine = next(kernel(c) for c in self.o.cells if c.problem() == problem)
        for c in self.o.cells:
            if kernel(c) == mine:
                self.dead.setdefault(c.problem(), {})[config] = why if c.problem() == problem else f"{why}, at {problem}"
        self.casualties += 1
        if self.casualties >= self.o.casualties:
            self.over = f"{self.casualties} kernels hung or faulted; no more are risked"

    def work(self):
        """Runs one worker to its end; why it ended."""
        left = [c for c in self.o.cells if c.problem() not in self.done]
        job = {"cells": [c.dict() for c in left], "configs": self.o.configs, "dead": self.dead, "top": self.o.top,
               "around": self.o.around, "family": self.o.family, "chosen": self.o.chosen, "vary": self.o.vary, "peers": self.o.peer.split(",") if self.o.peer else [],
               "rounds": self.o.rounds, "sample": self.o.sample, "keep": self.o.keep, "threads": self.o.threads}
        self.at = self.why = None
        child = subprocess.Popen(self.worker, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        child.stdin.write(json.dumps(job))
        child.stdin.close()
        lines = queue.Queue()

        def read():
            with child.stdout as out:
                for line in out:
                    lines.put(line)
            lines.put(None)
        threading.Thread(target=read, daemon=True).start()
        while True:
            try:
                line = lines.get(timeout=self.o.hang if self.at else 600)
            except queue.Empty:
                child.kill()
                child.wait()
                return f"hangs: no end after {self.o.hang:g} s" if self.at else "silent for 600 s"
            if line is None:
                code = child.wait()
                return f"the process ended with {code}" + (f" ({self.why})" if self.why else "")
            try:
                message = json.loads(line)
            except ValueError:  # a library's own chatter
                sys.stdout.write(line)
                continue
            if isinstance(message, dict):
                self.hear(message)

    def hear(self, m):
        if "at" in m:
            self.at = tuple(m["at"]) if m["at"] else None
        if "say" in m:
            print(m["say"], flush=True)
        if "why" in m:
            self.why = m["why"]
        if "result" in m:
            self.done[m["result"]["problem"]] = m["result"]
            print(tables([m["result"]], self.o.rows), flush=True)


def main():
    o = parse()
    if o.worker:
        return variants_worker.main(json.load(sys.stdin))
    begun = time.monotonic()
    parent = Parent(o)
    results = parent.go()
    if o.json:
        with open(o.json, "w") as f:
            json.dump(results, f, indent=1)
    print(f"\n{sum(len(r['variants']) for r in results)} configs of {len(results)} problems in {time.monotonic() - begun:.0f} s")
    if parent.over:
        print(parent.over)
    return 0 if not parent.over and all(any(v.get("seconds") for v in r["variants"]) for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
