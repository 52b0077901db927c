"""Every class against every rule, some classes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError
from shoal.models import Rule, Sensitive
from shoal.models.persons import Crowd, bound
from shoal.pieces import pieces
from shoal.progress import Progress, Told

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Numbers this close to each other are the same strongest parameter.
HAIR = 1e-9


def judge(
    rules: Sequence[Rule],
    labels: Ints,
    sizes: Ints,
    columns: Sequence[Sensitive | Crowd] = (),
    *,
    progress: Told | None = None,
) -> tuple[list[float], Floats]:
    """Every class against every rule.

    - `rules`: the policy's rules, bound to the sensitive attributes.
    - `labels`, `sizes`: the class of each record, and the records of each class.
    - `columns`: the sensitive attributes that the rules count; none by default.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Classes × values may not fit into memory, so classes are taken some at a time. What holds in all pieces is the
    weakest of what holds in each. Returns the strongest parameter of each rule, and deficits per rule and class.

    >>> import numpy as np, shoal
    >>> from shoal.verifier import judge
    >>> rule = shoal.KAnonymity(3).bind(None, 5)
    >>> strongest, deficits = judge([rule], np.array([0, 0, 1, 1, 1]), np.array([2, 3]))
    >>> strongest, deficits.tolist()
    ([2.0], [[1.0, 0.0]])
    """
    told, done = Progress.of(progress), 0
    deficits = np.zeros((len(rules), len(sizes)))
    found: list[list[float]] = [[] for _ in rules]
    by_view: dict[Any, list[int]] = {}
    for i, rule in enumerate(rules):
        by_view.setdefault(rule.view.key if rule.view is not None else None, []).append(i)
    for members in by_view.values():
        for piece, counts in _pieces(rules[members[0]], labels, sizes, columns):
            for i in members:
                told(done / deficits.size)
                found[i].append(rules[i].strongest(sizes[piece], counts))
                deficits[i, piece] = rules[i].deficit(sizes[piece], counts)
                done += len(counts)
    strongest = []
    for rule, parts in zip(rules, found, strict=True):
        told.check()
        best = max(parts) if rule.model.smaller_is_stronger else min(parts)
        certain = len(parts) == 1 or _holds(rule, best, labels, sizes, columns)
        strongest.append(best if certain else float("nan"))
    return strongest, deficits


def _pieces(
    rule: Rule, labels: Ints, sizes: Ints, columns: Sequence[Sensitive | Crowd]
) -> Iterator[tuple[slice, Ints]]:
    """Some classes at a time, with their histograms over the rule's view."""
    if rule.view is None:
        yield slice(0, len(sizes)), np.zeros((len(sizes), 0), dtype=np.int64)
        return
    view, seen = rule.view, rule.view.of_records(next(c for c in columns if c.name == rule.attribute))  # type: ignore[arg-type]
    every = list(pieces(len(sizes), view.width))
    # Where all classes fit at once, nothing has to be sorted.
    order = np.argsort(labels, kind="stable") if len(every) > 1 else None
    ends = np.concatenate([[0], np.cumsum(sizes)])
    for some in every:
        count = some.stop - some.start
        records = slice(None) if order is None else order[ends[some.start] : ends[some.stop]]
        codes, owner = seen[records].astype(np.int64), labels[records] - some.start
        cells = (owner * view.width + codes)[codes >= 0]
        counts = np.bincount(cells, minlength=count * view.width).astype(np.int64, copy=False)
        yield some, counts.reshape(count, view.width)


def _holds(rule: Rule, value: float, labels: Ints, sizes: Ints, columns: Sequence[Sensitive | Crowd]) -> bool:
    """Whether the rule holds everywhere with this main parameter: a piece may oblige other classes than the whole."""
    again = tried_again(rule, value, next((column for column in columns if column.name == rule.attribute), None))
    if again is None:
        return True  # 0 and the like: no value of the parameter holds, and that is what it says
    pieces = _pieces(again, labels, sizes, columns)
    return not any((again.deficit(sizes[piece], counts) > HAIR).any() for piece, counts in pieces)


def tried_again(rule: Rule, value: float, column: Sensitive | Crowd | None) -> Rule | None:
    """The rule with this main parameter, or None where the model does not allow it.

    The value is a result of floating point, and some models are strict: it is tried a hair weaker, where that is allowed.
    """
    main = rule.model.main
    whole = isinstance(getattr(rule.model, main), int)
    hair = 0.0 if whole else HAIR * max(1.0, abs(value))
    for tried in (value + hair if rule.model.smaller_is_stronger else value - hair, value):
        try:
            return bound(replace(rule.model, **{main: int(tried) if whole else tried}), column, rule.n)
        except ConfigError:
            continue
    return None
