"""The figures of all sessions in Prometheus' text format: the metrics of `run --metrics-port`, with the session as
label.

Invariant: each metric is described once, before its samples; reading never waits for a run.
"""

from __future__ import annotations

from anabranch.runner.metrics import exposition as of_run
from anabranch.runner.metrics import quoted
from anabranch.server.hub import Hub


def exposition(hub: Hub) -> str:
    about: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    sessions = hub.sessions()
    for session in sessions:
        for line in of_run(session.progress).splitlines():
            if line.startswith("#"):
                said = about.setdefault(line.split(" ", 3)[2], [])
                if line not in said:
                    said.append(line)
            else:
                name, labels, value = _parts(line)
                own = f'session="{quoted(session.name)}"'
                samples.setdefault(name, []).append(f"{name}{{{own}{',' if labels else ''}{labels}}} {value}")
    lines = [line for name, said in about.items() for line in (*said, *samples.get(name, ()))]
    lines += [
        "# HELP anabranch_behind_seconds Age of the first event that is not answered yet.",
        "# TYPE anabranch_behind_seconds gauge",
        *(f'anabranch_behind_seconds{{session="{quoted(one.name)}"}} {one.metrics()["behind"]}' for one in sessions),
        "# HELP anabranch_sessions Sessions of the server.",
        "# TYPE anabranch_sessions gauge",
        f"anabranch_sessions {len(sessions)}",
        "# HELP anabranch_clients Clients that listen to results.",
        "# TYPE anabranch_clients gauge",
        f"anabranch_clients {hub.clients}",
    ]
    return "".join(f"{line}\n" for line in lines)


def _parts(line: str) -> tuple[str, str, str]:
    """Split a sample into its name, labels and value."""
    before, _, value = line.rpartition(" ")
    name, _, labels = before.partition("{")
    return name, labels.removesuffix("}"), value
