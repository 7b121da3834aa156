"""The Python package of fagen, which is not common/fagen.py: of PYTHONPATH (a wheel that is installed), else of this tree, with the library
that common/fagen.py finds."""
import functools
import importlib
import importlib.util
import os
import sys

from common import fagen as script

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")


@functools.lru_cache(maxsize=None)
def load():
    """The package. Whatever its import raises says what is missing."""
    if not importlib.util.find_spec("fagen"):
        sys.path.insert(0, PACKAGE)
        sys.modules["fagen._abi"] = script.abi  # a build makes it for the wheel
        os.environ.setdefault("FAGEN_LIBRARY", script.library("fagen"))
    return importlib.import_module("fagen")
