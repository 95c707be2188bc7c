"""Streams of edges to try indexes of connectivity on: slides of edges with ticks, from a seed.

A stream is a list of slides. Slide number k closes at tick `now`; its edges have that tick, unless they are late. `now`
rises from slide to slide, by more than 1 where slides are empty and left out; slides may also be there and empty.
`STREAMS` has one of each kind by name: each is a function of a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anabranch.delta.batch import Ids


@dataclass(frozen=True, slots=True)
class Slide:
    now: int
    edges: Ids
    ticks: Ids


@dataclass(frozen=True, slots=True)
class Stream:
    vertices: int
    slides: tuple[Slide, ...]

    def edges(self) -> Ids:
        return np.concatenate([slide.edges for slide in self.slides])

    def ticks(self) -> Ids:
        return np.concatenate([slide.ticks for slide in self.slides])


def random_priorities(count: int, seed: int = 0) -> Ids:
    """Distinct numbers over the whole range of an int64, in no order."""
    generator = np.random.default_rng(seed)
    spread = np.linspace(-(2**63) + 1024, 2**63 - 2048, max(count, 2)).astype(np.int64)[:count]
    return generator.permutation(spread)


def in_slides(vertices: int, edges: Ids, per_slide: int, first: int = 0) -> Stream:
    """Edges in their order, so many per slide, with ticks that rise by one."""
    chunks = [edges[start : start + per_slide] for start in range(0, len(edges), per_slide)]
    return of_chunks(vertices, chunks, range(first, first + len(chunks)))


def of_chunks(vertices: int, chunks: Sequence[Ids], nows: Sequence[int]) -> Stream:
    """One slide per chunk of edges, all of them in time."""
    slides = [
        Slide(now, np.ascontiguousarray(chunk, np.int64).reshape(-1, 2), np.full(len(chunk), now, np.int64))
        for now, chunk in zip(nows, chunks, strict=True)
    ]
    return Stream(vertices, tuple(slides))


# --- kinds of graphs ---


def uniform(seed: int, vertices: int = 60, edges: int = 400, per_slide: int = 10) -> Stream:
    generator = np.random.default_rng(seed)
    return in_slides(vertices, generator.integers(0, vertices, (edges, 2)), per_slide)


def power_law(seed: int, vertices: int = 128, edges: int = 600, per_slide: int = 15) -> Stream:
    """Few vertices have most edges (R-MAT)."""
    generator = np.random.default_rng(seed)
    levels = int(vertices - 1).bit_length()
    quadrants = generator.choice(4, (levels, edges, 1), p=(0.57, 0.19, 0.19, 0.05))
    bits = np.concatenate([quadrants >> 1, quadrants & 1], axis=2)
    weights = (1 << np.arange(levels)).reshape(-1, 1, 1)
    return in_slides(1 << levels, (bits * weights).sum(axis=0), per_slide)


def path(seed: int, vertices: int = 300, per_slide: int = 12, *, shuffled: bool = False) -> Stream:
    """0-1, 1-2, 2-3 and so on, and around again; in this order unless shuffled."""
    starts = np.arange(2 * vertices) % vertices
    if shuffled:
        starts = np.random.default_rng(seed).permutation(starts)
    return in_slides(vertices, np.column_stack([starts, (starts + 1) % vertices]), per_slide)


def small_components(seed: int, groups: int = 40, members: int = 4, edges: int = 600, per_slide: int = 15) -> Stream:
    """Edges within groups of a few vertices: many components in every window."""
    generator = np.random.default_rng(seed)
    ends = generator.integers(0, members, (edges, 2)) + members * generator.integers(0, groups, (edges, 1))
    return in_slides(groups * members, ends, per_slide)


def star(seed: int, vertices: int = 100, edges: int = 400, per_slide: int = 10) -> Stream:
    """One centre."""
    ends = np.random.default_rng(seed).integers(1, vertices, edges)
    return in_slides(vertices, np.column_stack([np.zeros_like(ends), ends]), per_slide)


def vanish_and_return(seed: int, vertices: int = 90, slides: int = 60, per_slide: int = 12) -> Stream:
    """Thirds of the vertices take turns: each is away longer than a short window, and comes back."""
    generator = np.random.default_rng(seed)
    third = vertices // 3
    chunks = [generator.integers(0, third, (per_slide, 2)) + third * (k // 7 % 3) for k in range(slides)]
    return of_chunks(vertices, chunks, range(slides))


def moving_ids(seed: int, slides: int = 60, per_slide: int = 20, step: int = 5, reach: int = 40) -> Stream:
    """Each slide's vertices begin a few further on: none comes back."""
    generator = np.random.default_rng(seed)
    chunks = [generator.integers(k * step, k * step + reach, (per_slide, 2)) for k in range(slides)]
    return of_chunks(slides * step + reach, chunks, range(slides))


