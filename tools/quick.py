"""The quick check of a change: lint, types, import rules, and the quick tests of what git says changed.

    make quick            what differs from the last commit; after a commit, what that commit changed
    make quick ROOM=engine

A change below src/anabranch/ROOM runs tests/unit/ROOM, a change of a test file runs that file; the tests of the house
always run. Tests that take long (tests/slow.txt) are left out: `make test` runs them.

Invariant: it changes no file, and its exit code is 0 only when everything that it ran is well.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALWAYS = "tests/docs/test_house.py"
CHECKS = {
    "lint": [sys.executable, "-m", "ruff", "check", "-q", "src", "tests", "bench", "tools"],
    "format": [sys.executable, "-m", "ruff", "format", "-q", "--check", "src", "tests", "bench", "tools"],
    "imports": [str(Path(sys.executable).with_name("lint-imports"))],
    "types": [sys.executable, "-m", "mypy"],
}


def changed() -> list[str]:
    """The files that differ from the last commit; where none does, those of the last commit."""

    def git(*arguments: str) -> list[str]:
        found = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
        return found.stdout.splitlines()

    found = [*git("diff", "--name-only", "HEAD"), *git("ls-files", "--others", "--exclude-standard")]
    return found or git("diff", "--name-only", "HEAD~1", "HEAD")


def tests_of(files: Iterable[str]) -> list[str]:
    """The test files and folders that look at some files of the repository."""
    found = {ALWAYS: None}
    for file in files:
        parts = Path(file).parts
        if parts[:2] == ("src", "anabranch") and len(parts) > 2:
            found[f"tests/unit/{parts[2].removesuffix('.py')}"] = None
        elif parts[0] == "tests" and parts[-1].startswith("test_"):
            found[file] = None
        elif parts[0] == "tests" and parts[-1].endswith(".case"):
            found["tests/cases"] = None
        elif file.endswith(".md"):
            found["tests/docs/test_pages.py"] = None
    return [one for one in found if (ROOT / one).exists()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--room", help="the room to look at, whatever git says")
    room = parser.parse_args().room
    tests = tests_of([f"src/anabranch/{room}/x.py"] if room else changed())
    begun = time.monotonic()
    running = {
        name: subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for name, command in CHECKS.items()
    }
    print("tests:", *tests, flush=True)
    environment = {**os.environ, "ANABRANCH_DRAWS": os.environ.get("ANABRANCH_DRAWS", "10")}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow and not spark", *tests]
    failed = [] if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0 else ["tests"]
    for name, check in running.items():
        said, _ = check.communicate()
        if check.returncode:
            print(f"--- {name}\n{said}")
            failed.append(name)
    took = time.monotonic() - begun
    print(f"{took:.0f} s: {'failed: ' + ', '.join(failed) if failed else 'all well'}; `make test` runs everything")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
