#!/usr/bin/env python3
"""The choice held against a full tuning of the same shapes: what fagen-dev search asks for and random configs, raced.

    for kind in few-queries unequal-lengths; do
      fagen-dev judge --draw $kind --shapes 12 --seed 113 --random 24 --arch h100 --json > $kind.json; done
    python3 bench/tuned.py few-queries.json unequal-lengths.json --arch h100 --seconds 190 -o tuned.json               on the GPU
    fagen-dev judge --arch h100 tuned.json; python3 bench/choice_report.py tuned.json                                anywhere

Of each shape: the choice and its next candidates, the 48 best by the model, then neighbours of the fastest until none promises more, as
fagen tune goes (docs/tuning.md), and the random configs. Each batch is raced beside the choice and the best so far; the fastest, the
choice and the peers meet in a last race, whose times count. Times of what was slower are its ratio to the choice times that of the last
race. While one shape is raced, kernels of others are compiled, of the shape whose launch is shortest first: shapes whose time was up
before their neighbours were asked for are left out and named.
"""
import argparse
import itertools
import json
import queue
import statistics
import subprocess
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import choice

FINAL, NEAR = 8, 1.12  # of the last race: how many, and how far from the best
FLOPS, BYTES = 500e12, 2.5e12  # a second, about: for the order of the shapes alone


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("drawn", nargs="+", help="what judge --draw --json printed")
    p.add_argument("--arch", default="h100", help="for which it was drawn (default h100)")
    p.add_argument("--dev", default="bin/fagen-dev", help="the program fagen-dev (default bin/fagen-dev)")
    p.add_argument("--random", type=int, default=24, help="random configs of each shape (default 24)")
    p.add_argument("--peers", default="cudnn,fa2,fa3,fa3kv", help="in the last race (default cudnn,fa2,fa3,fa3kv)")
    p.add_argument("--threads", type=int, default=15, help="that compile: one fewer than there are cores (default 15)")
    p.add_argument("--abreast", type=int, default=6, help="shapes under way (default 6)")
    p.add_argument("--seconds", type=float, default=190, help="after which no more configs are asked for (default 190)")
    p.add_argument("-o", "--json", required=True, help="the recording, as choice.py writes it")
    o = p.parse_args(argv)
    o.candidates = 1
    return o


class Search:
    """fagen-dev search, asked and told."""

    def __init__(self, dev, arch, problem):
        self.process = subprocess.Popen([dev, "search", "--arch", arch, "--problem", problem],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)

    def batch(self):
        """The next configs; none at the end."""
        return list(iter(lambda: self.process.stdout.readline().strip(), ""))

    def tell(self, seconds):
        self.process.stdin.write("".join(f"{s:.9g}\n" for s in seconds))
        self.process.stdin.flush()

    def close(self):
        self.process.kill()
        self.process.wait()


class Compilers:
    """Threads that take what is asked for by its rank, the least first."""

    def __init__(self, threads):
        self.jobs, self.count = queue.PriorityQueue(), itertools.count()
        for _ in range(threads):
            threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        for _, _, future, call in iter(self.jobs.get, None):
            try:
                future.set_result(call())
            except Exception as e:
                future.set_exception(e)

    def all(self, rank, calls):
        """What the calls return, in their order."""
        futures = [Future() for _ in calls]
        for future, call in zip(futures, calls):
            self.jobs.put((rank, next(self.count), future, call))
        return [f.result() for f in futures]


def lasts(text):
    """Seconds of a launch, about."""
    c = choice.cell_of(text)
    return max(c.flops() / FLOPS, 2 * c.b * (c.d + c.dv) * (c.hkv * c.sk + c.hq * c.sq) / BYTES)


class Shape:
    """A problem under way: what was tried, as times relative to the choice."""

    def __init__(self, rank, fa, text, configs):
        self.rank, self.fa, self.text, self.chosen, self.random = rank, fa, text, configs[0], configs[1:]
        self.plans, self.relative, self.why, self.batches, self.raced = {}, {}, {}, 0, threading.Event()

    def best(self, n):
        return sorted(self.relative, key=self.relative.get)[:n]

    def heard(self, rows):
        """What a race of a batch says."""
        times = {r["config"]: statistics.median(r["seconds"]) for r in rows if "seconds" in r}
        self.why.update({r["config"]: r["why"] for r in rows if "config" in r and "why" in r})
        if self.chosen in times:
            self.relative.update({c: t / times[self.chosen] for c, t in times.items()})