# --- what happens to a stream ---


def with_gaps(stream: Stream, seed: int) -> Stream:
    """Slides without edges: some there and empty, some left out, once so many that any window is empty."""
    generator = np.random.default_rng(seed)
    slides: list[Slide] = []
    shift = 0
    for number, slide in enumerate(stream.slides):
        if number == len(stream.slides) // 2:
            shift += 100
        match generator.integers(0, 5):
            case 0:
                shift += int(generator.integers(1, 4))
            case 1:
                slides.append(Slide(slide.now + shift, slide.edges[:0], slide.ticks[:0]))
                shift += 1
        slides.append(Slide(slide.now + shift, slide.edges, slide.ticks + shift))
    return replace(stream, slides=tuple(slides))


def with_late_edges(stream: Stream, seed: int, lateness: int = 6, share: float = 0.3) -> Stream:
    """A share of the edges has the tick of an earlier slide, up to `lateness` before; in no order within a slide."""
    generator = np.random.default_rng(seed)
    slides: list[Slide] = []
    for slide in stream.slides:
        late = generator.random(len(slide.ticks)) < share
        behind = np.where(late, generator.integers(0, lateness + 1, len(slide.ticks)), 0)
        slides.append(replace(slide, ticks=slide.ticks - behind))
    return replace(stream, slides=tuple(slides))


def with_loops_and_copies(stream: Stream, seed: int) -> Stream:
    """Some vertices of each slide with an edge to themselves, and some edges two or three times, turned or not."""
    generator = np.random.default_rng(seed)
    slides: list[Slide] = []
    for slide in stream.slides:
        number = len(slide.edges)
        copies = generator.integers(0, number, number // 2) if number else np.empty(0, np.int64)
        ends = generator.integers(0, stream.vertices, number // 3)
        edges = np.concatenate([slide.edges, slide.edges[copies][:, ::-1], np.column_stack([ends, ends])])
        ticks = np.concatenate([slide.ticks, slide.ticks[copies], np.full(len(ends), slide.now)])
        order = generator.permutation(len(edges))
        slides.append(Slide(slide.now, np.ascontiguousarray(edges[order]), ticks[order]))
    return replace(stream, slides=tuple(slides))


def moved(stream: Stream, ticks: int) -> Stream:
    """All ticks so much later."""
    return replace(stream, slides=tuple(Slide(s.now + ticks, s.edges, s.ticks + ticks) for s in stream.slides))


def stretched(stream: Stream, factor: int) -> Stream:
    """All ticks so many times as large."""
    return replace(stream, slides=tuple(Slide(s.now * factor, s.edges, s.ticks * factor) for s in stream.slides))


STREAMS: Mapping[str, Callable[[int], Stream]] = {
    "uniform": uniform,
    "sparse": lambda seed: uniform(seed, vertices=400),
    "power law": power_law,
    "path": path,
    "path in no order": lambda seed: path(seed, shuffled=True),
    "small components": small_components,
    "star": star,
    "vanish and return": vanish_and_return,
    "moving ids": moving_ids,
    "one edge per slide": lambda seed: uniform(seed, vertices=30, edges=150, per_slide=1),
    "gaps": lambda seed: with_gaps(uniform(seed), seed),
    "late edges": lambda seed: with_late_edges(uniform(seed), seed),
    "late edges and gaps": lambda seed: with_late_edges(with_gaps(vanish_and_return(seed), seed), seed),
    "loops and copies": lambda seed: with_loops_and_copies(uniform(seed, vertices=150), seed),
    "everything": lambda seed: with_late_edges(with_gaps(with_loops_and_copies(power_law(seed), seed), seed), seed),
    "far from zero": lambda seed: moved(with_late_edges(uniform(seed), seed), 10**15),
    "below zero": lambda seed: moved(with_gaps(uniform(seed), seed), -(10**12)),
}
