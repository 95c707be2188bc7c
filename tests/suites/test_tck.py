"""The openCypher TCK, scenario by scenario, from the folder ANABRANCH_SUITES (by default ../shared/suites)."""

from __future__ import annotations

from typing import Any

import pytest

from . import tck

MOST_EXCEPTIONS = 0.01


@pytest.mark.parametrize("scenario", tck.scenarios(), ids=lambda scenario: scenario["id"])
def test_scenario(scenario: dict[str, Any]) -> None:
    problem = tck.run(scenario)
    if scenario["id"] in tck.exceptions():
        assert problem is not None, "this scenario passes now: take it off tck_exceptions.txt"
    else:
        assert problem is None, f"{scenario['name']}\n{scenario['query']}\n{problem}"


@pytest.mark.skipif(not tck.scenarios(), reason=f"the TCK is not at {tck.suites_folder()}")
def test_at_most_one_in_a_hundred_scenarios_is_excepted() -> None:
    excepted = [scenario for scenario in tck.scenarios() if scenario["id"] in tck.exceptions()]
    assert len(excepted) <= MOST_EXCEPTIONS * len(tck.scenarios())
