"""State that the operators of one running query share: the dictionary, and the context of the instant.

Invariant: functions of rows depend on nothing but the row: plans that read the clock, chance or a graph inside of an
expression are not incremental. The context provides parameters and the other needs of compiled expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Window
from anabranch.delta.batch import NULL, REFUSED, Ids, Mask
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.threshold import NumberedRows
from anabranch.errors import EvaluationError, InternalError, LimitExceeded
from anabranch.model.graph import PropertyGraph
from anabranch.model.values import Value
from anabranch.planner.flow.vectors import vector_test
from anabranch.planner.reads import FieldExpression, over_fields
from anabranch.snapshot.compiled import truth
from anabranch.snapshot.context import Context, SkippedRows
from anabranch.snapshot.expressions import compile_expression
from anabranch.snapshot.variables import free_variables

RowKey: TypeAlias = int | tuple[int, ...]

CLOCK = " now "
"""Prefix of the columns with readings of the clock; values computed from these are of no use at a later instant."""

_NO_ITEMS = np.empty(0, np.int64)
_MOST_REMEMBERED = 1 << 20  # results of one function; past it they are computed again


def _no_graph(source: object) -> PropertyGraph:
    raise InternalError("an expression on changes asked for a graph")


@dataclass(slots=True)
class Runtime:
    dictionary: Dictionary
    parameters: Mapping[str, Value] = field(default_factory=dict)
    skipped: SkippedRows | None = None
    shared: dict[object, Any] = field(default_factory=dict)
    """Objects that several operators read, by their subject."""
    strict: bool = False
    """Whether events that disagree make the union of a window empty."""
    whole: bool = False
    """Whether rows hold whole elements, whatever the query reads of them."""
    properties: dict[Window, dict[str, None]] = field(default_factory=dict)
    """The properties that operators read of a window's elements on arrays."""
    context: Context = field(init=False)

    def __post_init__(self) -> None:
        self.context = Context(graph=_no_graph, parameters=self.parameters, skipped=self.skipped)

    def lenient(self) -> Runtime:
        """Return the same for conditions that are tested early: an error is no answer there, and is neither raised nor
        counted."""
        other = replace(self, skipped=SkippedRows())
        other.shared, other.properties = self.shared, self.properties
        return other

    def refuse(self, error: EvaluationError) -> None:
        """Skip the row that raised an error, or raise it."""
        self.context.skip(error)


class _Remembered:
    """Numbers that an expression gives for rows of ids. `number` makes a number of a value; `failed` is the number
    where the expression fails and failing rows are skipped. Equal inputs are evaluated once. `quiet`: a failure is no
    error yet, because the expression is evaluated again later."""

    def __init__(
        self,
        expression: ex.Expression,
        columns: Sequence[str],
        runtime: Runtime,
        number: Callable[[Value], int],
        failed: int,
        quiet: bool = False,
    ) -> None:
        self._runtime = runtime
        self._quiet = quiet
        self._span = expression.span
        self._number = number
        self._failed = failed
        self._reads = _read_columns(expression, columns)
        self._evaluate = compile_expression(expression, tuple(columns[one] for one in self._reads))
        self._known: dict[RowKey, int] = {}
        self._is_timed = any(name.startswith(CLOCK) for name in free_variables(expression))

    def __call__(self, rows: Ids) -> list[int]:
        known = self._known
        if len(known) > _MOST_REMEMBERED:
            known.clear()
        keys = row_keys(rows, self._reads)
        spend = self._runtime.context.spend
        for key in dict.fromkeys(keys):
            if key not in known:
                spend(1)
                known[key] = self._computed(key if isinstance(key, tuple) else (key,))
        found = [known[key] for key in keys]
        if self._is_timed:
            self._known = dict(zip(keys, found, strict=True))
        return found

    def _computed(self, key: tuple[int, ...]) -> int:
        decode = self._runtime.dictionary.decode
        try:
            return self._number(self._evaluate(tuple([decode(one) for one in key]), self._runtime.context))
        except LimitExceeded:
            raise
        except EvaluationError as error:
            if not self._quiet:
                self._runtime.refuse(error.located(self._span))
            return self._failed


class FieldRows:
    """The fields that an expression reads, for rows of ids: columns, and properties of the elements in columns."""

    def __init__(self, expression: FieldExpression, dictionary: Dictionary) -> None:
        self.fields = expression.fields
        self._dictionary = dictionary

    def __call__(self, rows: Ids) -> Ids | None:
        """Return the fields; None where a column holds elements that are no versions with them."""
        found = np.empty((len(rows), len(self.fields)), np.int64)
        for at, (column, key) in enumerate(self.fields):
            ids = rows[:, column]
            values = ids if key is None else self._dictionary.parts(ids, key)
            if values is None:
                return None
            found[:, at] = values
        return found


class RowValues:
    """An expression over rows of ids, as a vector of ids; `failed` where it fails and failing rows are skipped."""

    def __init__(
        self, expression: ex.Expression, columns: Sequence[str], runtime: Runtime, failed: int = REFUSED
    ) -> None:
        self._pick: int | None = None
        self._constant: int | None = None
        self._fields: FieldRows | None = None
        self._of_fields: _Remembered | None = None
        encode = runtime.dictionary.encode
        match expression:
            case ex.Variable(name):
                self._pick = _position(columns, name)
            case ex.Constant(value):
                self._constant = encode(value)
            case _:
                self._computed = _Remembered(expression, columns, runtime, encode, failed)
                if (over := over_fields(expression, columns)) is not None:
                    self._fields = FieldRows(over, runtime.dictionary)
                    if not isinstance(over.expression, ex.Variable):
                        self._of_fields = _Remembered(over.expression, over.columns, runtime, encode, failed)

    def __call__(self, rows: Ids) -> Ids:
        if self._pick is not None:
            return np.ascontiguousarray(rows[:, self._pick])
        if self._constant is not None:
            return np.full(len(rows), self._constant, np.int64)
        if self._fields is not None and (found := self._fields(rows)) is not None:
            return found[:, 0] if self._of_fields is None else np.array(self._of_fields(found), np.int64)
        return np.array(self._computed(rows), np.int64)


