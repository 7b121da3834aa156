"""What gradients should be: in fp32 on the device, of some heads, and how far those of a contender are from it."""
import torch

from common import pairs
from common.oracle import TILE

FLOPS_MOST = 2e12       # a reference computes no more than this, but at least one head of keys
HEADS_MOST = 8          # of keys, evenly spaced
SCORES_MOST = 1 << 26   # elements of S that are held at once


class Gradients:
    """(grad_q, grad_k, grad_v) of [b, s, h, d], or of packed rows [rows, h, d], as one output."""

    def __init__(self, *tensors):
        self.tensors = tensors

    def fill_(self, x):
        for t in self.tensors:
            t.fill_(x)

    def copy_(self, other):
        for t, o in zip(self.tensors, other.tensors):
            t.copy_(o)


def head(q, k, v, grad_out, causal):
    """Of one head of keys and the heads of queries that share it: q and grad_out [group, s, d], k and v [s, d], in fp32. Returns
    (grad_q, grad_k, grad_v, out, lse)."""
    s, scale = q.shape[1], q.shape[2] ** -0.5
    found = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v), torch.empty_like(grad_out), torch.empty_like(q[..., 0])
    step, seen = max(1, SCORES_MOST // s), pairs.of(s, s, "causal" if causal else "none")
    for i in range(q.shape[0]):
        for at in range(0, s, step):
            rows = slice(at, at + step)
            scores = seen.hide_(q[i, rows] @ k.T * scale, at)
            found[4][i, rows] = scores.logsumexp(-1)
            p = scores.softmax(-1)
            found[3][i, rows] = p @ v
            of_p = grad_out[i, rows] @ v.T
            of_s = p * (of_p - (grad_out[i, rows] * found[3][i, rows]).sum(-1, keepdim=True)) * scale
            found[0][i, rows] = of_s @ k
            found[1].add_(of_s.T @ q[i, rows])
            found[2].add_(p.T @ grad_out[i, rows])
    return found


class Reference:
    """Of a dense batch, of tensors [b, s, h, d]. Computed once per case; error(Gradients) then judges any number of them. A piece is
    (rows, head of keys): rows picks a sequence out of a tensor, as [its rows, h, d]."""

    def __init__(self, case, q, k, v, grad_out):
        self.group = case.hq // case.hkv
        self.pieces, self.share = self.chosen(case)
        self.right = [head(*self.picked(at, q, k, v, grad_out), case.mask == "causal")[:3] for at in self.pieces]

    def chosen(self, case):
        """(pieces, which they are, in words)."""
        everything = case.b * case.hkv
        n = fit(everything, case.s * case.s * case.d * self.group)
        return [divmod(i * everything // n, case.hkv) for i in range(n)], f"{n} of {everything} heads of keys"

    def queries(self, at, t):
        """[group, s, d] of the heads of queries that read the piece's head of keys."""
        rows, h = at
        return t[rows][:, h * self.group:(h + 1) * self.group].transpose(0, 1).float()

    @staticmethod
    def keys(at, t):
        rows, h = at
        return t[rows][:, h].float()

    def picked(self, at, q, k, v, grad_out):
        return self.queries(at, q), self.keys(at, k), self.keys(at, v), self.queries(at, grad_out)

    def error(self, out):
        """(relative error of the worst of the three, that of its worst tile of rows of a head); inf where there is NaN."""
        whole, worst = [], []
        for i, t in enumerate(out.tensors):
            wrong, size = [], []
            for at, right in zip(self.pieces, self.right):
                got, want = (self.queries(at, t), right[0]) if i == 0 else (self.keys(at, t)[None], right[i][None])
                wrong.append(tiles((got - want).square().sum(-1)))
                size.append(tiles(want.square().sum(-1)))
            wrong, size = torch.cat(wrong), torch.cat(size)
            whole.append((wrong.sum() / size.sum()).sqrt())
            worst.append((wrong / size.clamp_min(1e-30)).max().sqrt())
        return tuple(max(x.item() if x == x else float("inf") for x in some) for some in (whole, worst))


class Packed(Reference):
    """Of sequences end to end, of tensors [rows, h, d]: each sequence by itself, as many heads of keys of one as of any other."""

    def chosen(self, case):
        lengths = [n for n, _ in case.lengths()]
        n = fit(case.hkv, sum(s * s for s in lengths) * case.d * self.group)
        pieces, first = [], 0
        for i, s in enumerate(lengths):
            pieces += [(slice(first, first + s), (i + j * case.hkv // n) % case.hkv) for j in range(n)]  # the next sequence, other heads
            first += s
        return pieces, f"{n} of {case.hkv} heads of keys, of every sequence"


def fit(heads, products):
    """How many heads of keys, which take 10 times so many FLOP each."""
    return int(max(1, min(heads, HEADS_MOST, FLOPS_MOST / (10 * products))))


def tiles(x):
    """Sums over the rows of each tile of [heads, rows]."""
    return torch.nn.functional.pad(x, (0, -x.shape[1] % TILE)).unflatten(1, (-1, TILE)).sum(-1).flatten()
