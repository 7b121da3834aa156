"""What decoding should give: attention in fp32, sequence by sequence, and how far an output is from it."""
import torch

from common import pairs


SCORES_MOST = 1 << 28  # scores of attend() that are held at once


def attend(q, k, v, causal=False):
    """q [sq, hq, d], k and v [keys, hkv, d] of one sequence: O [sq, hq, d] in fp32; 0 where there are no keys. causal: the last row sees
    the last key."""
    sq, hq, d = q.shape
    keys, hkv = k.shape[:2]
    out = torch.zeros(sq, hq, v.shape[2], device=q.device)
    if not keys:
        return out
    turned, values = k.float().permute(1, 2, 0) * d ** -0.5, v.float().transpose(0, 1)
    all_seen = pairs.of(sq, keys, "causal" if causal else "none")
    step = max(1, SCORES_MOST // (hq * keys))
    for at in range(0, sq, step):
        part = q[at:at + step]
        n = part.shape[0]
        rows = part.float().reshape(n, hkv, hq // hkv, d).permute(1, 0, 2, 3).reshape(hkv, -1, d)  # all rows of a KV head together
        seen = max(0, all_seen.last[at + n - 1] + 1)
        scores = all_seen.hide_(rows @ turned[:, :, :seen], at, hq // hkv)
        o = torch.softmax(scores, -1).nan_to_num_(0) @ values[:, :seen]  # a row that sees no key is 0
        out[at:at + n] = o.reshape(hkv, n, hq // hkv, -1).permute(1, 0, 2, 3).reshape(n, hq, -1)
    return out


def dense(q, k, v):
    return torch.stack([attend(*one) for one in zip(q, k, v)])


def rows_of(pages, row, length):
    """The first `length` tokens that a row of a page table names."""
    need = -(-length // pages.shape[1])
    return pages[row[:need].long()].flatten(0, 1)[:length]


def paged(q, k, v, lengths, table):
    """lengths: numbers on the host."""
    return torch.stack([attend(q[i], rows_of(k, table[i], n), rows_of(v, table[i], n)) for i, n in enumerate(lengths)])


def packed(q, first_q, keys, causal=True):
    """q [rows, hq, d] of sequences that begin at first_q, numbers on the host; keys(i): K and V of sequence i, [its keys, hkv, d]."""
    return torch.cat([attend(q[first_q[i]:first_q[i + 1]], *keys(i), causal) for i in range(len(first_q) - 1)])


def error(got, right):
    """(relative error of the whole, that of the worst head of a sequence, or where rows are packed of a row); inf where there is NaN, or
    where 0 should be and is not."""
    over = (1, 3) if right.dim() == 4 else 2
    wrong = (got.float() - right).square().sum(over)
    size = right.square().sum(over)
    whole = wrong.sum() / size.sum()
    each = torch.where(size > 0, wrong / size.clamp_min(1e-30), torch.where(wrong == 0, 0.0, float("inf")))
    if not size.sum() > 0:
        whole = each.max()
    elif each.max() == float("inf"):
        whole = each.max()
    return tuple(x if x == x else float("inf") for x in (whole.sqrt().item(), each.max().sqrt().item()))
