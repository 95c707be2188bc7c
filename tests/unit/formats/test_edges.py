"""Tables of edges: every record comes out as an edge or as a malformed record with its line."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.errors import StreamError
from anabranch.formats.edges import reader as edges_module
from anabranch.formats.edges.reader import EdgeReader, edge_format, read_pairs
from anabranch.formats.edges.times import TimeReader
from anabranch.model.instants import parse_instant

Edges = list[tuple[Any, Any, int | None, int]]


def read(
    data: bytes, form: Any = "csv", live: bool = False, **options: Any
) -> tuple[Edges, list[tuple[Any, str, str]]]:
    """The edges with their lines, and what was set aside."""
    found: Edges = []
    aside: list[tuple[Any, str, str]] = []
    for chunk in EdgeReader(**options).read(io.BytesIO(data), form, live):
        times = [None] * len(chunk.lines) if chunk.times is None else chunk.times.tolist()
        found += zip(chunk.sources.to_pylist(), chunk.targets.to_pylist(), times, chunk.lines.tolist(), strict=True)
        aside += [(one.line, one.reason, one.raw) for one in chunk.malformed]
    return found, aside


def seconds(*values: float) -> list[int]:
    return [round(value * 1_000_000) for value in values]


# --- CSV ---


@pytest.mark.parametrize(
    "text",
    [
        "a,b,7\nc,d,8\n",
        "a,b,7\r\nc,d,8\r\n",
        "a\tb\t7\nc\td\t8",
        "a;b;7\nc;d;8\n",
        "a|b|7\nc|d|8\n",
        "a b 7\nc d 8\n",
        'a , "b" ,7\nc, d,8\n',
        "\ufeffa,b,7\nc,d,8\n",
    ],
)
def test_the_first_line_tells_what_stands_between_values(text: str) -> None:
    found, aside = read(text.encode())
    assert [(one[0], one[1].strip(' "'), one[2], one[3]) for one in found] == [
        ("a", "b", 7_000_000, 1),
        ("c", "d", 8_000_000, 2),
    ]
    assert aside == []


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("# from a site\n\n% and another\nSource,x,TARGET,at\na,-,b,7\n", ()),
        ("\n\n\nsrc,ts,dst,note\na,7,b,-\n", ()),
        ("\n\n\nu,v,w,timestamp\na,b,-,7\n", ()),
        ("\n\n\nwho,when,whom,note\na,7,b,-\n", ("who", "whom", "when")),
        ("\n\n\nwho,when,whom,note\na,7,b,-\n", ("1", "3", "2")),
        ("\n\n\n# no header\na,7,b,-\n", ("1", "3", "2")),
    ],
)
def test_columns_are_found_by_name_or_as_the_user_says(text: str, asked: tuple[str, ...]) -> None:
    assert read(text.encode(), asked=asked) == ([("a", "b", 7_000_000, 5)], [])


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("who,whom,when\na,b,1\n", {}, "no columns for source, target and time; there are who, whom, when"),
        ("who,whom,when\na,b,1\n", {}, "hint: say which they are: --columns who,whom,when"),
        ("from,to\na,b\n", {}, "there are from, to"),
        ("a,b\n", {}, "there are a, b"),
        ("who,whom,when\n", {"asked": ("who", "where", "when")}, "no column where; there are who, whom, when"),
        ("a,b,1\n", {"asked": ("1", "2", "4")}, "no column number 4"),
        ("a,b,1\n", {"asked": ("1", "2")}, "no columns for source, target and time"),
    ],
)
def test_columns_that_are_not_there_are_told_with_those_that_are(text: str, options: Any, said: str) -> None:
    with pytest.raises(StreamError) as caught:
        read(text.encode(), **options)
    assert said in str(caught.value)


def test_windows_of_edges_need_no_times() -> None:
    assert read(b"a,b\nc,d\n", needs_time=False)[0] == [("a", "b", None, 1), ("c", "d", None, 2)]
    assert read(b"a,b,nonsense\n", needs_time=False)[0] == [("a", "b", None, 1)]
    assert read(b"to,from\nb,a\n", needs_time=False)[0] == [("a", "b", None, 2)]


def test_lines_that_are_no_edges_are_set_aside_with_their_place() -> None:
    text = 'a,b,1\n\n,b,2\na,,3\na,b,\na,b,soon\na,b\na,b,4,5\n   \n,,\n"x,y",z,9'
    assert read(text.encode()) == (
        [("a", "b", 1_000_000, 1), ("x,y", "z", 9_000_000, 11)],
        [
            (3, "no source", ",b,2"),
            (4, "no target", "a,,3"),
            (5, "no time", "a,b,"),
            (6, "`soon` is no time", "a,b,soon"),
            (7, "3 columns expected, 2 found", "a,b"),
            (8, "3 columns expected, 4 found", "a,b,4,5"),
            (10, "no source", ",,"),
        ],
    )


def test_what_arrow_refuses_is_read_line_by_line() -> None:
    text = b'a,b,1\nc,\xff,2\nd,"e\nf,g,3\n\nf,g\nh,"i ""j""",2022-01-01\n'
    found, aside = read(text)
    assert [one[:2] + one[3:] for one in found] == [("a", "b", 1), ("f", "g", 4), ("h", 'i "j"', 7)]
    assert [(line, reason.partition(":")[0]) for line, reason, _ in aside] == [
        (2, "not UTF-8 text"),
        (3, "not CSV"),
        (6, "3 columns expected, 2 found"),
    ]


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
@pytest.mark.parametrize("live", [False, True])
def test_where_the_file_is_cut_makes_no_difference(monkeypatch: pytest.MonkeyPatch, block: int, live: bool) -> None:
    random = np.random.default_rng(block)
    lines = [b"source,target,time"]
    for number in range(200):
        lines.append([b"", b"a,b", b"x,y,soon", b",b,1", b"\xff,b,1", b'"q,r,1', b"ok,fine,%d" % number][
            int(random.choice(7, p=[0.05] * 6 + [0.7]))
        ])  # fmt: skip
    text = b"\n".join(lines)
    whole = read(text)
    assert len(whole[0]) > 100
    assert len(whole[1]) > 20
    monkeypatch.setattr(edges_module, "_BLOCK", block)
    assert read(text, live=live) == whole


