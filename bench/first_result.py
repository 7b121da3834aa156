#!/usr/bin/env python3
"""The first result of a new process on this GPU: from fa_create() to the end of the first launch, with an empty cache, and with the kernels
that ship beside the library. Each time is that of a process of its own. The driver has been started, and its context is there; loading
libfagen and NVRTC is part of it.

    python3 bench/first_result.py [--rounds 3] [--shipped LIBRARY] [--classes dense,decode,gradients,mixed] [-o first.json]
    python3 bench/first_result.py --programs alibi,relative,t5_decoder --head-dims 64,128

--programs: dense causal attention with score programs that ship, each over the same without one, which is asked to be at most 1.2: of the
first result, and of the work of its process on the host.

All processes of a class, or of a head_dim, are started at once, and run one after the other, in turns, when each has its tensors: nothing
else runs beside them. FAGEN_LIBRARY has no kernels beside it: each is rendered, compiled, loaded and run. --shipped names a libfagen.so
that has fagen-kernels.bundle in its folder. The last column is of processes that find the disk cache of another: what it has less is
NVRTC's.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
CLASSES = ("dense", "decode", "gradients", "mixed")
BARS = {"dense": 0.6, "decode": 0.6, "gradients": 0.9, "mixed": 1.0}  # seconds, what it is held to with an empty cache


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=3, help="processes of each class and each kind (default 3)")
    p.add_argument("--classes", default=",".join(CLASSES))
    p.add_argument("--shipped", metavar="LIBRARY", help="libfagen.so beside fagen-kernels.bundle: a column of its own")
    p.add_argument("--programs", help="score programs of bench/scores.py, in the place of classes")
    p.add_argument("--head-dims", default="64,128", help="beside --programs")
    p.add_argument("--batch", type=int, default=4, help="sequences of 4096, beside --programs (default 4, as in bench/scores.py)")
    p.add_argument("-o", "--json", help="all times")
    return p.parse_args(argv)


def arguments(name):
    """How the class is called: q, k, v, o of fagen's args, and what else; all in device memory that is there before the clock starts."""
    import torch

    def randn(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
    if name.startswith("dense"):  # dense, or dense:d:program
        _, d, program, b = (name + ":128::1" if name == "dense" else name).split(":")[:4]
        heads = 2048 // int(d)
        what = {"mask": 1}
        if program:
            import scores
            torch.randn = torch.zeros  # what they hold takes no time of the kernel's that is worth its own kernels
            what.update(score=scores.text_of(program), values=scores.values_of(program, int(b), heads, 4096))
        q, k, v = (torch.zeros(int(b), 4096, heads, int(d), device="cuda", dtype=torch.bfloat16) for _ in "qkv")
        return [q, k, v, torch.empty_like(q)], what
    if name == "gradients":
        q, k, v, o, grad_o, gq, gk, gv = (randn(1, 4096, 16, 128) for _ in range(8))
        return [q, k, v, o, torch.full((1, 16, 4096), 8.0, device="cuda"), grad_o, gq, gk, gv], {"mask": 1}
    if name == "decode":
        q, k, v = randn(8, 1, 32, 128), randn(8, 8192, 8, 128), randn(8, 8192, 8, 128)
        return [q, k, v, torch.empty_like(q)], {"mask": 1}
    pages, rows = 64, [1] * 12 + [64, 200, 3, 128]  # decoding beside chunks of prompts: packed rows of queries over pages of 64
    first = torch.tensor([sum(rows[:i]) for i in range(len(rows) + 1)], dtype=torch.int32, device="cuda")
    q = randn(sum(rows), 32, 128)
    k, v = (randn(len(rows) * pages, 64, 8, 128) for _ in "kv")
    table = torch.arange(len(rows) * pages, dtype=torch.int32, device="cuda").reshape(len(rows), pages)
    lengths = torch.tensor([2000 + 100 * i for i in range(len(rows))], dtype=torch.int32, device="cuda")
    return [q, k, v, torch.empty_like(q)], {"mask": 1, "first_q": first, "sq": max(rows), "lengths": lengths, "table": table,
                                            "sk": 64 * pages}


def one(name, begin=None):
    """In the process that is timed: its tensors are made, begin() is called and its first result is there. In seconds of the clock and of
    this process's own work on the host, which other jobs there disturb less."""
    import torch
    from common import fagen
    given, what = arguments(name)
    torch.cuda.synchronize()
    if begin:
        begin()
    begun, worked = time.perf_counter(), time.process_time()
    fa = fagen.Fagen(cache_dir=os.environ["FAGEN_CACHE_DIR"])
    created = time.perf_counter()
    if "score" in what:
        what["score"] = fa.score(what["score"])
    args = fa.gradient_args(*given, **what) if name == "gradients" else fa.args(*given, **what)
    fa.launch(args)
    torch.cuda.synchronize()
    ended, work = time.perf_counter(), time.process_time() - worked
    return {"create": created - begun, "first": ended - begun, "work": work, "kernel": fa.explain(args).splitlines()[:2]}


class Waiting:
    """A process with tensors of its own, which waits. It is a copy of this one, in which PyTorch is there and no GPU is in use yet: dozens
    are ready in seconds. library: in the place of FAGEN_LIBRARY."""
    orders_of_all = []  # a copy closes those of the others: where this process ends, all of them end

    def __init__(self, name, cache, library=None):
        self.name = name
        (self.answers, says), (listens, self.orders) = os.pipe(), os.pipe()
        self.orders_of_all.append(self.orders)
        self.id = os.fork()
        if self.id:
            os.close(says), os.close(listens)
            return
        status = 1
        try:
            for orders in self.orders_of_all:
                os.close(orders)
            os.environ["FAGEN_CACHE_DIR"] = cache
            if library:
                os.environ["FAGEN_LIBRARY"] = library

            def begin():
                os.write(says, b"ready\n")
                if os.read(listens, 1) != b"g":
                    os._exit(1)  # the one that was to begin it has ended
            os.write(says, json.dumps(one(name, begin)).encode() + b"\n")
            os.read(listens, 1)  # giving its memory back would be beside the next one
            status = 0
        except Exception as e:  # whatever it is: the other process goes on
            print(f"first_result.py: {name}: {e}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)

    def line(self):
        text = b""
        while not text.endswith(b"\n"):
            more = os.read(self.answers, 65536)
            if not more:
                sys.exit(f"first_result.py: {self.name} ended")
            text += more
        return text.decode().strip()

    def first(self):
        """What one() found: nothing else runs."""
        os.write(self.orders, b"g")
        return json.loads(self.line())

    def end(self):
        os.close(self.orders), self.orders_of_all.remove(self.orders)


def in_turns(order, folder):
    """What one() found of each of (name, cache, library), in processes that run one after the other. A cache of None is a new one."""
    begun = time.monotonic()
    waiting = [Waiting(name, cache or tempfile.mkdtemp(dir=folder), library) for name, cache, library in order]
    for process in waiting:
        process.line()
    print(f"{len(waiting)} processes wait after {time.monotonic() - begun:.1f} s", flush=True)
    results = []
    for process in waiting:
        results.append(process.first())
        print(f"  {process.name:24} {results[-1]['first']:.3f} s, work {results[-1]['work']:.3f} s", flush=True)
    for process in waiting:
        process.end()
    for process in waiting:
        os.waitpid(process.id, 0)
    return results


def programs(o):
    """Of each head_dim: plain, then the programs, in turns, after a process that fills the host's cache of files."""
    doc = {}
    for d in o.head_dims.split(","):
        names = [f"dense:{d}:{program}:{o.batch}" for program in ["", *o.programs.split(",")]]
        found = {name: [] for name in names}
        order = [names[0], *names * o.rounds]
        with tempfile.TemporaryDirectory(prefix="fagen-first-") as folder:
            results = in_turns([(name, None, None) for name in order], folder)
        for name, result in list(zip(order, results))[1:]:
            found[name].append(result)
        for name, of in found.items():
            told = []
            for key, called in (("first", "first result"), ("work", "its process's work")):  # each over plain's of the same round
                pairs = [x[key] / plain[key] for x, plain in zip(of, found[names[0]])]
                least = min(x[key] for x in of) / min(x[key] for x in found[names[0]])  # a process is quick or slow by a third as it may be
                told.append(f"{called} {statistics.median(x[key] for x in of):.3f} s, {statistics.median(pairs):.2f} of plain "
                            f"({min(pairs):.2f}-{max(pairs):.2f}), least of least {least:.2f}")
            print(f"d={d:4} {name.split(':')[2] or 'plain':14} {', '.join(told)}", flush=True)
        doc.update(found)
    return doc


def classes(o):
    """Of each class, after a process that fills the host's cache of files, and the disk cache of the last column."""
    kinds = {"cold": (None, None), "warm": ("full", None)}
    if o.shipped:
        kinds["shipped"] = (None, os.path.abspath(o.shipped))
    names, lines, doc = o.classes.split(","), [], {}
    for name in names:
        with tempfile.TemporaryDirectory(prefix="fagen-first-") as folder:
            full = tempfile.mkdtemp(dir=folder)
            order = ["warm", *[kind for _ in range(o.rounds) for kind in kinds]]
            results = in_turns([(name, full if kinds[kind][0] else None, kinds[kind][1]) for kind in order], folder)
        doc[name] = {kind: [r for k, r in list(zip(order, results))[1:] if k == kind] for kind in kinds}
        texts = {}
        for kind, rows in doc[name].items():
            t = [r["first"] for r in rows]
            texts[kind] = f"{statistics.median(t):.3f} ({min(t):.3f}-{max(t):.3f})"
        lines.append(f"{name:10} {texts['cold']:22} {BARS[name]:6} {texts.get('shipped', '-'):22} {texts['warm']}")
    print(f"medians of {o.rounds} processes, seconds (least to most)\n"
          f"{'class':10} {'empty cache':22} {'asked':>6} {'kernels that ship':22} full cache")
    print("\n".join(lines), flush=True)
    return doc


def main():
    o = parse()
    import torch  # noqa: F401: before the copies
    from common import fagen  # noqa: F401
    import scores  # noqa: F401
    doc = programs(o) if o.programs else classes(o)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(doc, f, indent=1)


if __name__ == "__main__":
    main()
