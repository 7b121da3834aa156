"""What is asked, without tensors: fagen.Problem, and what can be known, prepared, tuned and told of it."""
from __future__ import annotations

import ctypes as C
import dataclasses
from typing import Any, Callable, List, NamedTuple, Optional, TypedDict, TypeVar, Union, cast, overload

from . import _abi
from ._attention import context_of, dtype_name
from ._dense import plan as dense_plan
from ._library import check, error_of, lib
from ._mask import Window, integer, mask_of, scale_of
from ._plan import K, LSE, O, Q, V
from ._shapes import D_MAX, EIGHT, NAMES
from ._typing import Unpack
from ._view import fresh, torch_module, view
from ._context import Context, context
from .errors import InvalidArgument, NoFit, Unsupported, invalid

DTYPES = {"float16": _abi.FA_F16, "bfloat16": _abi.FA_BF16, "tf32": _abi.FA_TF32, "float32": _abi.FA_F32, **EIGHT}
NAMED = f"{NAMES}, tf32, {', '.join(EIGHT)}"
OPS = {"forward": _abi.FA_FORWARD, "backward": _abi.FA_BACKWARD, "merge": _abi.FA_MERGE}
LENGTH_MAX = 2**31 - 1
T = TypeVar("T")  # a tensor of any library


class Fields(TypedDict, total=False):
    """Those of a Problem, as keywords."""
    dtype: str
    d: int
    dv: int
    causal: bool
    window: Window
    out_dtype: Optional[str]
    b: int
    hq: int
    hkv: int
    sq: int
    sk: int
    align: int
    lengths: bool
    page_size: int
    op: str
    grad_dtype: Optional[str]
    deterministic: bool
    dropout: bool
    batch_invariant: bool
    v_in_k: bool


class CallOptions(TypedDict, total=False):
    """What explain() and problem_text() take of a call."""
    causal: bool
    window: Window
    diagonal: Union[str, int]
    scale: object  # a number, or a tensor of one element
    out_dtype: object  # "float32", or a type of the library
    tf32: bool


@dataclasses.dataclass(frozen=True)
class Problem:
    """A kind of attention. What is compiled in: dtype, d, dv, causal and window (which kind of mask), out_dtype, align, lengths, page_size,
    op. The shape only chooses the tuned config, and may be left 0, "typical": b, hq, hkv, sq, sk, the window's width.

    dtype: "float16", "bfloat16", "float32", "tf32" (float32 in memory), "float8_e4m3fn", "float8_e5m2". dv: 0 = d. align: bytes, a power
    of two to 16, that every row starts at a multiple of; 0 = the most that d allows. lengths: sequences of different lengths (fagen.varlen_attention). page_size: keys
    in pages of so many tokens; implies lengths. op: "forward", "backward" or "merge". Of a backward: grad_dtype, "float32" or
    None for dtype; deterministic, as in fagen.attention_backward. dropout: of any probability above 0.
    batch_invariant: as in fagen.attention. v_in_k: V is the first dv columns of K, as head_dim_v there."""
    dtype: str
    d: int
    dv: int = 0
    causal: bool = False
    window: Window = None
    out_dtype: Optional[str] = None
    b: int = 0
    hq: int = 0
    hkv: int = 0
    sq: int = 0
    sk: int = 0
    align: int = 0
    lengths: bool = False
    page_size: int = 0
    op: str = "forward"
    grad_dtype: Optional[str] = None
    deterministic: bool = False
    dropout: bool = False
    batch_invariant: bool = False
    v_in_k: bool = False

    def abi(self) -> _abi.Problem:
        """The fa_problem. Raises InvalidArgument."""
        dtype = dtype_name(self.dtype)
        if dtype not in DTYPES:
            raise invalid("dtype", repr(self.dtype), NAMED)
        if self.op not in OPS:
            raise invalid("op", repr(self.op), ", ".join(OPS))
        numbers = {name: integer(name, getattr(self, name), 0, LENGTH_MAX) for name in ("b", "hq", "hkv", "sq", "sk", "align")}
        integer("d", self.d, 1, D_MAX)
        integer("dv", self.dv, 0, D_MAX)
        page = integer("page_size", self.page_size, 0)
        out, grad = (_dtype(name, getattr(self, name)) for name in ("out_dtype", "grad_dtype"))
        mask = mask_of(self.causal, self.window, "bottom-right")
        features = _abi.FA_FEATURE_LENGTHS if self.lengths or page else 0
        features |= _abi.FA_FEATURE_PAGES if page else 0
        features |= _abi.FA_FEATURE_DETERMINISTIC if self.deterministic else 0
        features |= _abi.FA_FEATURE_DROPOUT if self.dropout else 0
        features |= _abi.FA_FEATURE_BATCH_INVARIANT if self.batch_invariant else 0
        features |= _abi.FA_FEATURE_V_IN_K if self.v_in_k else 0
        width = max(1, max(mask.left, 0) + max(mask.right, 0)) if mask.mask == _abi.FA_MASK_WINDOW else 0
        return _abi.Problem(size=C.sizeof(_abi.Problem), dtype=DTYPES[dtype], d=self.d, dv=self.dv, mask=mask.mask, o_dtype=out,
                            op=OPS[self.op], features=features, page=min(page & -page, 128), window=width, grad_dtype=grad, **numbers)


