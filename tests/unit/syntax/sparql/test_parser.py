"""What the grammar of plain SPARQL takes, and what tree it makes of it."""

from __future__ import annotations

import pytest

from anabranch.algebra.triples import Alternative, Inverse, NegatedStep, PathLink, PropertyPath, Repeat, Sequence
from anabranch.errors import QuerySyntaxError, Span
from anabranch.model.terms import (
    RDF_FIRST,
    RDF_NIL,
    RDF_REST,
    RDF_TYPE,
    XSD,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    Iri,
    Literal,
    tagged,
)
from anabranch.syntax.sparql import tree as t
from anabranch.syntax.sparql.parser import parse_query, parse_script

PREFIXES = "PREFIX : <http://e/> PREFIX ex: <http://e/>\n"


def query(text: str) -> t.QueryTree:
    return parse_query(PREFIXES + text).query


def elements(body: str) -> tuple[t.ElementTree, ...]:
    where = query(f"SELECT * WHERE {{ {body} }}").where
    assert where is not None
    return where.elements


def triples(body: str) -> tuple[t.TripleTree, ...]:
    (block,) = elements(body)
    assert isinstance(block, t.TriplesTree)
    return block.triples


def expression(text: str) -> t.ExpressionTree:
    (condition,) = elements(f"FILTER({text})")
    assert isinstance(condition, t.FilterTree)
    return condition.condition


def path(text: str) -> PropertyPath:
    (triple,) = triples(f"?x {text} ?y")
    assert isinstance(triple.predicate, t.PathTree)
    return triple.predicate.path


def term(text: str) -> t.NodeTree:
    return triples(f"?x ?y {text}")[0].object


def iri(name: str) -> t.TermTree:
    return t.TermTree(Iri(f"http://e/{name}"))


def integer(lexical: str) -> t.TermTree:
    return t.TermTree(Literal(lexical, XSD_INTEGER))


X, Y, Z = t.VarTree("x"), t.VarTree("y"), t.VarTree("z")
P, Q = PathLink(Iri("http://e/p")), PathLink(Iri("http://e/q"))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1", Literal("1", XSD_INTEGER)),
        ("-1", Literal("-1", XSD_INTEGER)),
        ("+1.50", Literal("+1.50", XSD_DECIMAL)),
        (".5", Literal(".5", XSD_DECIMAL)),
        ("1e6", Literal("1e6", XSD_DOUBLE)),
        ("1.E-6", Literal("1.E-6", XSD_DOUBLE)),
        ("TRUE", Literal("true", XSD + "boolean")),
        ("'a\"b'", Literal('a"b')),
        ('"a\\tb\\n\\\\ \\u00e9 \\U0001F600"', Literal("a\tb\n\\ é \U0001f600")),
        ('"""two\nlines "" with quotes"""', Literal('two\nlines "" with quotes')),
        ("''''a' b'''", Literal("'a' b")),
        ('""', Literal("")),
        ('""""""', Literal("")),
        ('"\\\\u0041"', Literal("\\u0041")),
        ('"chat"@FR-be', tagged("chat", "fr-be")),
        ("'5'^^ex:meters", Literal("5", "http://e/meters")),
        ("<http://e/\\u00e9#x>", Iri("http://e/é#x")),
        ("ex:a.b", Iri("http://e/a.b")),
        ("ex:a%20b", Iri("http://e/a%20b")),
        ("ex:a\\-b\\,c", Iri("http://e/a-b,c")),
        ("ex:1:2:x", Iri("http://e/1:2:x")),
        ("ex:", Iri("http://e/")),
        (":größe\U0001f600", Iri("http://e/größe\U0001f600")),
        ("()", RDF_NIL),
    ],
)
def test_terms_are_read_as_they_are_written(text: str, meant: Iri | Literal) -> None:
    assert term(text) == t.TermTree(meant)


def test_a_dot_after_a_name_or_a_number_ends_the_triple() -> None:
    assert triples("?x ex:a.b 1. ?y ex:c.d ?z.") == (
        t.TripleTree(X, iri("a.b"), integer("1")),
        t.TripleTree(Y, iri("c.d"), Z),
    )


def test_escapes_stand_for_characters_outside_of_strings_too() -> None:
    text = "SELECT ?caf\\u00e9 WHERE { ?caf\\u00e9 ?p oops:x }"
    with pytest.raises(QuerySyntaxError) as caught:
        parse_query(text)
    (problem,) = caught.value.diagnostics
    assert problem.span == Span(text.index("oops"), text.index("oops") + 5)
    assert query("SELECT ?caf\\u00e9 { }") == query("SELECT ?café { }")


