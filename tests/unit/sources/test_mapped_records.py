"""Records that are mapped by columns are the records that are mapped one by one: events, dead letters and places."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.delta.batch import ABSENT
from anabranch.delta.dictionary import Dictionary
from anabranch.errors import StreamError
from anabranch.formats import chunks
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import value_from_json
from anabranch.model.event import Event
from anabranch.model.graph_block import GraphBlock, ValueColumn
from anabranch.sources import lines as lines_of_files
from anabranch.sources import mapped
from anabranch.sources.base import Decoding, Limit, MappingDecoder, PackedRecord, Source
from anabranch.sources.chain import ChainSource
from anabranch.sources.files import FileSource
from anabranch.sources.lines import decoded, pack_range, read_range, read_whole
from anabranch.sources.mapped import pack_csv, pack_list, pack_records
from anabranch.sources.spool import Spool, SpoolSource
from anabranch.syntax.languages import script

SALES = """AT row.ts MERGE (u:User {id: row.user}) MERGE (i:Item {id: row.item, category: row.category})
CREATE (u)-[:BOUGHT {price: toFloat(row.price)}]->(i)"""
MAPPINGS = {
    "sales": SALES,
    "no AT": "CREATE (a:A {x: row.price, y: 1, z: null})",
    "millis": "AT toInteger(row.millis) MERGE (u:User {id: row.user})",
    "epoch": "AT datetime({epochMillis: toInteger(row.millis)}) MERGE (u:User {id: row.user})",
    "datetime": "AT datetime(row.ts) MERGE (n {n: toInteger(row.price)})",
    "local": "AT localdatetime(substring(row.ts, 0, 19)) MERGE (n {n: toInteger(row.price)})",
    "constant": 'AT 1000 MERGE (n:`O\'Brien \\\\ \\"x\\" é` {`k\'\\"`: 1.5, t: true})',
    "merged": """AT row.ts
MERGE (u:User {id: row.user})<-[b:BY {p: toFloat(row.price), u: row.user}]-(i:User {id: row.item})
MERGE (u)-[:SELF {c: row.category}]->(u) SET u.name = row.user + '/' + row.item, i:Seen""",
    "alike": """AT row.ts MERGE (a:A {id: row.user}) MERGE (b:A {id: row.item}) ON CREATE SET b.first = 1
CREATE (a)-[:T]->(b)""",
    "alike relationships": """AT row.ts MERGE (a:A {id: 1}) MERGE (a)-[r:T {x: row.user}]->(a)
MERGE (a)-[:T {x: row.item}]->(a) SET r.y = row.price""",
    "created ends": "AT row.ts CREATE (a:A)-[:T {u: row.user}]->(b:B) MERGE (a)-[:M {c: row.category}]->(b)",
    "filtered": """AT row.ts WITH row, toFloat(row.price) AS price, row.user AS who WHERE price > 50 AND who <> row.item
WITH who AS name, row.item AS item, price MERGE (u:User {id: name}) CREATE (u)-[:T {p: price}]->(:Item {id: item})""",
    "errors": """AT row.ts WITH row, 100 / toInteger(row.price) AS share
MERGE (u:User {id: row.user}) SET u.share = share""",
    "overwritten": """AT row.ts CREATE (a {x: 1 / toInteger(row.price)})
SET a.x = row.user, a = {z: a.x}, a += {q: [a.z, 1]}""",
    "bound": "AT row.ts MERGE (a:A {k: row.user}) MERGE (a) ON CREATE SET a.no = 1 ON MATCH SET a.yes = row.item",
    "case": """AT row.ts CREATE (a:A {x: CASE WHEN row.user IS NULL THEN 'none' ELSE toUpper(row.user) END,
  y: toString(row.price), z: row['item'], b: row.price STARTS WITH '1', s: size(row.user)})""",
    "missing": "AT row.ts CREATE (a:A {x: row.nowhere, m: {a: row.user, b: null}})",
    "typed": """AT row.ts MERGE (u:User:`A B` {id: row.user}) MERGE (i {k: 1, id: toInteger(row.millis)})
CREATE (u)-[:T {d: [row.item, 1], x: toInteger(row.price)}]->(i), (i)-[:S {x: row.item}]->(u)
SET u.x = toBoolean(row.odd), i.x = CASE WHEN row.user > 'u2' THEN 1 ELSE 2 END""",
    "in two orders": "AT row.ts MERGE (a:A {x: row.user, y: 1}) CREATE (b:B {y: row.item, x: row.user}), (c)",
    "one key of two types": """AT row.ts MERGE (a:A {x: row.user}) MERGE (b:B {x: toInteger(row.millis)})