def _dtype(name: str, value: Optional[str]) -> int:
    """An fa_dtype; 0 for None. Raises InvalidArgument."""
    found = 0 if value is None else DTYPES.get(dtype_name(value), -1)
    if found < 0:
        raise invalid(name, repr(value), NAMED)
    return found


class Support(NamedTuple):
    """Whether a kernel computes a problem: as a truth value, and `reason`, "" where one does."""
    supported: bool
    reason: str

    def __bool__(self) -> bool:
        return self.supported


def problem_of(problem: Optional[Problem], fields: Fields) -> Problem:
    if problem is None:
        try:
            return Problem(**fields)
        except TypeError as e:
            raise InvalidArgument(f"{e}; accepted: {', '.join(f.name for f in dataclasses.fields(Problem))}") from None
    if not isinstance(problem, Problem):
        raise invalid("problem", repr(problem), "a fagen.Problem, or its fields by name")
    return dataclasses.replace(problem, **fields) if fields else problem


def default_context(device: Union[None, str, Context]) -> Context:
    """None: FAGEN_DEVICE, else PyTorch's current CUDA device where PyTorch uses one, else the current CUDA device."""
    from ._context import simulator_named
    torch = torch_module()
    if device is None:
        device = simulator_named()
    if device is None and torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        device = f"cuda:{torch.cuda.current_device()}"
    return context(device)


def supported(problem: Optional[Problem] = None, /, *, device: Union[None, str, Context] = None, **fields: Unpack[Fields]) -> Support:
    """Whether a kernel computes the problem on the device; compiles nothing. Fields of Problem by name, or a Problem.
    Raises InvalidArgument where the problem is none, NoDriver."""
    p = problem_of(problem, fields).abi()
    status = lib.fa_supported(default_context(device).handle, C.byref(p))
    if status in (_abi.FA_UNSUPPORTED, _abi.FA_NO_FIT):
        return Support(False, str(error_of(status)))
    check(status)
    return Support(True, "")


def prepare(problem: Optional[Problem] = None, /, *, to: Optional[Problem] = None, device: Union[None, str, Context] = None,
            **fields: Unpack[Fields]) -> int:
    """Compiles, or loads from the cache, the kernels of a problem now, so that no later call of it compiles; needed before a capture.

    to: a second problem of the same class: every shape between the two is prepared; b, sq, sk and the window may differ.
    Returns how many different kernels that took (1 without `to`). Legal on any thread. Raises as fagen.attention does."""
    p = problem_of(problem, fields).abi()
    handle = default_context(device).handle
    if to is None:
        check(lib.fa_prepare(handle, C.byref(p)))
        return 1
    if not isinstance(to, Problem):
        raise invalid("to", repr(to), "a fagen.Problem")
    high, n = to.abi(), C.c_int32()
    check(lib.fa_prepare_range(handle, C.byref(p), C.byref(high), C.byref(n)))
    return n.value


_Progress = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_char_p, C.c_double)


class Tuning(NamedTuple):
    """What a search found. config: what runs now, and seconds: its price, a measured time where the device was timed; before_config,
    before: the same before the search; None where it is unknown. tried: configs that it compiled, verified or timed. complete: False where
    it was stopped, by the time or by progress; what was found until then is kept."""
    config: str
    seconds: Optional[float]
    before_config: str
    before: Optional[float]
    tried: int
    complete: bool

    @property
    def gain(self) -> float:
        """How many times as fast as before, 1.0 where it is not known."""
        return self.before / self.seconds if self.before and self.seconds else 1.0


def tune(problem: Optional[Problem] = None, /, *, seconds: float = 0, limit: int = 0, threads: int = 0,
         progress: Optional[Callable[[str, float], Optional[bool]]] = None, device: Union[None, str, Context] = None,
         **fields: Unpack[Fields]) -> Tuning:
    """Searches the configs of the problem: compiles, verifies and times them on the device. Every outcome is kept on disk, so that a search
    resumes where it was stopped, and every later call of this and other processes uses the winner.

    seconds: time budget; 0: none. limit: candidates that are tried; 0: 48; -1: all that fit. threads: that compile; 0: one for each core,
    at most 16. progress(line, done): is told each line, done from 0 to 1; True stops the search.
    Returns a Tuning. Where the time ended it holds what was found so far, and complete is False.
    Blocks, from seconds to minutes. Raises Interrupted where progress stopped it, NoKernel where no candidate ran; on a simulated chip
    nothing is timed, and the model's best is recorded as a guess."""
    from ._candidates import choice
    asked, ctx = problem_of(problem, fields), default_context(device)
    p, first = asked.abi(), choice(asked, device=ctx)
    raised: List[BaseException] = []
    tried, stopped = set(), []

    def told(_: Any, line: bytes, done: float) -> int:
        try:
            tried.update(line.split(b", best")[0].split(b" ")[1:2])
            if progress is not None and progress(line.decode(errors="replace"), done):
                stopped.append(True)
            return len(stopped)
        except BaseException as e:  # no exception passes through C
            raised.append(e)
            return 1

    callback = _Progress(told)
    options = _abi.TuneOptions(size=C.sizeof(_abi.TuneOptions), limit=integer("limit", limit, -1), seconds=float(seconds),
                               threads=integer("threads", threads, 0),
                               progress=C.cast(callback, C.c_void_p).value)  # without progress, too: it lets Ctrl-C through
    status = lib.fa_tune(ctx.handle, C.byref(p), C.byref(options))
    if raised:
        raise raised[0]
    out_of_time = status == _abi.FA_INTERRUPTED and seconds > 0 and not stopped
    if not out_of_time:
        check(status)
    last = choice(asked, device=ctx)
    prices = [None if c.chosen is None else c.chosen.seconds for c in (last, first)]
    return Tuning(last.config, prices[0], first.config, prices[1], len(tried - {b""}), not out_of_time)


