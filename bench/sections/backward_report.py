"""Tables of what backward.py measured, as Markdown."""
from common import stats
from sections.decode_report import markdown as markdown_of
from sections.decode_report import named, ours_of, peers_of, ratio, shown, us, verdict
from sections.prompts_report import summed
from common.report import table

DENSE = ", dense"  # ends the names of what computes equal lengths without lengths


def tflops(row, name):
    t = us(row, name)
    return row["flops"] / t / 1e6 if t else None


def line(row):
    """One case with all its contenders, for the terminal, in TFLOP/s."""
    words = [row["name"]]
    for name, r in row["runs"].items():
        rate = tflops(row, name)
        words.append(f"{name} {'WRONG: ' + r['wrong'] if r.get('wrong') else f'{rate:.0f}' if rate else '-'}")
    beside = ratio(row)
    words += [f"= {beside:.3f}"] if beside else []
    return "  ".join(words + [f"[no {name}: {why[:100]}]" for name, why in row["skipped"].items()])


def variants(rows):
    return list(dict.fromkeys(n for row in rows for n in ours_of(row) if not n.endswith(DENSE)))


def heads_of(row):
    return row["d"], row["hq"], row["hkv"]


def head_dim(d, hq, hkv):
    """d with the heads of queries and of keys, once where they are as many."""
    return f"{d} ({hq})" if hq == hkv else f"{d} ({hq}/{hkv})"


def table_of(rows, key, heads, cells):
    """A line per case, ordered by d, heads, mask and key(row): cells(row) under heads; the speed of each of ours and, in brackets, its
    ratio to the best peer; those of peers."""
    some, peers, out = variants(rows), peers_of(rows), []
    for row in sorted(rows, key=lambda r: (*heads_of(r), r["mask"] != "none", key(r))):
        out.append([head_dim(*heads_of(row)), row["mask"], *cells(row)]
                   + [f"{shown(tflops(row, n), 0)} ({shown(ratio(row, n), 3)})" for n in some]
                   + [named(stats.best_peer(row)) if stats.best_peer(row) else "-"] + [shown(tflops(row, n), 0) for n in peers])
    return table(["d (heads)", "mask", *heads] + [f"{named(n)} TFLOP/s (ratio)" for n in some] + ["best peer"]
                 + [named(n) for n in peers], out)


def cases_table(rows):
    return table_of(rows, lambda r: r["s"], ["s"], lambda row: [row["s"]])


def of_dense(row):
    """Our speed over that of the same tokens as a dense batch."""
    return stats.paired(row, "ours", "ours" + DENSE) if us(row, "ours") and us(row, "ours" + DENSE) else None


def packed_table(rows):
    return table_of(rows, lambda r: r["seed"], ["lengths", "sequences", "longest", "of our dense rate"],
                    lambda row: [row["drawn"], row["sequences"], row["longest"], shown(of_dense(row), 3)])


def means(rows):
    """Geometric means of the ratios, for each head_dim and of all: to the best peer, and to each."""
    peers, out = peers_of(rows), []
    for heads in [*sorted({heads_of(r) for r in rows}), None]:
        some = [r for r in rows if heads in (None, heads_of(r))]
        for n in variants(some):
            right = [r for r in some if us(r, n)]
            beside = [[ratio(r, n) for r in right], *([stats.paired(r, n, p) for r in right if us(r, p)] for p in peers)]
            cells = [[x for x in column if x] for column in beside]
            out.append(["all" if heads is None else head_dim(*heads), named(n), len(cells[0])]
                       + [shown(stats.geomean(c) if c else None, 3) for c in cells] + [shown(min(cells[0], default=None), 3)])
    return table(["d (heads)", "", "cases", "to the best peer"] + [f"to {named(p)}" for p in peers] + ["least, to the best"], out)


def notes(rows):
    seen = {}
    for row in rows:
        for n, r in row["runs"].items():
            if r.get("note"):
                seen.setdefault((n, r["note"]), []).append(row["name"])
    return [f"- {named(n)}, {len(names)} times: {note}" for (n, note), names in seen.items()]


def lines(rows):
    told = notes(rows)
    return (["Geometric means of the ratios of speeds:", "", means(rows), ""] + [verdict(rows, n) for n in variants(rows)]
            + ([""] + told if told else []))


def packed_lines(rows):
    equal = [(of_dense(row), row["name"]) for row in rows if "ours" + DENSE in row["runs"]]
    return lines(rows) + ["", summed(equal, "Equal lengths, of our dense rate", 0.95)]


KINDS = {"mha": ("As many heads of keys as of queries", cases_table, lines),
         "gqa": ("Heads of queries that share keys", cases_table, lines),
         "packed": ("Sequences of different lengths end to end", packed_table, packed_lines)}


def markdown(doc):
    return markdown_of(doc, KINDS, "bf16; the backward alone, 10 d FLOP for each visible pair")
