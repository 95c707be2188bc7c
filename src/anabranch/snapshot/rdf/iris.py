"""Resolution of relative IRIs (RFC 3986, section 5.2), for any scheme.

Invariant: the result is absolute and holds no character that an IRI cannot hold, or there is none.
"""

from __future__ import annotations

import re

_PARTS = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_FORBIDDEN = re.compile(r"[\x00-\x20<>\"{}|\\^`\x7f]|%(?![0-9A-Fa-f]{2})")


def resolve(reference: str, base: str | None = None) -> str | None:
    """The reference as an absolute IRI; nothing when it is malformed, or relative to nothing."""
    if _FORBIDDEN.search(reference):
        return None
    scheme, authority, path, query, fragment = _split(reference)
    if scheme is not None:
        return reference
    if base is None or (authority is None and ":" in path.partition("/")[0]):
        return None
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if base_scheme is None:
        return None
    if authority is None:
        authority = base_authority
        if path == "":
            path = base_path
            query = base_query if query is None else query
        elif path.startswith("/"):
            path = _without_dots(path)
        else:
            path = _without_dots(_merged(base_authority, base_path, path))
    else:
        path = _without_dots(path)
    return "".join(
        (
            f"{base_scheme}:",
            "" if authority is None else f"//{authority}",
            path,
            "" if query is None else f"?{query}",
            "" if fragment is None else f"#{fragment}",
        )
    )


def _split(text: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    found = _PARTS.fullmatch(text)
    assert found is not None  # every part may be empty
    scheme, authority, path, query, fragment = found.groups()
    return scheme, authority, path or "", query, fragment


def _merged(authority: str | None, base_path: str, path: str) -> str:
    if authority is not None and base_path == "":
        return f"/{path}"
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """The path with `.` and `..` taken out."""
    segments = path.split("/")
    kept: list[str] = []
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if segment == ".." and (len(kept) > 1 or (kept and kept[0] != "")):
            kept.pop()
        if segment not in (".", ".."):
            kept.append(segment)
        elif last:
            kept.append("")
    return "/".join(kept)
