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
from anabranch.syntax import languages, seraph, sparql

PAGE = Path(__file__).parents[1] / "docs" / "errors.md"
_EXAMPLE = re.compile(
    r"```(?P<language>seraph|csparql|lupos|rspql|sparql)\n(?P<query>.*?)```\n```text\n(?P<shown>.*?)```", re.DOTALL
)


def diagnostics_of(query: str, language: str = "seraph") -> str:
    """What a user sees when this query is refused."""
    file_name = f"query.{language}"
    try:
        if language == "sparql":
            sparql.plan(query, file_name)
        elif language != "seraph":
            languages.registrations(query, file_name)
        elif query.lstrip().startswith("LOAD"):
            seraph.ingestions(query, file_name)
        elif query.lstrip().startswith("REGISTER"):
            seraph.registrations(query, file_name)
        else:
            anabranch.evaluate(query, {"nodes": []}, file_name=file_name)
    except QueryError as error:
        return error.render()
    raise SystemExit(f"this query of {PAGE.name} is not refused:\n{query}")


def refreshed(page: str) -> str:
    def fill(match: re.Match[str]) -> str:
        query, language = match["query"], match["language"]
        return f"```{language}\n{query}```\n```text\n{diagnostics_of(query.rstrip(), language)}\n```"

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