CREATE (a)-[:T {z: row.category}]->(b)""",
    "nan": "AT row.ts CREATE (a:A {x: toFloat(row.odd)})",
}
ODD_TEXTS = (
    "",
    "",
    "'",
    '"',
    "\\",
    "a\nb",
    "a\r\nb",
    "\t",
    "é",
    "\U0001f600",
    "a,b",
    " x ",
    "\x00",
    "\x7f",
    "null",
    "~1.1",
)
NUMBERS = (
    "0",
    "-0",
    "1",
    "+1",
    "007",
    "1.50",
    ".5",
    "1.",
    "1e3",
    "-12.25",
    "NaN",
    "Infinity",
    " 7 ",
    "9" * 25,
    "x",
    "",
    "1_0",
)
TIMES = (
    "2024-01-01T00:00:00Z",
    "2024-01-01 00:00",
    "2024-01-01T12:30:00.123456Z",
    "2024-02-30T00:00:00Z",
    "2024-01-01T00:00:00+02:00",
    "2024-01-01",
    "yesterday",
    "",
    "2024-W01",
    "1704067200000",
)
KEYS = ("id", "x", "p", "price", "name", "z", "share", "c", "t", "y", "m", "d")
HEADER = ("ts", "millis", "user", "item", "category", "price", "odd", "time")


def decoder(clauses: str, **more: Any) -> MappingDecoder:
    found = Decoding("s", script(f"LOAD STREAM FROM 'r' AS row {clauses}").ingestions[0]).decoder()
    assert isinstance(found, MappingDecoder)
    assert found.columns is not None
    return MappingDecoder(found.mapping, found.columns, **more)


def row(random: Random, number: int, odd: float) -> list[str]:
    def drawn(usual: str, others: tuple[str, ...]) -> str:
        return random.choice(others) if random.random() < odd else usual

    return [
        drawn(f"2024-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}Z", TIMES),
        drawn(str(1704067200000 + number), NUMBERS),
        drawn(f"u{random.randrange(20)}", ODD_TEXTS),
        drawn(f"{random.choice('ui')}{random.randrange(20)}", ODD_TEXTS),
        drawn(f"c{random.randrange(5)}", ODD_TEXTS),
        drawn(f"{random.randrange(10_000) / 100}", NUMBERS),
        random.choice(NUMBERS),
        drawn(f"2024-01-01T00:00:{number % 60:02d}Z", TIMES),
    ]


def table(random: Random, count: int, odd: float) -> bytes:
    """A CSV file: some rows are longer or shorter than others, or blank."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=random.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)))
    writer.writerow(HEADER)
    for number in range(count):
        found = row(random, number, odd)
        if random.random() < odd / 2:
            found = random.choice((found[:3], [*found, "more"], []))
        writer.writerow(found)
        if random.random() < odd / 2:
            text.write(random.choice(("\n", "\r\n", '2024-01-01T00:00:00Z,1,"a"b,c"d\n', "x\n")))
    return text.getvalue().replace("\x00", "" if random.random() < 0.5 else "\x01").encode()


def one_by_one(records: Iterable[PackedRecord]) -> list[Any]:
    found: list[Any] = []
    for record in records:
        if isinstance(record, GraphBlock):
            found += map(repr, record.events())  # with the order of properties
        elif isinstance(record, MalformedRecord):
            found.append((record.reason, record.line, record.raw))
        else:
            assert isinstance(record, Event)
            found.append(repr(record))
    return found


def check_columns(records: Iterable[PackedRecord]) -> None:
    """Check that the columns of blocks have what their events have."""
    for block in records:
        if isinstance(block, GraphBlock):
            columns, dictionary = block.parts[0].source.columns(KEYS), Dictionary(value_of_json=value_from_json)

            def values(column: ValueColumn, columns: Any = columns, dictionary: Any = dictionary) -> list[str]:
                ids = dictionary.encode_column(column, columns.data, columns.objects).tolist()
                return [repr(None if one == ABSENT else dictionary.decode(one)) for one in ids]

            events = block.events()
            nodes = [node for event in events for node in event.nodes]
            links = [one for event in events for one in event.relationships]
            assert columns.nodes.per_event.tolist() == [len(event.nodes) for event in events]
            assert values(columns.nodes.ids) == [repr(node.id) for node in nodes]
            assert values(columns.nodes.labels) == [repr(node.labels or None) for node in nodes]
            of = columns.relationships
            for column, name in ((of.ids, "id"), (of.types, "type"), (of.sources, "source"), (of.targets, "target")):
                assert values(column) == [repr(getattr(one, name)) for one in links]
            for elements, properties in ((nodes, columns.nodes.properties), (links, of.properties)):
                for key, column in zip(KEYS, properties, strict=True):
                    assert values(column) == [repr(one.properties.get(key)) for one in elements]


