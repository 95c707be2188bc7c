"""LOAD STREAM by columns: the events of many records as lines of NDJSON, made by operations on columns.

Each expression is evaluated once per distinct value of the fields that it reads, by the function that `RecordMapping`
evaluates it with; Arrow joins the texts to lines. The scanner of lines (`formats.graph_lines`) makes blocks of them. A
record with anything out of the ordinary (an error, a null MERGE key, two elements with one id) has a line that is no
event, and goes through `RecordMapping`, in its place.

Law: the line of a record is the event that `RecordMapping.event` gives for it; a blank line is a record that writes
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, takewhile
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.algebra import expressions as x
from anabranch.algebra.ingestion import TIME_FIELDS
from anabranch.algebra.record_shape import RecordElement, RecordShape, fields_read
from anabranch.errors import EvaluationError
from anabranch.formats.record_columns import FieldColumn, RecordColumns, text_data
from anabranch.formats.values import cypher_text, to_typed_json
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.instants import format_instant
from anabranch.model.temporal import DateTime, LocalDateTime
from anabranch.model.values import Value
from anabranch.snapshot import Context, compile_expression

_MOST_KNOWN = 1 << 16
_ODD = "{\n"  # a line that the scanner leaves to the exact reader
_WHOLE = r"^(0|-?[1-9][0-9]{0,13})$"
_FRACTION = r"^-?(0|[1-9][0-9]{0,13})\.[0-9]{1,15}$"
_INSTANT = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?Z?$"
_NO_TEXT = pa.scalar(None, pa.string())


# --- how a value is written into a line ---


def _json(value: Value) -> str | None:
    return _encodable(json.dumps(to_typed_json(value), ensure_ascii=False, separators=(",", ":")))


def _key(value: Value) -> str | None:
    return None if value is None else _inside(cypher_text(value))


def _quoted_key(value: Value) -> str | None:
    return None if value is None else _inside(_quoted(cypher_text(value)))


def _instant(value: Value) -> str | None:
    match value:
        case DateTime():
            micros = value.to_epoch_micros()
            return str(micros // 1000) if micros % 1000 == 0 else f'"{format_instant(micros)}"'
        case LocalDateTime():
            return _json(str(value))
    return _field_instant(value)


def _field_instant(value: Value) -> str | None:
    return _json(value) if isinstance(value, str | int | float) else None


def _truth(value: Value) -> str | None:
    return "t" if value is True else "f" if value is False or value is None else None


def _nothing(value: Value) -> str:
    return ""


def _inside(text: str) -> str | None:
    """Return a text as it stands between the quotes of JSON."""
    return _encodable(json.dumps(text, ensure_ascii=False)[1:-1])


def _encodable(text: str) -> str | None:
    """Return a text; None for one with half of a surrogate pair, which has no bytes."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return None
    return text


def _quoted(text: str) -> str:
    """Return a text as it stands between the quotes of an id in another id."""
    return cypher_text(text)[1:-1]


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to write values: the text of a value, None where it has none; what stands around a plain text; the text of
    null."""

    write: Callable[[Value], str | None]
    before: str = ""
    after: str = ""
    null: str | None = None


_JSON = _Form(_json, '"', '"', "null")
_KEY = _Form(_key, "'", "'")
_QUOTED_KEY = _Form(_quoted_key, "\\\\'", "\\\\'")
_TIME = _Form(_instant, '"', '"')
_FIELD_TIME = _Form(_field_instant, '"', '"')
_TRUTH = _Form(_truth)
_VALUE = _Form(_nothing)


class _Sequence:
    """The place of a record's sequence in a line."""


_SEQUENCE = _Sequence()


