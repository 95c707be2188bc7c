"""Requests made up from the interface's own description: none of them breaks the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from tests.server.conftest import COUNTED, Served, minutes

from anabranch.server.app import create_app
from anabranch.server.hub import Hub
from anabranch.server.limits import Limits

NAMES = {"session": ["s"], "query": ["counted"], "name": ["rides", "g"]}
_LIMITS = Limits(check_seconds=5, insight_seconds=5, insight_events=50, sessions=5, streams=5, queries=5, graphs=5)


@pytest.fixture(scope="module")
def interface(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    served = Served(tmp_path_factory.mktemp("fuzz"), _LIMITS, roots=[])
    schema = schemathesis.openapi.from_url(f"{served.address}/api/v1/openapi.json")

    @schema.hook
    def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
        """Mostly things that are there: a made-up name is only ever not found."""
        return {name: _known(name, value) for name, value in (path_parameters or {}).items()}

    yield served, schema
    served.close()


def _known(name: str, value: Any) -> Any:
    there, length = NAMES.get(name, []), len(str(value))
    return there[length % len(there)] if there and length % 5 else value


def _refilled(hub: Hub) -> None:
    """The session as it was, whatever the last requests did to it."""
    for session in hub.sessions():
        hub.delete(session.name)
    session = hub.create("s")
    session.add_stream("rides")
    session.push("rides", minutes(5))
    session.register(COUNTED)
    session.settle()


def _paths() -> list[tuple[str, str]]:
    import tempfile

    with Hub(tempfile.mkdtemp(), "local") as hub:
        found = create_app(hub).openapi()["paths"]
    return [
        (path, method) for path, methods in found.items() for method in methods if not path.endswith("/results/live")
    ]


@pytest.mark.parametrize(("path", "method"), _paths())
def test_no_request_breaks_the_server(interface: Any, path: str, method: str) -> None:
    served, schema = interface
    _refilled(served.hub)
    operation = schema[path][method.upper()]
    bounded = settings(
        max_examples=12,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @bounded
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        case.call_and_validate(checks=[not_a_server_error])

    ask()
    assert served.http.get("/health").status_code == 200
