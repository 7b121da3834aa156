#!/usr/bin/env python3
"""The page of `fagen explore` in a real browser: explore_page.py FAGEN WORK. Exit 77: there is no browser."""
import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from browser import Browser, missing

PROBLEM = ["-d", "128", "--causal", "-n", "1024", "--heads", "4", "--arch", "sm_80", "--family", "flash_fwd_mma"]
CACHE = ["-d", "64", "--sq", "1", "--sk", "4096", "--batch", "8", "--heads", "32", "--kv-heads", "8", "--page", "16", "--arch", "h200",
         "--family", "decode_wgmma"]
CHIP = "Chip </script><b>A"
failures = 0


def check(holds, what):
    global failures
    if not holds:
        failures += 1
        print("FAIL", what)


def wait(condition, what):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    check(False, what + ": never")
    return None


def fagen(command, *words, cache, problem=PROBLEM):
    environment = dict(os.environ, FAGEN_CACHE_DIR=str(cache))
    return subprocess.run([command, "explore", *problem, "-q", *words], env=environment, check=True, capture_output=True).stdout


def keep_records(cache, document, rows, weak, wrong):
    """Measured times of some configs, as the tuner leaves them; the shortest, of `weak`, of few samples; and `wrong`, which failed."""
    folder = cache / "v1" / "records" / "chip"
    folder.mkdir(parents=True, mode=0o700)
    for path in (cache, cache / "v1", cache / "v1" / "records"):
        path.chmod(0o700)
    shape = "bf16,d=128,dv=128,mask=causal,o=bf16,align=16"
    with open(folder / (shape + ".jsonl"), "w", encoding="utf-8") as file:
        for i, row in enumerate([*rows, weak, wrong]):
            record = {"problem": shape + ",b=1,hq=4,hkv=4,sq=1024,sk=1024", "config": recorded(document, row["config"]), "outcome": "wrong" if row is wrong else "ok", "how": "measured",
                      "seconds": 0 if row is wrong else (100 - i) * 1e-6, "quality": "few-samples" if row is weak else "steady", "spread": 0.004, "count": 31, "regs": 200, "spills": 0, "smem": int(row["smem"]), "verified": True,
                      "chip": CHIP, "arch": "sm_80", "why": "", "version": "test", "compiler": "nvrtc", "driver": "cuda",
                      "date": f"2026-01-01T00:00:{i:02}Z", "source": "0" * 32}
            file.write(json.dumps(record) + "\n")


def tunables(row):
    fields = (field.split("=") for field in row["config"].split(":")[1].split(","))
    return {name: int(value) if value.lstrip("-").isdigit() else value for name, value in fields}


def recorded(document, config):
    """The config with numbers for all values, as records have it."""
    family, values = config.split(":")
    tunables = {t["name"]: t for f in document["families"] if f["name"] == family for t in f["tunables"]}
    number = lambda name, value: tunables[name]["values"][tunables[name]["names"].index(value)] if value in tunables[name]["names"] else value
    return family + ":" + ",".join(f"{name}={number(name, value)}" for name, value in (field.split("=") for field in values.split(",")))


def place(tile):
    """Row and column of the map."""
    return [16, 32, 64, 128, 256].index(tile[0]), [16, 32, 48, 64, 80, 96, 112, 128].index(tile[1])


def best_of_tiles(rows, column, **held):
    best = {}
    for row in rows:
        values = tunables(row)
        if row[column] and row["rejected"] != "yes" and all(values[name] == value for name, value in held.items()):
            tile = values["br"], values["bc"]
            best[tile] = min(best.get(tile, float("inf")), float(row[column]))
    return best


