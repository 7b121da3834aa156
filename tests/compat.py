#!/usr/bin/env python3
"""Whether a program compiled against an older fagen.h runs with the library of this one: compat.py OLD_HEADER HEADER; exit code 1 with a
line for each fault.

Numbers stay, structs grow at their end alone, and functions keep their types. The version and the newest formats may grow.
"""
import importlib.util
import os
import sys

FORMATS = ("FA_BUNDLE_FORMAT", "FA_RECORDS_FORMAT")
GROWS = ("FA_VERSION_MAJOR", "FA_VERSION_MINOR", "FA_VERSION_PATCH", *FORMATS)


def reader():
    """python/generate_abi.py, which reads fagen.h."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "generate_abi.py")
    spec = importlib.util.spec_from_file_location("generate_abi", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def faults(old, new):
    for name, value in old.numbers.items():
        now = new.numbers.get(name)
        if now is None or (now < value if name in FORMATS else name not in GROWS and now != value):
            yield f"{name} is {now}; accepted: {value}"
    for name, members in old.structs.items():
        now = new.structs.get(name, [])
        for i, member in enumerate(members):
            if i >= len(now) or now[i] != member:
                yield f"{name}: member {i} is {now[i] if i < len(now) else None}; accepted: {member}"
                break
    for name, kinds in old.functions.items():
        if new.functions.get(name) != kinds:
            yield f"{name} is {new.functions.get(name)}; accepted: {kinds}"


def self_test(header):
    """Each kind of change is a fault, or none."""
    structs, numbers, functions = header.structs, header.numbers, header.functions
    longer = {name: members + [("int32_t", "more")] for name, members in structs.items()}
    shorter = {name: members[:-1] for name, members in structs.items()}
    moved = {name: members[:1] + [("int32_t", "more")] + members[1:] for name, members in structs.items()}
    rows = [(header._replace(structs=longer), 0), (header._replace(structs=shorter), len(structs)),
            (header._replace(structs=moved), len(structs)), (header._replace(numbers={**numbers, "FA_NEW": 1, "FA_VERSION_MINOR": 99}), 0),
            (header._replace(numbers={**numbers, "FA_BF16": 9}), 1),
            (header._replace(numbers={}), len(numbers)), (header._replace(functions={**functions, "fa_new": ("void", [])}), 0),
            (header._replace(functions={**functions, "fa_launch": ("void", [])}), 1), (header._replace(functions={}), len(functions))]
    for i, (other, expected) in enumerate(rows):
        found = list(faults(header, other))
        if len(found) != expected:
            raise AssertionError(f"change {i}: {len(found)} faults, not {expected}: {found}")


def main():
    parse = reader().parse
    texts = []
    for path in sys.argv[1:3]:
        with open(path, encoding="utf-8") as f:
            texts.append(f.read())
    old, new = map(parse, texts)
    self_test(old)
    found = list(faults(old, new))
    counts = f"{len(old.numbers)} numbers, {len(old.structs)} structs, {len(old.functions)} functions"
    print("\n".join(found + [f"{counts}, {len(found)} faults"]))
    return bool(found)


sys.exit(main())
