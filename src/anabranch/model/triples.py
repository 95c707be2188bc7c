"""RDF graphs held in memory, with the lookups that matching needs.

`TripleGraph` is a set of triples, each with the instant at which it last came (None for static knowledge).
`MergedGraph` is several graphs seen as one set, without a copy.

Law: after any adds and removals a graph answers as one built from what it holds; lookups give each triple once, in the
order in which the triples came in (a triple that comes again moves to the end).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from anabranch.model.terms import Term, Triple


class Triples(Protocol):
    """What an evaluator may ask of a graph of triples. None stands for any term."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Triple]: ...

    def __contains__(self, triple: object) -> bool: ...

    def match(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> Iterable[Triple]:
        """The triples with these terms."""
        ...

    def estimate(self, subject: Term | None, predicate: Term | None, object_: Term | None) -> int:
        """At least how many triples `match` gives: exact or an upper bound, never by looking at all of them."""
        ...

    def time_of(self, triple: Triple) -> int | None:
        """When the triple last came; None for static knowledge and for a triple that is not here."""
        ...

    def has_predicate(self, predicate: Term) -> bool: ...

    def nodes(self) -> Iterable[Term]:
        """Every subject and every object, each once."""
        ...
