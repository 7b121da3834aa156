"""fagen as an attention implementation of Hugging Face transformers (4.53 and later).

    import fagen.integrations.transformers as of_transformers
    of_transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="fagen")

Groups of query heads share their keys without copies. Padding on the left or on the right becomes lengths, read on the device. Packed
sequences are those of cu_seq_lens_q and cu_seq_lens_k, or of position_ids that begin at 0 again, with an empty cache or none. Any other
mask is a matrix of truths, as is one of 4 dimensions that the caller gives, or numbers that are added. softcap (Gemma 2), s_aux (the sinks
of gpt-oss) and position_bias (T5) are score programs; where gradients are wanted they raise fagen.Unsupported under torch.compile and
autocast. Keywords that are not known raise it, too. Gradients are autograd's. Dropout's seed is drawn from PyTorch's generator.
Any cache of transformers serves; fagen.integrations.transformers_cache has one of few bits.
"""
from __future__ import annotations

import sys
from typing import Callable, Dict, List, MutableMapping, Optional, Tuple, TypedDict, Union

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from .. import attention, varlen_attention
from .._keywords import of_keywords
from .._score import Score
from .._shapes import unused
from ..errors import InvalidArgument, Unsupported

NAME = "fagen"
# Masks that causal, window and lengths say: the functions of transformers.masking_utils that make them.
PLAIN = ("causal_mask_function", "bidirectional_mask_function", "sliding_window_overlay.<locals>.inner_mask",
         "sliding_window_bidirectional_overlay.<locals>.inner_mask")
AND = "and_masks.<locals>"
PACKED = "packed_sequence_mask_function.<locals>.inner_mask"
REMAPPED = "remap_positions_for_packed_sequence.<locals>.inner_mask"  # positions counted within each sequence, as fagen counts them
# Keywords of attention that change no result here; a value of None changes none either.
HARMLESS = {"position_ids", "cache_position", "use_cache", "past_key_values", "past_key_value", "position_embeddings",
            "output_hidden_states", "output_router_logits", "return_dict", "num_items_in_batch", "logits_to_keep", "target_dtype",
            "layer_idx", "labels",
            "token_type_ids", "mm_token_type_ids", "implementation", "attn_implementation"}
FEW = 16  # queries, up to which keys of left-padded sequences are read row by row instead of being copied


Function = Callable[..., object]  # of a mask
Number = Union[int, torch.Tensor]


class Options(TypedDict, total=False):
    """Keywords of fagen.attention and its like."""
    causal: bool
    window: Optional[Tuple[int, int]]
    scale: Optional[float]
    dropout_p: float
    deterministic: bool
    out: Optional[torch.Tensor]
    score: Score
    # Of keys and values of few bits.
    cache_format: str
    v_format: str
    k_scale: torch.Tensor
    v_scale: torch.Tensor


