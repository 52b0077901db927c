"""How commands speak: tables and progress for people on stderr, one JSON object on stdout for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

JSON = typer.Option(False, "--json", help="Print one JSON object on stdout; messages go to stderr.")
QUIET = typer.Option(False, "--quiet", "-q", help="Say nothing but errors.")
SEED = typer.Option(None, "--seed", help="Same input, configuration and seed give the same bytes.")


class Speaker:
    """What a command says, and to whom."""

    def __init__(self, as_json: bool, quiet: bool) -> None:
        self.as_json, self.quiet = as_json, quiet

    @property
    def console(self) -> Console:
        """People read stdout, unless a program does; then they read stderr."""
        from rich.console import Console

        return Console(stderr=self.as_json, highlight=False, soft_wrap=True, markup=False)

    def say(self, text: str) -> None:
        """A line for people."""
        if not self.quiet:
            self.console.print(text)

    def say_if_cold(self) -> None:
        """Why the very first run takes longer; on stderr, since it is no part of what the command has to say."""
        from shoal.kernels import is_cold

        if is_cold() and not self.quiet:
            sys.stderr.write(
                "Compiling the fast loops, once: this first run takes about a quarter of a minute longer.\n"
            )

    def table(self, title: str, headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A table for people; numbers to the right."""
        if self.quiet:
            return
        from rich.table import Table

        table = Table(title=title, title_justify="left", header_style="bold")
        for i, header in enumerate(headers):
            numeric = all(isinstance(row[i], int | float) for row in rows) if rows else False
            table.add_column(header, justify="right" if numeric else "left")
        for row in rows:
            table.add_row(*(show(cell) for cell in row))
        self.console.print(table)

    def result(self, value: dict[str, Any]) -> None:
        """The JSON object, when asked for."""
        if self.as_json:
            sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")

    @contextmanager
    def progress(self, label: str) -> Iterator[Callable[[float], None]]:
        """A bar on stderr for anything that may take longer than two seconds."""
        if self.quiet or not sys.stderr.isatty():
            yield lambda share: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=1.0)
            yield lambda share: bar.update(task, completed=share)


def show(cell: Any) -> str:
    """A cell as people like to read it."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.4f}".rstrip("0").rstrip(".") if cell == cell else "–"
    if isinstance(cell, int):
        return f"{cell:,}"
    return "–" if cell is None else str(cell)
