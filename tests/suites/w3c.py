"""The W3C SPARQL suites as data, and what running a test means.

The data of an evaluation test is one event of a stream, its named graphs are events of streams of their own, and the
query is registered over one window of all of them: FROM STREAM clauses are put into its text, and those that it has
become FROM STREAM. Its one answer is compared with the expected one: as a bag, blank nodes up to their names.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from anabranch import Session
from anabranch.errors import QueryError
from anabranch.formats.rdf.terms import BlankNames, to_oxigraph
from anabranch.model.event import Event
from anabranch.model.terms import XSD, Blank, Iri, Literal, Term, Triple
from anabranch.syntax.sparql import plan
from anabranch.syntax.sparql.parser import parse_query
from anabranch.syntax.sparql.tree import FromTree

from .tck import suites_folder

BASE = "http://w3c.example/"
DEFAULT = "urn:w3c:default"
NO_GRAPH = "urn:w3c:none"
RANGE = "[RANGE 1h STEP 1h]"
_RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
_FORMATS = {
    "ttl": ox.RdfFormat.TURTLE,
    "nt": ox.RdfFormat.N_TRIPLES,
    "rdf": ox.RdfFormat.RDF_XML,
    "trig": ox.RdfFormat.TRIG,
    "nq": ox.RdfFormat.N_QUADS,
}
_RESULTS = {
    "srx": ox.QueryResultsFormat.XML,
    "srj": ox.QueryResultsFormat.JSON,
    "tsv": ox.QueryResultsFormat.TSV,
}
_NUMBERS = {f"{XSD}{name}" for name in ("integer", "decimal", "float", "double")}

Row = dict[str, Term]


def folder() -> Path:
    return suites_folder() / "w3c-sparql"


@cache
def tests() -> list[dict[str, Any]]:
    """The tests of queries; those that need entailment, a service or an update are not about queries over streams."""
    file = folder() / "tests.json"
    if not file.is_file():
        return []
    found = json.loads(file.read_text(encoding="utf-8"))
    return [test for test in found if test["query_only"] and not test["service"] and not test["entailment"]]


def name(test: dict[str, Any]) -> str:
    return f"{test['folder']}/{test['id']}"


@cache
def exceptions() -> dict[str, str]:
    """Test name to the reason why it is left out."""
    lines = (Path(__file__).parent / "w3c_exceptions.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    return {pair[0]: pair[1] for pair in pairs}


def missing(test: dict[str, Any]) -> list[str]:
    """The files of a test that its folder does not hold."""
    if not test.get("result"):
        return []
    _, streams = _registered(test, (folder() / test["query"]).read_text(encoding="utf-8"))
    files = [file for files in streams.values() for file in files]
    return [file for file in files if not _found(folder() / file).exists()]


def run(test: dict[str, Any]) -> str | None:
    """What is wrong; None when the test passes."""
    text = (folder() / test["query"]).read_text(encoding="utf-8")
    match test["kind"]:
        case "syntax+":
            try:
                plan(_based(text, test), test["query"])
            except QueryError as error:
                return f"refused:\n{error}"
            return None
        case "syntax-":
            try:
                plan(_based(text, test), test["query"])
            except QueryError:
                return None
            return "accepted"
        case _ if test.get("result"):
            return _evaluated(test, text)  # rows, a graph, or a result format, which its rows are compared with
    raise AssertionError(f"no such kind of test: {test['kind']}")


def _based(text: str, test: dict[str, Any]) -> str:
    return f"BASE <{BASE}{test['query']}>\n{text}"


# --- evaluation -------------------------------------------------------------------------------------------------------


def _evaluated(test: dict[str, Any], text: str) -> str | None:
    query, streams = _registered(test, text)
    session = Session.local(list(streams))
    try:
        registered = session.register(query)
    except QueryError as error:
        return f"refused:\n{error}"
    for stream, files in streams.items():
        triples = [triple for file in files for triple in read_graph(file)]
        session.push(stream, Event(1_800_000_000, triples=tuple(triples)))
    session.finish(until=3_600_000_000)
    answers = registered.poll()
    if len(answers) > 1:
        return f"{len(answers)} answers"
    rows = answers[0].rows if answers else []
    return _compared(test, registered.registration.form, registered.columns, rows, text)


def _registered(test: dict[str, Any], text: str) -> tuple[str, dict[str, list[str]]]:
    """The continuous query, and by stream the files of its one event."""
    text = _based(text, test)
    tree = parse_query(text, test["query"]).query
    own = [clause for clause in tree.dataset if isinstance(clause, FromTree)]
    if own:
        streams: dict[str, list[str]] = {}
        for clause in reversed(own):
            assert clause.span is not None
            named = "NAMED " if clause.named else ""
            said = f"FROM {named}STREAM <{clause.iri.value}> {RANGE}"
            text = text[: clause.span.start] + said + text[clause.span.end :]
            streams[clause.iri.value] = [clause.iri.value.removeprefix(BASE)]
        if not any(clause.named for clause in own):
            text = _with_clause(text, f"FROM NAMED STREAM <{NO_GRAPH}> {RANGE}", tree.dataset_at)
            streams[NO_GRAPH] = []
        return f"REGISTER QUERY test AS {text}", streams
    streams = {DEFAULT: list(test["data"])}
    clauses = [f"FROM STREAM <{DEFAULT}> {RANGE}"]
    for file in test["graphData"]:
        streams[BASE + file] = [file]
        clauses.append(f"FROM NAMED STREAM <{BASE}{file}> {RANGE}")
    if not test["graphData"]:
        # A stream that is not named is no named graph here.
        streams[NO_GRAPH] = []
        clauses.append(f"FROM NAMED STREAM <{NO_GRAPH}> {RANGE}")
    return f"REGISTER QUERY test AS {_with_clause(text, ' '.join(clauses), tree.dataset_at)}", streams


def _with_clause(text: str, clause: str, at: int) -> str:
    return f"{text[:at]} {clause} {text[at:]}"


def _found(path: Path) -> Path:
    """A file that the suite ships once and uses from two folders is taken from the other one."""
    others = sorted(path.parents[1].glob(f"*/{path.name}"))
    return path if path.exists() or not others else others[0]


@cache
def read_graph(file: str) -> tuple[Triple, ...]:
    path = _found(folder() / file)
    names = BlankNames(re.sub(r"\W", "", file))
    data = path.read_bytes()
    quads = ox.parse(data, _FORMATS[path.suffix[1:]], base_iri=BASE + file)
    return tuple(dict.fromkeys(names.triple(quad) for quad in quads))


# --- comparison -------------------------------------------------------------------------------------------------------


def _compared(test: dict[str, Any], form: str, columns: Sequence[str], rows: Sequence[Any], text: str) -> str | None:
    file = folder() / test["result"]
    if form == "graph":
        wanted = read_graph(test["result"])
        got = [Triple(*row) for row in rows]
        return None if _isomorphic(wanted, got) else f"expected {_shown(wanted)}\ngot {_shown(got)}"
    expected = _expected(file)
    if isinstance(expected, bool):
        said = rows[0][0] if rows else None
        return None if said == Literal(str(expected).lower(), f"{XSD}boolean") else f"expected {expected}, got {said}"
    variables, solutions, ordered = expected
    if variables is not None and set(variables) != set(columns):
        return f"expected the columns {variables}, got {columns}"
    got_rows = [_row(zip(columns, row, strict=True)) for row in rows]
    if file.suffix == ".csv":
        return _compared_as_text(solutions, got_rows)
    if "LaxCardinality" in test["cardinality"]:
        return _compared_laxly(solutions, got_rows)
    if not same_bag(solutions, got_rows):
        return f"expected {_lines(solutions)}\ngot {_lines(got_rows)}"
    if ordered and [_plain(row) for row in solutions] != [_plain(row) for row in got_rows]:
        return f"expected in this order {_lines(solutions)}\ngot {_lines(got_rows)}"
    return None


def _row(values: Iterable[tuple[str, Any]]) -> Row:
    return {column: normal(value) for column, value in values if value is not None}


def normal(term: Term) -> Term:
    """Numbers by value: 1.0 and 1.00 are one answer."""
    if isinstance(term, Literal) and term.datatype in _NUMBERS:
        try:
            value = Decimal(term.lexical) if term.datatype.endswith(("integer", "decimal")) else float(term.lexical)
        except (ArithmeticError, ValueError):
            return term
        exact = value.normalize() if isinstance(value, Decimal) else value
        return Literal(str(exact + 0 if isinstance(exact, Decimal) else exact), term.datatype)
    return term


def _expected(file: Path) -> bool | tuple[list[str] | None, list[Row], bool]:
    if file.suffix == ".csv":
        return _expected_csv(file)
    if file.suffix[1:] in _RESULTS:
        found = ox.parse_query_results(file.read_bytes(), _RESULTS[file.suffix[1:]])
        if isinstance(found, ox.QueryBoolean):
            return bool(found)
        names = BlankNames("expected")
        variables = [variable.value for variable in found.variables]
        rows = [
            _row((name, None if solution[name] is None else names.term(solution[name])) for name in variables)
            for solution in found
        ]
        return variables, rows, False
    return _expected_graph(file)


def _expected_csv(file: Path) -> tuple[list[str], list[Row], bool]:
    import csv

    head, *lines = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))
    return head, [{name: Literal(cell) for name, cell in zip(head, line, strict=True) if cell} for line in lines], False


def _expected_graph(file: Path) -> bool | tuple[list[str] | None, list[Row], bool]:
    """A result set that is spelled out in RDF."""
    graph = read_graph(str(file.relative_to(folder())))
    by_subject: dict[Term, dict[str, list[Term]]] = {}
    for subject, predicate, value in graph:
        assert isinstance(predicate, Iri)
        by_subject.setdefault(subject, {}).setdefault(predicate.value, []).append(value)
    [root] = [node for node, said in by_subject.items() if Iri(f"{_RS}ResultSet") in said.get(RDF_TYPE, [])]
    said = by_subject[root]
    if f"{_RS}boolean" in said:
        return said[f"{_RS}boolean"][0].lexical == "true"  # type: ignore[union-attr]
    solutions = [by_subject.get(node, {}) for node in said.get(f"{_RS}solution", [])]
    ordered = all(f"{_RS}index" in solution for solution in solutions) and bool(solutions)
    if ordered:
        solutions.sort(key=lambda solution: int(solution[f"{_RS}index"][0].lexical))  # type: ignore[union-attr]
    rows = []
    for solution in solutions:
        bindings = [by_subject[node] for node in solution.get(f"{_RS}binding", [])]
        rows.append(_row((one[f"{_RS}variable"][0].lexical, one[f"{_RS}value"][0]) for one in bindings))  # type: ignore[union-attr]
    variables = [one.lexical for one in said.get(f"{_RS}resultVariable", [])]  # type: ignore[union-attr]
    return variables, rows, ordered


RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def _compared_as_text(expected: list[Row], got: list[Row]) -> str | None:
    def texts(rows: list[Row]) -> Counter[frozenset[tuple[str, str]]]:
        return Counter(frozenset((name, text(term)) for name, term in row.items()) for row in rows)

    def text(term: Term) -> str:
        return "_:" if isinstance(term, Blank) or term[0].startswith("_:") else term[0]

    return None if texts(expected) == texts(got) else f"expected {_lines(expected)}\ngot {_lines(got)}"


def _compared_laxly(expected: list[Row], got: list[Row]) -> str | None:
    most = Counter(_plain(row) for row in expected)
    found = Counter(_plain(row) for row in got)
    right = found.keys() == most.keys() and all(count <= most[row] for row, count in found.items())
    return None if right else f"expected at most {_lines(expected)}\ngot {_lines(got)}"


def _plain(row: Row) -> frozenset[tuple[str, Term]]:
    """A row with blank nodes that are all alike."""
    return frozenset((name, Blank("") if isinstance(term, Blank) else term) for name, term in row.items())


def same_bag(expected: Sequence[Row], got: Sequence[Row]) -> bool:
    """Whether the rows are the same, as often, under some renaming of blank nodes."""
    if Counter(map(_plain, expected)) != Counter(map(_plain, got)):
        return False
    return _isomorphic(_spelled(expected), _spelled(got))


def _spelled(rows: Sequence[Row]) -> list[Triple]:
    """Rows as a graph: each row a blank node of its own, its bindings the arcs."""
    return [
        Triple(Blank(f"row{index}", "rows"), Iri(f"urn:column:{column}"), term)
        for index, row in enumerate(rows)
        for column, term in row.items()
    ]


def _isomorphic(one: Sequence[Triple], other: Sequence[Triple]) -> bool:
    def dataset(triples: Sequence[Triple]) -> ox.Dataset:
        found = ox.Dataset(ox.Quad(to_oxigraph(s), to_oxigraph(p), to_oxigraph(normal(o))) for s, p, o in triples)
        found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
        return found

    return dataset(one) == dataset(other)


def _shown(triples: Sequence[Triple]) -> str:
    return "\n  ".join(["", *sorted(map(str, triples))])


def _lines(rows: Sequence[Row]) -> str:
    return "\n  ".join(["", *(str(sorted(row.items())) for row in rows)]) if rows else "no rows"