def register(name: str = NAME) -> str:
    """Makes `attn_implementation=name` known to transformers. Idempotent. Gives the name back. Raises ImportError without transformers."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, attention_mask)
    return name


def attention_mask(batch_size: int, q_length: int, kv_length: int, q_offset: Number = 0, kv_offset: Number = 0,
                   mask_function: Optional[Function] = None, attention_mask: Optional[torch.Tensor] = None,
                   device: Union[None, str, torch.device] = None, use_vmap: bool = False, **others: object) -> Optional[torch.Tensor]:
    """What the layers get as their mask: None where causal or window says it all, else int32 [b, 1, 1, 3] with, for each sequence, the
    first key, the number of keys and the number of query rows; without the first where every sequence begins at row 0. Of packed rows int32
    [1, 1, 2, n + 1], twice the first rows of the sequences. Of any other mask, and of holes, truths [b, 1, q_length, kv_length]."""
    def matrix(padding: Optional[torch.Tensor]) -> torch.Tensor:
        from transformers.masking_utils import sdpa_mask
        found: torch.Tensor = sdpa_mask(batch_size=batch_size, q_length=q_length, kv_length=kv_length, q_offset=q_offset,
                                        kv_offset=kv_offset, mask_function=mask_function, attention_mask=padding,
                                        allow_is_causal_skip=False, use_vmap=use_vmap, device=device)
        return found
    given = attention_mask
    compiling = torch.compiler.is_compiling()
    if compiling and name_of(mask_function).startswith(AND):
        if not plain_as_told(q_length, use_vmap, others):
            return matrix(given)
    else:
        rows = packed_rows(mask_function)
        if rows is not None:
            return torch.stack((rows, rows))[None, None]
        if not plain(mask_function):
            return matrix(given)
    both_ways = name_of(mask_function) == "bidirectional_mask_function"  # queries need not be the keys' own: of a decoder's encoder
    end = kv_length if both_ways else q_offset + q_length - kv_offset  # the row of the last query among the keys
    fixed = not isinstance(end, torch.Tensor) and not isinstance(end, torch.SymInt) and end == kv_length
    if attention_mask is not None:
        if isinstance(kv_offset, torch.Tensor) or kv_offset or attention_mask.shape[-1] > kv_length:
            attention_mask = attention_mask[:, -kv_length:]
        if not compiling and bool(attention_mask.all()) and attention_mask.shape[1] >= kv_length:
            attention_mask = None
    if attention_mask is None and fixed:
        return None
    if attention_mask is None:
        rows = torch.full((batch_size,), q_length, dtype=torch.int32, device=device)
        keys = torch.zeros_like(rows) + end
        return torch.stack((keys.to(torch.int32), rows), -1)[:, None, None]
    seen = attention_mask.to(torch.bool)
    width = seen.shape[1]
    place = torch.arange(width, device=seen.device)
    seen = seen & (place < end)
    keys = seen.sum(-1)
    start = torch.where(keys > 0, seen.to(torch.int32).argmax(-1), 0)
    if not compiling and bool((torch.where(seen, place, -1).amax(-1) + 1 - start > keys).any()):
        return matrix(given)
    behind = torch.where(keys > 0, end - start - keys, 0)  # padding on the right: rows that are no queries either
    behind = torch.zeros_like(behind) if both_ways else behind
    rows = (q_length - behind).clamp(min=0)
    return torch.stack((start, keys, rows), -1).to(torch.int32)[:, None, None]


def plain(mask_function: Optional[Function]) -> bool:
    """Whether a mask is no more than causal, window and padding."""
    return all(name in PLAIN for name in leaves(mask_function))


def plain_as_told(q_length: Number, use_vmap: bool, others: Dict[str, object]) -> bool:
    """The same of functions that are combined, in a program that is traced, where no closure is looked into: by what transformers says
    beside the function. One that may be of packed rows, as without a cache and a mask of the caller's, is none: its matrix hides them."""
    may_be_packed = others.get("allow_is_causal_skip") is False and q_length != 1
    chunks = getattr(others.get("config"), "attention_chunk_size", None) is not None
    return not (use_vmap or may_be_packed or chunks) and others.get("local_size") is not None


def packed_rows(mask_function: Optional[Function]) -> Optional[torch.Tensor]:
    """cu_seqlens of a causal or bidirectional mask of packed rows; None of any other. Raises Unsupported while a program is traced."""
    if torch.compiler.is_compiling() and name_of(mask_function) != REMAPPED:
        return None
    functions = functions_of(mask_function, (AND, REMAPPED))
    names = [name_of(f) for f in functions]
    if names.count(PACKED) != 1 or not set(names) <= {PACKED, *PLAIN}:
        return None
    if torch.compiler.is_compiling():
        raise Unsupported("packed position_ids are not looked for in a program that is traced; accepted there: cu_seq_lens_q, "
                          "cu_seq_lens_k, max_length_q and max_length_k, with a cache")
    held: torch.Tensor = getattr(functions[names.index(PACKED)], "__closure__")[0].cell_contents  # [b, s], a number for each sequence
    return first_rows(torch.cat((torch.ones_like(held[:, :1], dtype=torch.bool), held[:, 1:] != held[:, :-1]), 1))


