"""What gradients should be: in fp32 on the device, of some heads, and how far those of a contender are from it."""
import torch

from oracle import TILE

FLOPS_MOST = 2e12       # a reference computes no more than this, but at least one head of keys
HEADS_MOST = 8          # of keys, evenly spaced
SCORES_MOST = 1 << 26   # elements of S that are held at once


class Gradients:
    """(grad_q, grad_k, grad_v) of [b, s, h, d], as one output."""

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
    step = max(1, SCORES_MOST // s)
    for i in range(q.shape[0]):
        for at in range(0, s, step):
            rows = slice(at, at + step)
            scores = q[i, rows] @ k.T * scale
            if causal:
                number = torch.arange(at, at + scores.shape[0], device=q.device)
                scores.masked_fill_(torch.arange(s, device=q.device) > number[:, None], float("-inf"))
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
    """Computed once per case; error(Gradients) then judges any number of them."""

    def __init__(self, case, q, k, v, grad_out):
        everything, self.group = case.b * case.hkv, case.hq // case.hkv
        n = int(max(1, min(everything, HEADS_MOST, FLOPS_MOST / (10 * case.s * case.s * case.d * self.group))))
        self.heads = [divmod(i * everything // n, case.hkv) for i in range(n)]
        self.share = f"{n} of {everything} heads of keys"
        self.right = [head(*self.picked(at, q, k, v, grad_out), case.mask == "causal")[:3] for at in self.heads]

    def picked(self, at, q, k, v, grad_out):
        b, h = at
        of = slice(h * self.group, (h + 1) * self.group)
        return (q[b, :, of].transpose(0, 1).float(), k[b, :, h].float(), v[b, :, h].float(), grad_out[b, :, of].transpose(0, 1).float())

    def error(self, out):
        """(relative error of the worst of the three, that of its worst tile of rows of a head); inf where there is NaN."""
        grad_q, grad_k, grad_v = out.tensors
        whole, worst = [], []
        for i in range(3):
            wrong, size = [], []
            for (b, h), right in zip(self.heads, self.right):
                got = (grad_q[b, :, h * self.group:(h + 1) * self.group].transpose(0, 1) if i == 0 else
                       (grad_k, grad_v)[i - 1][b, :, h][None]).float()
                want = right[i] if i == 0 else right[i][None]
                wrong.append((got - want).square().sum(-1))
                size.append(want.square().sum(-1))
            wrong, size = torch.cat(wrong), torch.cat(size)
            whole.append((wrong.sum() / size.sum()).sqrt())
            tiles = [torch.nn.functional.pad(x, (0, -x.shape[1] % TILE)).unflatten(1, (-1, TILE)).sum(-1) for x in (wrong, size)]
            worst.append((tiles[0] / tiles[1].clamp_min(1e-30)).max().sqrt())
        return tuple(max(x.item() if x == x else float("inf") for x in some) for some in (whole, worst))
