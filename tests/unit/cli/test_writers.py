"""Writers: how an answer that corrects another shows in each form."""

from __future__ import annotations

import io

from rich.console import Console

from anabranch.cli.writers import TableWriter, print_rows
from anabranch.engine.answers import Answer, Correction
from anabranch.model.instants import parse_instant
from anabranch.model.terms import Iri, Literal

AT = parse_instant("2022-10-14T15:15Z")
HOUR = 3_600_000_000


def answer(correction: Correction = "") -> Answer:
    return Answer.told("q", AT, "entering", (AT - HOUR, AT), ("x",), [(1,)], correction)


def drawn(*answers: Answer) -> str:
    """What a table writer draws."""
    console = Console(file=io.StringIO(), width=80, color_system="standard", force_terminal=True)
    writer = TableWriter(console, "trailing")
    for one in answers:
        writer.write(one)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_a_table_names_the_correction_in_yellow_after_the_operator() -> None:
    assert "\x1b[32mentering\x1b[0m\x1b[33m retracted\x1b[0m  " in drawn(answer("retracted"))
    assert "\x1b[32mentering\x1b[0m  " in drawn(answer())


def test_a_value_does_not_steer_the_terminal() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=80)
    rows = ({"v": "\x1b[2Jgone\x9b"}, {"v": ["\x1b]0;title\x07"]}, {"v": Literal("\x1b[2J")}, {"v": Iri("x:\x1b")})
    for row in rows:
        print_rows(console, ["v\x1b"], [list(row.values())])
    assert not {"\x1b", "\x9b", "\x07"} & set(out.getvalue())
    assert "␛[2Jgone" in out.getvalue()
