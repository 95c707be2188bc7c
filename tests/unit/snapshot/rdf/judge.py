"""A second opinion: groups are drawn as SPARQL texts together with the plans that they mean, and pyoxigraph reads the
text while the plain evaluator runs the plan. Both must have the same bag of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pyoxigraph as ox
from hypothesis import strategies as st

from anabranch.algebra import expressions as ex
from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.model.graph import EMPTY_GRAPH
from anabranch.model.terms import XSD_INTEGER, Blank, Iri, Literal, Term, Triple
from anabranch.model.triples import TripleGraph, Triples
from anabranch.snapshot import Context, evaluate_plan
from anabranch.snapshot.rdf.certain import certain_columns

DATA = op.Static("data")
EX = "http://ex/"


def iri(name: str) -> Iri:
    return Iri(EX + name)


def number(value: int) -> Literal:
    return Literal(str(value), XSD_INTEGER)


def triples(text: str) -> tuple[Triple, ...]:
    """`a p b; b p 3`: names are IRIs, numbers are integers, names that begin with `_` are blank nodes."""
    parts = [one.split() for one in text.split(";") if one.strip()]
    return tuple(Triple(*(term(word) for word in part)) for part in parts)  # type: ignore[misc]


def term(word: str) -> Term:
    if word.lstrip("-").isdigit():
        return number(int(word))
    return Blank(word[1:]) if word.startswith("_") else iri(word)


def place(word: str) -> tr.TermPlace:
    return tr.Var(word[1:]) if word.startswith("?") else term(word)


def bgp(text: str, source: op.TripleSource = DATA) -> tr.GraphPattern:
    """`?a p ?b; ?b q 3` as a basic graph pattern."""
    parts = [one.split() for one in text.split(";") if one.strip()]
    return tr.GraphPattern(source, tuple(tr.TriplePattern(*(place(word) for word in part)) for part in parts))


def context_over(graph: Iterable[Triple] | Triples | str, **more: Any) -> Context:
    """An evaluation in which every source holds these triples."""
    held = TripleGraph(triples(graph)) if isinstance(graph, str) else graph
    if not isinstance(held, TripleGraph):
        held = TripleGraph(held)
    return Context(graph=lambda source: EMPTY_GRAPH, triple_graph=lambda source: held, **more)


def rows_over(graph: Iterable[Triple] | str, plan: op.Operator, **more: Any) -> list[tuple[Any, ...]]:
    return evaluate_plan(plan, context_over(graph, **more))[1]


def shown(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows with short names, in an order of their own."""
    return sorted((tuple(map(short, row)) for row in rows), key=repr)


def short(value: Any) -> Any:
    match value:
        case Iri(text):
            return text.removeprefix(EX)
        case Literal(lexical):
            return lexical
        case Blank(label):
            return f"_{label}"
    return value


# --- pyoxigraph -------------------------------------------------------------------------------------------------------


def to_ox(one: Any) -> Any:
    match one:
        case Iri(text):
            return ox.NamedNode(text)
        case Blank(label):
            return ox.BlankNode(label)
        case Literal(lexical, datatype, language):
            if language:
                return ox.Literal(lexical, language=language)
            return ox.Literal(lexical, datatype=ox.NamedNode(datatype))
    raise TypeError(one)


def from_ox(one: Any) -> Term | None:
    match one:
        case None:
            return None
        case ox.NamedNode():
            return Iri(one.value)
        case ox.BlankNode():
            return Blank(one.value)
        case ox.Literal():
            return Literal(one.value, one.datatype.value, one.language or "")
    raise TypeError(one)


def second_opinion(graph: Iterable[Triple], where: str, columns: Sequence[str], select: str = "") -> Counter[Any]:
    """The bag of rows that pyoxigraph finds."""
    store = ox.Store()
    for one in graph:
        store.add(ox.Quad(*map(to_ox, one)))
    head = select or "SELECT " + (" ".join(f"?{name}" for name in columns) if columns else "(1 AS ?one)")
    answer = store.query(f"PREFIX : <{EX}> {head} {where}")
    return Counter(tuple(from_ox(one[name]) for name in columns) for one in answer)


