"""The sections of decode.py that time kernels: a function of the lab, a case and its seconds, which returns the case's row."""
import itertools

import torch

from sections import decode_cases
from sections import decode_oracle


def in_turn(runs):
    """One run out of one for each set."""
    return lambda i: runs[i % len(runs)](i)


def dense(lab, case, seconds, cold=False):
    """Every contender on dense K and V: on the same tensors in every call, or on so many in turn that the L2 holds none of them."""
    n = decode_cases.sets_of(case, cold)
    q = lab.randn(case.b, case.sq, case.hq, case.d)
    k, v = (lab.randn(n, case.b, case.sk, case.hkv, case.d) for _ in "kv")
    outs = [torch.empty_like(q) for _ in range(n)]
    row = {**case.dict(), "sets": n}
    contenders = itertools.chain(
        lab.ours("", lambda: [lab.fa.args(q, k[i], v[i], outs[i]) for i in range(n)], outs),
        lab.beside("dense", "", lambda f: f(q, list(zip(k, v)))))
    return lab.measure(row, contenders, decode_oracle.dense(q, k[0], v[0]), n, seconds)


def pages(lab, case, seconds, sizes=decode_cases.PAGE_SIZES, cold=False):
    """Pages in shuffled order, of each size, beside the same keys and values without pages."""
    n = decode_cases.sets_of(case, cold)
    q = lab.randn(case.b, case.sq, case.hq, case.d)
    k, v = (lab.randn(n, case.b, case.sk, case.hkv, case.d) for _ in "kv")
    outs = [torch.empty_like(q) for _ in range(n)]
    lengths = lab.ints([case.sk] * case.b)
    row = {**case.dict(), "sets": n, "sizes": list(sizes)}

    def contenders():
        yield from lab.ours("", lambda: [lab.fa.args(q, k[i], v[i], outs[i]) for i in range(n)], outs)
        yield from lab.ours(", lengths", lambda: [lab.fa.args(q, k[i], v[i], outs[i], lengths=lengths) for i in range(n)], outs)
        yield from lab.beside("padded", ", lengths", lambda f: in_turn([f(q, k[i], v[i], lengths) for i in range(n)]))
        for size in sizes:
            table = lab.ints(decode_cases.tables([case.sk] * case.b, size, lab.rng)[0])
            shuffled = [[paged_as(t[i], table, size) for i in range(n)] for t in (k, v)]

            def args(table=table, shuffled=shuffled):
                return [lab.fa.args(q, *kv, o, lengths=lengths, table=table, sk=case.sk) for kv, o in zip(zip(*shuffled), outs)]

            def beside(f, table=table, shuffled=shuffled):
                return in_turn([f(q, *kv, lengths, table) for kv in zip(*shuffled)])
            yield from keeping(lab.ours(f", page {size}", args, outs), shuffled, table)
            yield from keeping(lab.beside("paged", f", page {size}", beside), shuffled, table)
    return lab.measure(row, contenders(), decode_oracle.dense(q, k[0], v[0]), n, seconds)


def keeping(contenders, *tensors):
    """The contenders, whose runs hold the tensors: a launch knows addresses alone."""
    for name, kind, make in contenders:
        def made(make=make):
            run, told = make()
            return (lambda i, held=tensors: run(i)), told
        yield name, kind, made


def paged_as(dense_rows, table, size):
    """[b, s, h, d] as pages [pages, size, h, d] in the order of the table [b, pages of a sequence]."""
    b, s, h, d = dense_rows.shape
    padded = torch.nn.functional.pad(dense_rows, (0, 0, 0, 0, 0, -s % size))
    out = torch.empty(table.numel(), size, h, d, dtype=dense_rows.dtype, device=dense_rows.device)
    out[table.flatten().long()] = padded.reshape(-1, size, h, d)
    return out


class Batch:
    """A ragged batch: its pages, and the same tokens in other layouts."""

    def __init__(self, lab, case):
        self.host = case.lengths()
        rows, count = decode_cases.tables(self.host, case.page, lab.rng)
        self.lengths, self.table, self.longest = lab.ints(self.host), lab.ints(rows), max(self.host)
        self.q = lab.randn(case.sequences, 1, case.hq, case.d)
        self.k, self.v = (lab.randn(count, case.page, case.hkv, case.d) for _ in "kv")
        self.shape = (case.hkv, case.d)

    def sequence(self, t, i):
        return decode_oracle.rows_of(t, self.table[i], self.host[i])

    def padded(self):
        out = [torch.zeros(len(self.host), self.longest, *self.shape, dtype=t.dtype, device=t.device) for t in (self.k, self.v)]
        for t, wide in zip((self.k, self.v), out):
            for i, n in enumerate(self.host):
                wide[i, :n] = self.sequence(t, i)
        return out

    def packed(self):
        return [torch.cat([self.sequence(t, i) for i in range(len(self.host))]) for t in (self.k, self.v)]

    def firsts(self, lab):
        return lab.ints(list(range(len(self.host) + 1))), lab.ints([0, *itertools.accumulate(self.host)])


def ragged(lab, case, seconds):
    """Sequences of different lengths, which are on the device: in pages, padded to the longest where there is room, and packed for peers
    that take that."""
    batch, row = Batch(lab, case), case.dict()
    out = torch.empty_like(batch.q)
    right = decode_oracle.paged(batch.q, batch.k, batch.v, batch.host, batch.table)
    missing = {}

    def contenders():
        def args():
            return [lab.fa.args(batch.q, batch.k, batch.v, out, lengths=batch.lengths, table=batch.table, sk=batch.longest)]
        yield from lab.ours("", args, [out])
        yield from lab.beside("paged", ", pages", lambda f: f(batch.q, batch.k, batch.v, batch.lengths, batch.table))
        why = lab.room(row["padded"])
        if why:
            missing["padded"] = why
        else:
            wide = batch.padded()
            yield from keeping(lab.ours(", padded", lambda: [lab.fa.args(batch.q, *wide, out, lengths=batch.lengths)], [out]), wide)
            yield from lab.beside("padded", ", padded", lambda f: f(batch.q, *wide, batch.lengths))
        why = lab.room(2 * row["bytes"])
        if why:
            missing["packed"] = why
        else:
            flat = batch.packed()
            yield from lab.beside("packed", ", packed", lambda f: f(batch.q, *flat, *batch.firsts(lab), batch.longest))
    lab.measure(row, contenders(), right, 1, seconds)
    row["skipped"].update(missing)
    return row
