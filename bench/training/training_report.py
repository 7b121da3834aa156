"""Tables and the verdict of what training_step.py measured. Knows no GPU."""
import math
import statistics

from common.report import table

NAMES = {"fagen": "fagen", "fagen, deterministic": "fagen, deterministic", "sdpa": "PyTorch's choice", "flash": "PyTorch, FlashAttention-2",
         "cudnn": "PyTorch, cuDNN"}
CLOSE = 1.25     # how much larger an error of fagen may be beside that of a peer, at any gradient
ACCURATE = 0.2   # relative error of any gradient, beyond which it is wrong: bf16 through all layers costs some hundredths


def milliseconds(row):
    return f"{1e3 * statistics.median(row['seconds']):.2f}" if row.get("seconds") else "-"


def beside(doc, name, other):
    """The other's time over that of the first: the median over the rounds of that within a round. None where one did not run."""
    a, b = (doc["steps"].get(n, {}).get("seconds") for n in (name, other))
    return statistics.median(y / x for x, y in zip(a, b)) if a and b else None


def shown(x, form):
    return "-" if x is None else format(x, form)


def steps_table(doc):
    rows = []
    for name, r in doc["steps"].items():
        inside = statistics.median(r["attention"]) if r.get("attention") else None
        share = statistics.median(a / w for a, w in zip(r["attention"], r["marked"])) if inside else None
        rate = doc["flops"]["step"] / statistics.median(r["seconds"]) / 1e12 if r.get("seconds") else None
        rows.append([NAMES.get(name, name), milliseconds(r), shown(beside(doc, "fagen", name), ".3f"), shown(rate, ".0f"),
                     shown(inside and 1e3 * inside, ".2f"), shown(share and 100 * share, ".1f")])
    return table(["attention by", "step ms", "over fagen's", "TFLOP/s of the step", "attention in it ms", "share %"], rows)


def family(name):
    """'layers.3.q.weight' -> 'q': gradients of a kind, one in each layer."""
    parts = name.split(".")
    return parts[2] if parts[0] == "layers" else parts[0]


def errors_table(errors):
    """A line per kind of tensor, each with the largest error in any layer."""
    names = list(errors)
    kinds = list(dict.fromkeys(family(t) for n in names for t in errors[n]))
    return table(["gradient of"] + [NAMES.get(n, n) for n in names],
                 [[kind] + [f"{max(e for t, e in errors[n].items() if family(t) == kind):.3e}" for n in names] for kind in kinds])


def closeness(errors, name, peer):
    """(largest ratio of the errors of the two, the tensor where it is)."""
    def ratio(tensor):
        mine, theirs = errors[name][tensor], errors[peer][tensor]
        return mine / theirs if theirs > 0 and math.isfinite(mine) else 1.0 if mine == theirs else math.inf
    worst = max(errors[name], key=ratio)
    return ratio(worst), worst


def verdicts(doc):
    """(whether all is well, lines)."""
    good, lines = True, []
    for way, errors in doc["errors"].items():
        for name in (n for n in errors if n.startswith("fagen")):
            largest = max(errors[name], key=errors[name].get)
            if not errors[name][largest] < ACCURATE:
                good = False
                lines.append(f"{NAMES[name]}, {way}: WRONG: relative error {errors[name][largest]:.2e} of the gradient of {largest}, "
                             f"accepted below {ACCURATE:g}")
            for peer in (n for n in errors if not n.startswith("fagen")):
                ratio, where = closeness(errors, name, peer)
                good = good and ratio <= CLOSE
                words = "as close as" if ratio <= CLOSE else "NOT AS CLOSE as"
                lines.append(f"{NAMES[name]}, {way}: {words} {NAMES.get(peer, peer)}: at most {ratio:.3f} times its error ({where}), "
                             f"accepted up to {CLOSE:g}")
    return good, lines


def failures(doc):
    """What ends a run with 1: fagen that did not run, a wrong gradient, no peer beside it."""
    out = [f"{n} did not run: {why}" for n, why in doc["skipped"].items() if n.startswith("fagen")]
    good, lines = verdicts(doc)
    out += [] if good else [line for line in lines if "WRONG" in line or "NOT AS" in line]
    if not any(not n.startswith("fagen") for n in doc["steps"]):
        out.append("no peer ran")
    return out


def text(doc):
    shape, small, host = doc["shape"], doc["accuracy"], doc["host"]
    rounds = max((len(r.get("seconds", ())) for r in doc["steps"].values()), default=0)
    out = [f"{host.get('device')} (driver {host.get('driver')}), PyTorch {host.get('torch')}, cuDNN {host.get('cudnn')}, "
           f"{host.get('date')}.",
           f"A step: forward and backward of {shape['layers']} layers in bf16, hidden {shape['hidden']}, heads "
           f"{shape['hq']}/{shape['hkv']} of d = {shape['d']}, SwiGLU {shape['inner']}, {shape['tokens']} tokens, batch 1, causal; "
           "without embedding, head and optimizer.",
           f"Medians of {rounds} rounds in random order; attention is timed within steps of its own, with what brings K and V into a "
           "backend's form.", "", steps_table(doc), ""]
    out += [f"- {NAMES.get(n, n)}: {r['note']}" for n, r in doc["steps"].items() if r.get("note")]
    out += [f"- Without {NAMES.get(n, n)}: {why}" for n, why in doc["skipped"].items()]
    for way, errors in doc["errors"].items():
        about = (f"{small['layers']} layers, hidden {small['hidden']}, heads {small['hq']}/{small['hkv']} of d = {small['d']}, "
                 f"{small['tokens']} tokens")
        out += ["", f"Largest relative error of a gradient, {doc['ways'][way]}; {about}, against fp64:", "", errors_table(errors)]
    out += [""] + verdicts(doc)[1] + ["", f"The run took {doc['took']:.0f} s."]
    return "\n".join(out)
