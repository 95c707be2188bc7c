"""What holds for the whole repository: no traces of a machine, and nothing public without a place in the reference."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

import anabranch
from anabranch.cli.app import app

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
# Written in parts, so that this file does not hold what it looks for.
_TRACES = re.compile(
    "|".join(
        (
            r"(?<![\w.])/" + r"(home|root|Users)/\w",
            r"(?<![\w.])/" + r"work/\w",
            r"[A-Z]:\\" + r"Users\\",
            r"(--|^)(extra-)?index" + r"-url\s*[ =]\s*\S",
            r"pypi\.org/" + r"simple",
            r"/api/pypi/" + r"|artifact" + r"ory|nex" + r"us/repository",
        )
    ),
    re.MULTILINE,
)


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout: git does not list its files")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_folder_of_somebodys_machine_or_a_package_index() -> None:
    found = []
    for path in tracked_files():
        if path == Path(__file__):
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match[0]!r}" for match in _TRACES.finditer(text)]
    assert found == []


def test_every_public_name_is_in_the_python_reference() -> None:
    page = (REFERENCE / "python.md").read_text(encoding="utf-8")
    assert [name for name in anabranch.__all__ if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", page)] == []


def test_every_command_is_in_the_command_line_reference() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    page = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    assert commands
    assert [name for name in commands if f"\n## {name}\n" not in page] == []


def test_the_glossary_has_one_line_per_word_in_alphabetical_order() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| \*\*([^*]+)\*\*", page, re.MULTILINE)
    assert words == sorted(set(words), key=str.casefold)
