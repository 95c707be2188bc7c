"""Equality, order and truth of terms, as SPARQL's operators have them (17.2.2, 17.3, 17.4.1.7).

| left, right | `=` | `<` |
|---|---|---|
| the same term | true, but for NaN | |
| numbers; strings; booleans; moments of one kind; durations | by value | by value |
| two language-tagged strings | false | by text where the tags are equal |
| a tagged string and another literal; an IRI or blank node and anything | false | null |
| literals of different known kinds | false | null |
| a literal of unknown or false form and another literal | null | null |

Invariant: null means that the answer is not known, never that it is false.
"""

from __future__ import annotations

from decimal import Decimal

from anabranch.model.terms import FALSE, TRUE, XSD_BOOLEAN, Literal
from anabranch.model.values import Value
from anabranch.snapshot.rdf.timeline import Period, XsdMoment, compare_moments, compare_periods
from anabranch.snapshot.rdf.values import ILL, NUMERIC_DATATYPES, RANKS, TAGGED, UNKNOWN, Number, raise_to, value_of

_PLAIN = frozenset((int, Decimal, float, str, bool))  # two of one of these compare in Python as in SPARQL


def equal(left: Value, right: Value) -> bool | None:
    """`left = right`."""
    if left == right:
        return not (left.__class__ is Literal and _is_nan(left))
    if left.__class__ is not Literal or right.__class__ is not Literal:
        return False
    one, other = value_of(left), value_of(right)
    if one.__class__ is other.__class__ and one.__class__ in _PLAIN:
        return one == other
    if one is TAGGED or other is TAGGED:
        return False
    if one is ILL or other is ILL or one is UNKNOWN or other is UNKNOWN:
        return None
    if type(one) in RANKS and type(other) in RANKS:
        return _signum(one, other) == 0  # type: ignore[arg-type]
    match one, other:
        case XsdMoment(), XsdMoment() if one.kind == other.kind:
            sign = compare_moments(one, other)
            return None if sign is None else sign == 0
        case Period(), Period():
            return (one.months, one.seconds) == (other.months, other.seconds)
    return False


def _is_nan(literal: Literal) -> bool:
    return literal.lexical == "NaN" and value_of(literal) != value_of(literal)


def _signum(one: Number, other: Number) -> int | None:
    """-1, 0 or 1 after promotion to the wider type; nothing when one is NaN."""
    rank = max(RANKS[type(one)], RANKS[type(other)])
    one, other = raise_to(rank, one), raise_to(rank, other)
    return -1 if one < other else 1 if one > other else 0 if one == other else None


_UNORDERED = 2


def _order(left: Value, right: Value) -> int | None:
    """-1, 0 or 1; _UNORDERED where one is NaN; nothing where the two do not compare."""
    if left.__class__ is not Literal or right.__class__ is not Literal:
        return None
    one, other = value_of(left), value_of(right)
    if type(one) in RANKS and type(other) in RANKS:
        sign = _signum(one, other)  # type: ignore[arg-type]
        return _UNORDERED if sign is None else sign
    match one, other:
        case (str(), str()) | (bool(), bool()):
            return (one > other) - (one < other)  # type: ignore[operator]
        case XsdMoment(), XsdMoment() if one.kind == other.kind:
            return compare_moments(one, other)
        case Period(), Period():
            return compare_periods(one, other)
    if one is TAGGED and other is TAGGED and left.language == right.language:
        return (left.lexical > right.lexical) - (left.lexical < right.lexical)
    return None


def less(left: Value, right: Value) -> bool | None:
    """`left < right`."""
    if left.__class__ is Literal and right.__class__ is Literal:
        one, other = value_of(left), value_of(right)
        if one.__class__ is other.__class__ and one.__class__ in _PLAIN:
            return one < other  # type: ignore[operator]
    order = _order(left, right)
    return None if order is None else order == -1


def less_or_equal(left: Value, right: Value) -> bool | None:
    """`left <= right`."""
    if left.__class__ is Literal and right.__class__ is Literal:
        one, other = value_of(left), value_of(right)
        if one.__class__ is other.__class__ and one.__class__ in _PLAIN:
            return one <= other  # type: ignore[operator]
    order = _order(left, right)
    return None if order is None else order in (-1, 0)


def same_term(left: Value, right: Value) -> bool:
    return left == right


def ebv(term: Value) -> bool | None:
    """The effective boolean value."""
    if term.__class__ is not Literal:
        return term if isinstance(term, bool) else None
    if term in (TRUE, FALSE):
        return term == TRUE
    value = value_of(term)
    if type(value) in RANKS:
        return bool(value == value and value != 0)
    match value:
        case bool():
            return value
        case str():
            return value != ""
    if value is TAGGED:
        return term.lexical != ""
    if value is ILL and (term.datatype == XSD_BOOLEAN or term.datatype in NUMERIC_DATATYPES):
        return False
    return None
