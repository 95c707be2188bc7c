"""`explain`, `check` and `eval`: what they print and how they end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from anabranch import __version__
from anabranch.algebra.explain import Explanation, explain
from anabranch.engine.evaluation_options import EvaluationOptions
from anabranch.engine.plans import planned
from anabranch.model.windows import WindowPolicy
from anabranch.optimizer import optimize
from anabranch.syntax.seraph import registrations

from .conftest import Invoke

Write = Callable[[str, str], Path]

CHECKED = """\
error[SER-017]: no variable `usr` in scope
  bad.seraph:3:14
  3 |   EMIT r.id, usr.name EVERY PT5M
    |              ^^^ not bound by MATCH, WITH or UNWIND
hint: did you mean `user`?  In scope: r, user.

"""
BAD = "REGISTER QUERY t STARTING AT NOW {\n  MATCH (r)-->(user) WITHIN PT1H\n  EMIT r.id, usr.name EVERY PT5M\n}\n"
NARROW = "REGISTER QUERY n STARTING AT NOW {\n  MATCH (a:A) WITHIN PT1M\n  EMIT a EVERY PT5M\n}\n"


def test_the_version_is_told(invoke: Invoke) -> None:
    assert invoke("--version").out == f"anabranch {__version__}\n"


def test_help_begins_with_what_to_do_first(invoke: Invoke) -> None:
    shown = invoke("--help").out
    for command in ("demo", "run", "check", "explain", "eval", "Begin with: anabranch demo"):
        assert command in shown


@pytest.mark.parametrize("command", ["run", "explain", "check", "eval", "demo"])
def test_every_command_helps_with_an_example(invoke: Invoke, command: str) -> None:
    assert f"anabranch {command} " in invoke(command, "--help", columns=120).out.partition("Example")[2]


# --- explain --------------------------------------------------------------------------------------------------------


def explained(file: Path, windows: WindowPolicy = "trailing") -> Explanation:
    (query,) = registrations(file.read_text())
    rewritten = optimize(query.plan)
    return explain(query, windows, rewritten, ways=planned(rewritten.plan, query, EvaluationOptions(), {}).way)


def test_explain_prints_the_text_of_the_explanation(invoke: Invoke, trick: Path) -> None:
    assert invoke("explain", trick, "--windows", "formal").out == explained(trick, "formal").text(100) + "\n"


def test_explain_in_colour_has_the_same_letters(invoke: Invoke, trick: Path) -> None:
    import re

    colored = invoke("explain", trick, "--color", columns=90).out
    assert "\x1b[1;32mProject" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == explained(trick).text(90) + "\n"


def test_explain_takes_plain_queries_from_text_file_and_stdin(invoke: Invoke, write: Write) -> None:
    query = "MATCH (a)-->(b) RETURN count(*)"
    shown = invoke("explain", "--text", query).out
    assert shown.startswith("plain query\n")
    assert invoke("explain", write("q.cypher", query)).out == shown
    assert invoke("explain", "-", stdin=query).out == shown


def test_explain_as_json_is_one_object_or_a_list(invoke: Invoke, trick: Path, write: Write) -> None:
    assert json.loads(invoke("explain", trick, "--format", "json").out)["query"] == "student_trick"
    two = write("two.seraph", NARROW + NARROW.replace("QUERY n", "QUERY m"))
    assert [plan["query"] for plan in json.loads(invoke("explain", two, "--format", "json").out)] == ["n", "m"]


def test_explain_needs_exactly_one_query(invoke: Invoke, trick: Path) -> None:
    assert invoke("explain").code == 2
    assert invoke("explain", trick, "--text", "RETURN 1").code == 2


# --- check ----------------------------------------------------------------------------------------------------------


def test_check_draws_every_diagnostic(invoke: Invoke, write: Write) -> None:
    write("bad.seraph", BAD)
    checked = invoke("check", "bad.seraph")
    assert (checked.code, checked.out, checked.err) == (3, "failed  bad.seraph  1 error\n", CHECKED)


def test_check_of_several_files_goes_on_after_a_bad_one(invoke: Invoke, trick: Path, write: Write) -> None:
    write("bad.seraph", BAD)
    checked = invoke("check", "bad.seraph", trick)
    assert checked.code == 3
    assert checked.out == f"failed  bad.seraph  1 error\nok  {trick}  1 query\n"


@pytest.mark.parametrize("form", ["SELECT ?a", "CONSTRUCT { }"])
def test_check_knows_which_streams_of_other_files_carry_nothing(invoke: Invoke, write: Write, form: str) -> None:
    window = "[RANGE 10m STEP 1m] WHERE { ?a ?p ?o }"
    write("d.csparql", f"REGISTER STREAM d COMPUTED EVERY 1m AS {form} FROM STREAM <s> {window}")
    write("r.csparql", f"REGISTER QUERY r COMPUTED EVERY 1m AS SELECT ?a FROM STREAM <d> {window}")
    assert invoke("check", "d.csparql").code == 0
    checked = invoke("check", "d.csparql", "r.csparql")
    assert (checked.code, checked.out) == (3, "ok  d.csparql  1 query\nfailed  r.csparql  1 error\n")
    assert "error[SPQ-203]: the stream `d` carries nothing" in checked.err


def test_check_warns_and_passes(invoke: Invoke, write: Write) -> None:
    write("narrow.seraph", NARROW)
    checked = invoke("check", "narrow.seraph")
    assert (checked.code, checked.out) == (0, "ok  narrow.seraph  1 query, 1 warning\n")
    assert checked.err == (
        "warning[LINT-001]: WITHIN PT1M is narrower than EVERY PT5M\n"
        "  narrow.seraph:2:3\n"
        "  2 |   MATCH (a:A) WITHIN PT1M\n"
        "    |   ^^^^^^^^^^^^^^^^^^^^^^^ events between two windows are never seen\n"
        "hint: make the window at least as wide as the slide: WITHIN PT5M\n\n"
    )


def test_check_as_json_has_lines_and_columns(invoke: Invoke, write: Write) -> None:
    write("bad.seraph", BAD)
    write("narrow.seraph", NARROW)
    checked = invoke("check", "bad.seraph", "narrow.seraph", "--json")
    assert checked.code == 3
    error, warning = json.loads(checked.out)
    assert {key: error[key] for key in ("file", "severity", "code", "line", "column", "end_line", "end_column")} == {
        "file": "bad.seraph",
        "severity": "error",
        "code": "SER-017",
        "line": 3,
        "column": 14,
        "end_line": 3,
        "end_column": 17,
    }
    assert (warning["severity"], warning["code"], warning["line"]) == ("warning", "LINT-001", 2)
    assert checked.err == ""


def test_check_takes_plain_queries(invoke: Invoke) -> None:
    assert invoke("check", "-", stdin="// counts\nMATCH (a) RETURN count(a)").out == "ok  -  1 query\n"


# --- eval -----------------------------------------------------------------------------------------------------------


def test_eval_answers_over_every_kind_of_graph(invoke: Invoke, events: Path, write: Write) -> None:
    node, other = '{"id": 1, "labels": ["Station"]}', '{"id": 2, "labels": ["Station"]}'
    write("object.json", f'{{"nodes": [{node}, {other}], "edges": [{{"type": "T", "from": 1, "to": 2}}]}}')
    write("events.json", f'[{{"at": 0, "nodes": [{node}]}}, {{"at": 1, "nodes": [{other}]}}]')
    write("lines.json", f'{{"at": 0, "nodes": [{node}]}}\n{{"at": 1, "nodes": [{other}]}}\n')
    query = "MATCH (s:Station) RETURN count(*) AS n"
    for name, expected in (("object.json", 2), ("events.json", 2), ("lines.json", 2), (events, 4)):
        assert json.loads(invoke("eval", query, "--graph", name, "-o", "json").out) == {"n": expected}


def test_eval_prints_tables_json_and_csv(invoke: Invoke) -> None:
    query = "UNWIND [1, 20] AS n RETURN n, 'a, b' AS text, null AS nothing, {k: [n]} AS map, n > 1 AS big"
    table = [line.rstrip() for line in invoke("eval", query).out.splitlines()]
    assert table == [
        "   n   text   nothing   map         big",
        "  ───────────────────────────────────────",
        "   1   a, b   null      {k: [1]}    false",
        "  20   a, b   null      {k: [20]}   true",
    ]
    first = invoke("eval", query, "-o", "json").out.splitlines()[0]
    assert json.loads(first) == {"n": 1, "text": "a, b", "nothing": None, "map": {"k": [1]}, "big": False}
    assert invoke("eval", query, "-o", "csv").out.splitlines()[:2] == [
        "n,text,nothing,map,big",
        '1,"a, b",,"{""k"": [1]}",false',
    ]


def test_eval_says_when_there_are_no_rows(invoke: Invoke) -> None:
    assert invoke("eval", "MATCH (n) RETURN n").out == "  no rows\n"


def test_eval_takes_parameters_a_file_and_a_clock(invoke: Invoke, write: Write) -> None:
    write("q.cypher", "RETURN $a AS a, $b AS b, date() AS today")
    given = ["-p", 'a={"x": [1]}', "-p", "b=1 2", "--now", "2022-10-14T12:00Z"]
    ran = invoke("eval", "-f", "q.cypher", *given, "-o", "json")
    assert json.loads(ran.out) == {"a": {"x": [1]}, "b": "1 2", "today": "2022-10-14"}
    assert json.loads(invoke("eval", "-", "-o", "json", stdin="RETURN 1 AS one").out) == {"one": 1}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["RETURN 1 / 0"], 1, "division by zero\n  <query>:1:8\n  1 | RETURN 1 / 0\n    |        ^^^^^\n"),
        (["RETURN x"], 3, "error[SER-017]: no variable `x` in scope"),
        (["RETURN 1", "--graph", "none.json"], 4, "error: there is no file none.json\n"),
        (["RETURN 1", "--graph", "."], 4, "error: .: Is a directory\n"),
        (["RETURN 1", "--graph", "bad.json"], 4, "error: bad.json: relationships[0].to: missing\n"),
        (["RETURN 1", "--graph", "bad.ndjson"], 4, "error: bad.ndjson:2: not JSON: Expecting value (column 1)\n"),
        ([], 2, "give the query, or its file with --file"),
        (["reach.cypher"], 2, "is the name of a file"),
    ],
)
def test_eval_fails_with_the_code_of_the_cause(
    invoke: Invoke, write: Write, arguments: list[str], code: int, message: str
) -> None:
    write("bad.json", '{"nodes": [], "relationships": [{"type": "T", "from": 1}]}')
    write("bad.ndjson", '{"at": 0}\nwhat\n')
    ran = invoke("eval", *arguments)
    assert ran.code == code
    assert message in ran.err
