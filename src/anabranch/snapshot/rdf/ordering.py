"""The order of ORDER BY, MIN and MAX over anything that a row can hold.

Unbound, then blank nodes, IRIs and literals. Literals: numbers, strings, booleans, dateTimes, dates, times, the
g-types, durations, and last those without a value, by datatype and form.

Invariant: the order is total and has nothing to do with the order of the input. Keys are equal where values are; where
`<` has an answer among values of one kind, it is this one (but for NaN, which comes before every number).
"""

from __future__ import annotations

from decimal import Decimal

from anabranch.model.remembered import remembered
from anabranch.model.terms import Blank, Iri, Literal
from anabranch.model.values import Value
from anabranch.snapshot.rdf.timeline import EXACT, MOMENT_KINDS, Period, XsdMoment
from anabranch.snapshot.rdf.values import RANKS, TAGGED, Number, to_float, value_of

_UNBOUND, _BLANK, _IRI, _LITERAL = range(4)
_NUMBER, _STRING, _BOOLEAN, _MOMENT, _PERIOD, _OTHER = range(6)
_MEAN_MONTH = Decimal(2_629_746)  # seconds: a 4800th of 400 years

TermSortKey = tuple[object, ...]


def order_key(value: Value) -> TermSortKey:
    """Return the sort key of a term, a truth value or null; keys of any two values compare."""
    match value:
        case None:
            return (_UNBOUND,)
        case Iri(text):
            return (_IRI, text)
        case Literal():
            return _literal_key(value)
        case Blank(label, document):
            return (_BLANK, document, label)
        case bool():
            return (_LITERAL, _BOOLEAN, value)
        case int() | float():
            return (_LITERAL, _NUMBER, *_number_key(value))
    return (_LITERAL, _OTHER, type(value).__name__, str(value), "")


@remembered(1 << 14)
def _literal_key(literal: Literal) -> TermSortKey:
    value = value_of(literal)
    if type(value) in RANKS:
        return (_LITERAL, _NUMBER, *_number_key(value))  # type: ignore[arg-type]
    match value:
        case str():
            return (_LITERAL, _STRING, value, "")
        case bool():
            return (_LITERAL, _BOOLEAN, value)
        case XsdMoment():
            return (_LITERAL, _MOMENT, MOMENT_KINDS.index(value.kind), value.instant)
        case Period():
            return (_LITERAL, _PERIOD, _length(value), value.months)
    if value is TAGGED:
        return (_LITERAL, _STRING, literal.lexical, literal.language)
    return (_LITERAL, _OTHER, literal.datatype, literal.lexical, literal.language)


def _number_key(value: Number) -> TermSortKey:
    """As doubles compare, and only what is one double by its digits: so 0.2 and 2E-1 are one place in the order."""
    if isinstance(value, float):
        return (True, float(value), Decimal(repr(float(value)))) if value == value else (False, 0.0, 0)
    return (True, to_float(value), value)


def _length(period: Period) -> Decimal:
    return EXACT.add(EXACT.multiply(Decimal(period.months), _MEAN_MONTH), period.seconds)


def strict_key(value: Value) -> TermSortKey:
    """Return a key like `order_key`, but equal only for the same term, so that the choice among equal values is
    deterministic. Of numbers the widest type comes first."""
    match value:
        case Literal(lexical, datatype, language):
            return (order_key(value), -RANKS.get(type(value_of(value)), 0), datatype, lexical, language)
    return (order_key(value),)
