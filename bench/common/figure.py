"""A figure per grid as one self-contained SVG: a panel per head dim and mask, rates over sequence length, ours and the peers'.

Light and dark by the reader's preference. Runners differ by colour, dash and mark at once, and none by red against green.
"""
import math
from html import escape

from common import stats
from common.report import row_name, title

PANEL_W, PANEL_H, LEFT, TOP, GAP_X, GAP_Y = 190, 150, 58, 74, 30, 46
# colour in light, in dark; dash; mark
LOOKS = {
    "ours": ("#0b5fb0", "#6cb6ff", "", "circle"),
    "cudnn": ("#b3541e", "#f0a35e", "6 3", "square"),
    "fa3": ("#6f3fa8", "#c8a2f2", "2 3", "triangle"),
    "fa2": ("#6b6b6b", "#a6a6a6", "8 3 2 3", "diamond"),
    "flex": ("#8a6d00", "#e3c94d", "1 2", "cross"),
    "other": ("#222222", "#dddddd", "4 4", "square"),
}
STYLE = """
.paper{fill:#ffffff}text{fill:#1f2328;font:11px system-ui,sans-serif}.head{font-weight:600;font-size:13px}.sub{font-weight:600}
.dim{fill:#59636e}.rule{stroke:#d1d9e0;stroke-width:1}.line{fill:none;stroke-width:1.8}
%s
@media (prefers-color-scheme: dark){.paper{fill:#0d1117}text{fill:#e6edf3}.dim{fill:#9198a1}.rule{stroke:#30363d}
%s}
"""


def look(name):
    return LOOKS.get(name, LOOKS["other"])


def css(which):
    return "\n".join(f".c-{n}{{stroke:{v[which]};color:{v[which]}}}.m-{n}{{fill:{v[which]};stroke:{v[which]}}}" for n, v in LOOKS.items())


def cls(name):
    return name if name in LOOKS else "other"


def mark(kind, x, y, name, r=3.1):
    c = f'class="m-{cls(name)}"'
    if kind == "circle":
        return f'<circle {c} cx="{x:.1f}" cy="{y:.1f}" r="{r}"/>'
    points = {"square": [(-r, -r), (r, -r), (r, r), (-r, r)], "triangle": [(0, -1.2 * r), (1.1 * r, r), (-1.1 * r, r)],
              "diamond": [(0, -1.3 * r), (1.3 * r, 0), (0, 1.3 * r), (-1.3 * r, 0)]}.get(kind)
    if points:
        return f'<polygon {c} points="{" ".join(f"{x + a:.1f},{y + b:.1f}" for a, b in points)}"/>'
    return f'<path {c} d="M{x - r:.1f} {y - r:.1f}l{2 * r} {2 * r}m0 {-2 * r}l{-2 * r} {2 * r}" stroke-width="1.5"/>'


def ticks(most):
    """A round step and the top of an axis that reaches `most`."""
    step = 10 ** math.floor(math.log10(most))
    step = next(s for s in (step / 5, step / 2, step, 2 * step) if most / s <= 5)
    return step, step * math.ceil(most / step)


def short(s):
    return f"{s // 1024}k" if s % 1024 == 0 else str(s)


def panel(cells, x0, y0, lengths, top, step, names, left_axis, bottom_axis):
    def x(s):
        return x0 + PANEL_W * (lengths.index(s) + 0.5) / len(lengths)

    def y(rate):
        return y0 + PANEL_H * (1 - rate / top)
    out = []
    for k in range(round(top / step) + 1):
        out.append(f'<line class="rule" x1="{x0}" x2="{x0 + PANEL_W}" y1="{y(k * step):.1f}" y2="{y(k * step):.1f}"/>')
        if left_axis:
            out.append(f'<text class="dim" x="{x0 - 6}" y="{y(k * step) + 4:.1f}" text-anchor="end">{k * step:g}</text>')
    if bottom_axis:
        out += [f'<text class="dim" x="{x(s):.1f}" y="{y0 + PANEL_H + 15}" text-anchor="middle">{short(s)}</text>' for s in lengths]
    for name in reversed(names):  # ours on top
        points = [(x(c["sq"]), y(stats.rate(c, name)), c) for c in cells if stats.rate(c, name)]
        if not points:
            continue
        dash = f' stroke-dasharray="{look(name)[2]}"' if look(name)[2] else ""
        out.append(f'<polyline class="line c-{cls(name)}"{dash} points="{" ".join(f"{a:.1f},{b:.1f}" for a, b, _ in points)}"/>')
        for a, b, c in points:
            told = f"{title(name)}, s = {c['sq']}: {stats.rate(c, name):.0f} TFLOP/s"
            out.append(f"<g><title>{escape(told)}</title>{mark(look(name)[3], a, b, name)}</g>")
    return out


def draw(name, cells, about):
    rows = list(dict.fromkeys(row_name(c) for c in cells))
    columns = list(dict.fromkeys(c["d"] for c in cells))
    lengths = sorted({c["sq"] for c in cells})
    names = [n for n in dict.fromkeys(n for c in cells for n in c["runs"]) if any(stats.rate(c, n) for c in cells)]
    rates = [stats.rate(c, n) for c in cells for n in names if stats.rate(c, n)]
    step, top = ticks(max(rates)) if rates else (1, 1)
    width = LEFT + len(columns) * (PANEL_W + GAP_X)
    height = TOP + len(rows) * (PANEL_H + GAP_Y) - 2
    width = max(width, 150 + 150 * len(names))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
           f'aria-label="{escape(name)}: TFLOP/s over sequence length">', f"<style>{STYLE % (css(0), css(1))}</style>",
           f'<rect class="paper" width="{width}" height="{height}"/>',
           f'<text class="head" x="12" y="20">{escape(name)}: TFLOP/s, {escape(about)}</text>']
    for i, n in enumerate(names):
        x = 14 + 150 * i
        dash = f' stroke-dasharray="{look(n)[2]}"' if look(n)[2] else ""
        out.append(f'<line class="line c-{cls(n)}"{dash} x1="{x}" x2="{x + 28}" y1="37" y2="37"/>{mark(look(n)[3], x + 14, 37, n)}'
                   f'<text x="{x + 34}" y="41">{escape(title(n))}</text>')
    for r, mask in enumerate(rows):
        y0 = TOP + r * (PANEL_H + GAP_Y)
        for k, d in enumerate(columns):
            x0 = LEFT + k * (PANEL_W + GAP_X)
            out.append(f'<text class="sub" x="{x0}" y="{y0 - 7}">d = {d}, {escape(mask)}</text>')
            some = sorted((c for c in cells if c["d"] == d and row_name(c) == mask), key=lambda c: c["sq"])
            out += panel(some, x0, y0, lengths, top, step, names, k == 0, True)
    out.append(f'<text class="dim" x="{LEFT}" y="{height - 8}">sequence length</text></svg>')
    return "\n".join(out) + "\n"


def of(doc):
    """{grid: SVG text} of a results document."""
    h = doc["host"]
    return {name: draw(name, some, f"{some[0]['dtype']}, {h['device']}, {h['date'].split(' ')[0]}")
            for (name,), some in stats.groups(doc["cells"], "grid").items()}
