"""What C-SPARQL, LUPOS and RSP-QL add to SPARQL, and the listings of their papers."""

from __future__ import annotations

import pytest

from anabranch.errors import QuerySyntaxError
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import Duration
from anabranch.model.terms import Iri
from anabranch.syntax import languages
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.parser import parse_script

STREAM = "FROM STREAM <http://s> [RANGE 10s STEP 1s]"


def statement(text: str, dialect: t.Dialect = "csparql") -> t.StatementTree:
    (one,) = parse_script(text, dialect).statements
    return one


def csparql(rest: str) -> t.QueryTree:
    return statement(f"REGISTER QUERY q AS {rest}").query


def window(text: str, dialect: t.Dialect = "csparql") -> t.TimeRangeTree | t.CountRangeTree:
    found = statement(f"REGISTER QUERY q AS SELECT * FROM STREAM <http://s> {text} WHERE {{ }}", dialect).query
    (clause,) = found.dataset
    assert isinstance(clause, t.FromStreamTree)
    return clause.range


# --- REGISTER ---


def test_a_registration_has_a_kind_a_name_and_a_clock() -> None:
    found = statement("REGISTER STREAM cars COMPUTED EVERY 5m STARTING AT 2026-01-02T03:04:05Z AS ASK { }")
    assert found.kind == "stream"
    assert found.name == t.NameTree("cars")
    assert found.computed_every == Duration(seconds=300)
    assert found.starting_at == parse_instant("2026-01-02T03:04:05Z")


@pytest.mark.parametrize(
    "written",
    ["2026-01-02T00:00Z", "'2026-01-02T00:00:00Z'", "2026-01-02", '"2026-01-02T01:00:00+01:00"^^xsd:dateTime'],
)
def test_an_instant_may_stand_in_quotes(written: str) -> None:
    found = statement(f"REGISTER QUERY q STARTING AT {written} AS ASK {{ }}")
    assert found.starting_at == parse_instant("2026-01-02T00:00Z")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("QUERY Cars-2", "Cars-2"),
        ("QUERY <http://e/q>", "http://e/q"),
        ("QUERY ex:q", "ex:q"),
        ("STREAM ex:q", "http://e/q"),
        ("STREAM other:q", "other:q"),
    ],
)
def test_names_of_queries_stay_as_written_and_streams_go_by_their_iri(written: str, name: str) -> None:
    assert statement(f"PREFIX ex: <http://e/> REGISTER {written} AS ASK {{ }}").name == t.NameTree(name)


def test_declarations_before_register_are_shared_and_those_after_as_are_not() -> None:
    shared = "PREFIX ex: <http://e/> REGISTER QUERY a AS ASK { ?x ex:p ?y } REGISTER QUERY b AS ASK { ?x ex:p ?y }"
    first, second = parse_script(shared, "csparql").statements
    assert first.query == second.query
    own = "REGISTER QUERY a AS PREFIX ex: <http://e/> ASK { ?x ex:p ?y }; REGISTER QUERY b AS ASK { ?x ex:p ?y }"
    with pytest.raises(QuerySyntaxError) as caught:
        parse_script(own, "csparql")
    (problem,) = caught.value.diagnostics
    assert problem.code == "SPQ-003"
    assert "before the first REGISTER" in problem.hint


def test_a_statement_without_register_has_no_name() -> None:
    named, plain = parse_script("REGISTER QUERY a AS ASK { } SELECT * { }", "csparql").statements
    assert named.name == t.NameTree("a")
    assert plain.name is None


