"""Mutation runner: breaks one place of the program at a time and looks whether the tests of its room notice.

    python tools/mutants.py                      the mutants of tools/mutants.toml
    python tools/mutants.py --only engine/feeds  those whose file or text holds these words
    python tools/mutants.py --drawn 20 --seed 3  mutants drawn at random, per file, instead of the listed ones

A mutant is a file, a text that stands in it once, and another text. It is loaded by an import hook in a forked process,
which runs the tests of the file until one fails; no file of the work tree changes. A mutant that no test notices lives:
that is a fault of the tests unless the list says why it is none. Each set of tests runs once without a mutant first.

The table says of each mutant what became of it: `killed` with the test that failed, `no import`, `too long` (more CPU
seconds than the limit: most often a loop without an end), `lives`, or `accepted` with the reason of the list. The exit
code is 1 when a mutant lives that is not accepted, when an accepted one is killed, or when the list is out of date.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, ModuleType
from typing import Literal

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tools" / "mutants.toml"
SOURCE = ROOT / "src" / "anabranch"
CPU_SECONDS = 240  # a mutant, unless the command says otherwise
WALL_FACTOR = 8  # a machine that is busy, and a mutant that only waits

Fate = Literal["killed", "no import", "too long", "lives", "accepted", "out of date", "tests fail"]


@dataclass(frozen=True)
class Mutant:
    """One change of one file below src/anabranch, and the test files that should notice it."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    lives: str = ""  # why no test can notice it
    at: int | None = None  # where the text stands, for one that was drawn

    def source(self) -> str | None:
        """The file with the change; None where the text does not stand in it exactly once."""
        text = (SOURCE / self.file).read_text()
        if self.at is not None:
            return text[: self.at] + self.new + text[self.at + len(self.old) :]
        return text.replace(self.old, self.new) if text.count(self.old) == 1 else None

    @property
    def module(self) -> str:
        return ".".join(("anabranch", *Path(self.file).with_suffix("").parts))

    def __str__(self) -> str:
        return f"{self.file}: {_short(self.old)} -> {_short(self.new)}"


def listed(path: Path = LIST) -> list[Mutant]:
    found = []
    for file, said in tomllib.loads(path.read_text()).items():
        for one in said["mutants"]:
            tests = tuple(one.get("tests", said["tests"]))
            found.append(Mutant(file, one["old"], one["new"], tests, one.get("lives", "")))
    return found


# --- mutants that are drawn -----------------------------------------------------------------------------------------

_COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", " in ": " not in ", " is ": " is not "}


def drawn(known: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many mutants of each file of the list, other than those that the list accepts."""
    accepted = {(one.file, one.source()) for one in known if one.lives}
    by_file = {one.file: one.tests for one in reversed(known)}
    found: list[Mutant] = []
    for file, tests in sorted(by_file.items()):
        text = (SOURCE / file).read_text()
        options = [Mutant(file, text[at:stop], new, tests, at=at) for at, stop, new in _changes(text)]
        options = [one for one in options if (file, one.source()) not in accepted]
        found += random.Random(f"{seed} {file}").sample(options, min(count, len(options)))
    return found


def _changes(text: str) -> Iterator[tuple[int, int, str]]:
    """Places of a source and what could stand there: other comparisons, one more or less, `and` for `or`, calls left
    out, conditions turned round."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def place(line: int, column: int) -> int:
        return len(text.encode()[: starts[line - 1] + column].decode())

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)

    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Compare(left, _, [right, *_]):
                begin, stop = span(left)[1], span(right)[0]
                for old, new in _COMPARED.items():
                    if text[begin:stop].strip() == old.strip():
                        at = text.index(old.strip(), begin)
                        yield at, at + len(old.strip()), new.strip()
            case ast.BinOp(left, ast.Add() | ast.Sub() as operation, right):
                old, new = ("+", "-") if isinstance(operation, ast.Add) else ("-", "+")
                at = text.find(old, span(left)[1], span(right)[0])
                if at >= 0:
                    yield at, at + 1, new
            case ast.BoolOp(operation, [first, second, *_]):
                old, new = ("and", "or") if isinstance(operation, ast.And) else ("or", "and")
                at = text.find(f" {old} ", span(first)[1], span(second)[0])
                if at >= 0:
                    yield at + 1, at + 1 + len(old), new
            case ast.Constant(bool() as value):
                yield *span(node), str(not value)
            case ast.Constant(int() as value) if value < 1_000:
                yield *span(node), str(value + 1)
            case ast.Expr(ast.Call()):
                yield *span(node), "pass"
            case ast.If(condition) | ast.While(condition):
                begin, stop = span(condition)
                yield begin, stop, f"not ({text[begin:stop]})"
            case ast.Call(ast.Name("min" | "max" as name)):
                begin = span(node)[0]
                yield begin, begin + 3, "max" if name == "min" else "min"


# --- one mutant -----------------------------------------------------------------------------------------------------


class _Changed(importlib.machinery.SourceFileLoader):
    """Loads a module from a source that is not on disk."""

    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        return self._source


