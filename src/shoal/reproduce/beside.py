"""A paper's cells on several processors: a process of its own for each, and this one that keeps the rows.

The other processes touch no file, so that they may be ended at any time; a row is kept the moment it comes.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess

from shoal.errors import InputError
from shoal.progress import Progress
from shoal.reproduce.experiments import Book, Cell, Paper, measured, missing, named, run
from shoal.reproduce.verdicts import Row

# Processes at most: each has the tables in memory.
MOST = 8
# Seconds between two looks at whether the work is still wanted.
PATIENCE = 0.2


def run_beside(paper: Paper, book: Book, quick: bool, progress: Progress, processes: int | None = None) -> None:
    """Every cell of a paper that has no row yet, so many at a time: one for each processor by default.

    The processes look the paper up by its number.
    """
    todo = missing(paper, book, quick)
    several = min(processes or os.cpu_count() or 1, MOST, len(todo))
    if several < 2:
        run(paper, book, quick, progress)
        return
    with _pool(several) as pool:
        asked = {pool.submit(_row, paper.number, one.name, cell): (one, cell) for one, cell in todo}
        for answer in _answers(set(asked), progress):
            experiment, cell = asked[answer]
            with progress.stage(named(experiment, cell), 1 / len(todo)):
                book.add(experiment, *answer.result())
    for experiment in paper.experiments:
        book.sort(experiment, quick)


def _answers(asked: set[Future[tuple[Row, float]]], progress: Progress) -> Iterator[Future[tuple[Row, float]]]:
    """What is ready, as it gets ready."""
    while asked:
        ready, asked = wait(asked, timeout=PATIENCE, return_when=FIRST_COMPLETED)
        progress.check()
        yield from ready


def _row(number: str, name: str, cell: Cell) -> tuple[Row, float]:
    """In a process of its own: it knows the paper by its number."""
    from shoal.reproduce import paper

    experiment = next(one for one in paper(number).experiments if one.name == name)
    return measured(experiment, cell, Progress())


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end with this block, however it ends."""
    before = set(active_children())
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield pool
    except BrokenProcessPool:
        raise InputError(
            "A process that ran an experiment was ended from outside, perhaps for want of memory; run the command again with "
            "--processes 1: finished rows are not run again where they were kept (--out)."
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(active_children()) - before:
            child.terminate()


def _begin() -> None:
    """Ctrl-C is for the process that was called, which ends this one; when that one is gone, so is this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    above = parent_process()
    if above is not None:
        threading.Thread(target=_leave_with, args=(above,), daemon=True).start()


def _leave_with(above: BaseProcess) -> None:
    above.join()
    os._exit(1)
