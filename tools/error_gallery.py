"""Runs every query of docs/errors.md and writes, or checks, the diagnostics shown below it.

python tools/error_gallery.py           writes
python tools/error_gallery.py --check   exits with 1 where the page is not what a user would see
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import anabranch
from anabranch.errors import QueryError
from anabranch.syntax import seraph

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
_EXAMPLE = re.compile(r"```seraph\n(?P<query>.*?)```\n```text\n(?P<shown>.*?)```", re.DOTALL)


def diagnostics_of(query: str) -> str:
    """What a user sees when this query is refused."""
    try:
        if query.lstrip().startswith("LOAD"):
            seraph.ingestions(query, "query.seraph")
        elif query.lstrip().startswith("REGISTER"):
            seraph.registrations(query, "query.seraph")
        else:
            anabranch.evaluate(query, {"nodes": []}, file_name="query.seraph")
    except QueryError as error:
        return error.render()
    raise SystemExit(f"this query of {PAGE.name} is not refused:\n{query}")


def refreshed(page: str) -> str:
    def fill(match: re.Match[str]) -> str:
        query = match["query"]
        return f"```seraph\n{query}```\n```text\n{diagnostics_of(query.rstrip())}\n```"

    return _EXAMPLE.sub(fill, page)


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    new = refreshed(page)
    if "--check" in sys.argv:
        return 0 if new == page else 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
