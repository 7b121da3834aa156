"""The C ABI of fagen as a Python module, out of runtime/fagen.h and gen/operands.def.

    python3 generate_abi.py FAGEN_H OPERANDS_DEF MODULE.py [CHECK.c]

The module has a ctypes structure for each struct, a number for each enumerator, the prototypes of all functions, and the operands that
keywords are lists of. CHECK.c holds one assertion for each offset and size: a compiler that agrees with it lays the structs out as the module does. The build compiles it.
"""
from __future__ import annotations

import ctypes
import re
import sys
import types
from typing import Dict, List, NamedTuple, Sequence, Tuple

SCALARS = {"uint32_t": "c_uint32", "int32_t": "c_int32", "int64_t": "c_int64", "uint64_t": "c_uint64", "size_t": "c_size_t",
           "float": "c_float", "double": "c_double", "int": "c_int"}


class Header(NamedTuple):
    """What fagen.h declares: enumerators and constants by name, structs as (C type, field) in order, functions as (result, parameters)."""
    numbers: Dict[str, int]
    structs: Dict[str, List[Tuple[str, str]]]
    functions: Dict[str, Tuple[str, List[str]]]


def parse(text: str) -> Header:
    """Reads the text of fagen.h. ValueError names a declaration of a form that this reader does not know."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    numbers = {name: int(value) for name, value in re.findall(r"^#define (FA_\w+) (\d+)$", text, flags=re.M)}
    text = re.sub(r"^#(?:.*\\\n)*.*$", "", text, flags=re.M)
    for body in re.findall(r"typedef enum \w+ \{(.*?)\}", text, flags=re.S):
        for row in filter(None, (part.strip() for part in body.split(","))):
            name, value = re.fullmatch(r"(FA_\w+)\s*=\s*(-?\d+)", row).groups()
            numbers[name] = int(value)
    structs = {name: fields(body) for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, flags=re.S)}
    functions = {}
    for result, name, parameters in re.findall(r"FA_API ([\w ]+?[ *]+)(fa_\w+)\((.*?)\);", text, flags=re.S):
        listed = [] if parameters.strip() == "void" else [" ".join(p.split()) for p in parameters.split(",")]
        functions[name] = (result.strip(), [re.sub(r"\w+$", "", p).strip() for p in listed])
    if not structs or not functions:
        raise ValueError("no struct or no function was found: is this fagen.h?")
    return Header(numbers, structs, functions)


def fields(body: str) -> List[Tuple[str, str]]:
    """(C type, name) of each member; pointers, to functions too, end in a star."""
    out = []
    for row in filter(None, (" ".join(part.split()) for part in body.split(";"))):
        function = re.fullmatch(r"[\w ]+\(\*(\w+)\)\(.*\)", row)
        if function:
            out.append(("void *", function.group(1)))
            continue
        kind, names = re.fullmatch(r"((?:const )?\w+)((?: |[*]).*)", row).groups()
        for name in names.split(","):
            stars, bare, count = re.fullmatch(r"((?:[*]| |const\b)*)(\w+)((?:\[\d+\])?)", name.strip()).groups()
            out.append(((f"{kind} *" if "*" in stars else kind) + count, bare))
    return out


class Operand(NamedTuple):
    """A row of operands.def: its field of fa_args, what an operation does with it (NO, IN, MAY, OUT, MAY_OUT), its name in Python, whether it
    says where sequences lie, and of such a list the shape."""
    field: str
    forward: str
    backward: str
    merge: str
    append: str
    keyword: str
    sequences: bool
    shape: Tuple[str, ...]


SHAPES = {"B": "b", "BOUNDS": "b + 1", "TABLE": "n"}


def operands(text: str) -> List[Operand]:
    """Reads the text of operands.def. ValueError: it has no row."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    out = []
    row = r"^OPERAND\((\w+), (\w+), (\w+), (\w+), (\w+), (.*?\.doc = \".*?\")\)$"
    for field, forward, backward, merge, append, rest in re.findall(row, text, flags=re.S | re.M):
        keyword = re.search(r'\.keyword = "(\w+)"', rest)
        lengths = re.search(r"\bLENGTHS_OF\((\w+)\)", rest)
        sequences = lengths is not None or "FA_DRAWN_SEQUENCES" in rest
        extents = lengths.groups() if lengths else re.findall(r"\bE\((\w+)\)", rest.partition(".extent")[2].partition("}")[0])
        shape = tuple(SHAPES[word] for word in extents) if sequences else ()
        out.append(Operand(field, forward, backward, merge, append, keyword.group(1) if keyword else field, sequences, shape))
    if not out:
        raise ValueError("no row was found: is this operands.def?")
    return out


