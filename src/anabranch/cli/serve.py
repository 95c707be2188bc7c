"""`anabranch serve`: sessions of streams and queries that stay, reached by REST, live push and a page.

Invariant: a server that other machines can reach has a token, and folders that its clients may read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli import options
from anabranch.cli.console import open_terminal
from anabranch.cli.failures import guarded
from anabranch.cli.options import Color, EngineOption, KafkaBroker

DATA = "anabranch-data"


@guarded
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on. Others than loopback need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="0 takes a free one.")] = 8017,
    token: Annotated[
        str | None,
        typer.Option(envvar="ANABRANCH_TOKEN", metavar="TOKEN", help="What clients must show. A file hides it better."),
    ] = None,
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file whose first line is the token.")
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option("--origin", metavar="URL", help="Pages of this origin may use the server too. Repeatable."),
    ] = None,
    engine: Annotated[
        EngineOption, typer.Option(envvar="ANABRANCH_ENGINE", help="Where queries run: on Spark, or in this process.")
    ] = EngineOption.spark,
    data: Annotated[
        str, typer.Option(metavar="FOLDER", help="Where sessions are kept: streams, queries, checkpoints, results.")
    ] = DATA,
    root: Annotated[
        list[str] | None,
        typer.Option(
            "--root", metavar="FOLDER", help="Streams and graphs may read files of this folder only. Repeatable."
        ),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option("--secret", metavar="NAME", help="Addresses may refer to this variable: ${env:NAME}. Repeatable."),
    ] = None,
    any_file: Annotated[
        bool, typer.Option("--any-file", help="Clients of other machines may read every file that this user can read.")
    ] = False,
    kafka_broker: KafkaBroker = None,
    idle_timeout: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help=f"A stream silent for so long is idle. \\[{options.LIVE_IDLE_TIMEOUT}]"),
    ] = None,
    idle: options.Idle = "correct",
    ahead: options.Ahead = None,
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="The page, beside REST and live push.")] = True,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False,
    max_sessions: Annotated[int | None, typer.Option(metavar="N", min=1, help="The most sessions.")] = None,
    max_streams: Annotated[int | None, typer.Option(metavar="N", min=1, help="The most streams of a session.")] = None,
    max_queries: Annotated[int | None, typer.Option(metavar="N", min=1, help="The most queries of a session.")] = None,
    max_clients: Annotated[int | None, typer.Option(metavar="N", min=1, help="The most live clients.")] = None,
    max_body: Annotated[str | None, typer.Option(metavar="SIZE", help="The largest request, such as 16MB.")] = None,
    max_steps: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The most steps that one evaluation of a query may need.")
    ] = None,
    max_rows: Annotated[int | None, typer.Option(metavar="N", min=1, help="The most rows of a result.")] = None,
    batch_events: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The most records per stream that a batch takes.")
    ] = None,
    keep_results: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many results of a query are kept to resume from.")
    ] = None,
    color: Color = None,
) -> None:
    """Serve sessions of streams, graphs and continuous queries until Ctrl-C.

    Sessions, queries and what their windows hold survive a restart with the same --data folder.

    Examples:

      anabranch serve

      anabranch serve --engine local --port 0 --no-ui

      anabranch serve --host 0.0.0.0 --token-file token.txt --root data
    """
    from anabranch.cli.serving import ServerPlace, read_token
    from anabranch.cli.serving import serve as serve_hub

    options.set_broker(kafka_broker)
    bounded = root is not None or any_file
    place = ServerPlace(host, port, read_token(token, token_file), tuple(origin or ()), ui, open_, bounded)
    place.check()
    if root is not None and any_file:
        raise typer.BadParameter("give one of --root and --any-file", param_hint="--any-file")
    if engine is EngineOption.spark:
        from anabranch.spark.java import require_java

        require_java()
    from anabranch.server.hub import Hub
    from anabranch.server.limits import Limits

    asked = {
        "sessions": max_sessions,
        "streams": max_streams,
        "queries": max_queries,
        "clients": max_clients,
        "body_bytes": options.size(max_body, "--max-body"),
        "rows_per_result": max_rows,
        "steps": max_steps,
        "results_kept": keep_results,
        "batch_events": batch_events,
    }
    limits = Limits(**{name: value for name, value in asked.items() if value is not None})
    timing = options.timing(idle_timeout, idle, ahead)
    folder = Path(data)
    where = "on Spark" if engine is EngineOption.spark else "in this process"
    remark = f"queries run {where}; sessions are kept in {folder}"
    roots = None if root is None else [options.existing(one) for one in root]
    serve_hub(
        lambda: Hub(folder, engine.value, limits, timing=timing, roots=roots, secrets=secret or ()),
        place,
        open_terminal(color),
        remark=remark,
    )
