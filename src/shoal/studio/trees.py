"""Taxonomies changed by hand: names, groups and places of values. A change gives a new tree; the old one stays as it was.

>>> from shoal.taxonomy import Taxonomy
>>> tree = Taxonomy.from_parents({"flu": "lungs", "asthma": "lungs", "ulcer": "any", "lungs": "any"})
>>> sorted(changed(tree, "group", ["flu", "ulcer"], "common").rows())
[('asthma', 'lungs', 'any'), ('flu', 'common', 'lungs', 'any'), ('ulcer', 'common', 'lungs', 'any')]
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.errors import InputError
from shoal.taxonomy import Taxonomy

CHANGES = ("rename", "move", "group", "split")


def parents(tree: Taxonomy) -> dict[str, str]:
    """The group that each value and each group lies in; a group that holds nothing but one of its own name is that one."""
    found: dict[str, str] = {}
    for node, above in enumerate(tree.parent.tolist()):
        if above >= 0 and tree.labels[above] != tree.labels[node]:
            found[tree.labels[node]] = tree.labels[above]
    return found


def changed(tree: Taxonomy, change: str, nodes: Sequence[str], to: str) -> Taxonomy:
    """The tree after a change of some nodes.

    - rename: one group gets the name `to`; values keep theirs, which stand in the table.
    - move: they go into the group `to`.
    - group: they become a new group with the name `to`, where the first of them lies.
    - split: a group is dissolved, and what is in it lies in the group above.
    """
    above, root, nodes = parents(tree), tree.labels[tree.root], list(dict.fromkeys(nodes))
    known, values = set(tree.labels), set(tree.labels[: tree.leaves])
    if not nodes or not set(nodes) <= known:
        raise InputError("Mark what should be changed first: one or more values or groups of the tree.")
    to = to.strip()
    if change in ("rename", "group") and (not to or to in known):
        raise InputError("The new name is empty or stands in the tree already; choose another.")
    if change == "rename":
        if len(nodes) != 1 or nodes[0] in values:
            raise InputError("Mark one group to rename; values keep the names that they have in the table.")
        above = {_new(child, nodes[0], to): _new(group, nodes[0], to) for child, group in above.items()}
    elif change == "split":
        for node in nodes:
            if node in values or node == root:
                raise InputError("Only a group within the tree can be dissolved, not a value or the whole.")
            higher = above.pop(node)
            above = {child: higher if group == node else group for child, group in above.items()}
    else:
        above = _placed(above, root, values, nodes, to, new=change == "group")
    return Taxonomy.from_parents(_without_empty(above, values), name=tree.name)


def _new(label: str, old: str, to: str) -> str:
    return to if label == old else label


def _placed(
    above: dict[str, str], root: str, values: set[str], nodes: Sequence[str], to: str, *, new: bool
) -> dict[str, str]:
    if root in nodes:
        raise InputError("The whole cannot be moved into one of its parts.")
    if new:
        above = {**above, to: above[nodes[0]]}
    elif to in values or to not in {*above, root}:
        raise InputError("Choose the group that it should go into.")
    for place in (to, *_line(above, to)):
        if place in nodes:
            raise InputError("A group cannot go into itself.")
    return {child: to if child in nodes else group for child, group in above.items()}


def _line(above: dict[str, str], label: str) -> list[str]:
    """The groups above a node."""
    found = []
    while label in above:
        label = above[label]
        found.append(label)
    return found


def _without_empty(above: dict[str, str], values: set[str]) -> dict[str, str]:
    """Without groups that nothing is left in."""
    while True:
        used = set(above.values())
        kept = {child: group for child, group in above.items() if child in values or child in used}
        if len(kept) == len(above):
            return kept
        above = kept
