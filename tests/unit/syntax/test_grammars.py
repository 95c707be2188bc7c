"""Tables of grammars are kept, and never trusted further than they go."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from lark import Lark, Tree, UnexpectedInput

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


EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = {".seraph": ("seraph", ["grammar"]), ".csparql": ("sparql", ["grammar", "streams", "csparql"])}


def outcome(parser: Lark, text: str) -> object:
    """The tree of a text, or where and why there is none."""
    try:
        return parser.parse(text, start="script")
    except UnexpectedInput as error:
        expected = getattr(error, "allowed", None) or getattr(error, "expected", None)
        return type(error), error.pos_in_stream, expected


@pytest.mark.parametrize("ending", NAMES)
def test_terminals_tried_one_by_one_give_the_trees_and_errors_of_all_in_one(ending: str) -> None:
    folder, names = NAMES[ending]
    package = f"anabranch.syntax.{folder}"
    ours = grammars.parser_of(package, names, ["script"])
    files = (resources.files(package).joinpath(f"{name}.lark") for name in names)
    larks = Lark(
        "\n".join(file.read_text(encoding="utf-8") for file in files),
        parser="lalr",
        lexer="contextual",
        start=["script"],
        propagate_positions=True,
        maybe_placeholders=True,
    )
    texts = [path.read_text(encoding="utf-8") for path in EXAMPLES.rglob(f"*{ending}")]
    assert len(texts) > 3
    trees = 0
    for text in texts:
        for one in (text, text[: len(text) // 2], text.replace(" ", " § ", 9), text.upper(), text.lower()):
            found = outcome(ours, one)
            assert found == outcome(larks, one)
            trees += isinstance(found, Tree)
    assert trees >= len(texts)
