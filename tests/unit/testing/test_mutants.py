"""The mutation runner: what a test notices is killed, what changes nothing lives, and no file changes."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
RUNNER = ROOT / "tools" / "mutants.py"
LIST = """
["model/triple_window.py"]
tests = ["unit/model/test_triple_window.py"]
mutants = [
  { old = "self._latest[triple] == self._dropped:", new = "self._latest[triple] >= self._dropped:" },
  { old = "number += 1", new = "number += 0 + 1"%s },
  { old = "no such text", new = "" },
]
"""


@pytest.fixture(scope="module")
def mutants() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", RUNNER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    return module


def test_a_fault_is_killed_and_what_changes_nothing_lives_unless_a_reason_is_given(tmp_path: Path) -> None:
    source = ROOT / "src" / "anabranch" / "model" / "triple_window.py"
    before = source.read_bytes()
    (tmp_path / "list.toml").write_text(LIST % "")
    arguments = [sys.executable, str(RUNNER), "--list", str(tmp_path / "list.toml"), "--unchecked"]
    said = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert said.returncode == 1, said.stdout + said.stderr
    assert "3 mutants: 1 killed, 1 lives, 1 out of date" in said.stdout
    assert "test_triple_window.py::" in said.stdout
    (tmp_path / "list.toml").write_text(LIST % ', lives = "nothing is added"')
    said = subprocess.run([*arguments, "--only", "number"], capture_output=True, text=True, timeout=300)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "1 mutants: 1 accepted" in said.stdout
    assert source.read_bytes() == before


def test_every_listed_mutant_names_tests_that_are_there(mutants: ModuleType) -> None:
    known = mutants.listed()
    assert len(known) >= 60
    assert len({(one.file, one.old, one.new) for one in known}) == len(known)
    for one in known:
        assert (ROOT / "src" / "anabranch" / one.file).exists(), one.file
        assert one.tests
        assert all((ROOT / "tests" / test).exists() for test in one.tests), one.tests


def test_drawn_mutants_are_programs_and_the_same_for_the_same_seed(mutants: ModuleType) -> None:
    known = mutants.listed()
    drawn = mutants.drawn(known, 5, 1)
    assert drawn == mutants.drawn(known, 5, 1) != mutants.drawn(known, 5, 2)
    assert len(drawn) > 50
    for one in drawn:
        source = one.source()
        assert source != (ROOT / "src" / "anabranch" / one.file).read_text()
        ast.parse(source)
