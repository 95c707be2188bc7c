"""Short ways to write terms and to call functions, for the tests of SPARQL's values."""

from __future__ import annotations

from anabranch.model.terms import FALSE, TRUE, XSD, XSD_STRING, Iri, Literal, Term, tagged
from anabranch.model.values import Value
from anabranch.snapshot.context import Context
from anabranch.snapshot.rdf.functions import FUNCTIONS

CLOCK = 1_577_836_800_500_000  # 2020-01-01T00:00:00.5Z


def context(seed: int = 0) -> Context:
    def nothing(source: object) -> object:
        raise AssertionError("no function of SPARQL reads a graph")

    return Context(graph=nothing, clock=CLOCK, seed=seed)  # type: ignore[arg-type]


def term(text: str) -> Term:
    """`abc`, `abc@en`, `<http://x>` or `5^^integer`: a string, a tagged one, an IRI, a literal of an XSD type."""
    if text.startswith("<"):
        return Iri(text[1:-1])
    lexical, mark, kind = text.rpartition("^^")
    if mark:
        return Literal(lexical, kind[1:-1] if kind.startswith("<") else f"{XSD}{kind}")
    lexical, mark, language = text.rpartition("@")
    return tagged(lexical, language) if mark else Literal(text)


def shown(value: Value) -> str:
    """The way `term` reads it; `null`, `true` and `false` for what is no term."""
    match value:
        case None:
            return "null"
        case True | False:
            return str(value).lower()
        case Iri(name):
            return f"<{name}>"
        case Literal(lexical, _, language) if language:
            return f"{lexical}@{language}"
        case Literal(lexical, datatype):
            short = datatype.removeprefix(XSD)
            return (
                lexical if datatype == XSD_STRING else f"{lexical}^^{short if short != datatype else f'<{datatype}>'}"
            )
    return repr(value)


def call(name: str, *arguments: str) -> str:
    """What a function says of arguments in short form."""
    return shown(FUNCTIONS[f"sparql:{name}"](context(), *map(term, arguments)))


def as_term(value: Value) -> Value:
    return TRUE if value is True else FALSE if value is False else value