class RowNumbers:
    """Numbers of an expression over rows of ids, rounded to floats. A failure has no number, and is no error here."""

    def __init__(self, expression: ex.Expression, columns: Sequence[str], runtime: Runtime) -> None:
        self._dictionary = runtime.dictionary
        self._ids: Callable[[Ids], Ids]
        if isinstance(expression, ex.Variable):
            self._ids = RowValues(expression, columns, runtime)
        else:
            computed = _Remembered(expression, columns, runtime, runtime.dictionary.encode, REFUSED, quiet=True)
            self._ids = lambda rows: np.array(computed(rows), np.int64)

    def __call__(self, rows: Ids) -> NumberedRows:
        ids = self._ids(rows)
        numbers = np.where(ids == REFUSED, np.nan, self._dictionary.numbers()[ids])
        return NumberedRows(numbers, ids == NULL)


class RowPasses:
    """A condition over rows of ids, as a mask: set where it is true; unset where it is false, null, or fails and
    failing rows are skipped."""

    def __init__(self, condition: ex.Expression, columns: Sequence[str], runtime: Runtime) -> None:
        self._computed = PlainPasses(condition, columns, runtime)
        over = over_fields(condition, columns)
        self._fields = None if over is None else FieldRows(over, runtime.dictionary)
        self._of_fields = None if over is None else PlainPasses(over.expression, over.columns, runtime)

    def __call__(self, rows: Ids) -> Mask:
        if self._fields is not None and self._of_fields is not None and (found := self._fields(rows)) is not None:
            return self._of_fields(found)
        return self._computed(rows)


class PlainPasses:
    """A condition over rows of values: comparisons of numbers by arrays, all else by the plain evaluator. `failed` is
    the result where the condition fails, and failing rows are skipped."""

    def __init__(
        self, condition: ex.Expression, columns: Sequence[str], runtime: Runtime, failed: bool = False
    ) -> None:
        self._dictionary = runtime.dictionary
        self._vector = vector_test(condition, columns)
        self._computed = _Remembered(condition, columns, runtime, lambda value: truth(value) is True, failed)

    def __call__(self, rows: Ids) -> Mask:
        if self._vector is None:
            return np.array(self._computed(rows), np.bool_)
        passed, decided = self._vector(rows, self._dictionary)
        if not decided.all():
            left = np.flatnonzero(~decided)
            passed[left] = self._computed(rows[left])
        return passed


class ListItems:
    """Items of UNWIND over rows of ids: the position of each item's row, and the items' ids."""

    def __init__(self, expression: ex.Expression, columns: Sequence[str], runtime: Runtime) -> None:
        self._values = RowValues(expression, columns, runtime)
        self._runtime = runtime
        self._dictionary = runtime.dictionary
        self._known: dict[int, Ids] = {}

    def __call__(self, rows: Ids) -> tuple[Ids, Ids]:
        known = self._known
        if len(known) > _MOST_REMEMBERED:
            known.clear()
        lists = self._values(rows).tolist()
        for one in dict.fromkeys(lists):
            if one not in known:
                known[one] = _NO_ITEMS if one == REFUSED else self._items(self._dictionary.decode(one))
        items = [known[one] for one in lists]
        sizes = np.array([len(one) for one in items], np.int64)
        made = int(sizes.sum())
        context = self._runtime.context
        context.spend(made)
        context.hold(made, rows.shape[1] + 1)
        return np.repeat(np.arange(len(lists)), sizes), (np.concatenate(items) if items else np.empty(0, np.int64))

    def _items(self, value: Value) -> Ids:
        if value is None:
            return np.empty(0, np.int64)
        return self._dictionary.encode_all(value if isinstance(value, list) else [value])


def row_keys(rows: Ids, columns: Sequence[int]) -> list[RowKey]:
    """Return hashable keys of the rows, made of these columns."""
    if len(columns) == 1:
        single: list[RowKey] = rows[:, columns[0]].tolist()
        return single
    if not columns:
        return [()] * len(rows)
    return list(zip(*(rows[:, one].tolist() for one in columns), strict=True))


def unless_null(column: int, test: Callable[[Ids], Mask]) -> Callable[[Ids], Mask]:
    """Return a test that rows with null in a column pass, and the others if they pass the given test."""

    def passes(rows: Ids) -> Mask:
        mask: Mask = rows[:, column] == NULL
        if not mask.all():
            others = np.flatnonzero(~mask)
            mask[others] = test(rows[others])
        return mask

    return passes


def all_of(tests: Iterable[Callable[[Ids], Mask]]) -> Callable[[Ids], Mask] | None:
    """Combine tests into one; a later test sees only the rows that passed the earlier ones."""
    parts = list(tests)
    if len(parts) < 2:
        return parts[0] if parts else None

    def test(rows: Ids) -> Mask:
        mask = np.ones(len(rows), np.bool_)
        for part in parts:
            left = np.flatnonzero(mask)
            mask[left] = part(rows[left])
        return mask

    return test


def _read_columns(expression: ex.Expression, columns: Sequence[str]) -> list[int]:
    wanted = free_variables(expression)
    return [at for at, name in enumerate(columns) if name in wanted]


def _position(columns: Sequence[str], name: str) -> int:
    try:
        return list(columns).index(name)
    except ValueError:
        raise InternalError(f"no column `{name}` among {', '.join(columns) or 'none'}") from None
