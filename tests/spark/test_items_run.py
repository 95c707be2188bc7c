"""The loader of items through the whole pipeline: what a service told before a restart is not told again after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.jobs import job_for
from tests.support.push import serving
from tests.support.spark_runs import Runner
from tests.support.watched import Watched

from anabranch.runner.folder import RunFolder
from anabranch.runner.receiving import Receivers
from anabranch.sinks.files import LinesFile

QUERY = """
    PREFIX ebay: <http://developer.ebay.com/DevZone/finding/CallRef/findItemsByKeywords.html#>
    SELECT ?id ?bid STREAM INTERMEDIATERESULT TRIPLES 2
    WHERE { WINDOW TYPE SLIDINGTRIPLES 2 {
      ?id ebay:Response.searchResult.item.title ?title ;
          ebay:Response.searchResult.item.sellingStatus.currentPrice ?bid } }
"""


def found(price: int) -> tuple[int, dict[str, str], bytes]:
    """One item, which becomes two triples."""
    status = [{"currentPrice": [{"__value__": str(price)}], "timeLeft": [f"PT{price}S"]}]
    answer = {"searchResult": [{"item": [{"itemId": ["110"], "title": ["Wii"], "sellingStatus": status}]}]}
    return 200, {}, json.dumps({"findItemsByKeywordsResponse": [answer]}).encode()


def test_prices_are_told_once_each_over_a_restart(runner: Runner, tmp_path: Path) -> None:
    out = tmp_path / "out.ndjson"
    before: Watched | None = None
    with serving(found(1)) as script:
        address = f"http+items://127.0.0.1:{script.port}/?keywords=Wii&every=0.2"

        def run(answers: int, *prices: int) -> None:
            nonlocal before
            script.answers = [found(price) for price in prices]
            receivers = Receivers(RunFolder(str(tmp_path / "checkpoint")))
            job = job_for(QUERY, {"auctions": receivers.open("auctions", address, True)})
            before = watched = Watched(before=before)
            try:
                receivers.start()
                runner.run(job, should_stop=watched.reached(answers=answers), sinks=[LinesFile(out), watched])
            finally:
                receivers.stop()

        # An answer is told once something later has come.
        run(2, 1, 2, 2, 3, 3)
        run(4, 3, 3, 4, 4, 5)
    told: list[dict[str, Any]] = [json.loads(line)["row"] for line in out.read_text().splitlines()]
    assert [row["bid"] for row in told][:4] == [1, 2, 3, 4]
    assert {row["id"] for row in told} == {"https://www.ebay.com/itm/110"}
