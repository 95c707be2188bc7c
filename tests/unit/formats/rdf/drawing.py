"""RDF terms, triples and events by chance, and a comparison that does not mind how blank nodes are called."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from anabranch.model.event import Event
from anabranch.model.terms import XSD_INTEGER, Blank, Iri, Literal, Term, Triple, tagged

LABELS = st.text("abcXYZ019_", min_size=1, max_size=4)
IRIS = st.one_of(
    st.sampled_from(["http://ex/a", "http://ex:8080/b?x=1#y", "urn:x:y", "http://ex/%C3%A9", "http://ex/é"]),
    LABELS.map(lambda label: f"http://ex/{label}"),
).map(Iri)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
LITERALS = st.one_of(
    TEXTS.map(Literal),
    st.tuples(TEXTS, IRIS).map(lambda drawn: Literal(drawn[0], drawn[1].value)),
    st.integers().map(lambda number: Literal(str(number), XSD_INTEGER)),
    st.builds(tagged, TEXTS, st.sampled_from(["en", "de-AT", "zh-Hant-TW"])),
)
BLANKS = st.tuples(LABELS, st.sampled_from(["", "s.f0", "17"])).map(lambda drawn: Blank(*drawn))
SUBJECTS: st.SearchStrategy[Term] = st.one_of(IRIS, BLANKS)
OBJECTS: st.SearchStrategy[Term] = st.one_of(IRIS, BLANKS, LITERALS)
TRIPLES = st.tuples(SUBJECTS, IRIS, OBJECTS).map(lambda drawn: Triple(*drawn))
TIMES = st.integers(-(2**50), 2**50)
EVENTS = st.builds(
    Event,
    TIMES,
    st.just(()),
    st.just(()),
    st.lists(TRIPLES, min_size=1, max_size=4, unique=True).map(tuple),
)


def renamed(events: Iterable[Event]) -> list[tuple[int, tuple[Triple, ...]]]:
    """Times and triples, with blank nodes called by the order in which they come."""
    names: dict[Term, Term] = {}

    def name(term: Term) -> Term:
        return names.setdefault(term, Blank(str(len(names)))) if isinstance(term, Blank) else term

    return [
        (event.event_time, tuple(Triple(*(name(term) for term in triple)) for triple in event.triples))
        for event in events
    ]


def one_by_one(events: Iterable[Event]) -> list[Event]:
    """An event for each triple, as lines and tables have it."""
    return [Event(event.event_time, triples=(triple,)) for event in events for triple in event.triples]
