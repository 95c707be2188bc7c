"""Groups become operators bottom-up, as section 18.2.2 of SPARQL 1.1 says."""

from __future__ import annotations

from tests.unit.syntax.sparql.texts import HERE, PREFIXES, basic, iri, number, plan

from anabranch.algebra.expressions import Call, Constant, Exists, Not, Variable
from anabranch.algebra.operators import (
    Argument,
    Extend,
    Filter,
    Join,
    LeftJoin,
    MergedSource,
    Project,
    Static,
    Union,
    Unit,
)
from anabranch.algebra.triples import (
    GraphPattern,
    Inverse,
    Minus,
    Path,
    PathLink,
    Repeat,
    Sequence,
    TriplePattern,
    Values,
    Var,
)


def less(left: str, right: int) -> Call:
    return Call("sparql:less", (Variable(left), Constant(number(right))))


def test_triples_on_both_sides_of_a_filter_are_one_pattern() -> None:
    found = plan("SELECT * { ?x :p ?y FILTER(?y < 3) ?y :q ?z }")
    assert found == Filter(basic("?x p ?y", "?y q ?z"), less("y", 3))


def test_blank_nodes_are_columns_that_nobody_can_name() -> None:
    found = plan("SELECT * { _:b :p ?y }")
    assert found == Project(basic("_:b p ?y"), (("y", Variable("y")),))


def test_an_empty_group_is_one_row() -> None:
    assert plan("SELECT * { }") == Unit()


def test_several_filters_hold_together() -> None:
    condition = plan("SELECT * { ?x :p ?y FILTER(?y < 3) FILTER(?x < 4) }").condition  # type: ignore[attr-defined]
    assert condition.operands == (less("y", 3), less("x", 4))


def test_optional_takes_its_own_filters_as_the_condition() -> None:
    found = plan("SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z FILTER(?y < 3) } }")
    assert found == LeftJoin(basic("?x p ?y"), basic("?x q ?z"), less("y", 3))


def test_a_filter_in_a_group_inside_of_optional_stays_inside() -> None:
    found = plan("SELECT * { ?x :p ?y OPTIONAL { { ?x :q ?z FILTER(?y < 3) } } }")
    inner = Filter(basic("?x q ?z"), Call("sparql:less", (Constant(None), Constant(number(3)))))
    assert found == LeftJoin(basic("?x p ?y"), inner)


def test_union_pads_the_columns_that_a_side_lacks() -> None:
    found = plan("SELECT * { { ?x :p ?y } UNION { ?x :q ?z } }")
    assert found == Union(
        Project(basic("?x p ?y"), (("x", Variable("x")), ("y", Variable("y")), ("z", Constant(None)))),
        Project(basic("?x q ?z"), (("x", Variable("x")), ("y", Constant(None)), ("z", Variable("z")))),
    )


def test_a_thousand_unions_make_a_shallow_plan() -> None:
    found = plan("SELECT * {" + " UNION ".join(["{ ?x :p ?y }"] * 1000) + "}")
    depth = 0
    while isinstance(found, Union):
        found, depth = found.left, depth + 1
    assert depth == 10


def test_a_join_on_certainly_bound_variables_is_strict() -> None:
    assert plan("SELECT * { ?x :p ?y { ?x :q ?z } }") == Join(basic("?x p ?y"), basic("?x q ?z"))


def test_a_join_is_lenient_where_a_shared_variable_may_be_unbound() -> None:
    found = plan("SELECT * { OPTIONAL { ?x :p ?y } ?x :q ?z }")
    assert found == Join(LeftJoin(Unit(), basic("?x p ?y")), basic("?x q ?z"), lenient=True)


def test_undef_in_values_makes_the_join_lenient() -> None:
    found = plan("SELECT * { ?x :p ?y VALUES (?x ?y) { (:a UNDEF) (:b :c) } }")
    values = Values(("x", "y"), ((iri("a"), None), (iri("b"), iri("c"))))
    assert found == Join(basic("?x p ?y"), values, lenient=True)


