"""Every function of the SPARQL family by name, and calls of them as compiled expressions.

BNODE("label") gives one node per label and solution. A call with two arguments takes the second as the solution's
identity (a fresh value in a column of its own, say). A call with one argument takes what the row holds, without the
nodes that such calls made: right unless the row was extended by something else between two calls, and but for rows that
come twice, which share their nodes.

Invariant: FUNCTIONS holds exactly the names of `algebra.sparql_functions` and `sparql:cast`. A function of a null is
null (but for `sparql:moment`, which passes over nulls); no function raises, whatever it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anabranch.algebra.sparql_functions import CAST
from anabranch.errors import InternalError
from anabranch.model.terms import Blank
from anabranch.model.values import Value
from anabranch.snapshot.compiled import ExpressionEvaluator, Row
from anabranch.snapshot.context import Context
from anabranch.snapshot.functions.support import Function
from anabranch.snapshot.rdf import arithmetic, compare, strings, terms, times
from anabranch.snapshot.rdf.casts import cast
from anabranch.snapshot.rdf.hashes import digest

_PLAIN: Mapping[str, Function] = {
    # operators
    "sparql:equal": compare.equal,
    "sparql:less": compare.less,
    "sparql:less_or_equal": compare.less_or_equal,
    "sparql:add": arithmetic.add,
    "sparql:subtract": arithmetic.subtract,
    "sparql:multiply": arithmetic.multiply,
    "sparql:divide": arithmetic.divide,
    "sparql:negate": arithmetic.negate,
    "sparql:plus": arithmetic.plus,
    "sparql:ebv": compare.ebv,
    "sparql:term": terms.as_term,
    CAST: cast,
    # about terms
    "sparql:sameterm": compare.same_term,
    "sparql:isiri": terms.is_iri,
    "sparql:isuri": terms.is_iri,
    "sparql:isblank": terms.is_blank,
    "sparql:isliteral": terms.is_literal,
    "sparql:isnumeric": terms.is_numeric,
    "sparql:str": terms.text,
    "sparql:lang": terms.language,
    "sparql:datatype": terms.datatype,
    "sparql:iri": terms.iri,
    "sparql:uri": terms.iri,
    "sparql:strdt": terms.with_datatype,
    "sparql:strlang": terms.with_language,
    # strings
    "sparql:strlen": strings.length,
    "sparql:substr": strings.substring,
    "sparql:ucase": strings.upper,
    "sparql:lcase": strings.lower,
    "sparql:strstarts": strings.starts_with,
    "sparql:strends": strings.ends_with,
    "sparql:contains": strings.contains,
    "sparql:strbefore": strings.before,
    "sparql:strafter": strings.after,
    "sparql:encode_for_uri": strings.encode_for_uri,
    "sparql:concat": strings.concat,
    "sparql:langmatches": strings.lang_matches,
    "sparql:regex": strings.regex,
    "sparql:replace": strings.replace,
    # numbers
    "sparql:abs": arithmetic.absolute,
    "sparql:round": arithmetic.round_half_up,
    "sparql:ceil": arithmetic.ceiling,
    "sparql:floor": arithmetic.floor,
    # time
    "sparql:year": times.year,
    "sparql:month": times.month,
    "sparql:day": times.day,
    "sparql:hours": times.hours,
    "sparql:minutes": times.minutes,
    "sparql:seconds": times.seconds,
    "sparql:timezone": times.timezone,
    "sparql:tz": times.tz,
    # hashes
    "sparql:md5": digest("md5"),
    "sparql:sha1": digest("sha1"),
    "sparql:sha256": digest("sha256"),
    "sparql:sha384": digest("sha384"),
    "sparql:sha512": digest("sha512"),
}
"""Functions of their arguments alone, none of which is null."""


def _strict(function: Function) -> Function:
    def call(context: Context, *arguments: Value) -> Value:
        return None if None in arguments else function(*arguments)

    return call


def _blank(context: Context, *arguments: Value) -> Value:
    return None if arguments and arguments[0] is None else terms.blank(context, *arguments)


FUNCTIONS: Mapping[str, Function] = {
    **{name: _strict(function) for name, function in _PLAIN.items()},
    "sparql:moment": lambda context, *micros: times.latest(*micros),
    "sparql:bnode": _blank,
    "sparql:uuid": terms.uuid_iri,
    "sparql:struuid": terms.uuid_text,
    "sparql:rand": terms.rand,
    "sparql:now": lambda context: times.date_time_of(context.clock),
}
"""Called with the context and the arguments' values; a null among them is an error or an unbound variable."""


def compile_call(function: str, arguments: Sequence[ExpressionEvaluator]) -> ExpressionEvaluator:
    """The call as a function of the row, with the common arities spelled out for speed."""
    if function not in FUNCTIONS:
        raise InternalError(f"no function `{function}` in the snapshot evaluator")
    if function == "sparql:bnode" and len(arguments) == 1:
        return _labelled_blank(arguments[0])
    plain = _PLAIN.get(function)
    match plain, tuple(arguments):
        case None, inputs:
            contextual = FUNCTIONS[function]
            return lambda row, context: contextual(context, *[one(row, context) for one in inputs])
        case _, (only,):
            return _unary(plain, only)
        case _, (left, right):
            return _binary(plain, left, right)
        case _, inputs:
            strict = _strict(plain)
            return lambda row, context: strict(context, *[one(row, context) for one in inputs])
    raise InternalError(f"`{function}` cannot be called")  # the cases above are all there are


def _unary(function: Function, only: ExpressionEvaluator) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        value = only(row, context)
        return None if value is None else function(value)

    return evaluate


def _binary(function: Function, left: ExpressionEvaluator, right: ExpressionEvaluator) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        one, other = left(row, context), right(row, context)
        return None if one is None or other is None else function(one, other)

    return evaluate


def _labelled_blank(label: ExpressionEvaluator) -> ExpressionEvaluator:
    def evaluate(row: Row, context: Context) -> Value:
        identity = tuple([one for one in row if one is not None and not _made_here(one)])
        return _blank(context, label(row, context), identity)

    return evaluate


def _made_here(value: Value) -> bool:
    return isinstance(value, Blank) and value.document == terms.GENERATED
