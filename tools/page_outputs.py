"""Runs the examples of the documentation pages and writes, or checks, the outputs shown below them.

    python tools/page_outputs.py [PAGE...]           writes
    python tools/page_outputs.py --check [PAGE...]   exits with 1 where a page does not show what a user would see

What runs, from the top of a page to its end:

    ```python             followed directly by ```text: executed, its stdout is the text; blocks of a page share names
    ```console            each line that begins with `$ anabranch` or `$ python`; what stands below it is its output
    ```seraph file=NAME   (or any other language) written to NAME first, for the commands below it

Commands and programs run in a scratch folder that looks like the repository's root, so that what they write stays
there.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

# Spark takes seconds to start, and pages show what any engine prints.
os.environ.setdefault("ANABRANCH_ENGINE", "local")

ROOT = Path(__file__).parents[1]
OWN_TESTS = {"docs/errors.md", "docs/reference/cli.md", "docs/reference/functions.md"}
"""Pages whose examples are run elsewhere: by the error gallery, the tests of the command line, the generator."""

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_PROGRAM = re.compile(r"\$ (anabranch|python)\b")
_TIMES = re.compile(r"[\d.,]+ s · [\d.,]+ events/s")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the rest of its first line, its text, and where the text stands in the page."""

    language: str
    options: str
    body: str
    start: int
    end: int
    fence_start: int
    fence_end: int

    @property
    def file(self) -> str | None:
        found = re.search(r"\bfile=(\S+)", self.options)
        return found[1] if found else None


@dataclass(frozen=True)
class Example:
    """What was run, what the page shows for it and where, and what came out."""

    source: str
    start: int
    end: int
    shown: str
    outputs: tuple[str, ...]  # any of these is right; the last is written where none is

    @property
    def holds(self) -> bool:
        return _comparable(self.shown) in map(_comparable, self.outputs)


def pages() -> list[Path]:
    names = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
    return [ROOT / name for name in names] + sorted((ROOT / "docs").rglob("*.md"))


def blocks(page: str) -> list[Block]:
    found = []
    for match in _FENCE.finditer(page):
        language, _, options = match["info"].strip().partition(" ")
        found.append(Block(language, options, match["body"], *match.span("body"), *match.span()))
    return found


def examples(page: str) -> Iterator[Example]:
    """Runs the examples of a page in its order."""
    with _scratch() as folder:
        names: dict[str, object] = {"__name__": "__page__"}
        found = blocks(page)
        for block, after in zip_longest(found, found[1:]):
            if block.file is not None:
                target = folder / block.file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.body, encoding="utf-8")
            elif block.language == "python":
                if after is not None and after.language == "text" and after.fence_start == block.fence_end + 1:
                    printed = _execute(block.body, names, folder)
                    yield Example(block.body, after.start, after.end, after.body, (printed,))
            elif block.language == "console":
                yield from _console(block, folder)


def _console(block: Block, folder: Path) -> Iterator[Example]:
    lines = list(re.finditer(r"^\$ .*\n", block.body, re.MULTILINE))
    for line, after in zip_longest(lines, lines[1:]):
        if _PROGRAM.match(line[0]):
            stop = len(block.body) if after is None else after.start()
            shown = block.body[line.end() : stop]
            outputs = _run(line[0][2:].strip(), folder)
            if after is not None:
                outputs = tuple(f"{output}\n" if output else "" for output in outputs)
            yield Example(line[0], block.start + line.end(), block.start + stop, shown, outputs)


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for entry in ROOT.iterdir():
            (folder / entry.name).symlink_to(entry)
        yield folder


def _execute(source: str, names: dict[str, object], folder: Path) -> str:
    printed = io.StringIO()
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(source, "<page>", "exec"), names)
    finally:
        os.chdir(before)
    return printed.getvalue()


def _run(command: str, folder: Path) -> tuple[str, str]:
    """What a command prints: to a pipe, and to a terminal, where errors and the summary come after it."""
    scripts = str(Path(sys.executable).parent)
    environment = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "ANABRANCH_TRACEBACK")}
    environment |= {"PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}", "COLUMNS": "100", "NO_COLOR": "1"}
    environment |= {"PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        shlex.split(command), cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    return ended.stdout, ended.stdout + ended.stderr


def _comparable(output: str) -> str:
    lines = [_TIMES.sub("a moment", line.rstrip()) for line in output.splitlines()]
    return "\n".join(lines).rstrip("\n")


def refreshed(page: str) -> str:
    """The page with true outputs."""
    parts = []
    done = 0
    for example in examples(page):
        output = example.shown if example.holds else "\n".join(map(str.rstrip, example.outputs[-1].splitlines())) + "\n"
        parts += [page[done : example.start], output]
        done = example.end
    return "".join([*parts, page[done:]])


def main() -> int:
    named = [Path(name).resolve() for name in sys.argv[1:] if not name.startswith("-")]
    code = 0
    for path in named or pages():
        if str(path.relative_to(ROOT)) in OWN_TESTS:
            continue
        page = path.read_text(encoding="utf-8")
        new = refreshed(page)
        if new != page:
            print(f"{path.relative_to(ROOT)} {'differs' if '--check' in sys.argv else 'rewritten'}")
            code = 1
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    return code if "--check" in sys.argv else 0


if __name__ == "__main__":
    raise SystemExit(main())
