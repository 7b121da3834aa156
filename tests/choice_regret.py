#!/usr/bin/env python3
"""What fa_choose() takes on recordings of races on an H100 and an H200, against the best that each of them measured.

    tests/choice_regret.py FAGEN-DEV bench/recordings
    tests/choice_regret.py --pooled tuned_choice,tuned_again FAGEN-DEV bench/recordings

A shape counts where what is chosen for it was raced. The bars are a little above what the model gives; a change that exceeds one makes the
choice worse off the grid, and is measured again before the bar is.
"""
import json
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile

# The chip, recordings of it, and the regret in percent that is allowed: the mean, the 90th percentile, the most; and the shapes that must
# count.
KINDS = (
    ("forward", "h100", ("h100_forward_41", "h100_off_grid"), (1.5, 5.0, 17.0), 55),
    ("groups of heads", "h100", ("h100_gqa_41",), (0.8, 2.5, 9.5), 33),
    ("few queries", "h100", ("h100_few_queries", "h100_few_queries_moved", "h100_tuned_few_1", "h100_tuned_few_2", "h100_tuned_few_3",
                             "h100_verify"),
     (2.2, 6.5, 19.0), 65),
    ("unequal lengths", "h100", ("h100_unequal_lengths", "h100_unequal_lengths_moved"), (4.7, 11.5, 18.0), 46),
    ("all of these, another seed", "h100", ("h100_choice_38", "h100_choice_38_moved"), (3.5, 11.0, 18.0), 39),
    ("two more seeds", "h100", ("h100_choice_51", "h100_few_queries_52", "h100_unequal_lengths_52", "h100_choice_52_moved", "h100_rounds",
                                "h100_cut_small"), (2.7, 8.5, 24.0), 89),
    ("few queries, a fourth seed", "h100", ("h100_few_queries_71",), (2.0, 5.0, 15.0), 23),
    ("unequal lengths, that seed", "h100", ("h100_unequal_lengths_71", "h100_turns_112"), (1.9, 9.0, 12.0), 35),
    ("few queries, a fifth seed", "h100", ("h100_few_queries_72",), (3.4, 11.0, 25.5), 31),
    ("unequal lengths, that seed", "h100", ("h100_unequal_lengths_72",), (3.6, 12.5, 14.0), 14),
    ("few queries, a sixth seed", "h100", ("h100_few_queries_97",), (1.5, 6.0, 10.5), 31),
    ("unequal lengths, that seed", "h100", ("h100_unequal_lengths_97",), (2.4, 6.0, 23.0), 43),
    ("few queries, that seed", "h200", ("h200_few_queries_97",), (1.7, 8.5, 13.5), 35),
    ("unequal lengths, that seed", "h200", ("h200_unequal_lengths_97",), (1.5, 4.0, 21.5), 39),
    ("few queries, seed 311", "h200", ("h200_few_queries_311",), (1.6, 6.0, 13.5), 81),
    ("unequal lengths, seed 312", "h200", ("h200_unequal_lengths_312",), (1.7, 6.5, 18.5), 76),
    ("what prices of tiles after the first moved", "h200", ("h200_choice_moved_314",), (4.0, 10.7, 14.2), 10),
    ("cut tiles alone on their SMs", "h200", ("h200_cut_alone",), (1.6, 3.5, 3.5), 3),
    ("few queries and unequal lengths, two candidates each", "h200", ("h200_choice_203",), (1.0, 3.0, 14.5), 118),
    ("beside a full tuning", "h100", ("h100_tuned_choice_113",), (4.4, 10.0, 10.5), 6),
    ("beside another", "h100", ("h100_tuned_choice_131",), (6.9, 23.0, 23.0), 9),
    ("beside another, held out", "h100", ("h100_tuned_choice_131_held",), (8.0, 18.0, 17.5), 3),
    ("what more starts moved", "h100", ("h100_choice_moved_131",), (1.6, 5.5, 13.0), 69),
    ("a third full tuning", "h100", ("h100_tuned_choice_167",), (3.1, 6.0, 6.0), 7),
    ("what buffers, boxes and turns moved", "h100", ("h100_choice_moved_167",), (1.9, 6.5, 34.5), 116),
    ("that tuning, held out", "h100", ("h100_tuned_choice_167_more",), (8.1, 16.5, 15.5), 8),
    ("what the last prices moved", "h100", ("h100_choice_moved_181",), (2.4, 8.5, 25.5), 111),
    ("few queries: those that lost most, each tuned", "h100", ("h100_tuned_few_worst",), (9.3, 17.5, 17.0), 5),
    ("of all that were tuned in full those whose choice moved since, beside the best three of their tunings", "h100",
     ("h100_tuned_again",), (5.3, 12.0, 16.5), 32),
    ("a fourth full tuning", "h100", ("h100_tuned_choice_331",), (8.5, 10.0, 10.0), 3),
    ("a full tuning on an H200", "h200", ("h200_tuned_choice_332",), (10.5, 16.0, 16.0), 6),
    ("full tunings on H200s, seed 341", "h200", ("h200_tuned_choice_341",), (4.8, 11.5, 13.0), 19),
    ("seed 342", "h200", ("h200_tuned_choice_342",), (6.0, 11.0, 27.5), 16),
    ("seed 343", "h200", ("h200_tuned_choice_343",), (4.8, 8.0, 12.0), 13),
    ("the last round cut under a long diagonal", "h200", ("h200_long_diagonal",), (1.2, 2.5, 11.5), 14),
    ("few queries and unequal lengths, seeds 341, 342, 371, 372, 381, 382", "h200", ("h200_few_unequal_341_382",), (0.7, 2.0, 13.5), 309),
    ("the grid llm-verify, which has rows of ten", "h200", ("h200_llm_verify",), (1.8, 3.5, 7.8), 24),
    ("what a winner's smaller fame moved", "h200", ("h200_choice_fame",), (3.6, 16.5, 16.5), 15),
    ("cut tiles that keep their maximum: the worst of the sets above, and rows that ship", "h100", ("h100_cut_steady_rows",),
     (4.0, 15.5, 23.5), 29),
    ("whose last round is cut", "h100", ("h100_last_round",), (1.3, 6.5, 12.0), 26),
    ("few queries and others: those that lost to a peer on an H100", "h200", ("h200_few_lost", "h200_few_bytes"), (4.3, 12.0, 14.5), 81),
    ("few queries and unequal lengths, seeds 263 and 264", "h100", ("h100_choice_263",), (0.9, 3.5, 18.0), 153),
    ("what bytes under way moved", "h200", ("h200_few_moved",), (1.5, 5.0, 12.0), 98),
    ("what buckets as their longest shape moved, and the worst of the sets above", "h200", ("h200_choice_moved_315",),
     (6.1, 18.0, 25.0), 46),
    ("gradients", "h100", ("h100_gradients_choice_41", "h100_gradients_choice_43", "h100_gradients_spread_41"), (1.7, 5.0, 12.5), 76),
    ("gradients of long rows", "h100", ("h100_gradients_long_rows",), (1.3, 6.5, 7.0), 17),
    ("gradients, and of packed sequences, seed 301", "h100", ("h100_gradients_301",), (1.8, 4.5, 25.5), 75),
    ("gradients, seeds 601 to 604, packed ones and groups", "h100", ("h100_gradients_601",), (1.0, 3.0, 12.5), 42),
    ("gradients, seeds 701 to 704", "h100", ("h100_gradients_701",), (1.8, 4.5, 24.0), 48),
    ("gradients, those seeds", "h200", ("h200_gradients_701", "h200_gradients_again_701"), (2.4, 8.0, 27.0), 43),
    ("gradients of long rows", "h200", ("h200_gradients_long_rows",), (1.2, 3.0, 3.0), 11),
    ("gradients: short ones, and groups in slices", "h200", ("h200_gradients_groups", "h200_gradients_again"), (3.1, 9.5, 52.0), 175),
    ("gradients: short ones without groups, and what prices and rows of an H200 moved", "h200",
     ("h200_gradients_short", "h200_gradients_moved"), (2.9, 9.0, 40.0), 234),
    ("of these sets what tiles that are few moved, raced again", "h200", ("h200_gradients_few_again",), (0.9, 2.0, 10.5), 22),
    ("gradients of few tiles without a mask, and others that rows of these moved", "h200",
     ("h200_gradients_few_tiles", "h200_gradients_few_drawn"), (2.0, 6.5, 27.0), 368),
    ("what the missing terms moved", "h200", ("h200_model_races",), (2.3, 10.0, 12.5), 17),
    ("few rows, small shapes, lost ones", "h200", ("h200_choice_83",), (3.7, 9.5, 25.5), 46),
)