class _Written:
    """An expression that is written into the lines, in one form. It remembers the texts of the values it met."""

    __slots__ = ("_evaluate", "_fields", "_form", "_known", "_shortcut")

    def __init__(self, expression: x.Expression, variable: str, form: _Form) -> None:
        self._evaluate = compile_expression(expression, (variable,))
        self._fields = fields_read(expression, variable)
        self._form = form
        self._known: dict[Value, str | None] = {}
        self._shortcut = _shortcut(expression, form)

    def reads_any(self, columns: _Fields) -> bool:
        """Whether a field that is read has a value in any record, or none is read."""
        return not self._fields or any(columns.field(name).has_any for name in self._fields)

    def over(self, columns: _Fields) -> Any:
        """Return the texts for the records: an array, or a scalar where they read no field; null where it has none."""
        if not self._fields:
            return pa.scalar(self._text({}), pa.string())
        found = [columns.field(name) for name in self._fields]
        if self._shortcut is not None:
            texts = self._shortcut(found[0])
            if texts is not None:
                return texts
        codes, values = found[0].coded()
        if len(found) == 1:
            texts = [self._text_of(value) for value in values] if found[0].texts is not None else None
            if texts is None:
                texts = [self._text({self._fields[0]: value}) for value in values]
            return pa.array(texts, pa.string()).take(pa.array(codes))
        coded = [one.coded() for one in found]
        for more, distinct in coded[1:]:
            codes = codes * len(distinct) + more
        _, firsts, codes = np.unique(codes, return_index=True, return_inverse=True)
        rows = [[distinct[code] for code in own[firsts].tolist()] for own, distinct in coded]
        texts = [self._text(dict(zip(self._fields, row, strict=True))) for row in zip(*rows, strict=True)]
        return pa.array(texts, pa.string()).take(pa.array(codes))

    def _text_of(self, value: Value) -> str | None:
        """Return the text for a value of the only field, which is a text or null."""
        known = self._known
        if value in known:
            return known[value]
        if len(known) >= _MOST_KNOWN:
            known.clear()
        text = known[value] = self._text({self._fields[0]: value})
        return text

    def _text(self, record: dict[str, Value]) -> str | None:
        try:
            return self._form.write(self._evaluate((record,), Context(lambda _source: EMPTY_GRAPH)))
        except EvaluationError:
            return None


_Shortcut: TypeAlias = Callable[[FieldColumn], Any]


def _shortcut(expression: x.Expression, form: _Form) -> _Shortcut | None:
    """Return how an expression on one field is written without evaluating it, where all values are of a common form;
    the function returns None where they are not."""
    match expression:
        case x.Property(x.Variable()):
            return None if form in (_TRUTH, _VALUE) else lambda column: _plain(column, form)
        case x.Call("tointeger", (x.Property(x.Variable()),)) if form in (_JSON, _TIME, _KEY, _QUOTED_KEY):
            return lambda column: _matching(column, _WHOLE, form)
        case x.Call("tofloat", (x.Property(x.Variable()),)) if form is _JSON:
            return _floats
        case x.Call("datetime", (x.MapOf((("epochMillis", x.Call("tointeger", (x.Property(x.Variable()),))),)),)) if (
            form is _TIME
        ):
            return lambda column: _matching(column, _WHOLE, form)
        case x.Call("datetime", (x.Property(x.Variable()),)) if form is _TIME:
            return lambda column: None if _matching(column, _INSTANT, form) is None else _plain(column, form)
    return None


def _plain(column: FieldColumn, form: _Form) -> Any:
    if not column.is_plain:
        return None
    return _filled(pc.binary_join_element_wise(form.before, column.texts, form.after, ""), form)


def _matching(column: FieldColumn, pattern: str, form: _Form) -> Any:
    texts = column.texts
    if texts is None or not pc.all(pc.match_substring_regex(texts, pattern)).as_py():
        return None
    return _filled(texts, form)


def _floats(column: FieldColumn) -> Any:
    texts = column.texts
    if texts is None:
        return None
    fractions = pc.match_substring_regex(texts, _FRACTION)
    if pc.all(fractions).as_py():
        return _filled(texts, _JSON)
    whole = pc.match_substring_regex(texts, _WHOLE)
    if not pc.all(pc.or_(fractions, whole)).as_py():
        return None
    return _filled(pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts), _JSON)