def in_blocks(records: Iterable[PackedRecord]) -> int:
    return sum(len(record) for record in records if isinstance(record, GraphBlock))


def sequences(number: int) -> str:
    return f"3-{number}"


@pytest.mark.parametrize("odd", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("name", MAPPINGS)
def test_rows_of_a_table_are_mapped_alike_by_columns_and_one_by_one(name: str, odd: float) -> None:
    for number in range(2):
        random = Random(f"{name}/{odd}/{number}")
        decode, data = decoder(MAPPINGS[name]), table(random, 150, odd)
        packed = list(pack_csv(io.BytesIO(data), decode, sequences))
        assert one_by_one(packed) == one_by_one(read_whole(io.BytesIO(data), "csv", decode, sequences))
        check_columns(packed)
        if odd == 0 and name != "nan":
            assert in_blocks(packed) > 30
            again = [event for block in packed if isinstance(block, GraphBlock) for event in unpacked(block)]
            assert again == [event for block in packed if isinstance(block, GraphBlock) for event in block.events()]


def unpacked(block: GraphBlock) -> list[Event]:
    return chunks.unpack(chunks.pack(block))


VALUES: tuple[Any, ...] = (
    1, 1.0, True, 0, -0.0, 0.0, False, None, "", "1", [1, "a"], {"a": 1}, {"$date": "2024-01-01"}, 2**63, 2**70, 1e300,
    {"$datetime": "2024-01-01T00:00:00Z"}, {"$nothing": 1}, "é", -5,
)  # fmt: skip


def record(random: Random, number: int, odd: float) -> Any:
    found: dict[str, Any] = dict(zip(HEADER, row(random, number, odd), strict=True))
    found["price"] = random.choice((random.randrange(100), random.random(), found["price"]))
    found["millis"] = 1704067200000 + number
    for name in (*HEADER, "unused"):
        if random.random() < odd:
            found[name] = random.choice(VALUES)
        elif random.random() < odd:
            found.pop(name, None)
    if random.random() < odd / 4:
        return random.choice(([1], "text", None, {"$date": "2024-01-01"}, {"$map": found}, {**found, "$x": 1}))
    return found


@pytest.mark.parametrize("odd", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("name", MAPPINGS)
def test_json_records_are_mapped_alike_by_columns_and_one_by_one(name: str, odd: float) -> None:
    for number in range(2):
        random = Random(f"{name}/{odd}/{number}")
        decode = decoder(MAPPINGS[name])
        records = [(place * 2, record(random, place, odd)) for place in range(150)]
        packed = list(pack_records(records, decode, sequences))
        assert one_by_one(packed) == one_by_one(decoded(records, decode, sequences))
        check_columns(packed)
        if odd == 0 and name not in ("nan", "filtered", "errors", "overwritten"):
            assert in_blocks(packed) > 30
    listed = io.BytesIO(json.dumps([one for _, one in records]).encode())
    assert one_by_one(pack_list(listed, decode)) == one_by_one(read_whole(listed, "list", decode))


@pytest.mark.parametrize("block", [50, 3000, 1 << 20])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["sales", "no AT", "case"])
def test_tables_without_quotes_are_read_alike_wherever_they_are_cut(
    name: str, ending: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "_BLOCK", block)
    for odd in (0.0, 0.03):
        random = Random(f"{name}/{ending}/{block}/{odd}")
        rows = [row(random, number, odd) for number in range(250)]
        texts = [",".join(one) for one in rows if not set("".join(one)) & set('",\n\r\0')]
        at = random.randrange(len(texts))
        for between in ("", " ", "x", "1,2", ",".join("123456789"), "\ufeff", 'a"b', '"a', "a\rb"):
            whole = [",".join(HEADER), *texts[:at], between, *texts[at:], random.choice(("", "end"))]
            data = random.choice((b"", b"\xef\xbb\xbf")) + ending.join(whole).encode()
            decode = decoder(MAPPINGS[name])
            packed = list(pack_csv(io.BytesIO(data), decode, sequences))
            assert one_by_one(packed) == one_by_one(read_whole(io.BytesIO(data), "csv", decode, sequences))


@pytest.mark.parametrize("size", [64, 100])
def test_batches_of_rows_go_on_counting(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "EVENTS_PER_CHUNK", size)
    decode, data = decoder(SALES), table(Random(size), 500, 0.05)
    packed = list(pack_csv(io.BytesIO(data), decode))
    assert one_by_one(packed) == one_by_one(read_whole(io.BytesIO(data), "csv", decode))


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "limit", [Limit(size=1), Limit(size=3000), Limit(size=1 << 20, records=70), Limit(size=1 << 30)]
)
def test_a_table_is_cut_between_rows_up_to_its_first_quote(
    limit: Limit, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_of_files, "_FEWEST_BYTES", 2000)
    decode, file = decoder(SALES), tmp_path / "a.csv"
    random = Random(f"{limit}/{ending}")
    for quoted in ("", '"a,b"', '"a\nb"', "a\rb", "x" * 5000):
        rows = [",".join(row(random, number, 0.0)) for number in range(400)]
        for _ in range(5):
            rows.insert(random.randrange(400), "")
        if quoted:
            at = random.randrange(len(rows))
            rows[at] = rows[at].replace(",u", f",{quoted}u")
        head = random.choice((b"", b"\xef\xbb\xbf"))
        file.write_bytes(head + ending.join([",".join(HEADER), *rows, *random.choice(([], [""]))]).encode())
        source = FileSource("s", str(file), records_are_events=False)
        with file.open("rb") as content:
            whole = one_by_one(read_whole(content, "csv", decode))
        packed, single = (all_of(source, decode, how, limit) for how in (True, False))
        assert one_by_one(packed) == one_by_one(single) == whole
        if not quoted:
            batches = number_of_batches(source, limit)
            assert (batches > 5) == (limit.size < 1 << 20 or limit.records is not None)


