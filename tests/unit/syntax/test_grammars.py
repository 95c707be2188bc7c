"""Tables of grammars are kept, and never trusted further than they go."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.syntax import grammars

TEXT = "REGISTER QUERY q STARTING AT NOW { MATCH (a) WITHIN PT1M EMIT a.x EVERY PT1M }"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(grammars, "_kept", lambda name: str(tmp_path / name))
    return tmp_path / "seraph-grammar"


def parsed() -> object:
    return grammars.parser_of("anabranch.syntax.seraph", ["grammar"], ["script"]).parse(TEXT, start="script")


def test_kept_tables_give_the_same_tree(kept: Path) -> None:
    computed = parsed()
    written = kept.stat().st_mtime_ns
    assert parsed() == computed
    assert kept.stat().st_mtime_ns == written


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_damaged_tables_are_made_anew(kept: Path, share: float) -> None:
    computed = parsed()
    whole = kept.read_bytes()
    kept.write_bytes(whole[: int(len(whole) * share)])
    assert parsed() == computed
    mended = kept.read_bytes()
    assert parsed() == computed
    assert kept.read_bytes() == mended


def test_where_nothing_can_be_written_tables_are_computed(kept: Path) -> None:
    kept.mkdir()
    parsed()
    assert kept.is_dir()


def test_the_place_is_that_of_bytecode() -> None:
    place = Path(grammars._kept("seraph-grammar"))
    assert place.parent == Path(grammars.__cached__).parent
    assert place.suffix == ".tables"
