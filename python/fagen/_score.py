"""fagen.score: what becomes of a score, and what a row's sum has beside its keys, in a few lines of Lua (docs/scores.md)."""
from __future__ import annotations

import ctypes as C
import re
import weakref
from typing import Any, Dict, Hashable, List, NamedTuple, Optional, Sequence, Tuple

from . import _abi, _stage
from . import _shapes as shapes
from ._context import Context
from ._mask import Mask, mask_of, scale_of
from ._library import check, lib
from ._plan import LSE, O, Plan, Plans
from ._stage import Staged
from ._view import View, empty_like, is_torch, traced, view
from .errors import Unsupported, invalid

DTYPES = {_abi.FA_OPERAND_F32: "float32", _abi.FA_OPERAND_BF16: "bfloat16", _abi.FA_OPERAND_F16: "float16", _abi.FA_OPERAND_I32: "int32",
          _abi.FA_OPERAND_I64: "int64", _abi.FA_OPERAND_U8: "uint8", _abi.FA_OPERAND_BITS: "int32"}
TRUTHS = ("bool", "bool8")  # as libraries call them
BYTES = re.compile("[^\0\ud800-\udfff]*")  # what C takes, in UTF-8
_plans = Plans()


class Operand(NamedTuple):
    """What a program reads: a scalar where `shape` is empty."""
    name: str
    kind: int
    shape: str
    value: float


class Made(NamedTuple):
    """A program as an object of one context."""
    address: int
    operands: Tuple[Operand, ...]


class Score:
    """A score program. prog(slope=t, cap=30) names its operands, tensors for arrays and numbers for scalars; scalars that are left out
    have the values of the text. fagen.attention(..., score=prog(slope=t)).

    Raises InvalidArgument with line and column at the first call, where the text is none."""

    def __init__(self, text: str, operands: Optional[Dict[str, Any]] = None, of: Optional["Score"] = None) -> None:
        if of is None and (not isinstance(text, str) or not BYTES.fullmatch(text)):
            raise invalid("text", repr(text)[:200], "a score program, as docs/scores.md has it")
        self.text = text
        self.operands: Dict[str, Any] = operands or {}
        self._root = self if of is None else of._root
        self._objects: Optional["weakref.WeakKeyDictionary[Context, Made]"] = None

    def __call__(self, **operands: Any) -> "Score":
        return Score(self.text, {**self.operands, **operands}, self)

    def __repr__(self) -> str:
        return f"fagen.score({self.text!r}){'' if not self.operands else '(' + ', '.join(self.operands) + ')'}"

    def made(self, context: Context) -> Made:
        """The object of a context. It lives as long as that."""
        root = self._root
        if root._objects is None:
            root._objects = weakref.WeakKeyDictionary()
        found = root._objects.get(context)
        if found is None:
            address, info = C.c_void_p(), _abi.ScoreOperandInfo(size=C.sizeof(_abi.ScoreOperandInfo))
            check(lib.fa_score_create(context.handle, self.text.encode(), C.byref(address)))
            listed: List[Operand] = []
            while lib.fa_score_operand_at(context.handle, address, len(listed), C.byref(info)) == 0:
                listed.append(Operand(info.name.decode(), info.kind, info.shape.decode(), info.value))
            found = root._objects[context] = Made(address.value or 0, tuple(listed))
        return found


def score(text: str) -> Score:
    """A score program of its text: fagen.score("cap = scalar(50)\\nfunction score(s, b, h, i, j) return cap * tanh(s / cap) end")."""
    return Score(text)


_known: Dict[str, Score] = {}
KNOWN = 4096  # programs of keywords and of functions that are kept


def shared(text: str) -> Score:
    """The one program of a text that fagen itself wrote; while a program is traced one of its own."""
    if traced():
        return Score(text)
    if len(_known) >= KNOWN:
        _known.clear()
    return _known.get(text) or _known.setdefault(text, Score(text))


# ---- operands ----

TERM = re.compile(r"([+-]?)(?:(\d+)\*)?([a-z]+|\d+)(?:/(\d+))?")


