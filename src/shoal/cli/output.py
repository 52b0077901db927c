"""How commands speak: tables and progress for people on stderr, one JSON object on stdout for programs."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.progress import Moment, Progress

JSON = typer.Option(False, "--json", help="Print one JSON object on stdout; messages go to stderr.")
QUIET = typer.Option(False, "--quiet", "-q", help="Say nothing but errors.")
PERSON = typer.Option(None, "--person", help="The column that says whose each row is, where people have several rows.")
SEED = typer.Option(None, "--seed", min=0, help="Same input, configuration and seed give the same bytes.")

# Where nobody looks on, a line is enough every so often.
SECONDS = 10.0


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

    def say_if_cold(self) -> bool:
        """Why the very first run takes longer, if this is it; on stderr, since it is no part of what the command has to say."""
        from shoal.kernels import is_cold

        cold = is_cold()
        if cold and not self.quiet:
            sys.stderr.write("Compiling the fast loops, once: this first run takes up to half a minute longer.\n")
        return cold

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
    def progress(self, label: str) -> Iterator[Progress]:
        """For anything that may take longer than two seconds: stage, share and time left on stderr, and Ctrl-C stops it.

        A bar where somebody looks on; else a line every ten seconds.
        """
        from shoal.progress import Progress

        with self._listener(label) as listener:
            progress = Progress(listener)
            with _stopped_by_interrupt(progress):
                yield progress

    @contextmanager
    def _listener(self, label: str) -> Iterator[Callable[[Moment], None] | None]:
        if self.quiet:
            yield None
            return
        if not sys.stderr.isatty():
            yield _lines(label)
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[left]}"),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=1.0, left="")
            yield lambda moment: bar.update(
                task, description=_doing(label, moment), completed=moment.share, left=_time_left(moment)
            )


def _lines(label: str) -> Callable[[Moment], None]:
    """A listener that writes a line every ten seconds."""
    last = 0.0

    def tell(moment: Moment) -> None:
        nonlocal last
        if moment.elapsed - last >= SECONDS:
            last = moment.elapsed
            parts = [f"{_doing(label, moment)}: {moment.share:.0%} done", _time_left(moment)]
            sys.stderr.write(f"{', '.join(part for part in parts if part)}\n")
            sys.stderr.flush()

    return tell


def _doing(label: str, moment: Moment) -> str:
    return f"{label} ({moment.stage})" if moment.stage else label


def _time_left(moment: Moment) -> str:
    """As people say it; nothing while it is too early to say."""
    if moment.left is None:
        return ""
    if moment.left < 90:
        return f"about {max(1, round(moment.left))} s left"
    return (
        f"about {round(moment.left / 60)} min left" if moment.left < 5400 else f"about {moment.left / 3600:.1f} h left"
    )


@contextmanager
def _stopped_by_interrupt(progress: Progress) -> Iterator[None]:
    """Ctrl-C cancels the work: at once where this thread works, at the next check where others do.

    What is being written is finished. A second Ctrl-C stops whatever is going on.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        if not progress.cancel():
            sys.stderr.write("shoal: It is being written and cannot be stopped any more.\n")
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        progress.check()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def show(cell: Any) -> str:
    """A cell as people like to read it."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.4f}".rstrip("0").rstrip(".") if cell == cell else "–"
    if isinstance(cell, int):
        return f"{cell:,}"
    return "–" if cell is None else str(cell)
