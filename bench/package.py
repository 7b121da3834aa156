"""The Python package of fagen, beside whose name this folder has a script: of PYTHONPATH (a wheel that is installed), else of this tree,
with the library that fagen.py finds."""
import functools
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


@functools.lru_cache(maxsize=None)
def load():
    """The module `fagen` of the package, which from here on is what `import fagen` gives. Whatever its import raises says what is
    missing."""
    import fagen as script
    modules, path = dict(sys.modules), list(sys.path)
    del sys.modules["fagen"]
    sys.path[:] = [p for p in path if os.path.abspath(p or ".") != HERE]
    try:
        if not importlib.util.find_spec("fagen"):
            sys.path.insert(0, os.path.join(HERE, "..", "python"))
            sys.modules["fagen._abi"] = script.abi  # a build makes it for the wheel
            os.environ.setdefault("FAGEN_LIBRARY", script.library("fagen"))
        return importlib.import_module("fagen")
    except Exception:
        for name in [n for n in sys.modules if n.partition(".")[0] == "fagen"]:
            del sys.modules[name]
        raise
    finally:
        sys.path[:] = path
        if "fagen" not in sys.modules:
            sys.modules["fagen"] = modules["fagen"]
