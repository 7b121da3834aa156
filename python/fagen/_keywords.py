"""softcap, alibi_slopes, attn_mask and sinks: the keywords of a call that are score programs."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from ._score import TRUTHS, Score, shared
from ._view import is_jax, is_torch, layout_of, view
from .errors import InvalidArgument, invalid

WORDS = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
MASK = (("b", "b"), ("hq", "h"), ("sq", "i"), ("sk", "j"))  # lengths and indices of attn_mask


def asked(program: Any, softcap: Any, alibi_slopes: Any, attn_mask: Any, sinks: Any, causal: bool, q: Any = None,
          k: Any = None) -> Optional[Score]:
    """The program of a call's keywords; None: scores are as they are. q, k: of a dense batch."""
    named = (softcap is not None and softcap != 0) or not alibi_slopes is attn_mask is sinks is None
    if program is not None and not isinstance(program, Score):
        raise invalid("score", repr(program), "what fagen.score() made, or None")
    if program is not None and named:
        raise InvalidArgument("score is set beside softcap, alibi_slopes, attn_mask or sinks; accepted: a program that has them all, or "
                              "those alone")
    if attn_mask is not None and q is not None:
        _fits(attn_mask, q, k)
    masks = [] if attn_mask is None else [("attn_mask", attn_mask)]
    return program if program is not None else of_keywords(softcap, alibi_slopes, masks, sinks, causal) if named else None


def _fits(mask: Any, q: Any, k: Any) -> None:
    """Raises where a mask, expanded as it may be, has another length than the batch; shapes of q and k are looked at elsewhere."""
    have, of_q, of_k = (tuple(getattr(x, "shape", ())) for x in (mask, q, k))
    if len(of_q) != 4 or len(of_k) != 4:
        return
    wanted = (of_q[0], of_q[2], of_q[1], of_k[1])
    if len(have) > 4 or any(m != 1 and m != n for m, n in zip(have[::-1], wanted[::-1])):
        raise invalid("attn_mask.shape", have, f"{wanted}, [b, hq, sq, sk], from the right; 1 is for all")


def of_keywords(softcap: Any, slopes: Any, masks: Sequence[Tuple[str, Any]], sinks: Any, causal: bool) -> Score:
    """Softcap, then ALiBi, and sinks, as FlashAttention has them: a slope counts downwards with the distance. Then masks, by their names,
    as PyTorch's scaled_dot_product_attention has one: -inf of an element hides, and a row of the lowest numbers weighs all keys alike.
    Operands are called as their keywords are, so that messages of the library name those."""
    operands: Dict[str, Any] = {}
    head, value, body, added, seen = [], "s", "", "", []  # type: List[str], str, str, str, List[str]
    if softcap:
        head.append('softcap = scalar(50, "float", 1e-6, 1e30)')
        value, operands["softcap"] = "softcap * tanh(s / softcap)", softcap
    if slopes is not None:
        shape, _, dtype = layout_of("alibi_slopes", slopes)
        if len(shape) not in (1, 2) or dtype not in WORDS:
            raise invalid("alibi_slopes", f"{dtype} {tuple(shape)}", "[hq] or [b, hq] of float32, float16 or bfloat16")
        head.append(f'alibi_slopes = {WORDS[dtype]} "{"hq" if len(shape) == 1 else "b hq"}"')
        value += f" {'+' if causal else '-'} alibi_slopes{'[h]' if len(shape) == 1 else '[b][h]'} * "
        value += "(j - i - off)" if causal else "abs(j - i - off)"
        operands["alibi_slopes"] = slopes
    for name, mask in masks:
        element, shape, index, operands[name] = of_mask(name, mask)
        head.append(f'{name} = {element} "{shape}"')
        seen.append(f"{name}{index} ~= 0" if element == "u8" else f"{name}{index} > -huge")
        added += "" if element == "u8" else f" + {name}{index}"
    if sinks is not None:
        shape, _, dtype = layout_of("sinks", sinks)
        if len(shape) != 1 or dtype not in WORDS:
            raise invalid("sinks", f"{dtype} {tuple(shape)}", "[hq] of float32, float16 or bfloat16")
        head.append(f'sinks = {WORDS[dtype]} "hq"')
        body += "function sink(b, h, i) return sinks[h] end\n"
        operands["sinks"] = sinks
    if seen:
        body += f"function mask(b, h, i, j) return {' and '.join(seen)} end\n"
    if added:
        body = f"function score(s, b, h, i, j)\n  local x = {value}{added}\n  return x < -1e30 and -1e30 or x\nend\n{body}"
    elif value != "s":
        body = f"function score(s, b, h, i, j) return {value} end\n{body}"
    return shared("\n".join(head) + "\n" + body)(**operands)


def of_mask(name: str, mask: Any) -> Tuple[str, str, str, Any]:
    """Element, shape and index of a mask, and its elements without dimensions that are expanded, or of length 1: what does not depend on an
    index is read once."""
    shape, strides, dtype = layout_of(name, mask)
    element = "u8" if dtype in TRUTHS else WORDS.get(dtype)
    if element is None or len(shape) > len(MASK):
        raise invalid(name, f"{dtype} {tuple(shape)}", "up to 4 dimensions, [b, hq, sq, sk], of bool (True: is seen), or of "
                      "float32, float16 or bfloat16 (is added)")
    there = [(k, word, i) for k, (word, i) in enumerate(MASK[len(MASK) - len(shape):]) if shape[k] != 1 and strides[k]]
    kept = without(name, mask, [k for k, _, _ in there])
    if not there:
        return element, "1", "[0]", kept
    return element, " ".join([word for _, word, _ in there]), "".join([f"[{i}]" for _, _, i in there]), kept


def without(name: str, x: Any, dims: List[int]) -> Any:
    """The first elements of all dimensions but these; of one element at least [1]."""
    if is_torch(x):
        for k in reversed(range(x.dim())):
            x = x if k in dims else x.select(k, 0)
        return x if dims else x.reshape(1)
    if is_jax(x):  # whose dimensions are expanded where they are of length 1 alone
        return x.reshape(tuple(x.shape[k] for k in dims) or (1,))
    v = view(name, x)
    return v._replace(shape=tuple(v.shape[k] for k in dims) or (1,), strides=tuple(v.strides[k] for k in dims) or (1,))
