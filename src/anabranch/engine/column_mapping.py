"""LOAD STREAM by columns: the events of many records as an Arrow batch, made by operations on columns.

Each expression is evaluated once per distinct value of the fields that it reads, by the function that `RecordMapping`
evaluates it with; common conversions of texts are done by column. A record with anything out of the ordinary (an error,
a null MERGE key, two elements with one id) is odd, and goes through `RecordMapping`, in its place.

Law: the event of an ordinary record is the one that `RecordMapping.event` gives for it; a record that is void writes
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, takewhile
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.algebra import expressions as x
from anabranch.algebra.ingestion import TIME_FIELDS
from anabranch.algebra.record_shape import RecordElement, RecordShape, fields_read
from anabranch.delta.batch import Mask
from anabranch.errors import EvaluationError, MalformedEventError
from anabranch.formats.arrow_arrays import taken, truths
from anabranch.formats.events import FARTHEST_MILLIS, instant_from_json
from anabranch.formats.record_columns import FieldColumn, RecordColumns, ValueCodes
from anabranch.formats.values import cypher_text, to_typed_json
from anabranch.model.block import Times
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.graph_block import Places
from anabranch.model.temporal import DateTime, LocalDateTime
from anabranch.model.values import Value
from anabranch.snapshot import Context, compile_expression

_MOST_KNOWN = 1 << 16
_INSTANT = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?Z?$"
_TYPES: dict[type, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_AT = pa.timestamp("us", tz="UTC")
_NO_TEXT = pa.scalar(None, pa.string())
_FIELD, _WHOLE, _NUMBER, _INSTANT_TEXT, _MILLIS = range(5)


class _Failure:
    """The outcome of an expression that has no value."""


_FAILED: Any = _Failure()


class _Outcomes(NamedTuple):
    """The outcomes of an expression: a code for each record, and the outcome of each code."""

    codes: ValueCodes
    values: list[Any]

    def mask(self, test: Callable[[Any], bool]) -> Mask:
        """Return the records whose outcome passes a test."""
        return np.array([test(value) for value in self.values], np.bool_)[self.codes]

    def array(self, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
        """Return an array in which the outcome of each code is replaced by a value."""
        return taken(pa.array(values, kind), self.codes)


class _Fields:
    """The fields of some records, each made once."""

    __slots__ = ("_found", "count", "records")

    def __init__(self, records: RecordColumns) -> None:
        self.records = records
        self.count = len(records)
        self._found: dict[str, FieldColumn] = {}

    def field(self, name: str) -> FieldColumn:
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self.records.field(name)
        return found


class _Expression:
    """An expression on fields of a record. It remembers the outcomes for the texts it met."""

    __slots__ = ("_evaluate", "_known", "fields", "form")

    def __init__(self, expression: x.Expression, variable: str) -> None:
        self._evaluate = compile_expression(expression, (variable,))
        self._known: dict[Value, Any] = {}
        self.fields = fields_read(expression, variable)
        self.form = _form(expression)

    def reads_any(self, columns: _Fields) -> bool:
        """Whether a field that is read has a value in any record, or none is read."""
        return not self.fields or any(columns.field(name).has_any for name in self.fields)

    def over(self, columns: _Fields) -> _Outcomes:
        if not self.fields:
            return _Outcomes(np.zeros(columns.count, np.int64), [self._outcome({})])
        found = [columns.field(name) for name in self.fields]
        codes, values = found[0].coded()
        if len(found) == 1:
            outcome = self._outcome_of_text if found[0].texts is not None else self._outcome_of_value
            return _Outcomes(codes, list(map(outcome, values)))
        coded = [one.coded() for one in found]
        for more, distinct in coded[1:]:
            codes = codes * len(distinct) + more
        _, firsts, codes = np.unique(codes, return_index=True, return_inverse=True)
        rows = [[distinct[code] for code in own[firsts].tolist()] for own, distinct in coded]
        outcomes = [self._outcome(dict(zip(self.fields, row, strict=True))) for row in zip(*rows, strict=True)]
        return _Outcomes(codes, outcomes)

    def _outcome_of_text(self, value: Value) -> Any:
        """Return the outcome for a value of the only field, which is a text or null."""
        known = self._known
        if value in known:
            return known[value]
        if len(known) >= _MOST_KNOWN:
            known.clear()
        found = known[value] = self._outcome_of_value(value)
        return found

    def _outcome_of_value(self, value: Value) -> Any:
        return self._outcome({self.fields[0]: value})

    def _outcome(self, record: dict[str, Value]) -> Any:
        try:
            return self._evaluate((record,), Context(lambda _source: EMPTY_GRAPH))
        except EvaluationError:
            return _FAILED


def _form(expression: x.Expression) -> int | None:
    """Return the form of an expression on one field that columns of a common form have without evaluating it."""
    match expression:
        case x.Property(x.Variable()):
            return _FIELD
        case x.Call("tointeger", (x.Property(x.Variable()),)):
            return _WHOLE
        case x.Call("tofloat", (x.Property(x.Variable()),)):
            return _NUMBER
        case x.Call("datetime", (x.Property(x.Variable()),)):
            return _INSTANT_TEXT
        case x.Call("datetime", (x.MapOf((("epochMillis", x.Call("tointeger", (x.Property(x.Variable()),))),)),)):
            return _MILLIS
    return None


# --- ids ---


class _Sequence:
    """The place of a record's sequence in an id."""