def test_an_empty_file_has_no_edges() -> None:
    assert read(b"") == ([], [])
    assert read(b"\n# nothing\n") == ([], [])
    assert read(b"source,target,time\n") == ([], [])
    assert read(b"", "ndjson") == ([], [])


# --- the other formats ---


def test_ndjson_has_texts_and_integers_as_ids() -> None:
    lines = ['{"u": 1, "v": 2, "ts": 7}', '{"v": 3, "u": 1, "ts": 8, "more": [1]}', '{"u": 1, "v": 4}']
    found, aside = read("\n".join(lines).encode(), "ndjson")
    assert found == [(1, 2, 7_000_000, 1), (1, 3, 8_000_000, 2)]
    assert aside == [(3, "no time", lines[2])]
    mixed = ['{"u": "a", "v": 2, "ts": 7.5}', "", "nope", '{"u": true, "v": 2, "ts": 7}', '{"u": 5, "v": "b", "ts": 9}']
    found, aside = read("\n".join(mixed).encode(), "ndjson")
    assert found == [("a", "2", 7_500_000, 1), ("5", "b", 9_000_000, 5)]
    assert aside == [(3, "no JSON object", "nope"), (4, "`u` is neither a text nor a number", mixed[3])]
    with pytest.raises(StreamError, match="line 1 is no JSON object"):
        read(b"a,b,1\n", "ndjson")
    with pytest.raises(StreamError, match="there are a, b"):
        read(b'{"a": 1, "b": 2}\n', "ndjson")


