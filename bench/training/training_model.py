"""A model of Llama's make with random weights, for training_step.py: RMSNorm, RoPE, heads of queries that share keys, SwiGLU. Its layers
alone: a hidden state goes in and comes out. Attention is an argument."""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

BASE = 500000.0  # of the angles of RoPE


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    d: int
    hkv: int
    inner: int   # width between the two products of SwiGLU
    tokens: int

    @property
    def hq(self):
        return self.hidden // self.d

    def flops(self):
        """(of the whole step, of attention in it): 2 for each weight and token forward, 4 backward; attention counts as in the tables."""
        weights = self.layers * self.hidden * (2 * self.hidden + 2 * self.hkv * self.d + 3 * self.inner)
        pairs = self.tokens * self.tokens / 2
        attention = self.layers * self.hq * pairs * self.d * (4 + 10)
        return 6 * weights * self.tokens + attention, attention


def rotated(x, cos, sin):
    """RoPE of [b, s, h, d]: the halves of a head are turned against each other."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def angles(tokens, d, like):
    """(cosines, sines) [s, 1, d / 2] of each token, in the type of a tensor."""
    speed = BASE ** (-torch.arange(0, d, 2, device=like.device, dtype=torch.float64) / d)
    turns = torch.arange(tokens, device=like.device, dtype=torch.float64)[:, None, None] * speed
    return turns.cos().to(like.dtype), turns.sin().to(like.dtype)


class Layer(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape, wide = shape, shape.hkv * shape.d
        self.norm_attention, self.norm_inner = (torch.nn.RMSNorm(shape.hidden, eps=1e-5) for _ in "ai")
        self.q, self.k, self.v, self.o = (torch.nn.Linear(shape.hidden, n, bias=False) for n in (shape.hidden, wide, wide, shape.hidden))
        self.gate, self.up = (torch.nn.Linear(shape.hidden, shape.inner, bias=False) for _ in "gu")
        self.down = torch.nn.Linear(shape.inner, shape.hidden, bias=False)

    def forward(self, x, cos, sin, attend):
        h = self.norm_attention(x)
        q, k, v = (part(h).unflatten(-1, (-1, self.shape.d)) for part in (self.q, self.k, self.v))
        x = x + self.o(attend(rotated(q, cos, sin), rotated(k, cos, sin), v).flatten(2))
        h = self.norm_inner(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(torch.nn.Module):
    """attend(q, k, v): causal attention of [b, s, h, d]."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.layers = torch.nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = torch.nn.RMSNorm(shape.hidden, eps=1e-5)

    def forward(self, x, attend):
        cos, sin = angles(x.shape[1], self.shape.d, x)
        for layer in self.layers:
            x = layer(x, cos, sin, attend)
        return self.norm(x)


def made(shape, device, seed, dtype=torch.bfloat16):
    """(model, hidden state [1, tokens, hidden], gradient of what comes out), all from the seed. Products keep the variance of what they
    read; queries and keys are so much larger that attention prefers some keys."""
    random = torch.Generator(device=device).manual_seed(seed)
    with torch.device(device):
        model = Model(shape).to(dtype)
    with torch.no_grad():
        for name, w in model.named_parameters():
            if w.dim() == 2:
                gain = 1.5 if name.endswith(("q.weight", "k.weight")) else 1.0
                w.normal_(0, gain / math.sqrt(w.shape[1]), generator=random)
    state, grad = (torch.randn(1, shape.tokens, shape.hidden, device=device, generator=random).to(dtype) for _ in "xg")
    return model, state.requires_grad_(), grad


def gradients(model, state, grad, attend):
    """{name: gradient} of the hidden state and of every parameter."""
    named = {"input": state, **dict(model.named_parameters())}
    return dict(zip(named, torch.autograd.grad(model(state, attend), list(named.values()), grad)))