def test_values_without_undef_joins_strictly() -> None:
    found = plan("SELECT * { ?x :p ?y VALUES ?x { :a } }")
    assert found == Join(basic("?x p ?y"), Values(("x",), ((iri("a"),),)))


def test_minus_without_a_shared_variable_takes_nothing_away() -> None:
    assert plan("SELECT * { ?x :p ?y MINUS { ?a :p ?b } }") == basic("?x p ?y")


def test_minus_with_a_shared_variable_is_an_operator() -> None:
    assert plan("SELECT * { ?x :p ?y MINUS { ?x :q 1 } }") == Minus(basic("?x p ?y"), basic("?x q 1"))


def test_bind_adds_a_column_and_ends_the_basic_graph_pattern() -> None:
    found = plan("SELECT * { ?x :p ?y BIND(?y AS ?z) ?y :q ?w }")
    assert found == Join(Extend(basic("?x p ?y"), "z", Variable("y")), basic("?y q ?w"))


def test_a_subselect_shows_only_what_it_projects() -> None:
    found = plan("SELECT * { ?x :p ?y { SELECT ?y { ?y :q ?x } } }")
    assert found == Join(basic("?x p ?y"), Project(basic("?y q ?x"), (("y", Variable("y")),)))


# --- EXISTS ---


def test_exists_begins_with_the_outer_row_so_that_filters_inside_see_it() -> None:
    found = plan("SELECT * { ?x :p ?y FILTER EXISTS { ?x :q ?z FILTER(?y < 3) } }")
    inner = Filter(Join(Argument(("x", "y")), basic("?x q ?z")), less("y", 3))
    assert found == Filter(basic("?x p ?y"), Exists(inner))


def test_not_exists_is_its_negation() -> None:
    found = plan("SELECT * { ?x :p ?y FILTER NOT EXISTS { ?x :q ?z } }")
    assert found == Filter(basic("?x p ?y"), Not(Exists(Join(Argument(("x",)), basic("?x q ?z")))))


def test_groups_inside_of_exists_see_the_outer_row_too() -> None:
    found = plan("SELECT * { ?x :p ?y FILTER EXISTS { { ?x :q 1 FILTER(?y < 3) } UNION { ?y :q 2 } } }")
    row = Argument(("x", "y"))
    union = Union(Filter(Join(row, basic("?x q 1")), less("y", 3)), Join(row, basic("?y q 2")))
    assert found == Filter(basic("?x p ?y"), Exists(union))


def test_exists_that_mentions_nothing_of_the_row_is_given_nothing() -> None:
    found = plan("SELECT * { ?x :p ?y FILTER EXISTS { ?a :q ?b } }")
    assert found == Filter(basic("?x p ?y"), Exists(basic("?a q ?b")))


def test_minus_inside_of_exists_ignores_columns_that_came_from_outside() -> None:
    found = plan("SELECT * { ?x :p ?y FILTER EXISTS { ?z :q ?x MINUS { ?z :r 1 FILTER(?y < 3) } } }")
    minus = found.condition.plan  # type: ignore[attr-defined]
    assert isinstance(minus, Minus)
    assert minus.right.columns == ("z",)


# --- paths ---


def test_a_sequence_shares_a_fresh_variable_in_one_pattern() -> None:
    found = plan("SELECT * { ?x :p/:q ?y }")
    middle = Var(" path1")
    assert found.input == GraphPattern(  # type: ignore[attr-defined]
        HERE, (TriplePattern(Var("x"), iri("p"), middle), TriplePattern(middle, iri("q"), Var("y")))
    )
    assert found.columns == ("x", "y")


def test_an_inverse_swaps_the_ends() -> None:
    assert plan("SELECT ?x ?y { ?x ^:p ?y }").input == basic("?y p ?x")  # type: ignore[attr-defined]


def test_alternatives_keep_duplicates_as_a_union() -> None:
    assert plan("SELECT ?x ?y { ?x :p|:q ?y }") == Union(basic("?x p ?y"), basic("?x q ?y"))


def test_a_repeat_keeps_the_path_inside() -> None:
    found = plan("SELECT ?x ?y { ?x (:p/^:q)* ?y }")
    inner = Sequence((PathLink(iri("p")), Inverse(PathLink(iri("q")))))
    assert found == Path(HERE, Var("x"), Repeat(inner, 0), Var("y"))


