"""What decode.py and prompts.py share: their options, and a run over sections of cases, whose document grows case by case."""
import json
import os
import re
import sys
import time

from sections import decode_report
from side_by_side import first_line


def numbers(text):
    return tuple(int(w) for w in text.split(",") if w)


def add_options(p, sections, name):
    """name: of the JSON file, without its ending."""
    p.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(sections)} (default: all)")
    p.add_argument("--only", metavar="REGEX", help="only cases whose name it finds, such as 'b=1,.*d=128'")
    p.add_argument("--seconds", type=float, help="for the whole run: rounds are left out to keep it, then cases")
    p.add_argument("--config", action="append", default=[], metavar="FAMILY:TUNABLE=VALUE,..",
                   help="a config beside what fa_launch chooses; it may leave tunables out; may be given again")
    p.add_argument("--without", action="append", default=[], metavar="NAME", help="leaves a contender out, such as fa2 or 'fa3kv, page 16'")
    p.add_argument("--rounds", type=int, default=25, help="at most (default 25)")
    p.add_argument("--lasts", type=float, default=1e-3, metavar="SECONDS", help="of one graph, at least (default 1e-3)")
    p.add_argument("--seed", type=int, default=1, help="of the data and of the order; lengths have seeds of their own")
    p.add_argument("-o", "--json", help=f"where the results go (default: {name}.json in the folder OUT, where that is set)")
    p.add_argument("--markdown", help="write the tables to this file too")
    p.add_argument("--list", action="store_true", help="print the cases and stop")
    p.add_argument("--replay", metavar="FILE", help="time nothing: the tables of this JSON file")


def read_options(p, argv, sections, name, least=()):
    """least: (option, its least value) beyond those of all."""
    o = p.parse_args(argv)
    if set(o.sections) - set(sections):
        p.error(f"the section is \"{sorted(set(o.sections) - set(sections))[0]}\"; accepted: {', '.join(sections)}")
    o.sections = [s for s in sections if not o.sections or s in o.sections]
    try:
        re.compile(o.only or "")
    except re.error as e:
        p.error(f"--only is \"{o.only}\": {e}; accepted: a regular expression of Python")
    for option, value in (("rounds", 1), ("lasts", 1e-5), *least):
        if getattr(o, option) < value:
            p.error(f"--{option} is {getattr(o, option)}; accepted: {value} and more")
    if not o.json and os.environ.get("OUT"):
        o.json = os.path.join(os.environ["OUT"], f"{name}.json")
    return o


def name_of(section, case):
    return f"{section}: {case.name()}" if case else section


class Run:
    """lab: what the sections work with. measure(lab, options, section, case, seconds): a case's row, or what a section without cases has
    found; it prints the latter itself. tell: a row as a line for the terminal; None: in microseconds."""

    def __init__(self, options, lab, measure, tell=None):
        self.o, self.lab, self.measure, self.tell = options, lab, measure, tell or line
        self.doc = {"schema": 1, "host": lab.machine.described(), "fagen": {"version": lab.fa.version(), "library": lab.fa.path},
                    "peers": lab.about,
                    "protocol": {"rounds": options.rounds, "lasts": options.lasts, "seconds": options.seconds, "seed": options.seed,
                                 "configs": options.config},
                    "clocks": {"before": lab.machine.clocks()}, "sections": {}, "left": [], "failed": []}

    def one(self, section, case, seconds):
        found = self.measure(self.lab, self.o, section, case, seconds)
        if case is None:
            self.doc["sections"][section] = found
        else:
            self.doc["sections"].setdefault(section, []).append(found)
            print(f"{section}: {self.tell(found)}", flush=True)

    def all(self, jobs):
        from sections import decode_lab
        import torch
        begun = time.monotonic()
        torch.manual_seed(self.o.seed)
        self.lab.warm_up()
        with torch.no_grad():
            for n, (section, case) in enumerate(jobs):
                left = None if self.o.seconds is None else self.o.seconds - (time.monotonic() - begun)
                if left is not None and left <= 0:
                    self.doc["left"] += [name_of(s, c) for s, c in jobs[n:]]
                    self.save()
                    break
                try:
                    self.one(section, case, left and left / (len(jobs) - n))
                except decode_lab.Broken as e:
                    self.doc["broken"] = f"{name_of(section, case)}: {e}"
                except Exception as e:  # such as no memory for a case: the others go on
                    self.failed(section, case, e)
                if "broken" not in self.doc:
                    self.lab.tidy()
                self.doc["clocks"]["after"] = self.lab.machine.clocks()
                self.doc["took"] = time.monotonic() - begun
                self.save()
                if "broken" in self.doc:
                    break
        return self.doc

    def failed(self, section, case, error):
        """A case that is no contender's fault; where the device is lost, the run is at its end."""
        from sections import decode_lab
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


def main(options, jobs, run, markdown, wrong):
    """run(): the document of a run. Returns the exit status."""
    if options.list:
        print("\n".join(name_of(s, c) + (f"  {c.dict()['bytes'] / 1e6:.1f} MB" if c else "") for s, c in jobs))
        return 0
    if options.replay:
        with open(options.replay) as f:
            doc = json.load(f)
    else:
        doc = run()
    text = markdown(doc)
    print(text)
    if options.markdown:
        with open(options.markdown, "w") as f:
            f.write(text)
    sys.stdout.flush()
    return 1 if wrong(doc) or any(doc.get(k) for k in ("left", "failed", "broken")) else 0
