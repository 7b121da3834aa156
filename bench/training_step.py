#!/usr/bin/env python3
"""A training step with fagen.attention beside PyTorch's scaled_dot_product_attention: forward and backward of a model of Llama's make with
random weights, in turns; the share of the step that attention takes; and the gradients of all parameters of a smaller model against fp64.

    python3 bench/training_step.py -o training.json                the Python package of PYTHONPATH, or of this tree with FAGEN_LIBRARY
    python3 bench/training_step.py --hidden 2048 --deterministic   fagen's deterministic gradients too
    python3 bench/training_step.py --replay training.json          the tables again, without PyTorch and GPU
    python3 bench/training_step.py --dry-run                       small sizes on the CPU: shows that the script runs; needs PyTorch
    python3 bench/training_step.py --dry-run --simulator sm_90a    the same, and fagen itself launches on the simulator
"""
import argparse
import json
import os
import random
import sys
import time
from dataclasses import asdict

from training import training_report


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--hidden", type=int, default=4096, choices=(2048, 4096), help="of the model that is timed (default 4096)")
    p.add_argument("--layers", type=int, default=12)
    p.add_argument("--tokens", type=int, default=8192)
    p.add_argument("--rounds", type=int, default=15, help="at most (default 15)")
    p.add_argument("--seconds", type=float, default=45, help="for the rounds: some are left out to keep it (default 45)")
    p.add_argument("--deterministic", action="store_true", help="fagen with deterministic gradients too")
    p.add_argument("--without", action="append", default=[], metavar="NAME",
                   help="leaves a contender out: sdpa, flash, cudnn; may be given again")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("-o", "--json", help="where the results go")
    p.add_argument("--replay", metavar="FILE", help="time nothing: the tables of this JSON file")
    p.add_argument("--dry-run", action="store_true", help="small sizes on the CPU")
    p.add_argument("--simulator", metavar="ARCH", help="with --dry-run: fagen itself launches, on the simulator of sm_80 or sm_90a")
    o = p.parse_args(argv)
    for name in ("layers", "tokens", "rounds"):
        if getattr(o, name) < 1:
            p.error(f"--{name} is {getattr(o, name)}; accepted: 1 and more")
    for name in o.without:
        if name not in ("sdpa", "flash", "cudnn"):
            p.error(f"--without is \"{name}\"; accepted: sdpa, flash, cudnn")
    if o.simulator and not o.dry_run:
        p.error("--simulator is given without --dry-run; accepted: both")
    return o


class Event:
    """A moment of the GPU's stream, or of the CPU."""

    def __init__(self, gpu):
        self.at = None
        if gpu:
            import torch
            self.at = torch.cuda.Event(enable_timing=True)
            self.at.record()
        else:
            self.now = time.perf_counter()

    def until(self, other):
        """Seconds; waits for the other."""
        if self.at is None:
            return other.now - self.now
        other.at.synchronize()
        return self.at.elapsed_time(other.at) * 1e-3


