"""A stream in the manner of SEAS: what power meters measure, one observation after the other.

Each observation has the six measures that SPECTRA's queries read (appendix B), in an order of its own, amid five other
triples. Values repeat, as rounded measurements do. S1 asks for all six measures; S2 for those with more than 10 W and a
crest factor below 1.2, which a few in a hundred have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from workloads.base import RDF_TYPE, Query, Stream, Terms, described

M = "http://purl.org/NET/seas/measures#"
SEAS = "http://purl.org/NET/seas#"
QB = "http://purl.org/linked-data/cube#"
PREFIXES = {"m": M, "seas": SEAS, "qb": QB}
MEASURES = (("V_RMS", "?rm"), ("V_THD", "?thd"), ("V_CF", "?cf"), ("W", "?watt"), ("Wh", "?watth"), ("DPF", "?vah"))
OTHERS = ("qb:Observation", "qb:dataSet", "seas:instrument", "seas:location", "m:VAR")
METERS = 50
STEP = 0.01  # what a value is rounded to
VALUES = 100_000  # 0.00 to 999.99


@dataclass(frozen=True, slots=True)
class Seas:
    stream: Stream
    queries: tuple[Query, ...]


def generate(triples: int, seed: int = 7) -> Seas:
    """So many triples, and S1 and S2."""
    random = np.random.default_rng(seed)
    terms = Terms()
    ids = {RDF_TYPE: terms.one(RDF_TYPE)}
    for iri in (*(f"<{M}{name}>" for name, _ in MEASURES), f"<{M}VAR>", f"<{QB}Observation>", f"<{QB}dataSet>",
                f"<{SEAS}instrument>", f"<{SEAS}location>", f"<{SEAS}house>"):  # fmt: skip
        ids[iri] = terms.one(iri)
    meters = terms.many(terms.kind(f"<{SEAS}meter{{0}}>"), METERS, None)
    rooms = terms.many(terms.kind(f"<{SEAS}room{{0}}>"), METERS, None)
    decimal = terms.kind('"{0}.{1:02}"^^<http://www.w3.org/2001/XMLSchema#decimal>')
    hundredths = np.arange(VALUES)
    values = terms.many(decimal, VALUES, hundredths // 100, hundredths % 100)
    count = -(-triples // (len(MEASURES) + len(OTHERS)))
    observations = terms.many(terms.kind(f"<{SEAS}observation{{0}}>"), count, None)

    def measured(name: str, mean: float, spread: float) -> tuple[int, npt.ArrayLike]:
        drawn = np.clip(np.rint(random.normal(mean, spread, count) / STEP), 0, VALUES - 1).astype(np.int64)
        return ids[f"<{M}{name}>"], values[drawn]

    watts = np.clip(np.rint(random.exponential(6.0, count) / STEP), 0, VALUES - 1).astype(np.int64)
    columns: list[tuple[int, npt.ArrayLike]] = [
        measured("V_RMS", 230, 3), measured("V_THD", 2, 0.5), measured("V_CF", 1.4, 0.16),
        (ids[f"<{M}W>"], values[watts]), measured("Wh", 40, 12), measured("DPF", 0.9, 0.05),
        measured("VAR", 5, 1), (ids[RDF_TYPE], ids[f"<{QB}Observation>"]),
        (ids[f"<{QB}dataSet>"], ids[f"<{SEAS}house>"]),
        (ids[f"<{SEAS}instrument>"], meters[random.integers(0, METERS, count)]),
        (ids[f"<{SEAS}location>"], rooms[random.integers(0, METERS, count)]),
    ]  # fmt: skip
    facts = np.empty((count, len(columns), 3), np.int64)
    facts[:, :, 0] = observations[:, None]
    for place, (predicate, objects) in enumerate(columns):
        facts[:, place, 1], facts[:, place, 2] = predicate, objects
    order = np.argsort(random.random((count, len(columns))), axis=1)
    shuffled = np.take_along_axis(facts, order[:, :, None], axis=1).reshape(-1, 3)[:triples]
    numbers = np.full(len(terms), np.nan)
    numbers[values] = hundredths / 100
    stream = Stream("seas", np.ascontiguousarray(shuffled), terms, numbers)
    patterns = [("?obs", f"m:{name}", variable) for name, variable in MEASURES]
    return Seas(
        stream,
        (
            described("S1", patterns, ids.__getitem__, PREFIXES),
            described("S2", patterns, ids.__getitem__, PREFIXES, (("?watt", ">", 10), ("?cf", "<", 1.2))),
        ),
    )
