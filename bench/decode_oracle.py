"""What decoding should give: attention in fp32, sequence by sequence, and how far an output is from it."""
import torch


def attend(q, k, v):
    """q [sq, hq, d], k and v [keys, hkv, d] of one sequence, without a mask: O [sq, hq, d] in fp32; 0 where there are no keys."""
    sq, hq, d = q.shape
    hkv = k.shape[1]
    if not k.shape[0]:
        return torch.zeros(sq, hq, v.shape[2], device=q.device)
    rows = q.float().reshape(sq, hkv, hq // hkv, d).permute(1, 0, 2, 3).reshape(hkv, -1, d)  # all rows of a KV head together
    scores = rows @ k.float().permute(1, 2, 0) * d ** -0.5
    out = torch.softmax(scores, -1) @ v.float().transpose(0, 1)
    return out.reshape(hkv, sq, hq // hkv, -1).permute(1, 0, 2, 3).reshape(sq, hq, -1)


def dense(q, k, v):
    return torch.stack([attend(*one) for one in zip(q, k, v)])


def rows_of(pages, row, length):
    """The first `length` tokens that a row of a page table names."""
    need = -(-length // pages.shape[1])
    return pages[row[:need].long()].flatten(0, 1)[:length]


def paged(q, k, v, lengths, table):
    """lengths: numbers on the host."""
    return torch.stack([attend(q[i], rows_of(k, table[i], n), rows_of(v, table[i], n)) for i, n in enumerate(lengths)])


def error(got, right):
    """(relative error of the whole, that of the worst head of a sequence); inf where there is NaN, or where 0 should be and is not."""
    wrong = (got.float() - right).square().sum((1, 3))
    size = right.square().sum((1, 3))
    whole = wrong.sum() / size.sum()
    each = torch.where(size > 0, wrong / size.clamp_min(1e-30), torch.where(wrong == 0, 0.0, float("inf")))
    if not size.sum() > 0:
        whole = each.max()
    elif each.max() == float("inf"):
        whole = each.max()
    return tuple(x if x == x else float("inf") for x in (whole.sqrt().item(), each.max().sqrt().item()))
