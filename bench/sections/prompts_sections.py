"""The sections of prompts.py that time kernels: a function of the lab, a case and its seconds, which returns the case's row."""
import itertools

import torch

from sections import decode_cases
from sections import decode_oracle
from common import fagen
from common import oracle
from sections.decode_sections import keeping

CAUSAL = fagen.CAUSAL


def firsts(counts):
    return [0, *itertools.accumulate(counts)]


class Batch:
    """Sequences end to end: random rows of queries and keys, on the host and on the device where each begins."""

    def __init__(self, lab, lengths, hq, hkv, d):
        self.lab, self.nq, self.nk = lab, [q for q, _ in lengths], [k for _, k in lengths]
        self.at_q, self.at_k = firsts(self.nq), firsts(self.nk)
        self.first_q, self.first_k, self.lengths = lab.ints(self.at_q), lab.ints(self.at_k), lab.ints(self.nk)
        self.q = lab.randn(self.at_q[-1], hq, d)
        self.k, self.v = (lab.randn(self.at_k[-1], hkv, d) for _ in "kv")
        self.sq, self.sk = max(self.nq), max(self.nk)
        self.out = torch.empty_like(self.q)

    def keys(self, i):
        return tuple(t[self.at_k[i]:self.at_k[i + 1]] for t in (self.k, self.v))

    def right(self):
        return decode_oracle.packed(self.q, self.at_q, self.keys)

    def paged(self, size):
        """(k, v, table) with the same keys in pages of so many tokens, in shuffled order."""
        rows, count = decode_cases.tables(self.nk, size, self.lab.rng)
        pages = []
        for t in (self.k, self.v):
            out = torch.zeros(count, size, *t.shape[1:], dtype=t.dtype, device=t.device)
            for i, n in enumerate(self.nk):
                own = t[self.at_k[i]:self.at_k[i + 1]]
                row = torch.tensor(rows[i][:-(-n // size)], device=t.device)
                out[row] = torch.nn.functional.pad(own, (0, 0, 0, 0, 0, -n % size)).unflatten(0, (-1, size))
            pages.append(out)
        return *pages, self.lab.ints(rows)

    def part(self, first, last):
        """The sequences from first to last - 1 as arguments that a launch of packed rows takes: (q, out, first_q, sq, lengths, sk)."""
        rows = slice(self.at_q[first], self.at_q[last])
        at = self.lab.ints([n - self.at_q[first] for n in self.at_q[first:last + 1]])
        return self.q[rows], self.out[rows], at, max(self.nq[first:last]), self.lengths[first:last], max(self.nk[first:last])


def packed(lab, case, seconds):
    """Whole prompts; those of equal lengths beside the same as a dense batch."""
    x = Batch(lab, case.lengths(), case.hq, case.hkv, case.d)

    def contenders():
        yield from lab.ours("", lambda: [lab.fa.args(x.q, x.k, x.v, x.out, CAUSAL, first_q=x.first_q, first_k=x.first_k, sq=x.sq, sk=x.sk)],
                            [x.out])
        if len(set(x.nq)) == 1:
            wide = [t.unflatten(0, (len(x.nq), x.sq)) for t in (x.q, x.k, x.v, x.out)]
            yield from lab.ours(", dense", lambda: [lab.fa.args(*wide, CAUSAL)], [x.out])
        yield from lab.beside("packed", "", lambda f: f(x.q, x.k, x.v, x.first_q, x.first_k, x.sq, x.sk))
    return lab.measure(case.dict(), contenders(), x.right(), 1, seconds)


def forms(sizes):
    return [("", 0)] + [(f", page {n}", n) for n in sizes]


def chunks(lab, case, seconds, sizes):
    """A chunk after its cached prefix, contiguous and in pages of each size."""
    x = Batch(lab, case.lengths(), case.hq, case.hkv, case.d)
    row = {**case.dict(), "forms": [label for label, _ in forms(sizes)]}

    def contenders():
        wide = [t[None] for t in (x.k, x.v)]
        yield from lab.ours("", lambda: [lab.fa.args(x.q, *wide, x.out, CAUSAL, first_q=x.first_q, sq=x.sq, lengths=x.lengths)], [x.out])
        yield from lab.beside("packed", "", lambda f: f(x.q, x.k, x.v, x.first_q, x.first_k, x.sq, x.sk))
        yield from lab.beside("padded", "", lambda f: f(x.q, *wide, x.first_q, x.lengths, x.sq))
        for label, size in forms(sizes)[1:]:
            yield from in_pages(lab, x, label, size)
    return lab.measure(row, contenders(), x.right(), 1, seconds)


def in_pages(lab, x, label, size):
    """One launch of the batch in pages, and the peers that take them."""
    k, v, table = x.paged(size)
    yield from keeping(lab.ours(label, lambda: [lab.fa.args(x.q, k, v, x.out, CAUSAL, first_q=x.first_q, sq=x.sq, lengths=x.lengths,
                                                            table=table, sk=x.sk)], [x.out]), k, v, table)
    yield from keeping(lab.beside("paged", label, lambda f: f(x.q, k, v, x.first_q, x.lengths, table, x.sq)), k, v, table)


def apart(lab, x, users, label, size):
    """(name, kind, make): the same batch in two launches, tokens and chunks, one after the other."""
    def args_of(first, last, keys):
        q, out, first_q, sq, lengths, sk = x.part(first, last)
        held = [q, out, first_q, lengths]
        if size:
            k, v, table = keys
            held.append(table[first:last])
            args = lab.fa.args(q, k, v, out, CAUSAL, first_q=first_q, sq=sq, lengths=lengths, table=held[-1], sk=sk)
        else:
            held.append(lab.ints([n - x.at_k[first] for n in x.at_k[first:last + 1]]))
            rows = slice(x.at_k[first], x.at_k[last])
            args = lab.fa.args(q, x.k[rows], x.v[rows], out, CAUSAL, first_q=first_q, sq=sq, first_k=held[-1], sk=sk)
        return args, held

    def make():
        keys = x.paged(size) if size else None
        pieces = [args_of(0, users, keys), args_of(users, len(x.nq), keys)]
        runs = [lab.launches([args], [x.out], None) for args, _ in pieces]

        def run(i, held=(keys, pieces)):
            for one, _ in runs:
                one(i)
            return x.out
        return run, lambda: {"config": " and ".join(told().get("config", "?") for _, told in runs), "origin": "two launches"}
    return f"ours, apart{label}", "ours", make


def mixed(lab, case, seconds, sizes):
    """Tokens and chunks in one launch, and in two."""
    x = Batch(lab, case.lengths(), case.hq, case.hkv, case.d)
    row = {**case.dict(), "forms": [label for label, _ in forms(sizes)]}

    def contenders():
        yield from lab.ours("", lambda: [lab.fa.args(x.q, x.k, x.v, x.out, CAUSAL, first_q=x.first_q, first_k=x.first_k, sq=x.sq, sk=x.sk)],
                            [x.out])
        yield apart(lab, x, case.users, "", 0)
        yield from lab.beside("packed", "", lambda f: f(x.q, x.k, x.v, x.first_q, x.first_k, x.sq, x.sk))
        for label, size in forms(sizes)[1:]:
            yield from in_pages(lab, x, label, size)
            yield apart(lab, x, case.users, label, size)
    return lab.measure(row, contenders(), x.right(), 1, seconds)


def dense(lab, case, seconds, sets=2):
    """A dense batch beside the peers of side_by_side.py."""
    c = case.cell
    data = [[lab.randn(c.b, c.sq, c.hq, c.d), *(lab.randn(c.b, c.sk, c.hkv, c.d) for _ in "kv")] for _ in range(sets)]
    outs = [torch.empty_like(q) for q, _, _ in data]

    def contenders():
        yield from lab.ours("", lambda: [lab.fa.args(*x, o, fagen.MASKS[c.mask]) for x, o in zip(data, outs)], outs)
        yield from lab.beside("dense", "", lambda f: f(c, data))
    return lab.measure(case.dict(), contenders(), oracle.Reference(c, *data[0]), sets, seconds)


def invariant(lab, case, seconds):
    """The schedule that depends on the class alone beside the free one, on a case of decode.py's table."""
    q = lab.randn(case.b, case.sq, case.hq, case.d)
    k, v = (lab.randn(case.b, case.sk, case.hkv, case.d) for _ in "kv")
    out = torch.empty_like(q)

    def contenders():
        for label, flags in (("", 0), (", invariant", fagen.BATCH_INVARIANT)):
            yield from lab.ours(label, lambda flags=flags: [lab.fa.args(q, k, v, out, flags=flags)], [out])
    return lab.measure(case.dict(), contenders(), decode_oracle.dense(q, k, v), 1, seconds)