# --- drawing groups ---------------------------------------------------------------------------------------------------

NAMES = ("a", "b", "c")
VARIABLES = ("x", "y", "z", "w")
PREDICATES = ("p", "q")


@dataclass(frozen=True, slots=True)
class Group:
    """A group's text without its braces, and its plan."""

    text: str
    plan: op.Operator


_SUBJECTS = (*map(iri, NAMES), Blank("n"))
_POSSIBLE = [Triple(s, iri(p), o) for s in _SUBJECTS for p in PREDICATES for o in (*_SUBJECTS, number(1), number(2))]


def graphs() -> st.SearchStrategy[list[Triple]]:
    """Some of the triples that there are: enough of them that most patterns match."""
    size, seed = st.sampled_from([14, 20, 8, 26, 3]), st.integers(0, 10_000)
    return st.builds(lambda many, chance: Random(chance).sample(_POSSIBLE, many), size, seed)


def spelled(one: tr.TermPlace) -> str:
    match one:
        case tr.Var(name):
            return f"?{name}"
        case Iri(text):
            return f":{text.removeprefix(EX)}"
        case Literal(lexical):
            return lexical
    raise TypeError(one)


_ENDS: list[tr.TermPlace] = [*(tr.Var(name) for name in VARIABLES * 3), iri("a"), iri("b")]
_VERBS: list[tr.TermPlace] = [*(iri(name) for name in PREDICATES * 4), tr.Var("v"), tr.Var("y")]


def basic_patterns(most: int = 2) -> st.SearchStrategy[Group]:
    subjects, verbs = st.sampled_from(_ENDS), st.sampled_from(_VERBS)
    one = st.builds(tr.TriplePattern, subjects, verbs, st.sampled_from([*_ENDS, number(1)]))
    return st.lists(one, min_size=1, max_size=most).map(basic)


def basic(found: Sequence[tr.TriplePattern]) -> Group:
    text = " . ".join(" ".join(map(spelled, pattern.places)) for pattern in found)
    return Group(text, tr.GraphPattern(DATA, tuple(found)))


def joined(left: Group, right: Group) -> Group:
    return Group(f"{{ {left.text} }} {{ {right.text} }}", op.Join(left.plan, right.plan, lenient=True))


def optional(left: Group, right: Group, condition: tuple[str, ex.Expression] | None) -> Group:
    text = f"{{ {left.text} }} OPTIONAL {{ {{ {right.text} }}"
    if condition is None:
        return Group(f"{text} }}", op.LeftJoin(left.plan, right.plan, lenient=True))
    plan = op.LeftJoin(left.plan, right.plan, condition[1], lenient=True)
    return Group(f"{text} FILTER({condition[0]}) }}", known(plan, plan.columns))


def known(plan: Any, columns: Sequence[str]) -> Any:
    """The condition with null for every variable that nobody binds, as lowering does it."""
    return replace(plan, condition=_known(plan.condition, columns))


def _known(condition: ex.Expression, columns: Sequence[str]) -> ex.Expression:
    match condition:
        case ex.Variable(name) if name not in columns:
            return ex.Constant(None)
        case ex.Not(operand):
            return ex.Not(_known(operand, columns))
        case ex.Or(operands):
            return ex.Or(tuple(_known(one, columns) for one in operands))
        case ex.IsNull(operand):
            return ex.IsNull(_known(operand, columns))
        case ex.Call(function, arguments):
            return ex.Call(function, tuple(_known(one, columns) for one in arguments))
        case _:
            return condition


def union(left: Group, right: Group) -> Group:
    names = dict.fromkeys((*left.plan.columns, *right.plan.columns))

    def padded(plan: op.Operator) -> op.Operator:
        items = tuple((name, ex.Variable(name) if name in plan.columns else ex.Constant(None)) for name in names)
        return op.Project(plan, items)

    return Group(f"{{ {left.text} }} UNION {{ {right.text} }}", op.Union(padded(left.plan), padded(right.plan)))


def minus(left: Group, right: Group) -> Group:
    return Group(f"{{ {left.text} }} MINUS {{ {right.text} }}", tr.Minus(left.plan, right.plan))


