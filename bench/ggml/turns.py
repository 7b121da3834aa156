"""Tokens a second of llama-bench's lines (jsonl), each with the key "who" for what ran it: without the library it is "plain".

    python3 bench/ggml/turns.py models.jsonl...

Of each test the median of all samples, the least and the most, and the ratio to "plain": of the medians; of runs that lie in turns, mean
and standard error, by their medians and by the best of each.
"""
import json
import math
import statistics
import sys


def tests(path):
    """Samples of each run, by test and by who ran it."""
    found = {}
    with open(path) as f:
        for line in f:
            try:
                r = json.loads(line)
            except ValueError:
                continue  # of a run that was ended
            what = f"pp{r['n_prompt']}" if r["n_prompt"] else f"tg{r['n_gen']}"
            key = f"{r['model_filename'].split('/')[-1]} {what} @{r['n_depth']} {r['type_k']} fa {r['flash_attn']}"
            found.setdefault(key, {}).setdefault(r["who"], []).append(r["samples_ts"])
    return found


def spread(ratios):
    return f"{statistics.mean(ratios):.4f} +- {statistics.stdev(ratios) / math.sqrt(len(ratios)):.4f}"


def main(paths):
    for path in paths:
        for key, runs in tests(path).items():
            samples = {who: [x for run in r for x in run] for who, r in runs.items()}
            row = [f"{key:34}"]
            for who, x in samples.items():
                row.append(f"{who} {statistics.median(x):.1f} [{min(x):.0f} {max(x):.0f}] {len(x)}")
            for who in samples:
                if who == "plain" or "plain" not in samples:
                    continue
                row.append(f"{who}/plain {statistics.median(samples[who]) / statistics.median(samples['plain']):.4f}")
                pairs = list(zip(runs[who], runs["plain"]))
                if len(pairs) > 2:
                    row.append(f"(turns {spread([statistics.median(a) / statistics.median(b) for a, b in pairs])}, "
                               f"best of each {spread([max(a) / max(b) for a, b in pairs])})")
            print("  ".join(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
