"""Conversion of findItemsByKeywords answers to JSON-LD: the items of a page, unwrapped, under a context.

The service wraps every value into a list of one, and amounts into objects:

    {"findItemsByKeywordsResponse": [{"ack": ["Success"], "paginationOutput": [{"totalPages": ["3"]}], "searchResult": [
      {"@count": "1", "item": [{"itemId": ["110"], "title": ["Wii"], "sellingStatus": [{
        "currentPrice": [{"@currencyId": "EUR", "__value__": "10.5"}], "timeLeft": ["P1DT2H"]}]}]}]}]}

    {"itemId": "110", "title": "Wii", "sellingStatus": {"currentPrice": "10.5", "currentPrice@currencyId": "EUR"}}

A JSON-LD context, which pyoxigraph reads, gives the names their meaning: `@nest` treats the fields of an object as the
item's own, the name whose meaning is `@id` identifies items, and a name whose meaning is null is left out.

Invariant: an item is unchanged exactly when all fields are to which its context gives a meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from anabranch.errors import StreamError
from anabranch.sources.receivers.base import PeerRefusal
from anabranch.sources.receivers.bodies import at_path

DEFAULT_CONTEXT = Path(__file__).with_name("items.jsonld")
_VALUE = "__value__"
_KEYWORDS = frozenset(("@id", "@type", "@value", "@language", "@list", "@set"))
_HASH_SIZE = 8


# --- answers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """The items of an answer, and how many pages there are."""

    items: list[Any]
    pages: int = 1


def page_of(answer: Any, path: str | None, name: str) -> Page:
    """The page that a JSON answer is; `path` says where its list is, if not at searchResult.item.

    Raises Refused where the answer is an error, or of another shape.
    """
    data = unwrapped(answer)
    root = _root(data)
    if isinstance(root, Mapping) and "errorMessage" in root:
        raise PeerRefusal(
            f"{name}: {_error_text(root['errorMessage'])}\nhint: this is what the service says of the question"
        )
    if path is None and isinstance(answer, list) and not (isinstance(root, Mapping) and "searchResult" in root):
        return Page(data if isinstance(data, list) else [data])  # a list of one item is a list
    try:
        found = at_path(data, path) if path is not None else root["searchResult"]
    except (LookupError, TypeError):
        has = f"it has {', '.join(root) or 'no fields'}" if isinstance(root, Mapping) else "it is no object"
        raise PeerRefusal(
            f"{name}: the answer has no `{path or 'searchResult'}`\nhint: {has}; name the list: items=path.to.list"
        ) from None
    if path is None:
        found = found.get("item", []) if isinstance(found, Mapping) else []
    return Page(found if isinstance(found, list) else [found], _pages(root))


def unwrapped(data: Any) -> Any:
    """JSON without lists of one, and without objects around amounts; attributes of an amount stand beside it.

    Of names that begin with @, those of JSON-LD stay.
    """
    match data:
        case list():
            items = [unwrapped(item) for item in data]
            return items[0] if len(items) == 1 else items
        case Mapping():
            if _VALUE in data:
                return unwrapped(data[_VALUE])
            fields: dict[str, Any] = {}
            for name, value in data.items():
                own = name if name in _KEYWORDS else name.removeprefix("@") or name
                fields[own] = unwrapped(value)
                for attribute, said in _attributes(value):
                    fields[f"{own}{attribute}"] = said
            return fields
    return data


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    only = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(only, Mapping) and _VALUE in only:
        yield from ((name, said) for name, said in only.items() if name.startswith("@"))


def _root(data: Any) -> Any:
    """Return the value below the name of the operation."""
    if isinstance(data, Mapping) and len(data) == 1:
        name, inner = next(iter(data.items()))
        return inner if name.endswith("Response") and isinstance(inner, Mapping) else data
    return data


def _pages(root: Any) -> int:
    try:
        return int(root["paginationOutput"]["totalPages"])
    except (LookupError, TypeError, ValueError):
        return 1


def _error_text(said: Any) -> str:
    try:
        errors = said["error"]
        one = errors[0] if isinstance(errors, list) else errors
        return str(one["message"])
    except (LookupError, TypeError):
        return json.dumps(said)[:200]


# --- what the names mean ----------------------------------------------------------------------------------------------


class JsonLdContext:
    """A JSON-LD context: a file that holds one, or an object with @context."""

    def __init__(self, path: Path | str = DEFAULT_CONTEXT) -> None:
        try:
            data = json.loads(Path(path).read_bytes())
        except OSError as error:
            raise StreamError(f"context {path}: {error.strerror or error}") from None
        except (ValueError, RecursionError) as error:
            raise StreamError(f"context {path} is not JSON: {error}") from None
        self.data = data["@context"] if isinstance(data, Mapping) and "@context" in data else data
        terms = self._terms(self.data, path)
        self._left_out = frozenset(term for term, meaning in terms.items() if meaning is None)
        ids = [term for term, meaning in terms.items() if meaning == "@id" or meaning == {"@id": "@id"}]
        self._ids = ("@id", *ids)
        self._check(path)

    def item(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """The item without what is left out."""
        return {name: self._kept(value) for name, value in item.items() if name not in self._left_out}

    def key(self, item: Mapping[str, Any]) -> Any:
        """Return the key that identifies an item; None where it has none."""
        return next((item[name] for name in self._ids if item.get(name) not in (None, "", [])), None)

    def record(self, at: str, item: Mapping[str, Any]) -> bytes:
        """Return the record of an item."""
        record = {"at": at, "graph": {"@context": self.data, **item}}
        return json.dumps(record, separators=(",", ":")).encode()

    def _kept(self, value: Any) -> Any:
        match value:
            case Mapping():
                return self.item(value)
            case list():
                return [self._kept(one) for one in value]
        return value

    def _terms(self, context: Any, path: Path | str) -> dict[str, Any]:
        match context:
            case Mapping():
                return dict(context)
            case list():
                terms: dict[str, Any] = {}
                for one in context:
                    terms |= self._terms(one, path)
                return terms
        raise StreamError(
            f"context {path} is no JSON-LD context\nhint: it stands in the file; none is loaded from the web"
        )

    def _check(self, path: Path | str) -> None:
        document = json.dumps({"@context": self.data, "@id": "relative:/x"})
        try:
            for _ in ox.parse(document, ox.RdfFormat.JSON_LD, base_iri="relative:/"):
                pass
        except (SyntaxError, ValueError) as error:
            raise StreamError(f"context {path} is no JSON-LD context: {error}") from None


# --- memory -----------------------------------------------------------------------------------------------------------


class ListedItems:
    """The last emitted content of each item: hashes of keys and contents, of the last so many, oldest first."""

    def __init__(self, pairs: bytes = b"", most: int = 100_000) -> None:
        size = 2 * _HASH_SIZE
        cut = (pairs[at : at + size] for at in range(0, len(pairs), size))
        self._told = {pair[:_HASH_SIZE]: pair[_HASH_SIZE:] for pair in cut}
        self._most = most

    def changes(self, key: Any, content: bytes) -> bool:
        """Return whether an item is new or changed, and remember it."""
        digest = blake2b(content, digest_size=_HASH_SIZE).digest()
        of = digest if key is None else blake2b(json.dumps(key).encode(), digest_size=_HASH_SIZE).digest()
        before = self._told.pop(of, None)
        self._told[of] = digest
        return before != digest

    def forget_oldest(self, at_least: int) -> None:
        """Keep to the bound, but remember as many as one round of questions brought."""
        for of in list(self._told)[: max(0, len(self._told) - max(self._most, at_least))]:
            del self._told[of]

    def packed(self) -> bytes:
        return b"".join(key + digest for key, digest in self._told.items())
