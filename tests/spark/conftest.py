"""One Spark session for all tests of this folder; a test has a run folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.spark_runs import Runner

from anabranch.spark import session as spark_session
from anabranch.spark.session import RunningSpark, SparkSettings


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them in one worker: a second session would cost more than it saves."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark"))
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSpark]:
    folder = tmp_path_factory.mktemp("spark")
    scratch = folder / "scratch"
    scratch.mkdir()
    started = spark_session.start(SparkSettings("local[2]"), scratch, folder / "spark.log")
    yield started
    spark_session.stop(started)


@pytest.fixture
def runner(running: RunningSpark, tmp_path: Path) -> Runner:
    return Runner(running, tmp_path)
