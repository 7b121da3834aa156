"""The operators torch.ops.fagen.*: what torch.compile, torch.export, autocast and CUDA graphs see of fagen.

They are defined by Library.define and impl, which cost a call less than half of what torch.library.custom_op costs. `scale` 0 stands for
1/sqrt(d); `options` is a text, as "causal" or "window=255,0;tf32", which _mask.words_of makes; `numbers` is empty, or has a number for
each question mark of it. fagen.torch has the functions for people.

Imports of this folder go one way: symbols, dispatch, no_gradient, launch; plans, outputs, dropout, fake, vmap; dense, varlen, merge,
backward; functions, tangents; transforms; autograd; scores; library; this file.
"""
from __future__ import annotations

from typing import Any, Tuple

from . import autograd, backward, dense, fake, merge, scores, symbols, transforms, varlen
from .autograd import Kernel, out_of
from .functions import Attention, AttentionDropout, VarlenAttention, VarlenAttentionDropout
from .library import define
from .transforms import without_pages
from .vmap import rule

DENSE = "Tensor q, Tensor k, Tensor v"
LENGTHS = "Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, Tensor? seqlens_q, Tensor? seqlens_k"
MAXIMA = "SymInt max_seqlen_q, SymInt max_seqlen_k"
VARLEN = f"{DENSE}, {LENGTHS}, Tensor? page_table, {MAXIMA}"
MERGE = "Tensor parts, Tensor lses"
TO = "Tensor(a!) out, Tensor(b!)? lse"
GRADIENTS = "Tensor grad_out, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, Tensor? grad_lse"
SCORE = "Tensor[] operands, str program, str names, Tensor? rng, Scalar dropout_p"
OPTIONS, DROPOUT = "Scalar scale, SymInt[] numbers, str options", "Tensor rng, Scalar dropout_p"
NONE, ONE, TWO, THREE = "()", "Tensor", "(Tensor, Tensor)", "(Tensor, Tensor, Tensor)"

# Operators that follow autocast. The last two of a row: what autograd sees where it wants gradients, and what torch.func.* sees.
_lengths = without_pages(VarlenAttention.apply)
_lengths_dropout = without_pages(VarlenAttentionDropout.apply)
_FORWARD: Tuple[Tuple[str, str, str, Kernel, Kernel, Kernel, Kernel], ...] = (
    ("attention_lse", f"{DENSE}, {OPTIONS}", TWO, dense.attention_lse, dense.fake_attention_lse, Attention.apply,
     transforms.Attention.apply),
    ("attention_dropout", f"{DENSE}, {DROPOUT}, {OPTIONS}", TWO, dense.attention_dropout, dense.fake_attention_lse, AttentionDropout.apply,
     transforms.AttentionDropout.apply),
    ("varlen_attention", f"{VARLEN}, {OPTIONS}", ONE, varlen.attention, varlen.fake_attention, out_of(_lengths), out_of(transforms.varlen)),
    ("varlen_attention_lse", f"{VARLEN}, {OPTIONS}", TWO, varlen.attention_lse, varlen.fake_attention_lse, _lengths, transforms.varlen),
    ("varlen_attention_dropout", f"{VARLEN}, {DROPOUT}, {OPTIONS}", TWO, varlen.attention_dropout, varlen.fake_attention_lse,
     _lengths_dropout, transforms.varlen_dropout))

# Their gradients.
_BACKWARD: Tuple[Tuple[str, str, Kernel], ...] = (
    ("attention_backward", f"{GRADIENTS}, {OPTIONS}", backward.attention),
    ("attention_dropout_backward", f"{GRADIENTS}, {DROPOUT}, {OPTIONS}", backward.attention_dropout),
    ("varlen_attention_backward", f"{GRADIENTS}, {LENGTHS}, {MAXIMA}, {OPTIONS}", backward.varlen_attention),
    ("varlen_attention_dropout_backward", f"{GRADIENTS}, {LENGTHS}, {MAXIMA}, {DROPOUT}, {OPTIONS}", backward.varlen_attention_dropout))

# Operators that write to out.
_WRITE: Tuple[Tuple[str, str, Kernel], ...] = (
    ("attention_out", f"{DENSE}, {TO}, {OPTIONS}", dense.attention_out),
    ("varlen_attention_out", f"{VARLEN}, {TO}, {OPTIONS}", varlen.attention_out))

# Operators without a mask, and without gradients.
_CONSTANT: Tuple[Tuple[str, str, str, Kernel, Kernel], ...] = (
    ("merge", f"{MERGE}, str options", ONE, merge.merge, merge.fake_merge),
    ("merge_lse", f"{MERGE}, str options", TWO, merge.merge_lse, merge.fake_merge_lse),
    ("merge_out", f"{MERGE}, {TO}, str options", NONE, merge.merge_out, fake.written))



def _both(name: str, arguments: str, *rest: Any) -> None:
    """An operator, and the one whose floats are tensors, which a compiled program holds where they are no constants."""
    define(name, arguments, *rest)
    define(name + symbols.DYNAMIC, arguments.replace("Scalar", "Tensor"), *rest)


_both("attention", f"{DENSE}, {OPTIONS}", ONE, dense.attention, dense.fake_attention, True, autograd.attention,
       rule("attention"))
for _name, _arguments, _results, _kernel, _fake, *_differentiable in _FORWARD:
    _both(_name, _arguments, _results, _kernel, _fake, True, autograd.forward(_name, _kernel, *_differentiable), rule(_name))
for _name, _arguments, _kernel, _fake in (("attention_score", DENSE, scores.attention, dense.fake_attention_lse),
                                          ("varlen_attention_score", VARLEN, scores.varlen_attention, varlen.fake_attention_lse)):
    _both(_name, f"{_arguments}, {SCORE}, {OPTIONS}", TWO, _kernel, _fake, True, scores.autograd(_name, _kernel))
for _name, _arguments, _kernel in _BACKWARD:
    _both(_name, _arguments, THREE, _kernel, backward.fake_gradients, False, autograd.backward(_name, _kernel), rule(_name))
for _name, _arguments, _kernel in _WRITE:
    _both(_name, _arguments, NONE, _kernel, fake.written, False, autograd.constant(_name))
for _name, _arguments, _results, _kernel, _fake in _CONSTANT:
    define(_name, _arguments, _results, _kernel, _fake, False, None, rule(_name) if _results != NONE else None)
