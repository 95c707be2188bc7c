"""Property paths of any length as automata over ids, and trees that follow the window.

A path is walked from the end that is a term, else from every node at which a path can begin. A path of no steps always
joins a term of the query to itself, and between two variables every node of the graph to itself (`snapshot.rdf.paths`
is the law).

Static graphs beside windows are added first and never leave; when one changes, the trees are rebuilt from the content
of the windows. Several windows are followed as if they were one (`held.HeldTogether`), whose order of arrival shows the
trees what leaves first. Where arrivals leave out of this order (windows of different widths, or whose widths are no
whole slides), the trees are rebuilt at that instant, and the difference is emitted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from anabranch.algebra import triples as tr
from anabranch.algebra.operators import Static, Window
from anabranch.algebra.spell import Speller
from anabranch.algebra.walk import parts_of
from anabranch.delta.batch import Batch, Ids, concatenated
from anabranch.delta.dictionary import Dictionary
from anabranch.delta.operators.base import Size
from anabranch.delta.paths import automaton as au
from anabranch.delta.patterns import BudgetExceeded
from anabranch.model.terms import Iri, Triple
from anabranch.model.triples import Triples
from anabranch.planner.choices import Choices
from anabranch.planner.flow.feeds import Tick
from anabranch.planner.flow.held import HeldTogether
from anabranch.planner.flow.runtime import Runtime
from anabranch.planner.flow.spec import Leaf, NotIncremental, Spec
from anabranch.planner.leaves.budgets import Budgets
from anabranch.planner.leaves.walks import TooManyTrails
from anabranch.snapshot.rdf.paths import turned

if TYPE_CHECKING:
    from anabranch.delta.paths.matcher import PathMatcher

_NEVER: Hashable = object()

MOST_NODES = 1 << 22
"""Default limit of the tree nodes of one path; past it the path is recomputed by search."""


def path_spec(operator: tr.Path, choices: Choices) -> Spec:
    """Return the spec of the trees of a path."""
    parts = tuple(dict.fromkeys(parts_of(operator.source)))
    windows = [part for part in parts if isinstance(part, Window)]
    if not choices.trails:
        raise NotIncremental("paths of any length: too many nodes to be kept")
    try:
        au.automaton(_expression(operator.path, Dictionary()))
    except au.TooManySteps as error:
        raise NotIncremental(str(error)) from None
    speller = Speller(choices.prefixes, sparql=True)
    said = f"{speller.place(operator.subject)} {speller.property_path(operator.path)} {speller.place(operator.object)}"
    budgets = Budgets(choices.max_matches, choices.max_bytes, said, operator.span)
    static = tuple(part for part in parts if isinstance(part, Static))
    make = partial(PathTrees, operator, tuple(windows), static, budgets)
    return Spec("PathTrees", make, operator.columns, about=operator)


class PathTrees(Leaf):
    """The pairs that a path joins. Work: see `delta.paths.matcher`; all trees are rebuilt when a static graph changes,
    or when an arrival leaves out of order."""

    def __init__(
        self,
        operator: tr.Path,
        windows: tuple[Window, ...],
        static: tuple[Static, ...],
        budgets: Budgets,
        runtime: Runtime,
    ) -> None:
        self._windows = windows
        self._static = static
        self._budgets = budgets
        self._dictionary = runtime.dictionary
        ends = (operator.subject, operator.object)
        is_free = [isinstance(end, tr.Var) for end in ends]
        self._is_loop = all(is_free) and ends[0] == ends[1]
        is_turned = is_free == [True, False]
        given = [None if isinstance(end, tr.Var) else self._dictionary.encode(end) for end in ends]
        self._source, self._target = given[::-1] if is_turned else given
        path = turned(operator.path) if is_turned else operator.path
        self._automaton = au.automaton(_expression(path, self._dictionary), standing=all(is_free))
        # The ends of a walk (0: first node, 1: last node) that become columns.
        columns = [1, 0] if is_turned else [0, 1]
        self._picks = [0] if self._is_loop else [at for at, free in zip(columns, is_free, strict=True) if free]
        self._held = HeldTogether(len(windows)) if static or len(windows) > 1 else None
        self._signature: Hashable = _NEVER
        self._begun = 0  # how many arrivals had left when the matcher was new
        self.matcher = self._new_matcher()

    def _new_matcher(self) -> PathMatcher:
        from anabranch.delta.paths.matcher import PathMatcher  # few queries need its kernels

        most = MOST_NODES if self._budgets.max_matches is None else self._budgets.max_matches
        return PathMatcher(self._automaton, self._source, self._target, self._is_loop, most, self._budgets.max_bytes)

    def advance(self, tick: Tick) -> Batch:
        try:
            batch = self._changes(tick).picked(self._picks)
        except BudgetExceeded as error:
            if error.what == "matches" and self._budgets.max_matches is None:
                raise TooManyTrails(error.limit) from None
            raise self._budgets.refusal(error) from None
        self._budgets.check(self.size)
        return batch

    def _changes(self, tick: Tick) -> Batch:
        slides = [tick.triples(window) for window in self._windows]
        if self._held is None:
            return self.matcher.slide(*slides[0])
        together = self._held.slide(slides)
        signature = tick.signature(self._static)
        if signature == self._signature and together is not None:
            return self.matcher.slide(together.arrived, together.left - self._begun)
        before = -Batch.entering(self.matcher.pairs())
        self._signature, self._begun = signature, self._held.left
        self.matcher = self._new_matcher()
        for part in self._static:
            self.matcher.lay(self._encoded(tick.context.triples(part)))
        self.matcher.slide(self._held.facts(), 0)
        return concatenated([before, Batch.entering(self.matcher.pairs())], 2).consolidated()

    def _encoded(self, graph: Triples) -> Ids:
        """Return the triples of a static graph that the path can pass, as ids."""
        found: Iterable[Triple] = graph
        automaton = self._automaton
        if automaton.standing < 0 and max(automaton.others) < 0:
            kinds = [self._dictionary.decode(kind) for kind in automaton.symbols]
            found = [triple for kind in kinds if isinstance(kind, Iri) for triple in graph.match(None, kind, None)]
        encode = self._dictionary.encode
        return np.array([[encode(term) for term in triple] for triple in found], np.int64).reshape(-1, 3)

    def size(self) -> Size:
        kept = self.matcher.size()
        return Size(kept.rows, kept.bytes + (0 if self._held is None else self._held.nbytes))


def _expression(path: tr.PropertyPath, dictionary: Dictionary) -> au.PathExpression:
    """Return the path over ids. Predicates not met before get their ids now, before any triple can bring them."""

    def ids(predicates: Iterable[Iri]) -> frozenset[int]:
        return frozenset(map(dictionary.encode, predicates))

    match path:
        case tr.PathLink(iri):
            return au.PathStep(ids((iri,)))
        case tr.Inverse(tr.PathLink(iri)):
            return au.PathStep(ids((iri,)), backward=True)
        case tr.Inverse(inner):
            return _expression(turned(inner), dictionary)
        case tr.Sequence(paths):
            return au.Chain(tuple(_expression(one, dictionary) for one in paths))
        case tr.Alternative(paths):
            return au.Choice(tuple(_expression(one, dictionary) for one in paths))
        case tr.Repeat(inner, least, most):
            return au.PathRepetition(_expression(inner, dictionary), least, most)
        case tr.NegatedStep(forward, backward):
            steps = [] if forward is None else [au.PathStep(ids(forward), others=True)]
            steps += [] if backward is None else [au.PathStep(ids(backward), others=True, backward=True)]
            return au.Choice(tuple(steps))
