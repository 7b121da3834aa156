"""The child of variants.py: compiles, checks and races, and tells each step on standard output, a JSON document per line."""
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from common import cells
from common import config_text
from common import stats

RACE = "the race"  # what a worker is at when it times all configs of a problem


def tell(**message):
    print(json.dumps(message), flush=True)


class Worker:
    def __init__(self, job):
        from common import fagen
        self.job, self.fagen = job, fagen
        self.cells = [cells.of_dict(c) for c in job["cells"]]
        self.fa = fagen.Fagen(lever=True)
        with ThreadPoolExecutor(self.job["threads"]) as pool:
            self.variants = dict(zip(self.cells, pool.map(self.named, self.cells)))

    def problem(self, cell):
        return self.fa.problem(**{n: getattr(cell, n) for n in ("dtype", "mask", "d", "dv", "b", "hq", "hkv", "sq", "sk")})

    def named(self, cell):
        """[{"config", perhaps "why"}]: whole configs, each once; what fits nowhere says why."""
        p, out, ranked = self.problem(cell), {}, {}

        def fitting(family):  # pricing the whole space takes a while: once
            if family not in ranked:
                try:
                    ranked[family] = self.fa.rank(p, 0, family)
                except self.fagen.Error:
                    ranked[family] = []
            return ranked[family]

        def add(config, **more):
            out.setdefault(config, {"config": config}).update(more)
        for text in self.job["configs"]:
            some = fitting(text.partition(":")[0])
            config = next((c for c in some if config_text.is_part(text, c)), None)
            try:
                config = config or self.fa.pick(p, text)  # it may be outside the space, or tells what is wrong
            except self.fagen.Error as e:
                add(text, why=str(e))
                continue
            add(config)
            for c in some if self.job["around"] else ():
                if config_text.distance(config, c) <= self.job["around"]:
                    add(c)
        if self.job["top"]:
            for config in fitting(self.job["family"])[:self.job["top"]]:
                add(config)
        if self.job["chosen"]:
            chosen = self.fa.pick(p, self.fagen.explained(self.fa.explain(problem=p))["config"])  # numbers in the place of names
            add(chosen, chosen=True)
            for c in fitting(chosen.partition(":")[0]) if self.job["around"] else ():
                if config_text.distance(chosen, c) <= self.job["around"]:
                    add(c)
            for config in config_text.varied(chosen, self.job["vary"])[1:] if self.job["vary"] else ():
                try:
                    add(self.fa.pick(p, config))
                except self.fagen.Error:  # it breaks a rule
                    pass
        for config, why in self.job["dead"].get(cell.problem(), {}).items():
            if config in out:
                out[config]["why"] = why
        return list(out.values())

    def compile(self):
        begun = time.monotonic()

        def one(pair):
            cell, v = pair
            try:
                v["plan"] = self.fa.plan(self.problem(cell), v["config"])
                v["told"] = v["plan"].told
            except self.fagen.Error as e:
                v["why"] = str(e)
        todo = [(c, v) for c in self.cells for v in self.variants[c] if "why" not in v]
        with ThreadPoolExecutor(self.job["threads"]) as pool:
            list(pool.map(one, todo))
        fresh = sum(v.get("told", {}).get("from") == "compiler" for _, v in todo)
        tell(say=f"{len(todo)} kernels, {fresh} of them compiled, in {time.monotonic() - begun:.1f} s")

    def race(self, cell):
        from common import tournament
        from common import oracle
        from common import peers
        import torch
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16}[cell.dtype]
        shapes = ((cell.sq, cell.hq, cell.d), (cell.sk, cell.hkv, cell.d), (cell.sk, cell.hkv, cell.dv))
        sets = [[torch.randn(cell.b, *s, device="cuda", dtype=kind) for s in shapes] for _ in range(2)]
        outs = [torch.empty(cell.b, cell.sq, cell.hq, cell.dv, device="cuda", dtype=kind) for _ in sets]
        args = [self.fa.args(q, k, v, o, self.fagen.MASKS[cell.mask], window=(cell.left, cell.right),
                             diagonal=self.fagen.DIAGONALS[cell.diagonal]) for (q, k, v), o in zip(sets, outs)]
        reference = oracle.Reference(cell, *sets[0])
        runners = {}
        some = self.variants[cell]
        for v in some:
            if "plan" not in v:
                continue
            tell(at=(cell.problem(), v["config"]))
            self.check(v, cell, args, outs, reference, runners)
            tell(at=None)
        for name in self.job["peers"]:
            v = {"config": name, "peer": True}
            some.append(v)
            try:
                peer = peers.PEERS[name]()
                run = peer.runner(cell, sets)
                with peer.context():
                    v["error"], v["worst"] = reference.error(run(0))
                runners[name] = tournament.Runner(run, peer.context)
            except Exception as e:  # a peer may raise anything
                v["why"] = str(e).splitlines()[0] if str(e) else type(e).__name__
        del reference
        self.heats(cell, runners)
        for v in some:
            v.pop("plan", None)
            if v["config"] in runners:
                v["seconds"] = runners[v["config"]].seconds
        tell(result={"problem": cell.problem(), "flops": cell.flops(), "variants": some})

    def check(self, v, cell, args, outs, reference, runners):
        from common import tournament
        import torch
        plan = v["plan"]
        if self.fa.workspace(args[0], plan):
            v["why"] = "it needs a workspace, and a race gives none"
            return
        outs[0].fill_(float("nan"))
        try:
            self.fa.launch(args[0], plan)
            torch.cuda.synchronize()
        except self.fagen.Error as e:
            v["why"] = str(e)
            return
        v["error"], v["worst"] = reference.error(outs[0])
        if not v["error"] < stats.ACCURATE or not v["worst"] < 10 * stats.ACCURATE:
            v["why"] = f"wrong: relative error {v['error']:.2e}, of its worst tile {v['worst']:.2e}"
            return
        runners[v["config"]] = tournament.Runner(lambda i: self.fa.launch(args[i % 2], plan))

    def heats(self, cell, runners):
        """A short sample of all, then rounds of those that are near the best; the field is narrowed once more halfway."""
        for name, r in runners.items():
            tell(at=(cell.problem(), name))
            r.seconds = [r.sample()]
        keep, sized = self.job["keep"], set()
        ours = [r for name, r in runners.items() if name not in self.job["peers"]]
        for n, slack in ((2, keep ** 3), (max(2, self.job["rounds"] // 3), keep ** 1.5), (self.job["rounds"], keep)):
            best = min((stats.statistics.median(r.seconds) for r in ours), default=None)
            field = [r for r in runners.values() if r not in ours or stats.statistics.median(r.seconds) < slack * best]
            for r in field:
                if r not in sized:
                    r.size(self.job["sample"], r.seconds[-1])
                    sized.add(r)
            for k in range(n):
                tell(at=(cell.problem(), RACE))  # a sign of life, too
                turn = k % max(1, len(field))
                for r in field[turn:] + field[:turn]:
                    r.seconds.append(r.sample())
            for r in field:
                del r.seconds[:len(r.seconds) - n]  # the samples of the last rounds count, which were taken side by side
        tell(at=None)


def main(job):
    from common import tournament
    import torch
    try:
        w = Worker(job)
        w.compile()
        tournament.warm_up(0.3)
        torch.manual_seed(1)
        with torch.no_grad():
            for cell in w.cells:
                w.race(cell)
    except RuntimeError as e:  # a fault on the device ends this process; the parent knows where it was
        tell(why=str(e).splitlines()[0] if str(e) else type(e).__name__)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin)))