def test_an_escape_is_unescaped_once() -> None:
    with pytest.raises(QuerySyntaxError):
        parse_query("SELECT * WHERE { ?s ?p \\U0000005cu0031 . }")


def test_keywords_come_in_any_case_but_a() -> None:
    assert query("select distinct ?x where { ?x a ex:T optional { ?x ex:p ?y } } order by desc(?x) limit 1") == query(
        "SELECT DISTINCT ?x WHERE { ?x a ex:T OPTIONAL { ?x ex:p ?y } } ORDER BY DESC(?x) LIMIT 1"
    )
    with pytest.raises(QuerySyntaxError):
        query("SELECT * { ?x A ex:T }")


def test_names_that_begin_like_keywords_are_names() -> None:
    found = parse_query("PREFIX a: <http://a/> PREFIX select: <http://s/> SELECT * { a:a a select:filter }").query.where
    assert found is not None
    assert found.elements == (
        t.TriplesTree(
            (t.TripleTree(t.TermTree(Iri("http://a/a")), t.TermTree(RDF_TYPE), t.TermTree(Iri("http://s/filter"))),)
        ),
    )


def test_comments_reach_to_the_end_of_the_line_and_do_not_begin_inside_of_iris_and_strings() -> None:
    (triple,) = triples("?x # a comment with ' and <\n <http://e/#p> '#no' # end\n")
    assert triple == t.TripleTree(X, iri("#p"), t.TermTree(Literal("#no")))


# --- triples ---


def test_lists_of_properties_and_objects_are_spelled_out() -> None:
    assert triples("?x ex:p 1, 2 ; ex:q ?y ;") == (
        t.TripleTree(X, iri("p"), integer("1")),
        t.TripleTree(X, iri("p"), integer("2")),
        t.TripleTree(X, iri("q"), Y),
    )


def test_blank_node_properties_become_triples_of_an_anonymous_node() -> None:
    outer, inner = triples("?x ex:p [ ex:q ?y ]")
    assert isinstance(outer.object, t.BlankTree)
    assert outer.object.label.startswith(" ")
    assert inner == t.TripleTree(outer.object, iri("q"), Y)
    assert len({one.subject for one in triples("[] ex:p 1 . [] ex:p 2")}) == 2
    assert [one.predicate for one in triples("[ ex:p 1 ] ex:q 2 .")] == [iri("p"), iri("q")]


def test_a_collection_is_a_chain_of_first_and_rest() -> None:
    use, first, rest, second, end = triples("?x ex:p (1 ?y)")
    assert (first.subject, first.predicate, first.object) == (use.object, t.TermTree(RDF_FIRST), integer("1"))
    assert (rest.subject, rest.predicate, rest.object) == (use.object, t.TermTree(RDF_REST), second.subject)
    assert (end.subject, end.predicate, end.object) == (second.subject, t.TermTree(RDF_REST), t.TermTree(RDF_NIL))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("^ex:p", Inverse(P)),
        ("ex:p/ex:q/ex:p", Sequence((P, Q, P))),
        ("ex:p|ex:q", Alternative((P, Q))),
        ("ex:p|ex:q/^ex:p", Alternative((P, Sequence((Q, Inverse(P)))))),
        ("(ex:p/ex:q)*", Repeat(Sequence((P, Q)), 0)),
        ("ex:p+", Repeat(P, 1)),
        ("ex:p?", Repeat(P, 0, 1)),
        ("^ex:p+", Inverse(Repeat(P, 1))),
        ("a/ex:p", Sequence((PathLink(RDF_TYPE), P))),
        ("!ex:p", NegatedStep((P.iri,), None)),
        ("!^ex:p", NegatedStep(None, (P.iri,))),
        ("!(ex:p|^ex:q|a)", NegatedStep((P.iri, RDF_TYPE), (Q.iri,))),
        ("!a", NegatedStep((RDF_TYPE,), None)),
        ("!()", NegatedStep((), None)),
    ],
)
def test_property_paths(text: str, meant: PropertyPath) -> None:
    assert path(text) == meant


def test_a_path_of_one_iri_is_a_plain_predicate() -> None:
    assert triples("?x (ex:p) ?y") == triples("?x ex:p ?y")


