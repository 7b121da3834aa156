"""Score programs: fagen.score with its operands, softcap, ALiBi, sinks; what is refused."""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple, Type

import numpy as np
import pytest

import fagen
from conftest import CHIP, half, seen

B, SQ, SK, HQ, HKV, D = 2, 9, 21, 4, 2, 32
Q, K, V = half(1, B, SQ, HQ, D), half(2, B, SK, HKV, D), half(3, B, SK, HKV, D)
SLOPES = np.array([0.5, 0.25, 0.125, 0.0625], dtype=np.float32)
SINKS = np.array([0.5, -1.0, 3.0, 0.0], dtype=np.float32)
I, J = np.arange(SQ)[:, None], np.arange(SK)[None]
OFF = SK - SQ


def exact(change: Callable[[np.ndarray], np.ndarray], sinks: Optional[np.ndarray] = None, causal: bool = False) -> Tuple[Any, Any]:
    """(out, lse) in fp64 with the scores [b, hq, sq, sk] changed."""
    q, k, v = (x.astype(np.float64) for x in (Q, K, V))
    k, v = k.repeat(HQ // HKV, 2), v.repeat(HQ // HKV, 2)
    s = change(np.einsum("bihd,bjhd->bhij", q, k) * D ** -0.5)
    s = np.where(seen(SQ, SK, -1, 0) | (not causal), s, -np.inf)
    e = np.exp(s)
    z = e.sum(-1, keepdims=True) + (0 if sinks is None else np.exp(sinks.astype(np.float64))[None, :, None, None])
    return np.einsum("bhij,bjhd->bihd", e / z, v), np.log(z)[..., 0]


def near(found: Any, wanted: Any) -> None:
    out, lse = found
    np.testing.assert_allclose(out.astype(np.float64), wanted[0], atol=4e-3)
    np.testing.assert_allclose(lse, wanted[1], atol=1e-4)


def attend(**options: Any) -> Any:
    return fagen.attention(Q, K, V, return_lse=True, device=CHIP, **options)


def test_keywords_of_other_packages(chip):
    near(attend(softcap=1.5), exact(lambda s: 1.5 * np.tanh(s / 1.5)))
    near(attend(softcap=0.5), exact(lambda s: 0.5 * np.tanh(s / 0.5)))  # the same kernel
    near(attend(sinks=SINKS), exact(lambda s: s, SINKS))
    near(attend(alibi_slopes=SLOPES, causal=True), exact(lambda s: s - SLOPES[None, :, None, None] * abs(I + OFF - J), causal=True))
    near(attend(alibi_slopes=SLOPES, softcap=2.0, sinks=SINKS),
         exact(lambda s: 2 * np.tanh(s / 2) - SLOPES[:, None, None] * abs(I + OFF - J), SINKS))


def test_a_program_with_operands(chip):
    program = fagen.score("bias = f32 'b hq sq sk'; c = scalar(2)\nfunction score(s, b, h, i, j) return s * c + bias[b][h][i][j] end")
    full = half(5, B, HQ, SQ, SK, dtype="float32")
    for bias in (full, full[:1], full[:, :1], full[0, 0], full[0, :, :1], full[..., ::-1], np.ascontiguousarray(full.T).T):
        near(attend(score=program(bias=bias)), exact(lambda s: s * 2 + bias))
        near(attend(score=program(bias=bias, c=0.5)), exact(lambda s: s / 2 + bias))
    table = half(6, HQ, SQ + SK - 1, dtype="float32")
    relative = fagen.score("t = f32 'hq sq+sk-1'\nfunction score(s, b, h, i, j) return s + t[h][j - i + sq - 1] end")
    near(attend(score=relative(t=table), causal=True), exact(lambda s: s + table[:, J - I + SQ - 1][None], causal=True))


def test_tensors_as_masks(chip):
    shown, bias = half(8, B, HQ, SQ, SK) > -0.5, half(9, HQ, SQ, SK)
    hide = lambda s, seen: np.where(seen, s, -np.inf)  # noqa: E731
    near(attend(attn_mask=shown[:, :1, :1], causal=True), exact(lambda s: hide(s, shown[:, :1, :1]), causal=True))
    near(attend(attn_mask=bias[..., ::-1], softcap=2.0, alibi_slopes=SLOPES, sinks=SINKS),
         exact(lambda s: 2 * np.tanh(s / 2) - SLOPES[:, None, None] * abs(I + OFF - J) + bias[..., ::-1], SINKS))
    out = fagen.varlen_attention(Q, K, V, seqlens_k=np.array([21, 7], dtype=np.int32), attn_mask=shown, device=CHIP)
    wanted = exact(lambda s: hide(s, shown & (J < np.array([21, 7])[:, None, None, None])))
    np.testing.assert_allclose(out.astype(np.float64), wanted[0], atol=4e-3)


def test_a_mask(chip):
    causal = fagen.score("function mask(b, h, i, j) return j <= i + off end")
    for found, wanted in zip(attend(score=causal), attend(causal=True)):
        np.testing.assert_array_equal(found, wanted)
    hidden = fagen.score("m = u8 'b hq sq sk'\nfunction mask(b, h, i, j) return m[b][h][i][j] ~= 0 end")
    m = (half(8, B, HQ, SQ, SK, dtype="float32") > 0).astype(np.uint8)
    near(attend(score=hidden(m=m)), exact(lambda s: np.where(m > 0, s, -np.inf)))
    out, lse = attend(score=hidden(m=np.zeros_like(m)))
    assert not out.any() and np.isneginf(lse).all()


def test_sequences_of_different_lengths(chip):
    lengths = np.array([SK, SK - 8], dtype=np.int32)
    out = fagen.varlen_attention(Q, K, V, seqlens_k=lengths, alibi_slopes=SLOPES, softcap=1.0, sinks=SINKS, device=CHIP)
    for i, n in enumerate(lengths):
        one = fagen.attention(Q[i:i + 1], K[i:i + 1, :n], V[i:i + 1, :n], alibi_slopes=SLOPES, softcap=1.0, sinks=SINKS, device=CHIP)
        np.testing.assert_allclose(out[i:i + 1].astype(np.float64), one.astype(np.float64), atol=2e-3)


TEXT = "cap = scalar(50, 'float', 1, 90)\nt = f32 'hq sk'\nfunction score(s, b, h, i, j) return cap * s + t[h][j] end"
T = half(7, HQ, SK, dtype="float32")
CASES: List[Tuple[str, Callable[[], Any], Type[Exception], List[str]]] = [
    ("no text", lambda: fagen.score(3), fagen.InvalidArgument, ["text is 3"]),
    ("a text with a byte of 0", lambda: fagen.score(TEXT + "\0"), fagen.InvalidArgument, ["text is", "a score program"]),
    ("half a character", lambda: fagen.score("-- \ud800\n" + TEXT), fagen.InvalidArgument, ["text is", "ud800"]),
    ("no program", lambda: attend(score=TEXT), fagen.InvalidArgument, ["score is", "fagen.score()"]),
    ("a wrong text", lambda: attend(score=fagen.score("function score(s, b, h, i, j) return x end")), fagen.InvalidArgument,
     ["score:1:", "x is not defined"]),
    ("an array that is left out", lambda: attend(score=fagen.score(TEXT)), fagen.InvalidArgument, ["t is None", "hq sk"]),
    ("an operand that is none", lambda: attend(score=fagen.score(TEXT)(t=T, u=1)), fagen.InvalidArgument, ["operand u", "cap, t"]),
    ("a scalar beyond its bounds", lambda: attend(score=fagen.score(TEXT)(t=T, cap=91)), fagen.InvalidArgument,
     ["scalar is 91 (cap)", "1 to 90"]),
    ("a scalar that is a word", lambda: attend(score=fagen.score(TEXT)(t=T, cap="x")), fagen.InvalidArgument, ["cap is 'x'", "a number"]),
    ("a scalar beyond any float", lambda: attend(score=fagen.score(TEXT)(t=T, cap=10**400)), fagen.InvalidArgument,
     ["cap is 1000", "a number"]),
    ("another type", lambda: attend(score=fagen.score(TEXT)(t=T.astype(np.float16))), fagen.InvalidArgument,
     ["t.dtype is float16", "float32"]),
    ("another shape", lambda: attend(score=fagen.score(TEXT)(t=T[:, 1:])), fagen.InvalidArgument, ["t.shape is (4, 20)", "(4, 21)"]),
    ("too many dimensions", lambda: attend(score=fagen.score(TEXT)(t=T[None])), fagen.InvalidArgument, ["t.shape is (1, 4, 21)"]),
    ("one element for all", lambda: attend(score=fagen.score(TEXT)(t=T[:1, :1])), fagen.InvalidArgument,
     ["t.shape is (1, 1), of one", "a scalar"]),
    ("one element expanded", lambda: attend(score=fagen.score(TEXT)(t=np.broadcast_to(T[:1, :1], (HQ, SK)))), fagen.InvalidArgument,
     ["t.shape is (4, 21), of one", "a scalar"]),
    ("a program beside a keyword", lambda: attend(score=fagen.score(TEXT)(t=T), softcap=3.0), fagen.InvalidArgument, ["beside softcap"]),
    ("slopes of another rank", lambda: attend(alibi_slopes=T[None]), fagen.InvalidArgument, ["alibi_slopes is", "[hq] or [b, hq]"]),
    ("sinks of another number", lambda: attend(sinks=SINKS[:3]), fagen.InvalidArgument, ["sinks.shape is (3,)", "(4,)"]),
    ("sinks of another type", lambda: attend(sinks=SINKS.astype(np.float64)), fagen.InvalidArgument, ["sinks is float64"]),
    ("a mask of another shape", lambda: attend(attn_mask=T), fagen.InvalidArgument, ["attn_mask.shape is (4, 21)", "(2, 4, 9, 21)"]),
    ("a program beside a mask", lambda: attend(score=fagen.score(TEXT)(t=T), attn_mask=J > 3), fagen.InvalidArgument, ["beside softcap"]),
]


@pytest.mark.parametrize("words, call, error, says", CASES, ids=[c[0] for c in CASES])
def test_what_is_wrong_is_refused(chip, words, call, error, says):
    with pytest.raises(error) as raised:
        call()
    for text in says:
        assert text in str(raised.value), str(raised.value)


def test_tensors_of_pytorch(chip):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x) for x in (Q, K, V))
    out, lse = fagen.attention(q, k, v, softcap=1.5, sinks=torch.from_numpy(SINKS), return_lse=True, device=CHIP)
    near((out.numpy(), lse.numpy()), exact(lambda s: 1.5 * np.tanh(s / 1.5), SINKS))
    q.requires_grad_()
    with pytest.raises(fagen.Unsupported, match="out is set where a gradient is wanted"):
        fagen.attention(q, k, v, softcap=1.5, out=torch.empty_like(out), device=CHIP)
    with torch.no_grad():
        again = fagen.attention(q, k, v, softcap=1.5, sinks=torch.from_numpy(SINKS), device=CHIP)
    assert torch.equal(again, out)


