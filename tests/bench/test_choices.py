"""Auto beside every forced way, on tiny input."""

from __future__ import annotations

import choices
import pytest


@pytest.mark.parametrize("shape", choices.SHAPES, ids=lambda shape: shape.name)
def test_every_way_answers_the_slides_that_are_measured(shape: choices.Shape) -> None:
    (record,) = choices.measured([choices.Setting(shape, 60, 10, 1)], 1, 3)
    assert set(record["ms"]) == set(choices.WAYS) - ({"semijoin"} if shape.is_graph else set())
    assert record["slides"] == 3
    assert record["ratio"] > 0


def test_the_summary_counts_the_cells_above_the_goal() -> None:
    told = choices.summary([{"ratio": 1.0}, {"ratio": 1.3}, {"ratio": 1.25}])
    assert (told["cells"], told["above"], told["worst"]) == (3, 1, 1.3)
