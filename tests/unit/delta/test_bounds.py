"""Kernels read and write nothing outside of their arrays: their tests once more, compiled with bounds checks.

Chosen are the tests that drive every kernel through growing, shrinking, hashing and looking ahead, few seeds of each: a
minute of compiling and one of running. Without checks such an access goes unnoticed, or ends the process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

OUTSIDE = """
import numpy as np
from anabranch.delta.kernels.forest import forest
forest(np.array([0, 9]), np.arange(1), np.arange(2), np.empty(1, np.int64))
"""


def seeds(name: str, count: int) -> list[str]:
    return [f"{name}[{seed}]" for seed in range(count)]


CHOSEN = [
    "test_log_matcher.py",
    "test_trace.py",
    "test_texts.py",
    "test_extremes.py",
    "test_number_groups.py",
    "test_ordering.py",
    *seeds("test_number_sums.py::test_sums_are_exact", 20),
    *seeds("test_evaluation.py::test_random_conjunctions_over_random_facts_match_as_defined", 20),
    *seeds("test_evaluation.py::test_stars_on_a_chain_match_as_defined_however_many_facts_a_row_has", 10),
    *seeds("test_evaluation.py::test_several_windows_at_once_have_the_matches_of_each", 20),
    "test_evaluation.py::test_copies_among_the_many_facts_of_a_hub_are_found",
    "test_evaluation.py::test_far_more_matches_than_the_sizes_let_expect_are_all_found",
    *seeds("paths/test_matcher.py::test_random_paths_over_random_slides", 20),
    "paths/test_matcher.py::test_arrays_grow_with_the_window_and_shrink_when_it_empties",
    "paths/test_matcher.py::test_few_seeds_at_a_time_lead_to_the_same",
    "paths/test_matcher.py::test_ticks_are_counted_from_a_base_that_follows",
    *seeds("paths/test_components.py::test_the_changes_add_up_to_what_a_naive_search_finds", 5),
    "paths/test_shortest.py::test_kernels_have_one_signature",
    "connectivity/test_bic.py::test_numbers_that_were_taken_back_may_mean_other_vertices",
    "connectivity/test_bic.py::test_the_room_of_vertices_that_have_gone_is_given_back",
    "connectivity/test_recency.py::test_batches_long_enough_to_look_ahead",
    "connectivity/test_recency.py::test_asking_for_most_vertices_and_for_few_gives_the_same",
    "connectivity/test_vertices.py::test_memory_is_given_back_when_most_vertices_are",
    "connectivity/test_vertices.py::test_numbers_are_those_of_a_dictionary",
    "connectivity/test_slides.py",
    *(
        f"../engine/test_graph_window.py::test_facts_are_those_of_the_union[{seed}-{whole}]"
        for seed in range(10)
        for whole in (False, True)
    ),
    *seeds("../formats/test_graph_lines.py::test_drawn_lines_have_the_events_of_the_exact_reader", 1),
    *seeds(
        "../formats/test_graph_lines.py::test_lines_with_changed_bytes_are_regular_only_if_the_exact_reader_agrees", 1
    ),
    *seeds("../formats/test_graph_batches.py::test_drawn_batches_have_the_events_of_the_exact_reader", 2),
]


def checked(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with bounds checks and a cache of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = inherited | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=HERE.parents[2], capture_output=True, text=True, check=False)


def test_kernels_stay_within_their_arrays(tmp_path: Path) -> None:
    chosen = [str(HERE / one) for one in CHOSEN]
    run = checked(tmp_path, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-2000:]


def test_an_access_outside_of_an_array_is_found(tmp_path: Path) -> None:
    run = checked(tmp_path, "-c", OUTSIDE)
    assert "IndexError" in run.stderr
