"""Lines of NDJSON in columns: a regular line has the event of the exact reader, and every other line goes to it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.graph_columns import events_of, narrowed, whole_maps_in, whole_maps_of

from anabranch.delta.json_lines import REGULAR, LineScan, padded
from anabranch.errors import StreamError
from anabranch.formats import chunks
from anabranch.formats.events import event_from_dict
from anabranch.formats.graph_lines import GraphLines, broken_lines, read_runs
from anabranch.formats.ndjson import read_line
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock, ValueKind

KEYS = ("name", "age", "a long key of many bytes", "a long key of many others", "", "é", "x", 'a"b\n', "😀")


def source_of(block: GraphBlock) -> GraphLines:
    (part,) = block.parts
    assert isinstance(part.source, GraphLines)
    return part.source


def is_blank(line: bytes) -> bool:
    return not line or line.isspace() or read_comment(line)


def read_comment(line: bytes) -> bool:
    try:
        return line.decode().lstrip().startswith("#")
    except UnicodeDecodeError:
        return False


def checked(data: bytes, keys: tuple[str, ...] = KEYS) -> int:
    """Check the runs of some lines against the exact reader, and return the number of events in blocks."""
    lines = data.split(b"\n")
    place = regular = 0
    for run in read_runs(data, 1, keys):
        while is_blank(lines[place]) and not (isinstance(run, tuple) and run[0] == place + 1):
            place += 1
        if isinstance(run, tuple):
            assert run == (place + 1, lines[place])
            place += 1
            continue
        source = source_of(run)
        expected = []
        while len(expected) < len(run):
            if not is_blank(lines[place]):
                event = read_line(lines[place])
                assert isinstance(event, Event), (lines[place], event)
                assert not event.triples
                expected.append(event)
            place += 1
        assert repr(events_of(source, keys)) == repr([narrowed(event, keys) for event in expected])
        assert repr(source.events(range(len(source)))) == repr(expected)
        assert repr(whole_maps_of(source)) == repr(whole_maps_in(expected))
        regular += len(run)
    assert all(is_blank(line) for line in lines[place:])
    return regular


# --- drawn lines ------------------------------------------------------------------------------------------------------

TEXTS = ["", "a", "Ann", "é", "日本語", 'quo"te', "back\\slash", "tab\t", "\u2028", "$date", "x" * 40, "\x7f", "😀"]
NUMBERS = [
    "0", "-0", "1", "-1", "12", "9223372036854775807", "-9223372036854775808", "9007199254740993", "0.0", "-0.0", "1.0",
    "12.5", "1e5", "1E+5", "1e-5", "0.1", "3.14159", "123456789012345678", "0.1234567890123456789", "1e22", "1e23",
    "9007199254740993.0", "5e-324", "1.7976931348623157e250", "0.000001", "00.5"[1:], "1e-400", "123456789.123456789",
]  # fmt: skip
ODD = [
    "9223372036854775808", "-9223372036854775809", "1e400", "01", "1.", ".5", "+1", "1e", "NaN", "Infinity",
    "-Infinity", "-", '{"$date": "2020-01-01"}', '{"$date": 1}', '"\\ud800"',
    '"\\ud83d\\ud83d"', '"\\ude00\\ud83d"', '"\\ud83d"', '"\\ud83dx"', '"\\x"', '"\\u12g4"',
    "tru", "nul", "[1,]", "[1 2]", "{1: 2}", '{"a": 1,}', "[" * 30 + "]" * 30, "[" * 19 + "]" * 19, '"\x01"', '"',
    '{"a": {"\\u0024date": 1}}', "1" * 5000, "'a'", "",
]  # fmt: skip


def drawn_text(random: Random) -> str:
    return json.dumps(random.choice(TEXTS), ensure_ascii=random.random() < 0.3)


def drawn_value(random: Random, depth: int = 0) -> str:
    draw = random.random()
    if draw < 0.3:
        return drawn_text(random)
    if draw < 0.7:
        return random.choice(NUMBERS)
    if draw < 0.8 or depth > 2:
        return random.choice(["true", "false", "null"])
    if draw < 0.82:
        return random.choice(ODD)
    count = random.randrange(3)
    if draw < 0.9:
        return spaced(random, "[", [drawn_value(random, depth + 1) for _ in range(count)], "]")
    return drawn_map(random, [(random.choice(KEYS), drawn_value(random, depth + 1)) for _ in range(count)])


def spaced(random: Random, opening: str, items: list[str], closing: str) -> str:
    gap = random.choice(["", "", " ", "\t", " \r "])
    return f"{opening}{gap}{f'{gap},{gap}'.join(items)}{gap}{closing}"


def drawn_map(random: Random, items: list[tuple[str, str]]) -> str:
    colon = random.choice([":", ": ", " : "])
    ascii_only = random.random() < 0.5
    return spaced(
        random, "{", [f"{json.dumps(key, ensure_ascii=ascii_only)}{colon}{value}" for key, value in items], "}"
    )


def drawn_id(random: Random) -> str:
    return random.choice(
        [str(random.randrange(50)), f'"u{random.randrange(50)}"', f'"{random.randrange(50)}"', '"\\u00e9"', '""']
        if random.random() < 0.3
        else [f'"n{random.randrange(1000)}"']
    )


def drawn_properties(random: Random) -> list[tuple[str, str]]:
    if random.random() < 0.1:
        return []
    keys = random.sample([*KEYS, "other", "names", "na"], random.randrange(4))
    return [("properties", drawn_map(random, [(key, drawn_value(random)) for key in keys]))]


def drawn_labels(random: Random) -> list[tuple[str, str]]:
    labels = ['["A"]', '["A", "B"]', "[]", "null", '["\\u00e9"]', '["A","A"]', '[""]', '"A"', '["é" , "B"]', "[1]"]
    return [("labels", random.choice(labels[:4] if random.random() < 0.9 else labels))] if random.random() < 0.8 else []


def drawn_node(random: Random) -> str:
    items = [("id", drawn_id(random)), *drawn_labels(random), *drawn_properties(random)]
    if random.random() < 0.05:
        items.append(random.choice([("label", '"A"'), ("other", "[1]"), ("id", "1"), ("type", '"T"')]))
    random.shuffle(items)
    return drawn_map(random, items)


def drawn_relationship(random: Random) -> str:
    ends = random.choice([("from", "to")] * 8 + [("start", "end"), ("source", "target")])
    items = [("type", random.choice(['"KNOWS"', '"é"', '"\\u00e9"'])), *drawn_properties(random)]
    items += [(end, drawn_id(random)) for end in ends]
    if random.random() < 0.8:
        items.append(("id", drawn_id(random)))
    if random.random() < 0.05:
        items.append(random.choice([("id", "null"), ("from", "1"), ("start", "2"), ("other", "{}"), ("type", '""')]))
    random.shuffle(items)
    return drawn_map(random, items)


TIMES = [
    "1700000000000", "0", "-5", '"2022-10-14T14:45:00Z"', '"2022-10-14T14:45:00.123456+05:30"', '"2022-10-14"',
    '"2024-02-29 23:59:59.9-01:00"', '"1969-12-31T23:59:59.999999999"', '"2022-10-14T14:45"', '"0001-01-01T00:00:00Z"',
    '"9999-12-31T23:59:59Z"', '"2000-02-29T00:00:00+18:00"', "9223372036854774", "-9223372036854774",
]  # fmt: skip
ODD_TIMES = [
    '"2023-02-29"', '"2022-13-01"', '"2022-10-14T24:00:00Z"', '"2022-10-14T14:45:00+18:01"', '"20221014T144500Z"',
    '"2022-W41-5"', '"now"', '""', "1.5", "1e3", "null", "true", "9223372036854775", '"2022-10-14T"', '"2022-10-14Z"',
    '"0000-01-01"', '"2022-10-14T14:45:00.Z"', '"2022-10-14T14:45:00.1234567890Z"', '"2022-10-14T14:45:00+05"',
    '"2022-10-14T14:45:00z"', '"2022-10-14t14:45:00Z"', '"2022-10-14T14:45:60Z"', '"\\u0032022-10-14"',
]  # fmt: skip


def drawn_line(random: Random) -> str:
    items = [("at", random.choice(TIMES if random.random() < 0.95 else ODD_TIMES))]
    if random.random() < 0.95:
        nodes = [drawn_node(random) for _ in range(random.randrange(4))]
        items.append(("nodes", spaced(random, "[", nodes, "]")))
    if random.random() < 0.8:
        relationships = [drawn_relationship(random) for _ in range(random.randrange(3))]
        items.append((random.choice(["relationships"] * 9 + ["edges"]), spaced(random, "[", relationships, "]")))
    if random.random() < 0.05:
        extras = [
            ("edges", "[]"),
            ("nodes", "null"),
            ("at", "1"),
            ("other", "1"),
            ("more", "{}"),
            ("triples", "[]"),
            ("node", "[]"),
        ]
        items.append(random.choice([*extras, ("relationships", "null"), ("$at", "1"), ("@id", '"x"')]))
    if random.random() < 0.2:
        random.shuffle(items)
    if random.random() < 0.01:
        del items[0]
    return drawn_map(random, items)


def mutated(random: Random, line: bytes) -> bytes:
    if not line:
        return line
    at = random.randrange(len(line))
    match random.randrange(7):
        case 0:
            return line[:at] + line[at + 1 :]
        case 1:
            return line[:at] + bytes([random.choice(b'{}[]",:\\0129.eE-+ \t\r\x00\x1f\xc3\xff#$tfn')]) + line[at:]
        case 2:
            return line[:at] + bytes([random.randrange(256)]) + line[at + 1 :]
        case 3:
            return line[:at]
        case 4:
            other = random.randrange(len(line))
            return line[: min(at, other)] + line[max(at, other) :]
        case 5:
            return line[:at] + line[at : at + random.randrange(30)] + line[at:]
        case _:
            other = line.find(b'"', at) + 1
            return line[:other] + random.choice([b"id", b"at", b"$", b"\\u0061", b"nodes"]) + line[other:]


def regular_of(lines: list[bytes]) -> list[bytes]:
    """The lines that one scan of them all takes for regular."""
    data = b"\n".join(lines)
    found = LineScan(padded(data), 0, len(data), KEYS, broken_lines(data))
    assert len(found.statuses) == len(lines)
    return [lines[number] for number in np.flatnonzero(found.statuses == REGULAR)]


@pytest.mark.parametrize("seed", range(5))
def test_drawn_lines_have_the_events_of_the_exact_reader(seed: int) -> None:
    random = Random(seed)
    lines = [drawn_line(random).encode() for _ in range(2000)]
    regular = regular_of(lines)
    assert 1000 < len(regular) < 1900
    others = sorted(set(lines) - set(regular))
    mixed = [
        random.choice(others) if random.random() < 0.01 else b" \r" if random.random() < 0.02 else line
        for line in (*regular, b"# a comment", b"", *lines[:50], *regular[:500])
    ]
    assert checked(b"\n".join(mixed)) > len(regular) // 2
    assert checked(b"\n".join(regular)) == len(regular)


@pytest.mark.parametrize("seed", range(5))
def test_lines_with_changed_bytes_are_regular_only_if_the_exact_reader_agrees(seed: int) -> None:
    random = Random(100 + seed)
    lines = [drawn_line(random).encode() for _ in range(400)]
    changed = [mutated(random, random.choice(lines)).replace(b"\n", b" ") or b" " for _ in range(6000)]
    regular = regular_of(changed)
    assert 300 < len(regular) < 4000
    assert checked(b"\n".join(regular)) == len(regular)


# --- single lines -----------------------------------------------------------------------------------------------------

NODE = '{"id": "a", "labels": ["A"], "properties": {"x": VALUE}}'


def line_with(value: str) -> bytes:
    return f'{{"at": 1, "nodes": [{NODE.replace("VALUE", value)}]}}'.encode()


@pytest.mark.parametrize(
    "value", [*NUMBERS, *map(json.dumps, TEXTS), "[]", "[1, [2.5]]", '{"a": null}', "null", "true"]
)
def test_plain_values_are_regular(value: str) -> None:
    assert checked(line_with(value)) == 1


@pytest.mark.parametrize("value", ODD)
def test_odd_values_are_for_the_exact_reader(value: str) -> None:
    assert checked(line_with(value)) == value.startswith("[" * 19 + "]")


def test_the_example_of_the_format_has_the_kinds_that_a_reader_expects() -> None:
    line = (
        b'{"at": 1700000000000, "nodes": [{"id": "u12", "labels": ["User"], "properties": {"name": "n12", "age": 33}}, '
        b'{"id": 7, "properties": {"price": 12.5, "new": true, "tags": ["a"]}}], '
        b'"relationships": [{"type": "BOUGHT", "from": "u12", "to": 7}]}'
    )
    (block,) = read_runs(line, 1, ("name", "age", "price", "new", "tags"))
    assert isinstance(block, GraphBlock)
    columns = source_of(block).columns(("name", "age", "price", "new", "tags"))
    nodes, relationships = columns.nodes, columns.relationships
    assert block.times.tolist() == [1_700_000_000_000_000]
    assert nodes.ids.kinds.tolist() == [ValueKind.TEXT, ValueKind.INTEGER]
    assert nodes.labels.kinds.tolist() == [ValueKind.JSON, ValueKind.ABSENT]
    assert [int(column.kinds.max()) for column in nodes.properties] == [
        ValueKind.TEXT,
        ValueKind.INTEGER,
        ValueKind.FLOAT,
        ValueKind.BOOLEAN,
        ValueKind.JSON,
    ]
    assert relationships.ids.kinds.tolist() == [ValueKind.ABSENT]
    assert checked(line, ("name", "age", "price", "new", "tags")) == 1


@pytest.mark.parametrize("text", [*TIMES, *ODD_TIMES])
def test_times_are_those_of_the_exact_reader(text: str) -> None:
    assert checked(f'{{"at": {text}}}'.encode()) == (text in TIMES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"a"', '"b"'),
        ('"\\u00e9"', '"é"'),
        ('"\\u00e9"', '"\\u00E9"'),
        ('"\\u00e9"', '"\\u00e8"'),
        ('"a\\/b"', '"a/b"'),
        ('"\\n"', '"\\u000a"'),
        ('"\\t\\r\\b\\f\\"\\\\"', '"\\u0009\\u000d\\u0008\\u000c\\u0022\\u005c"'),
        ('"\\u20ac"', '"€"'),
        ('"\\u20ac"', '"😀"'),
        ('"\\n"', '""'),
        ('"\\ud83d\\ude00"', '"😀"'),
        ('"\\ud83d\\ude00"', '"😁"'),
        ("1", '"\\u0031"'),
        ("1", "1"),
        ("0", "-0"),
        ("1", "2"),
    ],
)
def test_an_event_that_names_an_element_twice_is_for_the_exact_reader(one: str, other: str) -> None:
    same = json.loads(one) == json.loads(other)
    nodes = f'{{"at": 1, "nodes": [{{"id": {one}}}, {{"id": {other}}}]}}'
    assert checked(nodes.encode()) == (not same)
    ends = '"type": "T", "from": 1, "to": 2'
    relationships = f'{{"at": 1, "edges": [{{"id": {other}, {ends}}}, {{{ends}}}, {{"id": {one}, {ends}}}]}}'
    assert checked(relationships.encode()) == (not same)


@pytest.mark.parametrize(
    ("name", "regular"),
    [
        ("source", True),
        ("Nodes", True),
        ("", True),
        ("vertice", True),
        ("node", False),
        ("NODE", False),
        ("Vertices", False),
        ("relationship", False),
        ("Relations", False),
        ("lin\u212as", False),
        ("triples", False),
        ("@context", False),
        ("$x", False),
        ("Edge", False),
    ],
)
def test_fields_of_the_users_own_are_passed_over_unless_they_look_like_ours(name: str, regular: bool) -> None:
    for value in ("1", '[{"a": {}}]'):
        line = f'{{"{name}": {value}, "at": 1}}'.encode()
        assert checked(line) == regular


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_found_however_it_is_written(key: str) -> None:
    for text in (json.dumps(key), json.dumps(key, ensure_ascii=False), "".join(f"\\u{ord(one):04x}" for one in "x")):
        written = text if text.startswith('"') else f'"{text}"'
        line = f'{{"at": 1, "nodes": [{{"id": 1, "properties": {{{written}: 5, "other\\n": 6}}}}]}}'.encode()
        assert checked(line) == 1
        twice = line.replace(b'"other\\n"', json.dumps(json.loads(written)).encode())
        assert checked(twice) == 1, "the last value counts, as the exact reader has it"


@settings(max_examples=300)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_exact(number: float) -> None:
    assert checked(line_with(repr(number))) == (abs(number) < 1e290)


# --- runs -------------------------------------------------------------------------------------------------------------


def shapes(data: bytes, first_line: int = 1) -> list[int | tuple[int, bytes]]:
    return [run if isinstance(run, tuple) else len(run) for run in read_runs(data, first_line)]


def test_an_odd_line_parts_the_lines_around_it() -> None:
    plain, odd = b'{"at": 1}\n', b'{"at": 1.5}'
    assert shapes(plain * 20 + odd + b"\n" + plain * 30, 100) == [20, (120, odd), 30]


def test_few_lines_beside_odd_ones_are_for_the_exact_reader_too() -> None:
    plain, odd = b'{"at": 1}', b'{"at": 1.5}'
    data = b"\n".join([plain, odd, b"", plain, odd, *[plain] * 16])
    assert shapes(data) == [(1, plain), (2, odd), (4, plain), (5, odd), 16]


def test_blank_lines_and_comments_are_counted_and_passed_over() -> None:
    plain, odd = b'{"at": 1}', b"[]"
    data = b"\n".join([b"", plain, b" \r", b"# note", *[plain] * 20, odd, b"#", b""])
    assert shapes(data) == [21, (25, odd)]
    assert checked(data) == 21


def test_lines_that_are_no_utf8_are_for_the_exact_reader() -> None:
    plain, broken = '{"at": 1, "nodes": [{"id": "é"}]}'.encode(), b'{"at": 1, "nodes": [{"id": "\xff"}]}'
    assert shapes(b"\n".join([*[plain] * 16, broken, b"#\xff", *[plain] * 17])) == [
        16,
        (17, broken),
        (18, b"#\xff"),
        17,
    ]


def test_blocks_are_of_a_handy_size() -> None:
    assert shapes(b'{"at": 1}\n' * 40_000) == [16_384, 16_384, 7_232]
    assert shapes(b"") == shapes(b"\n\n") == []


def test_a_source_answers_for_any_keys() -> None:
    random = Random(5)
    lines = [line for line in (drawn_line(random).encode() for _ in range(300)) if checked(line)]
    (block,) = read_runs(b"\n \n".join(lines), 1, ("name",))
    assert isinstance(block, GraphBlock)
    source, expected = source_of(block), [read_line(line) for line in lines]
    for keys in (("name",), (), KEYS, ("x", "name"), ("x", "unheard", "x")):
        assert repr(events_of(source, keys)) == repr([narrowed(event, keys) for event in expected])  # type: ignore[arg-type]


# --- chunks -----------------------------------------------------------------------------------------------------------


def drawn_block(seed: int, gap: bytes = b"\n") -> tuple[GraphBlock, list[Event]]:
    random = Random(seed)
    lines = [line for line in (drawn_line(random).encode() for _ in range(200)) if checked(line)]
    (block,) = read_runs(gap.join(lines), 1, KEYS)
    assert isinstance(block, GraphBlock)
    events = [read_line(line) for line in lines]
    return block, [event for event in events if isinstance(event, Event)]


@pytest.mark.parametrize("gap", [b"\n", b"\n\n", b"\r\n"])
def test_a_block_of_lines_travels_as_its_lines(gap: bytes) -> None:
    block, events = drawn_block(1, gap)
    data = chunks.pack(block)
    head = chunks.head(data)
    assert head.layout is chunks.ChunkLayout.LINES
    assert (head.events, head.nodes) == (len(events), sum(len(event.nodes) for event in events))
    assert head.relationships == sum(len(event.relationships) for event in events)
    times = [event.event_time for event in events]
    assert (head.first, head.last) == (min(times), max(times))
    found = chunks.opened(data)
    assert isinstance(found, GraphBlock)
    assert found.times.tolist() == times
    assert repr(chunks.unpack(data)) == repr(events)
    assert repr(events_of(source_of(found), KEYS)) == repr([narrowed(event, KEYS) for event in events])


def test_any_rows_in_any_order_are_packed() -> None:
    block, events = drawn_block(2)
    order = np.array(Random(3).sample(range(len(events)), 50))
    for picked, rows in ((block[10:20], range(10, 20)), (block.sorted_by(order), order), (block[:0], ())):
        assert repr(chunks.unpack(chunks.pack(picked))) == repr([events[row] for row in rows])
    opened = chunks.opened(chunks.pack(block))
    assert isinstance(opened, GraphBlock)
    assert chunks.pack(opened[5:9]) == chunks.pack(block[5:9])


def test_blocks_of_several_sources_are_packed_together() -> None:
    (one, some), (other, more) = drawn_block(4), drawn_block(5, b"\n\n")
    joined = GraphBlock.joined([one[:30], other[3:9], one[40:41]])
    expected = [*some[:30], *more[3:9], some[40]]
    data = chunks.pack(joined)
    assert chunks.head(data).layout is chunks.ChunkLayout.LINES
    assert repr(chunks.unpack(data)) == repr(expected)
    order = np.argsort([len(event.nodes) for event in expected], kind="stable")
    assert repr(chunks.unpack(chunks.pack(joined.sorted_by(order)))) == repr([expected[row] for row in order])


def test_damaged_chunks_of_lines_are_refused() -> None:
    block, _ = drawn_block(6)
    whole = chunks.pack(block)
    for data in (
        whole[:-1],
        whole[:-20],
        whole + b"x",
        whole[:5] + b"\x07" + whole[6:],
        whole[:6] + b"\x07" + whole[7:],
    ):
        with pytest.raises(StreamError, match="damaged"):
            chunks.unpack(data)
        with pytest.raises(StreamError, match="damaged"):
            chunks.opened(data)


@pytest.mark.parametrize("line", [b'{"at": 2}', b'{"at": 1.0}', b"", b'{"at": 1}\n{"at": 1}', b"#", b"[]"])
def test_a_chunk_with_other_lines_than_were_scanned_is_damaged(line: bytes) -> None:
    data = chunks.pack_lines(np.array([1000]), (0, 0), np.array([len(line)]), line + b"\n")
    block = chunks.opened(data)
    assert isinstance(block, GraphBlock)
    with pytest.raises(StreamError, match="damaged"):
        source_of(block).columns(())


def test_lines_of_other_lengths_than_were_packed_are_damage() -> None:
    lines = b'{"at": 1}\n{"at": 1}\n'
    block = chunks.opened(chunks.pack_lines(np.array([1000, 1000]), (0, 0), np.array([8, 10]), lines))
    assert isinstance(block, GraphBlock)
    with pytest.raises(StreamError, match="damaged"):
        source_of(block).columns(())
    with pytest.raises(StreamError, match="damaged"):
        chunks.opened(chunks.pack_lines(np.array([1000]), (0, 0), np.array([8]), lines))


# --- dicts ------------------------------------------------------------------------------------------------------------


def test_dicts_become_lines() -> None:
    dicts: list[dict[str, Any]] = [
        {"at": 5, "nodes": [{"id": 'a"b', "labels": ("A",), "properties": {"x": 1.5, "name": 'quo"te\n'}}]},
        {"at": "2022-10-14T14:45:00Z", "edges": [{"type": "T", "from": 1, "to": "é", "properties": {"x": [1, None]}}]},
    ]
    block = GraphLines.of_dicts(dicts, KEYS)
    assert block is not None
    expected = [event_from_dict(one) for one in dicts]
    assert repr(source_of(block).events((0, 1))) == repr(expected)
    assert repr(events_of(source_of(block), KEYS)) == repr([narrowed(event, KEYS) for event in expected])
    nothing = GraphLines.of_dicts([])
    assert nothing is not None
    assert len(nothing) == 0


NOT_PLAIN: list[Callable[[], Any]] = [
    lambda: {"at": 5.5},
    lambda: {"at": 5, "nodes": [{"id": 1, "properties": {"x": math.nan}}]},
    lambda: {"at": 5, "nodes": [{"id": 1, "properties": {"x": object()}}]},
    lambda: {"at": 5, "nodes": [{"id": 1, "properties": {5: 1}}]},
    lambda: {"at": 5, "nodes": [{"id": 1, "properties": {None: 1}}]},
    lambda: {"at": 5, "nodes": [{"id": 1, "properties": {False: 1}}]},
    lambda: {"at": 5, "nodes": [{"id": 1, "properties": {-2.5: 1}}]},
    lambda: {"at": 5, "nodes": [{"id": "\ud800"}]},
    lambda: {"at": 5, "nodes": [{"id": 1, "properties": {"x": {"$date": "2020-01-01"}}}]},
    lambda: "2020-01-01T00:00:00Z\t<a:a> <a:b> <a:c> .",
    lambda: Event(5),
]


def a_loop() -> dict[str, Any]:
    loop: list[Any] = []
    loop.append(loop)
    return {"at": 5, "nodes": [{"id": 1, "properties": {"x": loop}}]}


@pytest.mark.parametrize("make", [*NOT_PLAIN, a_loop])
def test_dicts_that_are_not_plain_are_for_the_exact_way(make: Callable[[], Any]) -> None:
    assert GraphLines.of_dicts([{"at": 5}, make()]) is None
