"""docs/errors.md is what users see, and leaves no code out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_outputs_on_the_page_are_those_of_this_version() -> None:
    done = subprocess.run(
        [sys.executable, "tools/error_gallery.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run tools/error_gallery.py\n{done.stdout}{done.stderr}"


def test_every_code_has_a_heading_and_every_heading_a_code() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^### ((?:SER|SPQ)-\d+)$", page, re.MULTILINE))
    sources = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))
    assert set(re.findall(r'"((?:SER|SPQ)-\d+)"', sources)) == headings
