"""The contract of the two carriers: whatever a run is made of, this process and Spark give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.spark_runs import Runner

import anabranch
from anabranch import LatePolicy, RunResult
from anabranch.runner.metrics import exposition
from anabranch.runner.outlet import Observers, RunProgress

COUNT = """
REGISTER QUERY {name} STARTING AT 1970-01-01T00:00:10Z
{{ MATCH (a:A)-[r:R]->(b:B) WITHIN PT30S {on} WHERE a.x > $least
   EMIT b.x AS x, count(*) AS n, sum(a.x) AS total {output} EVERY PT10S }}
"""
TOTALS = COUNT.format(name="totals", on="", output="SNAPSHOT")
ENTERING = COUNT.format(name="entering", on="", output="ON ENTERING")


def event(second: int, number: int) -> dict[str, Any]:
    return {
        "at": second * 1000,
        "nodes": [
            {"id": f"a{number % 7}", "labels": ["A"], "properties": {"x": number % 7}},
            {"id": f"b{number % 3}", "labels": ["B"], "properties": {"x": number % 3}},
        ],
        "relationships": [{"id": number, "type": "R", "from": f"a{number % 7}", "to": f"b{number % 3}"}],
    }


def lines(*events: dict[str, Any] | str) -> str:
    return "".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in events)


IN_ORDER = [event(second, second) for second in range(120)]
OUT_OF_ORDER = [event(second + (25 if second % 11 == 3 else 0), second) for second in range(120)]


@dataclass
class House:
    """A folder in which a carrier runs: what goes in, what comes out."""

    path: Path
    start: Callable[..., RunResult]
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    progress: list[RunProgress] = field(default_factory=list)

    def run(self, text: str = TOTALS, **settings: Any) -> RunResult:
        observers = Observers(
            on_warning=lambda query, at, said: self.warnings.append(said),
            on_note=self.notes.append,
            on_progress=self.progress.append,
        )
        defaults = {"parameters": {"least": 1}, "dead_letter": str(self.path / "dead.ndjson")}
        streams = settings.pop("streams", {"s": str(self.path / "in")})
        return self.start(text, streams, observers=observers, **{**defaults, **settings})

    def put(self, name: str, content: str) -> Path:
        path = self.path / "in" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        return path

    @property
    def sinks(self) -> list[str]:
        return [str(self.path / "out.ndjson"), str(self.path / "out.csv"), f"{self.path / 'folder'}/"]

    def written(self) -> dict[str, bytes]:
        """All that the run has written, by the place in its folder; of a folder of batches, their lines."""
        found = {
            name: (self.path / name).read_bytes()
            for name in ("out.ndjson", "out.csv", "dead.ndjson")
            if (self.path / name).exists()
        }
        batches = sorted((self.path / "folder").glob("*.ndjson"))
        return {**found, "folder": b"".join(one.read_bytes() for one in batches)}


def sinks_of_every_kind(house: House) -> object:
    house.put("a.ndjson", lines(*IN_ORDER))
    done = house.run(TOTALS + ENTERING, sinks=house.sinks, batch_events=50)
    return done.events, done.rows


def malformed_late_and_ahead(house: House) -> object:
    house.put("a.ndjson", lines(*IN_ORDER[:40], "nonsense\n", '{"at": "soon"}\n', event(2, 999), *IN_ORDER[40:]))
    done = house.run(sinks=house.sinks, lateness="PT5S")
    return done.events, done.malformed, done.late


def corrections(house: House) -> object:
    house.put("a.ndjson", lines(*OUT_OF_ORDER))
    done = house.run(sinks=house.sinks, late=LatePolicy("correct"), batch_events=30)
    return done.events, done.late


def a_checkpoint_that_goes_on(house: House) -> object:
    house.put("a.ndjson", lines(*IN_ORDER))
    settings = {"sinks": house.sinks, "checkpoint": str(house.path / "state"), "batch_events": 30}
    asked = iter([False, False, True])
    first = house.run(should_stop=lambda: bool(house.progress) and next(asked, True), **settings)
    done = house.run(**settings)
    again = house.run(**settings)
    assert first.events <= done.events
    assert again.events == 0, "nothing to do: its whole input is answered"
    return done.events, done.rows


def queries_that_change(house: House) -> object:
    settings = {"sinks": house.sinks[:1], "checkpoint": str(house.path / "state"), "follow": True}

    def has_seen(events: int) -> Callable[[], bool]:
        return lambda: bool(house.progress) and house.progress[-1].status["events"] == events

    house.put("a.ndjson", lines(*IN_ORDER[:60]))
    house.run(should_stop=has_seen(60), **settings)
    house.put("b.ndjson", lines(*IN_ORDER[60:]))
    done = house.run(ENTERING + TOTALS, should_stop=has_seen(120), **settings)
    assert house.notes == ["query entering is new: it starts from what the windows hold"]
    return done.events


def a_failing_query(house: House) -> object:
    house.put("a.ndjson", lines(*IN_ORDER))
    failing = TOTALS.replace("b.x AS x", "10 / (count(*) - 9) AS x").replace("totals", "failing")
    done = house.run(failing + TOTALS, sinks=house.sinks, evaluation=anabranch.EvaluationOptions(on_error="fail"))
    return done.events, [failure.diagnostics[0].code for failure in done.failures]


def static_graphs_and_load_stream(house: House) -> object:
    records = (f"{second * 1000},{second % 4},{second}\n" for second in range(60))
    house.put("records.csv", "at,who,what\n" + "".join(records))
    city = {"nodes": [{"id": f"p{n}", "labels": ["P"], "properties": {"id": n, "name": f"n{n}"}} for n in range(4)]}
    (house.path / "people.json").write_text(json.dumps(city))
    text = f"""
    LOAD STREAM FROM '{house.path / "in" / "records.csv"}' AS r AT toInteger(r.at) INTO s
    MERGE (v:Visit {{id: toInteger(r.what)}}) SET v.who = toInteger(r.who)

    REGISTER QUERY visits STARTING AT 1970-01-01T00:00:10Z
    {{ MATCH (v:Visit) WITHIN PT20S ON STREAM s MATCH (p:P) ON GRAPH people WHERE p.id = v.who
       EMIT p.name AS name, count(v) AS n SNAPSHOT EVERY PT10S }}
    """
    graphs = {"people": str(house.path / "people.json")}
    done = house.run(text, streams={}, sinks=house.sinks, graphs=graphs, parameters={})
    return done.events, done.rows


def figures_for_prometheus(house: House) -> object:
    house.put("a.ndjson", lines(*IN_ORDER))
    house.run(sinks=house.sinks)
    text = exposition(house.progress[-1])
    wanted = ("anabranch_events_total", "anabranch_rows_total", "anabranch_late_total", "anabranch_malformed_total")
    return [line for line in text.splitlines() if line.startswith(wanted)]


SCENARIOS = [
    sinks_of_every_kind,
    malformed_late_and_ahead,
    corrections,
    a_checkpoint_that_goes_on,
    queries_that_change,
    a_failing_query,
    static_graphs_and_load_stream,
    figures_for_prometheus,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_both_carriers_write_and_say_the_same(
    scenario: Callable[[House], object], runner: Runner, tmp_path: Path
) -> None:
    found = []
    place = tmp_path / "run"
    for engine in ("local", "spark"):
        place.mkdir()

        def start(*given: Any, engine: Any = engine, **settings: Any) -> RunResult:
            spark = runner.running if engine == "spark" else None
            return anabranch.run(*given, engine=engine, spark=spark, **settings)

        house = House(place, start)
        said = scenario(house)
        found.append((said, house.warnings, house.written()))
        place.rename(tmp_path / engine)
    assert found[0] == found[1]
    assert any(found[0][2].values()), "a scenario that writes nothing proves nothing"
