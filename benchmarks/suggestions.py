"""What `shoal init` proposes for eight tables in the style of public ones, against what an expert says, and what it costs.

    python -m benchmarks.suggestions

The tables and the roles expected of their columns are in `tests/public_schemas.py`. Right, in vain and missed are
quasi-identifiers; losses are those that `shoal init` finds by mondrian on the records themselves. The same lines stand in
docs/suggestions.md. Writes benchmarks/out/suggestions.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.public_schemas import TABLES, expected

from shoal.pricing import priced
from shoal.suggesting import profile

OUT = Path(__file__).parent / "out"
SCORED = ("identifier", "person", "quasi")
HEADER = (
    "| table | columns | identifiers | persons | quasi right | in vain | missed | to consider | loss, k alone | loss, policy "
    "| ratio |"
)


def figures(name: str) -> dict[str, Any]:
    """One table: what was proposed, what was expected, and what it costs."""
    table, truth = TABLES[name](), expected(name)
    found = priced(table, profile(table))
    roles = {column.name: column.role for column in found.columns}
    counts = {}
    for role in SCORED:
        proposed, wanted = ({one for one, own in of.items() if own == role} for of in (roles, truth))
        counts[role] = (len(proposed & wanted), len(proposed), len(wanted))
    assert found.costs is not None
    return {
        "table": name,
        "columns": len(roles),
        "counts": counts,
        "consider": len(found.consider),
        "alone": found.costs.alone,
        "policy": found.costs.policy,
    }


def line(one: dict[str, Any]) -> str:
    """A row of the table in docs/suggestions.md."""
    (ids, _, all_ids), (persons, _, all_persons), (right, proposed, wanted) = (one["counts"][role] for role in SCORED)
    cells = [
        one["table"],
        one["columns"],
        f"{ids} of {all_ids}",
        f"{persons} of {all_persons}",
        right,
        proposed - right,
    ]
    alone, policy = one["alone"], one["policy"]
    cells += [wanted - right, one["consider"], f"{alone:.3f}", f"{policy:.3f}", f"{policy / alone:.2f}"]
    return f"| {' | '.join(map(str, cells))} |"


def scores(found: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Precision and recall over all tables, by role."""
    result = {}
    for role in SCORED:
        right, proposed, wanted = (sum(one["counts"][role][place] for one in found) for place in range(3))
        result[role] = (right / proposed, right / wanted)
    return result


def main() -> None:
    """All eight, and the scores."""
    found = [figures(name) for name in TABLES]
    print("\n".join([HEADER, *(line(one) for one in found)]))
    for role, (precision, recall) in scores(found).items():
        print(f"{role:10} precision {precision:.3f}, recall {recall:.3f}")
    OUT.mkdir(exist_ok=True)
    (OUT / "suggestions.json").write_text(
        json.dumps({"tables": found, "scores": scores(found)}, indent=1), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