class Lab:
    """The contenders that run, the model that is timed, and the document of the run."""

    def __init__(self, options):
        from training import training_contenders
        from training import training_model
        self.o, self.gpu, self.rng = options, not options.dry_run, random.Random(options.seed)
        self.device = "cuda" if self.gpu else "cpu"
        if self.gpu:
            hidden = options.hidden
            self.shape = training_model.Shape(options.layers, hidden, 128, hidden // 512, hidden * 43 // 16, options.tokens)
            self.small = training_model.Shape(4, 512, 128, 1, 1376, 1024)
        else:
            self.shape = training_model.Shape(2, 256, 64, 1, 320, 48)
            self.small = training_model.Shape(2, 512, 128, 1, 320, 40)
        stand_in = options.dry_run and not options.simulator
        self.makers = {"fagen": training_contenders.Eager if stand_in else training_contenders.Fagen,
                       **({"fagen, deterministic": lambda: training_contenders.Fagen(True)} if options.deterministic else {}),
                       **{n: m for n, m in training_contenders.PEERS.items() if n not in options.without}}
        self.contenders, flops = {}, self.shape.flops()
        self.doc = {"schema": 1, "host": self.host(), "options": vars(options), "shape": self.about(self.shape),
                    "accuracy": self.about(self.small), "flops": {"step": flops[0], "attention": flops[1]}, "steps": {}, "skipped": {},
                    "errors": {}, "ways": {}}

    @staticmethod
    def about(shape):
        return {**asdict(shape), "hq": shape.hq}

    def host(self):
        if self.gpu:
            from common import machine
            return machine.described()
        import torch
        return {"device": f"CPU, a rehearsal{' on sim:' + self.o.simulator if self.o.simulator else ''}", "torch": torch.__version__}

    def without(self, name, error):
        """The contender is left out from here on."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        self.contenders.pop(name, None)
        self.doc["steps"].pop(name, None)
        self.doc["skipped"][name] = lines[0]
        print(f"without {name}: {lines[0]}", flush=True)
        if self.gpu:
            import torch
            torch.cuda.synchronize()  # a lost device ends the run here
            torch.cuda.empty_cache()

    def ready(self):
        """Makes the contenders, and lets each attend once to tensors of either model's shape: what compiles does so here."""
        import torch
        from training import training_contenders
        for name, make in self.makers.items():
            begun = time.monotonic()
            try:
                contender = make()
                for shape in (self.shape, self.small):
                    q, k, v = (torch.randn(1, shape.tokens, h, shape.d, device=self.device, dtype=torch.bfloat16)
                               for h in (shape.hq, shape.hkv, shape.hkv))
                    training_contenders.tried(contender, q, k, v)
                self.contenders[name] = contender
                self.doc["steps"][name] = {"version": contender.version, "note": contender.note, "ready": time.monotonic() - begun}
                print(f"{name}: ready in {time.monotonic() - begun:.1f} s", flush=True)
            except Exception as e:  # whatever a library raises: the run goes on without it
                self.without(name, e)

    def accuracy(self):
        from training import training_accuracy
        reference = training_accuracy.Reference(self.small, self.device, self.o.seed)
        for way, words in reference.WAYS.items():
            self.doc["ways"][way] = words
            for name, contender in list(self.contenders.items()):
                try:
                    self.doc["errors"].setdefault(way, {})[name] = reference.errors(way, contender)
                except Exception as e:
                    self.without(name, e)

    def step(self, model, state, grad, contender, spans=None):
        """Seconds of forward and backward. The gradients of the step before are let go first."""
        for t in (state, *model.parameters()):
            t.grad = None
        attend = spans.around(contender.attend) if spans else contender.attend
        with contender.context():
            start = Event(self.gpu)
            model(state, attend).backward(grad)
        return start.until(Event(self.gpu))

    def race(self):
        from training import training_contenders
        from training import training_model
        given = training_model.made(self.shape, self.device, self.o.seed)
        for name, contender in list(self.contenders.items()):
            try:
                for _ in range(2):  # the allocator settles, the clock too
                    self.step(*given, contender)
                self.doc["steps"][name].update(seconds=[], marked=[], attention=[])
            except Exception as e:
                self.without(name, e)
        begun, rounds = time.monotonic(), 0
        while rounds < self.o.rounds:
            names = list(self.contenders)
            self.rng.shuffle(names)
            for name in names:
                self.doc["steps"][name]["seconds"].append(self.step(*given, self.contenders[name]))
                if rounds % 3 == 0:  # steps with marks are timed apart
                    spans = training_contenders.Spans(lambda: Event(self.gpu))
                    self.doc["steps"][name]["marked"].append(self.step(*given, self.contenders[name], spans))
                    self.doc["steps"][name]["attention"].append(spans.seconds())
            rounds += 1
            if (time.monotonic() - begun) * (rounds + 1) / rounds > self.o.seconds:
                break

    def run(self):
        begun = time.monotonic()
        self.ready()
        self.accuracy()
        self.race()
        if self.gpu:
            from common import machine
            self.doc["clocks"] = machine.clocks()
        self.doc["took"] = time.monotonic() - begun
        return self.doc


def measured(options):
    if options.dry_run:
        import torch
        torch.set_num_threads(1)  # the sizes are small, and other processes may have the cores
        if options.simulator:
            os.environ["FAGEN_DEVICE"] = f"sim:{options.simulator}"
            options.seconds = 1e9
        options.rounds = min(options.rounds, 4)
    doc = Lab(options).run()
    if options.json:
        with open(options.json, "w") as f:
            json.dump(doc, f, indent=1)
    return doc


def main(argv=None):
    options = parse(argv)
    if options.replay:
        with open(options.replay) as f:
            doc = json.load(f)
    else:
        doc = measured(options)
    print(training_report.text(doc))
    bad = training_report.failures(doc)
    for line in bad:
        print(f"FAILED: {line}")
    sys.stdout.flush()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