# --- windows ---


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("[RANGE 10m STEP 1m]", t.TimeRangeTree(Duration(seconds=600), Duration(seconds=60))),
        (
            "[ RANGE 500ms STEP 0.1 sec ]",
            t.TimeRangeTree(Duration(nanoseconds=500_000_000), Duration(nanoseconds=10**8)),
        ),
        ("[RANGE 24 hours TUMBLING]", t.TimeRangeTree(Duration(seconds=86400), Duration(seconds=86400))),
        ("[RANGE 2d]", t.TimeRangeTree(Duration(days=2))),
        ("[range pt10s step PT1S]", t.TimeRangeTree(Duration(seconds=10), Duration(seconds=1))),
        ("[RANGE TRIPLES 10]", t.CountRangeTree(10)),
        ("[RANGE TRIPLES 10 STEP 2]", t.CountRangeTree(10, 2)),
        ("[RANGE TRIPLES 10 TUMBLING]", t.CountRangeTree(10, 10)),
    ],
)
def test_windows_by_time_and_by_count(written: str, meant: t.TimeRangeTree | t.CountRangeTree) -> None:
    assert window(written) == meant


@pytest.mark.parametrize("unit", ["s", "S", "sec", "second", "seconds"])
def test_units_may_be_spelled_out(unit: str) -> None:
    assert window(f"[RANGE 3 {unit}]") == t.TimeRangeTree(Duration(seconds=3))


def test_streams_may_be_named_and_stand_among_graphs() -> None:
    found = csparql("SELECT * FROM <http://g> FROM NAMED STREAM <http://s> [RANGE TRIPLES 1] WHERE { }")
    assert found.dataset == (
        t.FromTree(Iri("http://g"), False),
        t.FromStreamTree(Iri("http://s"), t.CountRangeTree(1), True),
    )


# --- the liberties of C-SPARQL ---


def test_projections_may_have_braces_commas_and_aggregates_without_brackets() -> None:
    plain = csparql("SELECT ?a (COUNT(?b) AS ?n) WHERE { }")
    assert csparql("SELECT { ?a (COUNT(?b) AS ?n) } WHERE { }") == plain
    assert csparql("SELECT ?a, COUNT(?b) AS ?n WHERE { }") == plain


def test_the_dataset_may_stand_before_select() -> None:
    early = statement(f"REGISTER QUERY q AS PREFIX ex: <http://e/> {STREAM} SELECT * WHERE {{ }}")
    late = statement(f"REGISTER QUERY q AS PREFIX ex: <http://e/> SELECT * {STREAM} WHERE {{ }}")
    assert early == late


def test_a_hyphen_before_a_letter_belongs_to_the_name_of_a_variable() -> None:
    found = csparql("SELECT ?total-sensor WHERE { FILTER(?a-b > ?a-1 && ?a-?b > ?a-STRLEN(?b)) }")
    assert found.form == t.SelectTree((t.ItemTree(t.VarTree("total-sensor")),))
    a, b = t.VarTree("a"), t.VarTree("b")
    condition = t.BinaryTree(
        "&&",
        t.BinaryTree(">", t.VarTree("a-b"), csparql_expression("?a - 1")),
        t.BinaryTree(">", t.BinaryTree("-", a, b), t.BinaryTree("-", a, t.CallTree("STRLEN", (b,)))),
    )
    assert found.where == t.GroupTree((t.FilterTree(condition),))


def csparql_expression(text: str) -> t.ExpressionTree:
    where = csparql(f"ASK {{ FILTER({text}) }}").where
    assert where is not None
    (condition,) = where.elements
    assert isinstance(condition, t.FilterTree)
    return condition.condition


def test_well_known_prefixes_need_no_declaration_in_csparql_only() -> None:
    found = statement("REGISTER QUERY q AS ASK { ?x t:registers ?y }")
    assert found.prefixes == (("t", "http://linkedurbandata.org/traffic#"),)
    with pytest.raises(QuerySyntaxError, match="PREFIX rdf: <http://www"):
        parse_script("ASK { ?x rdf:type ?y }", "lupos")


def test_graphs_may_be_united_without_braces() -> None:
    bare = csparql("ASK { GRAPH <http://a> { ?x ?y ?z } UNION GRAPH <http://b> { ?x ?y ?z } }")
    assert bare == csparql("ASK { { GRAPH <http://a> { ?x ?y ?z } } UNION { GRAPH <http://b> { ?x ?y ?z } } }")


