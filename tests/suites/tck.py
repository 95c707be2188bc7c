"""The openCypher TCK as data: its scenarios, their graphs, and what running one means.

A scenario's setup graph is loaded whole, its query is evaluated over it as one snapshot, and the table is compared as
a bag, or as a list where the scenario says so. Errors are compared by phase: refused before it runs, or failing while
it runs.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import anabranch
from anabranch.engine.ingestion import RecordMapping
from anabranch.errors import EvaluationError, QueryError
from anabranch.formats.events import graph_from
from anabranch.model.graph import PropertyGraph
from anabranch.model.values import Node, Relationship
from anabranch.syntax.languages import script

from .tck_values import expected_shape, shape_of

ROOT = Path(__file__).parents[2]
NOW = 1_700_000_000_000_000
_SETUP = re.compile(r"(?P<reads>MATCH.*?)?(?:DELETE\s+(?P<deleted>\w+))?\s*(?P<writes>(?:CREATE|UNWIND).*)", re.DOTALL)


def suites_folder() -> Path:
    return Path(os.environ.get("ANABRANCH_SUITES") or ROOT.parent / "shared" / "suites")


@cache
def scenarios() -> list[dict[str, Any]]:
    """The scenarios that have a meaning for a read-only stream; empty when the suite is not here."""
    file = suites_folder() / "opencypher-tck" / "scenarios.json"
    if not file.is_file():
        return []
    found = json.loads(file.read_text(encoding="utf-8"))
    return [scenario for scenario in found if scenario["streamable"] or scenario["streamable_error"]]


@cache
def _setup_graphs() -> dict[str, Any]:
    file = suites_folder() / "opencypher-tck" / "setup_graphs.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}  # type: ignore[no-any-return]


@cache
def exceptions() -> dict[str, str]:
    """Scenario id to the reason why it is left out."""
    lines = (Path(__file__).parent / "tck_exceptions.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    return {pair[0]: pair[1] for pair in pairs}


def _computed(data: Any) -> Any:
    """A property of a setup graph; `$expr` ones are Cypher expressions."""
    if isinstance(data, dict) and set(data) == {"$expr"}:
        return _value(data["$expr"])
    return [_computed(item) for item in data] if isinstance(data, list) else data


@cache
def _value_text(expression: str) -> Any:
    return anabranch.evaluate(f"RETURN {expression} AS value", {"nodes": []}, now=NOW).rows[0][0]


def _value(expression: str) -> Any:
    return _value_text(expression)


def _literal_graph(data: dict[str, Any]) -> PropertyGraph:
    nodes = [
        Node(one["id"], tuple(one["labels"]), {key: _computed(value) for key, value in one["properties"].items()})
        for one in data["nodes"]
    ]
    bare = graph_from({"nodes": [], "edges": [{**one, "properties": {}} for one in data["edges"]]})
    relationships = [
        Relationship(found.id, found.type, found.source, found.target,
                     {key: _computed(value) for key, value in one["properties"].items()})
        for found, one in zip(bare.relationships.values(), data["edges"], strict=True)
    ]  # fmt: skip
    return PropertyGraph(nodes, relationships)


def _written_graph(statements: list[str]) -> PropertyGraph:
    """The graph that setup statements with UNWIND, MATCH or DELETE build, one statement after the other."""
    graph = PropertyGraph()
    for number, statement in enumerate(statements):
        match = _SETUP.fullmatch(statement.strip())
        assert match is not None, statement
        rows: list[dict[str, Any]] = [{}]
        if match["reads"]:
            rows = anabranch.evaluate(match["reads"] + " RETURN *", graph, now=NOW).dicts()
        if match["deleted"]:
            gone = {row[match["deleted"]].id for row in rows}
            kept = [one for one in graph.relationships.values() if one.id not in gone]
            graph = PropertyGraph(graph.nodes.values(), kept)
        names = sorted(rows[0]) if rows else []
        rebind = f"WITH {', '.join(f'row.{name} AS {name}' for name in names)}" if names else "WITH row"
        text = f"LOAD STREAM FROM 'setup' AS event AT 0 UNWIND event.rows AS row {rebind} {match['writes']}"
        event = RecordMapping(script(text).ingestions[0]).event_of({"rows": rows}, 0, number)
        if event is not None:
            nodes = {**graph.nodes, **{node.id: node for node in event.nodes}}
            graph = PropertyGraph(nodes.values(), [*graph.relationships.values(), *event.relationships])
    return graph


def graph_of(scenario: dict[str, Any]) -> PropertyGraph:
    graphs = _setup_graphs()
    for key in (scenario["id"], scenario["id"].split("#")[0]):
        if key in graphs:
            return _literal_graph(graphs[key])
    return _written_graph(scenario["setup"])


def run(scenario: dict[str, Any]) -> str | None:
    """None when the scenario passes, else what went wrong."""
    parameters = {name: _value(text) for name, text in scenario["params"] or ()}
    try:
        table = anabranch.evaluate(scenario["query"], graph_of(scenario), parameters, now=NOW)
    except EvaluationError as error:
        return _error(scenario, "runtime", str(error))
    except QueryError as error:
        return _error(scenario, "compile time", str(error))
    if scenario["streamable_error"]:
        return f"expected {scenario['expect']}, got a table of {len(table)} rows"
    return _compare(scenario["expect"], table)


def _error(scenario: dict[str, Any], phase: str, text: str) -> str | None:
    if scenario["streamable"]:
        return f"refused at {phase}:\n{text}"
    wanted = scenario["expect"]["phase"]
    return None if wanted in (phase, "any time") else f"expected an error at {wanted}, got one at {phase}:\n{text}"


def _compare(expect: dict[str, Any], table: anabranch.Table) -> str | None:
    if list(table.columns) != expect["columns"]:
        return f"columns {list(table.columns)}, expected {expect['columns']}"
    unordered = expect["ignore_list_order"]
    got = [tuple(shape_of(value, unordered_lists=unordered) for value in row) for row in table.rows]
    wanted = [tuple(expected_shape(text, unordered_lists=unordered) for text in row) for row in expect["rows"]]
    same = got == wanted if expect["order"] else Counter(got) == Counter(wanted)
    return None if same else f"rows\n  {got}\nexpected\n  {wanted}"
