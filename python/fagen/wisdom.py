"""What tunings found, carried between machines: fagen.wisdom.export(path), fagen.wisdom.import_(path), fagen.wisdom.forget().

The records of the cache travel as text (docs/tuning.md). An import looks at all of it before any of it counts, verifies on the device what
may decide here, and never comes before what was measured here.
"""
from __future__ import annotations

import ctypes as C
import os
from typing import Any, Callable, List, NamedTuple, Optional, Union

from . import _abi
from ._context import Context
from ._library import check, lib
from ._problem import Fields, Problem, default_context, problem_of
from ._typing import Unpack
from .errors import invalid

Path = Union[str, "os.PathLike[str]"]
Progress = Callable[[str, float], Optional[bool]]


class Imported(NamedTuple):
    """What became of the records of a text: added, verified and counting from now on; there, imported before; measured, of classes and
    shapes that were measured here, or failed here; slower than others of the text; wrong, not running or not right here; elsewhere, of
    another chip."""
    records: int
    added: int
    there: int
    measured: int
    slower: int
    wrong: int
    elsewhere: int


def _path(path: Path) -> bytes:
    if not isinstance(path, (str, os.PathLike)):
        raise invalid("path", repr(path), "the name of a file")
    return os.fsencode(path)


def _problem(problem: Optional[Problem], fields: Fields) -> Any:
    return C.byref(problem_of(problem, fields).abi()) if problem is not None or fields else None


def export(path: Path, problem: Optional[Problem] = None, *, device: Union[None, str, Context] = None, **fields: Unpack[Fields]) -> None:
    """Writes the records of the problem's class, whatever its shape, or of all, to a file that is whole or as it was. Raises FileError."""
    check(lib.fa_records_export(default_context(device).handle, _problem(problem, fields), _path(path)))


def dumps(problem: Optional[Problem] = None, *, device: Union[None, str, Context] = None, **fields: Unpack[Fields]) -> bytes:
    """The text that export() would write."""
    handle, of, n = default_context(device).handle, _problem(problem, fields), C.c_size_t()
    while True:
        check(lib.fa_records_export_text(handle, of, None, 0, C.byref(n)))
        text = C.create_string_buffer(n.value)
        room = n.value
        status = lib.fa_records_export_text(handle, of, text, room, C.byref(n))
        if status == _abi.FA_INVALID and n.value > room:  # another thread added some meanwhile
            continue
        check(status)
        return text.raw[:n.value]


_Told = C.CFUNCTYPE(C.c_int, C.c_void_p, C.c_char_p, C.c_double)


def _import(call: Callable[[Any, Any], int], progress: Optional[Progress]) -> Imported:
    raised: List[BaseException] = []

    def told(_: Any, line: bytes, done: float) -> int:
        try:
            return int(bool(progress is not None and progress(line.decode(errors="replace"), done)))
        except BaseException as e:  # no exception passes through C
            raised.append(e)
            return 1

    callback = _Told(told)  # without progress, too: it lets Ctrl-C through
    options = _abi.RecordsOptions(size=C.sizeof(_abi.RecordsOptions), progress=C.cast(callback, C.c_void_p).value)
    count = _abi.RecordsCount(size=C.sizeof(_abi.RecordsCount))
    status = call(C.byref(options), C.byref(count))
    if raised:
        raise raised[0]
    check(status)
    return Imported(*(getattr(count, name) for name in Imported._fields))


def import_(path: Path, *, progress: Optional[Progress] = None, device: Union[None, str, Context] = None) -> Imported:
    """Imports what export() wrote, into the cache of the device's context. All of it is looked at first; the fastest record of each class
    and shape that was not measured here is compiled and verified on the device; all that is taken is added, or nothing. Blocks: a part of a
    second for each. progress(line, done): is told each; True stops it. The file must be of this user or root, and writable by nobody else.

    Raises InvalidArgument with the line, its field and what is accepted, FileError, Interrupted where progress stopped it."""
    handle, name = default_context(device).handle, _path(path)
    return _import(lambda options, count: int(lib.fa_records_import(handle, name, options, count)), progress)


def loads(text: bytes, *, progress: Optional[Progress] = None, device: Union[None, str, Context] = None) -> Imported:
    """As import_(), of what dumps() gave."""
    if not isinstance(text, bytes):
        raise invalid("text", type(text).__name__, "bytes")
    handle = default_context(device).handle
    return _import(lambda options, count: int(lib.fa_records_import_text(handle, text, len(text), options, count)), progress)


def forget(problem: Optional[Problem] = None, *, everything: bool = False, device: Union[None, str, Context] = None,
           **fields: Unpack[Fields]) -> int:
    """Takes imported records of the device's chip out of the cache; everything: what was measured here, too. Of the problem's class,
    whatever its shape, or of all. Returns how many went. Later choices see it."""
    lines = C.c_int64()
    which = _abi.FA_FORGET_ALL if everything else _abi.FA_FORGET_IMPORTED
    check(lib.fa_records_forget(default_context(device).handle, _problem(problem, fields), which, C.byref(lines)))
    return lines.value


__all__ = ["Imported", "dumps", "export", "forget", "import_", "loads"]