def test_a_path_between_triples_splits_them_in_the_order_of_the_text() -> None:
    found = plan("SELECT ?x ?y ?z { ?x a :T . ?x :p+ ?y . ?y :q ?z }")
    assert isinstance(found, Join)
    assert found.right == basic("?y q ?z")
    assert isinstance(found.left, Join)
    assert isinstance(found.left.right, Path)


def test_a_negated_set_tests_the_predicate() -> None:
    found = plan("SELECT ?x ?y { ?x !(:p) ?y }")
    predicate = " predicate1"
    pattern = GraphPattern(HERE, (TriplePattern(Var("x"), Var(predicate), Var("y")),))
    test = Not(Call("sparql:sameterm", (Variable(predicate), Constant(iri("p")))))
    assert found.input == Filter(pattern, test)  # type: ignore[attr-defined]


def test_a_negated_set_in_both_directions_is_a_union() -> None:
    found = plan("SELECT ?x ?y { ?x !(:p|^:q) ?y }")
    assert isinstance(found, Union)
    assert found.columns == ("x", "y")


# --- GRAPH ---


def test_graph_of_a_name_reads_that_graph() -> None:
    found = plan("SELECT * { GRAPH :g { ?x :p ?y } }")
    assert found == basic("?x p ?y", source=Static("http://e/g"))


def test_graph_variable_ranges_over_the_named_graphs() -> None:
    found = plan("SELECT ?g ?x ?y { GRAPH ?g { ?x :p ?y } }", graphs=("http://e/a", "http://e/b"))
    assert found.input == Union(  # type: ignore[attr-defined]
        Extend(basic("?x p ?y", source=Static("http://e/a")), "g", Constant(iri("a"))),
        Extend(basic("?x p ?y", source=Static("http://e/b")), "g", Constant(iri("b"))),
    )


def test_a_pattern_that_mentions_the_graph_variable_joins_with_the_name() -> None:
    found = plan("SELECT ?g ?x { GRAPH ?g { ?x :p ?g } }", graphs=("http://e/a",))
    name = Values(("g",), ((iri("a"),),))
    assert found.input == Join(basic("?x p ?g", source=Static("http://e/a")), name)  # type: ignore[attr-defined]


def test_an_expression_inside_of_the_group_does_not_see_the_name_of_its_graph() -> None:
    found = plan("SELECT ?g ?x { GRAPH ?g { ?x :p ?y FILTER(?g = :a) } }", graphs=("http://e/a",))
    inside = basic("?x p ?y", source=Static("http://e/a"))
    tested = Filter(inside, Call("sparql:equal", (Constant(None), Constant(iri("a")))))
    assert found.input == Extend(tested, "g", Constant(iri("a")))  # type: ignore[attr-defined]


def test_graph_variable_without_any_named_graph_has_no_rows() -> None:
    found = plan("SELECT ?g ?x { GRAPH ?g { ?x :p ?y } }")
    assert found.input == Values(("x", "y", "g"), ())  # type: ignore[attr-defined]


def test_a_graph_that_the_dataset_does_not_have_has_no_rows() -> None:
    found = plan("SELECT ?x ?y FROM :a FROM NAMED :b { GRAPH :c { ?x :p ?y } }")
    assert found == Values(("x", "y"), ())


def test_several_from_clauses_are_merged() -> None:
    found = plan("SELECT * FROM :a FROM :b { ?x :p ?y }")
    assert found == basic("?x p ?y", source=MergedSource((Static("http://e/a"), Static("http://e/b"))))


def test_service_silent_is_passed_over() -> None:
    assert plan("SELECT * { ?x :p ?y SERVICE SILENT :s { ?x :q ?z } }") == basic("?x p ?y")


def test_spans_reach_the_operators() -> None:
    text = "SELECT * { ?x :p ?y OPTIONAL { ?x :q ?z } }"
    span = plan(text).span
    assert span is not None
    assert (PREFIXES + text)[span.start : span.end] == "OPTIONAL { ?x :q ?z }"
