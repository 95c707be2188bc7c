"""What every test of the command line needs: a way to run it, the running example, and room to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anabranch.cli.app import app

ROOT = Path(__file__).parents[3]
BIKES = ROOT / "examples" / "bikes"


class Outcome:
    """What a command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


Invoke = Callable[..., Outcome]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Runs a command in an empty directory, at a width, without colour unless asked for."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "ANABRANCH_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object, columns: int = 80, stdin: str | bytes | None = None) -> Outcome:
        result = CliRunner().invoke(
            app, [str(argument) for argument in arguments], input=stdin, env={"COLUMNS": str(columns), "TERM": "xterm"}
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def trick() -> Path:
    return BIKES / "student_trick.seraph"


@pytest.fixture
def events() -> Path:
    return BIKES / "events.ndjson"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    def write_file(name: str, content: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    return write_file
