"""`anabranch serve`: sessions of streams and queries that stay, reached by REST, live push and a page.

Invariant: a server that other machines can reach has a token, and folders that its clients may read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli import options
from anabranch.cli.arguments import takes
from anabranch.cli.console import open_terminal
from anabranch.cli.failures import guarded
from anabranch.cli.options import Color, EngineOption, KafkaBroker

DATA = "anabranch-data"


@dataclass(frozen=True, slots=True)
class ServeArguments:
    host: Annotated[str, typer.Option(help="The address to listen on. Others than loopback need a token.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="0 takes a free one.")] = 8017
    token: Annotated[
        str | None,
        typer.Option(envvar="ANABRANCH_TOKEN", metavar="TOKEN", help="What clients must show. A file hides it better."),
    ] = None
    token_file: Annotated[str | None, typer.Option(metavar="FILE", help="A file whose first line is the token.")] = None
    origin: Annotated[
        list[str] | None,
        typer.Option("--origin", metavar="URL", help="Pages of this origin may use the server too. Repeatable."),
    ] = None
    engine: Annotated[
        EngineOption, typer.Option(envvar="ANABRANCH_ENGINE", help="Where queries run: on Spark, or in this process.")
    ] = "spark"
    data: Annotated[
        str, typer.Option(metavar="FOLDER", help="Where sessions are kept: streams, queries, checkpoints, results.")
    ] = DATA
    root: Annotated[
        list[str] | None,
        typer.Option(
            "--root", metavar="FOLDER", help="Streams and graphs may read files of this folder only. Repeatable."
        ),
    ] = None
    secret: Annotated[
        list[str] | None,
        typer.Option("--secret", metavar="NAME", help="Addresses may refer to this variable: ${env:NAME}. Repeatable."),
    ] = None
    any_file: Annotated[
        bool, typer.Option("--any-file", help="Clients of other machines may read every file that this user can read.")
    ] = False
    kafka_broker: KafkaBroker = None
    idle_timeout: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help=f"A stream silent for so long is idle. \\[{options.LIVE_IDLE_TIMEOUT}]"),
    ] = None
    idle: options.Idle = "correct"
    ahead: options.Ahead = None
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="The page, beside REST and live push.")] = True
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False
    max_sessions: Annotated[int | None, typer.Option(metavar="N", min=1, help="The most sessions.")] = None
    max_streams: Annotated[int | None, typer.Option(metavar="N", min=1, help="The most streams of a session.")] = None
    max_queries: Annotated[int | None, typer.Option(metavar="N", min=1, help="The most queries of a session.")] = None
    max_clients: Annotated[int | None, typer.Option(metavar="N", min=1, help="The most live clients.")] = None
    max_body: Annotated[str | None, typer.Option(metavar="SIZE", help="The largest request, such as 16MB.")] = None
    max_steps: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The most steps that one evaluation of a query may need.")
    ] = None
    max_rows: Annotated[int | None, typer.Option(metavar="N", min=1, help="The most rows of a result.")] = None
    batch_events: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The most records per stream that a batch takes.")
    ] = None
    keep_results: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many results of a query are kept to resume from.")
    ] = None
    color: Color = None


@guarded
@takes(ServeArguments)
def serve(arguments: ServeArguments) -> None:
    """Serve sessions of streams, graphs and continuous queries until Ctrl-C.

    Sessions, queries and what their windows hold survive a restart with the same --data folder.

    Examples:

      anabranch serve

      anabranch serve --engine local --port 0 --no-ui

      anabranch serve --host 0.0.0.0 --token-file token.txt --root data
    """
    from anabranch.cli.serving import ServerPlace, read_token
    from anabranch.cli.serving import serve as serve_hub

    options.set_broker(arguments.kafka_broker)
    bounded = arguments.root is not None or arguments.any_file
    place = ServerPlace(
        arguments.host,
        arguments.port,
        read_token(arguments.token, arguments.token_file),
        tuple(arguments.origin or ()),
        arguments.ui,
        arguments.open_,
        bounded,
    )
    place.check()
    if arguments.root is not None and arguments.any_file:
        raise typer.BadParameter("give one of --root and --any-file", param_hint="--any-file")
    if arguments.engine == "spark":
        from anabranch.spark.java import require_java

        require_java()
    from anabranch.server.hub import Hub
    from anabranch.server.limits import Limits

    asked = {
        "sessions": arguments.max_sessions,
        "streams": arguments.max_streams,
        "queries": arguments.max_queries,
        "clients": arguments.max_clients,
        "body_bytes": options.size(arguments.max_body, "--max-body"),
        "rows_per_result": arguments.max_rows,
        "steps": arguments.max_steps,
        "results_kept": arguments.keep_results,
        "batch_events": arguments.batch_events,
    }
    limits = Limits(**{name: value for name, value in asked.items() if value is not None})
    timing = options.timing(arguments.idle_timeout, arguments.idle, arguments.ahead)
    folder = Path(arguments.data)
    where = "on Spark" if arguments.engine == "spark" else "in this process"
    remark = f"queries run {where}; sessions are kept in {folder}"
    roots = None if arguments.root is None else [options.existing(one) for one in arguments.root]
    serve_hub(
        lambda: Hub(folder, arguments.engine, limits, timing=timing, roots=roots, secrets=arguments.secret or ()),
        place,
        open_terminal(arguments.color),
        remark=remark,
    )
