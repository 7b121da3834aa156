"""Attention of a training step, of each contender: attend(q, k, v), causal, of [b, s, h, d], differentiable; and where in a step it ran."""
import contextlib

import torch
import torch.nn.functional as F

from common import package


class Contender:
    note = ""

    def context(self):
        """Entered around a step."""
        return contextlib.nullcontext()


class Fagen(Contender):
    """fagen.attention by autograd. deterministic: of its gradients."""

    def __init__(self, deterministic=False):
        self.module, self.options = package.load(), {"causal": True, "deterministic": deterministic}
        self.version = f"{self.module.__version__}, {self.module._library.path()}"

    def attend(self, q, k, v):
        return self.module.attention(q, k, v, **self.options)


class Sdpa(Contender):
    """PyTorch's scaled_dot_product_attention. backend None: what PyTorch chooses."""

    def __init__(self, backend=None):
        self.backend, self.grouped = backend, True
        cudnn = f", cuDNN {torch.backends.cudnn.version()}" if backend == "CUDNN_ATTENTION" else ""
        self.version = f"PyTorch {torch.__version__}{cudnn}"

    def context(self):
        if self.backend is None:
            return contextlib.nullcontext()
        from torch.nn.attention import SDPBackend, sdpa_kernel
        return sdpa_kernel(getattr(SDPBackend, self.backend))

    def expand(self):
        """From here on K and V are expanded to the heads of queries, in the step, where the backend has no groups of its own."""
        self.grouped, self.note = False, "K and V are expanded to the heads of queries in the step"

    def attend(self, q, k, v):
        if not self.grouped:
            k, v = (t.repeat_interleave(q.shape[2] // t.shape[2], 2) for t in (k, v))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.grouped).transpose(1, 2)


def eager(q, k, v):
    """Attention step by step, in the type of its inputs."""
    k, v = (t.repeat_interleave(q.shape[2] // t.shape[2], 2) for t in (k, v))
    s = torch.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
    seen = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).tril()
    return torch.einsum("bhij,bjhd->bihd", s.masked_fill(~seen, float("-inf")).softmax(-1), v)


class Eager(Contender):
    """Stands for fagen where neither a GPU nor the simulator is asked for."""
    version = "attention in fp32"

    def attend(self, q, k, v):
        return eager(*(t.float() for t in (q, k, v))).to(q.dtype)


PEERS = {"sdpa": lambda: Sdpa(), "flash": lambda: Sdpa("FLASH_ATTENTION"), "cudnn": lambda: Sdpa("CUDNN_ATTENTION")}


def tried(contender, q, k, v):
    """Raises what the contender says to such tensors, forward or backward; before that, K and V are expanded where this helps."""
    def once():
        with contender.context():
            x = [t.detach().requires_grad_() for t in (q, k, v)]
            torch.autograd.grad(contender.attend(*x), x, torch.ones_like(q))
    try:
        once()
    except RuntimeError:
        if not hasattr(contender, "expand") or q.shape[2] == k.shape[2]:
            raise
        contender.expand()
        once()


class Spans:
    """Marks where in a step attention begins and ends, forward and backward, by events of the step's clock."""

    def __init__(self, event):
        self.event, self.begun, self.ended = event, [], []

    def around(self, attend):
        def marked(q, k, v):
            return _Leaves.apply(self, attend(*_Enters.apply(self, q, k, v)))
        return marked

    def seconds(self):
        """Of all attention in the step. begun and ended alternate, since one stream runs the step."""
        return sum(a.until(b) for a, b in zip(self.begun, self.ended))


class _Enters(torch.autograd.Function):
    """Q, K and V on their way into attention; backward, their gradients on the way out."""

    @staticmethod
    def forward(ctx, spans, *tensors):
        ctx.spans = spans
        spans.begun.append(spans.event())
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        ctx.spans.ended.append(ctx.spans.event())
        return (None, *grads)


class _Leaves(torch.autograd.Function):
    """O on its way out; backward, its gradient on the way in."""

    @staticmethod
    def forward(ctx, spans, out):
        ctx.spans = spans
        spans.ended.append(spans.event())
        return out.view_as(out)

    @staticmethod
    def backward(ctx, grad):
        ctx.spans.begun.append(ctx.spans.event())
        return None, grad