def mind(shape, o, fagen, pool, ready, over):
    """A shape's way through its search; races are the main thread's."""
    search, new, last = Search(o.dev, o.arch, shape.text), [], False
    try:
        while not over() and (asked := search.batch()):
            wanted = [shape.chosen] + asked + (shape.random if not shape.batches else [])
            new = list(dict.fromkeys(c for c in wanted if c not in shape.plans))
            calls = [lambda c=c: choice.compiled(shape.fa, fagen, (shape.text, c)) for c in new]
            shape.plans.update(zip(new, pool.all(shape.rank, calls)))
            shape.raced.clear()
            ready.put((shape, new))
            shape.raced.wait()
            search.tell([shape.relative.get(c, 0) for c in asked])
    finally:
        ready.put((shape, None))  # on with the last race
        search.close()


def race_batch(shape, new, fagen, o):
    """The batch beside the choice and the best two so far."""
    o.rounds, o.keep, peers, o.peers = 3, 1.15, o.peers, ""
    names = list(dict.fromkeys([shape.chosen] + shape.best(2) + new))
    shape.heard(choice.race(shape.fa, fagen, shape.text, {c: shape.plans[c] for c in names}, o))
    o.peers = peers
    shape.batches += 1


def race_last(shape, fagen, o):
    """The rows of the recording."""
    o.rounds, o.keep = 5, 1.25
    least = min(shape.relative.values())
    names = list(dict.fromkeys([shape.chosen] + [c for c in shape.best(FINAL) if shape.relative[c] <= NEAR * least]))
    rows = choice.race(shape.fa, fagen, shape.text, {c: shape.plans[c] for c in names}, o)
    times = {r["config"]: statistics.median(r["seconds"]) for r in rows if "seconds" in r and "config" in r}
    met = {r.get("config") for r in rows}
    rows += [{"config": c, "seconds": [t * times[shape.chosen]], "first": True} for c, t in shape.relative.items() if c not in met]
    return rows + [{"config": c, "why": w} for c, w in shape.why.items() if c not in met and c not in shape.relative]


def main():
    o = parse()
    from common import fagen
    import torch
    from common import tournament
    drawn = sorted(choice.shapes_of(o), key=lambda shape: lasts(shape[0]))
    shapes = [Shape(rank, fagen.Fagen(lever=True), text, configs) for rank, (text, configs) in enumerate(drawn)]
    pool, minders, ready = Compilers(o.threads), ThreadPoolExecutor(o.abreast), queue.Queue()
    begun, out, left = time.monotonic(), [], {s.text for s in shapes}

    def over():
        return time.monotonic() - begun > o.seconds
    for s in shapes:
        minders.submit(mind, s, o, fagen, pool, ready, over)
    tournament.warm_up()
    for _ in iter(int, 1):
        if not left:
            break
        shape, new = ready.get()
        try:
            if new is not None:
                race_batch(shape, new, fagen, o)
            elif shape.batches > 1 and shape.chosen in shape.relative:
                rows = race_last(shape, fagen, o)
                out.append({"problem": shape.text, "device": torch.cuda.get_device_name(), "chosen": shape.chosen, "variants": rows})
                print(f"{time.monotonic() - begun:4.0f} s, {len(shape.relative)} configs:",
                      choice.told(shape.text, rows, shape.chosen), flush=True)
                with open(o.json, "w") as f:
                    json.dump(out, f, indent=1)
                left.discard(shape.text)
        except Exception as e:  # of one shape: the others go on
            print(f"{shape.text}: {e}", flush=True)
        if new is None:
            left.discard(shape.text)
            shape.plans = {}
        shape.raced.set()
    done = {e["problem"] for e in out}
    if len(done) < len(shapes):
        print(f"no time for {len(shapes) - len(done)}: {', '.join(s.text for s in shapes if s.text not in done)}")


if __name__ == "__main__":
    main()
