"""A table of values: the answer of a plain query. For SPARQL the values are RDF terms.

Invariant: every row has as many values as there are columns. pandas and pyarrow are loaded only on demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from anabranch.formats.answers import AnswerParts, column
from anabranch.formats.values import cypher_text, to_json
from anabranch.model.values import Value

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Table:
    """Named columns and rows, in order; column names may repeat no more than a query allows.

    `form` says what they are: bindings, a boolean (ASK), or a graph (CONSTRUCT, DESCRIBE: one triple a row).
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Value]] = (),
        form: str = "bindings",
        prefixes: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.columns: tuple[str, ...] = tuple(columns)
        self.form = form
        self.prefixes: dict[str, str] = dict(prefixes)
        self.rows: list[tuple[Value, ...]] = [tuple(row) for row in rows]
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} values in a table of {len(self.columns)} columns")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Value, ...]]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"Table({', '.join(self.columns)}; {len(self.rows)} rows)"

    def dicts(self) -> list[dict[str, Value]]:
        """The rows by column name, with Cypher values."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows by column name, ready for JSON."""
        return [{name: to_json(value) for name, value in row.items()} for row in self.dicts()]

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame with plain values: elements as dictionaries, temporal values as ISO text."""
        import pandas

        rows = [[to_json(value) for value in row] for row in self.rows]
        return pandas.DataFrame(rows, columns=list(self.columns))

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table; a column whose values have no common Arrow type becomes Cypher text."""
        import pyarrow

        arrays = [column([row[index] for row in self.rows]) for index in range(len(self.columns))]
        return pyarrow.table(arrays, names=list(self.columns))

    def rendered(self, form: str) -> bytes:
        """The table in a format of SPARQL results, or the graph in one of RDF: `sparql-json`, `turtle` and so on."""
        from anabranch.formats.rdf.results import render

        return render(form, AnswerParts("", 0, "", "", 0, 0, self.columns, self.rows), self.prefixes)

    def text(self) -> str:
        """A table for people, as the openCypher TCK draws it."""
        cells = [list(self.columns), *([cypher_text(value) for value in row] for row in self.rows)]
        widths = [max(len(row[index]) for row in cells) for index in range(len(self.columns))]
        lines = []
        for row in cells:
            padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(f"| {' | '.join(padded)} |")
        return "\n".join(lines)