def number_of_batches(source: Source, limit: Limit) -> int:
    offset, count = source.begin(), 0
    while (end := source.ahead(offset, limit)) != offset:
        offset, count = end, count + 1
    return count


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\n\n", b"a,b", b"\xef\xbb\xbf", b"\xef\xbb\xbf\nts,x\n1,2\n", b"ts,user\n\n\n"]
)
def test_a_table_with_an_odd_beginning_is_read_as_a_whole(data: bytes, tmp_path: Path) -> None:
    decode, file = decoder("AT row.ts CREATE (a:A {x: row.user})"), tmp_path / "a.csv"
    file.write_bytes(data)
    source = FileSource("s", str(file), records_are_events=False)
    with file.open("rb") as content:
        whole = one_by_one(read_whole(content, "csv", decode))
    assert one_by_one(all_of(source, decode, packed=True)) == one_by_one(all_of(source, decode, packed=False)) == whole


def test_a_value_that_is_too_long_is_refused_as_the_reader_of_tables_refuses_it() -> None:
    data = b"ts,user\n" + b"2024-01-01,u\n" * 100 + b"2024-01-01," + b"x" * (csv.field_size_limit() + 1) + b"\n"
    found: list[PackedRecord] = []
    with pytest.raises(StreamError, match="not CSV: field larger than field limit"):
        found.extend(pack_csv(io.BytesIO(data), decoder("AT row.ts CREATE (a:A {x: row.user})")))
    assert len(one_by_one(found)) == 100


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xef\xbb\xbf",
        b"\n",
        b"ts,user",
        b"ts,user\n",
        b"\n\nts,user\n",
        b"$a,user,ts\n" + b"1,2,2024-01-01\n" * 100,
    ],
)
def test_tables_with_odd_headers_are_read_alike(data: bytes) -> None:
    decode = decoder("AT row.ts CREATE (a:A {x: row.user})")
    assert one_by_one(pack_csv(io.BytesIO(data), decode)) == one_by_one(read_whole(io.BytesIO(data), "csv", decode))


