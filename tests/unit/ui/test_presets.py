"""The examples that the page offers, and the words that the editor colours."""

from __future__ import annotations

import pytest

from anabranch.sources.examples import examples
from anabranch.syntax import languages as syntax
from anabranch.ui import languages
from anabranch.ui.presets import LANGUAGES, PRESETS, Preset, address_of, at_rate, available, rate_of


def test_every_preset_is_there() -> None:
    assert available() == PRESETS


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.file)
def test_a_preset_parses_is_in_its_language_and_finds_its_files(preset: Preset) -> None:
    text = preset.text()
    assert syntax.statements(text, preset.file)
    assert languages.NAMES[languages.language(text)] == preset.language
    for _, address in preset.case.streams:
        assert address.startswith("gen:") or (examples() / address).is_file()
        assert address_of(address).startswith(("gen:", "/"))
    assert all((examples() / file).is_file() for _, file in preset.case.graphs)


def test_all_four_languages_are_among_them() -> None:
    assert {preset.language for preset in PRESETS} == set(LANGUAGES.values())


def test_a_generator_has_a_speed_that_can_be_changed() -> None:
    address = "gen:auctions?model=property&rate=50"
    assert rate_of(address) == "50"
    assert at_rate(address, "1000") == "gen:auctions?model=property&rate=1000"
    assert at_rate("gen:bikes", "") == "gen:bikes"
    assert rate_of(at_rate(address, "")) == ""
    assert rate_of("events.ndjson") is None


def own(text: str, language: str) -> list[str]:
    return [text[start:stop] for start, stop in languages.own_words(text, language)]


def test_words_of_the_streaming_language_are_found_but_not_in_comments_strings_and_iris() -> None:
    seraph = (
        "// EMIT this\nREGISTER QUERY q STARTING AT NOW { MATCH (a {every: 'WITHIN'}) WITHIN PT1H EMIT a.snapshot }"
    )
    assert own(seraph, "seraph")[:4] == ["REGISTER", "QUERY", "STARTING AT", "WITHIN"]
    assert own(seraph, "seraph")[-1] == "EMIT"
    csparql = "# RANGE\nFROM STREAM <http://x.org/WINDOW> [RANGE 10m STEP 5m] WHERE { ?range a ?step }"
    assert own(csparql, "csparql") == ["FROM STREAM", "RANGE", "STEP"]
