"""Runs the benchmarks and writes what was measured to bench/results, with the commit and the machine; draws pictures.

    python bench/run.py [NAME ...] [--smoke]

`--smoke` runs each on tiny input, to see that it works; nothing is written then.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import carrying
import connectivity_plots
import plots
import push_down
import snapshot_growth
import window_growth


def _matching(smoke: bool) -> dict[str, Any]:
    import matching  # loads numba and compiles, which the others need not wait for

    return matching.run(smoke)


def _end_to_end(smoke: bool) -> dict[str, Any]:
    import end_to_end

    return end_to_end.run(smoke)


def _connectivity(smoke: bool) -> dict[str, Any]:
    import connectivity

    return connectivity.run(smoke)


def _connectivity_spark(smoke: bool) -> dict[str, Any]:
    import connectivity_spark

    return connectivity_spark.run(smoke)


def _listing_5(smoke: bool) -> dict[str, Any]:
    import listing_5

    return listing_5.run(smoke)


def _shortest_paths(smoke: bool) -> dict[str, Any]:
    import shortest_paths

    return shortest_paths.run(smoke)


def _many_queries(smoke: bool) -> dict[str, Any]:
    import many_queries

    return many_queries.run(smoke)


def _product(smoke: bool) -> dict[str, Any]:
    import product

    return product.run(smoke)


def _choices(smoke: bool) -> dict[str, Any]:
    import choices

    return choices.run(smoke)


def _papers(smoke: bool) -> dict[str, Any]:
    import papers

    return papers.run(smoke)


def _live_clients(smoke: bool) -> dict[str, Any]:
    import live_clients

    return live_clients.run(smoke)


def _soak(smoke: bool) -> dict[str, Any]:
    import soak

    return soak.run(smoke)


BENCHMARKS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "snapshot_growth": snapshot_growth.run,
    "carrying": carrying.run,
    "window_growth": window_growth.run,
    "push_down": push_down.run,
    "matching": _matching,
    "end_to_end": _end_to_end,
    "product": _product,
    "papers": _papers,
    "choices": _choices,
    "connectivity": _connectivity,
    "connectivity_spark": _connectivity_spark,
    "listing_5": _listing_5,
    "shortest_paths": _shortest_paths,
    "many_queries": _many_queries,
    "soak": _soak,
    "live_clients": _live_clients,
}
PICTURES: dict[str, Callable[[dict[str, Any]], object]] = {
    "matching": plots.draw,
    "connectivity": connectivity_plots.draw,
}
RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "processor": platform.machine(), "python": platform.python_version()}


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def write_result(name: str, measured: dict[str, Any]) -> dict[str, Any]:
    RESULTS.mkdir(exist_ok=True)
    result = {"benchmark": name, "commit": commit(), "machine": machine(), **measured}
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(BENCHMARKS))
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    for name in options.names:
        print(f"== {name}")
        measured = BENCHMARKS[name](options.smoke)
        if not options.smoke:
            result = write_result(name, measured)
            if name in PICTURES:
                PICTURES[name](result)


if __name__ == "__main__":
    main()
