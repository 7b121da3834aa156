#!/usr/bin/env python3
"""The pages of the tree and the public header: width of lines, links, words. pages.py FOLDER checks the tree at FOLDER;
exit code 1 with a line for each fault.

A page is README.md, CONTRIBUTING.md, CHANGELOG.md or a file docs/*.md, docs/*/*.md. Width and words do not count inside fenced code;
width does not count in tables.
A link is [text](path) or [text](path#heading), relative to its page; `folder/file.c` in a page is a file of the tree. The sources are held to
the pages they name: `docs/NAME.md` is a file, and `docs/NAME.md, "Heading"` has that heading.
"""
import os
import re
import sys

WIDTH = 140
# The subject of a sentence is a thing in the code or on the chip.
WORDS = re.compile(r"\b(who|whom|whoever|nobody|somebody|someone|anybody|anyone|everybody|everyone|we|our|ours)\b", re.IGNORECASE)
# Words of the house that the field has a word for, or plain English: (what is not to come back, what to say).
RETIRED = [
    (r"behind", "after, past, over; slower than"),
    (r"in front of", "before"),
    (r"anew", "again"),
    (r"to and fro", "back and forth"),
    (r"ahead", "early"),
    (r"turns? of (?:keys|the loop)|(?:an?|each|every|the (?:first|last|next)) turn", "an iteration over key blocks"),
    (r"foreign (?:rows?|keys?|quer(?:y|ies))", "out-of-range"),
    (r"twins?", "a pair of warpgroups"),
    (r"lenders?", "the fallback plan"),
    (r"stand-ins?", "the fallback kernel"),
    (r"(?:all|some|other|first|most) units|members? of (?:a|the|each) group", "(sequence, KV head) pairs; query heads of the group"),
    (r"lag(?:s|ging)?", "lazy rescaling"),
    (r"tall(?:y|ies)", "a count"),
    (r"settle[sd]?", "decide"),
]
RETIRED = [(re.compile(rf"\b(?:{word})\b", re.IGNORECASE), say) for word, say in RETIRED]
ALLOWED = [  # (page, the words as they stand there)
    ("docs/experiments/forward.md", "the wait for a turn"),  # of a warpgroup at the products
]
HEADERS = ("runtime/fagen.h",)  # held to the words of pages alone
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(r'docs/((?:[\w-]+/)?[\w-]+[.](?:md|png|svg))(?:[,:]?[\s*/#-]+"([^"\n]+)")?')
SOURCES = (".c", ".h", ".cu", ".lua", ".py", ".sh", ".md", ".txt", ".cmake", ".inc", ".js", ".html")
FOLDERS = ("autotune", "bench", "cache", "cli", "cmake", "docs", "examples", "fuzz", "gen", "ggml", "python", "runtime", "scripts", "sim", "templates", "tests", "verify")
FILE = re.compile(r"`((?:%s)/[\w./-]+[.]\w+)" % "|".join(FOLDERS))  # a name with NAME in it stands for any


