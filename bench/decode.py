#!/usr/bin/env python3
"""Decoding beside its peers on one GPU in one run: a few query rows against a long cache, in CUDA graphs, interleaved.

Sections, all of them where none is named:
    table    25 dense cases, L2 warm: every call of a graph reads the same tensors
    cold     the same cases, with so many K and V in turn that the L2 holds none of them
    pages    pages of 16 to 256 tokens and of 1, in shuffled order, beside the same keys and values without pages
    ragged   64 and 256 sequences whose lengths differ, in device memory
    host     the host's time of a hot launch over 80 layers; one graph replayed with other lengths each time
Every output is held against attention in fp32 before its contender is timed, and once more after it. The results go to a JSON file after
each case; the tables are made from it, here or later.

    python3 bench/decode.py --seconds 400 -o decode.json
    python3 bench/decode.py table cold --only 'sq=4|sk=1024'
    python3 bench/decode.py table --only 'sq=1,sk=8192,d=128' --config 'flash_fwd_mma:br=16,bc=64'
    python3 bench/decode.py --replay decode.json       needs neither PyTorch nor a GPU
"""
import argparse
import json
import os
import re
import sys
import time

import decode_cases
import decode_report
from side_by_side import first_line

SECTIONS = ("table", "cold", "pages", "ragged", "host")


def numbers(text):
    return tuple(int(w) for w in text.split(",") if w)


def parse(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)} (default: all)")
    p.add_argument("--only", metavar="REGEX", help="only cases whose name it finds, such as 'b=1,.*d=128'")
    p.add_argument("--seconds", type=float, help="for the whole run: rounds are left out to keep it, then cases")
    p.add_argument("--config", action="append", default=[], metavar="FAMILY:TUNABLE=VALUE,..",
                   help="a config beside what fa_launch chooses; it may leave tunables out; may be given again")
    p.add_argument("--without", action="append", default=[], metavar="NAME", help="leaves a contender out, such as fa2 or 'fa3kv, page 16'")
    p.add_argument("--page", type=numbers, default=decode_cases.PAGE_SIZES, metavar="N,..", help="page sizes of the section pages")
    p.add_argument("--page-cold", action="store_true", help="the section pages with the L2 cold")
    p.add_argument("--rounds", type=int, default=25, help="at most (default 25)")
    p.add_argument("--lasts", type=float, default=1e-3, metavar="SECONDS", help="of one graph, at least (default 1e-3)")
    p.add_argument("--replays", type=int, default=1000, help="of the section host (default 1000)")
    p.add_argument("--seed", type=int, default=1, help="of the data and of the order; lengths have seeds of their own")
    p.add_argument("-o", "--json", help="where the results go (default: decode.json in the folder OUT, where that is set)")
    p.add_argument("--markdown", help="write the tables to this file too")
    p.add_argument("--list", action="store_true", help="print the cases and stop")
    p.add_argument("--replay", metavar="FILE", help="time nothing: the tables of this JSON file")
    o = p.parse_args(argv)
    if set(o.sections) - set(SECTIONS):
        p.error(f"the section is \"{sorted(set(o.sections) - set(SECTIONS))[0]}\"; accepted: {', '.join(SECTIONS)}")
    o.sections = [s for s in SECTIONS if not o.sections or s in o.sections]
    try:
        re.compile(o.only or "")
    except re.error as e:
        p.error(f"--only is \"{o.only}\": {e}; accepted: a regular expression of Python")
    for name, least in (("rounds", 1), ("lasts", 1e-5), ("replays", 1)):
        if getattr(o, name) < least:
            p.error(f"--{name} is {getattr(o, name)}; accepted: {least} and more")
    if not o.page or min(o.page) < 1:
        p.error(f"--page is {o.page}; accepted: numbers of tokens, 1 and more")
    if not o.json and os.environ.get("OUT"):
        o.json = os.path.join(os.environ["OUT"], "decode.json")
    return o


def jobs(options):
    """(section, case) in the order in which they are measured; the case of host is None."""
    cases = {"table": decode_cases.TABLE, "cold": decode_cases.TABLE, "pages": decode_cases.PAGED, "ragged": decode_cases.RAGGED}
    out = [(s, c) for s in options.sections if s in cases for c in decode_cases.select(cases[s], options.only)]
    return out + [("host", None)] * ("host" in options.sections)


def name_of(section, case):
    return f"{section}: {case.name()}" if case else section


