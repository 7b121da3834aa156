"""Who may know of whom: fails on a call or an include against the direction of the rooms, on a circle of files, and on an exported name
that no other file uses.

    calls.py NM SOURCE ROOMS OBJECT...     SOURCE: the tree; ROOMS: a line "room: rooms that it sees" each, which the build writes
                                           (cmake/room.cmake); the objects are all of the product's

A room is a folder, or a folder of one ("verify/truth"). Its files call and include those of their own room and of rooms that it sees: who
sees "verify" sees all rooms of it, and a folder's own files see its rooms. No two rooms see each other, by whatever way round. The build's
include paths hold the same of headers; a declaration written out, or a path with "..", would pass there.
A file calls another of its folder when its object needs a name that the other's defines. Files that call each other in a circle cannot be
read, tested or replaced one by one: what both need is a noun of its own, or data that the lower one is handed.
A name that no other file of the product uses is static, or gone; FOR_TESTS holds those that suites and fuzz targets call as well. (sim_cu... are the driver's table, fa_lever_... what Python calls.)
"""
import collections
import os
import re
import subprocess
import sys

FOR_TESTS = set("""
fa_gen_count fa_gen_worked fa_pairs_key_blocks fa_pairs_query_blocks fa_sandbox_limit
fa_case_make_of fa_case_seen fa_measure fa_number_from_bf16 fa_number_to_bf16 fa_reference_add fa_trial_args
fa_spread_name fa_trial_alone fa_trial_sequences
fa_archive_free fa_archive_unpack fa_wait_rule
cli_npy_parse cli_reference_parse tune_report
fa_ggml_rider_count fa_ggml_rider_unload fa_ggml_rules
sim_forget sim_unwritten sim_product_slow sim_severity_name
fa_blob_sign fa_operand_add fa_operation_add fa_operation_row fa_packing_add fa_packing_end
fa_attention_input fa_reference_attention
fa_score_derive fa_score_eval fa_score_eval_outside fa_score_print_helpers fa_score_print_value fa_score_print_variables
fa_score_class_of fa_score_ends_of
fa_score_normal_of fa_score_normal_rises fa_score_range_verdict fa_score_ranges fa_score_shape_extent
""".split())


def symbols(nm, objects):
    """{object: (names it defines, names it needs)}, global ones."""
    found = {path: (set(), set()) for path in objects}
    lines = subprocess.run([nm, "-A", "-P", "-g", *objects], check=True, capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        match = re.match(r"(.*\.o): (\S+) (\S)", line)
        if match:
            path, name, kind = match.groups()
            found[path][kind in "Uw"].add(name)
    return found


def name_of(path):
    """gen/arch.c of .../gen/CMakeFiles/fagen_gen.dir/arch.c.o"""
    return re.sub(r".*?(\w+)/CMakeFiles/[^/]*\.dir/(?:\./)?(.*)\.o$", r"\1/\2", path)


def room_of(file, rooms):
    """verify/truth of verify/truth/rule.c, gen of gen/arch.c"""
    parts = file.split("/")
    inner = "/".join(parts[:2])
    return inner if len(parts) > 2 and inner in rooms else parts[0]


def room_of_object(path, rooms):
    """By its target, fagen_verify_truth.dir: what the build makes lies in no room's folder."""
    target = re.search(r"/CMakeFiles/fagen_([^/]*)\.dir/", path).group(1)
    return {room.replace("/", "_"): room for room in rooms}.get(target) or room_of(name_of(path).replace("__/", ""), rooms)


def sees(room, other, rooms):
    outer = other.split("/")[0]
    return room == other or room == outer or not {other, outer}.isdisjoint(rooms.get(room, ()))


def calls(found):
    """{object: {other object: names}}. What another folder compiles a second time ("__/cli/ranking.c") is nobody's home."""
    home = {name: path for path, (defined, _) in found.items() for name in defined if "/__/" not in path}
    graph = {path: collections.defaultdict(set) for path in found}
    for path, (_, needed) in found.items():
        for name in needed & home.keys():
            if home[name] != path:
                graph[path][home[name]].add(name)
    return graph


def within_folders(graph):
    """The calls between files of one folder, whatever their rooms."""
    folder = {path: name_of(path).split("/")[0] for path in graph}
    return {path: {other: names for other, names in others.items() if folder[other] == folder[path]} for path, others in graph.items()}


def back_arrows(graph, rooms):
    """A line for each call into a room that the caller's does not see."""
    out = []
    for path in sorted(graph):
        for other, names in sorted(graph[path].items()):
            a, b = room_of_object(path, rooms), room_of_object(other, rooms)
            if a in rooms and not sees(a, b, rooms):
                out.append(f"{name_of(path)} calls {name_of(other)}: {' '.join(sorted(names))}; {a} sees {' '.join(rooms[a])}, not {b}")
    return out


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)


