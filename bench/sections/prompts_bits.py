"""The section of prompts.py on bits: one sequence in many batches, each time with the flag that asks for the same result."""
import time

import torch

from sections import decode_cases
from sections import decode_oracle
from common import fagen
from common import stats
from sections.prompts_sections import CAUSAL, firsts
from side_by_side import first_line


class Watched:
    """The sequence, whose rows stay the same, and so many others that every batch is a part of them."""

    def __init__(self, lab, case):
        self.lab, self.case = lab, case
        self.q = lab.randn(case.new, case.hq, case.d)
        self.k, self.v = (lab.randn(case.keys, case.hkv, case.d) for _ in "kv")
        self.pool = [lab.randn(4096, heads, case.d) for heads in (case.hq, case.hkv, case.hkv)]

    def foreign(self, which, n):
        """n rows for the others: those of the pool again and again, from any place on."""
        pool, at = self.pool[which], self.lab.rng.randrange(4096)
        return pool[(torch.arange(at, at + n, device=pool.device)) % 4096]

    def rows(self, which, own, counts, place):
        before, behind = sum(counts[:place]), sum(counts[place + 1:])
        return torch.cat([self.foreign(which, before), own, self.foreign(which, behind)])

    def launch(self, place, others):
        """(args, what they hold, rows of the sequence in O) of the batch."""
        lengths = [*others[:place], (self.case.new, self.case.keys), *others[place:]]
        nq, nk = [q for q, _ in lengths], [k for _, k in lengths]
        at = firsts(nq)
        q = self.rows(0, self.q, nq, place)
        k, v = (self.rows(n, own, nk, place) for n, own in ((1, self.k), (2, self.v)))
        out, first_q = torch.full_like(q, float("nan")), self.lab.ints(at)
        held = [q, k, v, out, first_q, self.lab.ints(firsts(nk)), self.lab.ints(nk)]
        given = {"first_q": first_q, "sq": max(nq), "sk": max(nk), "flags": fagen.BATCH_INVARIANT}
        if self.case.page:
            rows, count = decode_cases.tables(nk, self.case.page, self.lab.rng)
            table = self.lab.ints(rows)
            pages = [self.in_pages(t, nk, rows, count) for t in (k, v)]
            held += [table, *pages]
            args = self.lab.fa.args(q, *pages, out, CAUSAL, lengths=held[6], table=table, **given)
        else:
            args = self.lab.fa.args(q, k, v, out, CAUSAL, first_k=held[5], **given)
        return args, held, out[at[place]:at[place + 1]]

    def in_pages(self, flat, nk, rows, count):
        size = self.case.page
        where = [rows[i][j // size] * size + j % size for i, n in enumerate(nk) for j in range(n)]
        out = torch.full((count * size, *flat.shape[1:]), float("nan"), dtype=flat.dtype, device=flat.device)
        out[torch.tensor(where, device=flat.device)] = flat
        return out.unflatten(0, (count, size))


def bits(lab, case, seconds, batches):
    """Launches batch after batch, and counts those in which the sequence's bits are not those of the first, where it is alone."""
    begun, x = time.monotonic(), Watched(lab, case)
    row = {**case.dict(), "batches": 0, "different": [], "runs": {}, "skipped": {}}
    right, first = decode_oracle.attend(x.q, x.k, x.v, causal=True), None
    try:
        for n, (place, others) in enumerate(case.batches(batches)):
            if seconds is not None and n and time.monotonic() - begun > seconds:
                break
            args, held, mine = x.launch(place, others)
            space = lab.fa.give_workspace(args)
            lab.fa.launch(args)
            got = mine.view(torch.int16).cpu()
            first = got if first is None else first
            row["batches"] += 1
            if not torch.equal(got, first):
                row["different"].append(n)
            if n == 0:
                error, worst = decode_oracle.error(mine, right)
                told = fagen.explained(lab.fa.explain(args))
                row["runs"]["ours"] = {"kind": "ours", "error": error, "worst": worst,
                                       **{k: told[k] for k in ("config", "origin", "why") if k in told}}
            del held, space
        stats.judge(row["runs"])
        if row["different"]:
            row["runs"]["ours"]["wrong"] = (f"other bits in {len(row['different'])} of {row['batches']} batches, first in number "
                                            f"{row['different'][0]}")
    except Exception as e:
        row["skipped"]["ours"] = first_line(e)
        lab.alive(case.name())
    row["took"] = time.monotonic() - begun
    return row
