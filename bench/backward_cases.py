"""The cases of backward.py, as data: the field's grid of gradients, 16k tokens and heads that are 2048 wide together; and heads of queries
that share keys as those of models do. Knows no GPU."""
import itertools
from dataclasses import asdict, dataclass

import cells

HEADS = {"mha": ((128, 16, 16), (64, 32, 32), (256, 8, 8), (192, 10, 10), (96, 21, 21)),  # (d, hq, hkv)
         "gqa": ((128, 64, 8), (128, 32, 4), (128, 16, 4))}
QUICK = (16384, 8192, 2048, 512)  # the most telling lengths first
LENGTHS = QUICK + (4096, 1024)
MASKS = ("causal", "none")
PRODUCTS = 5  # S, dP, dV, dQ, dK: 10 d FLOP for each visible pair; forward has two of them


@dataclass(frozen=True)
class Gradients:
    """A dense batch in bf16, with as many keys as queries."""
    d: int
    hq: int
    hkv: int
    b: int
    s: int
    mask: str

    def name(self):
        return f"d={self.d},hq={self.hq},hkv={self.hkv},b={self.b},s={self.s},{self.mask}"

    def cell(self):
        return cells.Cell("backward", "bf16", self.d, self.d, self.b, self.hq, self.hkv, self.s, self.s, self.mask)

    def dict(self):
        """bytes: of Q, K, V, O, dO and the gradients, each once."""
        rows = self.b * self.s * self.d
        return {**asdict(self), "name": self.name(), "flops": self.cell().flops() * PRODUCTS // 2,
                "bytes": 2 * rows * (4 * self.hq + 4 * self.hkv)}


def cases(sections, lengths):
    """(section, case), a length after the other."""
    return [(section, Gradients(*heads, max(1, cells.TOKENS // s), s, mask)) for s in lengths
            for section, some in HEADS.items() if section in sections for heads, mask in itertools.product(some, MASKS)]
