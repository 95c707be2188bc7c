"""The pages are true: their examples run and print what is shown, their queries parse, their links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from anabranch.syntax import languages, seraph, sparql

ROOT = Path(__file__).parents[2]


def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


outputs = _tool("page_outputs")
PAGES = [str(path.relative_to(ROOT)) for path in outputs.pages()]
WITH_EXAMPLES = [page for page in PAGES if page not in outputs.OWN_TESTS]
WITH_QUERIES = [page for page in PAGES if page != "docs/errors.md"]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PLACE = re.compile(r"`((?:src|tests|docs|tools|bench|examples)/[^`\s]*)`")


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def prose(page: str) -> str:
    """The page without its fenced blocks."""
    text = read(page)
    for block in reversed(outputs.blocks(text)):
        text = text[: block.fence_start] + text[block.fence_end :]
    return text


def anchors(page: str) -> set[str]:
    """The places of a page that a link can name, as GitHub makes them of headings."""
    headings = re.findall(r"^#+ +(.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", WITH_EXAMPLES)
def test_the_examples_of_the_page_print_what_it_shows(page: str) -> None:
    for example in outputs.examples(read(page)):
        assert example.holds, (
            f"{page} shows:\n{example.shown}\nfor:\n{example.source}\nbut it prints:\n{example.outputs[-1]}\n"
            f"run tools/page_outputs.py {page}"
        )


@pytest.mark.parametrize("page", WITH_QUERIES)
def test_the_queries_of_the_page_are_legal(page: str) -> None:
    for block in outputs.blocks(read(page)):
        if block.language == "cypher":
            seraph.plan(block.body, page)
        elif block.language == "seraph" and block.body.lstrip().startswith(("REGISTER", "LOAD")):
            seraph.parse_script(block.body, page)
            if "refused" not in block.options:
                seraph.registrations(block.body, page)
                seraph.ingestions(block.body, page)
        elif block.language == "sparql":
            sparql.plan(block.body, page)
        elif block.language in ("csparql", "lupos", "rspql") and "refused" not in block.options:
            assert languages.registrations(block.body, f"{page}.{block.language}")


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_the_page_lead_to_files_and_headings_that_exist(page: str) -> None:
    for link in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), f"{page}: {link}"
        if anchor:
            assert anchor in anchors(str(target.resolve().relative_to(ROOT))), f"{page}: {link}"


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_is_closed_and_of_a_known_language(page: str) -> None:
    text = read(page)
    found = outputs.blocks(text)
    assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(found)
    known = {"python", "text", "console", "seraph", "cypher", "json", "sh"}
    known |= {"bash"}  # run against a server, by tests/server/test_reference.py
    known |= {"csparql", "lupos", "rspql", "sparql", "turtle"}
    assert {block.language for block in found} <= known


MAPS = ["ARCHITECTURE.md", "CONTRIBUTING.md"]
MAPS += [page for page in PAGES if page.startswith(("docs/internals/", "docs/decisions/"))]


@pytest.mark.parametrize("page", MAPS)
def test_the_paths_that_the_page_names_exist(page: str) -> None:
    places = [place for place in _PLACE.findall(prose(page)) if "<" not in place]
    assert places or page.endswith("README.md") or page.startswith("docs/decisions/")
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_architecture_names_every_room() -> None:
    page = read("ARCHITECTURE.md")
    rooms = [path for path in (ROOT / "src" / "anabranch").iterdir() if not path.name.startswith(("_", "py.typed"))]
    assert [room.name for room in rooms if f"**`src/anabranch/{room.name}`**" not in page] == []


def test_architecture_is_a_map_of_at_most_200_lines() -> None:
    assert len(read("ARCHITECTURE.md").splitlines()) <= 200


@pytest.mark.parametrize("folder", ["docs/internals", "docs/decisions"])
def test_the_index_of_the_folder_links_every_page_once(folder: str) -> None:
    links = [link for link in _LINK.findall(prose(f"{folder}/README.md")) if "/" not in link]
    pages = [path.name for path in (ROOT / folder).glob("*.md") if path.name != "README.md"]
    assert sorted(links) == sorted(pages)


def test_the_picture_of_the_walks_is_what_a_run_shows() -> None:
    ended = subprocess.run(
        [sys.executable, "tools/walks.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, f"run tools/walks.py\n{ended.stdout}{ended.stderr}"


def test_the_function_reference_is_what_the_code_says() -> None:
    ended = subprocess.run(
        [sys.executable, "tools/function_reference.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, f"run tools/function_reference.py\n{ended.stdout}{ended.stderr}"
