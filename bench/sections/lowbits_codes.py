"""Caches of few bits out of PyTorch tensors [.., s, h, d], as docs/lowbits.md defines the formats: for benchmarks, not bit for bit."""
import torch


def folded(x, dtype):
    """Bytes of an 8-bit floating-point type, a scale for each KV head, a power of two, and what they mean."""
    h = x.shape[-2]
    scale = torch.tensor([2.0 ** (i % 3 - 1) for i in range(h)], device=x.device)
    codes = (x.float() / scale[:, None]).to(dtype)
    return codes.view(torch.uint8), scale[None], (codes.float() * scale[:, None]).bfloat16()


def by_token(x):
    """Integers of 8 bits with a scale for each token and head."""
    scale = x.float().abs().amax(-1).clamp_min(1e-30) / 127
    codes = (x.float() / scale[..., None]).round().clamp(-128, 127).to(torch.int8)
    return codes.view(torch.uint8), scale, (codes.float() * scale[..., None]).bfloat16()


def blocks(x, bits):
    """ggml's blocks of 32: a scale in fp16, then codes."""
    y = x.float().unflatten(-1, (-1, 32))
    if bits == 8:
        d = y.abs().amax(-1, keepdim=True) / 127
        codes = (y / d.clamp_min(1e-30)).round()
        packed = codes.to(torch.int8).view(torch.uint8)
    else:
        top = y.gather(-1, y.abs().argmax(-1, keepdim=True))
        d = top / -8
        inverse = torch.where(d == 0, 0, 1 / d)
        codes = (y * inverse + 8.5).floor().clamp(0, 15) - 8
        whole = (codes + 8).to(torch.uint8)
        packed = whole[..., :16] | whole[..., 16:] << 4
    d = d.half()
    out = torch.cat([d.view(torch.uint8), packed], -1).flatten(-2)
    return out, None, (codes * d.float()).flatten(-2).bfloat16()


def encoded(kv, x):
    """(codes as bytes, a scale or None, the numbers that they mean in bf16)."""
    return {"e4m3": lambda: folded(x, torch.float8_e4m3fn), "e5m2": lambda: folded(x, torch.float8_e5m2), "s8": lambda: by_token(x),
            "q8_0": lambda: blocks(x, 8), "q4_0": lambda: blocks(x, 4)}[kv]()
