"""What the objects of the folders call of each other: fails on a circle of files, and on an exported name that no other file uses.

    calls.py NM EXPORTS OBJECT...      EXPORTS: the list of the public names; the objects are all of the product's

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
fa_gen_worked fa_model_visible fa_sandbox_limit
fa_case_make_of fa_case_seen fa_measure fa_number_from_bf16 fa_number_to_bf16 fa_reference_add fa_trial_args
fa_spread_name fa_trial_alone fa_trial_sequences
fa_archive_free fa_archive_unpack fa_wait_rule
cli_npy_parse cli_reference_parse tune_report
sim_forget sim_unwritten sim_product_slow sim_severity_name
fa_blob_sign fa_operand_add fa_operation_add fa_operation_row fa_packing_add fa_packing_end
fa_attention_input fa_reference_attention
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


def calls(found):
    """{object: {object of the same folder: names}}"""
    home = {name: path for path, (defined, _) in found.items() for name in defined}
    graph = {path: collections.defaultdict(set) for path in found}
    for path, (_, needed) in found.items():
        for name in needed & home.keys():
            if os.path.dirname(home[name]) == os.path.dirname(path):
                graph[path][home[name]].add(name)
    return graph


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


def name_of(path):
    """gen/arch.c of .../gen/CMakeFiles/fagen_gen.dir/arch.c.o"""
    return re.sub(r".*?(\w+)/CMakeFiles/[^/]*\.dir/(?:\./)?(.*)\.o$", r"\1/\2", path)


def main():
    nm, exports, *objects = sys.argv[1:]
    with open(exports, encoding="utf-8") as f:
        public = set(f.read().split())
    found = symbols(nm, objects)
    graph = calls(found)
    bad = 0
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
    print(f"{len(graph)} files, {edges} calls between them, {bad} faults")
    return bool(bad) or edges < len(graph)  # fewer: the output of nm was not understood


sys.exit(main())
