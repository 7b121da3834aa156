"""FlexAttention's functions as score programs: what they become, that kernels compute it, and what is refused, with its line."""
from __future__ import annotations

import functools
import inspect
import math
import os

import numpy as np
import pytest
from conftest import CHIP, close, half

import fagen

torch = pytest.importorskip("torch")
from fagen import flex  # noqa: E402
from fagen._mods import blocks, compare, lua, operations, text, translate  # noqa: E402

B, HQ, HKV, SQ, SK, D = 2, 4, 2, 33, 48, 32
SIZES = dict(B=B, H=HQ, Q_LEN=SQ, KV_LEN=SK)
HERE = os.path.abspath(__file__)


def tensor(seed, *shape, dtype="float32"):
    return torch.from_numpy(half(seed, *shape, dtype=dtype))


SLOPES, BIAS, TABLE = tensor(1, HQ).abs(), tensor(2, HQ, SQ, SK).to(torch.bfloat16), tensor(3, HQ, SQ + SK - 1)
BUCKETS, ONE = tensor(4, HQ, 32), torch.tensor(0.5)
DOCUMENT, ENDS = torch.arange(SK) // 17, torch.tensor([9, 30])
VISIBLE, BYTES = torch.rand(B, 1, SQ, SK, generator=torch.Generator().manual_seed(1)) > 0.4, torch.arange(SK, dtype=torch.uint8)
CHUNK, WIDTH = 16, 7
HOLES = torch.where(torch.arange(SQ) == 3, -math.inf, 0.0)[:, None].repeat(1, SK)


def softcap(cap):
    return lambda score, b, h, q, k: cap * torch.tanh(score / cap)


def t5(score, b, h, q, k):
    away = k - q
    n = away.abs()
    far = 8 + (torch.log(n.clamp(min=1).float() / 8) / math.log(16) * 8).to(torch.int32)
    bucket = (away > 0).to(torch.int32) * 16 + torch.where(n < 8, n, torch.minimum(far, torch.full_like(far, 15)))
    return score + BUCKETS[h, bucket]


def in_place(score, b, h, q, k):
    score += BIAS[h, q, k]
    return score


def either(*functions):
    return lambda b, h, q, k: functools.reduce(torch.logical_or, [f(b, h, q, k) for f in functions])


def causal(b, h, q, k):
    return q >= k


def within(b, h, q, k, width=WIDTH):
    return (q - k).abs() <= width


