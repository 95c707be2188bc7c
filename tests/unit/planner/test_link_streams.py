"""Which streams are asked for links alone, and between which borders no window is ever cut."""

from __future__ import annotations

from random import Random

import pytest

from anabranch.algebra.walk import windows
from anabranch.engine.views import WindowFrame
from anabranch.model.temporal import Duration
from anabranch.model.windows import WindowPolicy
from anabranch.planner.link_streams import LinkStream, link_streams
from anabranch.syntax import languages

SECOND = 1_000_000
HEAD = "REGISTER QUERY q COMPUTED EVERY 3s AS SELECT ?a FROM STREAM <http://s> [RANGE 9s STEP 3s] WHERE "


def found(
    text: str, policy: WindowPolicy = "trailing", lateness: Duration | None = None, name: str = "q.csparql"
) -> dict[str, LinkStream]:
    registrations = languages.registrations(text, file_name=name)
    return link_streams([(one, policy) for one in registrations], lambda _: lateness)


def asked(*conditions: str) -> str:
    return HEAD + "{ VALUES ?a { <http://a> } " + " ".join(f"FILTER({one})" for one in conditions) + " }"


def test_a_stream_that_only_connectivity_reads_is_found_with_all_its_kinds() -> None:
    text = asked("anb:connected(?a, <http://b>, <http://p>)", "anb:componentSize(?a) > 2")
    assert found(text) == {"http://s": LinkStream((("http://p",), None), ((3 * SECOND, 1),), 0)}


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "{ ?a <http://p> ?b FILTER(anb:connected(?a, ?b)) }",
        HEAD + "{ VALUES ?a { <http://a> } FILTER(anb:connected(?a, <http://b>) && EXISTS { ?a <http://p> ?c }) }",
        asked("anb:connected(?a, <http://b>)").replace("RANGE 9s STEP 3s", "RANGE TRIPLES 9 STEP 3"),
        asked("anb:connected(?a, <http://b>)") + "\n" + HEAD.replace(" q ", " r ") + "{ ?a <http://p> ?b }",
    ],
    ids=["a pattern", "a pattern in a filter", "a window by count", "another query's pattern"],
)
def test_a_stream_of_which_more_is_read_is_not(text: str) -> None:
    assert found(text) == {}


def test_links_of_property_graphs_and_streams_without_a_name_are_not() -> None:
    text = (
        "REGISTER QUERY q STARTING AT 2024-01-01T00:00:00Z { MATCH (a), (b) WITHIN PT9S "
        "WHERE connected(a, b) EMIT a.id ON ENTERING EVERY PT3S }"
    )
    assert found(text, name="q.seraph") == {}


def test_lateness_by_the_calendar_keeps_a_stream_whole() -> None:
    text = asked("anb:connected(?a, <http://b>)")
    assert found(text, lateness=Duration(months=1)) == {}
    assert found(text, lateness=Duration(seconds=2))["http://s"].lateness == 2 * SECOND


@pytest.mark.parametrize("policy", ["trailing", "right-open", "formal"])
@pytest.mark.parametrize("seed", range(4))
def test_every_window_of_every_instant_begins_and_ends_at_a_border(policy: WindowPolicy, seed: int) -> None:
    random = Random(seed)
    width, step = random.randint(1, 20), random.randint(1, 7)
    text = asked("anb:connected(?a, <http://b>)").replace("9s STEP 3s", f"{width}s STEP {step}s")
    text = text.replace("EVERY 3s", f"EVERY {random.choice((step, random.randint(1, 7)))}s")
    (registration,) = languages.registrations(text, file_name="q.csparql")
    (window,) = windows(registration.plan)
    (links,) = found(text, policy).values()
    assert registration.every is not None
    every = registration.every.seconds * SECOND
    frame = WindowFrame(policy, registration.starting_at or 0, 0, registration.every, False)
    for number in range(40):
        bounds = frame.bounds(window, number * every)
        for border in (bounds.first, bounds.stop) if bounds.first < bounds.stop else ():
            assert any((border - place) % period == 0 for period, place in links.borders)