class Run:
    """One run: the lab, and the document that grows."""

    def __init__(self, options):
        import decode_lab
        import machine
        self.o, self.machine = options, machine
        self.lab = decode_lab.Lab(options.config, options.without, options.rounds, options.lasts, options.seed)
        self.doc = {"schema": 1, "host": machine.described(), "fagen": {"version": self.lab.fa.version(), "library": self.lab.fa.path},
                    "peers": self.lab.about,
                    "protocol": {"rounds": options.rounds, "lasts": options.lasts, "seconds": options.seconds, "seed": options.seed,
                                 "configs": options.config},
                    "clocks": {"before": machine.clocks()}, "sections": {}, "left": [], "failed": []}

    def one(self, section, case, seconds):
        import decode_host
        import decode_sections
        sections = self.doc["sections"]
        if section == "host":
            sections["host"] = decode_host.host(self.lab, self.o.replays, seconds=seconds)
            print(decode_report.host_text(sections["host"]), flush=True)
            return
        row = {"table": lambda: decode_sections.dense(self.lab, case, seconds),
               "cold": lambda: decode_sections.dense(self.lab, case, seconds, cold=True),
               "pages": lambda: decode_sections.pages(self.lab, case, seconds, self.o.page, self.o.page_cold),
               "ragged": lambda: decode_sections.ragged(self.lab, case, seconds)}[section]()
        sections.setdefault(section, []).append(row)
        print(f"{section}: {line(row)}", flush=True)

    def all(self):
        import decode_lab
        import torch
        import tournament
        torch.manual_seed(self.o.seed)
        begun, some = time.monotonic(), jobs(self.o)
        tournament.warm_up()
        with torch.no_grad():
            for n, (section, case) in enumerate(some):
                left = None if self.o.seconds is None else self.o.seconds - (time.monotonic() - begun)
                if left is not None and left <= 0:
                    self.doc["left"] += [name_of(s, c) for s, c in some[n:]]
                    break
                try:
                    self.one(section, case, left and left / (len(some) - n))
                except decode_lab.Broken as e:
                    self.doc["broken"] = f"{name_of(section, case)}: {e}"
                except Exception as e:  # such as no memory for a case: the others go on
                    self.failed(section, case, e)
                if "broken" not in self.doc:
                    self.lab.tidy()
                self.doc["clocks"]["after"] = self.machine.clocks()
                self.doc["took"] = time.monotonic() - begun
                self.save()
                if "broken" in self.doc:
                    break
        return self.doc

    def failed(self, section, case, error):
        """A case that is no contender's fault; where the device is lost, the run is at its end."""
        import decode_lab
        self.doc["failed"].append(f"{name_of(section, case)}: {type(error).__name__}: {first_line(error)}")
        print(self.doc["failed"][-1], flush=True)
        try:
            self.lab.alive(name_of(section, case))
        except decode_lab.Broken as e:
            self.doc["broken"] = str(e)

    def save(self):
        if self.o.json:
            with open(self.o.json + ".part", "w") as f:
                json.dump(self.doc, f, indent=1)
            os.replace(self.o.json + ".part", self.o.json)


def line(row):
    """One case with all its contenders, for the terminal."""
    words = [row["name"], f"{row['bytes'] / 1e6:.1f} MB"]
    for name, r in row["runs"].items():
        t = decode_report.us(row, name)
        words.append(f"{name} {'WRONG: ' + r['wrong'] if r.get('wrong') else f'{t:.1f} us' if t else '-'}")
    ratio = decode_report.ratio(row)
    words += [f"= {ratio:.3f}"] if ratio else []
    return "  ".join(words + [f"[no {name}: {why[:100]}]" for name, why in row["skipped"].items()])


def main():
    options = parse()
    if options.list:
        print("\n".join(name_of(s, c) + (f"  {c.dict()['bytes'] / 1e6:.1f} MB" if c else "") for s, c in jobs(options)))
        return 0
    if options.replay:
        with open(options.replay) as f:
            doc = json.load(f)
    else:
        doc = Run(options).all()
    text = decode_report.markdown(doc)
    print(text)
    if options.markdown:
        with open(options.markdown, "w") as f:
            f.write(text)
    return 1 if decode_report.wrong(doc) or any(doc.get(k) for k in ("left", "failed", "broken")) else 0


if __name__ == "__main__":
    sys.exit(main())
