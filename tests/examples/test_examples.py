"""Every example runs and shows its result."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.unit.cli.test_run import ROW_5, ROW_6

ROOT = Path(__file__).parents[2]


def anabranch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anabranch", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)


def rows(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    done = anabranch(folder, "run", *arguments, "--output", "json")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_bikes_give_table_5_and_table_6_and_nothing_else(tmp_path: Path) -> None:
    bikes = ROOT / "examples" / "bikes"
    found = rows(tmp_path, str(bikes / "student_trick.seraph"), "--stream", f"rides={bikes / 'events.ndjson'}")
    assert found == [ROW_5, ROW_6]


def test_listing_1_asked_by_hand_at_1540_gives_table_2(tmp_path: Path) -> None:
    bikes = ROOT / "examples" / "bikes"
    arguments = ("-f", str(bikes / "listing1.cypher"), "--graph", str(bikes / "graph.json"))
    done = anabranch(tmp_path, "eval", *arguments, "--now", "2022-10-14T15:40Z", "--output", "json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"r.user_id": 1234, "s.id": 1, "r.val_time": "2022-10-14T14:40Z", "hops": [2, 3]},
        {"r.user_id": 5678, "s.id": 2, "r.val_time": "2022-10-14T14:58Z", "hops": [3, 4]},
    ]


def test_the_network_shows_the_lengthened_route_once_the_cut_cable_has_left_the_window(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "network"
    arguments = (str(folder / "anomalous_routes.seraph"), "--stream", f"network={folder / 'events.ndjson'}")
    found = rows(tmp_path, *arguments, "--until", "drained")
    assert [(one["at"][11:16], one["row"]["hops"]) for one in found] == [
        (f"12:{minute}", 7) for minute in range(10, 25)
    ]


def test_the_crime_scene_shows_the_suspect_nearby(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "crime"
    arguments = (str(folder / "watch_for_suspects.seraph"), "--stream", f"reports={folder / 'events.ndjson'}")
    found = rows(tmp_path, *arguments, "--until", "drained")
    assert [(one["at"][11:16], one["row"]["person"]["properties"]["name"]) for one in found] == [
        ("12:05", "Moriarty"),
        ("12:10", "Moriarty"),
    ]


def test_rentals_become_a_graph_and_the_record_without_a_bike_is_set_aside(tmp_path: Path) -> None:
    found = rows(tmp_path, str(ROOT / "examples" / "rentals" / "busy_stations.seraph"))
    assert [(one["at"][11:16], one["row"]) for one in found] == [
        ("14:45", {"station": 1, "rentals": 1, "bikes": [5]}),
        ("15:00", {"station": 2, "rentals": 2, "bikes": [6, 8]}),
        ("15:20", {"station": 3, "rentals": 1, "bikes": [7]}),
    ]
    (letter,) = [json.loads(line) for line in (tmp_path / "rentals.dead.ndjson").read_text().splitlines()]
    assert (letter["line"], letter["reason"]) == (5, "MERGE needs a value for `id` of Bike, and it is null")


def test_the_parcels_of_each_hub_are_those_scanned_there_in_the_last_half_hour(tmp_path: Path) -> None:
    folder = ROOT / "examples" / "parcels"
    found = rows(tmp_path, str(folder / "busy_hubs.seraph"), "--stream", f"scans={folder / 'scans.ndjson'}")
    scans = [json.loads(line) for line in (folder / "scans.ndjson").read_text().splitlines()]
    last = {one["at"] for one in found if one["at"] <= "2026-05-04T09:45:00Z"}
    assert len(last) == 21  # from 8:05 to 9:45
    for one in found:
        here = {
            scan["nodes"][0]["id"]: scan["nodes"][0]["properties"]["kg"]
            for scan in scans
            if one["win_start"] < scan["at"] <= one["win_end"]
            and scan["nodes"][1]["properties"]["name"] == one["row"]["hub"]
        }
        assert (one["row"]["parcels"], one["row"]["heaviest"]) == (len(here), max(here.values()))