def prose(text):
    """(number, line, fenced) of each line."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        fence = line.lstrip().startswith("```")
        yield number, line, fenced or fence
        fenced ^= fence


def anchors(text):
    """What GitHub makes of the headings: lower case, blanks as hyphens, no other punctuation."""
    heads = [line.lstrip("#").strip() for _, line, fenced in prose(text) if not fenced and re.match("#{1,6} ", line)]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}, set(heads)


def retired(number, line):
    return [(number, f'the words "{m.group()}"; accepted: {say}') for word, say in RETIRED for m in word.finditer(line)]


def faults(page, text, read):
    """(line, what) of each fault of one page; read(path) is the text of a file, "" of a folder or picture, None where there is none."""
    out = []
    for number, line, fenced in prose(text):
        if fenced:
            continue
        if len(line) > WIDTH and not line.lstrip().startswith("|"):
            out.append((number, f"{len(line)} columns; accepted: {WIDTH}"))
        out += [(number, f"names {file}, which is not there") for file in FILE.findall(line) if "NAME" not in file and read(file) is None]
        bare = re.sub(r"`[^`]*`", "``", line)
        for allowed_page, words in ALLOWED:
            bare = bare.replace(words, "") if page == allowed_page else bare
        out += [(number, f'the word "{m.group()}"; accepted: a thing in the code or on the chip as the subject') for m in WORDS.finditer(bare)]
        out += retired(number, bare)
        for target in LINK.findall(bare):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            there = text if file == page else read(file)
            if there is None:
                out.append((number, f"links {target}; there is no {file}"))
            elif anchor and anchor not in anchors(there)[0]:
                out.append((number, f'links {target}; {file} has no heading "#{anchor}"'))
    return out


def named(text, read):
    """(line, what) of each page or heading that a source names and that is not there."""
    out = []
    for m in NAMED.finditer(text):
        number, file = text.count("\n", 0, m.start()) + 1, "docs/" + m.group(1)
        there = read(file)
        if there is None:
            out.append((number, f"names {file}, which is not there"))
        elif m.group(2) and m.group(2) not in anchors(there)[1]:
            out.append((number, f'names {file}, "{m.group(2)}"; there is no such heading'))
    return out


def self_test():
    """Each fault is seen, and what is no fault is not."""
    files = {"docs/a.md": "# A page: of `it`\n\n```\n# no heading\n```\n", "docs/b.png": ""}
    rows = [
        ("x" * 140, 0), ("x" * 141, 1), ("| " + "x" * 200 + " |", 0), ("```\n" + "who " * 50 + "\n```", 0), ("```\n```\n" + "x" * 141, 1),
        ("[a](a.md) [b](b.png) [c](https://example.org/x)", 0), ("[a](c.md)", 1), ("[a](a.md#a-page-of-it)", 0),
        ("[a](a.md#no-heading)", 1),
        ("## One\n[a](#one)", 0), ("[a](#two)", 1), ("[a](../docs/a.md)", 0), ("[a](docs/a.md)", 1), ("![a](c.png)", 1),
        ("`docs/b.png:7`, `docs/NAME.md` and `docs/a.md`", 0), ("`docs/c.md`", 1), ("Whoever holds it", 1), ("| nobody | waits |", 1),
        ("`who`, whose rows", 0), ("a cache that we have", 1), ("the US, an hour, 3 us", 0),
        ("one behind the other", 1), ("Anew, in front of it", 2), ("`twin`, taken in turn, turned off", 0), ("four turns of keys", 1),
        ("each turn", 1), ("the FMA units", 0), ("all units", 1), ("`lag=8`; a lag", 1), ("foreign/, foreign rows", 1),
    ]
    for text, count in rows:
        assert len(faults("docs/p.md", text, files.get)) == count, text
    rows = [("see docs/a.md", 0), ("see docs/c.md", 1), ('docs/a.md, "A page: of `it`"', 0), ('docs/a.md,\n * "A page"', 1)]
    for text, count in rows:
        assert len(named(text, files.get)) == count, text


def main(root):
    self_test()

    def read(path):
        full = os.path.join(root, path)
        if not path.endswith(".md"):
            return "" if os.path.exists(full) else None
        if not os.path.isfile(full):
            return None
        with open(full, encoding="utf-8") as f:
            return f.read()

    pages = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
    pages += sorted(os.path.relpath(os.path.join(folder, n), root) for folder, _, names in os.walk(os.path.join(root, "docs"))
                    for n in names if n.endswith(".md"))
    found = [(page, *fault) for page in pages for fault in faults(page, read(page), read)]
    for header in HEADERS:
        with open(os.path.join(root, header), encoding="utf-8") as f:
            found += [(header, *fault) for number, line in enumerate(f, 1) for fault in retired(number, line)]
    for top in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CMakeLists.txt") + FOLDERS:
        for folder, _, names in os.walk(os.path.join(root, top)) if top in FOLDERS else [(root, [], [top])]:
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), root)
                if path != "tests/pages.py" and (name.endswith(SOURCES) or top == "scripts"):
                    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
                        found += [(path, *fault) for fault in named(f.read(), read)]
    for path, number, what in found:
        print(f"{path}:{number}: {what}")
    print(f"{len(pages)} pages, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
