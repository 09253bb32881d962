"""`Tables`: what is known by 64-bit keys in two periods, with changes that can be undone."""

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from esdedup.boilerplate.changes import TABLES, Puts, joined
from esdedup.neighbours.key_table import Keys, KeyTable, Values

# Layers of tables: what an upper one has counts. Only a trial has more than one.
_Period = dict[str, tuple[KeyTable, ...]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Step:
    """A step that has begun."""

    # The two periods.
    before: tuple[_Period, _Period]
    # Where it has put values: the table, and the values before.
    undo: list[tuple[KeyTable, Keys, Values]] = dataclasses.field(default_factory=list)
    # What it has put, by the names of the tables.
    puts: dict[str, list[Puts]] = dataclasses.field(default_factory=lambda: {name: [] for name in TABLES})


class Tables:
    """The tables that `TABLES` names, of the present period and of the one before.

    Changes are made in steps, which may contain others.
    """

    def __init__(self) -> None:
        """Begin with empty tables."""
        self._present, self._former = _empty(), _empty()
        # Those that have begun, the outermost first.
        self._steps: list[_Step] = []
        self._is_changing = False

    @property
    def depth(self) -> int:
        """How many steps have begun that were neither kept nor undone."""
        return len(self._steps)

    @property
    def is_torn(self) -> bool:
        """Whether an exception has come in the middle of a change, as from a signal handler."""
        return self._is_changing

    @property
    def size_bytes(self) -> int:
        """The memory that they take."""
        periods = (self._present, self._former)
        return sum(table.size_bytes for each in periods for layers in each.values() for table in layers)

    def get(self, table: str, keys: Keys) -> Values:
        """Return the latest values of keys, ``(n, columns)``; 0 for unknown ones."""
        first, *others = self._layers(table)
        _, values = first.get(keys)
        for layer in others:
            if len(layer):
                # What was put and undone is 0 too.
                rest = np.flatnonzero(values[:, 0] == 0)
                _, values[rest] = layer.get(keys[rest])
        return values

    def keys(self, table: str) -> Keys:
        """Return all keys that were put, each once."""
        return np.unique(np.concatenate([each.all()[0] for each in self._layers(table)]))

    def put(self, table: str, keys: Keys, values: npt.NDArray[np.integer[Any]]) -> None:
        """Set the values of keys, each once, in the present period; none has 0 in the first column."""
        if not len(keys):
            return
        numbers = values.reshape(len(keys), TABLES[table]).astype(np.uint32)
        own = self._present[table][0]
        self._is_changing = True
        before = own.put(keys, numbers)
        if self._steps:
            self._steps[-1].undo.append((own, keys, before))
            self._steps[-1].puts[table].append((keys, numbers))
        self._is_changing = False

    def begin_period(self) -> None:
        """Forget the former period; the present one takes its place."""
        # As large as the last ones, so that they need not grow again.
        following: _Period = {name: (layers[0].emptied(),) for name, layers in self._present.items()}
        self._present, self._former = following, self._present

    def begin(self) -> None:
        """Begin a step."""
        self._steps.append(_Step(before=(self._present, self._former)))

    def begin_trial(self) -> None:
        """Begin a step that will be undone, of which nothing stays, not even room in the tables."""
        self.begin()
        self._present = {name: (*_empty()[name], *layers) for name, layers in self._present.items()}

    def undo(self) -> None:
        """End the last step that has begun, and undo its changes."""
        self._is_changing = True
        step = self._steps.pop()
        for table, keys, values in reversed(step.undo):
            table.put(keys, values)
        self._present, self._former = step.before
        self._is_changing = False

    def keep(self) -> None:
        """End the last step that has begun, and keep its changes."""
        self._is_changing = True
        step = self._steps.pop()
        if self._steps:
            self._steps[-1].undo.extend(step.undo)
            for name, puts in step.puts.items():
                self._steps[-1].puts[name].extend(puts)
        self._is_changing = False

    def _layers(self, table: str) -> tuple[KeyTable, ...]:
        return (*self._present[table], *self._former[table])

    def puts(self) -> dict[str, Puts]:
        """Return what the last step that has begun has put, by the names of the tables."""
        step = self._steps[-1]
        return {name: joined(step.puts[name], columns=columns) for name, columns in TABLES.items()}


def _empty() -> _Period:
    return {name: (KeyTable(columns),) for name, columns in TABLES.items()}
