"""Every case file of this folder holds: in small steps, in big steps, restarted, and against the plain law."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.testing.cases import load, run_case

HERE = Path(__file__).parent
CASES = sorted(HERE.rglob("*.case"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(HERE)))
def test_case_holds(path: Path) -> None:
    run_case(load(path))
