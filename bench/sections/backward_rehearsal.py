"""backward.py without a GPU: small cases, PyTorch on the CPU, and in place of fagen and of each peer gradients in fp32, computed from the
very arguments that they would get. Or fagen itself launches, on the simulator.
"""
import types
from dataclasses import replace

import torch

from sections import backward_cases
from sections import backward_oracle
from common import fagen
from sections import prompts_rehearsal


def small(jobs):
    """The jobs with cases that a CPU computes in no time, none twice."""
    return list(dict.fromkeys((section, cut(case)) for section, case in jobs))


def cut(case):
    if isinstance(case, backward_cases.Packed):
        return replace(case, tokens=160, typical=40, shortest=5, longest=120, **heads(case))
    return replace(case, b=min(case.b, 2), **heads(case), s=24 + case.s // 128)


def heads(case):
    """Few of them; cases with groups of other sizes, or other numbers of groups, stay apart."""
    group = case.hq // case.hkv
    hkv = 4 if group == 1 else max(1, case.hkv // 4)
    return {"hq": group * hkv, "hkv": hkv}


def sequences(first, most):
    """The rows of each sequence that begins at first."""
    for begin, end in zip(first[:-1].tolist(), first[1:].tolist()):
        if end - begin > most:
            raise RuntimeError(f"a sequence has {end - begin} rows, the most is said to be {most}")
        yield slice(begin, end)


def computed(q, k, v, grad_out, causal, first_q=None, first_k=None, sq=None, sk=None):
    """(Gradients, out, lse) in fp32, head by head, of a dense batch or of packed rows."""
    group = q.shape[-2] // k.shape[-2]
    made = tuple(torch.empty_like(t, dtype=torch.float32) for t in (q, k, v, grad_out))
    lse = torch.empty(*q.shape[:-3], q.shape[-2], q.shape[-3])
    rows = range(q.shape[0]) if first_q is None else sequences(first_q, sq)
    for i, j in zip(rows, range(q.shape[0]) if first_k is None else sequences(first_k, sk)):
        sums = lse[i] if first_q is None else lse[:, i]
        for h in range(k.shape[-2]):
            of = slice(h * group, (h + 1) * group)
            given = (q[i][:, of].transpose(0, 1), k[j][:, h], v[j][:, h], grad_out[i][:, of].transpose(0, 1))
            grad_q, made[1][j][:, h], made[2][j][:, h], out, sums[of] = backward_oracle.head(*(t.float() for t in given), causal)
            made[0][i][:, of], made[3][i][:, of] = grad_q.transpose(0, 1), out.transpose(0, 1)
    return backward_oracle.Gradients(*made[:3]), made[3], lse


class Fagen(prompts_rehearsal.Fagen):
    """Stands for fagen.Fagen. Gradients are right only with the O and LSE of a forward."""

    def args(self, q, k, v, o, mask=0, flags=0, lse=None, **where):
        return types.SimpleNamespace(q=q, k=k, v=v, o=o, lse=lse, causal=mask == fagen.CAUSAL, grad_out=None, where=where)

    def gradient_args(self, q, k, v, o, lse, grad_out, grad_q, grad_k, grad_v, mask=0, flags=0, **where):
        a = self.args(q, k, v, o, mask, flags, lse, **where)
        a.grad_out, a.written, a.flags = grad_out, backward_oracle.Gradients(grad_q, grad_k, grad_v), flags
        return a

    def launch(self, a, plan=None):
        found, out, lse = computed(a.q, a.k, a.v, torch.zeros_like(a.q) if a.grad_out is None else a.grad_out, a.causal, **a.where)
        if a.grad_out is None:
            a.o.copy_(out)
            a.lse.copy_(lse)
        elif (a.o.float() - out).abs().max() > 0.05 or (a.lse - lse).abs().max() > 1e-3:
            raise RuntimeError("O and LSE are not those of the forward")
        else:
            a.written.copy_(found)

    def problem_of(self, args):
        return None

    def pick(self, problem, text):
        return text

    def plan(self, problem, config):
        return fagen.Plan(None, config, "")


class Simulated(prompts_rehearsal.Simulated):
    """fagen on the simulator, for both passes and for named configs."""
    tensors = ("q", "k", "v", "o", "grad_o", "grad_q", "grad_k", "grad_v")
    addresses = (*prompts_rehearsal.Simulated.addresses, "lse", "grad_lse")

    def args(self, q, k, v, o, mask=0, **given):
        a = super().args(q, k, v, o, mask, **given)
        self.held[id(a)] = a, [o, given["lse"]], self.held[id(a)][2]
        return a

    def gradient_args(self, q, k, v, o, lse, grad_out, *written, **given):
        a = super().gradient_args(q, k, v, o, lse, grad_out, *written, **given)
        self.held[id(a)] = a, list(written), [*self.held[id(a)][2], grad_out, *written]
        return a


class Peer:
    """Stands for each peer."""

    def backward(self, q, *given):
        return lambda i: backward_oracle.Gradients(*(t.to(q.dtype) for t in computed(q, *given)[0].tensors))

    deterministic = packed = packed_deterministic = backward


class Lab(prompts_rehearsal.Lab):
    def __init__(self, options, lever):
        super().__init__(options)
        self.fa = Simulated(options.simulator, lever=lever) if options.simulator else Fagen()
        self.configs = list(options.config) if options.simulator else []
        self.peers, self.about = {"fa4": Peer()}, {"fa4": {"version": "gradients in fp32"}}