# The last of an H200's: shapes of the sets of gradients above that choose a config since which was not timed there, beside what was chosen
# before; they count there alone.
# Raced again by the kernels of today, in an order that each round draws: what was raced of these shapes before does not count. Before, the
# order was one and its reverse, so that of launches of some ms one contender always had FlashAttention-2 before it and 0.83 of its time
# (docs/experiments/choice.md#a-bucket-as-its-longest-shape-the-last-of-two-blocks-alone-and-an-order-that-favoured).
AGAIN = {"h200": ("h200_choice_moved_315", "h200_gradients_few_again"), "h100": ("h100_tuned_choice_167", "h100_tuned_again")}

# What starts have since the recordings were made, by text of a config, and what was timed in its place: rows that keep their maximum, of
# which cut tiles take 0.83 to 0.99 of the time, the bars are of that; O by
# TMA from a buffer of its own, which took 0.98 to 0.99 of the time; one buffer of Q in the place of two, of tiles of 64 rows; and gradients
# that keep K alone in registers, with S and dP of the next block before dK and dQ.
LATER = (
    (r"rescale=[23],exp=\d+", "rescale=4,exp=0"),
    (r"(flash_.*)q_bufs=1,grid=2,ahead=0,(.*)o_path=0", r"\1q_bufs=1,grid=2,ahead=0,\2o_path=2"),
    (r"(:br=64,.*)q_bufs=2,grid=2,ahead=1,(.*)o_path=0", r"\1q_bufs=1,grid=2,ahead=0,\2o_path=2"),
    (r"(flash_bwd_wgmma:.*)held=2,(schedule=(?:0|plain),box=64,stages=4,dq=(?:1|add),ds_bufs=3)", r"\1held=1,\2"),
)


