"""Tables of what prompts.py measured, as Markdown."""
from common import stats
from sections.decode_report import markdown as markdown_of
from sections.decode_report import named, peers_of, shown, us
from common.report import table

NO_SLOWER = 0.97  # ratios below it are listed


def tflops(row, name):
    t = us(row, name)
    return row["flops"] / t / 1e6 if t else None


def form_of(name):
    """', page 16' of 'fa3kv, page 16'; '' of 'fa3kv'."""
    who, comma, rest = name.partition(",")
    return comma + rest


def best_of(row, form):
    """The peer beside whom ours is slowest in this form, or where none takes it, without pages."""
    right = [n for n in stats.peers(row) if us(row, "ours" + form)]
    same = [n for n in right if form_of(n) == form] or [n for n in right if not form_of(n)]
    return min(same, key=lambda n: stats.paired(row, "ours" + form, n)) if same else None


def beside(row, form=""):
    """(best peer, ours beside it), or (None, None)."""
    best = best_of(row, form)
    return best, best and stats.paired(row, "ours" + form, best)


def summed(ratios, what, least, unit="1.00 or more"):
    """One line on (ratio, name); ratios below `least` are listed."""
    good = sorted((r, n) for r, n in ratios if r)
    if not good:
        return f"{what}: no ratio."
    below = [f"{n} ({r:.3f})" for r, n in good if r < least]
    missing = [n for r, n in ratios if not r]
    return (f"{what}: geometric mean of {len(good)} ratios {stats.geomean(r for r, _ in good):.3f}, least {good[0][0]:.3f} ({good[0][1]}), "
            f"{sum(r >= 1 for r, _ in good)} of them {unit}; below {least:.2f}: {', '.join(below) or 'none'}."
            + (f" Without a ratio: {', '.join(missing)}." if missing else ""))


def packed_table(rows):
    peers, out = peers_of(rows), []
    for row in rows:
        best, r = beside(row)
        own = stats.paired(row, "ours", "ours, dense")
        out.append([row["name"], row["sequences"], shown(us(row, "ours")), shown(tflops(row, "ours")), best or "-", shown(r, 3),
                    shown(own, 3)] + [shown(us(row, n)) for n in peers])
    return table(["case", "sequences", "fagen us", "TFLOP/s", "best peer", "ratio", "of our dense rate"]
                 + [f"{named(n)} us" for n in peers], out)


def packed_lines(rows):
    own = [(stats.paired(row, "ours", "ours, dense"), row["name"]) for row in rows if "ours, dense" in row["runs"]]
    return [summed([(beside(row)[1], row["name"]) for row in rows], "fagen beside the best peer", NO_SLOWER),
            summed(own, "Equal lengths, of our dense rate", 0.95)]


def of_forms(rows):
    return [(row, form) for row in rows for form in row["forms"]]


def chunks_table(rows):
    out = []
    for row, form in of_forms(rows):
        best, r = beside(row, form)
        out.append([row["name"], form.strip(", ") or "contiguous", shown(us(row, "ours" + form)), shown(tflops(row, "ours" + form)),
                    named(best) if best else "-", shown(us(row, best), 1) if best else "-", shown(r, 3)])
    return table(["case", "keys", "fagen us", "TFLOP/s", "best peer", "its us", "ratio"], out)


def forms_lines(rows):
    out = []
    for form in dict.fromkeys(form for _, form in of_forms(rows)):
        ratios = [(beside(row, form)[1], row["name"]) for row in rows]
        out.append(summed(ratios, f"fagen beside the best peer, {form.strip(', ') or 'contiguous'}", NO_SLOWER))
    return out + [summed([(beside(row, form)[1], row["name"] + form) for row, form in of_forms(rows)], "All of them", NO_SLOWER)]


def apart(row, form):
    """How many times the two launches apart take as long as the one."""
    return stats.paired(row, "ours" + form, "ours, apart" + form)


def mixed_table(rows):
    out = []
    for row, form in of_forms(rows):
        best, r = beside(row, form)
        whole = apart(row, form)
        out.append([row["name"], form.strip(", ") or "packed", shown(us(row, "ours" + form)), shown(us(row, "ours, apart" + form)),
                    shown(whole and 1 / whole, 3), named(best) if best else "-", shown(r, 3)])
    return table(["case", "keys", "one launch us", "two us", "one / two", "best peer", "ratio"], out)


def mixed_lines(rows):
    """One launch may take 1.05 times the two."""
    return forms_lines(rows) + [summed([(apart(row, form), row["name"] + form) for row, form in of_forms(rows)],
                                       "Time of two launches over that of one", 1 / 1.05)]


def dense_table(rows):
    peers, out = peers_of(rows), []
    for row in rows:
        best, r = beside(row)
        low, high = (best and stats.interval(row, "ours", best)) or (None, None)
        out.append([row["name"], shown(us(row, "ours")), shown(tflops(row, "ours")), best or "-", shown(r, 3),
                    f"{shown(low, 3)} to {shown(high, 3)}"] + [shown(us(row, n)) for n in peers])
    return table(["case", "fagen us", "TFLOP/s", "best peer", "ratio", "95 % interval"] + [f"{named(n)} us" for n in peers], out)


def dense_lines(rows):
    """A ratio is to the best peer of its cell; FlashAttention-3 has a line of its own."""
    below = [f"{row['name']} ({high:.3f})" for row in rows for best in [beside(row)[0]] if best
             for _, high in [stats.interval(row, "ours", best) or (0, 9)] if high < 1]
    of_fa3 = [(stats.paired(row, "ours", "fa3") if "fa3" in stats.peers(row) and us(row, "ours") else None, row["name"]) for row in rows]
    return [summed([(beside(row)[1], row["name"]) for row in rows], "fagen beside the best peer", 1.0),
            summed(of_fa3, "fagen beside FlashAttention-3", 1.0),
            f"Cells whose 95 % interval lies below 1.00: {', '.join(below) or 'none'}."]


def bits_table(rows):
    return table(["sequence", "batches", "with other bits", "relative error", "why not"],
                 [[row["name"], row["batches"], len(row["different"]), f"{row['runs']['ours']['error']:.1e}" if row["runs"] else "-",
                   row["skipped"].get("ours", "")] for row in rows])


def invariant_table(rows):
    return table(["case", "free us", "invariant us", "ratio"],
                 [[row["name"], shown(us(row, "ours")), shown(us(row, "ours, invariant")), shown(slowdown(row), 3)] for row in rows])


def slowdown(row):
    """The free schedule's time over that of the other."""
    return stats.paired(row, "ours, invariant", "ours")


def invariant_lines(rows):
    return [summed([(slowdown(row), row["name"]) for row in rows], "Rate of the invariant schedule over the free one", 0.9)]


KINDS = {"packed": ("Prompts of different lengths end to end", packed_table, packed_lines),
         "chunks": ("Chunks of prompts after cached prefixes", chunks_table, forms_lines),
         "mixed": ("Chunks beside the tokens of others", mixed_table, mixed_lines),
         "dense": ("Dense batches of lengths that are no power of two", dense_table, dense_lines),
         "bits": ("One sequence in many batches, with the flag that asks for the same bits", bits_table, None),
         "invariant": ("What that flag costs on decode.py's table", invariant_table, invariant_lines)}


def markdown(doc):
    return markdown_of(doc, KINDS, "bf16, causal but for dense")
