"""docs/reference/cli.md: its outputs are true, and it knows every command, option and exit code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from anabranch.cli import failures, signals
from anabranch.cli.app import app

from .conftest import ROOT, Invoke

PAGE = ROOT / "docs" / "reference" / "cli.md"
TEXT = PAGE.read_text()


def sessions(text: str) -> list[tuple[str, str]]:
    """Commands and the output below each, from the page's console blocks."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def files(text: str) -> list[tuple[str, str]]:
    """The files that the page shows, by the name behind `file=`."""
    return re.findall(r"^```\w+ file=(\S+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def comparable(output: str) -> str:
    lines = [re.sub(r"[\d.]+ s · [\d,]+ events/s", "a moment", line.rstrip()) for line in output.splitlines()]
    return "\n".join(lines).strip()


@pytest.mark.parametrize(("command", "output"), sessions(TEXT))
def test_the_page_shows_true_output(invoke: Invoke, tmp_path: Path, command: str, output: str) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name, content in files(TEXT):
        (tmp_path / name).write_text(content)
    ran = invoke(*shlex.split(command)[1:])
    assert comparable(ran.out + ran.err) == comparable(output)


def test_the_page_names_every_command_and_option() -> None:
    group: Any = get_command(app)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        assert f"\n## {name}\n" in TEXT
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--") and option != "--help":
                    assert option in TEXT, f"{name} {option}"


@pytest.mark.parametrize("name", ["demo", "run", "connectivity", "explain", "convert", "serve"])
def test_the_help_shows_what_holds_unless_an_option_is_given(invoke: Invoke, name: str) -> None:
    shown = " ".join(invoke(name, "--help", columns=400).out.split())
    group: Any = get_command(app)
    command = group.get_command(None, name)
    for parameter in command.params:
        said = re.search(r"\\?(\[[^]]+])$", getattr(parameter, "help", None) or "")
        if said is not None:
            assert said[1] in shown, f"{name} {parameter.name}"


def test_the_page_names_every_exit_code() -> None:
    codes = {
        failures.OK,
        failures.FAILED,
        failures.USAGE,
        failures.REFUSED,
        failures.NO_INPUT,
        failures.SET_ASIDE,
        signals.INTERRUPTED,
    }
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)} == codes
