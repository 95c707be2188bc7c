"""Writes tests/slow.txt, the tests that `make quick` leaves out, from the times of a whole run.

    PYTEST_ADDOPTS=--junitxml=times.xml make pytest
    python tools/slow_tests.py times.xml

Invariant: a test is listed when one of its cases took more than a second, or all of them together more than five.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
LONGEST, LONGEST_OF_ALL = 1.0, 5.0  # seconds
HOUSE = "tests/docs/test_house.py"  # runs always


def slow_tests(times: Path) -> list[str]:
    """The tests of a JUnit file that take long, as pytest names them."""
    by_test: dict[str, list[float]] = defaultdict(list)
    for case in ElementTree.parse(times).iter("testcase"):
        place = case.get("classname", "").replace(".", "/") + ".py"
        by_test[f"{place}::{case.get('name', '').partition('[')[0]}"].append(float(case.get("time", 0)))
    long = (name for name, took in by_test.items() if max(took) > LONGEST or sum(took) > LONGEST_OF_ALL)
    return sorted(name for name in long if not name.startswith(HOUSE))


if __name__ == "__main__":
    (ROOT / "tests" / "slow.txt").write_text("\n".join(slow_tests(Path(sys.argv[1]))) + "\n", encoding="utf-8")
