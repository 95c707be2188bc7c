"""docs/reference/server.md runs as it stands, and docs/errors.md knows every code of the server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.server.conftest import Served

from anabranch.server import problems

ROOT = Path(__file__).parents[2]
_BLOCKS = re.compile(r"^```bash\n(.*?)^```\n(?:```(json|text)\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page's examples are asked by curl")
def test_the_examples_of_the_page_run_and_say_what_the_page_says(served: Served, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "server.md").read_text(encoding="utf-8")
    found = _BLOCKS.findall(page)
    assert len(found) > 8
    for script, form, expected in found:
        if script.startswith("export SERVER"):
            continue
        script = script.replace("/tmp/", f"{tmp_path}/")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env={**os.environ, "SERVER": f"{served.address}/api/v1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        if form == "json":
            assert json.loads(done.stdout) == json.loads(expected), script
        elif form == "text":
            assert done.stdout == expected, script


def test_every_route_is_on_the_page(served: Served) -> None:
    page = (ROOT / "docs" / "reference" / "server.md").read_text(encoding="utf-8")
    for path in served.app.openapi()["paths"]:
        last = re.sub(r"\{\w+\}", "", path).rstrip("/").rsplit("/", 1)[-1]
        assert last in page, path


def test_every_code_has_a_heading_and_every_heading_a_code() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^### (SRV-\d+)$", page, re.MULTILINE))
    assert headings == set(problems.STATUS)


def test_every_route_describes_its_errors_and_has_a_summary(served: Served) -> None:
    for path, methods in served.app.openapi()["paths"].items():
        for method, said in methods.items():
            assert said.get("summary"), (path, method)
            for status in ("401", "403", "404", "409", "413", "422"):
                schema = said["responses"][status]["content"]["application/json"]["schema"]
                assert schema["$ref"].endswith("/Problem"), (path, method, status)