CELLS = """const heads = [...document.querySelectorAll('[role=columnheader].head')].map((e) => e.textContent);
return [...document.querySelectorAll('#grid [role=row]')].slice(1).flatMap((row) => [...row.querySelectorAll('.cell')].map((cell, x) =>
  ({ br: Number(row.querySelector('[role=rowheader]').textContent), bc: Number(heads[x]), text: (cell.querySelector('.value') ?? {}).textContent,
     why: cell.querySelector('.why')?.textContent.replaceAll('\u00ad', ''), label: cell.getAttribute('aria-label'), ink: getComputedStyle(cell).color,
     ground: getComputedStyle(cell).backgroundColor })));"""
TIP = "const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent;"


def luminance(color):
    channels = [int(v) / 255 for v in color[color.index("(") + 1:-1].replace(",", " ").split()[:3]]
    r, g, b = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in channels]
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def check_map(browser, best, what):
    cells = browser.js(CELLS)
    check({(c["br"], c["bc"]) for c in cells if c["text"]} == set(best), what + ": the tiles with a value")
    for cell in cells:
        tile = cell["br"], cell["bc"]
        check(cell["label"].startswith(f"B_r = {tile[0]}, B_c = {tile[1]}: "), f"{what}: label of {tile}: {cell['label']}")
        if tile in best:
            check(abs(float(cell["text"]) / best[tile] - 1) < 0.006, f"{what}: {tile} says {cell['text']}, not {best[tile]}")
            check(contrast(cell["ink"], cell["ground"]) >= 4.5, f"{what}: {tile}: too little contrast")
        else:
            check(cell["why"], f"{what}: {tile} has no value and does not say why")


