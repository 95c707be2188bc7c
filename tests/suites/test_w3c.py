"""The W3C SPARQL suites, test by test, from the folder ANABRANCH_SUITES (by default ../shared/suites)."""

from __future__ import annotations

from typing import Any

import pytest

from . import w3c

MOST_EXCEPTIONS = 0.01


@pytest.mark.parametrize("test", w3c.tests(), ids=w3c.name)
def test_w3c(test: dict[str, Any]) -> None:
    if missing := w3c.missing(test):
        pytest.skip(f"the suite's folder lacks {', '.join(missing)}")
    problem = w3c.run(test)
    if w3c.name(test) in w3c.exceptions():
        assert problem is not None, "this test passes now: take it off w3c_exceptions.txt"
    else:
        query = (w3c.folder() / test["query"]).read_text(encoding="utf-8")
        assert problem is None, f"{test['name']}\n{query}\n{problem}"


@pytest.mark.skipif(not w3c.tests(), reason=f"the W3C suites are not at {w3c.folder()}")
def test_at_most_one_in_a_hundred_is_left_out() -> None:
    known = {w3c.name(test) for test in w3c.tests()}
    left_out = [name for name in w3c.exceptions() if name in known]
    assert len(left_out) <= MOST_EXCEPTIONS * len(known)
