"""Who is timed beside fagen: a class per peer. Each has
    title        how tables call it
    available()  None, or why it is not there
    version()    for the record
    runner(cell, sets)  a function of the launch's number that returns O [b, s, h, d]; whatever it raises is why the cell goes without.
sets: (q, k, v) pairs of tensors [b, s, h, d], used in turn.
"""
import contextlib
import functools
import importlib
import warnings

import torch
import torch.nn.functional as F


class Peer:
    def available(self):
        return None

    def version(self):
        return torch.__version__

    def context(self):
        """Entered around the launches of one sample."""
        return contextlib.nullcontext()


class Sdpa(Peer):
    """A backend of PyTorch's scaled_dot_product_attention. Under GQA first its own grouping, else K and V expanded beforehand."""

    def __init__(self, title, backend):
        self.title, self.backend = title, backend

    def context(self):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        return sdpa_kernel(getattr(SDPBackend, self.backend))

    def version(self):
        return f"PyTorch {torch.__version__}" + (f", cuDNN {torch.backends.cudnn.version()}" if self.title == "cudnn" else "")

    def runner(self, cell, sets):
        if cell.mask == "window":
            raise RuntimeError("scaled_dot_product_attention has no windows")
        if cell.mask == "causal" and cell.sq != cell.sk and cell.diagonal != "top-left":
            raise RuntimeError("its causal mask is top-left")
        views = [[t.transpose(1, 2) for t in s] for s in sets]
        grouped = functools.partial(self.call, cell, views, cell.hq != cell.hkv)
        try:
            self.probe(grouped)
            return grouped
        except RuntimeError:
            if cell.hq == cell.hkv:
                raise
        group = cell.hq // cell.hkv
        wide = [[q] + [t.repeat_interleave(group, 1) for t in (k, v)] for q, k, v in views]
        expanded = functools.partial(self.call, cell, wide, False)
        self.probe(expanded)
        expanded.note = "K and V expanded to every query head beforehand"
        return expanded

    def probe(self, run):
        with warnings.catch_warnings(record=True) as told, self.context():
            warnings.simplefilter("always")
            try:
                run(0)
            except RuntimeError as e:
                raise RuntimeError("; ".join([str(e)] + [str(w.message).split("(Triggered")[0] for w in told])) from None

    @staticmethod
    def call(cell, views, gqa, i):
        q, k, v = views[i % len(views)]
        return F.scaled_dot_product_attention(q, k, v, is_causal=cell.mask == "causal", enable_gqa=gqa).transpose(1, 2)


class Fa3(Peer):
    """FlashAttention-3's own package, or the wheel that holds its forward kernels only (bf16, no windows)."""
    title = "fa3"
    modules = ("flash_attn_interface", "fa3_fwd_interface")

    def __init__(self):
        self.module, self.why = None, []
        for name in self.modules:
            try:
                self.module = importlib.import_module(name)
                break
            except Exception as e:  # an extension that does not fit this PyTorch may raise anything
                self.why.append(f"{name}: {e}")

    def available(self):
        return None if self.module else "; ".join(self.why)

    def version(self):
        from importlib import metadata
        names = {"flash_attn_interface": ("flash_attn_3", "flash-attn-3"), "fa3_fwd_interface": ("fa3_fwd", "fa3-fwd")}
        for name in names[self.module.__name__]:
            with contextlib.suppress(metadata.PackageNotFoundError):
                return f"{name} {metadata.version(name)}"
        return f"{self.module.__name__} of {self.module.__file__}"

    def runner(self, cell, sets):
        if cell.mask == "causal" and cell.sq != cell.sk and cell.diagonal != "bottom-right":
            raise RuntimeError("its causal mask is bottom-right")
        given = {"causal": cell.mask == "causal"}
        if cell.mask == "window":
            given["window_size"] = (cell.left, cell.right)

        def run(i):
            out = self.module.flash_attn_func(*sets[i % len(sets)], **given)
            return out[0] if isinstance(out, tuple) else out
        return run


class Flex(Peer):
    """PyTorch's flex_attention, compiled for the one shape, with a block mask: what leaves masked blocks out."""
    title = "flex"

    def available(self):
        try:
            importlib.import_module("torch.nn.attention.flex_attention")
            importlib.import_module("triton")
        except ImportError as e:
            return str(e)
        return None

    def runner(self, cell, sets):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        torch._dynamo.reset()
        lo, hi = cell.seen().lo, cell.seen().hi

        def visible(b, h, i, j):
            if lo is None:
                return j <= i + hi
            if hi is None:
                return j >= i + lo
            return (j >= i + lo) & (j <= i + hi)
        mask = create_block_mask(visible, None, None, cell.sq, cell.sk, device="cuda") if (lo, hi) != (None, None) else None
        call = torch.compile(flex_attention, dynamic=False, fullgraph=True)
        views = [[t.transpose(1, 2).contiguous() for t in s] for s in sets]  # the layout it is written for

        def run(i):
            return call(*views[i % len(views)], block_mask=mask, enable_gqa=cell.hq != cell.hkv).transpose(1, 2)
        return run


PEERS = {
    "cudnn": lambda: Sdpa("cudnn", "CUDNN_ATTENTION"),
    "fa2": lambda: Sdpa("fa2", "FLASH_ATTENTION"),
    "fa3": Fa3,
    "flex": Flex,
}
