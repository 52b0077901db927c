"""What the box search keeps, in words: rows with named fields, and three bundles of tables.

Records with the same quasi-identifiers are one *tuple*; with the same sensitive codes as well, one *point*. A *holding* says
how many records of a point are in a class; it lies in two linked lists, that of its tuple and that of its class.

A class below is how a row looks, for readers and for mypy; `blank` makes an array of such rows, which NumPy fills by field
(`holdings["count"]`) and compiled loops read row by row (`holdings[h].count`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar, get_type_hints, overload

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

# No holding, no class; the end of a linked list.
NOBODY = -1
# What a step has done to a class: nothing, something, taken all that it can spare, dissolved it.
OPEN, CHANGED, PARTIAL, CLOSED = range(4)

Row = TypeVar("Row", covariant=True)


class Fields(Protocol[Row]):
    """An array of rows with named fields."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: str) -> NDArray[Any]: ...


def blank(kind: type[Row], count: int) -> NDArray[np.void]:
    """So many rows of zeros."""
    return np.zeros(count, dtype=np.dtype((np.record, list(get_type_hints(kind).items()))))


class Attribute:
    """What an attribute is, and where its numbers are."""

    kind: np.int64  # INTERVAL, TREE or SET
    slot: np.int64  # its state in a box: slots from here …
    stop: np.int64  # … to here
    codes: np.int64
    missing: np.int64  # the code of a missing value
    table: np.int64  # place in `losses` of its losses by code range; -1: too many codes
    values: np.int64  # place in `losses` of what it has instead
    nodes: np.int64  # place of its taxonomy in `nodes`
    masks: np.int64  # its first row of `masks` and of `covers`
    shift: np.int64  # 2^shift neighbouring codes share such a row


class Node:
    """A node of a taxonomy: the one above it, and its leaves."""

    parent: np.int64
    first: np.int64
    last: np.int64


class Holding:
    """How many records of a point are in a class."""

    point: np.int32
    tuple: np.int32
    home: np.int32  # the class
    count: np.int32
    taken: np.int32  # how many of them the step under way takes away
    next_in_class: np.int32
    back_in_class: np.int32
    next_in_tuple: np.int32
    back_in_tuple: np.int32


class Class:
    """A class, or what it was before the step under way."""

    size: np.int64
    loss: np.float64  # what each of its records loses
    head: np.int64  # its first holding
    status: np.int64
    seen: np.int64  # the search for a class that looked at it last
    place: np.int64  # where it is among the live ones


class Listed:
    """Lists that lie side by side. The field of the same name in `Desk` says how many entries of a list count."""

    live: np.int32  # classes in use; behind them those that are not
    touched: np.int32  # classes that the step under way has changed
    free: np.int32  # holdings that nobody uses
    planned: np.int32  # the plan: records of which holding …
    to: np.int32  # … go to which class …
    amount: np.int32  # … and how many
    found: np.int32  # holdings in the box on trial that would gain, or belong to the class it replaces
    spare: np.int32  # the other holdings in it


class Asked:
    """What one more record of a kind does for the new class: the question that it was asked in last, and the answer."""

    question: np.int64
    gain: np.float64


class Desk:
    """The numbers of a search: limits, randomness, work done, lengths of lists, and the step under way."""

    k: np.int64
    closed_up: np.int64  # 1: good classes stay good whatever joins them
    narrow: np.int64  # 1: a step sees near tuples and the classes they are in alone, and no sets are kept
    random: np.uint64
    work: np.int64  # operations of about the same length
    gained: np.float64  # what accepted steps have changed the loss by since the caller last set it to 0
    # Where in [0, 1) each kind of step ends.
    shifts: np.float64
    gathers: np.float64
    changes: np.float64
    generalizations: np.float64
    joins: np.float64
    # Lengths.
    live: np.int64
    touched: np.int64
    free: np.int64
    planned: np.int64
    found: np.int64
    spare: np.int64
    # Rows beyond those of the classes.
    old: np.int64  # this far behind a class is what it was
    trial: np.int64  # a box on trial; the row behind it is for writing on
    # The step under way.
    limit: np.float64  # it may raise the loss by this much
    price: np.float64  # what a record loses in the box on trial
    replaced: np.int64  # the class that this box replaces
    middle: np.int64  # the tuple it was drawn around …
    home: np.int64  # … and the class that this one is in
    fresh: np.int64  # the class that the step makes
    searches: np.int64  # searches for a class until now
    questions: np.int64  # how often it was asked who helps the new class most
    asking: np.int64  # operations that the budget counts for asking whether a class satisfies the policy


class Gauge(NamedTuple):
    """What boxes cost: what every attribute is, all loss tables, all taxonomies."""

    attributes: Fields[Attribute]
    losses: Floats
    nodes: Fields[Node]


class Table(NamedTuple):
    """What never changes: codes of the tuples and the tuples near each, the tuple of each record, histogram columns of a point.

    Points with the same histogram columns are of one of the `kinds`: no rule tells their records apart.
    Rows of `masks` are sets of tuples: for a range, row i those with a smaller code than i; for a set those with
    code i. The last two rows are for scans to write on; a search that looks at near tuples alone has no others.
    """

    codes: Shorts
    near: Shorts
    records: Shorts
    bins: Shorts
    kinds: Shorts
    masks: Words


class Store(NamedTuple):
    """The partition. Rows of classes are followed by as many old rows (not in the histogram) and two rows for a box on trial.

    Rows of `covers` are sets of classes: those whose box has code i. The last row is for a search to write on.
    `heads` is the first holding of each tuple, `asked` has an entry for each kind of points.
    """

    classes: Fields[Class]
    box: Ints
    histogram: Shorts
    holdings: Fields[Holding]
    heads: Shorts
    covers: Words
    lists: Fields[Listed]
    asked: Fields[Asked]
    desk: Desk