def back_includes(files, rooms):
    """A line for each include of a file that is neither beside the includer nor of a room which the includer's sees. files: {path: text}"""
    out = []
    for path, text in sorted(files.items()):
        room = room_of(path, rooms)
        for name in INCLUDE.findall(text):
            beside = os.path.join(os.path.dirname(path), name)
            if room not in rooms or beside in files:
                continue
            if ".." in name.split("/") or name not in files or not sees(room, room_of(name, rooms), rooms):
                out.append(f'{path} includes "{name}"; accepted: a file beside it, or of a room that {room} sees: {" ".join(rooms[room])}')
    return out


def circles(graph):
    """Tarjan's strongly connected components, those of several objects."""
    index, low, stack, result = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                result.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return result


PUBLIC = "runtime/fagen.h"
DECLARED = re.compile(r"^(?!typedef|static|#|return)[A-Za-z_][\w \t*]*?[ *](\w+)\(", re.MULTILINE)


def foreign_declarations(files, found, rooms):
    """A line for each function that a header declares and another room defines: who includes the header knows of that room. PUBLIC is the
    whole library's."""
    home = {name: path for path, (defined, _) in found.items() for name in defined if "/__/" not in path}
    out = []
    for path, text in sorted(files.items()):
        header = path.endswith(".h") and path != PUBLIC and room_of(path, rooms) in rooms
        for name in DECLARED.findall(text) if header else ():
            if name in home and room_of_object(home[name], rooms) != room_of(path, rooms):
                out.append(f"{path} declares {name}, which {name_of(home[name])} defines; accepted: a header of that room")
    return out


def read_rooms(text):
    return {name: rest.split() for name, rest in (line.split(":", 1) for line in text.splitlines() if line.strip())}


def sources(root, rooms):
    """{path: text} of the C files of the folders that are rooms, or have some."""
    found = {}
    for top in sorted({room.split("/")[0] for room in rooms}):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".c", ".h", ".inc", ".def")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as f:
                        found[os.path.relpath(path, root)] = f.read()
    return found