def test_a_question_mark_with_a_name_is_a_variable_and_a_sign_with_a_digit_a_number() -> None:
    assert triples("?x ex:p?y") == triples("?x ex:p ?y")
    assert triples("?x ex:p+1") == (t.TripleTree(X, iri("p"), integer("+1")),)


# --- expressions ---


def binary(operator: str, left: t.ExpressionTree, right: t.ExpressionTree) -> t.BinaryTree:
    return t.BinaryTree(operator, left, right)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("?x || ?y && ?z", binary("||", X, binary("&&", Y, Z))),
        ("?x = ?y + ?z * 2", binary("=", X, binary("+", Y, binary("*", Z, integer("2"))))),
        ("?x - ?y - ?z", binary("-", binary("-", X, Y), Z)),
        ("?x -1", binary("-", X, integer("1"))),
        ("?x-1", binary("-", X, integer("1"))),
        ("?x - 1", binary("-", X, integer("1"))),
        ("?x +1*?y", binary("+", X, binary("*", integer("1"), Y))),
        ("?x * -1", binary("*", X, integer("-1"))),
        ("!?x", t.UnaryTree("!", X)),
        ("-?x", t.UnaryTree("-", X)),
        ("-(?x)", t.UnaryTree("-", X)),
        ("?x<?y", binary("<", X, Y)),
        ("?x < ?y && ?y > ?z", binary("&&", binary("<", X, Y), binary(">", Y, Z))),
        ("?x <= <http://e/y>", binary("<=", X, iri("y"))),
        ("?x IN (1, ?y)", t.InTree(X, (integer("1"), Y), False)),
        ("?x not in ()", t.InTree(X, (), True)),
        ("strlen(?x)", t.CallTree("STRLEN", (X,))),
        ("IF(BOUND(?x), NOW(), COALESCE())", None),
        ("ex:f(DISTINCT ?x, 1)", t.CallTree(Iri("http://e/f"), (X, integer("1")), True)),
        ("ex:f()", t.CallTree(Iri("http://e/f"), ())),
        ("EXISTS { }", t.ExistsTree(t.GroupTree(()), False)),
        ("NOT EXISTS { }", t.ExistsTree(t.GroupTree(()), True)),
    ],
)
def test_expressions(text: str, meant: t.ExpressionTree | None) -> None:
    if meant is None:
        meant = t.CallTree("IF", (t.CallTree("BOUND", (X,)), t.CallTree("NOW", ()), t.CallTree("COALESCE", ())))
    assert expression(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("COUNT(*)", t.AggregateTree("COUNT", None)),
        ("count(distinct *)", t.AggregateTree("COUNT", None, True)),
        ("SUM(?x)", t.AggregateTree("SUM", X)),
        ("GROUP_CONCAT(DISTINCT ?x ; SEPARATOR = ', ')", t.AggregateTree("GROUP_CONCAT", X, True, ", ")),
        ("GROUP_CONCAT(?x)", t.AggregateTree("GROUP_CONCAT", X)),
    ],
)
def test_aggregates(text: str, meant: t.AggregateTree) -> None:
    form = query(f"SELECT ({text} AS ?n) {{ }}").form
    assert isinstance(form, t.SelectTree)
    assert form.items == (t.ItemTree(t.VarTree("n"), meant),)


def test_a_very_long_disjunction_makes_a_flat_tree() -> None:
    def depth(one: t.ExpressionTree) -> int:
        return 1 + max(depth(one.left), depth(one.right)) if isinstance(one, t.BinaryTree) else 0

    assert depth(expression(" || ".join(["?x"] * 5000))) < 60


# --- groups ---


def test_the_elements_of_a_group_keep_their_order() -> None:
    kinds = [
        type(one).__name__
        for one in elements(
            "?x ?p 1 . OPTIONAL { } ?x ?p 2 FILTER(?x) . MINUS { } GRAPH ?g { } SERVICE SILENT <s> { } BIND(1 AS ?b) "
            "VALUES ?v { 1 } { } { } UNION { } UNION { }"
        )
    ]
    assert kinds == [
        *("TriplesTree", "OptionalTree", "TriplesTree", "FilterTree", "MinusTree", "GraphTree", "ServiceTree"),
        *("BindTree", "ValuesTree", "GroupTree", "UnionTree"),
    ]


