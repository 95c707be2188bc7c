"""The properties that a session is started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.spark.session import SparkSettings, properties


@pytest.mark.parametrize(
    ("master", "meant"),
    [
        ("local[*]", "local[*,8]"),
        ("local[2]", "local[2,8]"),
        ("local", "local[1,8]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_a_local_master_tries_a_task_again_whose_worker_was_killed(master: str, meant: str) -> None:
    assert properties(SparkSettings(master), Path("/x"))["spark.master"] == meant


def test_a_property_of_the_user_wins() -> None:
    found = properties(SparkSettings(conf={"spark.ui.enabled": "true"}), Path("/x"))
    assert found["spark.ui.enabled"] == "true"


def test_all_temporary_files_go_to_the_run_s_own_scratch_space() -> None:
    found = properties(SparkSettings(), Path("/run/scratch"))
    assert found["spark.local.dir"] == "/run/scratch"
    assert "-Djava.io.tmpdir=/run/scratch" in found["spark.driver.extraJavaOptions"]


def test_a_cluster_is_not_told_to_talk_to_the_loopback_interface() -> None:
    assert "spark.driver.host" not in properties(SparkSettings("spark://host:7077"), Path("/x"))
