"""For the page *Compare*: what privacy costs on this table, over k, as `shoal explore` finds it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shoal.progress import Progress
from shoal.studio.tasks import configured

KS = (2, 3, 5, 10, 20, 50, 100)  # points of the curve, even on a logarithmic scale
LARGEST = 200_000
"""Records of a table whose curve is drawn unasked: a larger one would take minutes."""
BOUNDED = 60_000
"""Records up to which the proven least is looked for, as in reports."""


def curve(folder: Path, progress: Progress, **_: Any) -> dict[str, Any]:
    """The loss of the project's promises with other k, by a quick algorithm without a search, and the proven least."""
    from shoal.frontier import explore

    configuration, data = configured(folder)
    if data.n > LARGEST:
        return {"points": [], "why": "large"}
    method = configuration.config.method
    values = [k for k in KS if k * 2 <= data.n]
    found = explore(
        data,
        configuration.config.policy,
        vary={"k": values},
        algorithms=["mondrian"],
        bound=data.n <= BOUNDED,
        objective=method.objective,
        seed=method.seed,
        progress=progress,
    )
    points = [
        {"k": int(point.asked["k"]), "loss": point.loss, "least": point.bound}
        for point in found.curve
        if point.loss is not None
    ]
    return {"points": points, "why": "" if points else "refused", "advice": list(found.advice)}