def first_rows(begins: torch.Tensor) -> torch.Tensor:
    """cu_seqlens, int32 [n + 1], of [b, s], True where a sequence begins."""
    rows = begins.flatten().nonzero()[:, 0]
    return torch.cat((rows, rows.new_tensor([begins.numel()]))).to(torch.int32)


# Of position_ids, which all layers are given.
_packings: MutableMapping[torch.Tensor, Tuple[int, Optional[torch.Tensor]]] = WeakTensorKeyDictionary()


def packing(position_ids: object) -> Optional[torch.Tensor]:
    """cu_seqlens of rows whose positions begin at 0 again; None where they do not. Looks at the device once for each tensor; a program that
    is traced asserts on the device that there is none."""
    if not isinstance(position_ids, torch.Tensor) or position_ids.dim() != 2 or position_ids.shape[1] < 2:
        return None
    again = position_ids[:, 1:] == 0
    if torch.compiler.is_compiling() or position_ids.is_cuda and torch.cuda.is_current_stream_capturing():
        torch._assert_async(~again.any(), "fagen: packed position_ids in a program that was traced or captured: pass cu_seq_lens_q")
        return None
    if position_ids not in _packings:
        begins = torch.cat((torch.ones_like(again[:, :1]), again), 1)
        _packings[position_ids] = (position_ids._version, first_rows(begins) if bool(again.any()) else None)
    version, found = _packings[position_ids]
    if version != position_ids._version:
        del _packings[position_ids]
        return packing(position_ids)
    return found


def functions_of(function: Optional[Function], around: Tuple[str, ...] = (AND,)) -> List[Function]:
    """The functions that a mask is combined of. around: the names of functions that combine, or wrap, others."""
    if function is None:
        return []
    if not name_of(function).startswith(around):
        return [function]
    inner: List[object] = []
    for cell in getattr(function, "__closure__", None) or ():
        held = cell.cell_contents
        inner += held if isinstance(held, (tuple, list)) else [held]
    return [leaf for f in inner if callable(f) for leaf in functions_of(f, around)]


def leaves(function: Optional[Function]) -> List[str]:
    """The names of those functions."""
    return [name_of(f) for f in functions_of(function)]


def name_of(function: Optional[Function]) -> str:
    """As __qualname__ has it, which Dynamo of PyTorch 2.11 does not trace."""
    code = getattr(function, "__code__", None)
    return getattr(function, "__qualname__", "") if code is None or sys.version_info < (3, 11) else code.co_qualname


