"""References against a base: the examples of RFC 3986, section 5.4, and schemes without a hierarchy."""

from __future__ import annotations

import pytest

from anabranch.syntax.sparql.prologue import Prologue, resolve

BASE = "http://a/b/c/d;p?q"


@pytest.mark.parametrize(
    ("reference", "meant"),
    [
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("..g", "http://a/b/c/..g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("http:g", "http:g"),
    ],
)
def test_references_of_rfc_3986(reference: str, meant: str) -> None:
    assert resolve(reference, BASE) == meant


@pytest.mark.parametrize(
    ("reference", "base", "meant"),
    [
        ("#x", "urn:example:a", "urn:example:a#x"),
        ("b", "tag:e.org,2026:a/c", "tag:e.org,2026:a/b"),
        ("x", "http://a", "http://a/x"),
        ("../x", "file:///a/b/c", "file:///a/x"),
        ("x//y", "http://a/b/", "http://a/b/x//y"),
    ],
)
def test_any_scheme_can_be_a_base(reference: str, base: str, meant: str) -> None:
    assert resolve(reference, base) == meant


def test_without_a_base_a_reference_stays_as_it_is() -> None:
    assert Prologue().resolve("../x") == "../x"


def test_a_declared_prefix_goes_before_an_assumed_one() -> None:
    prologue = Prologue({"t": "http://assumed/"})
    assert prologue.namespace("t") == "http://assumed/"
    prologue.declare("t", "http://declared/")
    assert prologue.namespace("t") == "http://declared/"
