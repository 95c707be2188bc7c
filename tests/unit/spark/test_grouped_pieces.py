"""Pieces that are read by one task: side by side, in their order, none twice and none lost."""

from __future__ import annotations

import pytest

from anabranch.sources.base import Piece
from anabranch.spark.source import grouped


@pytest.mark.parametrize(("count", "most"), [(0, 4), (1, 4), (4, 4), (5, 4), (14, 4), (100, 7), (3, 1)])
def test_every_piece_is_in_one_group_and_groups_are_about_the_same(count: int, most: int) -> None:
    pieces = [Piece("s", "", order, {}) for order in range(count)]
    groups = grouped(pieces, most)
    assert [piece for group in groups for piece in group] == pieces
    assert len(groups) == min(count, most)
    assert all(groups)
    assert not groups or max(map(len, groups)) - min(map(len, groups)) <= 1