@pytest.mark.parametrize("call", ["timestamp(?x)", "TIMESTAMP(?x, <http://s>)", "Timestamp(?x, ?g)"])
def test_timestamp_is_a_function(call: str) -> None:
    found = csparql_expression(call)
    assert isinstance(found, t.CallTree)
    assert found.function == "TIMESTAMP"
    assert found.arguments[0] == t.VarTree("x")


# --- AGGREGATE ---


def test_an_aggregate_clause_names_variable_function_and_group() -> None:
    found = csparql(
        f"SELECT * {STREAM} WHERE {{ ?a ?b ?c }} AGGREGATE {{ (?n, COUNT, {{?a, ?b}}) FILTER (?n > 5) }} "
        "AGGREGATE { (?m, sum(?c), ?a) } LIMIT 1"
    )
    first, second = found.annotations
    assert first == t.AnnotateTree(
        t.VarTree("n"), "COUNT", None, (t.VarTree("a"), t.VarTree("b")), (csparql_expression("?n > 5"),)
    )
    assert second == t.AnnotateTree(t.VarTree("m"), "SUM", t.VarTree("c"), (t.VarTree("a"),))
    assert found.limit == 1


def test_commas_in_an_aggregate_may_be_left_out_and_a_clause_may_hold_several() -> None:
    several = csparql("ASK { } AGGREGATE { (?n COUNT {?a ?b}) (?m, MAX(?c), {?a}) FILTER(?n > 1) }").annotations
    assert [(one.variable.name, len(one.group), len(one.filters)) for one in several] == [("n", 2, 0), ("m", 1, 1)]


# --- LUPOS ---


def test_lupos_says_when_results_come_and_windows_what() -> None:
    found = statement(
        "PREFIX lupos: <http://www.luposdate.org/> SELECT ?x lupos:max(?y) AS ?m STREAM INTERMEDIATERESULT TRIPLES 7 "
        "WHERE { WINDOW TYPE SLIDINGDURATION 1000 { ?x ?p ?y } WINDOW TYPE SLIDINGTRIPLES 5 { } }",
        "lupos",
    )
    assert found.name is None
    assert found.query.intermediate == t.IntermediateTree("triples", 7)
    assert isinstance(found.query.form, t.SelectTree)
    assert found.query.form.items is not None
    assert found.query.form.items[1].expression == t.CallTree(Iri("http://www.luposdate.org/max"), (t.VarTree("y"),))
    assert found.query.where is not None
    kinds = [(one.kind, one.size) for one in found.query.where.elements if isinstance(one, t.LuposWindowTree)]
    assert kinds == [("duration", 1000), ("triples", 5)]


def test_a_lupos_query_may_be_registered() -> None:
    assert statement("REGISTER QUERY bids AS SELECT * WHERE { }", "lupos").name == t.NameTree("bids")


# --- RSP-QL ---


def test_rspql_names_windows_and_the_stream_of_answers() -> None:
    found = statement(
        "PREFIX : <http://e/> REGISTER ISTREAM :out AS SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT5S] "
        "FROM NAMED WINDOW <http://e/v> ON <http://e/s2> [ELEMENTS 10 STEP 2] WHERE { WINDOW :w { } WINDOW ?x { } }",
        "rspql",
    )
    assert (found.kind, found.name) == ("istream", t.NameTree("http://e/out"))
    assert found.query.dataset == (
        t.FromStreamTree(
            Iri("http://e/s"), t.TimeRangeTree(Duration(seconds=10), Duration(seconds=5)), True, Iri("http://e/w")
        ),
        t.FromStreamTree(Iri("http://e/s2"), t.CountRangeTree(10, 2), True, Iri("http://e/v")),
    )
    assert found.query.where == t.GroupTree(
        (
            t.NamedWindowTree(t.TermTree(Iri("http://e/w")), t.GroupTree(())),
            t.NamedWindowTree(t.VarTree("x"), t.GroupTree(())),
        )
    )


