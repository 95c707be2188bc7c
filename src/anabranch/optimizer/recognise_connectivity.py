"""Turns paths of any length and direction, of which only the existence matters, into connectivity questions.

    Exists((a)-[:T*0..]-(b))                  =  Connected(T, a, b)
    Exists((a)-[:T*]-(b)), a and b differ     =  Connected(T, a, b)
    Exists((a)-[:T*]-(b))                     =  Exists((a)-[:T*]-(a)) if a is b, else Connected(T, a, b)
    Join(rows, Path(?a, (p|^p)*, ?b))         =  Filter(rows, Connected(p, ?a, ?b)),  where rows bind both ends

Law: two different nodes have a trail between them exactly when they are connected. A node reaches itself without a step
where that is allowed; where it is not, only the pattern itself gives the answer. Both ends must be nodes of the graph
in question: a node outside of it is connected to itself, but has no path of no steps there. So the first three hold in
plans that read a single source, and the last where patterns over the same source have the ends as subject or object.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.algebra import expressions as ex
from anabranch.algebra.operators import Argument, Filter, Join, Operator, Pattern
from anabranch.algebra.spell import Speller
from anabranch.algebra.triples import (
    Alternative,
    GraphPattern,
    Inverse,
    Path,
    PathLink,
    PropertyPath,
    Repeat,
    TermPlace,
    Var,
)
from anabranch.algebra.walk import sources
from anabranch.model.terms import Iri
from anabranch.optimizer.merge_joined_patterns import is_plain_join
from anabranch.optimizer.support.columns import is_lenient
from anabranch.optimizer.support.knowledge import Knowledge, Rewrite
from anabranch.optimizer.support.rebuild import everywhere, filtered, with_inputs


def recognise_connectivity(plan: Operator, knowledge: Knowledge) -> Rewrite | None:
    found: list[ex.Connected] = []
    new = _without_paths(plan, found)
    if len(sources(plan)) == 1:
        new = _without_trails(new, found)
    notes = tuple(
        dict.fromkeys(
            f"a path of any length is {Speller(knowledge.prefixes, one.links.of_triples).spell(one)}" for one in found
        )
    )
    return Rewrite(new, notes) if found else None


# --- triples ----------------------------------------------------------------------------------------------------------


def _without_paths(plan: Operator, found: list[ex.Connected]) -> Operator:
    if not is_plain_join(plan):
        return with_inputs(plan, lambda below: _without_paths(below, found))
    leaves = _leaves(plan)
    kept = [leaf for leaf in leaves if not (isinstance(leaf, Path) and _is_asked(leaf, leaves))]
    if len(kept) == len(leaves):
        return with_inputs(plan, lambda below: _without_paths(below, found))
    questions: list[ex.Expression] = []
    for leaf in leaves:
        if isinstance(leaf, Path) and leaf not in kept:
            kinds = tuple(sorted(iri.value for iri in _undirected(leaf.path) or ()))
            links = ex.Links(leaf.source, kinds, of_triples=True)
            question = ex.Connected(links, _value(leaf.subject), _value(leaf.object), span=leaf.span)
            questions.append(question)
            found.append(question)
    result, *others = (_without_paths(leaf, found) for leaf in kept)
    for right in others:
        result = Join(result, right, lenient=is_lenient(result, right), span=plan.span)
    return filtered(result, questions, plan.span)


def _leaves(plan: Operator) -> list[Operator]:
    return [leaf for side in plan.inputs for leaf in _leaves(side)] if is_plain_join(plan) else [plan]


def _is_asked(path: Path, leaves: list[Operator]) -> bool:
    """Return whether both ends are known to be nodes of the graph, or constants, before the path is walked."""
    if not _undirected(path.path):
        return False
    nodes: set[str] = set()
    for leaf in leaves:
        below = leaf
        while isinstance(below, Filter):
            below = below.input
        if isinstance(below, GraphPattern) and below.source == path.source:
            nodes.update(
                place.name for one in below.patterns for place in (one.subject, one.object) if isinstance(place, Var)
            )
    ends = [place.name for place in (path.subject, path.object) if isinstance(place, Var)]
    return bool(ends) and nodes.issuperset(ends)


def _undirected(path: PropertyPath) -> frozenset[Iri] | None:
    """Return the predicates of `(p|^p)*`, a path that may have no steps and takes each step in both directions; else
    None."""
    if not isinstance(path, Repeat) or path.least != 0 or path.most is not None:
        return None
    steps = path.path.paths if isinstance(path.path, Alternative) else (path.path,)
    there: set[Iri] = set()
    back: set[Iri] = set()
    for step in steps:
        match step:
            case PathLink(iri):
                there.add(iri)
            case Inverse(PathLink(iri)):
                back.add(iri)
            case _:
                return None
    return frozenset(there) if there == back else None


def _value(place: TermPlace) -> ex.Expression:
    return ex.Variable(place.name) if isinstance(place, Var) else ex.Constant(place)


# --- property graphs --------------------------------------------------------------------------------------------------


def _without_trails(plan: Operator, found: list[ex.Connected]) -> Operator:
    def change(item: object) -> object:
        match item:
            case ex.Exists():
                return _answered(item, found)
            case ex.And(operands):
                apart = {pair for one in operands if (pair := _kept_apart(one)) is not None}
                new = tuple(_of_different(one, apart) for one in operands)
                return item if new == operands else ex.And(new, span=item.span)
        return item

    return everywhere(plan, change)


def _of_different(item: ex.Expression, apart: set[frozenset[str]]) -> ex.Expression:
    """Reduce a CASE over equal nodes to its default, where another condition makes the nodes different."""
    match item:
        case ex.Case(((ex.Compare("=", ex.Variable(one), ex.Variable(other)), _),), default):
            return default if frozenset((one, other)) in apart else item
    return item


def _answered(item: ex.Exists, found: list[ex.Connected]) -> ex.Expression:
    """Return the connectivity question that the existence of a trail is equal to; else the item itself."""
    match item:
        case ex.Exists(Join(Argument(names), Pattern(source, (path,), None) as pattern, None) as plan):
            pass
        case _:
            return item
    if path.kind != "trail" or path.variable is not None or len(path.relationships) != 1:
        return item
    (left, right), (step,) = path.nodes, path.relationships
    ends = (left.variable, right.variable)
    if left.labels or right.labels or step.where is not None or step.variable in names or not set(ends) <= set(names):
        return item
    if step.direction != "both" or step.length is None or step.length[1] is not None:
        return item
    if step.length[0] > 1 or (step.length[0] == 1 and left.variable == right.variable):
        return item
    links = ex.Links(source, step.types or None)
    question = ex.Connected(links, ex.Variable(ends[0]), ex.Variable(ends[1]), span=item.span)
    found.append(question)
    # A missing node (OPTIONAL MATCH) has no trail, while its connectivity is null.
    answer = ex.Call("coalesce", (question, ex.Constant(False)), span=item.span)
    if step.length[0] == 0:
        return answer
    circle = replace(path, nodes=(left, left))
    back = replace(item, plan=replace(plan, right=replace(pattern, paths=(circle,))))
    same = ex.Compare("=", question.left, question.right, span=item.span)
    return ex.Case(((same, back),), answer, span=item.span)


def _kept_apart(condition: ex.Expression) -> frozenset[str] | None:
    """Return the two variables that a condition requires to be different nodes; else None."""
    match condition:
        case ex.Compare("<>", ex.Variable(one), ex.Variable(other)):
            return frozenset((one, other))
        case ex.Compare("<>" | "<" | ">", ex.Call("id", (ex.Variable(one),)), ex.Call("id", (ex.Variable(other),))):
            return frozenset((one, other))
    return None
