from typing import Annotated
import typer
def demo() -> None:
    """x"""