def _filled(texts: Any, form: _Form) -> Any:
    return texts if form.null is None or not texts.null_count else pc.fill_null(texts, form.null)


# --- lines ---

_Part: TypeAlias = "str | _Written | _Sequence"


class _Fields:
    """The fields of some records, each made once."""

    __slots__ = ("_found", "_records")

    def __init__(self, records: RecordColumns) -> None:
        self._records = records
        self._found: dict[str, FieldColumn] = {}

    def field(self, name: str) -> FieldColumn:
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._records.field(name)
        return found


class ColumnMapping:
    """A LOAD STREAM with a shape, compiled to write the lines of many records at once."""

    def __init__(self, shape: RecordShape) -> None:
        self._shape = shape
        at = shape.at
        self._times = (
            [self._written(at, _TIME)]
            if at is not None
            else [self._written(x.Property(x.Variable(shape.variable), name), _FIELD_TIME) for name in TIME_FIELDS]
        )
        self._conditions = [self._written(one, _TRUTH) for one in shape.conditions]
        written = [value for one in (*shape.nodes, *shape.relationships) for _, value in one.properties]
        unwritten = [one for one in shape.evaluated if one not in written and not _is_field(one)]
        self._checks = [self._written(one, _VALUE) for one in unwritten]
        self._nodes = [self._id_parts(one, quoted=False) for one in shape.nodes]
        self._relationships = [self._relationship_id(one) for one in shape.relationships]
        self._properties = [
            [(key, self._written(value, _JSON)) for key, value in one.properties]
            for one in (*shape.nodes, *shape.relationships)
        ]
        self._node_twins = list(_twins(self._nodes, shape.nodes))
        self._relationship_twins = list(_twins(self._relationships, shape.relationships))
        self._needs_sequence = any(not one.merges for one in (*shape.nodes, *shape.relationships))

    def lines(self, records: RecordColumns, sequences: Callable[[], Sequence[str]]) -> bytes:
        """Return the lines of records, each with its end; `sequences` gives their places in the stream."""
        count = len(records)
        fields = _Fields(records)
        order = None
        if self._needs_sequence:
            order = pa.array(sequences(), pa.string())
            if not FieldColumn(order).is_plain:
                return _ODD.encode() * count

        def joined(parts: Sequence[Any]) -> Any:
            found = [part.over(fields) if isinstance(part, _Written) else part for part in parts]
            return _joined([order if part is _SEQUENCE else part for part in found], count)

        nodes = [joined(parts) for parts in self._nodes]
        relationships = [joined(parts) for parts in self._relationships]
        times = joined([self._time(fields)])
        lines = joined([*self._line(times, nodes, relationships), *self._checks])
        for ids, twins in ((nodes, self._node_twins), (relationships, self._relationship_twins)):
            for first, second in twins:
                lines = pc.if_else(pc.equal(ids[first], ids[second]), _NO_TEXT, lines)
        for condition in self._conditions:
            truths = _joined([condition.over(fields)], count)
            lines = pc.if_else(pc.is_null(truths), _NO_TEXT, lines)
            lines = pc.if_else(pc.and_(pc.equal(truths, "f"), pc.is_valid(lines)), _blanks(times), lines)
        if len(records.odd):
            odd = np.zeros(count, np.bool_)
            odd[list(records.odd)] = True
            lines = pc.if_else(pa.array(odd), _NO_TEXT, lines)
        return bytes(text_data(pc.fill_null(lines, _ODD) if lines.null_count else lines))

    def _time(self, fields: _Fields) -> Any:
        """Return the times of records. Without an AT they are in the first field that any record has."""
        for written in self._times:
            if written.reads_any(fields):
                return written
        return None

    def _line(self, time: Any, nodes: Sequence[Any], relationships: Sequence[Any]) -> Iterator[Any]:
        yield '{"at":'
        yield time
        yield ',"nodes":['
        for place, (shape, node) in enumerate(zip(self._shape.nodes, nodes, strict=True)):
            yield f'{"," if place else ""}{{"id":"'
            yield node
            yield f'","labels":{json.dumps(shape.labels, ensure_ascii=False)}'
            yield from self._map(place)
        yield "]"
        if relationships:
            yield ',"relationships":['
        for place, (shape, relationship) in enumerate(zip(self._shape.relationships, relationships, strict=True)):
            yield f'{"," if place else ""}{{"id":"'
            yield relationship
            yield f'","type":{json.dumps(shape.labels[0], ensure_ascii=False)},"from":"'
            yield nodes[shape.source]
            yield '","to":"'
            yield nodes[shape.target]
            yield '"'
            yield from self._map(len(nodes) + place)
        yield "]}\n" if relationships else "}\n"

    def _map(self, element: int) -> Iterator[Any]:
        """Yield the properties of an element, and its end."""
        for place, (key, written) in enumerate(self._properties[element]):
            yield "," if place else ',"properties":{'
            yield f"{json.dumps(key, ensure_ascii=False)}:"
            yield written
        yield "}}" if self._properties[element] else "}"

    def _written(self, expression: x.Expression, form: _Form) -> _Written:
        return _Written(expression, self._shape.variable, form)

    def _id_parts(self, element: RecordElement, *, quoted: bool) -> list[_Part]:
        """Return the parts of an element's id, as `engine.ingestion` makes it; inside of another id it is quoted."""
        if not element.merges:
            return ["~", _SEQUENCE, f".{element.number}"]

        def text(part: str) -> str:
            inside = _inside(_quoted(part) if quoted else part)
            assert inside is not None
            return inside

        parts: list[_Part] = [text(f"{':'.join(sorted(element.key_labels))}(")]
        for place, (key, expression) in enumerate(element.keys):
            parts.append(text(f"{', ' if place else ''}{key}: "))
            parts.append(self._written(expression, _QUOTED_KEY if quoted else _KEY))
        return [*parts, ")"]

    def _relationship_id(self, element: RecordElement) -> list[_Part]:
        own = self._id_parts(element, quoted=False)
        if not element.merges:
            return own
        source, target = (
            self._id_parts(self._shape.nodes[end], quoted=True) for end in (element.source, element.target)
        )
        return ["'", *source, "'-", *own, "->'", *target, "'"]


