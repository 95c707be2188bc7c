"""Case files: their notation, and that a case that does not hold fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.formats.events import event_from_dict, event_to_dict
from anabranch.model.instants import parse_instant
from anabranch.testing.cases import CaseFailure, load, read_case, rewrite, run_case
from anabranch.testing.notation import NotationError, read_event, read_instant, write_instant

CASE = """# A story.
--- options
date: 2024-05-01
--- query
REGISTER QUERY q STARTING AT 2024-05-01T10:00Z { MATCH (n) WITHIN PT5M EMIT n.x AS x SNAPSHOT EVERY PT5M }
--- events
10:00 (1 {x: 'a'})
--- answers
10:00 snapshot 09:55-10:00  'a'
"""


def test_the_short_notation_reads_as_its_json() -> None:
    event = read_event(
        "14:45 (5:Bike:EBike {id: 5})-[r1:rentedAt {at: '14:40', f: -1.5e3}]->(s:Station), (7)<-[:T]-(5)", "2022-10-14"
    )
    assert event_to_dict(event) == event_to_dict(
        event_from_dict(
            {
                "at": "2022-10-14T14:45:00Z",
                "nodes": [
                    {"id": 5, "labels": ["Bike", "EBike"], "properties": {"id": 5}},
                    {"id": "s", "labels": ["Station"]},
                ],
                "relationships": [
                    {"id": "r1", "type": "rentedAt", "from": 5, "to": "s", "properties": {"at": "14:40", "f": -1500.0}},
                    {"type": "T", "from": 5, "to": 7},
                ],
            }
        )
    )


def test_values_of_the_short_notation() -> None:
    event = read_event(r"2024-05-01 (1 {a: [1, 'it\'s', true], b: null, d: date('2015-07-21')})", None)
    assert {key: str(value) for key, value in event.nodes[0].properties.items()} == {
        "a": '[1, "it\'s", True]',
        "d": "2015-07-21",
    }


@pytest.mark.parametrize("line", ["(1)", "10:00 (1", "10:00 (1)-[r]->(2)", "10:00 (1) (2)", "10:00 (1 {x: })"])
def test_what_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(NotationError):
        read_event(line, "2024-05-01")


@pytest.mark.parametrize(
    "text", ["10:00", "10:00:01", "10:00:00.5", "2023-05-01", "2023-05-01T10:00", "2023-05-01T10:00:01"]
)
def test_instants_are_written_as_they_are_read(text: str) -> None:
    assert write_instant(read_instant(text, "2024-05-01"), "2024-05-01") == text


def test_a_time_needs_a_day() -> None:
    with pytest.raises(NotationError, match="needs a day"):
        read_instant("10:00", None)
    assert read_instant("2024-05-01", None) == parse_instant("2024-05-01T00:00:00Z")


def test_a_case_that_holds_holds() -> None:
    run_case(read_case(CASE))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("10:00  'a'", "10:00  'b'"),
        ("10:00 snapshot", "10:05 snapshot"),
        ("snapshot 09:55-10:00", "entering 09:55-10:00"),
        ("09:55-10:00", "09:50-10:00"),
        ("--- answers", "--- answers\ncolumns: y"),
        ("date: 2024-05-01", "date: 2024-05-01\nlate: 1"),
        ("--- answers", "--- warnings\n10:00 boo\n--- answers"),
        ("--- answers\n10:00 snapshot 09:55-10:00  'a'", "--- error\nerror[SER-001]: no"),
    ],
)
def test_a_case_that_does_not_hold_fails(right: str, wrong: str) -> None:
    assert right in CASE
    with pytest.raises(CaseFailure):
        run_case(read_case(CASE.replace(right, wrong)))


def test_unknown_sections_and_options_are_refused() -> None:
    with pytest.raises(NotationError, match="no such section"):
        read_case("--- questions\n")
    with pytest.raises(NotationError, match="no option `colour`"):
        read_case("--- options\ncolour: red\n")


def test_rewriting_takes_the_answers_from_the_oracle(tmp_path: Path) -> None:
    path = tmp_path / "one.case"
    path.write_text(CASE.replace("'a'\n", "'wrong'\n"))
    rewrite(path)
    assert path.read_text().endswith("--- answers\ncolumns: x\n10:00 snapshot 09:55-10:00  'a'\n")
    assert path.read_text().startswith("# A story.\n")
    run_case(load(path))
