"""The broker query of the C-SPARQL paper, section 3.4, as algebra, with what the rules make of it."""

from __future__ import annotations

from anabranch.algebra import operators as op
from anabranch.algebra import triples as tr
from anabranch.algebra.expressions import AggregateCall, And, Call, Constant, Variable
from anabranch.algebra.optimized import OptimizedPlan
from anabranch.model.temporal import parse_duration
from anabranch.model.terms import XSD_INTEGER, Iri, Literal
from anabranch.optimizer import Knowledge, optimize

B = "http://brokerscentral.org/accounts#"
X = "http://stockexchange.org/exchanges#"
PREFIXES = (("b", B), ("x", X))
GRAPH = op.Static("http://brokerscentral.org/brokers.rdf")
MARKET = op.Window(op.Stream("http://stockexchange.org/market.trdf"), parse_duration("PT24H"))

PATTERN = tr.GraphPattern(
    op.MergedSource((GRAPH, MARKET)),
    (
        tr.TriplePattern(tr.Var("broker"), Iri(f"{B}is_from"), tr.Var("country")),
        tr.TriplePattern(tr.Var("broker"), Iri(f"{X}does"), tr.Var("tx")),
        tr.TriplePattern(tr.Var("tx"), Iri(f"{X}with"), tr.Var("amount")),
    ),
)
CONDITION = And(
    (
        Call("sparql:equal", (Variable("country"), Constant(Literal("CH")))),
        Call("sparql:less_or_equal", (Constant(Literal("10", XSD_INTEGER)), Variable("amount"))),
    )
)
TOTAL = op.Annotate(
    op.Filter(PATTERN, CONDITION), ("broker",), (("total", AggregateCall("sparql:sum", (Variable("amount"),))),)
)
PLAN = op.Distinct(op.Project(TOTAL, (("broker", Variable("broker")), ("total", Variable("total")))))
QUERY = op.Registration(
    "TotalAmountPerDayAndBroker",
    PLAN,
    None,
    parse_duration("PT24H"),
    aligned=True,
    language="csparql",
    prefixes=PREFIXES,
)
KNOWLEDGE = Knowledge({GRAPH.name: frozenset({Iri(f"{B}is_from")})}, PREFIXES)


def optimized() -> OptimizedPlan:
    return optimize(PLAN, KNOWLEDGE)
