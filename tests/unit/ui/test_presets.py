"""The examples that the page offers, and the words that the editor colours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch.cli.demo_auctions import AuctionDemo, furnish
from anabranch.demos.examples import examples
from anabranch.server.hub import Hub
from anabranch.syntax import languages as syntax
from anabranch.ui import languages
from anabranch.ui.presets import (
    LANGUAGES,
    PRESETS,
    Preset,
    address_of,
    at_rate,
    available,
    prepared,
    preset_of,
    rate_of,
)


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


# --- sessions ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub(tmp_path / "hub", "local") as made:
        yield made


def answered(hub: Hub, preset: Preset, seconds: float = 60.0) -> list[dict[str, object]]:
    """The first results that have rows of a preset that was chosen and started."""
    session = prepared(hub, preset)
    [query] = session.register(preset.text(), replace=True)
    session.start()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if session.query(query.name).last_seq >= 0:
            found = session.results(query.name, -1, 1000)
            if any(one["total"] for one in found):
                return found
        time.sleep(0.05)
    raise AssertionError(f"{preset.file}: no row; {session.state}, {session.error}")


def test_every_preset_runs_beside_the_demo_and_has_rows(hub: Hub) -> None:
    furnish(hub, AuctionDemo("local"))
    for preset in PRESETS:
        columns = answered(hub, preset)[-1]["columns"]
        assert isinstance(columns, list)
        assert {*preset.draw, *([preset.each] if preset.each else [])} <= set(columns)
    assert {one.name for one in hub.sessions()} == {one.case.session for one in PRESETS}


def test_a_session_of_the_same_name_with_other_streams_is_left_alone(hub: Hub) -> None:
    hub.create("bikes").add_stream("mine")
    bikes = next(one for one in PRESETS if one.case.session == "bikes")
    assert prepared(hub, bikes).name == "bikes-2"
    assert prepared(hub, bikes).name == "bikes-2"
    assert [one.name for one in hub.session("bikes").streams()] == ["mine"]
    assert preset_of("bikes-2", bikes.text()) is bikes
    assert preset_of("other", bikes.text()) is None


def test_a_session_with_the_streams_of_a_use_case_at_another_speed_is_taken(hub: Hub) -> None:
    first = PRESETS[0]
    stream, address = first.case.streams[0]
    hub.create(first.case.session).add_stream(stream, at_rate(address, "200"))
    assert prepared(hub, first).name == first.case.session
