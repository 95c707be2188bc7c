"""The signatures that queries are checked against and the functions that run are the same set."""

from __future__ import annotations

from anabranch.algebra.functions import CONNECTIVITY, OPERATORS
from anabranch.algebra.functions import FUNCTIONS as SIGNATURES
from anabranch.snapshot.aggregates import AGGREGATES
from anabranch.snapshot.functions import CONTEXT_FUNCTIONS, FUNCTIONS

LOWERED_AWAY = {"exists", *CONNECTIVITY}  # become a null test, an Exists expression, or expressions of their own


def test_every_scalar_function_that_can_be_named_can_run_and_the_other_way_round() -> None:
    named = {name for name, signature in SIGNATURES.items() if not signature.aggregate} - LOWERED_AWAY
    assert (set(FUNCTIONS) | set(CONTEXT_FUNCTIONS)) - LOWERED_AWAY == named | OPERATORS


def test_every_aggregate_that_can_be_named_can_run_and_the_other_way_round() -> None:
    assert set(AGGREGATES) == {name for name, signature in SIGNATURES.items() if signature.aggregate}