def self_test():
    """Planted arrows back are seen, and what is none is not."""
    rooms = read_rooms("gen: \nverify/truth: gen\nverify/cases: gen verify/truth\nautotune/search: verify\n")
    obj = "build/{0}/CMakeFiles/fagen_{0}.dir/{1}.c.o".format
    rows = [
        (obj("verify", "cases/case"), obj("verify", "truth/rule"), 0),
        (obj("verify", "truth/rule"), obj("verify", "cases/case"), 1),
        (obj("verify", "truth/rule"), obj("verify", "truth/oracle"), 0),
        (obj("verify", "truth/rule"), obj("autotune", "search/search"), 1),
        (obj("autotune", "search/search"), obj("verify", "truth/rule"), 0),
        (obj("autotune", "search/search"), obj("gen", "arch"), 1),
        (obj("autotune", "main"), obj("autotune", "search/search"), 0),
        (obj("gen", "arch"), obj("verify", "truth/rule"), 1),
    ]
    for caller, called, wrong in rows:
        assert len(back_arrows({caller: {called: {"fa_x"}}, called: {}}, rooms)) == wrong, (caller, called)
    files = {"verify/cases/case.h": "", "verify/truth/rule.h": "", "gen/arch.h": "", "autotune/search/a.h": ""}
    includes = [
        ("verify/truth/x.c", "rule.h", 0),
        ("verify/truth/x.c", "gen/arch.h", 0),
        ("verify/truth/x.c", "verify/cases/case.h", 1),
        ("verify/truth/x.c", "../cases/case.h", 1),
        ("verify/cases/x.c", "verify/truth/rule.h", 0),
        ("verify/cases/x.c", "verify/truth/gone.h", 1),
        ("autotune/search/x.c", "verify/cases/case.h", 0),
        ("gen/x.c", "autotune/search/a.h", 1),
    ]
    for path, name, wrong in includes:
        assert len(back_includes({**files, path: f'#include "{name}"\n'}, rooms)) == wrong, (path, name)
    text = "/* f(x) */\nfa_status fa_f(int x);\nstatic inline int g(int x)\n{\n    return fa_h(x);\n}\nint *fa_f(void) __attribute__((x));\n"
    home = {obj("verify", "truth/rule"): ({"fa_f", "fa_h"}, set())}
    for path, wrong in (("verify/truth/rule.h", 0), ("verify/cases/case.h", 2), ("verify/cases/case.c", 0), (PUBLIC, 0)):
        assert len(foreign_declarations({path: text}, home, rooms)) == wrong, path
    assert circles({"a": {"b"}, "b": {"a"}, "c": {"a"}}) == [["a", "b"]]
    assert room_circles({"v/a": ["v/b"], "v/b": ["v"], "w": ["v"]}) == [["v/a", "v/b"]]


def room_circles(rooms):
    """Rooms that see each other. A folder that is seen stands for all its rooms."""
    graph = {room: {r for r in rooms if r != room and any(r == s or r.startswith(s + "/") for s in rooms[room])} for room in rooms}
    return circles(graph)


def main():
    self_test()
    nm, root, rooms_file, *objects = sys.argv[1:]
    with open(os.path.join(root, "tests", "exports.txt"), encoding="utf-8") as f:
        public = set(f.read().split())
    with open(rooms_file, encoding="utf-8") as f:
        rooms = read_rooms(f.read())
    found = symbols(nm, objects)
    graph = calls(found)
    files = sources(root, rooms)
    lines = [f"rooms that see each other: {' '.join(circle)}" for circle in room_circles(rooms)]
    lines += back_arrows(graph, rooms) + back_includes(files, rooms) + foreign_declarations(files, found, rooms)
    print("\n".join(lines), end="\n" if lines else "")
    bad = len(lines)
    graph = within_folders(graph)
    for circle in circles(graph):
        bad += 1
        print(f"a circle: {' '.join(map(name_of, circle))}")
        for path in circle:
            for other in sorted(set(graph[path]) & set(circle)):
                print(f"    {name_of(path)} -> {name_of(other)}: {' '.join(sorted(graph[path][other]))}")
    used = set().union(*(needed for _, needed in found.values()))
    for path, (defined, _) in sorted(found.items()):
        for name in sorted(defined - used - public - FOR_TESTS):
            if re.match(r"(fa|sim|cli|tune|explore|fleet|show|completion|dev)_(?!cu[A-Z]|lever_)", name):
                bad += 1
                print(f"{name_of(path)}: no other file uses {name}")
    for name in sorted(FOR_TESTS - set().union(*(defined for defined, _ in found.values()))):
        bad += 1
        print(f"FOR_TESTS names {name}, which is not there")
    edges = sum(map(len, graph.values()))
    print(f"{len(rooms)} rooms, {len(graph)} files, {edges} calls between them, {bad} faults")
    return bool(bad) or edges < len(graph)  # fewer: the output of nm was not understood


sys.exit(main())
