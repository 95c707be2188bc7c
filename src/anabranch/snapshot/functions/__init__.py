"""The tables of all functions and operators that an expression can call, by lower-case name.

Invariant: the two tables together hold exactly the scalar names of `algebra.functions`. A function of FUNCTIONS is
called with its arguments' values; one of CONTEXT_FUNCTIONS gets the evaluation's context first (clock, chance, graphs).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from anabranch.model.temporal.functions import TEMPORAL_FUNCTIONS
from anabranch.model.values import Value
from anabranch.snapshot.context import Context
from anabranch.snapshot.functions import arithmetic, conversion, graph, lists, numbers, spatial, strings
from anabranch.snapshot.functions.support import Function

FUNCTIONS: Mapping[str, Function] = {
    # operators
    "add": arithmetic.add,
    "subtract": arithmetic.subtract,
    "multiply": arithmetic.multiply,
    "divide": arithmetic.divide,
    "modulo": arithmetic.modulo,
    "power": arithmetic.power,
    "negate": arithmetic.negate,
    "plus": arithmetic.plus,
    "in": lists.is_in,
    "starts_with": strings.starts_with,
    "ends_with": strings.ends_with,
    "contains": strings.contains,
    "matches": strings.matches,
    "merge_maps": graph.merge_maps,
    # elements, paths and maps
    "id": graph.element_id,
    "node_id": graph.node_id,
    "node_id_or_null": graph.node_id_or_null,
    "start_among": graph.start_among,
    "end_among": graph.end_among,
    "elementid": graph.element_id_text,
    "labels": graph.labels,
    "type": graph.relationship_type,
    "keys": graph.keys,
    "properties": graph.properties,
    "nodes": graph.nodes,
    "relationships": graph.relationships,
    "rels": graph.relationships,
    "length": graph.length,
    "exists": graph.exists,
    # lists
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "size": lists.size,
    "isempty": lists.is_empty,
    "head": lists.head,
    "last": lists.last,
    "tail": lists.tail,
    "reverse": lists.reverse,
    "range": lists.number_range,
    # conversion
    "tostring": conversion.to_string,
    "tointeger": conversion.to_integer,
    "tofloat": conversion.to_float,
    "toboolean": conversion.to_boolean,
    # strings
    "tolower": strings.lower,
    "toupper": strings.upper,
    "lower": strings.lower,
    "upper": strings.upper,
    "trim": strings.trim,
    "ltrim": strings.left_trim,
    "rtrim": strings.right_trim,
    "left": strings.left,
    "right": strings.right,
    "substring": strings.substring,
    "replace": strings.replace,
    "split": strings.split,
    # numbers
    "abs": numbers.absolute,
    "sign": numbers.sign,
    "round": numbers.round_number,
    "isnan": numbers.is_nan,
    "ceil": numbers.of_float("ceil", numbers.rounded_to_whole(math.ceil)),
    "floor": numbers.of_float("floor", numbers.rounded_to_whole(math.floor)),
    "sqrt": numbers.of_float("sqrt", math.sqrt),
    "exp": numbers.of_float("exp", math.exp),
    "log": numbers.of_float("log", numbers.logarithm(math.log)),
    "log10": numbers.of_float("log10", numbers.logarithm(math.log10)),
    "sin": numbers.of_float("sin", math.sin),
    "cos": numbers.of_float("cos", math.cos),
    "tan": numbers.of_float("tan", math.tan),
    "cot": numbers.of_float("cot", numbers.cotangent),
    "asin": numbers.of_float("asin", math.asin),
    "acos": numbers.of_float("acos", math.acos),
    "atan": numbers.of_float("atan", math.atan),
    "atan2": numbers.atan2,
    "degrees": numbers.of_float("degrees", math.degrees),
    "radians": numbers.of_float("radians", math.radians),
    "haversin": numbers.of_float("haversin", numbers.haversine),
    "e": lambda: math.e,
    "pi": lambda: math.pi,
    # space
    "point": spatial.point,
    "distance": spatial.distance,
    "point.distance": spatial.distance,
}


def _with_clock(function: Function) -> Function:
    def call(context: Context, *arguments: Value) -> Value:
        return function(context.clock, *arguments)

    return call


CONTEXT_FUNCTIONS: Mapping[str, Function] = {
    "rand": lambda context: context.random.random(),
    "timestamp": lambda context: context.clock // 1000,
    "startnode": graph.start_node,
    "endnode": graph.end_node,
    **{name: _with_clock(function) for name, function in TEMPORAL_FUNCTIONS.items()},
}
