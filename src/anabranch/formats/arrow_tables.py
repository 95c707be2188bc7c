"""Rows and answers as Arrow tables, with plain values: elements as structures, temporal values as ISO text.

Invariant: a column has one type; one whose values have none in common is text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from anabranch.formats.answers import AnswerParts, beside
from anabranch.formats.values import cypher_text, to_json
from anabranch.model.values import Value

if TYPE_CHECKING:
    import pyarrow

_INSTANTS = ("at", "win_start", "win_end")


def column(values: Sequence[Value]) -> pyarrow.Array:
    """Values as an Arrow array; those without a common Arrow type become Cypher text."""
    import pyarrow

    try:
        return pyarrow.array([to_json(value) for value in values])
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        return pyarrow.array([None if value is None else cypher_text(value) for value in values])


def answers_table(columns: Sequence[str], answers: Iterable[AnswerParts], corrections: bool = False) -> pyarrow.Table:
    """Every row of the answers behind its instant and the ends of its window, which are timestamps in UTC; with
    `corrections` also behind what the row is: as told (empty), retracted or corrected."""
    import pyarrow

    told = [(one, row) for one in answers for row in one.rows]
    instants = pyarrow.timestamp("us", "UTC")
    heads = {name: pyarrow.array([getattr(one, name) for one, _ in told], instants) for name in _INSTANTS}
    if corrections:
        heads["correction"] = pyarrow.array([one.correction for one, _ in told], pyarrow.string())
    arrays = [column([row[place] for _, row in told]) for place in range(len(columns))]
    return pyarrow.table([*heads.values(), *arrays], names=[*heads, *beside(columns, tuple(heads))])
