"""The candidates of a problem, with their prices, as objects; and the config that a program names: fa_candidates(), fa_pin()."""
from __future__ import annotations

import ctypes as C
from typing import Any, List, NamedTuple, Optional, Union

from . import _abi
from ._context import Context
from ._library import check, lib
from ._problem import Fields, Problem, default_context, problem_of
from ._typing import Unpack
from .errors import invalid

SOURCES = {_abi.FA_FROM_START: "start", _abi.FA_FROM_GUESS: "guess", _abi.FA_FROM_SHIPPED: "shipped", _abi.FA_FROM_IMPORT: "import",
           _abi.FA_FROM_RECORD: "record", _abi.FA_FROM_BUNDLE: "bundle", _abi.FA_FROM_PIN: "pin"}


class Candidate(NamedTuple):
    """A config that the choice looks at.

    config: its text, which pin() takes. seconds: its price, which decides; 0.0 where it has none. model: what the model alone says.
    source: where it comes from: "record", measured here; "import", another machine's record, verified here; "shipped", a winner of the
    library; "guess", which a tuning without a device left; "start", what a family begins with; "bundle"; "pin". runs: it is what runs.
    measured: seconds at `problem` on `chip`, None where nothing was measured; distance: from there, in doublings of a length; date: of the
    measurement, "" where it is unknown. why: why it does not run here, "" where it does."""
    config: str
    seconds: float
    model: float
    source: str
    runs: bool
    measured: Optional[float]
    distance: float
    chip: str
    date: str
    problem: str
    why: str


class Choice(NamedTuple):
    """The config that runs for a problem; the candidates, at most 64: that one first, then the cheapest; and what is refused here or known
    to fail. chosen: the row of the config; None where it is none of these."""
    config: str
    candidates: List[Candidate]
    refused: List[Candidate]

    @property
    def chosen(self) -> Optional[Candidate]:
        return next((c for c in self.candidates if c.runs), None)


_Tell = C.CFUNCTYPE(C.c_int, C.c_void_p, C.POINTER(_abi.CandidateInfo))


def candidates(problem: Optional[Problem] = None, /, *, device: Union[None, str, Context] = None,
               **fields: Unpack[Fields]) -> List[Candidate]:
    """What fa_launch() would choose among for a problem, or for its fields by name: the config that runs first, then the cheapest; at the
    end, with `why`, what is refused here and what is known to fail. Compiles nothing. Raises as fagen.explain does."""
    rows: List[Candidate] = []
    raised: List[BaseException] = []

    def tell(_: Any, at: Any) -> int:
        try:
            r = at.contents
            text = {name: getattr(r, name).decode(errors="replace") for name in ("config", "chip", "date", "problem", "why")}
            rows.append(Candidate(seconds=r.price, model=r.model, source=SOURCES.get(r.source, "unknown"),
                                  runs=bool(r.runs), measured=r.measured or None, distance=r.distance, **text))
            return 0
        except BaseException as e:  # no exception passes through C
            raised.append(e)
            return 1

    callback = _Tell(tell)
    p = problem_of(problem, fields).abi()
    check(lib.fa_candidates(default_context(device).handle, C.byref(p), C.cast(callback, C.c_void_p), None))
    if raised:
        raise raised[0]
    return rows


def choice(problem: Optional[Problem] = None, /, *, device: Union[None, str, Context] = None, **fields: Unpack[Fields]) -> Choice:
    """The candidates of a problem, and which of them runs. Raises as fagen.explain does."""
    rows = candidates(problem, device=device, **fields)
    found = next((c.config for c in rows if c.runs), "")
    return Choice(found, [c for c in rows if not c.why], [c for c in rows if c.why])


def pin(problem: Optional[Problem] = None, /, *, config: Union[str, Candidate], device: Union[None, str, Context] = None,
        **fields: Unpack[Fields]) -> None:
    """From now on calls of the problem's class and shape bucket run this config on the device, whatever is on record, and it is prepared
    at once. It holds until unpin() or another pin, as long as the context is open, and is not kept on disk; graphs that were captured keep
    their kernels.

    config: a Candidate, or the text of one, with each tunable. Raises InvalidArgument, NoFit or Unsupported with the reason where it does
    not run the problem, VerificationFailed where a record tells that its results are wrong here: nothing changes then."""
    text = config.config if isinstance(config, Candidate) else config
    if not isinstance(text, str):
        raise invalid("config", repr(config), "a fagen.Candidate, or the text of one")
    p, handle = problem_of(problem, fields).abi(), default_context(device).handle
    check(lib.fa_pin(handle, C.byref(p), text.encode()))
    status = lib.fa_prepare(handle, C.byref(p))
    if status:
        try:
            check(status)
        finally:
            lib.fa_unpin(handle, C.byref(p))


def unpin(problem: Optional[Problem] = None, /, *, device: Union[None, str, Context] = None, **fields: Unpack[Fields]) -> None:
    """Takes back the pin of the problem's class and shape bucket, and prepares what runs instead. Without a problem: all pins of the
    device; what they prepared runs on until fagen.prepare() is called for it."""
    handle = default_context(device).handle
    if problem is None and not fields:
        check(lib.fa_unpin(handle, None))
        return
    p = problem_of(problem, fields).abi()
    check(lib.fa_unpin(handle, C.byref(p)))
    check(lib.fa_prepare(handle, C.byref(p)))


__all__ = ["Candidate", "Choice", "candidates", "choice", "pin", "unpin"]
