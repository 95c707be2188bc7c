"""The package's front door: its names, and a plain query over whatever a user has."""

from __future__ import annotations

from pathlib import Path

import pytest

import anabranch

NODES = [{"id": 1, "labels": ["A"]}, {"id": 2, "labels": ["A"]}]
QUERY = "MATCH (a:A) RETURN count(*) AS n"


def test_every_public_name_is_there() -> None:
    for name in anabranch.__all__:
        assert getattr(anabranch, name) is not None
    assert dir(anabranch) == sorted(anabranch.__all__)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Sesion'"):
        anabranch.Sesion  # noqa: B018


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert anabranch.__version__ == version("anabranch")


def test_evaluate_takes_graphs_in_every_form(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text('{"nodes": [{"id": 1, "labels": ["A"]}, {"id": 2, "labels": ["A"]}], "relationships": []}')
    graphs = [
        anabranch.PropertyGraph([anabranch.Node(1, ("A",)), anabranch.Node(2, ("A",))]),
        {"nodes": NODES, "edges": []},
        [anabranch.Event(0, (anabranch.Node(1, ("A",)),)), anabranch.Event(1, (anabranch.Node(2, ("A",)),))],
        [{"at": 0, "nodes": NODES}],
        path,
        str(path),
    ]
    for graph in graphs:
        assert anabranch.evaluate(QUERY, graph).dicts() == [{"n": 2}]
    assert anabranch.evaluate(QUERY).dicts() == [{"n": 0}]


def test_evaluate_knows_parameters_and_the_clock_it_is_given() -> None:
    table = anabranch.evaluate("RETURN $x + 1 AS y, date() AS today", parameters={"x": 1}, now="2022-10-14T23:59Z")
    assert table.to_dicts() == [{"y": 2, "today": "2022-10-14"}]


def test_an_error_at_run_time_shows_its_place() -> None:
    with pytest.raises(anabranch.EvaluationError) as caught:
        anabranch.evaluate("RETURN 1 / 0")
    assert "  1 | RETURN 1 / 0\n    |        ^^^^^" in caught.value.render()


def test_a_file_with_a_malformed_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.ndjson"
    path.write_text('{"at": 0}\n{"at": 1, "nodes": [{}]}\n')
    with pytest.raises(anabranch.StreamError, match=r"g\.ndjson:2: nodes\[0\]\.id: missing"):
        anabranch.evaluate(QUERY, path)