class _Hook(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, path: Path, source: str) -> None:
        self._module = module
        self._path = str(path)
        self._source = source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        loader = _Changed(fullname, self._path, self._source)
        return importlib.util.spec_from_file_location(fullname, self._path, loader=loader)


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: its fate, and the test that failed or the reason why none does."""

    mutant: Mutant
    fate: Fate
    why: str
    seconds: float

    @property
    def is_well(self) -> bool:
        return self.fate in ("killed", "no import", "too long", "accepted") and not (
            self.mutant.lives and self.fate != "accepted"
        )


def tried(mutant: Mutant, limit: int = CPU_SECONDS) -> Outcome:
    """Run the tests of a mutant against it, in a process of its own."""
    source = mutant.source()
    if source is None:
        return Outcome(mutant, "out of date", "the text does not stand in the file exactly once", 0.0)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant") as scratch:
        output = Path(scratch, "output")
        child = os.fork()
        if child == 0:
            _run_tests(mutant, source, limit, output)
        code = _waited(child, limit * WALL_FACTOR)
        said = output.read_text(errors="replace") if output.exists() else ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    seconds = time.monotonic() - began
    if code is None:
        return Outcome(mutant, "too long", "", seconds)
    if code and failed and failed[0].startswith("FAILED"):
        return Outcome(mutant, "killed", failed[1].removeprefix("tests/"), seconds)
    if code == 0:
        return Outcome(mutant, "accepted" if mutant.lives else "lives", mutant.lives, seconds)
    if failed:  # while tests were collected or set up
        return Outcome(mutant, "no import", failed[1].removeprefix("tests/"), seconds)
    return Outcome(mutant, "tests fail", f"pytest ended with {code}: {said[-300:]}", seconds)


def _run_tests(mutant: Mutant, source: str, limit: int, output: Path) -> None:
    """The forked process: it never returns."""
    code = 70
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
        os.setpgid(0, 0)
        number = os.open(output, os.O_WRONLY | os.O_CREAT, 0o600)
        for stream in (1, 2):
            os.dup2(number, stream)
        os.chdir(ROOT)
        sys.dont_write_bytecode = True
        if mutant.old != mutant.new:
            sys.meta_path.insert(0, _Hook(mutant.module, SOURCE / mutant.file, source))
        import pytest

        settings = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly", "--tb=line", "-rfE"]
        scratch = [f"--basetemp={output.parent / 'tests'}"]
        code = int(pytest.main([*settings, *scratch, *(f"tests/{test}" for test in mutant.tests)]))
        sys.stdout.flush()
    finally:
        os._exit(code)


def _waited(child: int, wall: float) -> int | None:
    """The code with which a process ended; None when it took too long."""
    deadline = time.monotonic() + wall
    pause = 0.01
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(0.2, pause * 1.5)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, 9)
    os.waitpid(child, 0)
    return None


# --- all of them ----------------------------------------------------------------------------------------------------


def sound(mutants: Sequence[Mutant], limit: int) -> Iterator[Outcome]:
    """The sets of tests that fail, or take too long, without any mutant: these can judge none."""
    by_tests = {one.tests: one for one in reversed(mutants)}
    for tests, one in by_tests.items():
        begin = (SOURCE / one.file).read_text()
        found = tried(replace(one, old=begin, new=begin, at=None), limit)
        if found.fate not in ("lives", "accepted"):
            yield Outcome(replace(one, old=", ".join(tests), new="", at=None), "tests fail", found.why, found.seconds)


def report(outcomes: Sequence[Outcome]) -> str:
    counts: dict[str, int] = {}
    for one in outcomes:
        counts[one.fate] = counts.get(one.fate, 0) + 1
    summary = ", ".join(f"{count} {fate}" for fate, count in sorted(counts.items()))
    return f"{len(outcomes)} mutants: {summary}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", metavar="WORDS", default="", help="mutants whose file or text holds these words")
    parser.add_argument("--drawn", metavar="N", type=int, default=0, help="draw N mutants of each file instead")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--limit", metavar="SECONDS", type=int, default=CPU_SECONDS, help="CPU seconds of a mutant")
    parser.add_argument("--list", metavar="FILE", type=Path, default=LIST, help="another list of mutants")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a mutant first")
    given = parser.parse_args(arguments)
    known = listed(given.list)
    chosen = drawn(known, given.drawn, given.seed) if given.drawn else known
    chosen = [one for one in chosen if given.only in str(one) or given.only in one.old]
    if not chosen:
        print(f"no mutant holds `{given.only}`", file=sys.stderr)
        return 2
    sys.path.insert(0, str(ROOT))
    sys.path.insert(0, str(ROOT / "src"))
    outcomes = [] if given.unchecked else list(sound(chosen, given.limit))
    width = shutil.get_terminal_size((160, 24)).columns
    for mutant in chosen:
        found = tried(mutant, given.limit)
        outcomes.append(found)
        print(f"{found.fate:<11} {found.seconds:6.1f}s  {mutant}", flush=True)
        if found.why:
            print(f"{'':<20}  {found.why[: width * 3]}", flush=True)
    bad = [one for one in outcomes if not one.is_well]
    print(report(outcomes))
    for one in bad:
        print(f"  {one.fate}: {one.mutant}: {one.why}")
    return 1 if bad else 0


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 70 else f"{flat[:67]}..."


if __name__ == "__main__":
    sys.exit(main())
