"""The demonstration: the paper's two tables, at every width, from data that the package carries."""

from __future__ import annotations

import re
import shlex

import pytest

from anabranch.cli.demo_show import NEXT

from .conftest import ROOT, Invoke

STEP = """\
15:15  (6:Bike) ─returnedAt 15:13, user 1234, 16 min→ (3:Station)
       ·············(━━━━━━━━━━━●━━━━━●━━━━━●]··········  window (14:15, 15:15]
       ╭─ a row enters at 15:15 ───────────────────────────────────────────────╮
       │ r.user_id   s.id   r.val_time   hops     win_start   win_end          │
       │ ────────────────────────────────────────────────────────────          │
       │      1234      1   14:40        [2, 3]   14:15       15:15            │
       │                                                                       │
       │ station 1 ─e-bike 5, 15 min→ station 2 ─bike 6, 16 min→ station 3     │
       │ Why: User 1234 took e-bike 5 at station 1 at 14:40 and returned it at │
       │ station 2 at 14:55; 2 minutes later took bike 6 there and returned it │
       │ at station 3 at 15:13. Rides of 15 and 16 minutes, each under 20, so  │
       │ each was free; the hops are stations 2 and 3.                         │
       ╰──────────────────────────────────────── this is Table 5 of the paper ─╯
"""


def test_the_first_row_looks_as_it_should(invoke: Invoke) -> None:
    shown = invoke("demo", "bikes")
    assert shown.code == 0
    assert STEP in shown.out
    assert "this is Table 6 of the paper" in shown.out
    assert "5 events · 12 instants, 5 computed · 2 rows" in shown.out


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 200])
def test_it_fits_the_terminal(invoke: Invoke, columns: int) -> None:
    lines = invoke("demo", columns=columns).out.splitlines()
    drawn = [line for line in lines if "anabranch" not in line and "--stream" not in line]
    assert max(map(len, drawn)) <= min(columns, 100)


def test_it_is_the_same_every_time_and_colour_changes_no_letter(invoke: Invoke) -> None:
    plain = invoke("demo", "--no-color", "--speed", "0").out
    colored = invoke("demo", "--color", "--speed", "0").out
    assert invoke("demo").out == plain
    assert "\x1b[1;32mREGISTER" in colored
    assert "\x1b[1;34mMATCH" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


@pytest.mark.parametrize("command", [command for _, command in NEXT])
def test_what_it_proposes_works_from_a_checkout(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(ROOT)
    ran = invoke(*shlex.split(command)[1:])
    assert ran.code == 0
    assert ran.out


def test_a_proposed_command_that_is_folded_can_be_copied(invoke: Invoke) -> None:
    shown = invoke("demo", columns=80).out
    for _, command in NEXT:
        unfolded = re.sub(r" \\\n +", " ", shown)
        assert f"  {command}\n" in unfolded


def test_another_demo_is_refused(invoke: Invoke) -> None:
    assert invoke("demo", "cars").code == 2