def _twins(ids: Sequence[Sequence[_Part]], elements: Sequence[RecordElement]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of elements that may have the same id: merged ones that do not begin differently."""
    merged = [place for place, element in enumerate(elements) if element.merges]
    for first, second in combinations(merged, 2):
        one, other = _head(ids[first]), _head(ids[second])
        if one.startswith(other) or other.startswith(one):
            yield first, second


def _blanks(times: Any) -> Any:
    """Return the lines of records that write nothing: blank, but for those whose time is none or of a rare form."""
    # Records that write something need no kernels here: the scan of their lines looks at their times.
    from anabranch.delta.json_lines import REGULAR, LineScan, padded

    data = text_data(pc.fill_null(pc.binary_join_element_wise('{"at":', times, "}\n", ""), _ODD))
    found = LineScan(padded(data), 0, len(data), ()).statuses[: len(times)] == REGULAR
    return pc.if_else(pa.array(found), "\n", _NO_TEXT)


def _head(parts: Sequence[_Part]) -> str:
    return "".join(part for part in takewhile(lambda part: isinstance(part, str), parts) if isinstance(part, str))


def _is_field(expression: x.Expression) -> bool:
    return isinstance(expression, x.Property) and isinstance(expression.subject, x.Variable)


def _joined(parts: Sequence[Any], count: int) -> Any:
    """Return the texts of records, put together from parts: texts, scalars, and arrays."""
    found: list[Any] = []
    for part in parts:
        part = part.as_py() if isinstance(part, pa.Scalar) else part
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        else:
            found.append(part)
    if any(part is None for part in found):
        return pa.nulls(count, pa.string())
    if not any(isinstance(part, pa.Array) for part in found):
        return pa.array(found * count if found else [""] * count, pa.string())
    return found[0] if len(found) == 1 else pc.binary_join_element_wise(*found, "")
