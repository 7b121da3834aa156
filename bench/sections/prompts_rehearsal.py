"""prompts.py without a GPU: cases cut down, PyTorch on the CPU, and in place of fagen and of each peer attention in fp32, computed from
the very arguments that they would get. What a section passes wrongly, a length, a first row or a page table, is a wrong result here too.
Or fagen itself launches, on the simulator.
"""
import ctypes as C
import gc
import random
import time
import types
from dataclasses import replace

import torch

from sections import decode_lab
from sections import decode_oracle
from common import fagen
from sections import prompts_cases


def small(jobs):
    """The jobs with cases that a CPU computes in no time, none twice."""
    return list(dict.fromkeys((section, cut(case)) for section, case in jobs))


def cut(case):
    heads = {"hq": 4, "hkv": 2}
    if isinstance(case, prompts_cases.Packed):
        return replace(case, tokens=case.tokens // 128, typical=32, longest=200, **heads)
    if isinstance(case, prompts_cases.Chunk):
        return replace(case, new=case.new // 128, cached=case.cached // 512, **heads)
    if isinstance(case, prompts_cases.Mixed):
        return replace(case, users=case.users // 8, new=case.new // 32, longest=case.longest // 64, **heads)
    if isinstance(case, prompts_cases.Dense):
        s = case.cell.sq // 100
        return replace(case, cell=replace(case.cell, hq=2, hkv=2, sq=s, sk=s))
    if isinstance(case, prompts_cases.Watched):
        return replace(case, new=min(case.new, 40), keys=case.keys // 10, others=6, longest=150, most=30, **heads)
    return replace(case, b=min(case.b, 2), hq=4, hkv=2, sk=case.sk // 64)


def sequences(q, k, v, first_q=None, first_k=None, lengths=None, table=None):
    """(rows of q, K, V) of each sequence, as the arguments say where it lies."""
    b = len(first_q) - 1 if first_q is not None else q.shape[0]
    for i in range(b):
        own = (q[first_q[i]:first_q[i + 1]] if first_q is not None else q[i])
        if table is not None:
            n = int(lengths[i])
            yield own, decode_oracle.rows_of(k, table[i], n), decode_oracle.rows_of(v, table[i], n)
        elif first_k is not None:
            yield own, k[first_k[i]:first_k[i + 1]], v[first_k[i]:first_k[i + 1]]
        else:
            n = int(lengths[i]) if lengths is not None else k.shape[1]
            yield own, k[i, :n], v[i, :n]


def attention(q, k, v, causal=True, sq=None, sk=None, **where):
    out = [decode_oracle.attend(*one, causal) for one in sequences(q, k, v, **where)]
    for most, n in ((sq, max(o.shape[0] for o in out)), (sk, max(s[1].shape[0] for s in sequences(q, k, v, **where)))):
        if most is not None and most < n:
            raise RuntimeError(f"a sequence has {n} rows, the most is said to be {most}")
    return (torch.cat(out) if q.dim() == 3 else torch.stack(out)).to(q.dtype)


class Fagen:
    """Stands for fagen.Fagen."""
    path = "none: a rehearsal"

    def version(self):
        return "0"

    def args(self, q, k, v, o, mask=0, flags=0, **where):
        return types.SimpleNamespace(q=q, k=k, v=v, o=o, mask=mask, flags=flags, where=where, workspace=None, workspace_size=0)

    def give_workspace(self, args, plan=None):
        return torch.empty(0)

    def launch(self, a, plan=None):
        a.o.copy_(attention(a.q, a.k, a.v, a.mask == 1, **a.where))

    def explain(self, args):
        return "config attention in fp32\nwhy model: none"


class Simulated(fagen.Fagen):
    """fagen on the simulator. A launch takes copies of all tensors there, and brings back those of its outputs."""
    tensors = "qkvo"  # fields of fa_args
    addresses = ("cu_seqlens_q", "cu_seqlens_k", "seqlens_q", "seqlens_k", "page_table")

    def __init__(self, arch, lever=False):
        super().__init__(lever=lever, device=f"sim:{arch}")
        self.held = {}  # arguments, outputs, all tensors, by the id of the first

    def args(self, q, k, v, o, mask=0, **given):
        a = super().args(q, k, v, o, mask, **given)
        self.held[id(a)] = a, [o], [t for t in (q, k, v, o, *given.values()) if isinstance(t, torch.Tensor)]
        return a

    def room(self, nbytes):
        at = C.c_void_p()
        self.check(self.lib.fa_alloc(self.ctx, C.byref(at), C.c_size_t(max(nbytes, 1))))
        return at.value

    def copy(self, to, of, nbytes, back):
        self.check(self.lib.fa_copy(self.ctx, C.c_void_p(to), C.c_void_p(of), C.c_size_t(nbytes), C.c_int(back)))

    def give_workspace(self, args, plan=None):
        n = self.workspace(args, plan)
        if n:
            args.workspace, args.workspace_size = self.room(n), n
            self.check(self.lib.fa_workspace_init(self.ctx, C.c_void_p(args.workspace), C.c_size_t(n), None))

    def launch(self, args, plan=None):
        _, outputs, tensors = self.held[id(args)]
        there, call = {}, fagen.Args.from_buffer_copy(args)
        for t in tensors:
            own = t.untyped_storage()
            if own.data_ptr() not in there:
                there[own.data_ptr()] = self.room(own.nbytes()), own.nbytes()
                self.copy(there[own.data_ptr()][0], own.data_ptr(), own.nbytes(), 0)

        def moved(address):
            return next(to + address - at for at, (to, n) in there.items() if at <= address < at + max(n, 1))
        for name in self.tensors:
            t = getattr(call, name)
            t.ptr = moved(t.ptr) if t.ptr else None
        for name in self.addresses:
            setattr(call, name, moved(getattr(call, name)) if getattr(call, name) else None)
        super().launch(call, plan, stream=0)
        for own in (t.untyped_storage() for t in outputs):
            at, n = there[own.data_ptr()]
            self.copy(own.data_ptr(), at, n, 1)
        for to, _ in there.values():
            self.check(self.lib.fa_free(self.ctx, C.c_void_p(to)))

    def explain(self, args=None, problem=None):
        return super().explain(problem=self.problem_of(args))


class Peer:
    """Stands for each peer, with all entries."""

    def dense(self, cell, sets):
        return lambda i: attention(*sets[i % len(sets)], cell.mask == "causal")

    def packed(self, q, k, v, first_q, first_k, sq, sk):
        return lambda i: attention(q, k, v, first_q=first_q, first_k=first_k, sq=sq, sk=sk)

    def padded(self, q, k, v, first_q, lengths, sq):
        return lambda i: attention(q, k, v, first_q=first_q, lengths=lengths, sq=sq)

    def paged(self, q, k, v, first_q, lengths, table, sq):
        return lambda i: attention(q, k, v, first_q=first_q, lengths=lengths, table=table, sq=sq)


class Graph:
    """Stands for graphs.Graph: it calls."""
    calls = 1

    def __init__(self, run):
        self.run, self.out = run, run(0)

    def replay(self):
        self.out.copy_(self.run(0))

    def sample(self):
        begun = time.perf_counter()
        self.replay()
        return time.perf_counter() - begun


class Lab(decode_lab.Lab):
    machine = types.SimpleNamespace(described=lambda: {"device": "CPU, a rehearsal", "torch": torch.__version__}, clocks=dict)

    def __init__(self, options):
        torch.set_num_threads(1)  # the sizes are small, and other processes may have the cores
        self.configs, self.without, self.rounds, self.lasts, self.device = [], set(options.without), 3, options.lasts, "cpu"
        self.rng = random.Random(options.seed)
        self.fa = Simulated(options.simulator) if options.simulator else Fagen()
        self.peers, self.about = {"fa3": Peer()}, {"fa3": {"version": "attention in fp32"}}

    def warm_up(self):
        pass

    def alive(self, name):
        pass

    def tidy(self):
        gc.collect()

    def capture(self, run, sets):
        return Graph(run)

    def race(self, racing, seconds):
        return {name: [g.sample() for _ in range(self.rounds)] for name, g in racing.items()}