def test_parquet_has_ids_and_times_of_many_kinds() -> None:
    at = datetime(2022, 10, 14, 14, 45, tzinfo=UTC)
    table = pa.table({
        "dst": pa.array(["b", None, "d"]).dictionary_encode(),
        "note": [1, 2, 3],
        "src": pa.array([1, 2, 3], pa.int32()),
        "ts": pa.array([at, at, None], pa.timestamp("ms", tz="UTC")),
    })  # fmt: skip
    found, aside = read(_parquet(table), "parquet")
    micros = parse_instant("2022-10-14T14:45Z")
    assert found == [(1, "b", micros, 1)]
    assert [(line, reason) for line, reason, _ in aside] == [(2, "no target"), (3, "no time")]
    assert json.loads(aside[1][2])["dst"] == "d"
    with pytest.raises(StreamError, match="the column `u` holds list"):
        read(_parquet(pa.table({"u": [[1]], "v": [1], "at": [1]})), "parquet")
    with pytest.raises(StreamError, match="not a Parquet file"):
        read(b"a,b,1\n", "parquet")


def _parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def test_the_name_of_a_file_tells_its_format() -> None:
    names = ("a.csv", "a.CSV.gz", "a.txt", "-", "a.parquet", "a.pq", "a.ndjson.gz", "a.jsonl")
    assert [edge_format(name) for name in names] == ["csv"] * 4 + ["parquet"] * 2 + ["ndjson"] * 2


# --- times ---


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1082040961", "-5", " 7 "], seconds(1_082_040_961, -5, 7)),
        (["1082040961000"], seconds(1_082_040_961)),
        (["1082040961000000"], seconds(1_082_040_961)),
        (["1082040961000000999"], seconds(1_082_040_961)),
        (["1082040961.25", "3"], seconds(1_082_040_961.25, 3)),
        ([1082040961.25], seconds(1_082_040_961.25)),
        ([1082040961000], seconds(1_082_040_961)),
        (["2004-04-15T14:56:01Z", "2004-04-15 16:56:01.5+02:00"], seconds(1_082_040_961, 1_082_040_961.5)),
        (
            ["2004-04-15T14:56:01", "2004-04-15", "2004-04-15 14:56"],
            seconds(1_082_040_961, 1_081_987_200, 1_082_040_960),
        ),
        (["20040415T145601Z", "2004-W16-4"], seconds(1_082_040_961, 1_081_987_200)),
        ([date(2004, 4, 15)], seconds(1_081_987_200)),
        ([datetime(2004, 4, 15)], seconds(1_081_987_200)),
    ],
)
def test_times_are_numbers_of_any_unit_or_iso(values: list[Any], expected: list[int]) -> None:
    micros, good = TimeReader().read(pa.array(values))
    assert good.all()
    assert micros.tolist() == expected


def test_the_first_number_tells_the_unit_of_all() -> None:
    reader = TimeReader()
    assert reader.read(pa.array(["1082040961000", "5"]))[0].tolist() == seconds(1_082_040_961, 0.005)
    assert reader.read(pa.array([5]))[0].tolist() == seconds(0.005)
    assert TimeReader("ms").read(pa.array(["5"]))[0].tolist() == seconds(0.005)
    assert TimeReader("ns").read(pa.array([5_000]))[0].tolist() == [5]


@pytest.mark.parametrize(
    "value", ["", "soon", "2004-13-01", "2004-04-15T25:00:00Z", "1e9", "99999999999999999", "nan", "0x10"]
)
def test_what_is_no_time_is_told_apart(value: str) -> None:
    micros, good = TimeReader("s").read(pa.array(["12", value, "2004-04-15T14:56:01Z", None]))
    assert good.tolist() == [True, False, True, False]
    assert micros[[0, 2]].tolist() == seconds(12, 1_082_040_961)


# --- pairs ---


@pytest.mark.parametrize("head", ["", "left,right\n", "from,to\n", "A,B\n\n"])
def test_pairs_are_two_ids_a_line(head: str) -> None:
    assert read_pairs(io.BytesIO(f"{head}x,y\n\n 1, 2\n".encode())) == [("x", "y"), ("1", "2")]


@pytest.mark.parametrize(("text", "line"), [("a,b\nc\n", 2), ("a,b,c\n", 1), ("a,b\n,d\n", 2)])
def test_what_is_no_pair_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(StreamError, match=f"line {line}: a pair is two ids"):
        read_pairs(io.BytesIO(text.encode()))
