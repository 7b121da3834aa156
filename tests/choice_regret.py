#!/usr/bin/env python3
"""What fa_choose() takes on recordings of races on an H100 and an H200, against the best that each of them measured.

    tests/choice_regret.py FAGEN-DEV bench/recordings

A shape counts where what is chosen for it was raced. The bars are a little above what the model gives; a change that exceeds one makes the
choice worse off the grid, and is measured again before the bar is.
"""
import json
import lzma
import pathlib
import subprocess
import sys
import tempfile

# The chip, recordings of it, and the regret in percent that is allowed: the mean, the 90th percentile, the most; and the shapes that must
# count.
KINDS = (
    ("forward", "h100", ("h100_forward_41", "h100_off_grid"), (1.5, 4.5, 21.0), 85),
    ("groups of heads", "h100", ("h100_gqa_41",), (1.1, 2.9, 11.0), 75),
    ("few queries", "h100", ("h100_few_queries", "h100_few_queries_moved", "h100_tuned_few_1", "h100_tuned_few_2", "h100_tuned_few_3", "h100_verify"),
     (4.0, 12.0, 29.0), 98),
    ("unequal lengths", "h100", ("h100_unequal_lengths", "h100_unequal_lengths_moved"), (4.0, 11.0, 27.0), 90),
    ("all of these, another seed", "h100", ("h100_choice_38", "h100_choice_38_moved"), (3.0, 9.0, 18.0), 50),
    ("two more seeds", "h100", ("h100_choice_51", "h100_few_queries_52", "h100_unequal_lengths_52", "h100_choice_52_moved", "h100_rounds",
                                "h100_cut_small"), (3.6, 11.5, 30.0), 170),
    ("few queries, a fourth seed", "h100", ("h100_few_queries_71",), (3.6, 12.5, 20.0), 56),
    ("unequal lengths, that seed", "h100", ("h100_unequal_lengths_71", "h100_turns_112"), (2.4, 8.0, 19.0), 58),
    ("few queries, a fifth seed", "h100", ("h100_few_queries_72",), (3.8, 11.0, 30.0), 60),
    ("unequal lengths, that seed", "h100", ("h100_unequal_lengths_72",), (3.2, 12.5, 23.0), 62),
    ("few queries, a sixth seed", "h100", ("h100_few_queries_97",), (3.4, 12.0, 22.0), 95),
    ("unequal lengths, that seed", "h100", ("h100_unequal_lengths_97",), (3.0, 11.0, 25.0), 95),
    ("few queries, that seed", "h200", ("h200_few_queries_97",), (2.8, 9.0, 28.0), 95),
    ("unequal lengths, that seed", "h200", ("h200_unequal_lengths_97",), (1.8, 5.5, 20.0), 95),
    ("beside a full tuning", "h100", ("h100_tuned_choice_113",), (8.8, 21.0, 22.0), 15),
    ("gradients", "h100", ("h100_gradients_choice_41", "h100_gradients_choice_43", "h100_gradients_spread_41"), (2.0, 5.3, 13.0), 78),
    ("gradients of long rows", "h100", ("h100_gradients_long_rows",), (5.0, 15.5, 39.0), 20),
    ("gradients of long rows", "h200", ("h200_gradients_long_rows",), (3.8, 8.5, 28.0), 12),
    ("what the missing terms moved", "h200", ("h200_model_races",), (4.1, 11.7, 22.0), 28),
    ("few rows, small shapes, lost ones", "h200", ("h200_choice_83",), (6.0, 17.5, 75.0), 85),
)


def regrets(dev, arch, folder, names, where):
    paths = []
    for name in names:
        path = pathlib.Path(where) / f"{name}.json"
        path.write_bytes(lzma.open(pathlib.Path(folder) / f"{name}.json.xz").read())
        paths.append(str(path))
    out = subprocess.run([dev, "judge", "--arch", arch, "--json", *paths], stdout=subprocess.PIPE, check=True).stdout
    return sorted(100 * v["regret"] for v in json.loads(out)["verdicts"] if v["place"] == 0)


def main(dev, folder):
    failed = 0
    with tempfile.TemporaryDirectory() as where:
        for kind, arch, names, bars, least in KINDS:
            r = regrets(dev, arch, folder, names, where)
            got = (sum(r) / max(len(r), 1), r[len(r) - 1 - len(r) // 10] if r else 0, r[-1] if r else 0)
            bad = len(r) < least or any(g > b for g, b in zip(got, bars))
            failed += bad
            print("%s: %d shapes (at least %d), regret %s %%, allowed %s%s" % (
                kind, len(r), least, ", ".join("%.1f" % g for g in got), ", ".join("%.1f" % b for b in bars), ": too much" if bad else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
