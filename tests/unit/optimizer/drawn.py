"""Plans and data drawn by chance: a seed says which, so a failure can be drawn again.

Data is dense enough that most plans have rows; what rules must not get wrong comes often: variables that only one side
of a join binds, filters that test for unbound ones, the same pattern over several streams.
"""

from __future__ import annotations

from random import Random

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.model.terms import Iri, Triple
from anabranch.optimizer.support.columns import is_lenient

from .plans import BOTH, EX, KNOWN, MARKET, OTHER, Data, bound, call, equal, place, term, var

NAMES = ("a", "b", "c", "d")
PREDICATES = ("p", "q", "r")
NODES = ("x", "y", "1")
SOURCES = (BOTH, BOTH, KNOWN, MARKET, OTHER, op.MergedSource((KNOWN, MARKET, OTHER)))


def draw_data(random: Random) -> Data:
    def some(predicates: tuple[str, ...]) -> list[Triple]:
        every = [Triple(term(s), term(p), term(o)) for s in NODES[:2] for p in predicates for o in NODES]
        return random.sample(every, random.choice((0, len(every) // 2, len(every) // 2, len(every) - 1)))

    return {"known": some(random.choice((("p",), ("p", "q")))), "market": some(PREDICATES), "other": some(PREDICATES)}


def draw_plan(random: Random) -> op.Operator:
    plan = random.choice((_group, _group, _optional, _graphs))(random, 2)
    for _ in range(random.choice((0, 1, 1, 2))):
        wrap = random.choice((_subquery, _filter, _annotated))
        plan = wrap(random, plan) if plan.columns else plan
    return plan


def _pattern(random: Random, depth: int = 0) -> op.Operator:
    source = random.choice(SOURCES)
    if random.random() < 0.1:
        step: tr.PropertyPath = tr.PathLink(Iri(EX + random.choice(PREDICATES)))
        if random.random() < 0.5:
            step = tr.Alternative((step, tr.Inverse(step)))
        path = tr.Repeat(step, random.choice((0, 0, 1)))
        walked = tr.Path(source, tr.Var(random.choice(NAMES)), path, tr.Var(random.choice(NAMES)))
        ends = tr.TriplePattern(walked.subject, Iri(EX + random.choice(PREDICATES)), walked.object)
        return walked if random.random() < 0.5 else op.Join(tr.GraphPattern(source, (ends,)), walked)
    return tr.GraphPattern(source, tuple(_triple(random) for _ in range(random.choice((1, 1, 2, 3)))))


def _triple(random: Random) -> tr.TriplePattern:
    subject, object_ = (f"?{name}" for name in random.sample(NAMES[:3], 2))
    if random.random() < 0.15:
        subject = random.choice(NODES[:2])
    if random.random() < 0.15:
        object_ = random.choice(NODES)
    predicate = "?d" if random.random() < 0.1 else random.choice(PREDICATES)
    return tr.TriplePattern(place(subject), place(predicate), place(object_))


def _optional(random: Random, depth: int = 0) -> op.Operator:
    """A join with a side that leaves variables unbound."""
    sides = [op.LeftJoin(_pattern(random), _pattern(random), lenient=True), _pattern(random)]
    random.shuffle(sides)
    return op.Join(*sides, lenient=True)


def _graphs(random: Random, depth: int = 0) -> op.Operator:
    """What GRAPH ?e gives: the same pattern in each of the streams, with its name."""
    patterns = tuple(_triple(random) for _ in range(random.choice((1, 2))))
    names = random.choice((("x", "y"), ("x", "y"), ("x", "x")))
    branches = [
        op.Extend(tr.GraphPattern(source, patterns), "e", ex.Constant(term(name)))
        for source, name in zip((MARKET, OTHER), names, strict=True)
    ]
    return op.Union(*branches)


def _group(random: Random, depth: int) -> op.Operator:
    if depth == 0:
        return random.choice((_pattern, _pattern, _pattern, _graphs))(random)
    below = _group(random, depth - 1)
    match random.choice(("join", "join", "left", "left", "union", "minus", "filter", "extend", "sub", "values")):
        case "join":
            right = _group(random, depth - 1)
            return op.Join(below, right, lenient=is_lenient(below, right) or random.random() < 0.5)
        case "left":
            right = _group(random, depth - 1)
            joined = op.LeftJoin(below, right, lenient=True)
            condition = _condition(random, joined.columns) if joined.columns and random.random() < 0.5 else None
            return op.LeftJoin(below, right, condition, True)
        case "union":
            other = _group(random, depth - 1)
            names = tuple(dict.fromkeys((*below.columns, *other.columns)))
            return op.Union(_padded(below, names), _padded(other, names))
        case "minus":
            return tr.Minus(below, _group(random, depth - 1))
        case "filter" if below.columns:
            return _filter(random, below)
        case "extend" if "e" not in below.columns and below.columns:
            values = ex.Constant(term("1")), var(random.choice(below.columns)), ex.Constant(None)
            return op.Extend(below, "e", random.choice(values))
        case "sub" if below.columns:
            return _subquery(random, below)
        case "values":
            return op.Join(below, tr.Values(("a", "b"), ((term("x"), None), (term("y"), term("1")))), lenient=True)
    return below


def _condition(random: Random, columns: tuple[str, ...]) -> ex.Expression:
    name, other = random.choice(columns), random.choice(columns)
    match random.randrange(7):
        case 0:
            return equal(name, random.choice(NODES))
        case 1:
            return bound(name)
        case 2:
            return ex.Not(bound(name))
        case 3:
            return equal(name, f"?{other}")
        case 4:
            return ex.Or((ex.Not(bound(name)), equal(other, "y")))
        case 5:
            return ex.Not(equal(name, random.choice(NODES)))
    return ex.And((_condition(random, columns), _condition(random, columns)))


def _filter(random: Random, plan: op.Operator) -> op.Operator:
    return op.Filter(plan, _condition(random, plan.columns))


def _padded(plan: op.Operator, names: tuple[str, ...]) -> op.Operator:
    return op.Project(plan, tuple((name, var(name) if name in plan.columns else ex.Constant(None)) for name in names))


def _some(random: Random, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(random.sample(names, random.randint(1, len(names))))


def _call(random: Random, names: tuple[str, ...]) -> ex.AggregateCall:
    function = random.choice(("count", "count", "min", "max", "sum"))
    argument = None if function == "count" and random.random() < 0.3 else random.choice(names)
    return call(function, argument, argument is not None and random.random() < 0.2)


def _annotated(random: Random, plan: op.Operator) -> op.Operator:
    if "n" in plan.columns:
        return plan
    return op.Annotate(plan, _some(random, plan.columns)[:2], (("n", _call(random, plan.columns)),))


def _subquery(random: Random, plan: op.Operator) -> op.Operator:
    kept = _some(random, plan.columns)
    match random.choice(("project", "distinct", "aggregate", "aggregate", "annotate")):
        case "aggregate" if "n" not in kept:
            keys = tuple((name, var(name)) for name in kept[: random.choice((0, 1, 2))])
            return op.Aggregate(plan, keys, (("n", _call(random, plan.columns)),))
        case "distinct":
            return op.Distinct(_padded(plan, kept))
        case "annotate":
            return _annotated(random, plan)
    return op.Project(plan, tuple((name if random.random() < 0.5 else f"{name}2", var(name)) for name in kept))
