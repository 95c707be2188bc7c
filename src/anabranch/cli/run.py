"""`anabranch run`: continuous queries over streams, on Spark or in this process.

Invariant: the exit code says what happened; the answers up to there were written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from anabranch.cli import options
from anabranch.cli.arguments import takes
from anabranch.cli.console import open_terminal
from anabranch.cli.failures import FAILED, SET_ASIDE, guarded
from anabranch.cli.options import (
    Color,
    ConflictPolicyOption,
    EngineOption,
    EvaluatorOption,
    ForceOption,
    IndexOption,
    KafkaBroker,
    MatcherOption,
    OnErrorOption,
    OutputOption,
    Params,
    SummaryForm,
    WindowsOption,
)

if TYPE_CHECKING:
    from anabranch.runner.options import RunOptions


@dataclass(frozen=True, slots=True)
class RunArguments:
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Query files: REGISTER QUERY, one or more; - is stdin.")
    ]
    stream: Annotated[
        list[str] | None,
        typer.Option("--stream", "-s", metavar="NAME=ADDRESS", help="A stream: a path, - or a URI. Repeatable."),
    ] = None
    graph: Annotated[
        list[str] | None,
        typer.Option(
            "--graph",
            "-g",
            metavar="NAME=FILE",
            help="A static graph, JSON or RDF; RDF without a name is what SPARQL sees by default. Repeatable.",
        ),
    ] = None
    refresh: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How often static graphs are looked at for changes, such as PT1M."),
    ] = None
    vocabulary: Annotated[
        str | None,
        typer.Option(metavar="IRI", help="The namespace of names where RDF and property graphs meet."),
    ] = None
    rules: Annotated[
        str, typer.Option(metavar="RULES", help="Rewrites: all, none, or names with commas in between.")
    ] = "all"
    evaluator: Annotated[
        EvaluatorOption, typer.Option(help="Who answers SPARQL: our own algebra, or the plug-in (pyoxigraph).")
    ] = "own"
    force: Annotated[
        ForceOption, typer.Option(help="How answers are found: on changes where it can be, or by computing them anew.")
    ] = "auto"
    matcher: Annotated[
        MatcherOption,
        typer.Option(help="How patterns over triples are matched: as it costs least, or by one of three ways."),
    ] = "auto"
    index: Annotated[
        IndexOption,
        typer.Option(help="What answers connected() and its kin: the recency tree, or BIC where slides fit."),
    ] = "recency"
    max_matches: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="The most matches a pattern may keep, or tell at once."),
    ] = None
    max_state: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The most memory that one pattern may take, such as 500MB.")
    ] = None
    verify: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Compare every N-th answer with the plain evaluator's; 0: none."),
    ] = 0
    on_error: Annotated[
        OnErrorOption, typer.Option(help="A row on which an expression fails: skip and count it, or end its query.")
    ] = "skip"
    max_steps: Annotated[
        int, typer.Option(metavar="N", min=1, help="The most steps that one evaluation of a query may need.")
    ] = 50_000_000
    engine: Annotated[
        EngineOption, typer.Option(envvar="ANABRANCH_ENGINE", help="Where it runs: on Spark, or in this process.")
    ] = "spark"
    output: Annotated[
        OutputOption | None,
        typer.Option("--output", "-o", help="The answers on stdout. \\[table; none with --sink]", show_default=False),
    ] = None
    sink: Annotated[
        list[str] | None,
        typer.Option(
            "--sink",
            metavar="ADDRESS",
            help="Where answers go: out.ndjson, out/, parquet:out/, kafka://, https://. Repeatable.",
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where the run keeps what it needs to go on after a crash."),
    ] = None
    windows: WindowsOption = "trailing"
    conflicts: Annotated[
        ConflictPolicyOption,
        typer.Option(help="Events that disagree about an element: the newest value, or an empty window."),
    ] = "latest"
    lateness: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How far out of order events may come, such as PT5S.")
    ] = None
    late: Annotated[
        str,
        typer.Option(
            metavar="POLICY", help="Events later than that: drop them, or correct (correct:PT1H) the answers."
        ),
    ] = "drop"
    idle_timeout: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help=f"A live stream silent for so long is idle. [{options.LIVE_IDLE_TIMEOUT}]"
        ),
    ] = None
    idle: options.Idle = "correct"
    ahead: options.Ahead = None
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Watch files and directories for what comes.")] = False
    kafka_broker: KafkaBroker = None
    param: Params = None
    until: Annotated[
        str | None,
        typer.Option(metavar="INSTANT", help="Evaluate up to an instant after the input's end, or until 'drained'."),
    ] = None
    dead_letter: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where malformed and late events go. [NAME.dead.ndjson]")
    ] = None
    query: Annotated[list[str] | None, typer.Option("--query", metavar="NAME", help="Only this query. Repeatable.")] = (
        None
    )
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 5 when events were set aside.")] = False
    batch_events: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At most so many records per stream and batch.")
    ] = None
    master: Annotated[str, typer.Option(metavar="URL", help="The Spark master.")] = "local[*]"
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A Spark property. Repeatable.")
    ] = None
    metrics_port: Annotated[
        int | None, typer.Option(metavar="PORT", min=0, max=65535, help="Figures for Prometheus on this port.")
    ] = None
    summary: Annotated[SummaryForm, typer.Option(help="The summary on stderr.")] = "text"
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No summary, no status line.")] = False
    color: Color = None

    def options(self) -> RunOptions:
        """The options of the requested run."""
        from anabranch.engine.evaluation_options import EvaluationOptions
        from anabranch.engine.session import parameter_values
        from anabranch.model.mapping import Mapping as ModelMapping
        from anabranch.runner.options import RunOptions

        until, drain = options.until(self.until)
        return RunOptions(
            windows=self.windows,
            conflicts=self.conflicts,
            evaluator=self.evaluator,
            parameters=parameter_values(options.parameters(self.param)),
            mapping=ModelMapping(options.vocabulary(self.vocabulary)),
            rules=options.rules(self.rules),
            evaluation=EvaluationOptions(
                self.force,
                self.matcher,
                self.max_matches,
                options.size(self.max_state, "--max-state"),
                self.verify,
                self.index,
                self.on_error,
                self.max_steps,
            ),
            lateness=options.lateness(self.lateness),
            late=options.late_policy(self.late),
            timing=options.timing(self.idle_timeout, self.idle, self.ahead),
            until=until,
            drain=drain,
            refresh=options.interval(self.refresh, "--refresh"),
            follow=self.follow,
            batch_events=self.batch_events,
            checkpoint=self.checkpoint,
            dead_letter=self.dead_letter,
            engine=self.engine,
            master=self.master,
            conf=options.pairs(self.conf, "--conf"),
        )


@guarded
@takes(RunArguments)
def run(arguments: RunArguments) -> None:
    """Run continuous queries over streams of events and print their answers.

    Query files are Seraph (.seraph), C-SPARQL (.csparql), LUPOS (.lupos) or RSP-QL (.rspql); several may run together
    over the same streams. Streams are files of events (.ndjson, .parquet, .tsv, .csv, .nq, .trig, .jsonld, also .gz),
    directories of them, stdin (-), or kafka://, http+poll://, ws://, mqtt://, socket:// and gen: addresses.

    Examples:

      anabranch run trick.seraph --stream rides=events.ndjson

      anabranch run tolls.csparql -s http://streams.org/tolls=tolls.nt.tsv --graph city.ttl -o turtle

      anabranch run trick.seraph -s rides=events/ --follow --checkpoint state/ --sink answers/

      anabranch run trick.seraph -s rides=events/ --engine local -o json --until drained | jq .row
    """
    from anabranch.cli.carry import carry
    from anabranch.cli.texts import chosen
    from anabranch.runner.spec import RunSpec
    from anabranch.syntax.languages import QueryText, script

    terminal = open_terminal(arguments.color)
    options.set_broker(arguments.kafka_broker)
    texts = chosen([QueryText(options.read_text(file), file) for file in arguments.files], arguments.query or ())
    scripts = [script(*text) for text in texts]
    options.refuse_parameters(arguments.param, [one.language for each in scripts for one in each.registrations])
    streams = options.named_paths(arguments.stream, "--stream")
    if sum(address == options.STDIN for _, address in streams) > 1:
        raise typer.BadParameter("only one stream can come from stdin", param_hint="--stream")
    spec = RunSpec.of(scripts, streams, arguments.options(), options.graph_paths(arguments.graph))
    if spec.lacks_stream:
        message = "the query reads a stream; name its file, for example --stream rides=events.ndjson"
        raise typer.BadParameter(message, param_hint="--stream")
    carried = carry(spec, arguments, terminal)
    done = carried.summary
    if arguments.summary == "json":
        terminal.note(done.to_json())
    elif arguments.summary == "text" and not arguments.quiet:
        if terminal.out.is_terminal and done.rows:
            terminal.note("")
        terminal.note(done.text())
    code = carried.code
    if not code and (carried.failed or done.differing):
        code = FAILED
    if not code and arguments.strict and (done.malformed or done.late or done.ahead):
        code = SET_ASIDE
    raise typer.Exit(code)