SCORES = {
    "softcap": (softcap(3.0), ["cap = scalar(3.0, \"float\", 1e-6, 1e30)", "cap * tanh_exact(s / cap)"]),
    "alibi": (lambda score, b, h, q, k: score + SLOPES[h] * (k - q), ['SLOPES = f32 "?"', "return s + (SLOPES[h] * (j - i))"]),
    "a table of two indices": (lambda score, b, h, q, k: score + TABLE[h][k - q + SQ - 1], ["TABLE[h][((j - i) + SQ) - 1]"]),
    "a bias of bf16, in place": (in_place, ['BIAS = bf16 "? ? ?"', "return s + BIAS[h][i][j]"]),
    "the buckets of T5": (t5, ["local x1 = j - i", "ceil(", "floor(", "and 1 or 0"]),
    "a number in a tensor": (lambda score, b, h, q, k: score * ONE, ['ONE = f32 "?"', "s * ONE[0]"]),
    "-inf where hidden": (lambda score, b, h, q, k: torch.where(q >= k, score, -float("inf")), ["(i >= j) and s or (-huge)"]),
    "functions": (lambda score, b, h, q, k: torch.sigmoid(score) + torch.exp(-score.abs()) + torch.rsqrt(score.square() + 1)
                  + torch.relu(score).clamp(max=2) - score.sign() + torch.exp2(-(h + 1) * 8.0 / HQ) + torch.ceil(score).clamp(-9, 9),
                  ["sigmoid(s)", "exp(-abs(s))", "rsqrt(", "max(s, 0)", "exp2(", "-(-s // 1.0)"]),
    "powers": (lambda score, b, h, q, k: score ** 2 + 2.0 ** (q - k).clamp(-8, 8) + 1 / (1 + score * score), ["s ^ 2", "2.0 ^ "]),
}
MASKS = {
    "causal": (causal, ["return i >= j"]),
    "a window": (within, ["width = scalar(7, \"int\", 1, 1073741824)", "abs(i - j) <= width"]),
    "a chunk": (lambda b, h, q, k: q // CHUNK == k // CHUNK, ["(i // 16) == (j // 16)"]),
    "documents": (lambda b, h, q, k: causal(b, h, q, k) & (DOCUMENT[q] == DOCUMENT[k]),
                  ['DOCUMENT = i64 "?"', "(DOCUMENT[i] == DOCUMENT[j])"]),
    "a prefix": (either(causal, lambda b, h, q, k: k < ENDS[b]), ["(i >= j) or (j < ENDS[b])"]),
    "a matrix of truths": (lambda b, h, q, k: VISIBLE[b, 0, q, k], ['VISIBLE = u8 "? ? ? ?"', "VISIBLE[b][0][i][j] ~= 0"]),
    "bits": (lambda b, h, q, k: ((BYTES[k] >> 1) & 1) == ((q & 3) ^ 1), ['BYTES = u8 "?"', "(BYTES[j] >> 1) & 1", "~ 1"]),
    "a parity": (lambda b, h, q, k: ~((q + k) % 2).bool() | (q.eq(k) ^ True), ["local x1 = (i + j) % 2", "not (x1 ~= 0)"]),
    "towards 0": (lambda b, h, q, k: torch.div(k - q, 5, rounding_mode="trunc") == 0, ["// abs(5)"]),
    "no number at all": (lambda b, h, q, k: True, ["return true"]),
    "a partial": (functools.partial(within, width=4), ["width = scalar(4, \"int\""]),
}


@pytest.mark.parametrize("name", [*SCORES, *MASKS])
def test_translations(name):
    """Each is compared with its function at 4,096 points before it is given, and the library takes its text."""
    function, wanted = {**SCORES, **MASKS}[name]
    found = flex.program(**{"score_mod" if name in SCORES else "mask_mod": function}, **SIZES)
    for words in wanted:
        assert words in found.text, found.text
    found.made(fagen.context(CHIP))


def test_the_comparison_sees_a_wrong_translation(monkeypatch):
    """Each row in turn is another: no program is given."""
    wrong = {"aten::sub": operations.binary("+"), "aten::abs": operations.first, "aten::where": lambda c: c.arguments[1],
             "aten::ge": operations.compared(">"), "aten::bitwise_and": operations.logic("or"), "aten::clamp": operations.first,
             "aten::floor_divide": operations.binary("%"), "aten::tanh": operations.function("sigmoid")}
    used = {"aten::sub": within, "aten::abs": within, "aten::where": SCORES["-inf where hidden"][0], "aten::ge": causal,
            "aten::bitwise_and": MASKS["documents"][0], "aten::clamp": SCORES["powers"][0], "aten::floor_divide": MASKS["a chunk"][0],
            "aten::tanh": softcap(3.0)}
    monkeypatch.setattr(translate, "_kept", {})
    for op, row in wrong.items():
        monkeypatch.setitem(operations.ROWS, op, row)
        score = "score" in inspect.signature(used[op]).parameters
        with pytest.raises(fagen.Unsupported, match=r"the function gives .*, its translation .*, so at \d+ of 4096 points") as told:
            flex.program(**{"score_mod" if score else "mask_mod": used[op]}, **SIZES)
        assert f"{HERE}:{used[op].__code__.co_firstlineno}: at " in str(told.value)
        monkeypatch.undo()
        monkeypatch.setattr(translate, "_kept", {})


def line(function, offset=0):
    return f"{HERE}:{function.__code__.co_firstlineno + offset}: "


def branches(score, b, h, q, k):
    if q > k:
        return score
    return score * 2


def loses(score, b, h, q, k):
    n = score * 2
    return torch.erf(n)


def whole(score, b, h, q, k):
    return score + BIAS.float()


def sliced(b, h, q, k):
    return VISIBLE[0, 0, q, :10].any()


def overflows(b, h, q, k):
    near = q < k
    return near & (q * k < 100)


def wraps(score, b, h, q, k):
    return score + SLOPES[(h - 1)]


REFUSED = [
    ("an if", branches, {}, line(branches, 1), "asks for the value of a score or an index"),
    ("an operator without a row", loses, {}, line(loses, 2), "aten::erf has no translation; accepted: abs, add, "),
    ("a whole tensor", whole, {}, line(whole, 1), "aten::add gives the shape (4, 33, 48); accepted: single elements"),
    ("a slice", sliced, {}, line(sliced, 1), "an index is slice(None, 10, None); accepted: integers"),
    ("int32 may be passed", overflows, {"check": True}, line(overflows, 2), "* may pass int32"),
    ("an index from the end", wraps, {}, line(wraps), "the function gives"),
    ("too many indices", lambda b, h, q, k: SLOPES[h, q] > 0, {}, "", "2 indices of a tensor of shape (4,); accepted: 1"),
    ("a tensor of fp64", lambda score, b, h, q, k: score + torch.zeros(HQ, dtype=torch.float64)[h], {}, "", "torch.float64 (4,); accepted"),
    ("several results", lambda score, b, h, q, k: (score, score), {}, "", "gives a tuple; accepted: a tensor of one element"),
    ("a shape", lambda score, b, h, q, k: SLOPES * score, {}, "", "aten::mul gives the shape (4,); accepted"),
    ("a row of a tensor", lambda score, b, h, q, k: TABLE[h], {}, "", "the result has the shape (80,); accepted: one element"),
    ("a row and an element", lambda score, b, h, q, k: score + TABLE[h], {}, "", "aten::add gives the shape (80,)"),
    ("NaN", lambda score, b, h, q, k: score + math.nan, {}, "", "a NaN is a constant"),
    ("nine operands", lambda score, b, h, q, k: sum([SLOPES.clone()[h] for _ in range(9)], score), {}, "", "more than 8 tensors"),
    ("a sum", lambda b, h, q, k: torch.stack((q, k)).sum() > 3, {}, "", "aten::stack gives the shape (2,)"),
]


@pytest.mark.parametrize("name, function, options, place, words", REFUSED, ids=[row[0] for row in REFUSED])
def test_refused_with_its_line(name, function, options, place, words):
    score = "score" in inspect.signature(function).parameters
    with pytest.raises(fagen.Unsupported) as told:
        if options:
            ctx = fagen.context(CHIP)
            flex._program(*((function, None) if score else (None, function)), (B, HQ, SQ, SK), torch.device("cpu"), "exact",
                          lambda found: found.made(ctx))
        else:
            flex.program(**{"score_mod" if score else "mask_mod": function}, **SIZES)
    assert place in str(told.value) and words in str(told.value) and "accepted" in str(told.value), told.value
    assert place or f"{HERE}:" in str(told.value) or "gives a tuple" in words or "8 tensors" in words


ARGUMENTS = [
    (lambda: flex.program(), "score_mod and mask_mod are None"),
    (lambda: flex.program(score_mod=3), "score_mod is 3"),
    (lambda: flex.program(mask_mod=causal, Q_LEN=-1), "Q_LEN is -1"),
    (lambda: flex.program(mask_mod=causal, tanh="fast"), "tanh is 'fast'"),
    (lambda: flex.flex_attention(Q[0], K, V), "query.shape is (4, 33, 32)"),
    (lambda: flex.flex_attention(Q, K, V), "heads of query and key are 4 and 2"),
    (lambda: flex.flex_attention(Q, K, V, enable_gqa=True, block_mask=3), "block_mask is a builtins.int"),
    (lambda: flex.flex_attention(Q, K, V, enable_gqa=True, kernel_options=3), "kernel_options is 3"),
]
Q, K, V = tensor(5, B, HQ, SQ, D), tensor(6, B, HKV, SK, D), tensor(7, B, HKV, SK, D)


@pytest.mark.parametrize("call, words", ARGUMENTS, ids=[row[1] for row in ARGUMENTS])
def test_arguments(chip, call, words):
    with pytest.raises(fagen.InvalidArgument) as told:
        call()
    assert words in str(told.value) and "accepted" in str(told.value)


def test_a_translation_is_kept_and_bound_to_what_the_function_holds(monkeypatch):
    def of(cap, slopes, n):
        return lambda score, b, h, q, k: cap * torch.tanh((score + slopes[h]) / cap) + slopes[q // n % HQ]
    first = flex.program(score_mod=of(3.0, SLOPES, 4), **SIZES)
    assert first.operands["cap"] == 3.0 and first.operands["slopes"] is SLOPES
    monkeypatch.setattr(translate, "attempt", None)  # whatever would be translated again
    other = SLOPES + 1
    second = flex.program(score_mod=of(2.0, other, 4), **SIZES)
    assert second.text == first.text and second.operands["cap"] == 2.0 and second.operands["slopes"] is other
    monkeypatch.undo()
    third = flex.program(score_mod=of(3.0, SLOPES, 5), **SIZES)  # a divisor is part of the text
    assert third.text != first.text and "// 5" in third.text


def test_what_may_change_unseen_is_translated_each_time():
    class Holder:
        width = 3

        def mask(self, b, h, q, k):
            return (q - k).abs() <= self.width
    holder = Holder()
    assert "<= 3" in flex.program(mask_mod=holder.mask, **SIZES).text
    holder.width = 4
    assert "<= 4" in flex.program(mask_mod=holder.mask, **SIZES).text
    scaled = flex.program(score_mod=lambda score, b, h, q, k: score + (SLOPES * 2)[h], **SIZES)  # made when it was translated
    assert torch.equal(scaled.operands["t"], SLOPES * 2)
    limit = torch.tensor(5)
    for n in (5, 6):
        limit.fill_(n)
        assert f"<= {n}" in flex.program(mask_mod=lambda b, h, q, k: q - k <= limit.item(), **SIZES).text
    most = SLOPES.clone()

    def by_the_most(score, b, h, q, k):
        return score * most.max() + torch.tensor(0.25)
    for factor in (1, 3):
        most.copy_(SLOPES * factor)
        found = flex.program(score_mod=by_the_most, **SIZES)
        assert found.operands["t"].item() == most.max() and "0.25" in found.text


def test_a_number_that_python_decides_by_is_part_of_the_text():
    def of(width):
        def mask(b, h, q, k):
            return causal(b, h, q, k) if width is None or width < 0 else within(b, h, q, k, width)
        return mask
    assert [flex.program(mask_mod=of(n), **SIZES).text.split("return ")[1].split("\n")[0] for n in (-1, 5, None, -1, 6)] == [
        "i >= j", "abs(i - j) <= 5", "i >= j", "i >= j", "abs(i - j) <= 6"]


def test_operands_are_read_in_place():
    flat = torch.rand(SK) > 0.5
    wide = flat[None, None].expand(HQ, SQ, SK)
    found = flex.program(mask_mod=lambda b, h, q, k: wide[h, q, k], **SIZES).operands["wide"]
    assert found.shape == (1, 1, SK) and found.data_ptr() == flat.data_ptr() and found.dtype == torch.uint8
    assert translate.operand(ONE).data_ptr() == ONE.data_ptr()


def test_lua_is_read_by_its_own_rules():
    points = {name: torch.tensor([0, 1, 2, 3]) for name in "bhij"}
    points["s"] = torch.tensor([-1.5, 0.25, 2.0, 3.0])

    def value(body, **operands):
        head = "".join(f'{name} = f32 "?"\n' if torch.is_tensor(x) else f"{name} = scalar({x})\n" for name, x in operands.items())
        return lua.compute(f"{head}function score(s, b, h, i, j) {body} end", operands, points)["score"].tolist()
    assert value("return 7 - 2 - 1 + i * 2 ^ 2 ^ 0.5 * 0") == [4.0] * 4
    assert value("return -i // 2") == [0, -1, -1, -2] and value("return -i % 3") == [0, 2, 1, 0] and value("return -2 ^ 2") == [-4.0] * 4
    assert value("local x1 = i < 2 return x1 and not (i == 1) and 5 or 6.5") == [5.0, 6.5, 6.5, 6.5]
    assert value("return 1 | 2 ~ 3 & 2 << 1") == [1 | (2 ^ (3 & (2 << 1)))] * 4
    assert value("return t[i - 1] + c", t=torch.tensor([1.0, 2.0]), c=0.5) == [1.5, 1.5, 2.5, 2.5]
    assert value("return floor(s) + ceil(s)") == [-3, 1, 4, 6] and value("return min(i, 2, 1.5)") == [0.0, 1.0, 1.5, 1.5]
    for wrong in ("return i $ j", "return (i", "return i)"):
        with pytest.raises((ValueError, IndexError)):
            value(wrong)


def test_parentheses():
    assert [text.bare(x) for x in ("(a + b)", "(a) + (b)", "((a))", "f(a)", "a")] == ["a + b", "(a) + (b)", "(a)", "f(a)", "a"]


# ---- kernels ----

def exact(score=None, mask=None, scale=None):
    """(out, lse) [b, h, ...] in fp64, by the functions themselves at each pair."""
    grid = [x.flatten() for x in torch.meshgrid(*(torch.arange(n, dtype=torch.int32) for n in (B, HQ, SQ, SK)), indexing="ij")]
    q, k, v = (x.double() for x in (Q, K, V))
    k, v = (x.repeat_interleave(HQ // HKV, 1) for x in (k, v))
    s = q @ k.mT * (D ** -0.5 if scale is None else scale)
    if score is not None:
        s = compare.values(score, [s.flatten(), *grid])[0].view(s.shape).double()
    if mask is not None:
        s = torch.where(compare.values(mask, grid)[0].view(s.shape), s, -math.inf)
    lse = torch.logsumexp(s, -1)
    return torch.where(lse > -math.inf, 1, 0)[..., None] * (torch.softmax(s, -1).nan_to_num() @ v), lse


@pytest.mark.parametrize("score, mask", [("softcap", "documents"), ("the buckets of T5", None), (None, "a matrix of truths"),
                                         ("alibi", "a window")])
def test_kernels_compute_it(chip, score, mask):
    functions = {"score": score and SCORES[score][0], "mask": mask and MASKS[mask][0]}
    out, lse = flex.flex_attention(Q, K, V, score_mod=functions["score"], mask_mod=functions["mask"], enable_gqa=True, return_lse=True)
    wanted = exact(**functions)
    close(out, wanted[0], 1e-5)
    close(lse, wanted[1], 1e-5)


@pytest.mark.parametrize("score", [lambda score, b, h, q, k: torch.where(q != 3, score, -math.inf),
                                   lambda score, b, h, q, k: score + HOLES[q, k]], ids=["a constant", "a tensor"])
def test_a_row_of_minus_infinity_alone_is_0(chip, score):
    out, lse = flex.flex_attention(Q, K, V, score_mod=score, enable_gqa=True, return_lse=True)
    wanted = exact(score)
    assert not out[:, :, 3].any() and (lse[:, :, 3] == -math.inf).all()
    close(out, wanted[0], 1e-5)
    close(lse, wanted[1], 1e-5)


def test_block_masks(chip):
    theirs = pytest.importorskip("torch.nn.attention.flex_attention")
    mask = theirs.create_block_mask(causal, None, None, SQ, SK, device="cpu", BLOCK_SIZE=16)
    size = (B, HQ, SQ, SK)
    assert blocks.function(mask, size, Q.device) is causal
    out = flex.flex_attention(Q, K, V, block_mask=mask, enable_gqa=True, scale=0.3)
    close(out, exact(mask=causal, scale=0.3)[0], 1e-5)
    listed = torch.tensor([[[1, 2, 3]]], dtype=torch.int32), torch.tensor([[[[2, 0, 0], [0, 2, 0], [0, 1, 2]]]], dtype=torch.int32)
    own = theirs.BlockMask.from_kv_blocks(*listed, BLOCK_SIZE=16, seq_lengths=(SQ, SK))  # blocks that no function says
    table = torch.tensor([[0, 0, 1], [1, 0, 1], [1, 1, 1]]) > 0
    function = blocks.function(own, size, Q.device)
    seen = exact(mask=lambda b, h, q, k: table[q // 16, k // 16])
    close(flex.flex_attention(Q, K, V, block_mask=own, enable_gqa=True), seen[0], 1e-5)
    assert "return either[0][0][i // 16][j // 16] ~= 0" in flex.program(mask_mod=function, **SIZES).text
    both = theirs.BlockMask.from_kv_blocks(*listed, BLOCK_SIZE=16, seq_lengths=(SQ, SK), mask_mod=causal)
    text_of_both = flex.program(mask_mod=blocks.function(both, size, Q.device), **SIZES).text
    assert "(partial[0][0][i // 16][j // 16] ~= 0) and (i >= j)" in text_of_both
    for wrong, words in ((theirs.create_block_mask(causal, None, None, SQ + 1, SK, device="cpu"), "of (34, 48) queries and keys"),
                         (theirs.create_block_mask(causal, 3, None, SQ, SK, device="cpu"), "of (3, 1) sequences and heads")):
        with pytest.raises(fagen.InvalidArgument) as told:
            flex.flex_attention(Q, K, V, block_mask=wrong, enable_gqa=True)
        assert words in str(told.value)
    with pytest.raises(fagen.InvalidArgument, match="block_mask and mask_mod are both set"):
        flex.flex_attention(Q, K, V, block_mask=mask, mask_mod=causal, enable_gqa=True)


def test_nothing_is_translated_while_a_program_is_traced(chip):
    program = flex.program(mask_mod=causal, **SIZES)
    assert np.isfinite(flex.flex_attention(Q, K, V, enable_gqa=True).numpy()).all()
    with pytest.raises(Exception, match="a function is not translated while a program is traced"):
        torch.compile(lambda q: flex.flex_attention(q, K, V, mask_mod=causal, enable_gqa=True), backend="eager", fullgraph=True)(Q)
    assert program.operands == {}
