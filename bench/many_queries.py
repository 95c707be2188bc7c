"""How work and memory grow with the number of rules over one stream: many queries of one shape, and copies of one.

Two streams: triples of users with eight properties, matched by stars with two constants; and purchases as property
graphs, matched by a pattern with two properties and a threshold. Beside N rules that share a run stand the same N rules
that each run alone, N copies of one rule, and one query over a table of the same constants (VALUES). Each measurement
has a process of its own. CPU seconds are those of registering, and of pushing and answering; memory is resident.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from random import Random
from typing import Any

EX = "http://example.org/"
STREAM = f"{EX}s"
VALUES = 50
WINDOW, STEP = 100, 10  # seconds; an event comes each millisecond
BATCH = 20_000


def run(smoke: bool = False) -> dict[str, Any]:
    counts = [1, 20] if smoke else [1, 100, 1000]
    size = 2_000 if smoke else 200_000
    most_alone = 20 if smoke else 100
    measured = []
    for model in ("triples", "elements"):
        for count in counts:
            ways = ["together", *(["alone"] if 1 < count <= most_alone else [])]
            measured += [_measured(model, way, count, size) for way in ways]
        measured.append(_measured(model, "copies", most_alone, size))
    measured.append(_measured("triples", "values", counts[-1], size))
    rows = {(one["model"], one["rules"], one["way"]): one["rows"] for one in measured}
    for (model, count, way), told in rows.items():
        if way == "alone":
            assert told == rows[model, count, "together"], "rules that run together answer as each would alone"
    return {"measured": measured}


def _measured(model: str, way: str, count: int, size: int) -> dict[str, Any]:
    command = [sys.executable, __file__, model, way, str(count), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{model:8} {way:8} {count:>6,} rules: registered in {found['register_cpu']:.2f} CPU s, "
        f"{found['per_cpu_second']:>9,} per CPU s, {found['rss_mb']:,} MB, {found['rows']:,} rows"
    )
    return found


# --- the process of one measurement ---


def _measure(model: str, way: str, count: int, size: int) -> dict[str, Any]:
    from anabranch.delta.warm import warm
    from anabranch.engine.evaluation_options import EvaluationOptions
    from anabranch.engine.session import Session

    warm()
    batches = _triples(size) if model == "triples" else _purchases(size)
    session = Session.local(evaluation=EvaluationOptions(sharing=way != "alone"))
    began = time.process_time()
    for number in range(1 if way == "values" else count):
        session.register(*_rule(model, 0 if way == "copies" else number, f"rule{number}", count * (way == "values")))
    registered = time.process_time() - began
    began = time.process_time()
    rows = 0
    for batch in batches:
        if model == "triples":
            session.push_table(STREAM, batch)
        else:
            session.push(STREAM, batch)
        rows += sum(len(answer.rows) for answer in session.take())
    session.finish()
    rows += sum(len(answer.rows) for answer in session.take())
    ran = time.process_time() - began
    with open("/proc/self/statm", encoding="ascii") as statm:
        pages = int(statm.read().split()[1])
    return {
        "model": model,
        "way": way,
        "rules": count,
        "events": size,
        "register_cpu": round(registered, 3),
        "run_cpu": round(ran, 3),
        "per_cpu_second": round(size / ran),
        "rss_mb": pages * os.sysconf("SC_PAGE_SIZE") >> 20,
        "rows": rows,
    }


def _rule(model: str, number: int, name: str, table: int) -> tuple[str]:
    """Return the text of a rule; with `table`, that of all rules as one query."""
    first, second = number % VALUES, number // VALUES % VALUES
    if model == "elements":
        return (
            f"REGISTER QUERY {name} STARTING AT 1970-01-01T00:00:00Z {{ MATCH (u:User {{segment: {first}}})"
            f"-[b:BUYS]->(i:Item {{kind: {second}}}) WITHIN PT{WINDOW}S ON STREAM {json.dumps(STREAM)} "
            f"WHERE b.amount > {90 + number % 10} EMIT u.name AS user, b.amount AS amount "
            f"ON ENTERING EVERY PT{STEP}S }}".replace('"', "`"),
        )
    places = [f"<{EX}value/{first}>", f"<{EX}value/{second}>"]
    given = ""
    if table:
        pairs = ((one % VALUES, one // VALUES % VALUES) for one in range(table))
        constants = " ".join(f"(<{EX}value/{a}> <{EX}value/{b}>)" for a, b in pairs)
        given, places = f"VALUES (?v ?w) {{ {constants} }}", ["?v", "?w"]
    return (
        f"REGISTER QUERY {name} AS PREFIX ex: <{EX}> SELECT {'?v ?w ' if table else ''}?u ?c "
        f"FROM STREAM <{STREAM}> [RANGE {WINDOW}s STEP {STEP}s] "
        f"WHERE {{ {given} ?u ex:p0 {places[0]} . ?u ex:p1 {places[1]} . ?u ex:p2 ?c }}",
    )


def _triples(size: int) -> list[Any]:
    import pyarrow as pa

    random = Random(3)
    users = max(20, size // 10)
    columns = {
        "s": [f"{EX}user/{random.randrange(users)}" for _ in range(size)],
        "p": [f"{EX}p{random.randrange(8)}" for _ in range(size)],
        "o": [f"{EX}value/{random.randrange(VALUES)}" for _ in range(size)],
        "at": pa.array(range(size), pa.timestamp("ms", tz="UTC")),
    }
    table = pa.table(columns)
    return [table.slice(first, BATCH) for first in range(0, size, BATCH)]


def _purchases(size: int) -> list[list[dict[str, Any]]]:
    random = Random(5)
    events = []
    for at in range(size):
        user, item = random.randrange(20_000), random.randrange(2_000)
        node = {"id": user, "labels": ["User"], "properties": {"segment": user % VALUES, "name": f"user {user}"}}
        bought = {"id": 100_000 + item, "labels": ["Item"], "properties": {"kind": item % VALUES}}
        buys = {
            "id": at,
            "type": "BUYS",
            "from": user,
            "to": 100_000 + item,
            "properties": {"amount": random.randrange(100)},
        }
        events.append({"at": at, "nodes": [node, bought], "relationships": [buys]})
    return [events[first : first + BATCH] for first in range(0, size, BATCH)]


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
