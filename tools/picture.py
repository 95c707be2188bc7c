"""Draws docs/pictures/demo.svg from a real run of `anabranch demo bikes`.

python tools/picture.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
WIDTH = 100
FIRST, LAST = "14:45", "is still in the answer"


def main() -> None:
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    done = subprocess.run(
        [sys.executable, "-m", "anabranch", "demo", "bikes", "--speed", "0", "--color"],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    begins = next(number for number, line in enumerate(lines) if line.startswith(FIRST) or f"m{FIRST}" in line)
    ends = next(number for number, line in enumerate(lines) if LAST in line)
    console = Console(record=True, width=WIDTH, file=StringIO(), color_system="truecolor", force_terminal=True)
    console.print(Text.from_ansi("\n".join(lines[begins : ends + 1])))
    svg = console.export_svg(title="anabranch demo bikes")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = svg.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")
    (ROOT / "docs" / "pictures" / "demo.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
