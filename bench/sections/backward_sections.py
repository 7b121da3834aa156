"""What backward.py times: a function of the lab, a case and its seconds, which returns the case's row."""
import time

import torch

from sections import backward_cases
from sections import backward_oracle
from sections import decode_lab
from common import fagen
from common import graphs
from sections import prompts_sections
from common.stats import calls_that_fill

DETERMINISTIC_FA4 = 128  # the head_dim whose tables have FlashAttention-4's deterministic kernel in any case


class Calls:
    """Stands for graphs.Graph where a library's calls cannot be captured: as many calls, between the same events."""

    def __init__(self, run, lasts):
        self.run, self.calls, self.out = run, 4, run(0)
        self.calls = calls_that_fill(lasts, min(self.sample() for _ in range(3)), 1)

    def replay(self):
        for i in range(self.calls):
            out = self.run(i)
        if out is not self.out:
            self.out.copy_(out)

    def sample(self):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.run(0)
        start.record()
        for i in range(self.calls):
            self.run(i)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / self.calls


class Lab(decode_lab.Lab):
    def capture(self, run, sets):
        try:
            return graphs.capture(run, sets, self.lasts)
        except Exception as e:  # whatever a capture forbids; a lost device raises again in the calls
            torch.cuda.synchronize()
            calls = Calls(run, self.lasts)
            calls.note = f"calls without a graph: {decode_lab.first_line(e)}"
            return calls

    def captured(self, runners, sets, row):
        out = super().captured(runners, sets, row)
        for name, g in out.items():
            notes = [x.note for x in (g, g.run) if hasattr(x, "note")]
            if notes:
                row["runs"][name]["note"] = "; ".join(notes)
        return out


def forward(lab, q, k, v, mask, **where):
    """O and LSE by fagen. where: of packed rows, as fagen.args() has it."""
    out = torch.empty_like(q)
    lse = torch.empty(*q.shape[:-3], q.shape[-2], q.shape[-3], device=q.device)
    args = lab.fa.args(q, k, v, out, mask, lse=lse, **where)
    space = lab.fa.give_workspace(args)
    lab.fa.launch(args)
    if q.is_cuda:
        torch.cuda.synchronize()
    del space
    return out, lse


def gradients(lab, case, seconds, deterministic):
    """The backward alone of each contender. deterministic: fagen's with that flag too, and FlashAttention-4's at every head_dim."""
    begun = time.monotonic()
    q, grad_out = (lab.randn(case.b, case.s, case.hq, case.d) for _ in "qo")
    k, v = (lab.randn(case.b, case.s, case.hkv, case.d) for _ in "kv")
    out, lse = forward(lab, q, k, v, fagen.MASKS[case.mask])
    written = backward_oracle.Gradients(*(torch.empty_like(t) for t in (q, k, v)))
    right = backward_oracle.Reference(case, q, k, v, grad_out)

    def args(flags):
        return [lab.fa.gradient_args(q, k, v, out, lse, grad_out, *written.tensors, mask=fagen.MASKS[case.mask], flags=flags)]

    def contenders():
        yield from lab.ours("", lambda: args(0), [written])
        if deterministic:
            yield from lab.ours(", deterministic", lambda: args(fagen.DETERMINISTIC), [written])
        causal = case.mask == "causal"
        yield from lab.beside("backward", "", lambda f: f(q, k, v, grad_out, causal))
        if deterministic or (case.d == DETERMINISTIC_FA4 and case.hq == case.hkv):
            yield from lab.beside("deterministic", ", deterministic", lambda f: f(q, k, v, grad_out, causal))
    row = {**case.dict(), "checked": right.share}
    return lab.measure(row, contenders(), right, 1, seconds and seconds - (time.monotonic() - begun))


def packed(lab, case, seconds, deterministic):
    """Sequences end to end; those of equal lengths beside the same as a dense batch."""
    begun = time.monotonic()
    x = prompts_sections.Batch(lab, case.lengths(), case.hq, case.hkv, case.d)
    grad_out, mask = lab.randn(*x.q.shape), fagen.MASKS[case.mask]
    where = dict(first_q=x.first_q, first_k=x.first_k, sq=x.sq, sk=x.sk)
    out, lse = forward(lab, x.q, x.k, x.v, mask, **where)
    written = backward_oracle.Gradients(*(torch.empty_like(t) for t in (x.q, x.k, x.v)))
    right = backward_oracle.Packed(case, x.q, x.k, x.v, grad_out)

    wide = as_dense(lab, x, grad_out, written, mask) if len(set(x.nq)) == 1 else None  # it keeps what its launches read

    def args(flags=0):
        return [lab.fa.gradient_args(x.q, x.k, x.v, out, lse, grad_out, *written.tensors, mask=mask, flags=flags, **where)]

    def contenders():
        yield from lab.ours("", args, [written])
        for name, family in backward_cases.FORCED.items():
            yield name, "ours", lambda family=family: lab.launches(args(), [written], family)
        if wide:
            yield from lab.ours(", dense", wide, [written])
        given = x.q, x.k, x.v, grad_out, case.mask == "causal", x.first_q, x.first_k, x.sq, x.sk
        yield from lab.beside("packed", "", lambda f: f(*given))
        if deterministic:
            yield from lab.ours(", deterministic", lambda: args(fagen.DETERMINISTIC), [written])
            yield from lab.beside("packed_deterministic", ", deterministic", lambda f: f(*given))
    row = {**case.dict(), "checked": right.share}
    return lab.measure(row, contenders(), right, 1, seconds and seconds - (time.monotonic() - begun))


def as_dense(lab, x, grad_out, written, mask):
    """A function that gives the arguments for a batch of equal lengths, without lengths. It writes to the same memory."""
    q, k, v, of_out, *to = (t.unflatten(0, (len(x.nq), x.sq)) for t in (x.q, x.k, x.v, grad_out, *written.tensors))
    saved = forward(lab, q, k, v, mask)
    return lambda: [lab.fa.gradient_args(q, k, v, *saved, of_out, *to, mask=mask)]