def test_values_have_rows_and_undef() -> None:
    assert elements("VALUES (?x ?y) { (1 UNDEF) (ex:a 'b') }") == (
        t.ValuesTree((X, Y), ((integer("1"), None), (iri("a"), t.TermTree(Literal("b"))))),
    )
    assert elements("VALUES () { () () }") == (t.ValuesTree((), ((), ())),)
    assert query("SELECT * { } VALUES ?x { 1 }").values == t.ValuesTree((X,), ((integer("1"),),))


def test_a_subselect_is_the_whole_of_its_group() -> None:
    (group,) = elements("{ SELECT ?x { ?x ?y ?z } LIMIT 1 VALUES ?x { 1 } }")
    assert isinstance(group, t.GroupTree)
    (inner,) = group.elements
    assert isinstance(inner, t.SubSelectTree)
    assert inner.query.limit == 1
    assert inner.query.values is not None


# --- forms and modifiers ---


def test_modifiers() -> None:
    found = query(
        "SELECT ?x (SUM(?y) AS ?n) { } GROUP BY ?x (?y + 1 AS ?z) STR(?x) HAVING (?n > 1) (?n < 9) "
        "ORDER BY ?x DESC(?n) STR(?x) OFFSET 5 LIMIT 3"
    )
    assert found.group_by == (
        t.ItemTree(X),
        t.ItemTree(Z, binary("+", Y, integer("1"))),
        t.ItemTree(None, t.CallTree("STR", (X,))),
    )
    assert len(found.having) == 2
    assert [one.descending for one in found.order_by] == [False, True, False]
    assert (found.limit, found.offset) == (3, 5)


def test_the_four_forms() -> None:
    assert query("SELECT REDUCED * { }").form == t.SelectTree(None, reduced=True)
    assert query("ASK { }").form == t.AskTree()
    assert query("CONSTRUCT { ?x ex:p ?y } { }").form == t.ConstructTree((t.TripleTree(X, iri("p"), Y),))
    assert query("DESCRIBE ?x <http://e/y>").form == t.DescribeTree((X, iri("y")))
    assert query("DESCRIBE * { ?x ?y ?z }").form == t.DescribeTree(None)
    short = query("CONSTRUCT FROM <http://e/g> WHERE { ?x ?y ?z }")
    assert short.form == t.ConstructTree(None)
    assert short.dataset == (t.FromTree(Iri("http://e/g"), False),)
    assert short.where == t.GroupTree((t.TriplesTree((t.TripleTree(X, Y, Z),)),))
    assert query("DESCRIBE ?x").where is None


def test_the_dataset_stands_before_the_pattern_and_the_tree_says_where() -> None:
    text = "SELECT * FROM <http://e/a> FROM NAMED <http://e/b> WHERE { }"
    found = parse_query(text).query
    assert found.dataset == (t.FromTree(Iri("http://e/a"), False), t.FromTree(Iri("http://e/b"), True))
    assert found.dataset_at == text.index("FROM")
    assert parse_query("ASK WHERE { }").query.dataset_at == len("ASK ")
    assert parse_query("ASK { }").query.dataset_at == len("ASK ")
    assert parse_query("DESCRIBE <http://e/x>").query.dataset_at == len("DESCRIBE <http://e/x>")


def test_spans_point_at_the_text() -> None:
    text = "SELECT * { ?s ?p ?o FILTER(?o > 1) }"
    where = parse_query(text).query.where
    assert where is not None
    block, condition = where.elements
    assert block.span is not None
    assert text[block.span.start : block.span.end] == "?s ?p ?o"
    assert isinstance(condition, t.FilterTree)
    span = condition.condition.span
    assert span is not None
    assert "?o > 1" in text[span.start : span.end]


def test_a_file_may_hold_several_plain_queries() -> None:
    script = parse_script("PREFIX ex: <http://e/> ASK { } ; SELECT * { ?x ex:p ?y }", "sparql")
    assert [type(one.query.form) for one in script.statements] == [t.AskTree, t.SelectTree]


def test_statements_carry_their_prefixes_and_base() -> None:
    statement = parse_query("BASE <http://e/d/> PREFIX ex: <x#> ASK { ex:a <../b> <> }")
    assert statement.base == "http://e/d/"
    assert statement.prefixes == (("ex", "http://e/d/x#"),)
    assert statement.query.where == t.GroupTree((t.TriplesTree((t.TripleTree(iri("d/x#a"), iri("b"), iri("d/")),)),))