class _KeyText:
    """The text of a key in an id; null where it has none."""

    __slots__ = ("_expression", "_quote", "_quoted")

    def __init__(self, expression: _Expression, quoted: bool) -> None:
        self._expression = expression
        self._quoted = quoted
        self._quote = "\\'" if quoted else "'"

    def over(self, columns: _Fields) -> pa.Array:
        form = self._expression.form
        if form in (_FIELD, _WHOLE):
            field = columns.field(self._expression.fields[0])
            if form == _FIELD and field.is_plain:
                return pc.binary_join_element_wise(self._quote, field.texts, self._quote, "")
            if form == _WHOLE and field.integers is not None:
                return field.texts
        outcomes = self._expression.over(columns)
        return outcomes.array([self._text(value) for value in outcomes.values], pa.string())

    def _text(self, value: Any) -> str | None:
        if value is None or value is _FAILED:
            return None
        text = cypher_text(value)
        return _encodable(_quoted(text) if self._quoted else text)


_IdPart: TypeAlias = "str | _KeyText | _Sequence"
_SEQUENCE = _Sequence()


def _quoted(text: str) -> str:
    """Return a text as it stands between the quotes of an id in another id."""
    return cypher_text(text)[1:-1]


def _encodable(text: str) -> str | None:
    """Return a text; None for one with half of a surrogate pair, which has no bytes."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return None
    return text


def _joined(parts: Sequence[Any], count: int) -> pa.Array:
    """Return the texts of records, put together from texts and arrays."""
    if not any(isinstance(part, pa.Array) for part in parts):
        return pa.array(["".join(parts)] * count, pa.string())
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "")


# --- times ---


class _Instants:
    """The time of a record."""

    __slots__ = ("expression",)

    def __init__(self, expression: _Expression) -> None:
        self.expression = expression

    def over(self, columns: _Fields) -> tuple[Times, Mask]:
        """Return the times of records, and which of them have none, or one of a rare form."""
        form = self.expression.form
        if form is not None and form != _NUMBER:
            field = columns.field(self.expression.fields[0])
            if form in (_WHOLE, _MILLIS):
                if field.integers is not None:
                    millis = field.integers
                    return millis * 1000, ~field.present | (np.abs(millis) > FARTHEST_MILLIS)
            elif field.texts is not None and (form == _FIELD or _are_instants(field.texts)):
                return _scanned(field)
        outcomes = self.expression.over(columns)
        instants = [_instant(value) for value in outcomes.values]
        times = np.array([0 if one is None else one for one in instants], np.int64)
        return times[outcomes.codes], np.array([one is None for one in instants], np.bool_)[outcomes.codes]


def _are_instants(texts: pa.Array) -> bool:
    """Whether `datetime` reads these texts as a time of an event is read."""
    return pc.all(pc.match_substring_regex(texts, _INSTANT)).as_py() is not False


def _scanned(field: FieldColumn) -> tuple[Times, Mask]:
    from anabranch.delta.json_lines import scan_instants

    rare, times = scan_instants(*field.places)
    return times, rare | ~field.present


def _instant(value: Any) -> int | None:
    try:
        match value:
            case DateTime():
                return value.to_epoch_micros()
            case LocalDateTime():
                return instant_from_json(str(value))
            case str() | int() | float():
                return instant_from_json(value)
    except MalformedEventError:
        pass
    return None


# --- properties ---


class _Property:
    """A property of an element."""

    __slots__ = ("_expression", "key")

    def __init__(self, key: str, expression: _Expression) -> None:
        self.key = key
        self._expression = expression

    def over(self, columns: _Fields) -> tuple[pa.Array | None, Callable[[], pa.Array], Mask | None]:
        """Return the values of records, None where Arrow has no type for all of them; a function that returns them as
        JSON; and which records have none, or one without bytes."""
        form = self._expression.form
        if form in (_FIELD, _WHOLE, _NUMBER):
            field = columns.field(self._expression.fields[0])
            values = field.texts if form == _FIELD else field.numbers(whole=form == _WHOLE)
            if values is not None:
                return values, lambda: _array_as_json(values), None
        outcomes = self._expression.over(columns)
        failed = [value is _FAILED or not _has_bytes(value) for value in outcomes.values]
        known = [None if bad else value for value, bad in zip(outcomes.values, failed, strict=True)]
        array = None if (kind := _arrow_type(known)) is None else outcomes.array(known, kind)
        missing = np.array(failed, np.bool_)[outcomes.codes] if any(failed) else None
        return array, lambda: outcomes.array(list(map(_json, known)), pa.string()), missing


def _arrow_type(values: Sequence[Value]) -> pa.DataType | None:
    """Return the type of an array of values; None where they are not all of one plain type."""
    kinds = {value.__class__ for value in values if value is not None}
    if not kinds:
        return pa.null()
    kind = _TYPES.get(kinds.pop())
    if kinds or (kind == pa.float64() and not all(value is None or np.isfinite(value) for value in values)):  # type: ignore[call-overload]
        return None
    return kind


def _array_as_json(values: pa.Array) -> pa.Array:
    encoded = values.dictionary_encode()
    texts = pa.array(list(map(_json, encoded.dictionary.to_pylist())), pa.string())
    return pc.fill_null(texts.take(encoded.indices), "null")


def _json(value: Value) -> str:
    return json.dumps(to_typed_json(value), ensure_ascii=False, separators=(",", ":"))


def _has_bytes(value: Value) -> bool:
    kind = value.__class__
    return value is None or kind in (int, float, bool) or _encodable(value if kind is str else _json(value)) is not None  # type: ignore[arg-type]


# --- batches ---


class MappedRecords:
    """Records with the columns of the elements that they write: `odd` are those for `RecordMapping`, `void` those that
    write nothing."""

    def __init__(self, shape: RecordShape, count: int) -> None:
        self.odd: Mask = np.zeros(count, np.bool_)
        self.void: Mask = np.zeros(count, np.bool_)
        self.times: Times = np.zeros(count, np.int64)
        self._shape = shape
        self._count = count
        self.ids: list[pa.Array] = []
        self.properties: list[list[tuple[str, pa.Array | None, Callable[[], pa.Array]]]] = []
        self.is_typed = True
        """Whether no batch so far holds properties as JSON, which a reader has to look at."""

    def batch(self, rows: slice | Places) -> pa.RecordBatch:
        """Return the events of these records, which are neither odd nor void."""
        nodes = len(self._shape.nodes)
        times = self.times[rows]
        arrays = [pa.array(times, pa.int64()).cast(_AT)]
        arrays.append(self._elements(rows, range(nodes), len(times)))
        names = ["at", "nodes"]
        if self._shape.relationships:
            arrays.append(self._elements(rows, range(nodes, len(self.ids)), len(times)))
            names.append("relationships")
        return pa.RecordBatch.from_arrays(arrays, names)

    def _elements(self, rows: slice | Places, places: range, count: int) -> pa.Array:
        """Return a list of elements for each event: those at these places of the shape."""
        are_nodes = places.start == 0
        shapes = [(*self._shape.nodes, *self._shape.relationships)[place] for place in places]
        fields = {"id": _interleaved([_picked(self.ids[place], rows) for place in places])}
        if are_nodes:
            fields["labels"] = _repeated_lists([shape.labels for shape in shapes], count)
        else:
            fields["type"] = _repeated_lists([shape.labels for shape in shapes], count).flatten()
            for name, ends in (("from", [one.source for one in shapes]), ("to", [one.target for one in shapes])):
                fields[name] = _interleaved([_picked(self.ids[end], rows) for end in ends])
        properties = [self.properties[place] for place in places]
        if any(properties):
            found = self._of_struct(properties, rows, count)
            self.is_typed = self.is_typed and found is not None
            fields["properties"] = self._as_json(properties, rows, count) if found is None else found
        elements = pa.StructArray.from_arrays(list(fields.values()), list(fields))
        return pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * len(places)), elements)

    def _of_struct(self, properties: Sequence[Any], rows: slice | Places, count: int) -> pa.Array | None:
        """Return the properties as structs; None where keys have values of several types, or stand in several
        orders."""
        keys = list(dict.fromkeys(key for own in properties for key, _, _ in own))
        arrays: dict[str, list[pa.Array]] = {key: [] for key in keys}
        for own in properties:
            places = [keys.index(key) for key, _, _ in own]
            if places != sorted(places) or any(array is None for _, array, _ in own):
                return None
            held = {key: array for key, array, _ in own}
            for key, found in arrays.items():
                found.append(pa.nulls(count) if key not in held else _picked(held[key], rows))
        columns = []
        for found in arrays.values():
            kinds = {array.type for array in found if not pa.types.is_null(array.type)}
            if len(kinds) > 1:
                return None
            kind = kinds.pop() if kinds else pa.null()
            columns.append(_interleaved([array.cast(kind) for array in found]))
        return pa.StructArray.from_arrays(columns, keys)

    def _as_json(self, properties: Sequence[Any], rows: slice | Places, count: int) -> pa.Array:
        texts = []
        for own in properties:
            parts: list[Any] = []
            for place, (key, _, as_json) in enumerate(own):
                parts += [f"{',' if place else '{'}{_json(key)}:", _picked(as_json(), rows)]
            texts.append(_joined([*parts, "}"], count) if own else pa.nulls(count, pa.string()))
        return _interleaved(texts)


def _picked(array: pa.Array, rows: slice | Places) -> pa.Array:
    return array[rows] if isinstance(rows, slice) else taken(array, rows)


def _interleaved(arrays: Sequence[pa.Array]) -> pa.Array:
    """Return the first value of each array, then the second, and so on."""
    if len(arrays) == 1:
        return arrays[0]
    places = np.arange(len(arrays) * len(arrays[0])).reshape(len(arrays), -1).T
    return taken(pa.concat_arrays(arrays), places.ravel())


def _repeated_lists(lists: Sequence[Sequence[str]], count: int) -> pa.Array:
    """Return these lists of texts, one after the other, so many times."""
    texts = list(dict.fromkeys(text for one in lists for text in one))
    codes = np.tile(np.array([texts.index(text) for one in lists for text in one], np.int8), count)
    lengths = np.tile(np.array([len(one) for one in lists], np.int32), count)
    ends = np.concatenate(([np.int32(0)], np.cumsum(lengths, dtype=np.int32)))
    values = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(texts, pa.string()))
    return pa.ListArray.from_arrays(pa.array(ends), values)


class ColumnMapping:
    """A LOAD STREAM with a shape, compiled to map many records at once."""

    def __init__(self, shape: RecordShape) -> None:
        self._shape = shape
        at = shape.at
        times = [x.Property(x.Variable(shape.variable), name) for name in TIME_FIELDS] if at is None else [at]
        self._times = [_Instants(self._expression(one)) for one in times]
        self._conditions = [self._expression(one) for one in shape.conditions]
        elements = (*shape.nodes, *shape.relationships)
        written = [value for one in elements for _, value in one.properties]
        unwritten = [one for one in shape.evaluated if one not in written and not _is_field(one)]
        self._checks = [self._expression(one) for one in unwritten]
        nodes = [self._id_parts(one, quoted=False) for one in shape.nodes]
        relationships = [self._relationship_id(one) for one in shape.relationships]
        self._ids = [*nodes, *relationships]
        self._twins = [
            *_twins(nodes, shape.nodes, 0),
            *_twins(relationships, shape.relationships, len(nodes)),
        ]
        self._properties = [
            [_Property(key, self._expression(value)) for key, value in one.properties] for one in elements
        ]
        self._needs_sequence = any(not one.merges for one in elements)
        self._is_usual = bool(nodes) and all(map(_is_usual, elements))

    def mapped(self, records: RecordColumns, prefix: str) -> MappedRecords:
        """Map records, whose sequences in the stream are their numbers behind a prefix."""
        fields = _Fields(records)
        found = MappedRecords(self._shape, fields.count)
        time = next((one for one in self._times if one.expression.reads_any(fields)), None)
        if time is None or not self._is_usual:
            found.odd[:] = True
            return found
        odd = found.odd
        odd[list(records.odd)] = True
        found.times, late = time.over(fields)
        odd |= late
        numbers = pa.array(np.array(records.numbers, np.int64)).cast(pa.string()) if self._needs_sequence else None
        for parts in self._ids:
            made: list[Any] = []
            for part in parts:
                made += [prefix, numbers] if part is _SEQUENCE else [_over(part, fields)]
            ids = _joined(made, fields.count)
            found.ids.append(ids)
            if ids.null_count:
                odd |= truths(pc.is_null(ids))
        for first, second in self._twins:
            odd |= truths(pc.fill_null(pc.equal(found.ids[first], found.ids[second]), True))
        for properties in self._properties:
            own = []
            for one in properties:
                values, as_json, missing = one.over(fields)
                own.append((one.key, values, as_json))
                if missing is not None:
                    odd |= missing
            found.properties.append(own)
        for check in self._checks:
            odd |= check.over(fields).mask(lambda value: value is _FAILED)
        for condition in self._conditions:
            outcomes = condition.over(fields)
            odd |= outcomes.mask(lambda value: not (value is None or isinstance(value, bool)))
            found.void |= outcomes.mask(lambda value: value is not True)
        found.void &= ~odd
        return found

    def _expression(self, expression: x.Expression) -> _Expression:
        return _Expression(expression, self._shape.variable)

    def _id_parts(self, element: RecordElement, *, quoted: bool) -> list[_IdPart]:
        """Return the parts of an element's id, as `engine.ingestion` makes it; inside of another id it is quoted."""
        if not element.merges:
            return ["~", _SEQUENCE, f".{element.number}"]

        def text(part: str) -> str:
            return _quoted(part) if quoted else part

        parts: list[_IdPart] = [text(f"{':'.join(sorted(element.key_labels))}(")]
        for place, (key, expression) in enumerate(element.keys):
            parts.append(text(f"{', ' if place else ''}{key}: "))
            parts.append(_KeyText(self._expression(expression), quoted))
        return [*parts, ")"]

    def _relationship_id(self, element: RecordElement) -> list[_IdPart]:
        own = self._id_parts(element, quoted=False)
        if not element.merges:
            return own
        source, target = (
            self._id_parts(self._shape.nodes[end], quoted=True) for end in (element.source, element.target)
        )
        return ["'", *source, "'-", *own, "->'", *target, "'"]


def _over(part: _IdPart, fields: _Fields) -> Any:
    return part.over(fields) if isinstance(part, _KeyText) else part


def _twins(
    ids: Sequence[Sequence[_IdPart]], elements: Sequence[RecordElement], first_place: int
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of elements that may have the same id: merged ones that do not begin differently."""
    merged = [place for place, element in enumerate(elements) if element.merges]
    for first, second in combinations(merged, 2):
        one, other = _head(ids[first]), _head(ids[second])
        if one.startswith(other) or other.startswith(one):
            yield first_place + first, first_place + second


def _head(parts: Sequence[_IdPart]) -> str:
    return "".join(part for part in takewhile(lambda part: isinstance(part, str), parts) if isinstance(part, str))


def _is_field(expression: x.Expression) -> bool:
    return isinstance(expression, x.Property) and isinstance(expression.subject, x.Variable)


def _is_usual(element: RecordElement) -> bool:
    """Whether a batch can name an element's labels and keys as they are."""
    keys = [key for key, _ in (*element.properties, *element.keys)]
    names = (*element.labels, *element.key_labels, *keys)
    return all(name and "\0" not in name and _encodable(name) is not None for name in names) and not any(
        key.startswith("$") for key in keys
    )
