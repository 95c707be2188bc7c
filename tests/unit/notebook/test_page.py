"""docs/reference/notebook.md: its cells show what it says, and it knows every option."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from anabranch.errors import QueryError
from anabranch.notebook.asking import CellOptions, parse_line
from anabranch.notebook.live import CellQuery

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "notebook.md").read_text()
CELLS = re.findall(r"^```text cell\n%%(\w+) ([^\n]*)\n(.*?)^```\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def shown(language: str, line: str, text: str) -> str:
    try:
        query = CellQuery(text, f"cell.{language}", parse_line(line, f"%%{language}"))
        query.follow(lambda: None)
    except QueryError as error:
        return error.render()
    return repr(query.view())


@pytest.mark.parametrize(("language", "line", "text", "output"), CELLS, ids=[cell[0] for cell in CELLS])
def test_a_cell_of_the_page_shows_what_the_page_says(
    language: str, line: str, text: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert shown(language, line, text).strip() == output.strip()


def test_the_page_has_cells_and_names_every_option() -> None:
    assert len(CELLS) == 3
    options = {"stream", "graph", "param", "engine", "for", "until", "name", "into", "rows", "keep"}
    assert len(options) == len(CellOptions.__slots__)
    assert [name for name in sorted(options) if f"`--{name}`" not in PAGE] == []
