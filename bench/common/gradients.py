"""Gradients of score programs, as scores.py and masks.py time them with --backward: the launch, what holds its results against fp64, and
FlexAttention's backward."""
import math

CHECKED = 256  # queries of which dQ is held against fp64, and keys of which dK and dV are


def contender(fa, fagen, q, k, v, grad_out, mask, kept, **more):
    """A forward, once, and a function that runs the backward: it returns what the forward gave and the gradients. kept: what has to live as
    long as the function."""
    import torch
    b, s, h, _ = q.shape
    out, lse = torch.empty_like(q), torch.empty(b, h, s, device="cuda")
    args = fa.args(q, k, v, out, mask, lse=lse, **more)
    kept.append((fa.give_workspace(args), args))
    fa.launch(args)
    written = tuple(torch.empty_like(t) for t in (q, k, v))
    args = fa.gradient_args(q, k, v, out, lse, grad_out, *written, mask=mask, **more)
    kept.append((fa.give_workspace(args), args, more))
    fa.launch(args)
    torch.cuda.synchronize()
    return lambda _: (fa.launch(args), (out, lse, *written))[1]


def apart(score, seen, q, k, v, grad_out, out, lse, grad_q, grad_k, grad_v):
    """The gradients of the first and the last head of the first sequence, as far from those of fp64 as their norms go. score(s, h, i, j):
    of scaled products, in fp64, None: these; seen(h, i, j): whether query i sees key j; both of tensors of indices."""
    import torch
    n, h, scale = q.shape[1], q.shape[2], 1 / math.sqrt(q.shape[-1])
    some, every, worst = torch.linspace(0, n - 1, CHECKED, device="cuda").long(), torch.arange(n, device="cuda"), 0

    def probabilities(at, i, j):
        """P and dS of queries i and keys j of a head."""
        s = (q[0, i, at].double() @ k[0, j, at].double().T * scale).requires_grad_()
        with torch.enable_grad():
            y = score(s, torch.tensor(at, device="cuda"), i[:, None], j[None]) if score else s * 1
            bend, = torch.autograd.grad(y.sum(), s)
        hidden = ~seen(at, i[:, None], j[None]).expand_as(s)
        of_rows = lse[0, at, i].double().masked_fill(lse[0, at, i] == -math.inf, math.inf)[:, None]
        p = (y.detach() - of_rows).exp().masked_fill(hidden, 0)
        delta = (grad_out[0, i, at].double() * out[0, i, at].double()).sum(1, keepdim=True)
        return p, (p * (grad_out[0, i, at].double() @ v[0, j, at].double().T - delta) * bend).masked_fill(hidden, 0)

    def far(got, right):
        return ((got.double() - right).norm() / right.norm().clamp(min=1e-30)).item()
    for at in (0, h - 1):
        _, ds = probabilities(at, some, every)
        worst = max(worst, far(grad_q[0, some, at], ds @ k[0, :, at].double() * scale))
        p, ds = probabilities(at, every, some)
        worst = max(worst, far(grad_v[0, some, at], p.T @ grad_out[0, :, at].double()))
        worst = max(worst, far(grad_k[0, some, at], ds.T @ q[0, :, at].double() * scale))
    return worst


class Autograd:
    """Calls of PyTorch's autograd, which no CUDA graph holds: timed by events, some in a row. A call lasts far longer than its launch."""

    def __init__(self, run, lasts):
        self.run, self.calls = run, 1
        self.sample()
        self.calls = max(1, round(lasts / self.sample()))

    def sample(self):
        import torch
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.run()
        start.record()
        for _ in range(self.calls):
            self.run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / self.calls


def flex(q, k, v, grad_out, lasts=4e-3, **given):
    """FlexAttention's backward, or why there is none. given: score_mod, block_mask."""
    import torch
    from torch.nn.attention.flex_attention import flex_attention
    why = ""
    q, k, v, grad = (t.transpose(1, 2).detach() for t in (q, k, v, grad_out))
    for t in (q, k, v):
        t.requires_grad_()
    for options in ({}, {"num_stages": 2}, {"num_stages": 1}):  # its own choice may not fit into shared memory
        try:
            out = torch.compile(flex_attention, dynamic=False)(q, k, v, kernel_options=options, **given)
            return Autograd(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True), lasts)
        except Exception as e:  # whatever the compiler raises
            why = str(e).strip().splitlines()[0][:200]
            torch._dynamo.reset()
    return why