def filtered(group: Group, condition: tuple[str, ex.Expression]) -> Group:
    plan = known(op.Filter(group.plan, condition[1]), group.plan.columns)
    return Group(f"{{ {group.text} }} FILTER({condition[0]})", plan)


def with_exists(group: Group, inside: Group, wanted: bool) -> Group:
    """Variables that the rows outside need not have get names of their own: pyoxigraph lets other groups bind them."""
    assert isinstance(inside.plan, tr.GraphPattern)
    certain = certain_columns(group.plan)

    def own(one: tr.TermPlace) -> tr.TermPlace:
        return tr.Var(f"own{one.name}") if isinstance(one, tr.Var) and one.name not in certain else one

    renamed = basic([tr.TriplePattern(*map(own, pattern.places)) for pattern in inside.plan.patterns])
    seed = op.Argument(group.plan.columns)
    nested: ex.Expression = ex.Exists(op.Join(seed, renamed.plan, lenient=True))
    word = "EXISTS" if wanted else "NOT EXISTS"
    plan = op.Filter(group.plan, nested if wanted else ex.Not(nested))
    return Group(f"{{ {group.text} }} FILTER {word} {{ {renamed.text} }}", plan)


def with_values(group: Group, names: tuple[str, ...], rows: tuple[tuple[Term | None, ...], ...]) -> Group:
    body = " ".join("(" + " ".join("UNDEF" if one is None else spelled(one) for one in row) + ")" for row in rows)
    text = f"{{ {group.text} }} VALUES ({' '.join('?' + name for name in names)}) {{ {body} }}"
    return Group(text, op.Join(group.plan, tr.Values(names, rows), lenient=True))


def _values() -> st.SearchStrategy[tuple[tuple[str, ...], tuple[tuple[Term | None, ...], ...]]]:
    cell = st.sampled_from([iri("a"), iri("b"), number(1), None])
    names = st.sampled_from([("x",), ("x", "z"), ("w", "y")])
    return names.flatmap(
        lambda some: st.tuples(
            st.just(some), st.lists(st.tuples(*[cell] * len(some)), min_size=1, max_size=4).map(tuple)
        )
    )


def strict(plan: op.Operator) -> op.Operator:
    """The same plan, with joins in which null joins nothing wherever no shared column can be null."""
    match plan:
        case op.Join(left, right) | op.LeftJoin(left, right):
            left, right = strict(left), strict(right)
            shared = set(left.columns) & set(right.columns)
            certain = shared <= certain_columns(left) & certain_columns(right)
            return replace(plan, left=left, right=right, lenient=not certain)
        case op.Union(left, right) | tr.Minus(left, right):
            return replace(plan, left=strict(left), right=strict(right))
        case op.Filter(source) | op.Project(source):
            return replace(plan, input=strict(source))
        case _:
            return plan


def groups(
    conditions: st.SearchStrategy[tuple[str, ex.Expression]] | None = None,
    leaves: st.SearchStrategy[Group] | None = None,
) -> st.SearchStrategy[Group]:
    leaf = leaves if leaves is not None else basic_patterns()

    def larger(inner: st.SearchStrategy[Group]) -> st.SearchStrategy[Group]:
        maybe = st.none() if conditions is None else st.none() | conditions
        found = (
            st.builds(joined, inner, inner)
            | st.builds(optional, inner, inner, maybe)
            | st.builds(union, inner, inner)
            | st.builds(minus, inner, inner)
            | st.builds(lambda group, table: with_values(group, *table), inner, _values())
            | st.builds(with_exists, inner, basic_patterns(), st.booleans())
        )
        return found if conditions is None else found | st.builds(filtered, inner, conditions)

    return st.recursive(leaf, larger, max_leaves=4)


def same_rows(graph: list[Triple], group: Group, plan: Callable[[op.Operator], op.Operator] = lambda one: one) -> None:
    columns = group.plan.columns
    expected = second_opinion(graph, f"WHERE {{ {group.text} }}", columns)
    found = Counter(rows_over(graph, plan(group.plan)))
    if not columns:
        assert found.total() == expected.total(), group.text
        return
    assert found == expected, group.text