@overload
def explain(problem: Optional[Problem] = None, /, *, device: Union[None, str, Context] = None, **fields: Unpack[Fields]) -> str: ...
@overload
def explain(q: T, k: T, v: T, /, *, device: Union[None, str, Context] = None, **options: Unpack[CallOptions]) -> str: ...
def explain(*what: Any, device: Union[None, str, Context] = None, **options: Any) -> str:
    """Which kernel runs, where it comes from and why, as lines of text; compiles nothing.

    explain(problem), explain(dtype="bfloat16", d=128, ...): of a problem. explain(q, k, v, causal=True, ...): of a call of
    fagen.attention with these tensors, where alignment and strides count, too; the options are causal, window, diagonal, scale,
    out_dtype, tf32."""
    if len(what) == 3:
        plan = _plan_of(*what, device=device, **options)
        return _text(plan.context, None, plan.reference)
    if len(what) > 1:
        raise InvalidArgument(f"{len(what)} positional arguments; accepted: a fagen.Problem, or q, k and v")
    p = problem_of(what[0] if what else None, cast(Fields, options)).abi()
    return _text(default_context(device), C.addressof(p), None)


def problem_text(q: T, k: T, v: T, *, device: Union[None, str, Context] = None, **options: Unpack[CallOptions]) -> str:
    """The problem that a call has, in the words of the command, such as "bf16,d=128,mask=causal,...": for `fagen tune --problem`."""
    plan = _plan_of(q, k, v, device=device, **options)
    out = _abi.Problem(size=C.sizeof(_abi.Problem))
    check(lib.fa_problem_of(plan.reference, C.byref(out)))
    names = {_abi.FA_F16: "fp16", _abi.FA_BF16: "bf16", _abi.FA_TF32: "tf32", _abi.FA_F32: "fp32", _abi.FA_E4M3: "e4m3",
             _abi.FA_E5M2: "e5m2"}
    masks = {_abi.FA_MASK_NONE: "none", _abi.FA_MASK_CAUSAL: "causal", _abi.FA_MASK_WINDOW: "window"}
    words = [names[out.dtype], f"d={out.d}", f"dv={out.dv}", f"mask={masks[out.mask]}", f"o={names[out.o_dtype]}", f"align={out.align}"]
    words += [f"{name}={getattr(out, name)}" for name in ("b", "hq", "hkv", "sq", "sk", "window") if getattr(out, name)]
    return ",".join(words)


def _plan_of(q: Any, k: Any, v: Any, *, causal: bool = False, window: Window = None, diagonal: Union[str, int] = "bottom-right",
             scale: Any = None, out_dtype: Any = None, tf32: bool = False,
             device: Union[None, str, Context] = None) -> Any:
    inputs = view("q", q), view("k", k), view("v", v)
    ctx = context_of(inputs[0], device)
    shape = (*inputs[0].shape[:3], inputs[2].shape[-1])
    out = fresh(inputs[0], shape, inputs[0].dtype if out_dtype is None else dtype_name(out_dtype))
    plan = dense_plan(ctx, *inputs, out, None, mask_of(causal, window, diagonal), scale_of(scale), tf32)
    if not ctx.simulated:
        base = 1 << 40  # out: an address of its own, as aligned as a new tensor's
        for w, at in ((Q, inputs[0].address), (K, inputs[1].address), (V, inputs[2].address), (O, base), (LSE, 0)):
            plan.words[w] = at
    return plan


def _text(ctx: Context, problem: Optional[int], args: Optional[int]) -> str:
    n = C.c_size_t()
    check(lib.fa_explain_size(ctx.handle, problem, args, C.byref(n)))
    text = C.create_string_buffer(n.value + 1)
    check(lib.fa_explain(ctx.handle, problem, args, text, n.value))
    return text.value.decode(errors="replace")


__all__ = ["NoFit", "Problem", "Support", "Tuning", "Unsupported", "explain", "prepare", "problem_text", "supported", "tune"]
