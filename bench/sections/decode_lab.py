"""What every section of decode.py works with: fagen, the peers that are there, the time that is left, and the one way to measure a case."""
import gc
import random
import time

import torch

from sections import decode_oracle
from sections import decode_peers
from common import fagen
from common import graphs
from common import machine
from common import stats
from common import tournament
from side_by_side import first_line


class Broken(RuntimeError):
    """The CUDA context is lost: nothing more can be measured in this process."""


class Lab:
    """configs: named ones, timed beside what fa_launch chooses. without: names of contenders that are left out. peers: {name: a function
    that makes one}, those of decoding by default. lever: configs can be named without any of those, too."""

    def __init__(self, configs=(), without=(), rounds=25, lasts=1e-3, seed=1, device="cuda", peers=None, lever=False):
        self.configs, self.without, self.rounds, self.lasts, self.device = list(configs), set(without), rounds, lasts, device
        self.rng = random.Random(seed)
        self.fa = fagen.Fagen(lever=lever or bool(self.configs))
        self.peers, self.about = {}, {}
        for name, make in (decode_peers.PEERS if peers is None else peers).items():
            peer = make()
            why = "named in --without" if name in self.without else peer.available()
            self.about[name] = {"missing": why} if why else {"version": peer.version()}
            if not why:
                self.peers[name] = peer

    def randn(self, *shape):
        return torch.randn(*shape, device=self.device, dtype=torch.bfloat16)

    def ints(self, values):
        return torch.tensor(values, dtype=torch.int32, device=self.device)

    machine = machine

    def warm_up(self):
        tournament.warm_up()

    def capture(self, run, sets):
        return graphs.capture(run, sets, self.lasts)

    def race(self, racing, seconds):
        return graphs.race(racing, self.rng, self.rounds, seconds)

    def room(self, nbytes):
        """Why there is no room for that many bytes of device memory more, or None."""
        free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        return None if nbytes < 0.9 * free else f"needs {nbytes / 1e9:.1f} GB of device memory, {free / 1e9:.1f} GB are free"

    def ours(self, label, make_args, outs):
        """(name, kind, make) of what fa_launch chooses and of each named config. make_args() gives a launch's arguments for each of outs.
        label: what is added to the name, as ", page 16"."""
        for n, config in enumerate([None] + self.configs):
            yield (f"named {n}" if config else "ours") + label, "ours", lambda config=config: self.launches(make_args(), outs, config)

    def whole(self, problem, config):
        """The config with what it leaves out filled in by the model; as it is for a family without one."""
        try:
            return self.fa.pick(problem, config)
        except fagen.Error:
            return config

    def launches(self, args, outs, config):
        plan = None
        if config:
            problem = self.fa.problem_of(args[0])
            plan = self.fa.plan(problem, self.whole(problem, config))
        space = self.fa.give_workspace(args[0], plan)
        for a in args[1:]:
            a.workspace, a.workspace_size = args[0].workspace, args[0].workspace_size

        def run(i, keep=space):
            self.fa.launch(args[i % len(args)], plan)
            return outs[i % len(outs)]

        def told():
            if plan:
                return {"config": plan.config, "origin": "named", "resources": " ".join(f"{k}={v}" for k, v in plan.told.items())}
            lines = fagen.explained(self.fa.explain(args[0]))
            return {k: lines[k] for k in ("config", "origin", "why", "resources", "launch") if k in lines}
        return run, told

    def beside(self, entry, label, make):
        """(name, kind, make) of every peer that has the entry; make(function) calls it."""
        for name, peer in self.peers.items():
            if hasattr(peer, entry):
                yield name + label, "peer", lambda f=getattr(peer, entry): (make(f), dict)

    def alive(self, name):
        try:
            torch.cuda.synchronize()
        except Exception as e:
            raise Broken(f"after {name}: {first_line(e)}; --without '{name}' leaves it out") from None

    @staticmethod
    def error(out, right):
        """right: what out should be, or an object that tells itself how far out is from it."""
        return right.error(out) if hasattr(right, "error") else decode_oracle.error(out, right)

    def checked(self, contenders, right, row):
        """{name: run} of those whose output is right; the others are marked, or skipped with their reason."""
        runners = {}
        for name, kind, make in contenders:
            if name in self.without:
                row["skipped"][name] = "named in --without"
                continue
            try:
                run, told = make()
                error, worst = self.error(run(0), right)
                row["runs"][name] = {"kind": kind, "error": error, "worst": worst, **told()}
                runners[name] = run
            except Exception as e:  # whatever a peer raises: the case goes without it
                row["runs"].pop(name, None)
                row["skipped"][name] = first_line(e)
                self.alive(name)
        stats.judge(row["runs"])
        return {n: r for n, r in runners.items() if "wrong" not in row["runs"][n]}

    def captured(self, runners, sets, row):
        out = {}
        for name, run in runners.items():
            try:
                out[name] = self.capture(run, sets)
                row["runs"][name]["calls"] = out[name].calls
            except Exception as e:
                row["runs"].pop(name)
                row["skipped"][name] = f"under capture: {first_line(e)}"
                self.alive(name)
        return out

    def measure(self, row, contenders, right, sets=1, seconds=None):
        """Checks, captures and races the contenders, and checks what the last replay left. Fills row["runs"] and row["skipped"]. right:
        the output that calls on the first of the sets should have, or what tells how far one is from it."""
        begun = time.monotonic()
        row.update(runs={}, skipped={})
        racing = self.captured(self.checked(contenders, right, row), sets, row)
        left = None if seconds is None else seconds - (time.monotonic() - begun)
        for name, samples in self.race(racing, left).items() if racing else ():
            row["runs"][name]["seconds"] = samples
        for name, g in racing.items():
            g.out.fill_(float("nan"))
            g.replay()
            self.alive(name)
            row["runs"][name]["error after"], worst = self.error(g.out, right)
            if not worst < 10 * stats.ACCURATE:
                row["runs"][name]["wrong"] = f"after its replays: relative error of a head {worst:.2e}"
        row["took"] = time.monotonic() - begun
        return row

    def tidy(self):
        """Memory of a case back to the device, before the next one's."""
        gc.collect()
        torch.cuda.empty_cache()
