"""Static graphs from files and from the web: what is read, what is refused, and how a change is seen."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from anabranch.errors import StreamError
from anabranch.model.terms import Blank, Iri, Triple
from anabranch.sources import graphs
from anabranch.sources.graphs import fingerprint, is_rdf, load_graph

TURTLE = b"@prefix : <http://ex/> . :a :p <#here>, [] ."
A, P = Iri("http://ex/a"), Iri("http://ex/p")


class Server(ThreadingHTTPServer):
    """Says what it was told to say at each path."""

    def __init__(self, says: dict[str, tuple[int, dict[str, str], bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.says = says
        self.accepted: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        code, headers, body = self.server.says[self.path]
        self.server.accepted.append(self.headers["Accept"])
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving(says: dict[str, tuple[int, dict[str, str], bytes]]) -> Iterator[tuple[Server, str]]:
    with Server(says) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server, f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_a_path_begins_at_the_folder_of_the_query(tmp_path: Path) -> None:
    (tmp_path / "a b.ttl").write_bytes(TURTLE)
    found = load_graph("a b.ttl", tmp_path)
    assert Triple(A, P, Iri(f"{(tmp_path / 'a b.ttl').as_uri()}#here")) in found
    assert len(found) == 2
    assert set(load_graph((tmp_path / "a b.ttl").as_uri())) >= {
        Triple(A, P, Iri(f"{(tmp_path / 'a b.ttl').as_uri()}#here"))
    }


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.ttl.gz").write_bytes(gzip.compress(TURTLE))
    assert len(load_graph("a.ttl.gz", tmp_path)) == 2


def test_two_graphs_share_no_blank_nodes_and_one_has_the_same_in_every_run(tmp_path: Path) -> None:
    for name in ("a.ttl", "b.ttl"):
        (tmp_path / name).write_bytes(TURTLE)
    found = [blanks(load_graph(name, tmp_path)) for name in ("a.ttl", "b.ttl", "a.ttl")]
    assert found[0] == found[2] != found[1]


def blanks(graph: object) -> list[Blank]:
    return [term for triple in graph for term in triple if isinstance(term, Blank)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("citty.ttl", r"there is no file .*citty.ttl\nhint: did you mean .*city.ttl"),
        (".", "is a directory"),
        ("file://elsewhere/a.ttl", "names the computer `elsewhere`"),
        ("c.ttl", "c.ttl: line 1, column 1: not Turtle"),
        ("d.ttl.gz", "not a whole gzip file"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "city.ttl").write_bytes(TURTLE)
    (tmp_path / "c.ttl").write_bytes(b"oops")
    (tmp_path / "d.ttl.gz").write_bytes(gzip.compress(TURTLE)[:-8])
    with pytest.raises(StreamError, match=said):
        load_graph(name, tmp_path)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_BYTES", 100)
    (tmp_path / "a.ttl").write_bytes(b"#" * 101)
    (tmp_path / "b.ttl.gz").write_bytes(gzip.compress(b"#" * 101))
    for name in ("a.ttl", "b.ttl.gz"):
        with pytest.raises(StreamError, match="has more than"):
            load_graph(name, tmp_path)


def test_a_graph_is_fetched_and_its_base_is_where_it_came_from() -> None:
    answers = {
        "/a": (303, {"Location": "/doc"}, b""),
        "/doc": (200, {"Content-Type": "text/turtle"}, TURTLE),
    }
    with serving(answers) as (server, url):
        found = load_graph(f"{url}/a")
        assert Triple(A, P, Iri(f"{url}/doc#here")) in found
        assert all("text/turtle" in accepted for accepted in server.accepted)


def test_what_the_web_does_not_give_is_refused() -> None:
    answers = {
        "/gone": (404, {}, b""),
        "/file": (302, {"Location": "file:///etc/passwd"}, b""),
        "/ftp": (302, {"Location": "ftp://127.0.0.1/a"}, b""),
        "/page": (200, {"Content-Type": "text/html"}, b"<html></html>"),
        "/page.ttl": (200, {"Content-Type": "text/html"}, b"<html></html>"),
    }
    with serving(answers) as (_, url):
        for path, said in (
            ("/gone", "the server says 404"),
            ("/file", "Redirection to url 'file:///etc/passwd' is not allowed"),
            ("/ftp", "leads to ftp://127.0.0.1/a, which is not on the web"),
            ("/page", "of the type text/html does not say its syntax"),
            ("/page.ttl", "hint: it is a web page"),
        ):
            with pytest.raises(StreamError, match=said):
                load_graph(url + path)
    with pytest.raises(StreamError, match="cannot be reached"):
        load_graph(f"{url}/gone")


def test_an_answer_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_BYTES", 100)
    with serving({"/a.ttl": (200, {}, b"#" * 101)}) as (_, url), pytest.raises(StreamError, match="has more than"):
        load_graph(f"{url}/a.ttl")


def test_without_leave_nothing_is_fetched() -> None:
    with pytest.raises(StreamError, match="would be fetched from the web\nhint: give a file of it"):
        load_graph("http://127.0.0.1:9/a.ttl", fetch=False)


def test_a_change_of_a_file_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_bytes(TURTLE)
    before = fingerprint("a.ttl", tmp_path)
    assert fingerprint("a.ttl", tmp_path) == before
    os.utime(path, ns=(1, 1))
    assert fingerprint("a.ttl", tmp_path) != before


def test_a_change_on_the_web_is_seen_by_what_the_server_says_or_by_the_content() -> None:
    answers = {"/a": (200, {"ETag": '"1"'}, TURTLE), "/b": (200, {}, TURTLE)}
    with serving(answers) as (server, url):
        assert fingerprint(f"{url}/a") == '"1"'
        before = fingerprint(f"{url}/b")
        assert fingerprint(f"{url}/b") == before
        server.says["/b"] = (200, {}, TURTLE + b"\n")
        assert fingerprint(f"{url}/b") != before


@pytest.mark.parametrize(
    ("name", "rdf"),
    [("a.ttl", True), ("a.owl.gz", True), ("http://ex/onto", True), ("file:///a.nt", True), ("a.json", False)],
)
def test_an_rdf_graph_is_told_from_a_property_graph_by_its_name(name: str, rdf: bool) -> None:
    assert is_rdf(name) is rdf