@pytest.mark.parametrize("kind", ["RSTREAM", "ISTREAM", "DSTREAM", "QUERY"])
def test_rspql_kinds(kind: str) -> None:
    assert statement(f"REGISTER {kind} <http://e/o> AS ASK {{ }}", "rspql").kind == kind.lower()


def test_rspql_reads_streams_as_csparql_does() -> None:
    assert window("[RANGE 5s STEP 1s]", "rspql") == window("[RANGE 5s STEP 1s]")


# --- the listings of the papers ---

CSPARQL_LISTINGS = {
    "sensors (2.2)": """PREFIX c: <http://linkedurbandata.org/city#>
        SELECT DISTINCT ?street ?total-sensor
        WHERE { ?sensor c:placedIn ?street . }
        AGGREGATE { ( ?total-sensor, COUNT, {?street} ) FILTER (?total-sensor > 5) }""",
    "tollgates (2.3)": """PREFIX t: <http://linkedurbandata.org/traffic#>
        SELECT DISTINCT ?tollgate ?passages
        FROM STREAM <http://streams.org/citytollgates.trdf> [ RANGE 10m STEP 1m ]
        WHERE { ?tollgate t:registers ?car . }
        AGGREGATE { (?passages, COUNT, {?tollgate}) }""",
    "cars per district (2.4)": """REGISTER QUERY CarsEnteringCityCenterPerDistrict COMPUTED EVERY 5m AS
        SELECT DISTINCT ?district ?passages
        FROM STREAM <http://streams.org/citytollgates.trdf> [RANGE 30m STEP 5m]
        WHERE { ?tollgate t:registers ?car . ?tollgate c:placedIn ?street . ?district c:contains ?street . }
        AGGREGATE {(?passages, COUNT, {?district})}""",
    "a stream of them (2.5)": """REGISTER STREAM CarsEnteringCityCenterPerDistrict COMPUTED EVERY 5m AS
        CONSTRUCT {?district t:has-entering-cars ?passages}
        FROM STREAM <http://streams.org/citytollgates.trdf> [RANGE 30m STEP 5m]
        WHERE { ?tollgate t:registers ?car . ?district c:contains ?street . ?tollgate c:placedIn ?street . }
        AGGREGATE {(?passages, COUNT, {?district, ?tollgate, ?car})}""",
    "full streets (2.6)": """REGISTER QUERY FullStreets AS
        SELECT { ?street ?passages }
        FROM STREAM <http://streams.org/citytollgates.trdf> [RANGE 5m TUMBLING]
        FROM STREAM <http://streams.org/citycameras.trdf> [RANGE 5m TUMBLING]
        WHERE {
          ?street c:hasCapacity ?capacity .
          GRAPH <http://streams.org/citytollgates.trdf> { ?tollgate t:registers ?car . ?tollgate c:placedIn ?street . }
          UNION
          GRAPH <http://streams.org/citycameras.trdf> {
            ?camera t:registers ?car . ?camera c:placedAt ?light . ?light c:crossing ?street . }
        }
        AGGREGATE { ( ?passages, COUNT, {?street} ) FILTER ( ?passages > (0.8 * ?capacity)) }""",
    "cars turning (2.7)": """REGISTER STREAM AllCarsTurningFromPalmIntoOak COMPUTED EVERY 1m AS
        SELECT DISTINCT ?car1
        FROM STREAM <http://streams.org/citycameras.trdf> [RANGE 5m STEP 1m]
        WHERE { ?camera1 c:monitors c:Oak-Avenue . ?camera2 c:monitors c:Palm-Street .
          ?camera1 c:placedAt ?tr_light . ?camera2 c:placedAt ?tr_light .
          ?camera1 t:registers ?car1 . ?camera2 t:registers ?car2 .
          FILTER ( timestamp(?car1)>timestamp(?car2) && ?car1 = ?car2 ) }""",
    "amounts per broker (3.4)": """REGISTER QUERY TotalAmountPerDayAndBroker AS
        PREFIX b: <http://brokerscentral.org/accounts#> PREFIX x: <http://stockexchange.org/exchanges#>
        SELECT DISTINCT ?broker ?total
        FROM <http://brokerscentral.org/brokers.rdf>
        FROM STREAM <http://stockexchange.org/market.trdf> [RANGE 24 hours TUMBLING]
        WHERE { ?broker b:is_from ?country . ?broker x:does ?tx . ?tx x:with ?amount .
          FILTER (?country = 'CH' && ?amount >= 10) }
        AGGREGATE { (?total, SUM(?amount), ?broker) }""",
    "movements per market (5.2)": """REGISTER QUERY SellerMarketMovementsPerDay AS
        PREFIX x: <http://stockexchanges.org/exchanges#>
        FROM <http://brokerscentral.org/brokers.rdf>
        FROM STREAM <http://stockexchange.org/market.trdf> [RANGE 24 hours TUMBLING]
        SELECT DISTINCT ?seller, ?market, ?Tot
        WHERE { GRAPH ?market { ?Transaction x:seller ?seller . ?Transaction x:with ?amount . } }
        AGGREGATE { (?tot, SUM(?amount), {?seller, ?market}) }""",
}


