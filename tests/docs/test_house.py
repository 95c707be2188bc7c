"""What holds for the whole repository: no traces of a machine, nothing public without a place in the reference, one
meaning for each type name."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterator
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


TREES = "the trees of the two syntax families name the same parts of a text"
AGGREGATES = "the aggregates of Cypher and those of SPARQL, side by side in `snapshot` and `snapshot/rdf`"
TWINS = {
    "Builder": TREES,
    "ExpressionBuilder": TREES,
    "ExpressionLowering": TREES,
    "NodeTree": TREES,
    "PathTree": TREES,
    "QueryTree": TREES,
    "ScriptTree": TREES,
    "Scope": "what an expression of either syntax family sees",
    "Average": AGGREGATES,
    "Count": AGGREGATES,
    "Extreme": AGGREGATES,
    "Sum": AGGREGATES,
    "Path": "a path as a value, which users import, and a property path in a plan, which EXPLAIN shows",
}
PARTICIPLES = {"Asked", "Told", "Wanted", "Kept", "Found", "Given", "Made", "Noted", "Seen", "Taken", "Passed", "Held"}


def public_types() -> Iterator[tuple[str, str]]:
    """The public classes and type aliases of the package, each with its file."""
    for path in sorted((ROOT / "src" / "anabranch").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            match node:
                case ast.ClassDef(name=name):
                    pass
                case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
                    pass
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript()) if name[:1].isupper():
                    if name.isupper():
                        continue
                case _:
                    continue
            if not name.startswith("_"):
                yield name, str(path.relative_to(ROOT))


def test_a_public_type_name_means_one_thing() -> None:
    places = defaultdict(list)
    for name, place in public_types():
        places[name].append(place)
    assert {name: found for name, found in places.items() if len(found) > 1 and name not in TWINS} == {}
    assert [name for name in TWINS if len(places[name]) < 2] == [], "a name that is one now leaves the list"
    assert len(TWINS) <= 20


def test_a_type_is_called_by_a_noun() -> None:
    assert [name for name, _ in public_types() if name in PARTICIPLES] == []


def test_no_function_takes_more_than_eight_parameters() -> None:
    found = []
    for path in sorted((ROOT / "src" / "anabranch").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
                names += [one.arg for one in (given.vararg, given.kwarg) if one is not None]
                count = len([name for name in names if name not in ("self", "cls")])
                place = str(path.relative_to(ROOT / "src" / "anabranch"))
                if count > 8:
                    found.append(f"{place}: {node.name}")
    assert found == []


def test_every_mutant_of_the_list_can_be_made() -> None:
    """The text of a mutant stands once in its file, and the tests that guard it exist."""
    found = []
    for file, listed in tomllib.loads((ROOT / "tools" / "mutants.toml").read_text(encoding="utf-8")).items():
        text = (ROOT / "src" / "anabranch" / file).read_text(encoding="utf-8")
        tests = {*listed["tests"], *(one for mutant in listed["mutants"] for one in mutant.get("tests", ()))}
        found += [f"{file}: {one}" for one in sorted(tests) if not (ROOT / "tests" / one).exists()]
        found += [f"{file}: {mutant['old']}" for mutant in listed["mutants"] if text.count(mutant["old"]) != 1]
    assert found == []
