"""fagen.append: new rows of K and V into a cache, rotated and quantized, and rows of Q rotated beside them, in one launch."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple, Union

from . import _abi, _stage
from . import _shapes as shapes
from ._attention import context_of, stream_of
from ._formats import FORMATS, format_of, scales_of
from ._plan import Plan, Plans, word
from ._stage import Staged
from ._view import View, empty_like, is_torch, torch_module, view
from ._context import Context
from .errors import invalid

STYLES = {"halves": _abi.FA_ROTARY_HALVES, "pairs": _abi.FA_ROTARY_PAIRS}
TENSORS = ("new_k", "new_v", "q", "q_out", "k", "v")
LISTS = ("slots", "page_table", "seqlens_k", "positions", "cos_sin", "skipped")
SCALES = ("k_scale", "v_scale", "k_scale_out", "v_scale_out")
WRITTEN = ("k", "v", "q_out", "skipped", "k_scale_out", "v_scale_out")
SET = 256  # an address, where only whether there is one matters
WORDS = {**{name: word(f"{name}.ptr") for name in TENSORS}, **{name: word(name) for name in LISTS},
         **{name: getattr(_abi.Args, name).offset // 8 for name in SCALES}}
_plans = Plans()


def append(k: Any, v: Any, k_cache: Any, v_cache: Any, *, slots: Any = None, page_table: Any = None, seqlens_k: Any = None, q: Any = None,
           q_out: Any = None, cos_sin: Any = None, rotary_dim: Optional[int] = None, rotary_style: str = "halves", positions: Any = None,
           hadamard_k: bool = False, hadamard_v: bool = False, cache_format: Optional[str] = None, v_format: Optional[str] = None,
           k_scale: Any = None, v_scale: Any = None, k_scale_out: Any = None, v_scale_out: Any = None, skipped: Any = None,
           stream: Optional[int] = None, device: Union[None, str, Context] = None) -> Any:
    """Stores k and v in a cache, in place, and returns q_out, or None without q. docs/serving.md has all of it to the bit.

    k [b, s, hkv, d], v [b, s, hkv, dv], q [b, s, hq, d]: the new rows, of float16, bfloat16 or float32.
    k_cache, v_cache: [b, sk, hkv, d]; with slots or page_table [pages, page_size, hkv, d]. float16, bfloat16 or float32; float8_e4m3fn,
        float8_e5m2 or int8, of PyTorch; or with cache_format uint8, whose last dimension are the bytes of a row.
    slots: int64 [b, s]: the token of all pages that each row becomes; negative, or beyond the cache: skipped. Of two rows for one slot the
        later stays.
    page_table int32 [b, n] with seqlens_k int32 [b]; or seqlens_k alone: lengths with the new rows. Without either sk is all lengths.
    cos_sin [positions, rotary_dim]: cosines, then sines: k and q are rotated. rotary_style: "halves" or "pairs". positions: int32 or int64
        [b, s]; None: length - s + i.
    hadamard_k, hadamard_v: rows of k and q, of v are transformed.
    cache_format: "e4m3", "e5m2", "s8", or of blocks "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl", "nvfp4"; v_format: of v_cache, where
        it is another one. k_scale, v_scale: float32 [1], [hkv] or [b, hkv], or with the shape of the cache but for its last dimension, of
        each token: what rows are divided by; k_scale_out, v_scale_out: of each token, where scales are found instead.
    skipped: int64 [1], to which the rows that were skipped are added.
    Raises as fagen.attention does.
    """
    if is_torch(k) and torch_module().compiler.is_compiling():
        from ._torch_ops import untraced
        return untraced.append(k, v, k_cache, v_cache, slots=slots, page_table=page_table, seqlens_k=seqlens_k, q=q, q_out=q_out,
                               cos_sin=cos_sin, rotary_dim=rotary_dim, rotary_style=rotary_style, positions=positions,
                               hadamard_k=hadamard_k, hadamard_v=hadamard_v, cache_format=cache_format, v_format=v_format,
                               k_scale=k_scale, v_scale=v_scale, k_scale_out=k_scale_out, v_scale_out=v_scale_out, skipped=skipped,
                               stream=stream, device=device)
    given = {"new_k": k, "new_v": v, "k": k_cache, "v": v_cache, "q": q, "slots": slots, "page_table": page_table, "seqlens_k": seqlens_k,
             "cos_sin": cos_sin, "positions": positions, "k_scale": k_scale, "v_scale": v_scale, "k_scale_out": k_scale_out,
             "v_scale_out": v_scale_out, "skipped": skipped}
    if q is not None and q_out is None:
        q_out = empty_like(q, tuple(q.shape), view("q", q, stream).dtype, "q_out")
    given["q_out"] = q_out
    views = {name: view(NAMES.get(name, name), x, stream) for name, x in given.items() if x is not None}
    at, ctx = stream_of(list(views.values()), stream), context_of(views["new_k"], device)
    options = (rotary_dim, rotary_style, hadamard_k, hadamard_v, cache_format, v_format)
    key = (ctx, options, tuple((name, x[1:6]) for name, x in views.items()))
    found: Optional[Plan] = _plans.find(key)
    if found is None:
        found = _plans.keep(key, plan(ctx, views, *options))
    _stage.put(found, k, [Staged(WORDS[name], x, name in WRITTEN) for name, x in views.items()], stream, at)
    return q_out


NAMES = {"new_k": "k", "new_v": "v", "k": "k_cache", "v": "v_cache"}


def plan(ctx: Context, views: Dict[str, View], rotary_dim: Optional[int], rotary_style: str, hadamard_k: bool, hadamard_v: bool,
         cache_format: Optional[str], v_format: Optional[str]) -> Plan:
    """The plan of a call. Raises InvalidArgument, Unsupported."""
    k, v = views["new_k"], views["new_v"]
    shapes.rank("k", k, 4, "[b, s, hkv, d]")
    b, s, hkv, d = k.shape
    shapes.rank("v", v, 4, "[b, s, hkv, dv]")
    shapes.equal("v", v, (b, s, hkv, v.shape[3]), "[b, s, hkv, dv] with the b, s and hkv of k")
    shapes.same("v", v, "dtype", k.dtype, "k")
    for name, x in views.items():
        shapes.same(NAMES.get(name, name), x, "device", k.device, "k")
    shapes.place(ctx, k.device, "k")
    args = _abi.Args(op=_abi.FA_APPEND, dtype=shapes.dtype_of("k", k.dtype), d=d, dv=v.shape[3], b=b, hq=hkv, hkv=hkv, sq=s)
    numbers = of_cache(args, views, cache_format, v_format)
    if "q" in views:
        q, out = views["q"], views["q_out"]
        shapes.rank("q", q, 4, "[b, s, hq, d]")
        shapes.equal("q", q, (b, s, q.shape[2], d), "[b, s, hq, d] with the b, s and d of k")
        shapes.same("q", q, "dtype", k.dtype, "k")
        shapes.equal("q_out", out, q.shape, "that of q")
        shapes.same("q_out", out, "dtype", q.dtype, "q")
        args.hq = q.shape[2]
    of_rotation(args, views, rotary_dim, rotary_style)
    shapes.flag("hadamard_k", hadamard_k)
    shapes.flag("hadamard_v", hadamard_v)
    args.append_flags = _abi.FA_HADAMARD_K * hadamard_k | _abi.FA_HADAMARD_V * hadamard_v
    for name in TENSORS:
        if name in views:
            x = numbers.get(name, views[name])
            if name in WRITTEN:
                shapes.writable(NAMES.get(name, name), x)
            own, _ = shapes.tensor(NAMES.get(name, name), x, x.shape, x.strides, name not in WRITTEN)
            setattr(args, name, own)
            args.flags |= _abi.FA_BROADCAST if name not in WRITTEN and any(st == 0 < n - 1 for n, st in zip(x.shape, x.strides)) else 0
    for name in views:
        words = (_abi.C.c_uint64 * (_abi.C.sizeof(_abi.Args) // 8)).from_buffer(args)
        words[WORDS[name]] = SET
    return Plan(ctx, args)


def packed_list(name: str, x: View, dtypes: Tuple[str, ...], shape: Tuple[int, ...], layout: str) -> None:
    """Raises where a list is not packed, or another one."""
    if x.dtype not in dtypes:
        raise invalid(f"{name}.dtype", x.dtype, " or ".join(dtypes))
    shapes.equal(name, x, shape, layout)
    step = 1
    for n, st in zip(reversed(x.shape), reversed(x.strides)):
        if n > 1 and st != step:
            raise invalid(f"{name}.strides", x.strides, "a packed one")
        step *= max(n, 1)


def of_cache(args: Any, views: Dict[str, View], cache_format: Optional[str], v_format: Optional[str]) -> Dict[str, View]:
    """Where rows go, and what they become; k and v as if they had the numbers, strides in blocks."""
    paged = "slots" in views or "page_table" in views
    layout = "[pages, page_size, hkv, d]" if paged else "[b, sk, hkv, d]"
    numbers: Dict[str, View] = {}
    for name, word, option, width in (("k", cache_format, "cache_format", args.d), ("v", v_format, "v_format", args.dv)):
        x = views[name]
        word = cache_format if word is None and x.dtype == "uint8" else word
        shapes.rank(NAMES[name], x, 4, layout)
        if word is not None and word not in FORMATS:
            raise invalid(option, repr(word), f"None, {', '.join(FORMATS)}")
        if word is None and x.dtype in shapes.FLOATS:
            own, numbers[name] = shapes.FLOATS[x.dtype], x
        else:
            if word and width % FORMATS[word][1]:
                raise invalid(f"{name}.shape[-1]", width, f"a multiple of {FORMATS[word][1]} with {word}")
            word, numbers[name] = format_of(NAMES[name], x, word, option)
            own = FORMATS[word][0]
        setattr(args, f"{'kv' if name == 'k' else 'v'}_dtype", own)
        first = numbers["k"].shape[:1] if paged else (args.b,)
        shapes.equal(NAMES[name], x, (*first, views["k"].shape[1], args.hkv, bytes_of(width, word)), layout)
    k = numbers["k"]
    args.sk = k.shape[1]
    if paged:
        args.pages, args.page_size = k.shape[:2]
        args.sk = k.shape[0] * k.shape[1]
    if "slots" in views:
        packed_list("slots", views["slots"], ("int64",), (args.b, args.sq), "[b, s]")
    if "page_table" in views:
        table = views["page_table"]
        shapes.rank("page_table", table, 2, "[b, n]")
        rows = table._replace(strides=(table.shape[1], table.strides[1]))  # which may be further apart
        packed_list("page_table", rows, ("int32",), (args.b, table.shape[1]), "[b, n]")
        args.page_table_stride = table.strides[0] if table.shape[0] > 1 else max(table.shape[1], 1)
        args.flags |= _abi.FA_BROADCAST if table.shape[0] > 1 and table.strides[0] == 0 else 0
        args.sk = table.shape[1] * k.shape[1]
    if "seqlens_k" in views:
        packed_list("seqlens_k", views["seqlens_k"], ("int32",), (args.b,), "[b]")
    if "skipped" in views:
        packed_list("skipped", views["skipped"], ("int64", "uint64"), (1,), "[1]")
    for name in SCALES:
        if name in views:
            if name.endswith("_out"):
                shapes.equal(name, views[name], k.shape[:3], "that of the cache but for its last dimension")
            setattr(args, name, scales_of(name, views[name], numbers[name[0]], args.b, args.hkv, views["new_k"], "k"))
    return numbers


def bytes_of(width: int, word: Optional[str]) -> int:
    """The last dimension of rows of so many elements."""
    _, block, size = FORMATS[word] if word else (0, 1, 1)
    return width // block * size


def of_rotation(args: Any, views: Dict[str, View], rotary_dim: Optional[int], rotary_style: str) -> None:
    if rotary_style not in STYLES:
        raise invalid("rotary_style", repr(rotary_style), ", ".join(STYLES))
    if "cos_sin" not in views:
        if rotary_dim is not None or "positions" in views:
            raise invalid("cos_sin", None, "cosines and sines beside rotary_dim or positions")
        return
    table = views["cos_sin"]
    shapes.rank("cos_sin", table, 2, "[positions, rotary_dim]")
    packed_list("cos_sin", table, tuple(shapes.FLOATS), table.shape, "[positions, rotary_dim]")
    if rotary_dim is not None and rotary_dim != table.shape[1]:
        raise invalid("rotary_dim", rotary_dim, f"{table.shape[1]}, the columns of cos_sin")
    args.cos_sin_dtype, args.rotary_positions, args.rotary_dim = shapes.dtype_of("cos_sin", table.dtype), *table.shape
    args.rotary_style = STYLES[rotary_style]
    if "positions" in views:
        packed_list("positions", views["positions"], ("int32", "int64"), (args.b, args.sq), "[b, s]")
        args.position_bytes = 4 if views["positions"].dtype == "int32" else 8
