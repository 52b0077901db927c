"""For the page *Taxonomies*: the trees of columns with counts, what they do not know, and trees changed by hand or by a rule."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError, ShoalError
from shoal.progress import Progress
from shoal.studio.project import Project
from shoal.studio.trees import changed

if TYPE_CHECKING:
    from shoal.hierarchies import Hierarchy
    from shoal.taxonomy import Taxonomy

LEAVES = 5
"""Values of a group that are listed before it is opened."""
SHOWN = 200  # lines of a tree on a page
GAPS = 50  # values that a tree does not know, listed


def shown(folder: Path, progress: Progress, column: str, open: str = "", **_: Any) -> dict[str, Any]:
    """The tree of a column, group by group, with the records below each; and the values that it does not know."""
    with progress.stage("reading"):
        found = _hierarchy(folder, column)
    tree = found.tree
    rows: list[dict[str, Any]] = []
    listed: dict[int, int] = {}
    hidden: dict[int, int] = {}
    for label, records, depth in found.outline():
        node = tree.node(label)
        leaf, above = node < tree.leaves, int(tree.parent[node])
        if leaf and above >= 0 and tree.labels[above] != open:
            listed[above] = listed.get(above, 0) + 1
            if listed[above] > LEAVES:
                hidden[above] = hidden.get(above, 0) + 1
                continue
        rows.append({"label": label, "records": records, "depth": depth, "leaf": leaf, "node": node})
    for row in rows:
        row["hidden"] = hidden.get(row.pop("node"), 0)
    return {
        "source": found.source,
        "made": found.made,
        "leaves": tree.leaves,
        "levels": tree.levels,
        "rows": rows[:SHOWN],
        "more": max(0, len(rows) - SHOWN),
        "groups": [tree.labels[node] for node in range(tree.nodes - 1, tree.leaves - 1, -1)][:SHOWN],
        "gaps": [{"value": gap.value, "records": gap.records, "first": gap.first} for gap in found.gaps[:GAPS]],
        "all_gaps": len(found.gaps),
    }


def edited(
    folder: Path, progress: Progress, column: str, change: str, nodes: Sequence[str] = (), to: str = "", **_: Any
) -> str:
    """The text of a taxonomy after a change by hand; "export" changes nothing."""
    with progress.stage("reading"):
        tree = _hierarchy(folder, column).tree
    return _text(tree if change == "export" else changed(tree, change, list(nodes), to))


def imported(folder: Path, progress: Progress, column: str, path: str, **_: Any) -> dict[str, Any]:
    """Whether a file holds a taxonomy."""
    from shoal.taxonomy import Taxonomy

    with progress.stage("reading"):
        tree = Taxonomy.read(folder / path)
    return {"leaves": tree.leaves, "levels": tree.levels, "text": _text(tree)}


def _hierarchy(folder: Path, column: str) -> Hierarchy:
    from shoal.configured import read_source
    from shoal.hierarchies import hierarchies

    configuration = Project(folder).configuration
    table, _file = read_source(configuration)
    missing = configuration.config.method.missing
    return hierarchies(table, configuration.schema.resolve(table.columns), columns=[column], missing=missing)[0]


def _text(tree: Taxonomy) -> str:
    from shoal.taxonomy import Taxonomy

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "tree.csv"
        tree.write(file)
        try:
            same = Taxonomy.read(file) == tree
        except ShoalError:
            same = False
        if not same:
            raise InputError(
                "A name of this tree cannot stand in a file as it is; choose one without signs at its ends."
            )
        return file.read_text(encoding="utf-8")
