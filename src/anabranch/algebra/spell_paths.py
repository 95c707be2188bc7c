"""Property paths as short text, as SPARQL writes them.

Invariant: different paths have different text under the same prefixes; nothing reads it back.
"""

from __future__ import annotations

from anabranch.algebra.triples import Alternative, Inverse, NegatedStep, PathLink, PropertyPath, Repeat, Sequence
from anabranch.model.spelling import Terms

_TIMES = {(0, None): "*", (1, None): "+", (0, 1): "?"}


def path_text(path: PropertyPath, terms: Terms) -> str:
    """Return the text of a property path; an inner path stands in brackets when it is more than a step."""
    match path:
        case PathLink(iri):
            return terms.predicate(iri)
        case Inverse(inner):
            return f"^{_inner(inner, terms)}"
        case Sequence(paths):
            return "/".join(_inner(one, terms) for one in paths)
        case Alternative(paths):
            return "|".join(_inner(one, terms) for one in paths)
        case Repeat(inner, least, most):
            times = _TIMES.get((least, most), f"{{{least},{'' if most is None else most}}}")
            return f"{_inner(inner, terms)}{times}"
        case NegatedStep(forward, backward):
            steps = [terms.predicate(one) for one in forward or ()]
            steps += [f"^{terms.predicate(one)}" for one in backward or ()]
            return f"!{steps[0]}" if len(steps) == 1 else f"!({'|'.join(steps)})"


def _inner(path: PropertyPath, terms: Terms) -> str:
    text = path_text(path, terms)
    return text if isinstance(path, PathLink | NegatedStep) else f"({text})"
