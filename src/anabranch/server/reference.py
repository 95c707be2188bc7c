"""Self-contained HTML pages: the reference of the REST interface, and the form for the token.

Invariant: all inserted text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } p { max-width: 48rem; }
details { border: 1px solid color-mix(in srgb, currentColor 20%, transparent); border-radius: 8px; }
details { margin: 6px 0; padding: 6px 12px; }
summary { cursor: pointer; } code, b.method { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
b.method { display: inline-block; width: 4.5rem; color: #0b7a75; } small { opacity: 0.75; }
ul { margin: 6px 0; padding-left: 1.2rem; }
input { font: inherit; padding: 6px 10px; width: min(26rem, 100%); } button { font: inherit; padding: 6px 14px; }
"""


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><main>{body}</main></body></html>"
    )


def token_page(wrong: bool = False) -> str:
    """Return the page with the form for the token. The form sends the token in a body, because addresses are logged in
    many places."""
    said = "<p role=alert>That is not the token of this server.</p>" if wrong else ""
    return _page(
        "Anabranch: token",
        "<h1>Anabranch</h1><p>This server asks for its token.</p>"
        f'{said}<form method="post"><label>Token <input name="token" type="password" autofocus required '
        'autocomplete="current-password"></label> <button>Open</button></form>',
    )


def reference_page(described: Mapping[str, Any]) -> str:
    """Return the OpenAPI description as a page to read."""
    about = described["info"]
    parts = [
        f"<h1>Anabranch {escape(about['version'])}: REST</h1><p>{escape(about['description'])}</p>",
        '<p>For programs: <a href="openapi.json">openapi.json</a>.</p>',
    ]
    for tag in described["tags"]:
        parts.append(f"<h2>{escape(tag['name'])}</h2><p>{escape(tag['description'])}</p>")
        parts += [
            _operation(path, method, one)
            for path, methods in described["paths"].items()
            for method, one in methods.items()
            if tag["name"] in one.get("tags", ())[:1]
        ]
    return _page("Anabranch: REST", "".join(parts))


def _operation(path: str, method: str, one: Mapping[str, Any]) -> str:
    lines = "".join(f"<li>{line}</li>" for line in _lines(one))
    return (
        f'<details><summary><b class="method">{method.upper()}</b><code>{escape(path)}</code> '
        f"<small>{escape(one.get('summary', ''))}</small></summary>"
        f"<p>{escape(one.get('description', ''))}</p><ul>{lines}</ul></details>"
    )


def _lines(one: Mapping[str, Any]) -> Iterator[str]:
    for given in one.get("parameters", ()):
        needed = "" if given.get("required") else ", optional"
        about = escape(given.get("description", ""))
        yield f"<code>{escape(given['name'])}</code> ({escape(given['in'])}{needed}) {about}"
    for media, content in one.get("requestBody", {}).get("content", {}).items():
        shape = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        yield f"body <code>{escape(media)}</code> {escape(shape)}"
    for status, answer in one.get("responses", {}).items():
        yield f"<code>{escape(status)}</code> {escape(answer.get('description', ''))}"
