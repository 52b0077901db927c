"""The worst that an intruder with so many pieces of knowledge can learn: (c, k)-safety as a measure of a release.

A piece of knowledge is an implication between facts of the form "this person has this value" (Martin et al. 2007): "if Hanna
has flu, so has Karl". A release is (c, k)-safe if no k of them, whatever they are, make a value of anybody more probable than c;
`worst_case` gives the least such c (docs/measures.md#background-knowledge).

>>> worst_case([[2, 2, 1], [2, 1, 1, 1]], 1)
[0.4, 0.6666666666666666]
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

__all__ = ["worst_case"]


def worst_case(classes: Sequence[Sequence[int]], knowledge: int) -> list[float]:
    """The largest probability of a value of a person, for an intruder with 0, 1, … `knowledge` implications.

    - `classes`: how often each value occurs in each class, most frequent first; everybody has one value.
    - `knowledge`: how many implications, not negative.

    Returns one probability for each number of implications. At worst all of them have the same conclusion A, so that what
    remains to be weighed is that A and all the premises are false: the least Pr(¬A ∧ ¬A_1 ∧ … ∧ ¬A_k) / Pr(A) is found class
    by class, since classes are independent, and makes A as probable as 1 / (1 + that).

    >>> from shoal.measures.worst_case import worst_case
    >>> worst_case([[3, 3]], 2)
    [0.5, 1.0, 1.0]
    """
    facts = knowledge + 1
    # The least probability that so many facts are all false, over the classes so far: without A among them, and with it.
    without, among = [1.0] + [math.inf] * facts, [math.inf] * (facts + 1)
    # Classes with the same frequencies are told apart only as far as there are facts to spend on them.
    kinds = Counter((tuple(counts[:facts]), sum(counts)) for counts in classes if counts)
    for top, size in (kind for kind, many in kinds.items() for _ in range(min(many, facts))):
        false = _false(top, size, facts)
        odds = size / top[0]
        # The facts of this class are `here`; A is one of them, or of another class, or not chosen yet.
        splits = [(here, so_far - here) for so_far in range(facts + 1) for here in range(so_far + 1)]
        fresh_without, fresh_among = [math.inf] * (facts + 1), [math.inf] * (facts + 1)
        for here, before in splits:
            at = here + before
            fresh_without[at] = min(fresh_without[at], without[before] * false[here])
            chosen = without[before] * false[here] * odds if here else math.inf
            fresh_among[at] = min(fresh_among[at], among[before] * false[here], chosen)
        without, among = fresh_without, fresh_among
    return [1 / (1 + min(among[1 : have + 1])) if kinds else 0.0 for have in range(1, facts + 1)]


@lru_cache(maxsize=1024)
def _false(top: tuple[int, ...], size: int, facts: int) -> list[float]:
    """The least probability that 0, 1, … facts about persons of one class are all false.

    The first person lacks the k_0 most frequent values, the next the k_1 ≤ k_0 most frequent, and so on.
    """
    found = []
    for many in range(facts + 1):
        ways = []
        for lacking in partitions(many, many):
            if len(lacking) > size:
                continue
            left = 1.0
            for i, values in enumerate(lacking):
                left *= max(0, size - i - sum(top[:values])) / (size - i)
            ways.append(left)
        found.append(min(ways, default=math.inf))
    return found


def partitions(whole: int, largest: int) -> Iterator[tuple[int, ...]]:
    """The ways to write a number as a sum, largest first.

    >>> list(partitions(3, 3))
    [(3,), (2, 1), (1, 1, 1)]
    """
    if whole == 0:
        yield ()
    for first in range(min(whole, largest), 0, -1):
        for rest in partitions(whole - first, first):
            yield first, *rest
