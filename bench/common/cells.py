"""The cells of the benchmarks: which problems are timed, as data. A cell is one problem with its shape; a grid is a named list of them.

The field's usual grid (FlashAttention's benchmark_attn) holds b * s at 16k tokens and h * d at 2048.
"""
import itertools
from dataclasses import asdict, dataclass, fields, replace

from common import pairs

TOKENS, WIDTH = 16384, 2048
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)


@dataclass(frozen=True)
class Cell:
    grid: str
    dtype: str
    d: int
    dv: int
    b: int
    hq: int
    hkv: int
    sq: int
    sk: int
    mask: str                        # none, causal, window
    left: int = -1                   # of a window, -1 = unbounded
    right: int = -1
    diagonal: str = "bottom-right"   # or top-left

    def seen(self):
        """What the mask lets through, by the library (pairs.py)."""
        return pairs.of(self.sq, self.sk, self.mask, self.left, self.right, self.diagonal)

    def flops(self):
        """Of the two products, as the literature counts them: all pairs, half of them under a causal mask, those of a window exactly."""
        seen = self.seen().count if self.mask == "window" else self.sq * self.sk * (0.5 if self.mask == "causal" else 1)
        return 2 * self.b * self.hq * seen * (self.d + self.dv)

    def bytes(self):
        """Of Q, K, V and O, each once: the least that goes through memory."""
        size = 2 if self.dtype in ("bf16", "fp16") else 4
        return size * self.b * (self.sq * self.hq * (self.d + self.dv) + self.sk * self.hkv * (self.d + self.dv))

    def problem(self):
        """As fagen's command takes it in --problem."""
        return (f"{self.dtype},d={self.d},dv={self.dv},mask={self.mask},b={self.b},hq={self.hq},hkv={self.hkv},"
                f"sq={self.sq},sk={self.sk}")

    def name(self):
        heads = f" {self.hq}/{self.hkv} heads" if self.hq != self.hkv else ""
        dv = f"/{self.dv}" if self.dv != self.d else ""
        window = f" {self.left},{self.right}" if self.mask == "window" else ""
        length = f"{self.sq}" if self.sq == self.sk else f"{self.sq}x{self.sk}"
        return f"{self.dtype} d={self.d}{dv} {self.mask}{window}{heads} s={length}"

    def beside(self, mask):
        """The same shapes under another mask."""
        return replace(self, mask=mask, left=-1, right=-1)

    def dict(self):
        return asdict(self)


def of_dict(row):
    return Cell(**{f.name: row[f.name] for f in fields(Cell) if f.name in row})


# Every combination of d, mask and s. tokens: b = tokens / s, else b; width: h = width / d, else hq and hkv. peers: who is beside us
# unless --peer says otherwise. beside: our own kernel under these masks runs in the same interleaving.
GRIDS = {
    "main": dict(dtype="bf16", d=(64, 96, 128, 192, 256), s=LENGTHS, mask=("none", "causal"), peers=("cudnn", "fa2", "fa3")),
    "fp16": dict(dtype="fp16", d=(64, 128, 256), s=LENGTHS, mask=("none", "causal"), peers=("cudnn", "fa2", "fa3")),
    "odd": dict(dtype="bf16", d=(80, 112, 160, 224), s=(1024, 4096, 16384), mask=("none", "causal"), peers=("cudnn", "fa2", "fa3")),
    "window": dict(dtype="bf16", d=(64, 128), s=(4096, 16384), mask=("window",), left=1024, right=0, peers=("flex", "fa3"),
                   beside=("causal",)),
    "gqa": dict(dtype="bf16", d=(128,), s=(2048, 4096, 8192, 16384, 32768), mask=("causal", "none"), b=1, hq=64, hkv=8,
                diagonal="top-left", peers=("cudnn", "fa3")),
    "quick": dict(dtype="bf16", d=(64, 128, 256), s=(1024, 16384), mask=("none", "causal"), peers=("cudnn", "fa3")),
}


def grid(name, **narrowed):
    """The cells of a grid; narrowed: other values for its fields, such as d=(64,) or dtype="fp16"."""
    if name not in GRIDS:
        raise ValueError(f"the grid is \"{name}\"; accepted: {', '.join(GRIDS)}")
    g = {**GRIDS[name], **{k: v for k, v in narrowed.items() if v is not None}}
    out = []
    for d, mask, s in itertools.product(g["d"], g["mask"], g["s"]):
        h = g.get("hq") or max(1, WIDTH // d)
        window = (g.get("left", -1), g.get("right", -1)) if mask == "window" else (-1, -1)
        out.append(Cell(name, g["dtype"], d, d, g.get("b") or max(1, TOKENS // s), h, g.get("hkv") or h, s, s, mask, *window,
                        diagonal=g.get("diagonal", "bottom-right")))
    return out


def parse(text):
    """A cell from fagen's text of a problem ('bf16,d=128,mask=causal,b=2,hq=16,sq=4096,sk=4096') or from the short form D,MASK,S with
    the usual tokens and width ('128,causal,4096', 'fp16,128,none,1024'). Either may go on with window=LEFT:RIGHT and diagonal=top-left."""
    words = [w for w in text.strip().split(",") if w]
    plain = [w for w in words if "=" not in w]
    given = dict(w.split("=", 1) for w in words if "=" in w)
    dtype = plain.pop(0) if plain and plain[0] in ("bf16", "fp16", "fp32", "tf32") else "bf16"
    if len(plain) == 3 and plain[0].isdigit() and plain[2].isdigit():
        given = {"d": plain[0], "mask": plain[1], "sq": plain[2], **given}
        plain = []
    known = {"d", "dv", "mask", "b", "hq", "hkv", "sq", "sk", "window", "diagonal", "o", "align"}
    if plain or set(given) - known or "d" not in given:
        raise ValueError(f"the problem is \"{text}\"; accepted: D,MASK,S or fagen's text with {', '.join(sorted(known))}")
    mask = given.get("mask", "none")
    if mask not in ("none", "causal", "window"):
        raise ValueError(f"the problem is \"{text}\": mask is \"{mask}\"; accepted: none, causal, window")
    number = {k: int(v) for k, v in given.items() if k in ("d", "dv", "b", "hq", "hkv", "sq", "sk")}
    d = number["d"]
    sq = number.get("sq", number.get("sk", 4096))
    hq = number.get("hq", max(1, WIDTH // d))
    left, right = (int(x) for x in given.get("window", "1024:0").split(":")) if mask == "window" else (-1, -1)
    return Cell("named", dtype, d, number.get("dv", d), number.get("b", max(1, TOKENS // sq)), hq, number.get("hkv", hq), sq,
                number.get("sk", sq), mask, left, right, diagonal=given.get("diagonal", "bottom-right"))
