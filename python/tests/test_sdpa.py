"""fagen.sdpa: the signature and the layout of scaled_dot_product_attention, in its place, against PyTorch's own."""
from __future__ import annotations

import pytest

import fagen

torch = pytest.importorskip("torch")
F = torch.nn.functional
own = F.scaled_dot_product_attention


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


Q, K, V = normal(1, 2, 4, 24, 32), normal(2, 2, 4, 33, 32), normal(3, 2, 4, 33, 16)


def close(have, want):
    assert have.shape == want.shape and (have - want).abs().max() < 1e-5


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}])
def test_as_pytorch(chip, options):
    close(fagen.sdpa.scaled_dot_product_attention(Q, K, V, **options), own(Q, K, V, **options))


def test_heads_of_a_group(chip):
    close(fagen.sdpa.scaled_dot_product_attention(Q, K[:, :2], V[:, :2], enable_gqa=True), own(Q, K[:, :2], V[:, :2], enable_gqa=True))
    with pytest.raises(fagen.InvalidArgument, match=r"heads of query, key and value are \[4, 2, 2\]; accepted: .* enable_gqa=True"):
        fagen.sdpa.scaled_dot_product_attention(Q, K[:, :2], V[:, :2])


@pytest.mark.parametrize("shapes", [((24, 32), (33, 32), (33, 16)), ((4, 24, 32), (4, 33, 32), (4, 33, 16)),
                                    ((2, 3, 4, 24, 32), (2, 3, 4, 33, 32), (2, 3, 4, 33, 16)),
                                    ((2, 3, 4, 24, 32), (3, 4, 33, 32), (1, 1, 4, 33, 16))])
def test_dimensions_in_front(chip, shapes):
    x = [normal(i, *shape) for i, shape in enumerate(shapes)]
    close(fagen.sdpa.scaled_dot_product_attention(*x, is_causal=True), own(*x, is_causal=True))


SEEN, ADDED = normal(6, 2, 4, 24, 33) > -0.5, normal(7, 24, 33)


@pytest.mark.parametrize("mask", [SEEN, SEEN[:1, :1], SEEN[:, :1, :1], SEEN[0, 0, 0], SEEN[:, :1, :1].expand(2, 4, 24, 33), ADDED,
                                  ADDED[None, None].bfloat16().float(), torch.where(SEEN[:, :1], 0.0, -torch.inf),
                                  torch.tensor([[True]]), torch.tensor(2.5)],
                         ids=["all", "pairs", "keys of a sequence", "keys", "expanded", "a bias", "a bias of 4", "-inf", "one", "a number"])
def test_masks(chip, mask):
    theirs = mask if mask.dim() > 1 else mask.expand(24, 33)
    close(fagen.sdpa.scaled_dot_product_attention(Q, K, V, mask), own(Q, K, V, theirs))
    wide = normal(8, 3, 2, 4, 24, 32), normal(9, 2, 4, 33, 32), normal(10, 2, 4, 33, 16)
    close(fagen.sdpa.scaled_dot_product_attention(*wide, mask), own(*wide, theirs))


def test_masks_of_other_dimensions(chip):
    for x, mask in (((Q[0], K[0], V[0]), SEEN[0]), ((Q[0], K[0], V[0]), ADDED), ((Q[0, 0], K[0, 0], V[0, 0]), SEEN[0, 0]),
                    ((Q[:, None], K[:, None], V[:, None]), SEEN[:, None]), ((Q[0], K[0], V[0]), SEEN[:1, 0])):
        close(fagen.sdpa.scaled_dot_product_attention(*x, mask), own(*x, mask))
    with pytest.raises(fagen.InvalidArgument, match="attn_mask is set beside is_causal"):
        fagen.sdpa.scaled_dot_product_attention(Q, K, V, ADDED, is_causal=True)
    rows = torch.zeros(24, 33)
    rows[1], rows[2] = -torch.inf, torch.finfo(torch.float32).min  # no key is seen; all weigh the same
    out = fagen.sdpa.scaled_dot_product_attention(Q, K, V, rows)
    close(out[:, :, 3:], own(Q, K, V)[:, :, 3:])
    assert not out[:, :, 1].any()
    close(out[:, :, 2], V.mean(2))
    hidden = fagen.sdpa.scaled_dot_product_attention(Q, K, V, torch.zeros(24, 33, dtype=torch.bool))
    assert not hidden.any()


def test_gradients(chip):
    def of(f):
        x = [y.clone().requires_grad_() for y in (Q, K, V)]
        return torch.autograd.grad(f(*x, is_causal=True).sin().sum(), x)
    for have, want in zip(of(fagen.sdpa.scaled_dot_product_attention), of(own)):
        close(have, want)


def test_in_its_place(chip):
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    x = normal(5, 2, 20, 32).requires_grad_()
    wanted = layer(x)
    launched = fagen.context(chip.device)
    with fagen.sdpa.patched():
        assert F.scaled_dot_product_attention is not own
        close(layer(x), wanted)
        with fagen.sdpa.patched("torch"):
            pass
        x, added = [t.clone().requires_grad_() for t in (Q, K, V)], normal(9, 24, 33)
        have = torch.autograd.grad(F.scaled_dot_product_attention(*x, added).sin().sum(), x)
        for mine, its in zip(have, torch.autograd.grad(own(*x, added).sin().sum(), x)):
            close(mine, its)
        with torch.autocast("cpu", torch.bfloat16), pytest.raises(fagen.Unsupported, match="q.requires_grad is True"):
            F.scaled_dot_product_attention(*x, added)
    assert F.scaled_dot_product_attention is own and launched is chip
    fagen.sdpa.install("torch")
    try:
        close(F.scaled_dot_product_attention(Q.clone().requires_grad_(), K, V, torch.zeros(24, 33)), own(Q, K, V))
        with pytest.raises(fagen.InvalidArgument):
            F.scaled_dot_product_attention(Q, K[..., :16], V)
    finally:
        fagen.sdpa.uninstall()
    assert F.scaled_dot_product_attention is own
    with pytest.raises(fagen.InvalidArgument, match="otherwise is 'ask'"):
        fagen.sdpa.install("ask")


def test_what_is_not_computed(chip):
    with pytest.raises(fagen.InvalidArgument, match="dimensions before the last three that broadcast"):
        fagen.sdpa.scaled_dot_product_attention(Q, K[:1].expand(3, -1, -1, -1), V)
    with pytest.raises(fagen.InvalidArgument, match=r"^query.shape is \(32,\)"):
        fagen.sdpa.scaled_dot_product_attention(Q[0, 0, 0], K, V)
