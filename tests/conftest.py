"""How every test runs: hypothesis repeats itself in CI, slow tests are marked, the TCK ends with a line per feature
folder.

Elsewhere hypothesis draws anew each time; a failure prints how to draw it again.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tests.suites import tck

# Spark takes seconds to start: a test that wants it says so.
os.environ.setdefault("ANABRANCH_ENGINE", "local")

settings.register_profile("ci", derandomize=True, database=None, deadline=None)
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")


SLOW = Path(__file__).with_name("slow.txt")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that took more than a second when they were last measured are marked slow."""
    slow = set(SLOW.read_text(encoding="utf-8").split())
    for item in items:
        if item.nodeid.partition("[")[0] in slow:
            item.add_marker(pytest.mark.slow)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    folders = {scenario["id"]: scenario["folder"] for scenario in tck.scenarios()}
    counts: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            if report.when == "call" and "test_tck.py::test_scenario[" in report.nodeid:
                scenario = report.nodeid.split("[", 1)[1].removesuffix("]")
                excepted = outcome == "passed" and scenario in tck.exceptions()
                counts.setdefault(folders.get(scenario, "?"), Counter())["excepted" if excepted else outcome] += 1
    if not counts:
        return
    terminalreporter.section("openCypher TCK")
    total: Counter[str] = Counter()
    for folder, count in sorted(counts.items()):
        total.update(count)
        terminalreporter.write_line(f"{folder:40} {_line(count)}")
    terminalreporter.write_line(f"{'all':40} {_line(total)}")


def _line(count: Counter[str]) -> str:
    return "  ".join(f"{name} {count[name]:5}" for name in ("passed", "failed", "excepted"))
