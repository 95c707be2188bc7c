"""The cells themselves, in IPython's own shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("IPython", reason="IPython is not installed: pip install anabranch[notebook]")

ROOT = Path(__file__).parents[3]
BIKES = ROOT / "examples" / "bikes"
TRICK = (BIKES / "student_trick.seraph").read_text()


@pytest.fixture
def shell() -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.enabled = False
    made = InteractiveShell.instance(config=config)
    made.run_line_magic("load_ext", "anabranch.notebook")
    yield made
    made.run_line_magic("unload_ext", "anabranch.notebook")
    InteractiveShell.clear_instance()


def ran(shell: Any, first: str, cell: str) -> Any:
    return shell.run_cell(f"{first}\n{cell}")


def test_a_cell_shows_its_answers_and_gives_the_query(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result = ran(shell, f"%%seraph --stream rides={BIKES / 'events.ndjson'}", TRICK)
    assert result.success
    assert list(result.result.to_pandas()["r.user_id"]) == [1234, 5678]
    assert "5678       2     14:58       [3, 4]" in capsys.readouterr().out
    assert shell.run_cell("_.to_arrow().num_rows").result == 2


def test_into_names_the_variable_that_holds_the_query(shell: Any) -> None:
    result = ran(shell, f"%%seraph --stream rides={BIKES / 'events.ndjson'} --into trick", TRICK)
    assert result.result is None
    assert shell.user_ns["trick"].to_arrow().num_rows == 2


def test_every_language_has_its_cell(shell: Any) -> None:
    tolls = ROOT / "examples" / "tolls"
    for language in ("csparql", "rspql", "seraph"):
        text = (tolls / f"districts.{language}").read_text()
        city = f"--graph default={tolls / 'city.ttl'} --graph city={tolls / 'city.ttl'}"
        line = f"%%{language} --stream tolls={tolls / 'passages.nt.tsv'} {city} --into found"
        assert ran(shell, line, text).success, language
        assert shell.user_ns["found"].to_arrow().num_rows > 0, language
    line = f"%%lupos --stream tolls={tolls / 'passages.nt.tsv'} --into found"
    assert ran(shell, line, (tolls / "gates.lupos").read_text()).success


def test_a_refused_query_is_drawn_with_its_place_and_fails_the_cell(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    result = ran(shell, "%%seraph --stream rides=gen:bikes?count=1", "REGISTER QUERY q STARTING AT NOW { MATCH }")
    assert not result.success
    said = capsys.readouterr()
    assert "error[SER-" in said.out + said.err
    assert "Traceback" not in said.out + said.err


def test_a_table_changes_in_place_where_there_is_a_kernel(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[dict[str, Any]] = []
    monkeypatch.setattr(shell, "kernel", object(), raising=False)
    monkeypatch.setattr(shell.display_pub, "publish", lambda **said: published.append(said))
    line = "%%seraph --stream s=gen:graph?rate=300 --until 2022-10-14T14:46:00Z --into q"
    text = "REGISTER QUERY q STARTING AT NOW { MATCH (a) WITHIN PT10S EMIT count(a) AS n SNAPSHOT EVERY PT1S }"
    assert ran(shell, line, text).success
    assert len(published) > 1
    assert [said.get("update", False) for said in published] == [False] + [True] * (len(published) - 1)
    assert len({said["transient"]["display_id"] for said in published}) == 1
    assert "<table>" in published[-1]["data"]["text/html"]
