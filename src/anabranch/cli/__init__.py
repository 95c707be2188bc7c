"""The command line: arguments in, text out."""

from __future__ import annotations


def main() -> None:
    """Run the `anabranch` command."""
    from anabranch.cli.signals import end_at_once
    from anabranch.runner.garbage import collect_seldom

    end_at_once()
    collect_seldom()
    from anabranch.cli.app import app

    app()
