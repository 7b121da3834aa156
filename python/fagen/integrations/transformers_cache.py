"""A cache of few bits for Hugging Face transformers, which fagen's attention reads as it lies.

    from fagen.integrations.transformers_cache import FewBitsCache
    out = model.generate(ids, past_key_values=FewBitsCache(model.config, "q8_0"))           # grows
    cache = FewBitsCache(model.config, "e4m3", max_cache_len=4096)                          # one size, counted on the device

The model's attention is that of fagen.integrations.transformers. New keys and values become codes in one launch, fagen.append, and no copy
in 16 bits is made of them again. The first keys of an empty cache are also handed to attention as they are, as transformers' own
QuantizedCache does. transformers' StaticCache, DynamicCache and QuantizedCache need nothing of this: they hand out 16 bits.
"""
from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from .. import append
from .._formats import FORMATS, TYPES
from ..errors import InvalidArgument, Unsupported, invalid

CODES = "fagen_codes"  # the attribute of the keys that update() gives
STEP = 256  # keys that a cache grows by at least
OWN_TYPES = {word: getattr(torch, name) for name, word in TYPES.items()}  # of formats whose codes are elements of PyTorch


class Codes(NamedTuple):
    """What keys and values are, as keywords of fagen.attention."""
    cache_format: str
    v_format: str
    k_scale: Optional[torch.Tensor]  # [b, keys, hkv]
    v_scale: Optional[torch.Tensor]
    width: int  # of values, elements

    def options(self) -> Dict[str, Any]:
        """Without formats that types say."""
        given = {"k_scale": self.k_scale, "v_scale": self.v_scale,
                 **{name: word for name, word in (("cache_format", self.cache_format), ("v_format", self.v_format))
                    if word not in OWN_TYPES}}
        return {name: x for name, x in given.items() if x is not None}


class FewBitsLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """Keys and values of one layer: [b, keys, hkv, bytes] in memory, [b, hkv, keys, bytes] to the model."""
    keys: Any
    values: Any
    is_compileable = False
    is_croppable = True
    is_sliding = False  # windows are masks

    def __init__(self, key_format: str, value_format: str, by_token: Tuple[bool, bool], max_cache_len: Optional[int] = None,
                 **_: object) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.formats, self.by_token, self.max_cache_len = (key_format, value_format), by_token, max_cache_len
        self.scales: List[Any] = [None, None]  # tensors, where tokens have them
        # Keys that there are: a tensor where the size is one, for graphs.
        self.cumulative_length: Any = 0 if max_cache_len is None else torch.tensor(0, dtype=torch.int32)
        self.is_empty = True  # as the host knows it
        self.capacity = max_cache_len or 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.device, self.batch_size = key_states.device, key_states.shape[0]
        self.widths = key_states.shape[3], value_states.shape[3]
        self.heads = key_states.shape[1]
        for name, width, word in zip("kv", self.widths, self.formats):
            if width % FORMATS[word][1]:
                raise invalid(f"{name}.shape[-1]", width, f"a multiple of {FORMATS[word][1]} with {word}")
        if isinstance(self.cumulative_length, torch.Tensor):
            self.cumulative_length = self.cumulative_length.to(self.device)
        self.keys = self.values = None
        self.is_initialized = True
        self.make_room(self.capacity)

    def make_room(self, capacity: int) -> None:
        """Buffers of so many keys, with those that there are."""
        b, hkv, found = self.batch_size, self.heads, []
        for word, width, old in zip(self.formats, self.widths, (self.keys, self.values)):
            _, block, size = FORMATS[word]
            found.append(torch.zeros((b, capacity, hkv, width // block * size), dtype=OWN_TYPES.get(word, torch.uint8), device=self.device))
            if old is not None:
                copy_bytes(found[-1][:, :old.shape[2]], old.transpose(1, 2))
        for i, old in enumerate(self.scales):
            if self.by_token[i]:
                self.scales[i] = torch.zeros((b, capacity, hkv), dtype=torch.float32, device=self.device)
                if old is not None:
                    self.scales[i][:, :old.shape[1]].copy_(old)
        self.keys, self.values = (x.transpose(1, 2) for x in found)
        self.capacity = capacity

    def room(self, new: int) -> int:
        """Keys that there is room for with `new` ones more."""
        if self.max_cache_len is not None:
            return self.max_cache_len
        total = self.cumulative_length + new
        return self.capacity if total <= self.capacity else -(-max(total, self.capacity * 3 // 2) // STEP) * STEP

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: object, **__: object) -> Tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        new = key_states.shape[2]
        if self.max_cache_len is not None and new > self.max_cache_len:
            raise invalid("key_states.shape[2]", new, f"at most {self.max_cache_len}, max_cache_len")
        if self.room(new) != self.capacity:
            self.make_room(self.room(new))
        self.cumulative_length += new  # in place, of a tensor
        keys = self.keys.transpose(1, 2)
        lengths = torch.empty(self.batch_size, dtype=torch.int32, device=self.device)
        if isinstance(self.cumulative_length, torch.Tensor):
            lengths.copy_(self.cumulative_length)
        else:
            lengths.fill_(self.cumulative_length)
        codes = Codes(*self.formats, self.scales[0], self.scales[1], self.widths[1])
        options = {f"{name}_out" if name.endswith("scale") else name: x for name, x in codes.options().items()}
        new_keys, new_values = (x.detach().transpose(1, 2) for x in (key_states, value_states))
        append(new_keys, new_values, keys, self.values.transpose(1, 2), seqlens_k=lengths, **options)
        if self.is_empty:
            self.is_empty = False
            return key_states, value_states
        found = self.keys.view(self.keys.shape)  # a tensor of this call
        setattr(found, CODES, codes)
        return found, self.values

    def get_mask_sizes(self, query_length: Any) -> Tuple[int, int]:
        new = query_length if isinstance(query_length, int) else query_length.shape[0]  # positions, before transformers 5
        return self.room(new), 0

    def get_seq_length(self, *_: object) -> Any:
        return self.cumulative_length if self.is_initialized else 0

    def get_max_length(self) -> int:
        return -1 if self.max_cache_len is None else self.max_cache_len

    get_max_cache_shape = get_max_length

    def tensors(self) -> List[torch.Tensor]:
        return [x for x in (self.keys, self.values, *self.scales) if x is not None]

    def offload(self) -> None:
        super().offload()  # type: ignore[no-untyped-call]
        self.scales = [None if x is None else x.to("cpu", non_blocking=True) for x in self.scales]

    def prefetch(self) -> None:
        super().prefetch()  # type: ignore[no-untyped-call]
        self.scales = [None if x is None else x.to(self.device, non_blocking=True) for x in self.scales]

    def reset(self) -> None:
        if isinstance(self.cumulative_length, torch.Tensor):
            self.cumulative_length.zero_()
        else:
            self.cumulative_length = 0
        self.is_empty = True

    def crop(self, tokens_to_remove: int) -> None:
        """Takes away the last tokens: a negative number of them; before transformers 5.10 also a length that is kept."""
        if not self.is_initialized or tokens_to_remove == 0:
            return
        if tokens_to_remove > 0 and isinstance(self.cumulative_length, torch.Tensor):
            self.cumulative_length.clamp_(max=tokens_to_remove)
        elif tokens_to_remove > 0:
            self.cumulative_length = min(self.cumulative_length, tokens_to_remove)
        else:
            self.cumulative_length += tokens_to_remove

    def of_batch(self, indices: torch.Tensor) -> None:
        """Takes sequences of the batch. Where there are as many as before, buffers stay where they are, as graphs have them."""
        indices = indices.to(self.device)
        for x in self.tensors():
            taken = as_bytes(x).index_select(0, indices)
            if taken.shape[0] == self.batch_size:
                as_bytes(x).copy_(taken)
        if len(indices) == self.batch_size:
            return
        self.keys, self.values = (select(x.transpose(1, 2), indices).transpose(1, 2) for x in (self.keys, self.values))
        self.scales = [None if x is None else x.index_select(0, indices) for x in self.scales]
        self.batch_size = len(indices)

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        if self.is_initialized:
            self.of_batch(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        if self.is_initialized:
            self.of_batch(torch.arange(self.batch_size).repeat_interleave(repeats))

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        if self.is_initialized:
            self.of_batch(indices.nonzero()[:, 0] if indices.dtype == torch.bool else indices)


def as_bytes(x: torch.Tensor) -> torch.Tensor:
    """Codes as bytes, which all functions of PyTorch take."""
    return x.view(torch.uint8) if x.dtype.itemsize == 1 else x


def select(x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    return as_bytes(x).index_select(0, indices).view(x.dtype)


def copy_bytes(to: torch.Tensor, of: torch.Tensor) -> None:
    as_bytes(to).copy_(as_bytes(of))


class FewBitsCache(Cache):
    """A cache of few bits, of all layers of a model that attend.

    key_format, value_format: "e4m3", "e5m2", "s8", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl", "nvfp4" (docs/lowbits.md); None:
        values as keys. Head dimensions are multiples of the format's block: 1, 32, of nvfp4 64, and of 8.
    max_cache_len: None: the cache grows. Else its size, and the number of keys is counted on the device, so that a decoding step may be
        captured in a graph. Tokens beyond it overwrite the last ones.
    token_scales: whether each token of a head has a scale that is found for it, of e4m3, e5m2 and s8. None: of s8 alone.
    Layers with windows keep all keys.
    """

    def __init__(self, config: Any, key_format: str = "q8_0", value_format: Optional[str] = None, *, max_cache_len: Optional[int] = None,
                 token_scales: Optional[bool] = None) -> None:
        value_format = key_format if value_format is None else value_format
        for name, word in (("key_format", key_format), ("value_format", value_format)):
            if word not in FORMATS:
                raise invalid(name, repr(word), ", ".join(FORMATS))
        if max_cache_len is not None and (isinstance(max_cache_len, bool) or not isinstance(max_cache_len, int) or max_cache_len < 1):
            raise invalid("max_cache_len", repr(max_cache_len), "None, or keys, at least 1")
        if token_scales and {key_format, value_format} - OWN_TYPES.keys():
            raise InvalidArgument(f"token_scales is True beside {key_format} and {value_format}; accepted beside {', '.join(OWN_TYPES)}")
        own = config.get_text_config(decoder=True)
        types = getattr(own, "layer_types", None) or []
        other = [word for word in types if "attention" not in word or "linear" in word]
        if other:
            raise Unsupported(f"config.layer_types has {other[0]}; accepted: models whose layers all attend to keys and values")
        words = (key_format, value_format)
        by_token = [word in OWN_TYPES and (word == "s8" if token_scales is None else token_scales) for word in words]
        of = key_format, value_format, (by_token[0], by_token[1]), max_cache_len
        layers: List[Any] = [FewBitsLayer(*of) for _ in range(own.num_hidden_layers)]
        super().__init__(layers=layers)
