"""fagen: exact attention on NVIDIA GPUs, by kernels that are compiled and tuned for your chip at run time.

    out = fagen.attention(q, k, v, causal=True)      # [b, s, h, d], PyTorch, JAX, numpy, CuPy, anything with DLPack

fagen.attention, varlen_attention, merge: compute; append: writes a cache. attention_backward, varlen_attention_backward: gradients without autograd. supported,
prepare, tune, explain, candidates: what can be known of a problem, or done beforehand; pin, unpin: a config that you name; fagen.wisdom:
what tunings found, carried between machines. score: what becomes of scores, in a few lines of Lua. Context, simulator: devices.
fagen.flash_attn: the names of the flash_attn package; fagen.sdpa: PyTorch's scaled_dot_product_attention; fagen.flex: its flex_attention,
with functions of Python. fagen.integrations.transformers: an attention implementation for its models. Importing fagen needs neither a GPU
nor NVRTC nor any other package.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._append import append
from ._attention import attention
from ._backward import attention_backward, varlen_attention_backward
from ._library import version
from ._candidates import Candidate, Choice, candidates, choice, pin, unpin
from ._merge import merge
from ._problem import Problem, Support, Tuning, explain, prepare, problem_text, supported, tune
from ._varlen import varlen_attention
from ._score import score
from ._context import Context, context, simulator, use
from . import wisdom
from .errors import (CaptureError, CompileError, DeviceError, FagenError, FileError, GradientUnsupported, InternalError, Interrupted,
                     InvalidArgument, NoDriver, NoFit, NoKernel, NoNvrtc, OutOfMemory, TemplateError, Unsupported, VerificationFailed)

if TYPE_CHECKING:
    from . import flash_attn, flex, sdpa
__version__ = version()
__all__ = [
    "Candidate", "CaptureError", "Choice", "CompileError", "Context", "DeviceError", "FagenError", "FileError", "GradientUnsupported",
    "InternalError", "Interrupted", "InvalidArgument", "NoDriver", "NoFit", "NoKernel", "NoNvrtc", "OutOfMemory", "Problem", "Support",
    "TemplateError", "Tuning", "Unsupported", "VerificationFailed", "append", "attention", "attention_backward", "candidates", "choice",
    "context", "explain", "merge", "pin", "prepare", "problem_text", "score", "simulator", "supported", "tune", "unpin", "use",
    "varlen_attention", "varlen_attention_backward", "version", "wisdom",
]


def __getattr__(name: str) -> Any:
    """fagen.flash_attn, fagen.flex and fagen.sdpa, which need PyTorch, are imported when they are asked for."""
    if name in ("flash_attn", "flex", "sdpa"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
