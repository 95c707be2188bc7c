"""The evaluator and the algebra agree about which functions there are."""

from __future__ import annotations

from itertools import product

import pytest

from anabranch.algebra.sparql_functions import CAST, CASTS, SPARQL_AGGREGATES, SPARQL_FUNCTIONS
from anabranch.errors import InternalError
from anabranch.model.terms import XSD, Blank, Iri, Literal, tagged
from anabranch.snapshot.rdf.aggregates import AGGREGATES
from anabranch.snapshot.rdf.functions import FUNCTIONS, compile_call

from .support import context, term

ODD = (
    Iri("http://a/"),
    Blank("n"),
    Literal(""),
    Literal("\ud800"),
    tagged("x", "en"),
    Literal("9" * 5000, f"{XSD}integer"),
    Literal("9" * 3999, f"{XSD}integer"),
    Literal("9" * 3999, f"{XSD}decimal"),
    Literal("NaN", f"{XSD}double"),
    Literal("-INF", f"{XSD}float"),
    Literal("1e308", f"{XSD}double"),
    Literal("x", f"{XSD}integer"),
    Literal("x", "http://unknown/"),
    Literal("true", f"{XSD}boolean"),
    Literal("99999999999-12-31T00:00:00Z", f"{XSD}dateTime"),
    Literal("23:59:59", f"{XSD}time"),
    Literal(f"P{'9' * 4000}Y", f"{XSD}duration"),
    Literal("-P1D", f"{XSD}dayTimeDuration"),
)


def test_the_evaluator_has_exactly_the_functions_of_the_algebra() -> None:
    assert set(FUNCTIONS) == {*SPARQL_FUNCTIONS, CAST}
    assert set(AGGREGATES) == SPARQL_AGGREGATES


@pytest.mark.parametrize("name", sorted(set(SPARQL_FUNCTIONS) - {"sparql:moment"}))
def test_no_function_raises_whatever_it_is_given(name: str) -> None:
    function = SPARQL_FUNCTIONS[name]
    most = 3 if function.most is None else function.most
    for count in range(function.least, most + 1):
        for arguments in product(ODD, repeat=min(count, 2)):
            padded = (*arguments, ODD[2])[:count]
            result = FUNCTIONS[name](context(), *padded)
            if function.truth:
                assert result in (True, False, None)
            else:
                assert result is None or isinstance(result, (Iri, Blank, Literal))


@pytest.mark.parametrize("datatype", sorted(CASTS))
def test_every_cast_gives_its_datatype_or_nothing(datatype: str) -> None:
    for one in (*ODD, Literal("1"), Literal("2020-01-01"), Literal("PT0S"), Literal("0", f"{XSD}integer")):
        result = FUNCTIONS[CAST](context(), one, Iri(datatype))
        assert result is None or (isinstance(result, Literal) and result.datatype == datatype)


@pytest.mark.parametrize("name", sorted(name for name, one in SPARQL_FUNCTIONS.items() if one.least))
def test_a_function_of_a_null_is_null(name: str) -> None:
    assert FUNCTIONS[name](context(), *[None] * SPARQL_FUNCTIONS[name].least) is None


def test_a_compiled_call_reads_the_row() -> None:
    less = compile_call("sparql:less", [lambda row, _: row[0], lambda row, _: row[1]])
    assert less((term("9^^integer"), term("10.5^^decimal")), context()) is True
    assert less((None, term("10^^integer")), context()) is None
    substr = compile_call("sparql:substr", [lambda row, _: row[0], *[lambda row, _: row[1]] * 2])
    assert substr((term("abcd"), term("2^^integer")), context()) == term("bc")
    with pytest.raises(InternalError, match="sparql:nosuch"):
        compile_call("sparql:nosuch", [])