def class_name(struct: str) -> str:
    """fa_tune_options -> TuneOptions."""
    return "".join(word.capitalize() for word in struct.split("_")[1:])


def member(kind: str, structs: Dict[str, List[Tuple[str, str]]]) -> str:
    """The ctypes expression of a member's or a parameter's type; "int64_t[4]" is an array."""
    if kind.endswith("]"):
        kind, _, count = kind[:-1].rpartition("[")
        return f"{member(kind, structs)} * {count}"
    bare = kind.replace("const ", "").strip()
    if kind.strip() in ("const char *", "char *"):
        return "C.c_char_p"
    if "*" in bare or bare in ("fa_stream", "fa_log_fn", "fa_candidate_fn"):
        return "C.c_void_p"
    if bare in SCALARS:
        return f"C.{SCALARS[bare]}"
    if bare in structs:
        return class_name(bare)
    if bare in ("fa_status", "fa_copy_kind"):
        return "C.c_int"
    raise ValueError(f"the type \"{kind}\" is not known; accepted: {', '.join(SCALARS)}, a struct, a pointer")


def module(header: Header, rows: Sequence[Operand] = ()) -> str:
    """The text of the module."""
    out = ['"""Made by generate_abi.py out of fagen.h: numbers, structs and functions of the C library."""', "import ctypes as C", ""]
    sequences = {row.keyword: row.shape for row in rows if row.sequences}
    gradients = tuple(row.keyword for row in rows if row.backward in ("OUT", "MAY_OUT"))
    out += ["# Inputs that say where sequences lie, by keyword, and their shapes; outputs of a backward call.", f"SEQUENCES = {sequences}",
            f"GRADIENTS = {gradients}", ""]
    out += [f"{name} = {value}" for name, value in header.numbers.items()]
    for struct, listed in header.structs.items():
        out += ["", "", f"class {class_name(struct)}(C.Structure):", f'    """{struct} of fagen.h."""', "    _fields_ = ["]
        out += [f'        ("{name}", {member(kind, header.structs)}),' for kind, name in listed] + ["    ]"]
    out += ["", "", "# name: (result, parameters)", "FUNCTIONS = {"]
    for name, (result, parameters) in header.functions.items():
        kinds = ", ".join("C.c_void_p" if p == "char *" else member(p, header.structs) for p in parameters)
        out.append(f'    "{name}": ({"None" if result == "void" else member(result, header.structs)}, [{kinds}]),')
    return "\n".join(out + ["}", ""])


def check(header: Header, abi: types.ModuleType) -> str:
    """A C file that compiles where the compiler's offsets, sizes and numbers are those of the module."""
    out = ["/* Made by generate_abi.py: the layouts of the Python module are the compiler's. */", "#include <fagen.h>", ""]
    for struct, listed in header.structs.items():
        made = getattr(abi, class_name(struct))
        rows = [(f"sizeof({struct})", ctypes.sizeof(made))]
        rows += [(f"offsetof({struct}, {name})", getattr(made, name).offset) for _, name in listed]
        rows += [(f"sizeof((({struct} *)0)->{name})", getattr(made, name).size) for _, name in listed]
        out += [f'_Static_assert({left} == {right}, "{struct}");' for left, right in rows]
    return "\n".join(out + [f'_Static_assert({n} == {v}, "{n}");' for n, v in header.numbers.items()] + [""])


def load(path: str, rows_path: str = "") -> types.ModuleType:
    """The module of the header at `path`, and of the rows at `rows_path` where there are any, without a file."""
    with open(path, encoding="utf-8") as f:
        header = parse(f.read())
    rows: List[Operand] = []
    if rows_path:
        with open(rows_path, encoding="utf-8") as f:
            rows = operands(f.read())
    text = module(header, rows)
    out = types.ModuleType("abi")
    exec(compile(text, path, "exec"), out.__dict__)
    return out


def main(arguments: List[str]) -> int:
    if len(arguments) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as f:
        header = parse(f.read())
    with open(arguments[1], encoding="utf-8") as f:
        rows = operands(f.read())
    texts = [module(header, rows)] + ([check(header, load(arguments[0]))] if len(arguments) == 4 else [])
    for path, text in zip(arguments[2:], texts):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
