"""Writers: how an answer that corrects another shows in each form."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest
from rich.console import Console

from anabranch.cli.replay import Replay
from anabranch.cli.writers import make_writer, print_rows
from anabranch.engine.answers import Answer, Correction
from anabranch.engine.session import Session
from anabranch.model.event import Event
from anabranch.model.instants import parse_instant
from anabranch.model.terms import Iri, Literal
from anabranch.model.values import Node

AT = parse_instant("2022-10-14T15:15Z")
HOUR = 3_600_000_000


def answer(correction: Correction = "") -> Answer:
    return Answer.told("q", AT, "entering", (AT - HOUR, AT), ("x",), [(1,)], correction)


def written(form: str, *answers: Answer, corrections: bool = False) -> str:
    """What a table writer draws; the other forms go to stdout."""
    console = Console(file=io.StringIO(), width=80, color_system="standard", force_terminal=True)
    writer = make_writer(form, console, "trailing", [("x",)], corrections)
    for one in answers:
        writer.write(one)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_csv_has_a_column_for_corrections_where_some_may_come(capsys: pytest.CaptureFixture[str]) -> None:
    written("csv", answer(), answer("retracted"), corrections=True)
    assert capsys.readouterr().out.splitlines() == [
        "at,op,correction,win_start,win_end,x",
        "2022-10-14T15:15:00Z,entering,,2022-10-14T14:15:00Z,2022-10-14T15:15:00Z,1",
        "2022-10-14T15:15:00Z,entering,retracted,2022-10-14T14:15:00Z,2022-10-14T15:15:00Z,1",
    ]


def test_csv_has_no_such_column_where_none_can_come(capsys: pytest.CaptureFixture[str]) -> None:
    written("csv", answer())
    assert capsys.readouterr().out.splitlines()[0] == "at,op,win_start,win_end,x"


def test_json_says_what_a_row_corrects_and_is_silent_about_others(capsys: pytest.CaptureFixture[str]) -> None:
    written("json", answer(), answer("corrected"))
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert "correction" not in first
    assert list(second)[:4] == ["query", "at", "op", "correction"]
    assert second["correction"] == "corrected"


def test_a_table_names_the_correction_in_yellow_after_the_operator() -> None:
    assert "\x1b[32mentering\x1b[0m\x1b[33m retracted\x1b[0m  " in written("table", answer("retracted"))
    assert "\x1b[32mentering\x1b[0m  " in written("table", answer())


def test_a_value_does_not_steer_the_terminal() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=80)
    rows = ({"v": "\x1b[2Jgone\x9b"}, {"v": ["\x1b]0;title\x07"]}, {"v": Literal("\x1b[2J")}, {"v": Iri("x:\x1b")})
    for row in rows:
        print_rows(console, ["v\x1b"], [list(row.values())])
    assert not {"\x1b", "\x9b", "\x07"} & set(out.getvalue())
    assert "␛[2Jgone" in out.getvalue()


def test_a_replay_reads_on_when_one_answer_may_still_be_corrected() -> None:
    def answers(late: str) -> list[tuple[str, list[tuple[object, ...]]]]:
        session = Session.local(late=late)  # type: ignore[arg-type]
        queries = [
            session.register("REGISTER QUERY q STARTING AT 1970-01-01T00:00Z { MATCH (n) WITHIN PT1H RETURN n.x AS x }")
        ]
        events = [Event(second * 1_000_000, (Node(second, (), {"x": second}),)) for second in (-5, 3, -2)]
        records = [("s", event) for event in events]
        inputs = SimpleNamespace(merged=lambda: iter(records), live=True, streams=["s"])
        set_aside = SimpleNamespace(add_late=lambda stream, event: None)
        found: list[Answer] = []
        Replay(session, queries, inputs, set_aside).run(found.append)  # type: ignore[arg-type]
        return [(one.correction, one.rows) for one in found]

    assert answers("drop") == [("", [(-5,)])]
    assert answers("correct") == [("", [(-5,)]), ("retracted", [(-5,)]), ("corrected", [(-5,), (-2,)])]