def test_a_file_that_is_no_text_from_some_row_on_gives_the_rows_before_it() -> None:
    good = b"".join(b"2024-01-01T00:00:00Z,u,i,c,1.5\n" for _ in range(5000))
    data = b"ts,user,item,category,price\n" + good + b"\xff\n"
    found: list[PackedRecord] = []
    with pytest.raises(StreamError, match="not UTF-8 text"):
        found.extend(pack_csv(io.BytesIO(data), decoder(SALES)))
    assert in_blocks(found) > 4000


def test_a_repeated_name_in_the_header_means_the_last_column() -> None:
    data = b"ts,x,x\n" + b"2024-01-01,1,2\n" * 100
    decode = decoder("AT row.ts CREATE (a:A {x: row.x})")
    packed = list(pack_csv(io.BytesIO(data), decode))
    assert in_blocks(packed) == 100
    assert one_by_one(packed) == one_by_one(read_whole(io.BytesIO(data), "csv", decode))


def test_a_few_records_are_mapped_one_by_one() -> None:
    data = b"ts,x\n" + b"2024-01-01,1\n" * 5
    packed = list(pack_csv(io.BytesIO(data), decoder("AT row.ts CREATE (a:A {x: row.x})")))
    assert (len(packed), in_blocks(packed)) == (5, 0)


def lines(random: Random, count: int, odd: float) -> bytes:
    others = (b"", b"# a comment", b"{", b"null", b"[1]", b'{"ts": "\\ud800"}', b"\xff", b'{"user": NaN}')
    found = [
        random.choice(others) if random.random() < odd else json.dumps(record(random, number, odd)).encode()
        for number in range(count)
    ]
    return b"\n".join(found)


def typed(random: Random, number: int) -> dict[str, Any]:
    """A row of a Parquet file."""
    return {
        "ts": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(milliseconds=number),
        "user": random.choice(("u1", "u2", None)) if number % 50 == 0 else f"u{number}",
        "item": number % 7,
        "category": number % 2 == 0,
        "price": Decimal(number) / 4,
    }


@pytest.mark.parametrize("odd", [0.0, 0.03, 0.2])
@pytest.mark.parametrize("name", MAPPINGS)
def test_lines_of_records_are_mapped_alike_by_columns_and_one_by_one(name: str, odd: float) -> None:
    random = Random(f"{name}/{odd}")
    decode, data = decoder(MAPPINGS[name], prefix="1/"), lines(random, 200, odd)
    bounds = (0, len(data), 17, decode)
    packed = list(pack_range(io.BytesIO(data), *bounds, sequences))  # type: ignore[arg-type]
    assert one_by_one(packed) == one_by_one(read_range(io.BytesIO(data), *bounds, sequences))  # type: ignore[arg-type]


def all_of(source: Source, decode: MappingDecoder, packed: bool, limit: Limit | None = None) -> list[Any]:
    found: list[Any] = []
    offset = source.begin()
    while (end := source.ahead(offset, limit or Limit(size=20_000))) != offset:
        for piece in source.pieces(offset, end):
            found += source.read_packed(piece, decode) if packed else source.read(piece, decode)
        offset = end
    return found


def test_files_of_all_kinds_and_chains_of_them_give_blocks_of_the_same_events(tmp_path: Path) -> None:
    random = Random(7)
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.csv").write_bytes(table(random, 300, 0.05))
    (folder / "b.csv.gz").write_bytes(gzip.compress(table(random, 300, 0.05)))
    (folder / "c.json").write_text(json.dumps([record(random, number, 0.03) for number in range(300)]))
    (folder / "d.ndjson").write_bytes(lines(random, 300, 0.03))
    (folder / "e.ndjson.gz").write_bytes(gzip.compress(lines(random, 300, 0.03)))
    pq.write_table(pa.Table.from_pylist([typed(random, number) for number in range(300)]), folder / "f.parquet")
    one = FileSource("s", str(folder), records_are_events=False)
    decode = decoder(SALES)
    assert in_blocks(all_of(one, decode, packed=True)) > 600
    with Spool(tmp_path / "spool") as spool:
        spool.append(line for line in lines(random, 300, 0.003).split(b"\n") if line.strip())
        spool.finish()
    spooled = SpoolSource("s", tmp_path / "spool", finite=True)
    assert in_blocks(all_of(spooled, decode, packed=True)) > 100
    for source in (one, ChainSource("s", (one, one)), spooled):
        packed = all_of(source, decode, packed=True)
        assert one_by_one(packed) == one_by_one(all_of(source, decode, packed=False))