# Recordings since cut tiles of wgmma ask for so much shared memory that no more blocks come to an SM than are meant for one. Of those
# before a time does not count where two blocks found room: 64 rows, one block to an SM, in 128 registers and half of the shared memory.
ALONE = ("h200_few_queries_311", "h200_unequal_lengths_312", "h200_cut_alone", "h200_choice_moved_314", "h200_choice_moved_315")

# By keys of a block the most columns of such tiles with 128 registers, without a mask and under a diagonal: as NVRTC 13.0 compiles them, d =
# 56 to 112 by eights and 48, 64 and 80 keys (`fagen emit --format cubin --json`).
ROOM = {48: (96, 104), 64: (72, 88), 80: (0, 56)}


def crowded(problem, config):
    if not config.startswith("split_wgmma:br=64,ctas=1,"):
        return False
    d, keys = (int(re.search(rf"[,:]{word}=(\d+)", at).group(1)) for word, at in (("d", problem), ("bc", config)))
    return keys in ROOM and d <= ROOM[keys]["mask=causal" in problem]


def as_today(name, recording):
    """A config that differs in what is younger alone counts as the one that was timed. On paper both cost the same, or the younger less."""
    shapes = recording if isinstance(recording, list) else [x for rows in recording.values() if isinstance(rows, list) for x in rows]
    for shape in (x for x in shapes if isinstance(x, dict) and "variants" in x):
        if name not in ALONE:
            shape["variants"] = [v for v in shape["variants"] if not crowded(shape["problem"], v.get("config", ""))]
        timed = {v.get("config") for v in shape["variants"]}
        for old, new in LATER:
            for v in list(shape["variants"]):
                twin = re.sub(old, new, v.get("config", ""))
                if twin.startswith(("flash_fwd_wgmma:", "flash_bwd_wgmma:", "split_wgmma:")) and twin not in timed and not timed.add(twin):
                    shape["variants"].append({**v, "config": twin})
    return recording


def read(folder, name):
    return json.loads(lzma.open(pathlib.Path(folder) / f"{name}.json.xz").read())


def raced_again(folder, arch, names):
    """The problems that count in another recording alone."""
    again = [n for n in AGAIN.get(arch, ()) if n not in names]
    return {shape["problem"] for n in again for shape in read(folder, n)}


def regrets(dev, arch, folder, names, where):
    paths, again = [], raced_again(folder, arch, names)
    for name in names:
        path = pathlib.Path(where) / f"{name}.json"
        path.write_text(json.dumps(as_today(name, read(folder, name))))
        paths.append(str(path))
    out = subprocess.run([dev, "judge", "--arch", arch, "--json", *paths], stdout=subprocess.PIPE, check=True).stdout
    return sorted(100 * v["regret"] for v in json.loads(out)["verdicts"] if v["place"] == 0 and v["problem"] not in again)


def summary(r):
    return (sum(r) / max(len(r), 1), r[len(r) - 1 - len(r) // 10] if r else 0, r[-1] if r else 0)


def pooled(words, dev, folder):
    """One line of all sets with a recording whose name has one of the words."""
    r = []
    with tempfile.TemporaryDirectory() as where:
        for _, arch, names, _, _ in KINDS:
            if any(word in name for word in words.split(",") for name in names):
                r += regrets(dev, arch, folder, names, where)
    print("%d shapes, regret %.1f, %.1f, %.1f %%" % (len(r), *summary(sorted(r))))


def main(dev, folder):
    failed = 0
    with tempfile.TemporaryDirectory() as where:
        for kind, arch, names, bars, least in KINDS:
            r = regrets(dev, arch, folder, names, where)
            got = summary(r)
            bad = len(r) < least or any(g > b for g, b in zip(got, bars))
            failed += bad
            print("%s: %d shapes (at least %d), regret %s %%, allowed %s%s" % (
                kind, len(r), least, ", ".join("%.1f" % g for g in got), ", ".join("%.1f" % b for b in bars), ": too much" if bad else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(pooled(*sys.argv[2:]) if sys.argv[1:2] == ["--pooled"] else main(*sys.argv[1:]))