# ---- gradients, held against PyTorch's of the same in fp64 ----

def in_fp64(q: Any, k: Any, v: Any, change: Callable[[Any], Any], sinks: Any, causal: bool) -> Tuple[Any, Any]:
    import torch
    k, v = (x.double().repeat_interleave(HQ // HKV, 2) for x in (k, v))
    s = change(torch.einsum("bihd,bjhd->bhij", q.double(), k) * D ** -0.5)
    if causal:
        s = s.masked_fill(~torch.from_numpy(seen(SQ, SK, -1, 0)), -torch.inf)
    column = (*s.shape[:3], 1)
    extra = torch.full(column, -torch.inf, dtype=s.dtype) if sinks is None else sinks.double()[None, :, None, None].expand(column)
    all_scores = torch.cat([s, extra], -1)
    p = all_scores.softmax(-1)[..., :-1]
    return torch.einsum("bhij,bjhd->bihd", p, v), all_scores.logsumexp(-1)


def leaves(*arrays: Any) -> List[Any]:
    import torch
    return [torch.from_numpy(np.array(x)).requires_grad_() for x in arrays]


def held(found: List[Any], wanted: List[Any]) -> None:
    for x, of in zip(found, wanted):
        np.testing.assert_allclose(x.grad.double().numpy(), of.grad.double().numpy(), atol=1.5e-2 * float(of.grad.abs().max()) + 1e-3)


def loss(out: Any, lse: Any) -> Any:
    import torch
    weight = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).reshape(out.shape)
    return (out.double() * weight).sum() + (lse.double() * weight[..., 0].permute(0, 2, 1)).sum() * 0.5


def test_gradients_of_keywords(chip):
    torch = pytest.importorskip("torch")
    mine, its = leaves(Q, K, V, SLOPES, SINKS), leaves(Q, K, V, SLOPES, SINKS)
    q, k, v, slopes, sinks = mine
    loss(*fagen.attention(q, k, v, softcap=2.0, alibi_slopes=slopes, sinks=sinks, causal=True, return_lse=True, device=CHIP)).backward()
    q, k, v, slopes, sinks = its
    distance = torch.from_numpy(J - I - OFF).double()
    loss(*in_fp64(q, k, v, lambda s: 2 * torch.tanh(s / 2) + slopes.double()[:, None, None] * distance, sinks, True)).backward()
    held(mine, its)


@pytest.mark.parametrize("kind, near", ((np.float16, 0.03), (np.float32, 1e-4)))  # the cap's sum nearly cancels: O's rounding shows in it
def test_gradients_of_operands(chip, kind, near):
    torch = pytest.importorskip("torch")
    given = [x.astype(kind) for x in (Q, K, V)]
    rng = np.random.default_rng(5)
    bias, table = rng.standard_normal((1, HQ, SQ, SK)).astype(np.float32), rng.standard_normal((HQ, 8)).astype(np.float32)
    program = fagen.score('bias = f32 "b hq sq sk"\nt = f32 "hq 8"\nc = scalar(2, "float", 0.1, 10)\n'
                          "function score(s, b, h, i, j) return c * s + bias[b][h][i][j] + t[h][min(max(i + off - j, 0), 7)] end")
    cap = torch.tensor(1.5, requires_grad=True)
    mine, its = leaves(*given, bias, table), leaves(*given, bias, table)
    q, k, v, b, t = mine
    out, lse = fagen.attention(q, k, v, score=program(bias=b, t=t, c=cap), return_lse=True, deterministic=True, device=CHIP)
    loss(out, lse).backward()
    q, k, v, b, t = its
    of = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    near_by = torch.from_numpy(np.clip(I + OFF - J, 0, 7))
    loss(*in_fp64(q, k, v, lambda s: of * s + b.double() + t.double()[:, near_by][None], None, False)).backward()
    held(mine, its)
    assert abs(float(cap.grad) - float(of.grad)) <= near


def test_gradients_of_sequences(chip):
    torch = pytest.importorskip("torch")
    lengths = torch.tensor([21, 13], dtype=torch.int32)
    mine, its = leaves(Q, K, V, SLOPES), leaves(Q, K, V, SLOPES)
    q, k, v, slopes = mine
    out, lse = fagen.varlen_attention(q, k, v, seqlens_k=lengths, alibi_slopes=slopes, softcap=1.0, return_lse=True, device=CHIP)
    loss(out, lse).backward()
    q, k, v, slopes = its
    both = [fagen.attention(q[i:i + 1], k[i:i + 1, :n], v[i:i + 1, :n], alibi_slopes=slopes, softcap=1.0, return_lse=True, device=CHIP)
            for i, n in enumerate(lengths.tolist())]
    loss(torch.cat([x for x, _ in both]), torch.cat([x for _, x in both])).backward()
    held(mine, its)
