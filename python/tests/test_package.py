"""The package itself: what is in it, what it needs, the command, the layouts, the search for NVRTC."""
from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest
from conftest import HERE

import fagen
from fagen import _abi, _library, _nvrtc, errors


def python(*words, **more):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, **more)


def test_version():
    numbers = [getattr(_abi, f"FA_VERSION_{part}") for part in ("MAJOR", "MINOR", "PATCH")]
    assert fagen.__version__ == ".".join(map(str, numbers))


def test_import_brings_no_other_package():
    code = "import sys, fagen; print([m for m in ('numpy', 'torch', 'jax', 'transformers') if m in sys.modules])"
    assert python("-c", code).stdout.strip() == "[]"


def test_it_is_typed_and_every_public_name_is_documented():
    assert os.path.exists(os.path.join(os.path.dirname(fagen.__file__), "py.typed"))
    missing = [n for n in fagen.__all__ if callable(getattr(fagen, n)) and not getattr(fagen, n).__doc__]
    assert not missing


def test_the_command():
    run = python("-m", "fagen", "--version")
    assert run.returncode == 0 and run.stdout.split() == ["fagen", fagen.__version__]
    assert python("-m", "fagen", "tune", "--no-such-option").returncode != 0


def test_the_library_needs_libc_alone():
    try:
        text = subprocess.run(["readelf", "-d", _library.path()], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip("no readelf")
    needed = {line.split("[")[1].split(".so")[0] for line in text.splitlines() if "NEEDED" in line}
    assert needed and needed <= {"libc", "libm", "libdl", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64"}


def test_every_status_has_an_exception():
    statuses = {value for name, value in vars(_abi).items() if name in errors.NAMES.values() and value < 0}
    assert statuses == set(errors.OF_STATUS) == {-n for n in range(1, len(statuses) + 1)}
    assert issubclass(fagen.InvalidArgument, ValueError) and issubclass(fagen.OutOfMemory, MemoryError)


def test_layouts_have_no_holes_that_the_library_would_read():
    for struct in (_abi.Args, _abi.Options, _abi.Problem, _abi.TuneOptions):
        assert ctypes.sizeof(struct) % 4 == 0 and struct.size.offset == 0
    assert ctypes.sizeof(_abi.Args) % 8 == 0


def generator():
    path = os.path.join(HERE, "..", "generate_abi.py")
    spec = importlib.util.spec_from_file_location("generate_abi", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lists_of_keywords_are_those_of_the_rows():
    g = generator()
    rows = g.operands(textwrap.dedent("""
        /* OPERAND(none, IN, IN, NO, NO, NULL, .doc = "a comment") */
        OPERAND(q, IN, IN, NO, MAY, NULL, TENSORS, "q", 0, "help (of q)",
                QUERIES(D), TYPE(INPUT),
                .doc = "queries")
        OPERAND(grad_o, NO, OUT, NO, NO, "gradients", GRADIENTS, "grad-o", 0, "dO",
                QUERIES(DV), TYPE(OUTPUT), .keyword = "grad_out",
                .doc = "the gradient of O")
        OPERAND(table, IN, NO, NO, IN, "pages", SEQUENCES, "table", 0, "pages",
                .rank = 2, .extent = { E(B), E(TABLE) }, .row = E(ENTRIES), .drawn = FA_DRAWN_SEQUENCES,
                .doc = "pages")
        OPERAND(cu, MAY, MAY, NO, MAY, "lengths", SEQUENCES, "cu", 0, "firsts",
                LENGTHS_OF(BOUNDS), .values = "total",
                .doc = "firsts")
        """))
    assert [row.field for row in rows] == ["q", "grad_o", "table", "cu"]
    text = g.module(g.Header({}, {}, {}), rows)
    assert "SEQUENCES = {'table': ('b', 'n'), 'cu': ('b + 1',)}" in text and "GRADIENTS = ('grad_out',)" in text
    assert tuple(_abi.SEQUENCES) == ("cu_seqlens_q", "cu_seqlens_k", "seqlens_q", "seqlens_k", "page_table")
    assert _abi.GRADIENTS == ("grad_q", "grad_k", "grad_v")


def test_the_generator_reads_what_headers_hold():
    g = generator()
    header = g.parse(textwrap.dedent("""
        #define FA_ANSWER 42
        typedef enum fa_color { FA_RED = 0, /* , */ FA_BLUE = -3 } fa_color;
        typedef struct fa_two_words { uint32_t size; int32_t a, b; /* int32_t c; */ const int32_t *p, *r;
            int (*progress)(void *user, const char *line, double done); double x; } fa_two_words;
        FA_API fa_status fa_do(fa_two_words *w, const char *name, size_t n);
        FA_API uint32_t fa_say(void);
        """))
    assert header.numbers == {"FA_ANSWER": 42, "FA_RED": 0, "FA_BLUE": -3}
    assert [name for _, name in header.structs["fa_two_words"]] == ["size", "a", "b", "p", "r", "progress", "x"]
    text = g.module(header)
    assert "class TwoWords(C.Structure)" in text and '"fa_do": (C.c_int, [C.c_void_p, C.c_char_p, C.c_size_t])' in text
    with pytest.raises(ValueError, match="no struct"):
        g.parse("int main(void);")
    with pytest.raises(ValueError, match="no row"):
        g.operands("OPERAND(q, IN)")
    with pytest.raises(ValueError, match="long double"):
        g.member("long double", {})


def test_nvrtc_of_wheels(tmp_path, monkeypatch):
    for path in ("a/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "b/nvidia/cu13/lib/libnvrtc.so.13", "b/nvidia/cu13/lib/libnvrtc.alt.so.13",
                 "c/nvidia/cuda_nvrtc/lib/libnvrtc.so.11"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    folders = [str(tmp_path / name) for name in "abc"]
    assert _nvrtc.in_wheels(folders).endswith("b/nvidia/cu13/lib/libnvrtc.so.13")
    assert _nvrtc.in_wheels(folders[:1]).endswith("libnvrtc.so.12")
    assert _nvrtc.in_wheels(folders[2:]) is None
    monkeypatch.setenv("FAGEN_NVRTC", "/mine")
    assert _nvrtc.choose() is None


def test_without_a_driver_the_error_says_so():
    code = "import fagen\ntry: fagen.prepare(dtype='float16', d=64)\nexcept fagen.NoDriver as e: print(e)"
    run = python("-c", code, env={**os.environ, "LD_LIBRARY_PATH": ""})
    if not run.stdout and run.returncode == 0:
        pytest.skip("there is a GPU")
    assert "libcuda.so.1" in run.stdout or "no device" in run.stdout
