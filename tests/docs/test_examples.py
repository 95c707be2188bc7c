"""The queries that pages quote from `examples/` are the files' own, and the pictures are what their commands draw."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anabranch.cli.app import app

ROOT = Path(__file__).parents[2]
BROKERS = ("explain", "examples/brokers/brokers.csparql", "--graph", "brokers=examples/brokers/brokers.ttl")


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("docs/tutorial.md", "examples/tolls/districts.csparql"),
        ("docs/tutorial.md", "examples/tolls/districts.seraph"),
        ("docs/reference/lupos.md", "examples/tolls/gates.lupos"),
        ("docs/reference/rspql.md", "examples/tolls/districts.rspql"),
        ("README.md", "examples/tolls/districts.seraph"),
    ],
)
def test_a_page_quotes_the_file_without_its_first_comment(page: str, file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.sub(r"\A(?:(?:#|//).*\n)+", "", text) in (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(("view", "picture"), [("ograph", "brokers-ograph.svg"), ("dgraph", "brokers-dgraph.svg")])
def test_the_picture_of_the_broker_query_is_what_explain_draws(
    monkeypatch: pytest.MonkeyPatch, view: str, picture: str
) -> None:
    monkeypatch.chdir(ROOT)
    drawn = CliRunner().invoke(app, [*BROKERS, "--format", "svg", "--view", view])
    assert drawn.exit_code == 0
    assert drawn.stdout == (ROOT / "docs" / "pictures" / picture).read_text(encoding="utf-8")
