"""The candidates of a problem, with their prices: what explain() tells of a choice, as objects."""
from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Union

from ._context import Context
from ._problem import Problem, explain

_ROW = re.compile(r"candidate +(\S+) us \(model (\S+) us\), (.*): (\w+:\S+)")
_CHOSEN = re.compile(r"config +(\w+:\S+)")


class Candidate(NamedTuple):
    """A config that the choice looks at.

    seconds: its price, which decides; model: what the model alone says; source: where the config comes from, a record, the winners that ship, or the model."""
    config: str
    seconds: float
    model: float
    source: str


class Choice(NamedTuple):
    """The config that runs for a problem, and the cheapest candidates, at most a dozen, the cheapest first. chosen: the row of the config;
    None where it is none of these."""
    config: str
    candidates: List[Candidate]

    @property
    def chosen(self) -> Optional[Candidate]:
        return next((c for c in self.candidates if c.config == self.config), None)


def choice(problem: Optional[Problem] = None, /, *, device: Union[None, str, Context] = None, **fields: object) -> Choice:
    """What fa_launch() would choose among for a problem, or for its fields by name; compiles nothing. Raises as fagen.explain does."""
    lines = explain(*([] if problem is None else [problem]), device=device, **fields).splitlines()
    found = next((m.group(1) for m in map(_CHOSEN.fullmatch, lines) if m), "")
    rows = [m.groups() for m in map(_ROW.fullmatch, lines) if m]
    return Choice(found, [Candidate(config, float(price) * 1e-6, float(model) * 1e-6, source) for price, model, source, config in rows])
