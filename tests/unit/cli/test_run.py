"""`anabranch run`: answers in three forms, streams from files, what is set aside, and exit codes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch.formats.ndjson import read_ndjson
from anabranch.formats.parquet import write_parquet
from anabranch.model.event import Event
from anabranch.snapshot import compile_plan
from anabranch.syntax import seraph

from .conftest import Invoke

Write = Callable[[str, str], Path]

TABLES = """\
2022-10-14
student_trick  entering  15:15  window (14:15, 15:15]
  r.user_id   s.id   r.val_time   hops
  ──────────────────────────────────────
       1234      1   14:40        [2, 3]

student_trick  entering  15:40  window (14:40, 15:40]
  r.user_id   s.id   r.val_time   hops
  ──────────────────────────────────────
       5678      2   14:58        [3, 4]
"""
ROW_5 = {
    "query": "student_trick",
    "at": "2022-10-14T15:15:00Z",
    "op": "entering",
    "win_start": "2022-10-14T14:15:00Z",
    "win_end": "2022-10-14T15:15:00Z",
    "row": {"r.user_id": 1234, "s.id": 1, "r.val_time": "14:40", "hops": [2, 3]},
}
ROW_6 = {
    "query": "student_trick",
    "at": "2022-10-14T15:40:00Z",
    "op": "entering",
    "win_start": "2022-10-14T14:40:00Z",
    "win_end": "2022-10-14T15:40:00Z",
    "row": {"r.user_id": 5678, "s.id": 2, "r.val_time": "14:58", "hops": [3, 4]},
}
CSV = """\
at,op,win_start,win_end,r.user_id,s.id,r.val_time,hops
2022-10-14T15:15:00Z,entering,2022-10-14T14:15:00Z,2022-10-14T15:15:00Z,1234,1,14:40,"[2, 3]"
2022-10-14T15:40:00Z,entering,2022-10-14T14:40:00Z,2022-10-14T15:40:00Z,5678,2,14:58,"[3, 4]"
"""
TWO = """\
REGISTER QUERY meetings STARTING AT 2022-10-14T14:45 {
  MATCH (b)-[:rentedAt]->(s) WITHIN PT30M ON STREAM x
  MATCH (c)-[:returnedAt]->(s) WITHIN PT10M ON STREAM y
  EMIT b.id, c.id, s.id AS station ON ENTERING EVERY PT5M }
REGISTER QUERY total STARTING AT 2022-10-14T14:45 {
  MATCH ()-[r]->() WITHIN PT1H ON STREAM y EMIT count(*) AS n ON ENTERING EVERY PT5M }
