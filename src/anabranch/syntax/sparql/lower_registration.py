"""Statements to registrations: names, instants, output, and the streams that answers make.

Invariant: a statement means the same wherever it stands in a text.
"""

from __future__ import annotations

from functools import partial

from anabranch.algebra.operators import Operator, Output, Registration, ResultForm
from anabranch.syntax.common import RESERVED, LoweringProblems
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.lower import QueryLowering
from anabranch.syntax.sparql.lower_dataset import DatasetLowering, plain_dataset
from anabranch.syntax.sparql.lower_delegated import lower_delegated
from anabranch.syntax.sparql.lower_times import TimeColumns
from anabranch.syntax.sparql.scope import StatementSettings
from anabranch.syntax.sparql.walk import variables

_OUTPUTS: dict[str, Output] = {"istream": "entering", "dstream": "exiting"}


def lower_plain(
    statement: t.StatementTree, problems: LoweringProblems, graphs: tuple[str, ...] | None
) -> tuple[Operator, ResultForm]:
    """The plan of a plain query."""
    problems.next_statement()
    query = statement.query
    settings = StatementSettings(
        problems, "sparql", statement.base, plain_dataset(query.dataset, graphs), TimeColumns(query, problems)
    )
    return QueryLowering(settings).query(query)


def lower_registration(
    statement: t.StatementTree,
    name: str,
    dialect: t.Dialect,
    problems: LoweringProblems,
    text: str,
) -> Registration:
    """Lower one statement of a file with this text; `name` is its own or an assigned one."""
    problems.next_statement()
    query = statement.query
    sources = DatasetLowering(statement, dialect, problems)
    rhythm = sources.rhythm()
    dataset = sources.dataset(rhythm)
    settings = StatementSettings(problems, dialect, statement.base, dataset, TimeColumns(query, problems))
    plan, form = QueryLowering(settings).query(query)
    if form == "bindings":
        _check_reserved(query, plan, problems)
    into = _into(statement, name, plan, form, problems)
    return Registration(
        name,
        plan,
        statement.starting_at,
        rhythm.every,
        _OUTPUTS.get(statement.kind, "snapshot"),
        aligned=rhythm.every is not None and statement.starting_at is None,
        arrivals=rhythm.arrivals,
        final=dialect == "lupos" or rhythm.arrivals is None,
        form=form,
        into=into,
        unreadable=name if statement.kind == "stream" and into is None else None,
        language=dialect,
        prefixes=statement.prefixes,
        delegation=partial(lower_delegated, statement, plan, dataset, text),
    )


def _into(
    statement: t.StatementTree, name: str, plan: Operator, form: ResultForm, problems: LoweringProblems
) -> str | None:
    """The stream that the answers make: triples do, and so do three columns under REGISTER STREAM."""
    if statement.name is None or statement.kind == "query":
        return None
    if form == "boolean" and statement.kind == "stream":
        problems.add(
            "SPQ-114",
            "ASK makes no stream",
            statement.query.form.span,
            "a stream is made of triples",
            "use CONSTRUCT, or REGISTER QUERY",
        )
    asked = statement.query.form
    if isinstance(asked, t.ConstructTree) and asked.template == ():
        return None
    makes_triples = form == "graph" or (statement.kind == "stream" and form == "bindings" and len(plan.columns) == 3)
    return name if makes_triples else None


def _check_reserved(query: t.QueryTree, plan: Operator, problems: LoweringProblems) -> None:
    for name in RESERVED:
        if name in plan.columns:
            found = variables(query).get(name)
            problems.add(
                "SPQ-115",
                f"`?{name}` is reserved",
                query.span if found is None else found.span,
                "every row carries its window's bounds under this name",
                "use another name",
            )