@pytest.mark.parametrize("text", CSPARQL_LISTINGS.values(), ids=CSPARQL_LISTINGS.keys())
def test_the_listings_of_the_csparql_paper_parse(text: str) -> None:
    found = statement(text)
    assert isinstance(found.query.form, (t.SelectTree, t.ConstructTree))
    assert len(found.query.annotations) == text.count("AGGREGATE")
    assert sum(isinstance(one, t.FromStreamTree) for one in found.query.dataset) == text.count("FROM STREAM")


def test_the_listing_of_the_lupos_paper_parses() -> None:
    found = statement(
        """PREFIX ebay:<http://developer.ebay.com/DevZone/finding/CallRef/findItemsByKeywords.html#>
        PREFIX lupos: <http://www.luposdate.org/>
        SELECT DISTINCT ?id ?title ?bid lupos:average(?bid) AS ?avg
        lupos:min(?bid) AS ?min lupos:max(?bid) AS ?max lupos:sum(?bid) AS ?sum
        STREAM INTERMEDIATERESULT DURATION 1000
        WHERE {
          WINDOW TYPE SLIDINGTRIPLES 100 {
            ?id ebay:Response.searchResult.item.sellingStatus.currentPrice ?bid.
            ?id ebay:Response.searchResult.item.title ?title. }}""",
        "lupos",
    )
    assert found.query.intermediate == t.IntermediateTree("duration", 1000)
    assert isinstance(found.query.form, t.SelectTree)
    assert len(found.query.form.items or ()) == 7
    assert found.query.where is not None
    (block,) = found.query.where.elements
    assert isinstance(block, t.LuposWindowTree)
    (patterns,) = block.group.elements
    assert isinstance(patterns, t.TriplesTree)
    assert len(patterns.triples) == 2


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        (
            "rspql",
            "REGISTER RSTREAM <urn:q> AS SELECT (anb:componentSize(?a) AS ?n) "
            "FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT10S STEP PT1S] WHERE { WINDOW <urn:w> { ?a ?p ?b } }",
        ),
        ("csparql", "SELECT (anb:componentSize(?a) AS ?n) FROM STREAM <s> [RANGE 10s STEP 1s] WHERE { ?a ?p ?b }"),
        (
            "lupos",
            "SELECT (anb:componentSize(?a) AS ?n) STREAM INTERMEDIATERESULT TRIPLES 1 "
            "WHERE { WINDOW TYPE SLIDINGTRIPLES 10 { ?a ?p ?b } }",
        ),
    ],
)
def test_all_streaming_dialects_know_the_prefix_of_our_functions(dialect: str, text: str) -> None:
    assert languages.registrations(text, f"q.{dialect}")[0].columns == ("n",)