"""


def rows(out: str) -> list[object]:
    return [json.loads(line) for line in out.splitlines()]


def stripped(out: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in out.splitlines())


# --- forms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_look_the_same_wherever_they_fit(invoke: Invoke, trick: Path, events: Path, columns: int) -> None:
    ran = invoke("run", trick, "--stream", f"rides={events}", columns=columns)
    assert (ran.code, stripped(ran.out)) == (0, TABLES)
    assert ran.err.startswith("5 events · 12 instants (5 computed) · 2 rows · 0 malformed · 0 late · ")


def test_a_table_folds_into_a_narrow_terminal(invoke: Invoke, trick: Path, events: Path) -> None:
    ran = invoke("run", trick, "--stream", f"rides={events}", columns=36)
    body = [line for line in ran.out.splitlines() if line.startswith("  ")]
    assert body
    assert max(map(len, body)) <= 36


def test_json_gives_one_object_per_row(invoke: Invoke, trick: Path, events: Path) -> None:
    ran = invoke("run", trick, "--stream", f"rides={events}", "--output", "json")
    assert rows(ran.out) == [ROW_5, ROW_6]


def test_csv_of_one_query_has_its_columns(invoke: Invoke, trick: Path, events: Path) -> None:
    assert invoke("run", trick, "-s", f"rides={events}", "-o", "csv").out == CSV


def test_csv_of_several_queries_has_the_columns_of_all(invoke: Invoke, events: Path, write: Write) -> None:
    two = write("two.seraph", TWO)
    lines = invoke("run", two, "-s", f"x={events}", "-s", f"y={events}", "-o", "csv").out.splitlines()
    assert lines[0] == "query,at,op,win_start,win_end,b.id,c.id,station,n"
    assert "total,2022-10-14T14:45:00Z,entering,2022-10-14T13:45:00Z,2022-10-14T14:45:00Z,,,,1" in lines
    assert "meetings,2022-10-14T15:00:00Z,entering,2022-10-14T14:30:00Z,2022-10-14T15:00:00Z,6,5,2," in lines
    assert [line.split(",")[1] for line in lines[1:]] == sorted(line.split(",")[1] for line in lines[1:])


def test_the_summary_can_be_json_or_silent(invoke: Invoke, trick: Path, events: Path) -> None:
    told = json.loads(invoke("run", trick, "-s", f"rides={events}", "-o", "json", "--summary", "json").err)
    assert {**told, "seconds": 0, "events_per_second": 0} == {
        "events": 5,
        "instants": 12,
        "evaluations": 5,
        "rows": 2,
        "malformed": 0,
        "late": 0,
        "ahead": 0,
        "seconds": 0,
        "dead_letters": [],
        "verified": 0,
        "differing": 0,
        "skipped": 0,
        "first_skipped": "",
        "jumps": 0,
        "last_jumps": {},
        "events_per_second": 0,
    }
    assert invoke("run", trick, "-s", f"rides={events}", "--quiet").err == ""


def test_a_difference_that_verify_finds_is_told_and_fails_the_run(
    invoke: Invoke, trick: Path, events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = compile_plan(seraph.plan("RETURN 9 AS a, 9 AS b, 'never' AS c, [] AS d"))
    monkeypatch.setattr("anabranch.engine.plans.Plans.plain", lambda _: other)
    ran = invoke("run", trick, "-s", f"rides={events}", "-o", "json", "--verify", "1", columns=400)
    assert ran.code == 1
    assert [json.loads(line)["row"]["r.user_id"] for line in ran.out.splitlines()] == [1234, 5678]
    assert "VERIFY FAILED" in ran.err
    assert "missing: (9, 9, 'never', [])" in ran.err
    assert "verified: 0 of 5 instants identical" in ran.err


def test_what_is_recomputed_is_verified_too(invoke: Invoke, trick: Path, events: Path) -> None:
    ran = invoke("run", trick, "-s", f"rides={events}", "-o", "json", "--verify", "1", "--force", "recompute")
    assert ran.code == 0
    assert "verified: 5 of 5 instants identical" in ran.err


# --- where events come from -----------------------------------------------------------------------------------------


def test_every_kind_of_file_gives_the_same_answers(invoke: Invoke, trick: Path, events: Path, tmp_path: Path) -> None:
    lines = events.read_text().splitlines(keepends=True)
    (tmp_path / "plain.jsonl").write_text("".join(lines))
    (tmp_path / "packed.ndjson.gz").write_bytes(gzip.compress(events.read_bytes()))
    (tmp_path / "array.json").write_text(f"[{','.join(lines)}]")
    with events.open("rb") as file:
        read = [event for _, event in read_ndjson(file) if isinstance(event, Event)]
    write_parquet(read, str(tmp_path / "e.parquet"))
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "2.ndjson.gz").write_bytes(gzip.compress("".join(lines[3:]).encode()))
    (parts / "1.ndjson").write_text("".join(lines[:3]))
    (parts / "README").write_text("not events")
    for name in ("plain.jsonl", "packed.ndjson.gz", "array.json", "e.parquet", "parts"):
        assert rows(invoke("run", trick, "-s", f"rides={tmp_path / name}", "-o", "json").out) == [ROW_5, ROW_6], name


def test_events_and_queries_come_from_stdin_too(invoke: Invoke, trick: Path, events: Path) -> None:
    piped_events = invoke("run", trick, "-s", "rides=-", "-o", "json", stdin=events.read_bytes())
    piped_query = invoke("run", "-", "-s", f"rides={events}", "-o", "json", stdin=trick.read_bytes())
    assert rows(piped_events.out) == rows(piped_query.out) == [ROW_5, ROW_6]


def test_a_stream_without_a_name_is_named_after_its_file(invoke: Invoke, events: Path, write: Write) -> None:
    query = TWO.replace("STREAM x", "STREAM events").replace("STREAM y", "STREAM events")
    assert invoke("run", write("q.seraph", query), "-s", events, "-o", "json").code == 0


def test_streams_do_not_hold_each_other_back(invoke: Invoke, events: Path, write: Write) -> None:
    """Stream y ends at 14:45; what stream x brings later still meets it."""
    first = write("first.ndjson", events.read_text().splitlines(keepends=True)[0])
    two = write("two.seraph", TWO)
    ran = invoke("run", two, "-s", f"x={events}", "-s", f"y={first}", "-o", "json", "--until", "drained")
    totals = [(row["at"][11:16], row["row"]["n"]) for row in rows(ran.out) if row["query"] == "total"]  # type: ignore[index]
    assert totals == [("14:45", 1), ("15:45", 0)]


def test_one_query_of_a_file_can_be_picked(invoke: Invoke, events: Path, write: Write) -> None:
    two = write("two.seraph", TWO)
    ran = invoke("run", two, "-s", f"x={events}", "-s", f"y={events}", "--query", "total", "-o", "json")
    assert {row["query"] for row in rows(ran.out)} == {"total"}  # type: ignore[index]
    refused = invoke("run", two, "-s", f"x={events}", "--query", "totl", columns=200)
    assert refused.code == 2
    assert "has no query `totl`; did you mean total?  It has meetings, total." in refused.err


def test_static_graphs_and_parameters_reach_the_query(invoke: Invoke, events: Path, write: Write) -> None:
    city = write("city.json", '{"nodes": [{"id": 1, "labels": ["Place"], "properties": {"name": "Park"}}]}')
    query = write(
        "q.seraph",
        """REGISTER QUERY named STARTING AT 2022-10-14T14:45 {
        MATCH (b)-[r:rentedAt]->(s) WITHIN PT1H WITH b, s.id AS station WHERE b.id = $bike
        MATCH (p:Place) ON GRAPH city WHERE id(p) = station
        EMIT p.name AS place, $word AS word ON ENTERING EVERY PT5M }""",
    )
    ran = invoke(
        "run", query, "-s", f"x={events}", "-g", f"city={city}", "-p", "bike=5", "-p", "word=so it is", "-o", "json"
    )
    assert [row["row"] for row in rows(ran.out)] == [{"place": "Park", "word": "so it is"}]  # type: ignore[index]


# --- time -----------------------------------------------------------------------------------------------------------


def test_window_policies_and_the_end_can_be_chosen(invoke: Invoke, events: Path, write: Write) -> None:
    query = write(
        "q.seraph",
        "REGISTER QUERY n STARTING AT 2022-10-14T15:40 { MATCH ()-[r]->() WITHIN PT1H EMIT count(r) AS n"
        " SNAPSHOT EVERY PT30M }",
    )

    def counts(*options: str) -> list[tuple[str, int]]:
        out = invoke("run", query, "-s", f"x={events}", "-o", "json", *options).out
        return [(row["at"][11:16], row["row"]["n"]) for row in rows(out)]  # type: ignore[index]

    assert counts() == [("15:40", 8)]
    assert counts("--windows", "right-open")[0] == ("15:40", 7)
    assert counts("--until", "2022-10-14T16:40Z") == [("15:40", 8), ("16:10", 4), ("16:40", 0)]
    assert counts("--until", "drained") == counts("--until", "2022-10-14T16:40Z")


def test_right_open_windows_have_their_brackets(invoke: Invoke, trick: Path, events: Path) -> None:
    assert "window [14:20, 15:20)" in invoke("run", trick, "-s", f"rides={events}", "--windows", "right-open").out


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_malformed_and_late_events_are_set_aside(invoke: Invoke, trick: Path, events: Path, write: Write) -> None:
    lines = events.read_text().splitlines(keepends=True)
    bad = write("bad.ndjson", "".join([*lines[:2], "nonsense\n", '{"at": "soon"}\n', *lines[2:], lines[0]]))
    ran = invoke("run", trick, "-s", f"rides={bad}", "-o", "json")
    assert (ran.code, rows(ran.out)) == (0, [ROW_5, ROW_6])
    assert "2 malformed · 1 late" in ran.err
    assert "set aside in rides.dead.ndjson" in ran.err
    letters = rows(Path("rides.dead.ndjson").read_text())
    found = {(letter["line"], letter["reason"].partition(":")[0]) for letter in letters}  # type: ignore[index]
    assert (len(letters), found) == (3, {(3, "not JSON"), (4, "at"), (None, "late")})
    assert invoke("run", trick, "-s", f"rides={bad}", "--strict", "--dead-letter", "letters").code == 5
    assert len(Path("letters").read_text().splitlines()) == 3


def test_lateness_waits_for_stragglers(invoke: Invoke, trick: Path, events: Path, write: Write) -> None:
    lines = events.read_text().splitlines(keepends=True)
    mixed = write("mixed.ndjson", "".join([lines[1], lines[0], *lines[2:]]))
    waited = invoke("run", trick, "-s", f"rides={mixed}", "-o", "json", "--lateness", "PT15M", "--strict")
    assert (waited.code, rows(waited.out)) == (0, [ROW_5, ROW_6])
    assert invoke("run", trick, "-s", f"rides={mixed}", "-o", "json", "--strict").code == 5


def test_a_clean_run_leaves_no_file_behind(invoke: Invoke, trick: Path, events: Path) -> None:
    invoke("run", trick, "-s", f"rides={events}")
    assert list(Path.cwd().iterdir()) == []


def test_one_query_that_fails_does_not_stop_the_others(invoke: Invoke, events: Path, write: Write) -> None:
    query = write(
        "q.seraph",
        """REGISTER QUERY broken STARTING AT 2022-10-14T14:45 {
  MATCH ()-[r]->() WITHIN PT1H EMIT 1 / (4 - count(r)) AS x SNAPSHOT EVERY PT5M }
