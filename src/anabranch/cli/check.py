"""`anabranch check`: parse, check and lint query files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anabranch.cli import options
from anabranch.cli.console import Terminal, open_terminal
from anabranch.cli.failures import REFUSED, colored, guarded
from anabranch.cli.options import Color

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anabranch.algebra.operators import Registration
    from anabranch.errors import Diagnostic


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A diagnostic with its file and its severity."""

    file: str
    text: str
    severity: str
    diagnostic: Diagnostic

    def drawn(self) -> str:
        from anabranch.errors import render

        shown = render(self.diagnostic, self.text, self.file)
        return self.severity + shown.removeprefix("error")

    def to_dict(self) -> dict[str, Any]:
        from anabranch.errors import line_and_column

        one = self.diagnostic
        start = None if one.span is None else line_and_column(self.text, one.span.start)
        end = None if one.span is None else line_and_column(self.text, one.span.end)
        return {
            "file": self.file,
            "severity": self.severity,
            "code": one.code,
            "message": one.message,
            "line": start and start[0],
            "column": start and start[1],
            "end_line": end and end[0],
            "end_column": end and end[1],
            "label": one.label,
            "hint": one.hint,
        }


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file with its queries, of which some are registrations, and the findings about them."""

    file: str
    text: str
    queries: int
    registrations: tuple[Registration, ...]
    findings: list[LintFinding]


@guarded
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Query files, or - for stdin.")],
    as_json: Annotated[bool, typer.Option("--json", help="Diagnostics as a JSON list.")] = False,
    color: Color = None,
) -> None:
    """Check query files without running them: syntax, names, kinds, and what is probably not meant.

    Warnings do not make the check fail.

    Examples:

      anabranch check queries/*.seraph

      anabranch check trick.seraph --json
    """
    terminal = open_terminal(color)
    found: list[LintFinding] = []
    checked = [_check_file(file) for file in files]
    announced = {one.unreadable: one.name for each in checked for one in each.registrations if one.unreadable}
    for each in checked:
        findings = [*_unread(each, announced), *each.findings]
        found += findings
        if not as_json:
            _draw(terminal, each.file, each.queries, findings)
    if as_json:
        print(json.dumps([finding.to_dict() for finding in found], indent=2, ensure_ascii=False))
    if any(finding.severity == "error" for finding in found):
        raise typer.Exit(REFUSED)


def _unread(checked: CheckedFile, announced: Mapping[str, str]) -> list[LintFinding]:
    """Return an error for each stream that a file's queries read and no query can make; `announced` maps streams to the
    queries that announce them."""
    from anabranch.engine.chains import unreadable

    problems = [problem for one in checked.registrations if announced for problem in unreadable(one, announced)]
    return [LintFinding(checked.file, checked.text, "error", problem) for problem in problems]


def _check_file(file: str) -> CheckedFile:
    from anabranch.algebra.operators import Registration
    from anabranch.cli.lints import lint
    from anabranch.cli.texts import queries_of
    from anabranch.errors import QueryError

    text = options.read_text(file)
    try:
        queries = queries_of(text, file)
    except QueryError as error:
        return CheckedFile(file, text, 0, (), [LintFinding(file, text, "error", one) for one in error.diagnostics])
    found = [LintFinding(file, text, "warning", one) for query in queries for one in lint(query)]
    registrations = tuple(one for one in queries if isinstance(one, Registration))
    return CheckedFile(file, text, len(queries), registrations, found)


def _draw(terminal: Terminal, file: str, queries: int, findings: list[LintFinding]) -> None:
    for finding in findings:
        terminal.note(colored(finding.drawn() + "\n"))
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = len(findings) - errors
    counts = [f"{queries} {'query' if queries == 1 else 'queries'}"] if not errors else []
    counts += [f"{errors} error{'s' if errors > 1 else ''}"] if errors else []
    counts += [f"{warnings} warning{'s' if warnings > 1 else ''}"] if warnings else []
    mark, style = ("failed", "bold red") if errors else ("ok", "bold green")
    terminal.out.print(f"[{style}]{mark}[/]", end="  ")
    terminal.out.print(f"{file}  {', '.join(counts)}", markup=False, soft_wrap=True)
