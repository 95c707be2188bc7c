"""`anabranch connectivity` by its output."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.engine.test_connectivity_workload import MESSAGES

from anabranch.cli.connectivity.plot import Plot
from anabranch.engine.connectivity.workload import ConnectivityWorkload

from .conftest import ROOT, Invoke

Write = Callable[[str, str], Path]

EDGES = ROOT / "examples" / "connectivity" / "edges.csv"
PAIRS = ROOT / "examples" / "connectivity" / "pairs.csv"
WINDOW = ("--window", "PT10M", "--slide", "PT5M")
SUMMARY = re.compile(r"([\d,]+) edges? · (\d+) instants? · (\d+) rows? · (\d+) malformed · (\d+) late")


def objects(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def summary(err: str) -> tuple[int, ...]:
    found = SUMMARY.search(err)
    assert found is not None, err
    return tuple(int(number.replace(",", "")) for number in found.groups())


# --- what is told ---


def test_pairs_are_told_when_they_become_connected_or_come_apart(invoke: Invoke) -> None:
    ran = invoke("connectivity", EDGES, *WINDOW, "--pairs", PAIRS)
    assert ran.code == 0
    assert ran.out == (
        "2024-05-01 09:05  connected  ann - dora\n"
        "2024-05-01 09:10  connected  eve - finn\n"
        "2024-05-01 09:15  apart      ann - dora\n"
        "2024-05-01 09:20  apart      eve - finn\n"
        "2024-05-01 09:30  connected  eve - finn\n"
    )
    assert summary(ran.err) == (12, 6, 5, 0, 0)


def test_all_tells_every_pair_at_every_instant(invoke: Invoke) -> None:
    told = invoke("connectivity", EDGES, *WINDOW, "--pairs", PAIRS, "--all", "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(told)))
    assert len(rows) == 6 * 3
    assert rows[0] == {"at": "2024-05-01T09:05:00Z", "source": "ann", "target": "dora", "connected": "true"}
    changed = objects(invoke("connectivity", EDGES, *WINDOW, "--pairs", PAIRS, "--format", "json").out)
    assert changed[0] == {"at": "2024-05-01T09:05:00Z", "pair": ["ann", "dora"], "connected": True}
    state: dict[str, str] = {}
    seen = []
    for row in rows:
        key = f"{row['source']} {row['target']}"
        if row["connected"] != state.get(key, "false"):
            seen.append((row["at"], [row["source"], row["target"]], row["connected"] == "true"))
        state[key] = row["connected"]
    assert seen == [(one["at"], one["pair"], one["connected"]) for one in changed]


def test_components_are_told_at_every_instant_and_without_another_wish(invoke: Invoke) -> None:
    ran = invoke("connectivity", EDGES, *WINDOW, "--components")
    assert ran.out.splitlines()[:3] == [
        "at                components    vertices       edges   largest     min   median       P99",
        "2024-05-01 09:05           1           4           3         4       4        4         4",
        "2024-05-01 09:10           3           8           5         4       2        2         4",
    ]
    assert invoke("connectivity", EDGES, *WINDOW).out == ran.out
    told = objects(invoke("connectivity", EDGES, *WINDOW, "--components", "--format", "json").out)
    assert told[1] == {
        "at": "2024-05-01T09:10:00Z", "components": 3, "vertices": 8, "edges": 5, "largest": 4,
        "sizes": {"min": 2, "median": 2, "p99": 4},
    }  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(invoke("connectivity", EDGES, *WINDOW, "--format", "csv").out)))
    assert [int(row["components"]) for row in rows] == [one["components"] for one in told]


def test_changes_say_what_became_of_components(invoke: Invoke) -> None:
    told = objects(invoke("connectivity", EDGES, *WINDOW, "--changes", "--format", "json").out)
    assert [(one["at"][11:16], one["change"], len(one["from"]), len(one["into"])) for one in told] == [
        ("09:05", "appear", 0, 1),
        ("09:10", "appear", 0, 1),
        ("09:10", "appear", 0, 1),
        ("09:15", "merge", 2, 1),
        ("09:15", "split", 1, 2),
        ("09:20", "merge", 2, 1),
        ("09:20", "split", 1, 2),
        ("09:25", "merge", 2, 1),
    ]
    assert told[4] == {
        "at": "2024-05-01T09:15:00Z", "change": "split", "from": [{"name": "ann", "size": 4}],
        "into": [{"name": "dora", "size": 3}, {"name": "ann", "size": 2}],
    }  # fmt: skip
    lines = invoke("connectivity", EDGES, *WINDOW, "--changes").out.splitlines()
    assert lines[3:5] == [
        "2024-05-01 09:15  merge      ann (4) + finn (2) → dora (3)",
        "                  split      ann (4) → dora (3) + ann (2)",
    ]
    everything = objects(invoke("connectivity", EDGES, *WINDOW, "--changes=all", "--format", "json").out)
    assert {one["change"] for one in everything} - {one["change"] for one in told} == {"shrink"}
    assert invoke("connectivity", EDGES, *WINDOW, "--changes", "all").out.count("\n") == len(everything)
    rows = list(csv.reader(io.StringIO(invoke("connectivity", EDGES, *WINDOW, "--changes", "--format", "csv").out)))
    assert rows[5] == ["2024-05-01T09:15:00Z", "split", '[["ann", 4]]', '[["dora", 3], ["ann", 2]]']


def test_long_lists_of_components_are_cut_short_for_people_alone(invoke: Invoke, write: Write) -> None:
    lines = [f"a{number},b{number},0" for number in range(9)]
    lines += [f"a{number},a{number + 1},1" for number in range(8)]
    write("many.csv", "\n".join(lines))
    arguments = ("connectivity", "many.csv", "--window", "PT5S", "--slide", "PT1S", "--changes")
    (merge,) = [line for line in invoke(*arguments).out.splitlines() if " merge " in line]
    assert re.search(r"(\w+ \(2\) \+ ){6}3 more → \w+ \(18\)$", merge)
    (told,) = [one for one in objects(invoke(*arguments, "--format", "json").out) if one["change"] == "merge"]
    assert len(told["from"]) == 9


def test_windows_of_edges_are_told_by_how_many_have_come(invoke: Invoke, write: Write) -> None:
    write("edges.csv", "a,b\nb,c\nc,d\nx,y\nx,z\n")
    told = objects(invoke("connectivity", "edges.csv", "--window", "2e", "--slide", "2", "--format", "json").out)
    assert [(one["at"], one["components"], one["edges"]) for one in told] == [(2, 1, 2), (4, 2, 2), (6, 1, 1)]
    lines = invoke("connectivity", "edges.csv", "--window", "2 edges", "--slide", "1").out.splitlines()
    assert lines[1].split()[:3] == ["1", "1", "2"]


def test_both_indexes_answer_alike(invoke: Invoke) -> None:
    arguments = ("connectivity", EDGES, *WINDOW, "--pairs", PAIRS, "--components", "--changes=all", "--format", "json")
    recency = invoke(*arguments).out
    assert recency
    assert invoke(*arguments, "--index", "bic").out == recency
    assert invoke(*arguments, "--index", "bic", "--chunk", "1").out == recency


def test_the_messages_of_students_run_as_they_are(invoke: Invoke, write: Write) -> None:
    if not MESSAGES.exists():
        pytest.skip(f"{MESSAGES} is not there; ANABRANCH_SUITES names the folder of the suites")
    write("pairs.csv", "1,2\n")
    ran = invoke("connectivity", MESSAGES, "--window", "P7D", "--slide", "P1D", "--pairs", "pairs.csv")
    assert summary(ran.err)[:2] == (59_835, 195)
    assert ran.out.splitlines()[0] == "2004-04-16 00:00  connected  1 - 2"


# --- what is read ---


def _formats(folder: Path) -> dict[str, tuple[str, ...]]:
    """The example in every form, with the options that it needs."""
    rows = list(csv.reader(EDGES.read_text().splitlines()))[1:]
    plain = EDGES.read_text()
    (folder / "a.csv.gz").write_bytes(gzip.compress(plain.encode()))
    (folder / "a.tsv").write_text("\n".join("\t".join(row) for row in rows))
    (folder / "a.ndjson").write_text("\n".join(json.dumps({"u": a, "v": b, "ts": at}) for a, b, at in rows))
    (folder / "swapped.csv").write_text("when,one,other\n" + "".join(f"{at},{a},{b}\n" for a, b, at in rows))
    table = {"src": [row[0] for row in rows], "dst": [row[1] for row in rows], "time": [row[2] for row in rows]}
    pq.write_table(pa.table(table), folder / "a.parquet")
    return {
        "a.csv.gz": (), "a.tsv": (), "a.ndjson": (), "a.parquet": (), "swapped.csv": ("--columns", "one,other,when"),
    }  # fmt: skip


def test_every_format_gives_the_same_answers(invoke: Invoke, tmp_path: Path) -> None:
    expected = invoke("connectivity", EDGES, *WINDOW, "--changes").out
    for name, options in _formats(tmp_path).items():
        assert invoke("connectivity", name, *WINDOW, "--changes", *options).out == expected, name
    assert invoke("connectivity", "swapped.csv", *WINDOW, "--changes", "--columns", "2,3,1").out == expected
    assert invoke("connectivity", "-", *WINDOW, "--changes", stdin=EDGES.read_bytes()).out == expected


def test_numbers_of_time_have_a_unit(invoke: Invoke, write: Write) -> None:
    write("edges.csv", "a,b,1500\n")
    arguments = ("connectivity", "edges.csv", "--window", "PT1S", "--slide", "PT1S")
    assert invoke(*arguments).out.splitlines()[1].startswith("1970-01-01 00:25 ")
    assert invoke(*arguments, "--time-unit", "ms").out.splitlines()[1].startswith("1970-01-01 00:00:02 ")


def test_instants_begin_where_the_user_says(invoke: Invoke) -> None:
    ran = invoke("connectivity", EDGES, *WINDOW, "--starting-at", "2024-05-01T09:13:00Z", "--format", "csv")
    assert [line[:20] for line in ran.out.splitlines()[1:]] == [
        "2024-05-01T09:13:00Z", "2024-05-01T09:18:00Z", "2024-05-01T09:23:00Z", "2024-05-01T09:28:00Z",
    ]  # fmt: skip
    assert " · 2 in no window · " in ran.err


# --- what is set aside ---


def test_malformed_lines_and_late_edges_are_set_aside_with_their_place(invoke: Invoke, write: Write) -> None:
    write("calls.csv", "from,to,at\na,b,0\nb,c\nc,d,soon\n\nd,e,30\ne,f,1\nf,g,29\n")
    ran = invoke("connectivity", "calls.csv", "--window", "PT10S", "--slide", "PT5S", "--format", "json")
    assert ran.code == 0
    assert summary(ran.err) == (4, 4, 4, 2, 1)
    assert ran.err.endswith("set aside in calls.dead.ndjson\n")
    assert [(one["at"][17:19], one["edges"]) for one in objects(ran.out)] == [
        ("00", 1),
        ("05", 1),
        ("10", 0),
        ("30", 2),
    ]
    letters = objects(Path("calls.dead.ndjson").read_text())
    assert letters == [
        {"line": 3, "reason": "3 columns expected, 2 found", "raw": "b,c"},
        {"line": 4, "reason": "`soon` is no time", "raw": "c,d,soon"},
        {
            "line": 7,
            "reason": "late: all windows that hold 1970-01-01T00:00:01Z had been answered when the edge came",
            "raw": "e,f,1970-01-01T00:00:01Z",
        },
    ]


def test_strict_tells_what_was_set_aside_by_its_exit_code(invoke: Invoke, write: Write) -> None:
    write("edges.csv", "a,b,0\nb,c\n")
    arguments = ("connectivity", "edges.csv", "--window", "PT10S", "--slide", "PT5S", "--dead-letters", "aside.ndjson")
    assert invoke(*arguments).code == 0
    assert invoke(*arguments, "--strict").code == 5
    assert len(Path("aside.ndjson").read_text().splitlines()) == 1


def test_a_clean_run_leaves_nothing_behind(invoke: Invoke, tmp_path: Path) -> None:
    ran = invoke("connectivity", EDGES, *WINDOW, "--quiet", "--strict")
    assert (ran.code, ran.err) == (0, "")
    assert list(tmp_path.iterdir()) == []


# --- what is refused ---


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("edges.cvs", *WINDOW), 4, "there is no file edges.cvs\nhint: did you mean edges.csv?"),
        ((".", *WINDOW), 4, ". is a directory"),
        (("edges.csv", *WINDOW), 4, "edges.csv: no columns for source, target and time; there are who, whom, when"),
        (("edges.csv", *WINDOW, "--columns", "who,whom,then"), 4, "no column then; there are who, whom, when"),
        (("edges.csv", "--window", "PT1H", "--slide", "PT0S"), 2, "the slide must be longer than nothing"),
        (("edges.csv", "--window", "PT1H", "--slide", "50e"), 2, "does not go with a slide of 50 edges"),
        (("edges.csv", "--window", "an hour", "--slide", "50e"), 2, "write a duration such as PT1H"),
        (("edges.csv", *WINDOW, "--chunk", "3"), 2, "a recency tree has no chunks"),
        (("edges.csv", *WINDOW, "--all"), 2, "tells about pairs: give --pairs"),
        (("edges.csv", *WINDOW, "--starting-at", "noon"), 2, "write it like"),
        (("edges.csv", *WINDOW, "--pairs", "no.csv"), 4, "there is no file no.csv"),
        (("edges.csv", *WINDOW, "--pairs", "edges.csv"), 4, "edges.csv: line 1: a pair is two ids"),
        (("edges.csv", *WINDOW, "--pairs", "empty.csv"), 4, "empty.csv holds no pairs"),
        (("edges.csv", *WINDOW, "--plot", "no/plot.svg"), 4, "there is no folder no\nhint: mkdir -p no"),
        (("edges.csv", *WINDOW, "--components", "--changes", "--format", "csv"), 2, "csv has one kind of rows"),
    ],
)
def test_what_cannot_be_done_says_why(
    invoke: Invoke, write: Write, arguments: tuple[str, ...], code: int, said: str
) -> None:
    write("edges.csv", "who,whom,when\na,b,1\n")
    write("empty.csv", "\n")
    ran = invoke("connectivity", *arguments, columns=300)
    assert said in ran.err
    assert ran.code == code
    assert ran.out == ""


def test_a_window_shorter_than_the_slide_is_allowed_and_said(invoke: Invoke) -> None:
    ran = invoke("connectivity", EDGES, "--window", "PT1M", "--slide", "PT5M", "--format", "csv")
    assert ran.code == 0
    assert ran.err.startswith("warning: windows of PT1M every PT5M have gaps: edges in between are in none\n")
    assert summary(ran.err)[0] == 12


# --- the picture ---


def test_the_picture_shows_components_merges_and_splits(invoke: Invoke, tmp_path: Path) -> None:
    ran = invoke("connectivity", EDGES, *WINDOW, "--plot", "plot.svg")
    assert (ran.code, ran.out) == (0, "")
    picture = ET.parse(tmp_path / "plot.svg").getroot()
    titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "Components in windows of PT10M, every PT5M"
    assert "2024-05-01 09:10: 3 components" in titles
    assert "2024-05-01 09:10: 4 vertices in the largest" in titles
    assert titles.count("2024-05-01 09:15: 1 merge") == titles.count("2024-05-01 09:15: 1 split") == 1
    assert "prefers-color-scheme: dark" in (tmp_path / "plot.svg").read_text()


def test_a_picture_of_a_long_run_stays_small_and_leaves_nothing_out() -> None:
    plot = Plot()
    workload = ConnectivityWorkload(4, 1)
    merges = splits = 0
    ends = np.random.default_rng(1).integers(0, 9, (2, 5000))
    for answer in workload.push(ends[0], ends[1]):
        plot.add(answer)
        merges += answer.changes().counts["merge"]
        splits += answer.changes().counts["split"]
    text = plot.svg("long")
    assert len(text) < 400_000
    assert merges > 100
    for kind, expected in (("merge", merges), ("split", splits)):
        found = re.findall(rf"([\d,]+) {kind}s?</title>", text)
        assert sum(int(number.replace(",", "")) for number in found) == expected
    assert "to 4,999 edges" in text


def test_a_picture_of_nothing_says_so(invoke: Invoke, write: Write) -> None:
    write("edges.csv", "from,to,at\n")
    ran = invoke("connectivity", "edges.csv", *WINDOW, "--plot", "plot.svg")
    assert summary(ran.err) == (0, 0, 0, 0, 0)
    assert "no instant was answered" in Path("plot.svg").read_text()


# --- a live run ---


def test_answers_come_as_edges_come_and_an_interrupt_ends_with_the_summary(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "anabranch", "connectivity", "-", "--window", "2e", "--slide", "1e"]
    with subprocess.Popen(
        [*command, "--format", "json"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("a,b\nb,c\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["at"] == 1
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert summary(err)[:3] == (2, 1, 1)


@pytest.mark.parametrize(("columns", "widest"), [(80, 80), (120, 89)])
def test_a_table_fits_the_terminal(invoke: Invoke, columns: int, widest: int) -> None:
    ran = invoke("connectivity", EDGES, *WINDOW, "--components", "--color", "--quiet", columns=columns)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", ran.out).splitlines()
    assert {len(line) for line in lines} == {widest}
    assert lines[1].split() == ["2024-05-01", "09:05", "1", "4", "3", "4", "4", "4", "4"]


def test_a_vertex_does_not_steer_the_terminal(invoke: Invoke, write: Write) -> None:
    path = write("edges.csv", "\x1b[31ma,b\x07,10\n")
    for color in ("--color", "--no-color"):
        ran = invoke("connectivity", path, "--window", "PT10S", "--slide", "PT10S", "--pairs", path, color, "--quiet")
        assert ran.code == 4
        assert "\x1b[31ma" not in ran.err
    pairs = write("pairs.csv", "\x1b[31ma,b\x07\n")
    for color in ("--color", "--no-color"):
        ran = invoke("connectivity", path, "--window", "PT10S", "--slide", "PT10S", "--pairs", pairs, color, "--quiet")
        assert "␛[31ma - b" in ran.out
        assert "\x1b[31ma" not in ran.out


def test_gzip_comes_through_a_pipe_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "anabranch", "connectivity", "-", *WINDOW, "--format", "json"]
    whole = gzip.compress(EDGES.read_bytes())
    plain, zipped, cut = (
        subprocess.run(command, cwd=tmp_path, input=data, capture_output=True, timeout=60)
        for data in (EDGES.read_bytes(), whole, whole[:-20])
    )
    assert zipped.stdout == plain.stdout != b""
    assert cut.returncode == 4
    assert b"not a whole gzip file" in cut.stderr


def test_the_picture_of_the_page_is_what_the_command_draws(invoke: Invoke) -> None:
    if not MESSAGES.exists():
        pytest.skip(f"{MESSAGES} is not there; ANABRANCH_SUITES names the folder of the suites")
    invoke("connectivity", MESSAGES, "--window", "P7D", "--slide", "P1D", "--plot", "connectivity.svg")
    assert Path("connectivity.svg").read_text() == (ROOT / "docs" / "pictures" / "connectivity.svg").read_text()
