"""Reduces a run of edges to spanning forests, slide by slide.

Law: for every range of time that begins and ends between two slides, the marked edges have the same components as all
edges. Among the edges of a slide the newest are taken first, so the same holds for ranges that begin within a slide and
end behind it.

Work: O(edges x the inverse of Ackermann's function), and sorting where times do not rise.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids, Mask
from anabranch.delta.kernels import forest as kernels
from anabranch.delta.trace import usable


def spanning_forests(lefts: Ids, rights: Ids, times: Ids, slides: Ids, vertices: int, wanted: Mask) -> Mask:
    """Return which of the wanted edges are in a spanning forest of the wanted edges of their slide. Slides are numbers
    from 0 on that never fall as time goes on; the ends of edges are numbers below `vertices`."""
    chosen = np.zeros(len(times), np.bool_)
    rising = bool((times[1:] >= times[:-1]).all())
    order = np.arange(len(times)) if rising else np.argsort(times, kind="stable")
    kernels.forests(
        usable(lefts),
        usable(rights),
        usable(order[::-1]),
        usable(slides),
        wanted,
        np.empty(vertices, np.int64),
        np.full(vertices, -1, np.int64),
        chosen,
    )
    return chosen
