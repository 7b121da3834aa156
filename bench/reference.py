#!/usr/bin/env python3
"""The reference times that the command ships: of a tuning's records and its report, one row for each config of each problem.

    FAGEN_CACHE_DIR=CACHE fagen tune --grid default --json > tune.json
    python3 bench/reference.py --product 'H200 SXM' CACHE tune.json > cli/explore/reference/h200.tsv
The records tell in which order the search tried the configs. The report tells each time at one clock (its `level`): a config that left early was
timed before the chip was warm. What did not run, or was not verified, is left out. cli/explore/reference.h tells the format. --product is the chip's
name in the table of `fagen`.
"""
import argparse
import json
import pathlib
import sys

CHIP = ("chip", "arch", "version", "compiler", "driver")
HEAD = "# fagen reference times 1; made by bench/reference.py"


def number(x, digits=5):
    return f"{x:.{digits}g}" if x else ""


def read(lines, report):
    """{problem: {config: record}}, in the order of the first record of each, with the newest one's values and the report's level."""
    levels = {(p["problem"], c["recorded"]): c["level"] for p in report["problems"] for c in p["candidates"] if c["verified"] and c.get("level")}
    problems = {}
    for line in lines:
        r = json.loads(line)
        level = levels.get((r["problem"], r["config"]))
        if level and r["how"] == "measured" and r["outcome"] == "ok" and r["verified"]:
            problems.setdefault(r["problem"], {})[r["config"]] = dict(r, seconds=level)
    return problems


def cells(record, qualities):
    us = lambda name: number(1e6 * record.get(name, 0))
    return [us("seconds"), us("low"), us("high"), us("warm"), number(record["spread"], 3), str(record["count"]), str(record.get("clock_mhz", "")),
            str(record.get("temperature", "")), str(record["regs"]), str(qualities.index(record.get("quality", "")))]


def table(product, problems):
    records = [r for configs in problems.values() for r in configs.values()]
    for name in CHIP:
        if len({r[name] for r in records}) != 1:
            raise SystemExit(f"the records differ in {name}: {sorted({r[name] for r in records})}; accepted: those of one chip, tuned once")
    qualities = [""] + sorted({r.get("quality", "") for r in records} - {""})
    yield HEAD
    yield f"product\t{product}"
    for name in CHIP:
        yield f"{name}\t{records[0][name]}"
    yield "quality\t" + " ".join(qualities[1:])
    tunables = None
    for problem, configs in problems.items():
        yield f"problem\t{problem}\t{max(r['date'] for r in configs.values())}"
        for config, record in configs.items():
            family, _, values = config.partition(":")
            pairs = [v.split("=") for v in values.split(",")]
            if tunables != (family, [name for name, _ in pairs]):
                tunables = family, [name for name, _ in pairs]
                yield f"family\t{family}\t" + " ".join(tunables[1])
            yield "\t".join([" ".join(value for _, value in pairs)] + cells(record, qualities))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--product", required=True, help="the chip's name in fagen's table, as `fagen explore --arch` prints it")
    arguments.add_argument("cache", type=pathlib.Path, help="the folder that FAGEN_CACHE_DIR named")
    arguments.add_argument("report", type=pathlib.Path, help="what `fagen tune --json` wrote")
    a = arguments.parse_args()
    files = sorted(a.cache.glob("v1/records/*/*.jsonl"))
    if not files:
        raise SystemExit(f"no records below {a.cache}/v1/records")
    lines = (line for file in files for line in file.open(encoding="utf-8"))
    problems = read(lines, json.loads(a.report.read_text(encoding="utf-8")))
    sys.stdout.write("".join(line + "\n" for line in table(a.product, problems)))


if __name__ == "__main__":
    main()
