"""The reference of a cell: attention in fp32 on the device, head by head, and how far an output is from it."""
import torch

FLOPS_MOST = 4e12     # a reference computes no more than this: of longer problems, evenly spaced heads
SCORES_MOST = 1 << 28 # elements of S that are held at once
TILE = 128            # rows whose error is also looked at apart: one wrong tile is lost in the norm of all


class Reference:
    """Computed once per cell; error(out) then judges any number of outputs [b, s, h, d]."""

    def __init__(self, cell, q, k, v):
        everything = cell.b * cell.hq
        n = max(1, min(everything, int(FLOPS_MOST / (2 * cell.sq * cell.sk * (cell.d + cell.dv)))))
        picked = torch.arange(n, device=q.device) * everything // n
        self.share = f"{n} of {everything} heads"
        self.b, self.h = picked // cell.hq, picked % cell.hq
        kv = self.h // (cell.hq // cell.hkv)
        self.out = torch.empty(n, cell.sq, cell.dv, device=q.device)
        rows = max(1, min(cell.sq, SCORES_MOST // cell.sk))
        heads = max(1, SCORES_MOST // (rows * cell.sk))
        for i in range(0, n, heads):
            pick = slice(i, i + heads)
            keys, values = k[self.b[pick], :, kv[pick]].float(), v[self.b[pick], :, kv[pick]].float()
            queries = q[self.b[pick], :, self.h[pick]].float() * cell.d ** -0.5
            for r in range(0, cell.sq, rows):
                self.out[pick, r:r + rows] = self.rows(cell, queries[:, r:r + rows], keys, values, r)

    @staticmethod
    def rows(cell, queries, keys, values, first):
        scores = cell.seen().hide_(queries @ keys.transpose(1, 2), first)
        p = torch.softmax(scores, -1).nan_to_num_(0)  # a row that sees no key is 0
        return p @ values

    def error(self, out):
        """(relative error of all that was computed, that of the worst tile of 128 rows of a head); inf where there is NaN."""
        got = out[self.b, :, self.h].float()
        wrong = (got - self.out).square_().sum(-1)
        size = self.out.square().sum(-1)
        total = (wrong.sum() / size.sum()).sqrt()
        pad = -wrong.shape[1] % TILE
        tiles = [torch.nn.functional.pad(x, (0, pad)).unflatten(1, (-1, TILE)).sum(-1) for x in (wrong, size)]
        worst = (tiles[0] / tiles[1].clamp_min(1e-30)).max().sqrt()
        return tuple(x if x == x else float("inf") for x in (total.item(), worst.item()))
