"""A stream in the manner of the Lehigh University Benchmark: universities, department by department.

Schema and proportions are univ-bench's (Guo, Pan, Heflin, 2005): per department 7-10 full, 10-14 associate and 8-11
assistant professors, 5-7 lecturers, 8-14 undergraduates and 3-4 graduates per teacher, their courses, publications and
research groups; 18 predicates, about 6,700 triples per department. As in the original's files, a university that
somebody's degree is from is named with its type each time, so triples come again while they are alive. A fifth of the
degrees are from the own university (the original draws from all alike): else Q1 would find next to nothing.

The queries are the seven of Atre et al. (BitMat, WWW 2010) that SPECTRA takes too. Their constants are a department and
a university from the middle of the stream.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids
from workloads.base import RDF_TYPE, Query, Stream, Terms, described

UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
PREFIXES = {"ub": UB}
PREDICATES = (
    "name", "emailAddress", "telephone", "memberOf", "subOrganizationOf", "worksFor", "headOf", "takesCourse",
    "teacherOf", "teachingAssistantOf", "advisor", "publicationAuthor", "undergraduateDegreeFrom", "mastersDegreeFrom",
    "doctoralDegreeFrom", "researchInterest", "researchProject",
)  # fmt: skip
FACULTY = ("FullProfessor", "AssociateProfessor", "AssistantProfessor", "Lecturer")
FACULTY_COUNTS = ((7, 10), (10, 14), (8, 11), (5, 7))
PUBLICATIONS = ((15, 20), (10, 18), (5, 10), (0, 5))
NAMED = (*FACULTY, "UndergraduateStudent", "GraduateStudent", "Course", "GraduateCourse", "Publication")
CLASSES = (*NAMED, "University", "Department", "ResearchGroup", "TeachingAssistant")
UNIVERSITIES = 1000
NAMES = 800  # no department has more of one kind; an author has fewer publications
FIELDS = 30
_Random = np.random.Generator


@dataclass(frozen=True, slots=True)
class Lubm:
    stream: Stream
    queries: tuple[Query, ...]


def generate(triples: int, seed: int = 7) -> Lubm:
    """So many triples, and Q1 to Q7."""
    maker = _Maker(np.random.default_rng(seed))
    parts: list[Ids] = []
    places: list[tuple[int, str, str]] = []  # position in the stream, department, university
    total = university = 0
    while total < triples:
        for department in range(maker.random.integers(15, 26)):
            made = _Department(maker, university, department)
            places.append((total, made.spelling, f"<http://www.University{university}.edu>"))
            parts.append(made.facts())
            total += len(parts[-1])
            if total >= triples:
                break
        university += 1
    facts = np.ascontiguousarray(np.concatenate(parts)[:triples])
    middle = max((place for place in places if place[0] <= triples // 2), default=places[0])
    return Lubm(Stream("lubm", facts, maker.terms), _queries(maker, middle[1], middle[2]))


class _Maker:
    """Makes one department after the other, and keeps the ids of what they share."""

    def __init__(self, random: _Random) -> None:
        self.random = random
        self.terms = terms = Terms()
        self.ids = {RDF_TYPE: terms.one(RDF_TYPE)}
        for name in (*PREDICATES, *CLASSES):
            self.ids[f"<{UB}{name}>"] = terms.one(f"<{UB}{name}>")
        self.universities = terms.many(terms.kind("<http://www.University{0}.edu>"), UNIVERSITIES, None)
        for number, one in enumerate(self.universities.tolist()):
            self.ids[f"<http://www.University{number}.edu>"] = one
        self.names = {name: terms.many(terms.kind(f'"{name}{{0}}"'), NAMES, None) for name in NAMED}
        self.organisations = {
            "University": terms.many(terms.kind('"University{0}"'), UNIVERSITIES, None),
            "Department": terms.many(terms.kind('"Department{0}"'), 25, None),
        }
        self.telephone = terms.one('"xxx-xxx-xxxx"')
        self.fields = terms.many(terms.kind('"Research{0}"'), FIELDS, None)
        self.projects = terms.many(terms.kind(f"<{UB}Project{{0}}>"), FIELDS, None)
        place = "<http://www.Department{1}.University{0}.edu"
        self.department_kind = terms.kind(place + ">")
        self.kinds = {name: terms.kind(f"{place}/{name}{{2}}>") for name in (*NAMED, "ResearchGroup")}
        self.mail_kinds = {
            name: terms.kind(f'"{name}{{2}}@Department{{1}}.University{{0}}.edu"')
            for name in (*FACULTY, "UndergraduateStudent", "GraduateStudent")
        }

    def id(self, name: str) -> int:
        return self.ids[f"<{UB}{name}>"]


class _Department:
    def __init__(self, maker: _Maker, university: int, number: int) -> None:
        self.maker, self.random, self.university, self.number = maker, maker.random, university, number
        self.made: list[npt.NDArray[np.int64]] = []
        self.entities = 0
        self.order: dict[str, npt.NDArray[np.int64]] = {}
        if university >= UNIVERSITIES:
            raise ValueError(f"there are {UNIVERSITIES} universities")
        self.spelling = f"<http://www.Department{number}.University{university}.edu>"
        self.id = maker.ids[self.spelling] = int(maker.terms.many(maker.department_kind, 1, university, number)[0])

    def facts(self) -> Ids:
        """All triples, one subject after the other."""
        self._organisation()
        faculty = self._faculty()
        self._students(faculty)
        self._publications(faculty)
        self._groups()
        made = np.concatenate(self.made)
        return made[np.argsort(made[:, 0], kind="stable"), 1:]

    def _say(self, rank: npt.ArrayLike, subjects: npt.ArrayLike, predicate: int | str, objects: npt.ArrayLike) -> None:
        """One triple for each; `rank` says after which subject it is sent."""
        if isinstance(predicate, str):
            predicate = self.maker.id(predicate)
        columns = np.broadcast_arrays(rank, subjects, predicate, objects)
        self.made.append(np.column_stack([np.atleast_1d(column) for column in columns]).astype(np.int64))

    def _new(self, kind: str, count: int, typed: bool = True) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Things of a kind with their ranks, and their types and names said."""
        ids = self.maker.terms.many(self.maker.kinds[kind], count, self.university, self.number, None)
        ranks = np.arange(self.entities, self.entities + count)
        self.entities += count
        if typed:
            self._say(ranks, ids, self.maker.ids[RDF_TYPE], self.maker.id(kind))
            self._say(ranks, ids, "name", self.maker.names[kind][:count])
        return ids, ranks

    def _organisation(self) -> None:
        maker, university = self.maker, int(self.maker.universities[self.university])
        type_id = maker.ids[RDF_TYPE]
        self._say(-1, university, type_id, maker.id("University"))
        self._say(-1, university, "name", maker.organisations["University"][self.university])
        self._say(-1, self.id, type_id, maker.id("Department"))
        self._say(-1, self.id, "name", maker.organisations["Department"][self.number])
        self._say(-1, self.id, "subOrganizationOf", university)

    def _person(self, kind: str, ids: Ids, ranks: npt.NDArray[np.int64], belongs: str) -> None:
        mails = self.maker.terms.many(self.maker.mail_kinds[kind], len(ids), self.university, self.number, None)
        self._say(ranks, ids, belongs, self.id)
        self._say(ranks, ids, "emailAddress", mails)
        self._say(ranks, ids, "telephone", self.maker.telephone)

    def _degrees(self, ids: Ids, ranks: npt.NDArray[np.int64], *predicates: str) -> None:
        for predicate in predicates:
            drawn = self.random.integers(0, UNIVERSITIES, len(ids))
            drawn[self.random.random(len(ids)) < 0.2] = self.university
            universities = self.maker.universities[drawn]
            self._say(ranks, ids, predicate, universities)
            self._say(ranks, universities, self.maker.ids[RDF_TYPE], self.maker.id("University"))

    def _faculty(self) -> dict[str, Ids]:
        found: dict[str, Ids] = {}
        for kind, (low, high) in zip(FACULTY, FACULTY_COUNTS, strict=True):
            ids, ranks = self._new(kind, int(self.random.integers(low, high + 1)))
            self._person(kind, ids, ranks, "worksFor")
            self._degrees(ids, ranks, "undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom")
            fields = self.maker.fields[self.random.integers(0, FIELDS, len(ids))]
            self._say(ranks, ids, "researchInterest", fields)
            if kind == "FullProfessor":
                self._say(ranks[0], ids[0], "headOf", self.id)
            found[kind] = ids
            self.order[kind] = ranks
        teachers, ranks = np.concatenate(list(found.values())), np.concatenate(list(self.order.values()))
        for kind in ("Course", "GraduateCourse"):
            loads = self.random.integers(1, 3, len(teachers))
            courses, _ = self._new(kind, int(loads.sum()))
            self._say(np.repeat(ranks, loads), np.repeat(teachers, loads), "teacherOf", courses)
            found[kind] = courses
        return found

    def _students(self, faculty: dict[str, Ids]) -> None:
        random = self.random
        professors = np.concatenate([faculty[kind] for kind in FACULTY[:3]])
        teachers = len(professors) + len(faculty["Lecturer"])
        count = min(NAMES, int(random.integers(8, 15)) * teachers)
        ids, ranks = self._new("UndergraduateStudent", count)
        self._person("UndergraduateStudent", ids, ranks, "memberOf")
        self._takes(ids, ranks, faculty["Course"], 2, 4)
        advised = random.random(count) < 0.2
        self._say(ranks[advised], ids[advised], "advisor", random.choice(professors, int(advised.sum())))
        count = int(random.integers(3, 5)) * teachers
        ids, ranks = self._new("GraduateStudent", count)
        self._person("GraduateStudent", ids, ranks, "memberOf")
        self._degrees(ids, ranks, "undergraduateDegreeFrom")
        self._takes(ids, ranks, faculty["GraduateCourse"], 1, 3)
        self._say(ranks, ids, "advisor", random.choice(professors, count))
        assists = np.flatnonzero(random.random(count) < 0.22)[: len(faculty["Course"])]
        self._say(ranks[assists], ids[assists], self.maker.ids[RDF_TYPE], self.maker.id("TeachingAssistant"))
        self._say(ranks[assists], ids[assists], "teachingAssistantOf", faculty["Course"][: len(assists)])
        self.order["GraduateStudent"], faculty["GraduateStudent"] = ranks, ids

    def _takes(self, ids: Ids, ranks: npt.NDArray[np.int64], courses: Ids, least: int, most: int) -> None:
        """Each takes several courses, none twice."""
        counts = self.random.integers(least, most + 1, len(ids))
        first = self.random.integers(0, len(courses), len(ids))
        stride = self.random.integers(1, max(2, len(courses) // most), len(ids))
        for taken in range(most):
            takes = counts > taken
            chosen = courses[(first[takes] + taken * stride[takes]) % len(courses)]
            self._say(ranks[takes], ids[takes], "takesCourse", chosen)

    def _publications(self, faculty: dict[str, Ids]) -> None:
        graduates = faculty["GraduateStudent"]
        for kind, (low, high) in zip(FACULTY, PUBLICATIONS, strict=True):
            counts = self.random.integers(low, high + 1, len(faculty[kind]))
            authors = np.repeat(faculty[kind], counts)
            if not len(authors):
                continue
            ids, ranks = self._publication_ids(kind, counts)
            self._say(ranks, ids, self.maker.ids[RDF_TYPE], self.maker.id("Publication"))
            numbers = np.arange(len(authors)) - np.repeat(np.cumsum(counts) - counts, counts)
            self._say(ranks, ids, "name", self.maker.names["Publication"][numbers])
            self._say(ranks, ids, "publicationAuthor", authors)
            together = self.random.random(len(authors)) < 0.7
            others = self.random.choice(graduates, int(together.sum()))
            self._say(ranks[together], ids[together], "publicationAuthor", others)

    def _publication_ids(self, kind: str, counts: npt.NDArray[np.int64]) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Publications are numbered through the department; each follows its author's others."""
        first = len(self.order.get("Publication", ()))
        total = int(counts.sum())
        numbers = np.arange(first, first + total)
        ids = self.maker.terms.many(self.maker.kinds["Publication"], total, self.university, self.number, numbers)
        ranks = np.arange(self.entities, self.entities + total)
        self.entities += total
        self.order["Publication"] = np.concatenate((self.order.get("Publication", ranks[:0]), ranks))
        return ids, ranks

    def _groups(self) -> None:
        ids, ranks = self._new("ResearchGroup", int(self.random.integers(10, 21)), typed=False)
        self._say(ranks, ids, self.maker.ids[RDF_TYPE], self.maker.id("ResearchGroup"))
        self._say(ranks, ids, "subOrganizationOf", self.id)
        projects = self.maker.projects[self.random.integers(0, FIELDS, len(ids))]
        self._say(ranks, ids, "researchProject", projects)


def _queries(maker: _Maker, department: str, university: str) -> tuple[Query, ...]:
    def studies(student: str) -> list[tuple[str, str, str]]:
        return [
            ("?x", "a", f"ub:{student}"), ("?y", "a", "ub:University"), ("?z", "a", "ub:Department"),
            ("?x", "ub:memberOf", "?z"), ("?z", "ub:subOrganizationOf", "?y"),
            ("?x", "ub:undergraduateDegreeFrom", "?y"),
        ]  # fmt: skip

    patterns = {
        "Q1": studies("GraduateStudent"),
        "Q2": [("?x", "a", "ub:Course"), ("?x", "ub:name", "?y")],
        "Q3": studies("UndergraduateStudent"),
        "Q4": [
            ("?x", "ub:worksFor", department), ("?x", "a", "ub:FullProfessor"), ("?x", "ub:name", "?name"),
            ("?x", "ub:emailAddress", "?mail"), ("?x", "ub:telephone", "?telephone"),
        ],
        "Q5": [("?x", "ub:subOrganizationOf", department), ("?x", "a", "ub:ResearchGroup")],
        "Q6": [
            ("?y", "ub:subOrganizationOf", university), ("?y", "a", "ub:Department"), ("?x", "ub:worksFor", "?y"),
            ("?x", "a", "ub:FullProfessor"),
        ],
        "Q7": [
            ("?y", "a", "ub:FullProfessor"), ("?z", "a", "ub:Course"), ("?x", "a", "ub:UndergraduateStudent"),
            ("?x", "ub:advisor", "?y"), ("?x", "ub:takesCourse", "?z"), ("?y", "ub:teacherOf", "?z"),
        ],
    }  # fmt: skip
    return tuple(described(name, found, maker.ids.__getitem__, PREFIXES) for name, found in patterns.items())
