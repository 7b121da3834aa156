"""Nsight Compute: one run of it over a command, and its CSV as {metric: value} per kernel. Knows no fagen."""
import csv
import io
import re
import shutil
import subprocess
import tempfile

SECTIONS = ("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "SchedulerStats", "WarpStateStats", "LaunchStats",
            "Occupancy", "InstructionStats")
# Into base units: seconds, bytes, hertz, plain numbers. ncu scales each value as it likes and names the unit in its second row.
SCALES = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1, "second": 1,
          "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12, "Hz": 1, "hz": 1, "Khz": 1e3, "Mhz": 1e6, "Ghz": 1e9,
          "KHz": 1e3, "MHz": 1e6, "GHz": 1e9}
SCALES.update({"cycle/" + k: 1 / v for k, v in list(SCALES.items()) if "second" in k})
SCALES.update({f"{k}/{s}": v / SCALES[s] for k, v in list(SCALES.items()) if k.endswith("byte") for s in ("second", "s")})
SCALES.update({f"{k}/block": v for k, v in list(SCALES.items()) if k.endswith("byte")})


class Error(RuntimeError):
    pass


def value(text, unit):
    """A number in base units, or the text where it is none."""
    try:
        return float(text.replace(",", "")) * SCALES.get(unit, 1)
    except ValueError:
        return text


def parse(text):
    """[{"kernel", "metrics": {name: value}, "units": {name: unit}}] of the output of ncu --csv, of its raw page (a column per metric)
    or of its details page (a row per metric). What is not CSV around it is skipped."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        told = [line for line in lines if "==ERROR==" in line or "==WARNING==" in line]
        raise Error("no CSV in ncu's output" + (": " + "; ".join(told) if told else ""))
    rows = list(csv.reader(io.StringIO("\n".join(line for line in lines[start:] if line.startswith('"')))))
    head = rows[0]
    at = {name: i for i, name in enumerate(head)}
    if "Metric Name" in at:
        out = {}
        for r in rows[1:]:
            k = out.setdefault(r[at["ID"]], {"kernel": r[at["Kernel Name"]], "metrics": {}, "units": {}})
            name, unit = r[at["Metric Name"]], r[at["Metric Unit"]]
            k["metrics"][name], k["units"][name] = value(r[at["Metric Value"]], unit), unit
        return list(out.values())
    units = rows[1] if len(rows) > 1 and not rows[1][at["ID"]] else [""] * len(head)
    known = [(i, n) for i, n in enumerate(head) if "__" in n]
    return [{"kernel": r[at["Kernel Name"]], "metrics": {n: value(r[i], units[i]) for i, n in known if i < len(r) and r[i] != ""},
             "units": {n: units[i] for i, n in known}} for r in rows[1:] if r[at["ID"]] and len(r) == len(head)]


def known_metrics(ncu):
    """Names without their suffixes of what this ncu can measure on the devices that are here; empty where it does not tell."""
    try:
        run = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return set(re.findall(r"^\s*([a-z0-9]+__[a-z0-9_]+)", run.stdout, re.M))


def profile(command, kernel, metrics, ncu=None, timeout=300):
    """Runs the command under ncu: the first launch of a kernel whose name matches, in as many passes as it takes, clocks left alone.
    Returns (CSV text, metrics that this ncu does not have)."""
    ncu = ncu or shutil.which("ncu")
    if not ncu:
        raise Error("ncu is not on the PATH; --ncu names it")
    known = known_metrics(ncu)
    missing = [m for m in metrics if known and m.split(".")[0] not in known]
    wanted = [m for m in metrics if m not in missing]
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as log:
        call = [ncu, "--csv", "--page", "raw", "--clock-control", "none", "--target-processes", "all", "--kernel-name", kernel,
                "--launch-count", "1", "--log-file", log.name]
        call += [x for s in SECTIONS for x in ("--section", s)] + (["--metrics", ",".join(wanted)] if wanted else [])
        try:
            run = subprocess.run(call + command, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Error(f"ncu: no end after {timeout} s") from None
        text = log.read()
    if '"ID"' not in text:
        raise Error(f"ncu ended with {run.returncode}: " + (text + run.stdout + run.stderr).strip()[-1500:])
    return text, missing