def attention_forward(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                      attention_mask: Optional[torch.Tensor], dropout: float = 0.0, scaling: Optional[float] = None,
                      sliding_window: Optional[int] = None, softcap: Optional[float] = None, is_causal: Optional[bool] = None,
                      **others: object) -> Tuple[torch.Tensor, None]:
    """query [b, hq, sq, d], key and value [b, hkv, sk, d]; (out [b, sq, hq, dv], None)."""
    bias, sinks = others.pop("position_bias", None), others.pop("s_aux", None)
    sinks = others.pop("sinks", None) if sinks is None else sinks
    unused({"output_attentions": others.get("output_attentions") or False}, [False], "no matrix of probabilities is made")
    lengths = {name: others.pop(name, None) for name in LENGTHS}
    deterministic = bool(others.pop("deterministic", None) or False)
    unused({name: x for name, x in others.items() if name not in HARMLESS and name != "output_attentions"}, [None],
           "it is not known whether it changes the result")
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    window = None if sliding_window is None else (sliding_window - 1, 0 if causal else sliding_window - 1)
    options: Options = {"causal": causal, "window": window, "scale": scaling, "dropout_p": float(dropout), "deterministic": deterministic}
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    codes = getattr(key, "fagen_codes", None)  # of a FewBitsCache
    if codes is not None:
        options.update(codes.options())
    whole = attention_mask is not None and attention_mask.dim() == 4 and attention_mask.dtype != torch.int32
    if whole or bias is not None:
        if any(x is not None for x in lengths.values()):
            raise Unsupported(f"{'attention_mask' if whole else 'position_bias'} is set beside cu_seq_lens_q; accepted: one of them")
        return by_matrix(q, k, v, attention_mask, bias, softcap, sinks, options), None
    if softcap is not None or sinks is not None:
        options["score"] = of_keywords(softcap, None, (), sinks, causal)
    if any(x is not None for x in lengths.values()):
        return of_lengths(q, k, v, attention_mask, lengths, options), None
    if attention_mask is not None and attention_mask.dtype == torch.int32 and attention_mask.shape[:3] == (1, 1, 2):
        return of_rows(q, k, v, attention_mask[0, 0, 0], options), None
    if attention_mask is None or attention_mask.dtype == torch.int32 and attention_mask.shape[-1] == 2:
        rows = packing(others.get("position_ids"))
        if rows is not None and (attention_mask is not None or q.shape[1] != k.shape[1]):
            raise Unsupported(f"position_ids begin at 0 again, {q.shape[1]} rows, beside a cache of {k.shape[1]}; accepted: packed rows "
                              "that are all that a growing cache holds, or cu_seq_lens_q and cu_seq_lens_k")
        if rows is not None:
            return of_rows(q, k, v, rows, options), None
    if attention_mask is None:
        return attention(q, k, v, **options), None
    if attention_mask.dim() != 4 or attention_mask.dtype != torch.int32 or attention_mask.shape[1:3] != (1, 1):
        raise InvalidArgument(f"attention_mask is {attention_mask.dtype} {tuple(attention_mask.shape)}; accepted: None, or what the mask "
                              f"function of \"{NAME}\" makes of a 2-dimensional mask")
    words = attention_mask[:, 0, 0].unbind(-1)
    rows, keys = words[-1].contiguous(), words[-2].contiguous()
    # Rows of padding are not written. A call that writes to `out` has no gradient, no dropout, and is not traced with a program.
    learns = dropout > 0 or torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    fresh = learns or "score" in options
    options["out"] = None if fresh else q.new_zeros((*q.shape[:3], v.shape[3] if codes is None else codes.width))
    if len(words) == 2:
        out = varlen_attention(q, k, v, seqlens_q=rows, seqlens_k=keys, **options)
    else:
        out = from_the_left(q, k, v, words[0], keys, rows, learns, options)
    if fresh:
        place = torch.arange(q.shape[1], device=q.device)
        out = torch.where((place < rows[:, None])[:, :, None, None], out, 0)
    return out, None


def by_matrix(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Optional[torch.Tensor], bias: object, softcap: Optional[float],
              sinks: object, options: Options) -> torch.Tensor:
    """With a mask of 4 dimensions, of truths or added to scores, which says all that is hidden; or with a bias for each query and key,
    beside which lengths are a mask, too."""
    b, sq, sk, causal = q.shape[0], q.shape[1], k.shape[1], options["causal"]
    if mask is not None and mask.dtype == torch.int32:
        if mask.shape[0] != b or mask.shape[1:3] != (1, 1):
            raise Unsupported("position_bias is set beside packed rows; accepted: one of them")
        mask = truths(mask[:, 0, 0], sq, sk, causal, options["window"])
    if mask is not None:
        if mask.dtype not in (torch.bool, torch.float32, torch.float16, torch.bfloat16):
            raise Unsupported(f"attention_mask is {mask.dtype} {tuple(mask.shape)}; accepted: of 4 dimensions truths, which are seen, or "
                              "float32, float16 and bfloat16, which are added")
        causal, options["causal"], options["window"] = False, False, None
    masks = [(name, x[..., :sk]) for name, x in (("attention_mask", mask), ("position_bias", bias)) if isinstance(x, torch.Tensor)]
    for name, x in masks:
        if len(x.shape) != 4 or any(m not in (n, 1) for m, n in zip(x.shape, (b, q.shape[2], sq, sk))):
            raise InvalidArgument(f"{name}.shape is {tuple(x.shape)}; accepted: {(b, q.shape[2], sq, sk)}, 1 is for all")
    options["score"] = of_keywords(softcap, None, masks, sinks, causal)
    return attention(q, k, v, **options)