REGISTER QUERY sound STARTING AT 2022-10-14T14:45 {
  MATCH ()-[r]->() WITHIN PT1H EMIT count(r) AS n ON ENTERING EVERY PT5M }""",
    )
    ran = invoke("run", query, "-s", f"x={events}", "-o", "json", "--on-error", "fail")
    assert ran.code == 1
    assert "error[SER-304]: division by zero" in ran.err
    sound = [row["row"]["n"] for row in rows(ran.out) if row["query"] == "sound"]  # type: ignore[index]
    assert sound == [1, 4, 5, 7, 8]


def test_rows_that_fail_are_skipped_and_the_summary_says_so(invoke: Invoke, events: Path, write: Write) -> None:
    query = write(
        "q.seraph",
        """REGISTER QUERY broken STARTING AT 2022-10-14T14:45 {
  MATCH ()-[r]->() WITHIN PT1H EMIT 1 / (4 - count(r)) AS x ON ENTERING EVERY PT5M }""",
    )
    ran = invoke("run", query, "-s", f"x={events}", "-o", "json", columns=200)
    assert (ran.code, [row["row"]["x"] for row in rows(ran.out)]) == (0, [0, -1, 0])  # type: ignore[index]
    assert "1 row skipped: SER-304 division by zero (" in ran.err


def test_a_jump_of_time_past_the_widest_window_is_said(invoke: Invoke, events: Path, write: Write) -> None:
    later = write("later.ndjson", events.read_text() + '{"at": "2022-10-15T01:40:00Z", "nodes": [{"id": 1}]}\n')
    two = write("two.seraph", TWO)  # windows of an hour over y, of half an hour over x
    command = ("run", two, "-s", f"x={events}", "-s", f"y={later}", "-o", "json")
    ran = invoke(*command, columns=200)
    assert ran.err.splitlines()[1:] == [
        "warning: time jumped past the widest window 1 time; the last jump of y: "
        "from 2022-10-14T15:40:00Z to 2022-10-15T01:40:00Z"
    ]
    said = json.loads(invoke(*command, "--summary", "json").err)
    assert (said["jumps"], said["last_jumps"]) == (1, {"y": ["2022-10-14T15:40:00Z", "2022-10-15T01:40:00Z"]})
    assert "jumped" not in invoke("run", two, "-s", f"x={events}", "-s", f"y={events}", "-o", "json").err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{trick}"], 2, "the query reads a stream; name its file, for example --stream rides=events.ndjson"),
        (["{trick}", "-s", "rides={events}", "--until", "later"], 2, "`later` is not an instant"),
        (["{trick}", "-s", "rides={events}", "--lateness", "5s"], 2, "write it like PT5S"),
        (["{trick}", "-s", "rides={events}", "-p", "=1"], 2, "write it as name=value, for example limit=20"),
        (["{trick}", "-s", "rides={events}", "--output", "xml"], 2, "'xml' is not one of 'table', 'json', 'csv'"),
        (["{trick}", "-s", "a=-", "-s", "b=-"], 2, "only one stream can come from stdin"),
        (["nothing.seraph", "-s", "rides={events}"], 4, "error: there is no file nothing.seraph"),
        (["{trick}", "-s", "rides=."], 4, "error: . holds no events"),
    ],
)
def test_mistakes_of_usage_say_what_to_write(
    invoke: Invoke, trick: Path, events: Path, arguments: list[str], code: int, message: str
) -> None:
    ran = invoke("run", *(one.format(trick=trick, events=events) for one in arguments), columns=200)
    assert ran.code == code
    assert message in ran.err


def test_a_missing_file_suggests_the_one_that_is_there(invoke: Invoke, trick: Path, write: Write) -> None:
    write("events.ndjson", "")
    ran = invoke("run", trick, "-s", "rides=event.ndjson")
    assert ran.err == "error: there is no file event.ndjson\nhint: did you mean events.ndjson?\n"


def test_a_file_that_is_no_parquet_is_no_input(invoke: Invoke, trick: Path, write: Write) -> None:
    write("e.parquet", "nothing of the kind")
    ran = invoke("run", trick, "-s", "rides=e.parquet")
    assert ran.code == 4
    assert ran.err.startswith("error: e.parquet: not a Parquet file")


def test_a_refused_query_is_drawn_with_its_place(invoke: Invoke, events: Path, write: Write) -> None:
    write(
        "trick.seraph",
        "REGISTER QUERY t STARTING AT NOW {\n  MATCH (r)-->(user) WITHIN PT1H\n  EMIT r.id, usr.name EVERY PT5M\n}\n",
    )
    ran = invoke("run", "trick.seraph", "-s", f"rides={events}")
    assert ran.code == 3
    assert ran.err == (
        "error[SER-017]: no variable `usr` in scope\n"
        "  trick.seraph:3:14\n"
        "  3 |   EMIT r.id, usr.name EVERY PT5M\n"
        "    |              ^^^ not bound by MATCH, WITH or UNWIND\n"
        "hint: did you mean `user`?  In scope: r, user.\n"
    )


def test_events_that_disagree_are_warned_of_where_the_policy_is_strict(invoke: Invoke, write: Write) -> None:
    said = ({"at": at, "nodes": [{"id": 1, "properties": {"x": at}}]} for at in (0, 1000))
    write("e.ndjson", "".join(f"{json.dumps(event)}\n" for event in said))
    body = "MATCH (a) WITHIN PT5S EMIT a.x AS x SNAPSHOT EVERY PT1S"
    write("q.seraph", f"REGISTER QUERY n STARTING AT 1970-01-01T00:00:01 {{ {body} }}")
    latest = invoke("run", "q.seraph", "-s", "e.ndjson", "-o", "json")
    assert [row["row"] for row in rows(latest.out)] == [{"x": 1000}]  # type: ignore[index]
    strict = invoke("run", "q.seraph", "-s", "e.ndjson", "-o", "json", "--conflicts", "strict")
    assert strict.out == ""
    assert strict.err.startswith(
        "warning: n at 1970-01-01 00:00:01: node 1: events in the window disagree about its property `x`"
    )


def test_a_query_over_a_short_stream_ends_with_it_while_a_longer_one_goes_on(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "q.seraph").write_text(
        "REGISTER QUERY q STARTING AT 1970-01-01T00:00:01Z "
        "{ MATCH (n) WITHIN PT1H ON STREAM short EMIT count(n) AS n SNAPSHOT EVERY PT1S }"
    )
    for name, seconds in (("short", 2), ("long", 9)):
        lines = [f'{{"at": {second * 1000}, "nodes": [{{"id": {second}}}]}}\n' for second in range(1, seconds + 1)]
        (tmp_path / f"{name}.ndjson").write_text("".join(lines))
    done = invoke("run", "q.seraph", "-s", "short=short.ndjson", "-s", "long=long.ndjson", "-o", "json")
    assert [json.loads(line)["row"]["n"] for line in done.out.splitlines()] == [1, 2]