def check_model_page(browser, url, rows, text, document, downloads):
    browser.open(url)
    check(browser.js("return performance.getEntriesByType('resource').length") == 0, "the page fetches something")
    best = best_of_tiles(rows, "model_us")
    check_map(browser, best, "time")

    # The mouse: a tooltip of the cell under it, and none beside the map.
    browser.hover(".cell[data-y='2'][data-x='3']")
    tip = browser.js(TIP)
    check(tip.startswith("Br = 64, Bc = 64") and "TFLOP/s" in tip and "bytes" in tip, "tooltip under the mouse: " + tip)
    y, x = place(min(best, key=best.get))
    browser.hover(f".cell[data-y='{y}'][data-x='{x}']")
    check("as the model has; 0 bank conflicts" in browser.js(TIP), "counters of the best tile: " + browser.js(TIP))
    browser.hover("h1")
    check(browser.js(TIP) == "", "the tooltip stays when the mouse is gone")
    pruned = next(c for c in browser.js(CELLS) if "pruned" in c["label"])
    y, x = place((pruned["br"], pruned["bc"]))
    browser.hover(f".cell[data-y='{y}'][data-x='{x}']")
    tip = browser.js(TIP)
    check(pruned["why"] in tip and ">" in tip, "tooltip of a pruned tile: " + tip)

    # Layers by the mouse.
    names = {"tflops": ("model_tflops", max), "smem": ("smem", None), "regs": ("regs", None), "occupancy": ("occupancy", None), "bytes": ("bytes", None),
             "counted": None, "conflicts": None, "fits": None}
    before = [c["label"] for c in browser.js(CELLS)]
    for key in names:
        browser.click(f"input[name=layer][value={key}]")
        cells = browser.js(CELLS)
        check([c["label"] for c in cells] != before, f"the layer {key} shows what the one before did")
        before = [c["label"] for c in cells]
        if key in ("counted", "conflicts"):
            check(sum(1 for c in cells if c["text"]) == 2, f"{key}: two tiles were simulated")
            check(any("not simulated" in c["label"] for c in cells), f"{key}: the others say that they were not")
        elif names[key]:
            for cell in cells:
                tile = cell["br"], cell["bc"]
                if cell["text"]:
                    row = min((r for r in rows if (tunables(r)["br"], tunables(r)["bc"]) == tile), key=lambda r: float(r["model_us"]))
                    value = float(row[names[key][0]]) * {"smem": 1 / 1024, "occupancy": 100, "bytes": 2.0 ** -20}.get(key, 1)
                    check(abs(float(cell["text"]) - value) <= max(0.006 * value, 0.51 if key == "occupancy" else 0), f"{key} of {tile}: {cell['text']}, not {value}")

    # The keyboard alone: into the map, through it, to another layer, out of the tooltip.
    browser.click("input[name=layer][value=time]")
    browser.js("document.querySelector('.skip').focus()")
    browser.keys("Enter")
    browser.keys("Tab")
    check(browser.js("return document.activeElement.classList.contains('cell')"), "Tab does not enter the map")
    browser.keys("Home", "Up", "Up", "Up", "Up")
    check(browser.js("return document.activeElement.getAttribute('aria-label')").startswith("B_r = 16, B_c = 16"), "Home and arrows go to the first tile")
    first = browser.js(TIP)
    browser.keys("Right", "Down")
    second = browser.js(TIP)
    check(second.startswith("Br = 32, Bc = 32") and first.startswith("Br = 16, Bc = 16"), "the tooltip follows the focus: " + second)
    check(browser.js("return document.querySelector('#detail .name').textContent") == "Br = 32, Bc = 32", "the panel follows the focus")
    browser.keys("End")
    check(browser.js("return document.activeElement.dataset.x") == "7", "End goes to the end of the row")
    browser.keys("3")
    check(browser.js("return document.querySelector('input[name=layer]:checked').value") == "smem", "a digit switches the layer")
    check("Shared memory" in browser.js("return document.getElementById('live').textContent"), "the layer is not said aloud")
    check(browser.js("return document.activeElement.classList.contains('cell')"), "the focus stays in the map")
    browser.keys("Escape")
    check(browser.js(TIP) == "", "Escape closes the tooltip")

    # A hand that scrolls: the tooltip of the focused cell goes, and does not come back with the page.
    browser.keys("Left")
    check(browser.js(TIP) != "", "no tooltip to scroll away from")
    browser.js("document.activeElement.dispatchEvent(new WheelEvent('wheel', { bubbles: true, deltaY: 200 })); scrollBy(0, 200)")
    browser.js("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    check(browser.js(TIP) == "", "the tooltip stays while the page scrolls: " + browser.js(TIP))

    # How to read the page comes before the figures; a select says what its values mean.
    check(browser.js("return document.getElementById('reading').getBoundingClientRect().top < document.getElementById('tiles').getBoundingClientRect().top")
          and browser.js("return document.getElementById('reading').compareDocumentPosition(document.getElementById('tiles')) & 4") == 4, "the reading is not on top")
    words = browser.js("return [...document.querySelectorAll('select[data-tunable=order] option')].map((o) => o.textContent)")
    check(words[0] == "any" and all(": " in w for w in words[1:]) and len(words) == 4, f"the values of `order` have no words: {words}")
    check(browser.js("return document.querySelector('select[data-tunable=warps]').closest('label').textContent").startswith("warps warps per block"), "a select without words")
    over = browser.js("""const box = (e) => e.getBoundingClientRect(), labels = [...document.querySelectorAll('#roofline .label')];
const star = box(labels.find((e) => e.textContent === '★'));
return labels.filter((e) => e.textContent !== '★' && box(e).left < star.right && box(e).right > star.left && box(e).top < star.bottom - 4 && box(e).bottom > star.top + 4)
  .map((e) => e.textContent);""")
    check(over == [], f"the star lies over a label: {over}")
    browser.js("document.querySelector('.cell[tabindex=\"0\"]').focus()")

    # Other tunables held fixed.
    browser.keys("1")
    browser.click("#folded summary")
    browser.js("const s = document.querySelector('select[data-tunable=warps]'); s.value = '4'; s.dispatchEvent(new Event('change'))")
    check_map(browser, best_of_tiles(rows, "model_us", warps=4), "warps = 4")
    check("warps=4" in browser.js("return document.querySelector('#folded summary').textContent"), "the fold does not say what is held")
    browser.js("const s = document.querySelector('select[data-tunable=warps]'); s.value = ''; s.dispatchEvent(new Event('change'))")

    # The figures: mouse and keyboard.
    for name in ("roofline", "convergence", "speedup", "systems", "memory"):
        check(browser.js("return document.querySelectorAll(arguments[0]).length", f"#{name} svg path, #{name} svg circle") > 3, name + " is empty")
        browser.js("document.getElementById(arguments[0]).focus()", name)
        browser.keys("Right")
        first = browser.js(TIP)
        browser.keys("End")
        last = browser.js(TIP)
        check(first and last and first != last, f"{name}: the keys walk through its points: {first!r}, {last!r}")
        check(browser.js("return document.getElementById('live').textContent") != "", name + ": the point is not said aloud")
        browser.keys("Escape")
    browser.hover("#roofline .naive")
    check("Naive attention" in browser.js(TIP), "the naive point under the mouse: " + browser.js(TIP))
    axis = "return [...document.querySelectorAll('#roofline .axis')].map((e) => e.textContent).join()"
    before = browser.js(axis)
    browser.click("input[name=bytes][value=hbm]")
    check(browser.js(axis) != before, "the roofline's bytes do not switch")
    systems = "return [...document.querySelectorAll('#systems .axis')].map((e) => e.textContent).join()"
    before = browser.js(systems)
    browser.click("input[name=systems][value=bytes]")
    check(browser.js(systems) != before, "what the systems are compared by does not switch")
    check(browser.js("return document.querySelectorAll('#systems .key > span').length") == 1 + browser.js("return D.systems.length"), "a system has no line")

    # The table, and the files.
    for order in ("ascending", "descending"):
        browser.click("#table button[data-key=smem]")
        column = browser.js("return [...document.querySelectorAll('#table tbody tr')].map((r) => r.children[7].textContent.replace(/\\D/g, ''))")
        values = [int(v) for v in column]
        check(browser.js("return document.querySelector('#table [aria-sort]:not([aria-sort=none])').getAttribute('aria-sort')") == order, "aria-sort")
        check(values == sorted(values, reverse=order == "descending"), f"the table is not {order}")
        check(values[0] == (min if order == "ascending" else max)(int(r["smem"]) for r in rows), f"{order}: the first row")
    browser.click("#more")
    check(browser.js("return document.querySelectorAll('#table tbody tr').length") > 50, "more rows")
    browser.js("document.querySelectorAll('#table tbody tr')[20].click()")
    check(browser.js("return document.querySelectorAll('.cell[aria-selected=true]').length") == 1, "a row chooses its tile")
    for ending in ("csv", "json"):
        browser.js("document.getElementById(arguments[0]).click()", "save-" + ending)
        same = (lambda b: b == text) if ending == "csv" else (lambda b: b.endswith(b"}") and json.loads(b) == document)
        wait(lambda: any(same(path.read_bytes()) for path in downloads.glob("*." + ending)), f"the page's {ending} as the command's")
    check(browser.complaints() == [], "the console says something")


def check_looks(browser, url):
    """Both palettes have contrast; nothing is wider than the window; the map can be scrolled where it is."""
    grounds = set()
    for dark in (False, True):
        for width in (1400, 390):
            what = f"{'dark' if dark else 'light'}, {width} wide"
            browser.open(url, width=width, height=844, dark=dark)
            ink, soft, paper, card = browser.js("""const s = (e, p) => getComputedStyle(document.querySelector(e))[p];
return [s('body', 'color'), s('.source', 'color'), s('body', 'backgroundColor'), s('.card', 'backgroundColor')];""")
            grounds.add(paper)
            check(contrast(ink, paper) >= 7 and contrast(ink, card) >= 7, what + ": text")
            check(contrast(soft, paper) >= 4.5 and contrast(soft, card) >= 4.5, what + ": soft text")
            check(browser.js("return document.documentElement.scrollWidth <= innerWidth"), what + ": wider than the window")
            wide = browser.js("return [...document.querySelectorAll('.chart > svg')].map((s) => s.getBoundingClientRect().right)")
            check(len(wide) == 5 and all(v <= width for v in wide), what + ": figures are wider than the window")
            browser.hover(".cell[data-y='1'][data-x='1']")
            inside = browser.js("""const r = document.getElementById('tip').getBoundingClientRect();
return !document.getElementById('tip').hidden && r.left >= 0 && r.right <= innerWidth && r.top >= 0 && r.bottom <= innerHeight;""")
            check(inside, what + ": the tooltip is not inside the window")
            check(browser.complaints() == [], what + ": the console says something")
    check(len(grounds) == 2, "light and dark look the same")
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    check(browser.js("return getComputedStyle(document.getElementById('controls')).display") == "none", "controls on paper")
    browser.devtools("Emulation.setEmulatedMedia", media="")


def check_first_screen(browser, url):
    """At 1340 x 980 the whole map is there to see, and the other tunables are folded away."""
    browser.open(url, width=1340, height=980)
    map_, legend = browser.js("return ['grid', 'legend'].map((id) => document.getElementById(id).getBoundingClientRect().bottom)")
    check(map_ <= 900 and legend <= 980, f"first screen: the map ends at {map_}, its legend at {legend}")
    check(browser.js("return document.getElementById('folded').open") is False, "first screen: the filters are unfolded")
    styles = browser.js("""return [...document.querySelectorAll('.chart')].map((chart) => [...chart.querySelectorAll('.key path.line')].map((e) => {
const s = getComputedStyle(e); return s.stroke + ' ' + s.strokeDasharray; }));""")
    check(all(len(set(lines)) == len(lines) for lines in styles) and max(map(len, styles)) >= 4, f"lines that look alike: {styles}")
    colours = browser.js("return [...document.querySelectorAll('#systems .key path.line')].map((e) => getComputedStyle(e).stroke)")
    check(len(set(colours)) == len(colours), f"systems of one colour: {colours}")
    ticks = browser.js("return [...document.querySelectorAll('#convergence .tick')].map((e) => e.textContent)")
    check("100 %" in ticks, f"the axis of the convergence does not say 100 %: {ticks}")


def check_leader(browser, row, clock):
    """The head, the first row of the table, the bright end of the map's bar and the chosen tile tell of the same config."""
    time = browser.js("return document.querySelector('#facts dd').textContent")
    table = browser.js("""const heads = [...document.querySelectorAll('#table th')].map((e) => e.textContent.replace(/ [↑↓]$/, '').trim());
return document.querySelector('#table tbody tr').children[heads.indexOf(arguments[0])].textContent;""", clock)
    bar = browser.js("return document.querySelector('#legend .ramp').lastChild.textContent")
    star = browser.js("return [...document.querySelectorAll('.cell')].filter((e) => e.textContent.includes('★')).map((e) => [e.dataset.y, e.dataset.x].join())")
    tile = tunables(row)["br"], tunables(row)["bc"]
    check(float(time.split()[0]) == float(f"{float(row[clock + '_us']):.4g}"), f"{clock}: the head says {time}, not {row[clock + '_us']}")
    check(table == time, f"{clock}: the head says {time}, the table {table}")
    check(bar == time + " faster", f"{clock}: the head says {time}, the bar {bar}")
    check(star == [",".join(map(str, place(tile)))], f"{clock}: the star is at {star}, not {tile}")


def check_measured_page(browser, url, rows):
    browser.open(url)
    check(browser.js("return document.getElementById('tiles-source').textContent").startswith("measured Times of " + CHIP), "whose times they are")
    check(browser.js("return document.querySelectorAll('body > b, main b b').length") == 0, "a name became markup")
    check_map(browser, best_of_tiles(rows, "measured_us"), "measured")
    labels = [c["label"] for c in browser.js(CELLS)]
    check(any("not measured" in label for label in labels), "tiles without a time do not say so")
    check("4 configs" in browser.js("return document.getElementById('convergence-source').textContent"), "what converged")
    check_leader(browser, min((r for r in rows if r["measured_us"] and r["quality"] != "few-samples"), key=lambda r: float(r["measured_us"])), "measured")
    browser.click("input[name=clock][value=model]")
    check_map(browser, best_of_tiles(rows, "model_us"), "the model's clock")
    marked = browser.js("return [...document.querySelectorAll('.cell')].filter((e) => /[●≈○]/.test(e.textContent)).map((e) => [e.dataset.y, e.dataset.x].join()).sort()")
    there = sorted({",".join(map(str, place((tunables(r)["br"], tunables(r)["bc"])))) for r in rows if r["measured_us"]})
    check(marked == there, f"measured marks on the model's map: {marked}, not {there}")
    check_leader(browser, min((r for r in rows if r["rejected"] != "yes"), key=lambda r: float(r["model_us"])), "model")
    check(browser.complaints() == [], "measured: the console says something")


def check_streamed_page(browser, url):
    """Of a problem that HBM bounds: bandwidth in place of FLOPs."""
    browser.open(url)
    text = browser.js("return document.body.textContent")
    check(browser.js("return document.getElementById('roofline-title').textContent") == "Bandwidth", "streamed: the figure's title")
    check(browser.js("return document.querySelectorAll('#roofline .point').length") > 0, "streamed: no config in the figure")
    check(browser.js("return document.querySelectorAll('#roofline .chosen').length") == 1, "streamed: no ring around the chosen config")
    check("GB/s" in browser.js("return document.getElementById('facts').textContent"), "streamed: no bandwidth among the facts")
    check("pages of 16" in text, "streamed: no word of pages")
    layers = browser.js("return [...document.querySelectorAll('input[name=layer]')].map((e) => e.value)")
    check("gbs" in layers and "tflops" not in layers, f"streamed: layers {layers}")
    browser.click("input[name=layer][value=gbs]")
    check(browser.complaints() == [], "streamed: the console says something")


def read(text):
    return list(csv.DictReader(io.StringIO(text.decode("utf-8"), newline="")))


def main():
    command, work = sys.argv[1], pathlib.Path(sys.argv[2])
    lacking = missing()
    if lacking:
        print("skipped: no " + " and no ".join(lacking) + "; on Debian: apt-get install chromium chromium-driver")
        return 77
    shutil.rmtree(work, ignore_errors=True)
    downloads, empty, kept = work / "downloads", work / "empty", work / "kept"
    downloads.mkdir(parents=True)
    simulate = ["--simulate", "2"]
    text = fagen(command, *simulate, "--csv", "-", "-o", work / "model.html", cache=empty)
    document = json.loads(fagen(command, *simulate, "--json", cache=empty))
    rows = read(text)
    keep_records(kept, document, rows[1:40:16], rows[-1], rows[0])
    measured = read(fagen(command, "--simulate", "0", "--csv", "-", "-o", work / "measured.html", cache=kept))
    fagen(command, "--simulate", "0", "-o", work / "streamed.html", cache=empty, problem=CACHE)
    browser = Browser(downloads)
    try:
        check_model_page(browser, (work / "model.html").as_uri(), rows, text, document, downloads)
        check_looks(browser, (work / "model.html").as_uri())
        check_measured_page(browser, (work / "measured.html").as_uri(), measured)
        check_first_screen(browser, (work / "model.html").as_uri())
        check_streamed_page(browser, (work / "streamed.html").as_uri())
    finally:
        browser.close()
    print("the page is as it should be" if not failures else f"{failures} checks failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