def truths(words: torch.Tensor, sq: int, sk: int, causal: bool, window: Optional[Tuple[int, int]]) -> torch.Tensor:
    """What the lengths of attention_mask() show, [b, 1, sq, sk]."""
    rows, keys = (x[:, None, None, None] for x in (words[:, -1], words[:, -2]))
    start = words[:, 0, None, None, None] if words.shape[1] == 3 else torch.zeros_like(keys)
    i = torch.arange(sq, device=words.device)[:, None] + (keys - rows)  # the key of a query's own
    j = torch.arange(sk, device=words.device) - start
    seen = (j >= 0) & (j < keys) & (i < keys)
    left, right = (-1, 0 if causal else -1) if window is None else window
    seen = seen & (j <= i + right) if right >= 0 else seen
    return seen & (j >= i - left) if left >= 0 else seen


LENGTHS = ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k")


def of_rows(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: torch.Tensor, options: Options) -> torch.Tensor:
    """Packed rows of [b, s, h, d], whose keys are the same rows."""
    return packed(q, k, v, (rows, rows, q.shape[0] * q.shape[1], q.shape[0] * q.shape[1]), options)


def of_lengths(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, attention_mask: Optional[torch.Tensor], given: Dict[str, object],
               options: Options) -> torch.Tensor:
    """Packed rows by what the caller says of them. Raises InvalidArgument for a part of it, or beside a mask of padding."""
    missing = [name for name, x in given.items() if x is None]
    if missing:
        raise InvalidArgument(f"{' and '.join(missing)} is None; accepted: all of {', '.join(LENGTHS)}, or none")
    if attention_mask is not None and attention_mask.shape[:3] != (1, 1, 2):
        raise InvalidArgument("attention_mask is set beside cu_seq_lens_q; accepted: one of them")
    return packed(q, k, v, tuple(given[name] for name in LENGTHS), options)  # type: ignore[arg-type]


def packed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths: Tuple[torch.Tensor, torch.Tensor, Number, Number],
           options: Options) -> torch.Tensor:
    b, s = q.shape[:2]
    cu_q, cu_k, most_q, most_k = lengths
    out = varlen_attention(*(x.flatten(0, 1) for x in (q, k, v)), cu_seqlens_q=cu_q.to(torch.int32),
                                  cu_seqlens_k=cu_k.to(torch.int32), max_seqlen_q=most_q, max_seqlen_k=most_k, **options)
    return out.view(b, s, *out.shape[1:])


def from_the_left(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, start: torch.Tensor, keys: torch.Tensor, rows: torch.Tensor,
                  learns: bool, options: Options) -> torch.Tensor:
    """Sequences whose keys begin at a row of their own: as packed rows with gaps, or, of few queries that want no gradient, as pages of
    one row."""
    b, s, heads, d = k.shape
    few = q.shape[1] <= FEW and not learns
    if few and k.transpose(1, 2).is_contiguous() and v.transpose(1, 2).is_contiguous() and heads > 1 and d == v.shape[3]:
        pages = (b - 1) * heads * s + s  # head by head in memory: a row of a sequence is `heads * s` rows after that of the one before
        one, two = (x.as_strided((pages, 1, heads, d), (d, d, s * d, 1)) for x in (k, v))
        first = torch.arange(b, dtype=torch.int32, device=q.device) * (heads * s) + start
        table = first[:, None] + torch.arange(s, dtype=torch.int32, device=q.device)
        return varlen_attention(q, one, two, seqlens_q=rows, seqlens_k=keys, page_table=table, max_seqlen_k=s, **options)
    starts = torch.arange(b + 1, dtype=torch.int32, device=q.device) * s
    starts[:b] += start
    k, v = (x.contiguous().flatten(0, 1) for x in (k, v))
    options = options.copy()
    if "k_scale" in options:
        options["k_scale"] = options["k_scale"].flatten(0, 1)
    if "v_scale" in options:
        options["v_scale"] = options["v_scale"].flatten(0, 1)
    return varlen_attention(q, k, v, seqlens_q=rows, cu_seqlens_k=starts, seqlens_k=keys, max_seqlen_k=s, **options)
