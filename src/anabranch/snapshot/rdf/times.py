"""Functions of moments: the fields of a dateTime, its zone, now(), and timestamp() of C-SPARQL.

Invariant: a field is null where the value has none: no hours of a date, no year of a time.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from anabranch.model.terms import (
    XSD_DATE,
    XSD_DATE_TIME,
    XSD_DAY_TIME_DURATION,
    XSD_DECIMAL,
    XSD_LONG,
    XSD_TIME,
    Literal,
)
from anabranch.model.values import Value
from anabranch.snapshot.rdf.timeline import (
    EXACT,
    XSD_G_DAY,
    XSD_G_MONTH,
    XSD_G_MONTH_DAY,
    XSD_G_YEAR,
    XSD_G_YEAR_MONTH,
    MomentFields,
    Period,
    XsdMoment,
    decimal_text,
    fields_of,
    moment_text,
    zone_text,
)
from anabranch.snapshot.rdf.values import literal_of, value_of

_DATES = frozenset((XSD_DATE_TIME, XSD_DATE))
_CLOCKS = frozenset((XSD_DATE_TIME, XSD_TIME))


def _moment(term: Value) -> XsdMoment | None:
    value = value_of(term) if isinstance(term, Literal) else None
    return value if isinstance(value, XsdMoment) else None


def _field(kinds: frozenset[str], pick: Callable[[MomentFields], int | Decimal]) -> Callable[[Value], Literal | None]:
    def function(term: Value) -> Literal | None:
        value = _moment(term)
        return literal_of(pick(fields_of(value))) if value is not None and value.kind in kinds else None

    return function


year = _field(_DATES | {XSD_G_YEAR, XSD_G_YEAR_MONTH}, lambda fields: fields.year)
month = _field(_DATES | {XSD_G_YEAR_MONTH, XSD_G_MONTH, XSD_G_MONTH_DAY}, lambda fields: fields.month)
day = _field(_DATES | {XSD_G_MONTH_DAY, XSD_G_DAY}, lambda fields: fields.day)
hours = _field(_CLOCKS, lambda fields: fields.hour)
minutes = _field(_CLOCKS, lambda fields: fields.minute)
seconds = _field(_CLOCKS, lambda fields: fields.second)


def timezone(term: Value) -> Literal | None:
    """The zone as a duration; null where there is none."""
    value = _moment(term)
    if value is None or value.offset is None:
        return None
    return literal_of(Period(XSD_DAY_TIME_DURATION, 0, Decimal(60 * value.offset)))


def tz(term: Value) -> Literal | None:
    """The zone as it is written; an empty string where there is none."""
    value = _moment(term)
    return None if value is None else Literal(zone_text(value.offset))


def date_time_of(clock: int) -> Literal:
    """UTC microseconds as an xsd:dateTime."""
    return Literal(moment_text(XsdMoment(XSD_DATE_TIME, Decimal(clock).scaleb(-6, EXACT), 0)), XSD_DATE_TIME)


def latest(*micros: Value) -> Literal | None:
    """The latest of some UTC microseconds, as epoch milliseconds: a whole number where it can be."""
    known = [one for one in micros if isinstance(one, int)]
    if not known:
        return None
    whole, rest = divmod(max(known), 1000)
    if not rest:
        return Literal(str(whole), XSD_LONG)
    return Literal(decimal_text(Decimal(max(known)).scaleb(-3, EXACT)), XSD_DECIMAL)
