"""The start of a run: it loads what its query, its streams and its output need, and no more."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.core import TyperCommand
from typer.testing import CliRunner

from anabranch.cli.arguments import Command, takes

from .conftest import ROOT
from .test_process import ENVIRONMENT, PATIENCE

MODULES = """
import sys
from anabranch.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
print(*sys.modules, file=sys.stderr)
"""
NEVER = [
    "anabranch.cli.serve",
    "anabranch.drawings",
    "anabranch.insight",
    "anabranch.notebook",
    "anabranch.server",
    "anabranch.sinks.parquet",
    "anabranch.sources.generators",
    "anabranch.sources.kafka",
    "anabranch.sources.mapped",
    "anabranch.sources.spool",
    "anabranch.testing",
    "anabranch.ui",
    "fastapi",
    "httpx",
    "numba.np.arrayobj",  # numba's library, which compiles kernels: these are loaded
    "pandas",
    "pyarrow.compute",
    "pyarrow.csv",
    "pyarrow.parquet",
    "pydantic",
    "pyspark",
    "rich.progress",
]
TOLLS = ROOT / "examples" / "tolls"


def loaded(tmp_path: Path, *arguments: object) -> set[str]:
    """The modules that a run loads when its kernels are compiled: by the run before it, if not earlier."""
    command = [sys.executable, "-c", MODULES, "run", *map(str, arguments), "--engine", "local", "-o", "json", "-q"]
    for _ in range(2):
        ran = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=tmp_path, env=ENVIRONMENT, timeout=PATIENCE
        )
    assert ran.stdout
    return set(ran.stderr.split())


def test_a_run_of_seraph_loads_neither_sparql_nor_other_formats(trick: Path, events: Path, tmp_path: Path) -> None:
    found = loaded(tmp_path, trick, "-s", f"rides={events}")
    assert "anabranch.syntax.seraph" in found
    sparql = ["anabranch.syntax.sparql", "anabranch.formats.rdf.tables", "anabranch.planner.leaves.property_paths"]
    assert sorted(found & {*NEVER, *sparql}) == []


def test_a_run_of_csparql_does_not_load_seraph(tmp_path: Path) -> None:
    query, stream, graph = TOLLS / "districts.csparql", TOLLS / "passages.nt.tsv", TOLLS / "city.ttl"
    found = loaded(tmp_path, query, "-s", f"http://streams.org/tolls={stream}", "-g", graph)
    assert "anabranch.syntax.sparql" in found
    assert sorted(found & {*NEVER, "anabranch.syntax.seraph", "anabranch.formats.rdf.tables"}) == []


class Size(StrEnum):
    small = "small"
    large = "large"


@dataclass(frozen=True)
class ShownArguments:
    names: Annotated[list[str], typer.Argument()]
    size: Annotated[Size, typer.Option()] = Size.small
    other: Annotated[Size | None, typer.Option()] = None
    way: Annotated[Literal["here", "there"], typer.Option()] = "here"
    count: Annotated[int, typer.Option(min=1)] = 3
    limit: Annotated[int | None, typer.Option()] = None
    tag: Annotated[list[str] | None, typer.Option()] = None
    text: Annotated[str, typer.Option(envvar="SHOWN_TEXT")] = "none"
    loud: Annotated[bool, typer.Option("--loud")] = False
    color: Annotated[bool | None, typer.Option("--color/--no-color")] = None


@takes(ShownArguments)
def show(arguments: ShownArguments) -> None:
    print(arguments)


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a b --size large --other small",
        "a --count 7 --limit 8 --tag x --tag y --text z --loud --no-color",
        "a --count 0",
        "a --count many",
        "a --size huge",
        "a --size LARGE",
        "a --way there",
        "a --way up",
        "--size large",
        "",
    ],
)
@pytest.mark.parametrize("environment", [{}, {"SHOWN_TEXT": "7"}])
def test_values_and_refusals_are_those_of_typer(line: str, environment: dict[str, str]) -> None:
    outcomes = []
    for kind in (TyperCommand, Command):
        app = typer.Typer(add_completion=False)
        app.command("show", cls=kind)(show)
        ran = CliRunner().invoke(app, line.split(), env=environment)
        outcomes.append((ran.exit_code, ran.stdout, ran.stderr))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1] or outcomes[0][2]