def extents(shape: str, lengths: Dict[str, int]) -> Tuple[Optional[int], ...]:
    """"hq sq+sk-1" for the lengths of a call; None: what the tensor has."""
    out: List[Optional[int]] = []
    for word in shape.split():
        total = 0
        for sign, times, name, by in TERM.findall(word):
            n = int(name) if name.isdigit() else -(-lengths[name] // int(by or 1)) * int(times or 1)
            total += -n if sign == "-" else n
        out.append(None if word == "?" else total)
    return tuple(out)


def _array(o: Operand, x: Any, q: View, lengths: Dict[str, int], stream: Optional[int]) -> Tuple[View, _abi.ScoreValue]:
    """A tensor, whose dimensions of length 1, and those it has not in front, read the same for each index. Truths are bytes."""
    v, wanted = x if isinstance(x, View) else view(o.name, x, stream), extents(o.shape, lengths)
    kind = DTYPES[o.kind]
    v = v._replace(dtype=kind) if kind == "uint8" and v.dtype in TRUTHS else v
    if v.dtype != kind:
        raise invalid(f"{o.name}.dtype", v.dtype, kind)
    shapes.same(o.name, v, "device", q.device, "q")
    bits = o.kind == _abi.FA_OPERAND_BITS  # a word of 32 in each element
    rank, given = len(wanted), list(v.shape)
    words = [None if n is None else -(-n // 32) if bits and k == rank - 1 else n for k, n in enumerate(wanted)]
    front = rank - len(given)
    fits = front >= 0 and all(n is None or m in (n, 1) for m, n in zip(given, words[max(front, 0):]))
    if not fits or any(n is None for n in words[:max(front, 0)]):
        raise invalid(f"{o.name}.shape", tuple(given), f"{tuple('any' if n is None else n for n in words)}, of \"{o.shape}\"; 1, or "
                      "nothing in front, reads the same for each index")
    value, steps = _abi.ScoreValue(size=C.sizeof(_abi.ScoreValue)), [0] * rank
    for k, n in enumerate(wanted):
        at = k - front
        steps[k] = 0 if at < 0 or given[at] == 1 else v.strides[at]
        value.extent[k] = given[at] if n is None else n
        value.stride[k] = steps[k]
    if not any(steps) and any((given[k - front] if n is None else n) > 1 for k, n in enumerate(words)):
        raise invalid(f"{o.name}.shape", f"{tuple(given)}, of one element", "more than one element: a scalar of the program is one number "
                      "for all")
    return v, value


def values(made: Made, given: Dict[str, Any], q: View, lengths: Dict[str, int],
           stream: Optional[int]) -> Tuple[Any, List[Optional[View]]]:
    """The array of fa_score_value, and the views of tensors by operand."""
    out, views = (_abi.ScoreValue * max(len(made.operands), 1))(), []
    unknown = sorted(set(given) - {o.name for o in made.operands})
    if unknown:
        raise invalid("score", f"a program with the operand {unknown[0]}", f"{', '.join(o.name for o in made.operands) or 'none'}")
    for i, o in enumerate(made.operands):
        x, found = given.get(o.name), None
        if o.shape and x is None:
            raise invalid(o.name, None, f"a tensor of {DTYPES[o.kind]}, \"{o.shape}\": score=program({o.name}=...)")
        if o.shape:
            found, out[i] = _array(o, x, q, lengths, stream)
        else:
            try:
                number = o.value if x is None else float(x)
            except (TypeError, ValueError, OverflowError):
                raise invalid(o.name, repr(x)[:80], "a number") from None
            out[i] = _abi.ScoreValue(size=C.sizeof(_abi.ScoreValue), scalar=number)
        views.append(found)
    return out, views


# ---- a call ----

def wants_gradient(program: Score, **inputs: Any) -> bool:
    """Whether PyTorch is to have a gradient of the call."""
    tensors = {name: x.keep if isinstance(x, View) else x for name, x in {**inputs, **program.operands}.items()}
    if not any(is_torch(x) for x in tensors.values()):
        return False
    import torch
    from ._score_gradients import is_wanted
    if not is_wanted(program, **inputs):
        return False
    for name, x in inputs.items():
        if not is_torch(x):
            raise invalid(name, f"a {type(x).__module__}.{type(x).__name__}", "a torch.Tensor where a gradient is wanted")
    return True


def stream_of_torch(q: Any, stream: Optional[int]) -> Optional[int]:
    """PyTorch's current stream; of other libraries what the caller says."""
    if not is_torch(q):
        return stream
    import torch
    if stream is not None:
        raise invalid("stream", repr(stream), "None with tensors of PyTorch: the current stream, as torch.cuda.stream() sets it")
    return int(torch.cuda.current_stream(q.device).cuda_stream) if q.is_cuda else None


def launch(context: Context, program: Score, key: Hashable, arguments: Any, tensors: Sequence[Tuple[int, View]], q: View,
           lengths: Dict[str, int], stream: int, written: Sequence[int] = (O, LSE), gradients: Optional[Dict[str, Any]] = None,
           of: Any = None) -> None:
    """A launch with fa_args of arguments(), which a plan keeps: tensors are (word of fa_args, view), of which those of `written` come back
    from a simulated chip. gradients: packed tensors to write to, by operand. of: a tensor of PyTorch whose current stream is meant."""
    made = program.made(context)
    given, views = values(made, program.operands, q, lengths, stream)
    like = tuple(None if v is None else (v.shape, v.strides) for v in views)
    back = [None if not gradients or o.name not in gradients else view(o.name, gradients[o.name], stream) for o in made.operands]
    key = (key, made.address, like, tuple((w, x[1:6]) for w, x in tensors), tuple(x is None for x in back))
    plan: Optional[Plan] = _plans.find(key)
    if plan is None:
        args = arguments()
        args.score, args.score_values, args.score_value_count = made.address, C.addressof(given), len(made.operands)
        plan = Plan(context, args)
        plan.made = given
        _plans.keep(key, plan)
    there: List[int] = []
    try:
        for i, v in enumerate(views):
            plan.made[i].scalar = given[i].scalar
            if v is not None:
                plan.made[i].ptr = _staged(context, v, there) if plan.host else v.address
        for i, g in enumerate(back):
            if g is not None:
                plan.made[i].grad_ptr = _staged(context, g, there) if plan.host else g.address
        if plan.host:
            _stage.launch(plan, [Staged(w, x, w in written) for w, x in tensors])
            for i, g in enumerate(back):
                if g is not None and 0 not in g.shape:
                    check(lib.fa_copy(context.handle, g.address, plan.made[i].grad_ptr, _stage.span(g)[1], _abi.FA_FROM_DEVICE))
            return
        _stage.put(plan, of, [Staged(w, x, w in written) for w, x in tensors], None, stream)
    finally:
        for at in there:
            lib.fa_free(context.handle, at)


def _staged(context: Context, v: View, there: List[int]) -> int:
    """Where a simulated chip has the elements of a tensor in host memory."""
    if 0 in v.shape:
        return 0
    low, size = _stage.span(v)
    at = C.c_void_p()
    check(lib.fa_alloc(context.handle, C.byref(at), size))
    assert at.value
    there.append(at.value)
    check(lib.fa_copy(context.handle, at.value, v.address + low, size, _abi.FA_TO_DEVICE))
    return at.value - low


def dense(program: Score, q: Any, k: Any, v: Any, *, causal: bool, window: Any, diagonal: Any, scale: Any, return_lse: bool, out: Any,
          lse: Any, out_dtype: Any, tf32: bool, batch_invariant: bool, dropout_p: float, rng: Any, stream: Optional[int],
          device: Any, deterministic: bool = False) -> Any:
    """fagen.attention with a program."""
    shapes.flag("deterministic", deterministic)
    if wants_gradient(program, q=q, k=k, v=v):
        from . import _score_gradients
        stream_of_torch(q, stream)
        return _score_gradients.dense(program, q, k, v, causal=causal, window=window, diagonal=diagonal, scale=scale, return_lse=return_lse,
                                      out=out, lse=lse, out_dtype=out_dtype, tf32=tf32, batch_invariant=batch_invariant,
                                      dropout_p=dropout_p, rng=rng, stream=None, device=device, deterministic=deterministic)
    return attend(program, q, k, v, mask_of(causal, window, diagonal), scale_of(scale), return_lse, out, lse, out_dtype, tf32,
                  batch_invariant, dropout_p, rng, stream_of_torch(q, stream), device)


def attend(program: Score, q: Any, k: Any, v: Any, mask: Mask, factor: float, return_lse: bool, out: Any, lse: Any, out_dtype: Any,
           tf32: bool, batch_invariant: bool, dropout_p: float, rng: Any, stream: Optional[int], device: Any) -> Any:
    """The call itself: out, or (out, lse) of new tensors or those given."""
    from . import _dense
    from ._attention import context_of, output, stream_of
    from ._dropout import RNG, probability, state
    inputs = view("q", q, stream), view("k", k, stream), view("v", v, stream)
    at, ctx = stream_of(inputs, stream), context_of(inputs[0], device)
    _dense.checked(*inputs)
    p = probability(dropout_p)
    random = state(rng, p, inputs[0], stream)
    (b, sq, hq, _), (_, sk, hkv, dv) = inputs[0].shape, inputs[2].shape
    out, result = output(q, inputs[0], out, (b, sq, hq, dv), out_dtype, stream)
    sums = None
    if return_lse or lse is not None:
        lse = empty_like(q, (b, hq, sq), "float32", "lse") if lse is None else lse
        sums = view("lse", lse, stream)
    words = _words(inputs, result, sums, random, RNG)

    def arguments() -> _abi.Args:
        args = _dense.arguments(ctx, *inputs, result, sums, mask, factor, tf32, True, p)
        args.flags |= _abi.FA_BATCH_INVARIANT if batch_invariant else 0
        return args

    lengths = {"b": b, "hq": hq, "hkv": hkv, "sq": sq, "sk": sk, "tq": b * sq, "tk": b * sk}
    launch(ctx, program, (ctx, mask, factor, tf32, p, batch_invariant), arguments, words, inputs[0], lengths, at)
    return (out, lse) if return_lse else out


def varlen(program: Score, batch: Any, q: Any, out: Any, result: View, sums: Optional[View], *, ctx: Context, mask: Any, scale: float,
           tf32: bool, stream: int, dropout: float, rng: Optional[View], invariant: bool) -> None:
    """The launch of fagen.varlen_attention with a program."""
    from . import _varlen
    from ._dropout import RNG
    words = _words((batch.q, batch.k, batch.v), result, sums, rng, RNG) + _varlen.arrays_of(batch)

    def arguments() -> _abi.Args:
        args = _varlen.arguments(ctx, batch, result, sums, mask, scale, tf32, True, dropout)
        args.flags |= _abi.FA_BATCH_INVARIANT if invariant else 0
        return args

    launch(ctx, program, (ctx, batch.sq, batch.sk, mask, scale, tf32, dropout, invariant), arguments, words, batch.q, lengths_of(batch),
           stream)


def lengths_of(batch: Any) -> Dict[str, int]:
    """What shapes of operands are made of."""
    from . import _varlen
    b, packed_q, packed_k = _varlen.sequences(batch), len(batch.q.shape) == 3, len(batch.k.shape) == 3
    return {"b": b, "hq": batch.q.shape[-2], "hkv": batch.k.shape[-2], "sq": batch.sq, "sk": batch.sk,
            "tq": batch.q.shape[0] if packed_q else b * batch.sq, "tk": batch.k.shape[0] if packed_k else b * batch.sk}


def _words(inputs: Sequence[View], result: View, sums: Optional[View], rng: Optional[View], rng_word: int) -> List[Tuple[int, View]]:
    from ._plan import K, Q, V
    out = [(Q, inputs[0]), (K, inputs[1]), (V, inputs[2]), (O, result)]
    return out + ([(LSE, sums)] if sums is not None else []) + ([(rng_word, rng)] if rng is not None else [])
