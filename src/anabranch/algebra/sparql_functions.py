"""Functions and aggregates of the SPARQL family, as the algebra calls them: `Call("sparql:str", ...)`.

Arguments and results are RDF terms; null is an error or an unbound variable, and a function of a null is null unless
its entry here says otherwise. Functions that are `truth` give true, false or null (not a term): they can stand where
the algebra wants a condition, and `sparql:term` makes an xsd:boolean of them.

Invariant: a function is in this table or it does not exist; the evaluator implements exactly these names (a test
compares the two).
"""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.model.terms import XSD


@dataclass(frozen=True, slots=True)
class SparqlFunction:
    name: str
    least: int
    most: int | None
    truth: bool = False
    volatile: bool = False  # may differ at the next instant over the same graphs


def _f(name: str, least: int, most: int | None = -1, truth: bool = False, volatile: bool = False) -> SparqlFunction:
    return SparqlFunction(f"sparql:{name}", least, least if most == -1 else most, truth, volatile)


_ALL: tuple[SparqlFunction, ...] = (
    # operators; not to be called by name
    _f("equal", 2, truth=True),
    _f("less", 2, truth=True),
    _f("less_or_equal", 2, truth=True),
    _f("add", 2),
    _f("subtract", 2),
    _f("multiply", 2),
    _f("divide", 2),
    _f("negate", 1),
    _f("plus", 1),
    _f("ebv", 1, truth=True),  # the effective boolean value of a term
    _f("term", 1),  # true, false or null as a term
    _f("moment", 1, None),  # the latest of UTC microseconds, as epoch milliseconds (C-SPARQL's timestamp)
    # about terms
    _f("sameterm", 2, truth=True),
    _f("isiri", 1, truth=True),
    _f("isuri", 1, truth=True),
    _f("isblank", 1, truth=True),
    _f("isliteral", 1, truth=True),
    _f("isnumeric", 1, truth=True),
    _f("str", 1),
    _f("lang", 1),
    _f("datatype", 1),
    _f("iri", 1, 2),  # the second argument is the base
    _f("uri", 1, 2),
    _f("bnode", 0, 2, volatile=True),  # the second argument identifies the solution
    _f("strdt", 2),
    _f("strlang", 2),
    _f("uuid", 0, volatile=True),
    _f("struuid", 0, volatile=True),
    # strings
    _f("strlen", 1),
    _f("substr", 2, 3),
    _f("ucase", 1),
    _f("lcase", 1),
    _f("strstarts", 2, truth=True),
    _f("strends", 2, truth=True),
    _f("contains", 2, truth=True),
    _f("strbefore", 2),
    _f("strafter", 2),
    _f("encode_for_uri", 1),
    _f("concat", 0, None),
    _f("langmatches", 2, truth=True),
    _f("regex", 2, 3, truth=True),
    _f("replace", 3, 4),
    # numbers
    _f("abs", 1),
    _f("round", 1),
    _f("ceil", 1),
    _f("floor", 1),
    _f("rand", 0, volatile=True),
    # time
    _f("now", 0, volatile=True),
    _f("year", 1),
    _f("month", 1),
    _f("day", 1),
    _f("hours", 1),
    _f("minutes", 1),
    _f("seconds", 1),
    _f("timezone", 1),
    _f("tz", 1),
    # hashes
    _f("md5", 1),
    _f("sha1", 1),
    _f("sha256", 1),
    _f("sha384", 1),
    _f("sha512", 1),
)

SPARQL_FUNCTIONS: dict[str, SparqlFunction] = {one.name: one for one in _ALL}

CASTS: frozenset[str] = frozenset(
    f"{XSD}{name}"
    for name in (
        *("string", "boolean", "integer", "decimal", "float", "double", "dateTime", "date", "time"),
        *("duration", "dayTimeDuration", "yearMonthDuration"),
        *("long", "int", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger"),
        *("negativeInteger", "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"),
    )
)
"""Datatypes that are called as functions: `Call("sparql:cast", (value, Constant(Iri(datatype))))`."""

CAST = "sparql:cast"

SPARQL_AGGREGATES: frozenset[str] = frozenset(
    f"sparql:{name}" for name in ("count", "sum", "avg", "min", "max", "sample", "group_concat")
)
"""Functions of `AggregateCall`. No arguments: count(*); with `distinct` and every column as an argument, distinct rows.
group_concat has its separator as second argument, a constant. A value that is null makes sum, avg, min, max and
group_concat null, as an error does in SPARQL; count and sample pass over it."""
