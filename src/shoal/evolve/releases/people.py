"""People with several rows across releases: what a row of a person's table holds, and when one stands for more than another.

Where a column says whose each row is (docs/persons.md), guards and audit work on a table with one line a person. It has the
person's settled quasi-identifiers, of each sensitive attribute the *set* of values over all rows of the person, and the rows
themselves as they are published, in one column (`ROWS`). Whoever reads a release sees at most this of a class: which lines
are in it, though not whose each is.

A set is written as a text, the same for the same values, so that lines are compared as those of any other table are.

>>> written(["flu", None, "cold", "flu"]), sorted(values_of('["cold","flu"]'))
('["cold","flu"]', ['cold', 'flu'])
>>> grown('["flu"]', '["cold","flu"]'), grown('["flu"]', '["cold"]'), goes_on('["flu"]', '["cold"]')
(True, False, False)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.microdata import Microdata
from shoal.models import Sensitive
from shoal.models.persons import Crowd
from shoal.schema import Schema

ROWS = "__rows"
"""The column with a person's rows as they are published."""


def of_people(schema: Schema) -> bool:
    """Whether each line of a table is a person with any number of rows."""
    return ROWS in schema.attributes


def written(values: Iterable[str | None]) -> str | None:
    """A set of values as a text; None for nobody's."""
    known = sorted({value for value in values if value is not None})
    return json.dumps(known, ensure_ascii=False, separators=(",", ":")) if known else None


@lru_cache(maxsize=65_536)  # as many distinct sets as a large table has
def values_of(text: str | None) -> frozenset[str]:
    """The values of a set that was written."""
    return frozenset() if text is None else frozenset(json.loads(text))


def goes_on(old: str | None, new: str | None) -> bool:
    """Whether somebody's set is still what it was in part: who has nothing of it any more begins anew."""
    return old == new or bool(values_of(old) & values_of(new))


def grown(old: str | None, new: str | None) -> bool:
    """Whether a set has all that it had, and was a set before: nothing published of it is taken back."""
    return old == new or (old is not None and values_of(old) <= values_of(new))


def added_to(old: str | None, new: str | None) -> bool:
    """The same of rows as they are published (`ROWS`): whether all of them are still there as they were."""
    return old == new or not _rows(old) - _rows(new)


@lru_cache(maxsize=65_536)  # likewise
def _rows(text: str | None) -> Counter[str]:
    return Counter() if text is None else Counter(json.dumps(row, sort_keys=True) for row in json.loads(text))


def each(question: object, old: pl.Series, new: pl.Series) -> NDArray[np.bool_]:
    """One of the questions above, asked of two columns line by line."""
    assert callable(question)
    pairs = zip(old.to_list(), new.to_list(), strict=True)
    return np.fromiter((question(*pair) for pair in pairs), dtype=bool, count=len(old))


def crowd(name: str, texts: Iterable[str | None]) -> Crowd:
    """A sensitive attribute of persons, by the set of each."""
    sets = [values_of(text) for text in texts]
    labels = sorted(frozenset().union(*sets))
    place = {label: code for code, label in enumerate(labels)}
    codes = [place[value] for one in sets for value in sorted(one)]
    owner = np.repeat(np.arange(len(sets), dtype=np.int32), [len(one) for one in sets])
    return Crowd(Sensitive(name, np.array(codes, dtype=np.int32), tuple(labels)), owner, len(sets))


def microdata(frame: pl.DataFrame, schema: Schema) -> Microdata:
    """A table of guards and audit, whose lines are persons, or records that are persons each."""
    if not of_people(schema):
        return Microdata.from_frame(frame, schema)
    quasi = Schema({name: schema.attributes[name] for name in schema.named("quasi")}, schema.folder, schema.missing)
    data = Microdata.from_frame(frame.select(list(quasi.attributes)), quasi)
    secrets = tuple(crowd(name, frame[name].to_list()) for name in schema.named("sensitive"))
    return replace(data, frame=frame, schema=schema, sensitive=secrets)
