"""Groups `{ ... }` to the algebra, bottom-up (SPARQL 1.1, section 18.2.2).

EXISTS is evaluated for each row separately, and the row's values replace their variables inside of it. So its group
begins with the row (`Seed`), and so do all groups below: patterns join with it, filters see it. MINUS compares only the
variables that its own group binds, not those of the seed.

Invariant: the rows of a group depend only on its own text, its source and its seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anabranch.algebra.expressions import Constant
from anabranch.algebra.operators import Argument, MergedSource, Operator, TripleSource
from anabranch.algebra.triples import GraphPattern, PathLink, TermPlace, TriplePattern, Values, Var
from anabranch.errors import Span
from anabranch.model.terms import Iri
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.lower_dataset import lupos_window, unknown_window
from anabranch.syntax.sparql.lower_expressions import ExpressionLowering
from anabranch.syntax.sparql.lower_paths import PathLowering, Piece, joined
from anabranch.syntax.sparql.scope import Scope, StatementSettings
from anabranch.syntax.sparql.tables import (
    UNIT,
    Seed,
    VariableTable,
    brought,
    conjunction,
    extend,
    filtered,
    join,
    left_join,
    minus,
    narrowed,
    nothing,
    own_columns,
    telling_apart,
    told_apart,
    unite,
)
from anabranch.syntax.sparql.walk import variables

MAX_PARTS = 150  # each is one operator more above the ones before it, and plans are walked by recursion

SubSelect = Callable[[t.QueryTree, TripleSource, Seed | None], VariableTable]
NamedSource = tuple[Iri, TripleSource]


def place(node: t.NodeTree) -> TermPlace:
    """A node of a triple as the algebra has it; blank nodes are variables that no query can name."""
    match node:
        case t.VarTree(name):
            return Var(name)
        case t.BlankTree(label):
            return Var(f" _:{label}")
        case t.TermTree(term):
            return term


class GroupLowering:
    def __init__(self, settings: StatementSettings, expressions: ExpressionLowering, subselect: SubSelect) -> None:
        self._settings = settings
        self._problems = settings.problems
        self._expressions = expressions
        self._subselect = subselect
        self._paths = PathLowering(settings.problems, settings.times.timed)

    def group(self, tree: t.GroupTree, source: TripleSource, seed: Seed | None = None) -> VariableTable:
        """The group's rows; its filters hold for all of it, wherever they stand in it."""
        table, filters = self._open(tree, source, seed)
        scope = table.scope(source)
        return filtered(table, [self._expressions.truth(one.condition, scope) for one in filters], _span(filters, tree))

    def exists(self, tree: t.GroupTree, scope: Scope) -> Operator:
        """Return the plan of EXISTS for the rows of a scope; its argument has the columns that the group mentions."""
        mentioned = variables(tree)
        wanted = {name for name in mentioned if name in scope.columns}
        for name in mentioned:
            if self._settings.times.is_asked(name):
                wanted |= set(self._settings.times.all_columns(name)) & set(scope.columns)
        names = tuple(name for name in scope.columns if name in wanted)
        seed = Seed(Argument(names), scope.certain & wanted) if names else None
        return self.group(tree, scope.source, seed).plan

    def _open(
        self, tree: t.GroupTree, source: TripleSource, seed: Seed | None
    ) -> tuple[VariableTable, list[t.FilterTree]]:
        """The group without its filters, and the filters."""
        table = UNIT if seed is None else VariableTable(seed.plan, seed.certain)
        building = [one for one in tree.elements if not isinstance(one, t.FilterTree | t.TriplesTree)]
        if len(building) > MAX_PARTS:
            self._problems.add(
                "SPQ-006",
                f"a group of {len(building)} parts that build on each other",
                building[MAX_PARTS].span,
                f"{MAX_PARTS} can be evaluated",
                "split the group, or make a stream with REGISTER STREAM in between",
            )
            return table, []
        filters: list[t.FilterTree] = []
        pending: list[t.TriplesTree] = []
        for element in tree.elements:
            match element:
                case t.FilterTree():
                    filters.append(element)
                case t.TriplesTree():
                    pending.append(element)
                case _:
                    table = self._triples(table, pending, source)
                    pending = []
                    table = self._element(element, table, source, seed)
        return self._triples(table, pending, source), filters

    # --- triples ---

    def _triples(self, table: VariableTable, blocks: Sequence[t.TriplesTree], source: TripleSource) -> VariableTable:
        if not blocks:
            return table
        span = _span(blocks, blocks[0])
        pieces = [piece for block in blocks for triple in block.triples for piece in self._pieces(triple, source)]
        return joined(pieces, source, table, span)

    def _pieces(self, triple: t.TripleTree, source: TripleSource) -> list[Piece]:
        subject, object_ = place(triple.subject), place(triple.object)
        match triple.predicate:
            case t.PathTree(path):
                return self._paths.pieces(source, subject, path, object_, triple.span)
            case t.TermTree(Iri() as iri):
                return self._paths.pieces(source, subject, PathLink(iri), object_, triple.span)
            case predicate:
                pattern = TriplePattern(subject, place(predicate), object_, span=triple.span)
                return [self._settings.times.timed(pattern, source)]

    # --- elements ---

    def _element(
        self, element: t.ElementTree, table: VariableTable, source: TripleSource, seed: Seed | None
    ) -> VariableTable:
        span = element.span
        match element:
            case t.GroupTree():
                return self._join_nested(table, self.group(element, source, seed), seed, span)
            case t.UnionTree(groups):
                branches = [self.group(group, source, seed) for group in groups]
                return self._join_nested(table, unite(branches, span), seed, span)
            case t.OptionalTree(group):
                return self._optional(group, table, source, seed, span)
            case t.MinusTree(group):
                return minus(table, own_columns(self.group(group, source, seed), span), span)
            case t.BindTree():
                return self._bind(element, table, source)
            case t.ValuesTree():
                return join(table, self.values(element), span)
            case t.SubSelectTree(query):
                return self._sub_select(query, table, source, seed, span)
            case t.GraphTree() | t.NamedWindowTree() | t.LuposWindowTree():
                return self._join_nested(table, self._elsewhere(element, seed), seed, span)
            case t.ServiceTree(silent=silent):
                if not silent:
                    self._problems.add(
                        "SPQ-110",
                        "SERVICE asks another server, and queries do not call out",
                        span,
                        "",
                        "load what it would give as a static graph, named by FROM; SERVICE SILENT is passed over",
                    )
                return table
            case _:
                return table

    @staticmethod
    def _join_nested(
        table: VariableTable, nested: VariableTable, seed: Seed | None, span: Span | None
    ) -> VariableTable:
        """A nested group began with the seed itself: joined with nothing but the seed it is its own answer."""
        if seed is not None and table.plan is seed.plan:
            return VariableTable(nested.plan, nested.certain, table.own | nested.own)
        return join(table, nested, span)

    def _optional(
        self, group: t.GroupTree, table: VariableTable, source: TripleSource, seed: Seed | None, span: Span | None
    ) -> VariableTable:
        """The filters of an OPTIONAL see the rows on both sides."""
        inner, filters = self._open(group, source, seed)
        columns = tuple(dict.fromkeys((*table.columns, *inner.columns)))
        scope = Scope(columns, table.certain | inner.certain, source)
        conditions = [self._expressions.truth(one.condition, scope) for one in filters]
        return left_join(table, inner, conjunction(conditions, _span(filters, group)), span)

    def _bind(self, element: t.BindTree, table: VariableTable, source: TripleSource) -> VariableTable:
        name = element.variable.name
        if name in table.own:
            self._problems.add(
                "SPQ-101",
                f"`?{name}` is bound already",
                element.variable.span,
                "BIND gives a new variable",
                "use another name, or compare: FILTER (?a = ?b)",
            )
            return table
        table = told_apart(table, telling_apart(element.expression, table.columns, self._problems))
        value = self._expressions.term(element.expression, table.scope(source))
        return extend(table, name, value, self._problems, element.span)

    def values(self, element: t.ValuesTree) -> VariableTable:
        """The table of VALUES, in a group or at the end of a query."""
        names = tuple(variable.name for variable in element.variables)
        for at, variable in enumerate(element.variables):
            if variable.name in names[:at]:
                self._problems.add("SPQ-109", f"`?{variable.name}` stands twice in VALUES", variable.span)
                return UNIT
        rows = tuple(tuple(None if cell is None else cell.term for cell in row) for row in element.rows)
        return brought(Values(names, rows, span=element.span))

    def _sub_select(
        self, query: t.QueryTree, table: VariableTable, source: TripleSource, seed: Seed | None, span: Span | None
    ) -> VariableTable:
        """A subselect shares with its surroundings only what it projects, so only that is handed in."""
        inner = seed
        if isinstance(query.form, t.SelectTree) and query.form.items is not None:
            shared = [
                item.variable.name for item in query.form.items if item.variable is not None and item.expression is None
            ]
            inner = narrowed(seed, shared)
        return join(table, self._subselect(query, source, inner), span)

    # --- other graphs ---

    def _elsewhere(
        self, element: t.GraphTree | t.NamedWindowTree | t.LuposWindowTree, seed: Seed | None
    ) -> VariableTable:
        dataset = self._settings.dataset
        match element:
            case t.LuposWindowTree(group=group):
                return self.group(group, lupos_window(element), seed)
            case t.GraphTree(t.VarTree(name), group):
                named = [(iri, dataset.graphs[iri]) for iri in dataset.named]
                return self._over(name, named, group, seed, element.span)
            case t.NamedWindowTree(t.VarTree(name), group):
                return self._over(name, list(dataset.windows.items()), group, seed, element.span)
            case t.GraphTree(t.TermTree(Iri() as iri), group):
                found = dataset.graph(iri)
                if found is None:
                    return nothing(self.group(group, MergedSource(()), seed))
                if not group.elements and seed is None:
                    return VariableTable(
                        GraphPattern(found, (), span=element.span)
                    )  # this only tests whether the graph exists
                return self.group(group, found, seed)
            case t.NamedWindowTree(t.TermTree(Iri() as iri), group):
                if iri not in dataset.windows:
                    unknown_window(iri, dataset, element.name, self._problems)
                return self.group(group, dataset.windows.get(iri, MergedSource(())), seed)
            case _:
                return UNIT

    def _over(
        self, name: str, choices: Sequence[NamedSource], group: t.GroupTree, seed: Seed | None, span: Span | None
    ) -> VariableTable:
        """The group over each of several graphs, with the graph's name in a variable."""
        if not choices:
            return nothing(self.group(group, MergedSource(()), seed), name)
        branches = [self._named(name, iri, source, group, seed, span) for iri, source in choices]
        return branches[0] if len(branches) == 1 else unite(branches, span)

    def _named(
        self, name: str, iri: Iri, source: TripleSource, group: t.GroupTree, seed: Seed | None, span: Span | None
    ) -> VariableTable:
        """The group's rows joined with the graph's name (18.6, Graph). Inside of the group the variable is bound where
        a pattern binds it, and nowhere else: a FILTER on it stands beside GRAPH, not in it."""
        table = self.group(group, source, seed)
        if name in table.columns:
            return join(table, brought(Values((name,), ((iri,),), span=span)), span)
        return extend(table, name, Constant(iri), self._problems, span)


def _span(parts: Sequence[t.TreePart], default: t.TreePart) -> Span | None:
    """The stretch of text from the first to the last of some parts."""
    spans = [part.span for part in parts if part.span is not None]
    if not spans:
        return default.span
    whole = spans[0]
    for span in spans[1:]:
        whole = whole.join(span)
    return whole
