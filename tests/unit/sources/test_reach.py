"""Files below some folders may be read, and no others, however they are named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anabranch.errors import StreamError
from anabranch.sources.address import parse_address, refuse_beyond
from anabranch.sources.graphs import fingerprint, load_graph
from anabranch.sources.open import open_source
from anabranch.sources.reach import ANYWHERE, OutOfReach, Reach
from anabranch.sources.static import GraphFile

GRAPH = "<http://ex/a> <http://ex/password> 'hunter2' .\n"
EVENT = '{"at": "2022-10-14T14:45:00Z", "nodes": [{"id": 1}]}\n'


@pytest.fixture
def reach(tmp_path: Path) -> Reach:
    """May read `in`; beside it lies a secret, and links of `in` lead to it."""
    for folder in ("in/deep", "secret"):
        (tmp_path / folder).mkdir(parents=True)
    for place in ("in/a.ttl", "in/deep/a b.ttl", "secret/creds.ttl"):
        (tmp_path / place).write_text(GRAPH)
    for place in ("in/a.ndjson", "in/deep/b.ndjson", "secret/creds.ndjson"):
        (tmp_path / place).write_text(EVENT)
    (tmp_path / "in" / "link.ttl").symlink_to(tmp_path / "secret" / "creds.ttl")
    (tmp_path / "in" / "link.ndjson").symlink_to("../secret/creds.ndjson")
    (tmp_path / "in" / "folder").symlink_to("../secret")
    (tmp_path / "in" / "own.ttl").symlink_to("deep/a b.ttl")
    return Reach((str((tmp_path / "in").resolve()),))


INSIDE = ("{}/in/a.ttl", "file://{}/in/a.ttl", "file:{}/in/deep/a%20b.ttl", "{}/in/deep/../a.ttl", "{}/in/own.ttl")
OUTSIDE = (
    "{}/secret/creds.ttl",
    "{}/in/../secret/creds.ttl",
    "file://{}/secret/creds.ttl",
    "file://{}/in/%2e%2e/secret/creds.ttl",
    "file:{}/in/%2E%2e/secret/creds.ttl",
    "file://localhost{}/in/..%2fsecret/creds.ttl",
    "FILE://{}/secret/creds.ttl",
    "file://{}/secret/creds.ttl?x=.ttl",
    "file:../secret/creds.ttl",
    "../secret/creds.ttl",
    "{}/in/link.ttl",
    "{}/in/folder/creds.ttl",
    "{}/in/folder/nothing.ttl",
    "{}/secret/nothing.ttl",
    "{}/inside.ttl",
    "http://127.0.0.1:9/a.ttl",
    "HTTPS://127.0.0.1:9/a.ttl",
)


@pytest.mark.parametrize("name", INSIDE)
def test_a_graph_inside_is_read(reach: Reach, tmp_path: Path, name: str) -> None:
    assert len(load_graph(name.format(tmp_path), tmp_path / "in", reach=reach)) == 1


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_graph_outside_is_out_of_reach_and_nothing_is_told_of_it(reach: Reach, tmp_path: Path, name: str) -> None:
    for read in (load_graph, fingerprint):
        with pytest.raises(OutOfReach) as refused:
            read(name.format(tmp_path), tmp_path / "in", reach=reach)
        assert "did you mean" not in str(refused.value)
    with pytest.raises(OutOfReach):
        GraphFile("g", (name.format(tmp_path),), str(tmp_path / "in"), reach).load()


def test_what_is_encoded_twice_is_a_name_with_percent_signs(reach: Reach, tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="there is no file"):
        load_graph(f"file://{tmp_path}/in/%252e%252e/secret/creds.ttl", reach=reach)


def test_a_missing_graph_hints_at_names_inside_alone(reach: Reach, tmp_path: Path) -> None:
    with pytest.raises(StreamError, match=r"did you mean .*in/a\.ttl"):
        load_graph(f"{tmp_path}/in/aa.ttl", reach=reach)


def test_a_property_graph_is_out_of_reach_too(reach: Reach, tmp_path: Path) -> None:
    (tmp_path / "secret" / "g.json").write_text('{"nodes": [{"id": 1}], "relationships": []}')
    (tmp_path / "in" / "g.json").symlink_to("../secret/g.json")
    for place in ("../secret/g.json", "g.json", f"file://{tmp_path}/in/%2e%2e/secret/g.json"):
        with pytest.raises(OutOfReach):
            GraphFile("g", (place,), str(tmp_path / "in"), reach).load()


@pytest.mark.parametrize(
    "address",
    [
        "{}/secret/creds.ndjson",
        "{}/in/../secret/creds.ndjson",
        "file://{}/in/%2e%2e/secret/creds.ndjson",
        "{}/in/*/../../secret/creds.ndjson",
        "{}/in/link.ndjson",
        "{}/in/folder",
        "{}/in/folder/*.ndjson",
        "{}/secret",
        "{}/secret/*.ndjson",
        "{}/secret/nothing.ndjson",
        "/etc/passwd",
        "s3://bucket/x",
        "kafka://127.0.0.1:9/t",
        "http+poll://127.0.0.1:9/",
        "mqtt://bob:secret@127.0.0.1/t",
        "socket://127.0.0.1:9",
    ],
)
@pytest.mark.parametrize("follow", [False, True])
def test_a_stream_outside_is_out_of_reach(reach: Reach, tmp_path: Path, address: str, follow: bool) -> None:
    with pytest.raises(OutOfReach) as refused:
        refuse_beyond(parse_address(address.format(tmp_path)), reach)
    assert "secret@" not in str(refused.value)
    with pytest.raises(OutOfReach):
        open_source("s", address.format(tmp_path), follow=follow, reach=reach).begin()


@pytest.mark.parametrize("address", ["gen:bikes", "{}/in/a.ndjson", "file://{}/in/deep/b.ndjson", "{}/in/*/b.ndjson"])
def test_a_stream_inside_is_opened(reach: Reach, tmp_path: Path, address: str) -> None:
    open_source("s", address.format(tmp_path), reach=reach).begin()


def test_a_pattern_does_not_go_through_a_folder_that_leads_outside(reach: Reach, tmp_path: Path) -> None:
    source = open_source("s", f"{tmp_path}/in/*/*.ndjson", reach=reach)
    assert source.backlog(source.begin()).total == len(EVENT)


def test_a_link_that_is_put_in_the_place_of_a_file_is_not_followed(
    reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, outside = tmp_path / "in" / "deep", tmp_path / "secret"
    real = os.path.realpath
    monkeypatch.setattr(os.path, "realpath", lambda path: swap(real(path)))

    def swap(checked: str) -> str:
        """Somebody is faster than we are: the folder has been checked, and is a link by now."""
        if not inside.is_symlink():
            inside.rename(tmp_path / "in" / "moved")
            inside.symlink_to(outside)
        return checked

    with pytest.raises(OutOfReach, match="has become a link"):
        reach.open(inside / "creds.ttl")


def test_a_pipe_keeps_no_reader_waiting(reach: Reach, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "in" / "pipe.ttl")
    with pytest.raises(StreamError, match="is no file"):
        reach.open(tmp_path / "in" / "pipe.ttl")


def test_without_folders_everything_is_in_reach(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(GRAPH)
    (tmp_path / "b.ttl").symlink_to("a.ttl")
    with ANYWHERE.open(tmp_path / "b.ttl") as file:
        assert file.read() == GRAPH.encode()
    refuse_beyond(parse_address("kafka://127.0.0.1:9/t"), ANYWHERE)
