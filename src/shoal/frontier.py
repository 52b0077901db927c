"""What privacy costs: loss, risk and utility over the parameters of a policy, with the least that any release can lose beneath.

>>> import polars as pl, shoal
>>> frame = pl.DataFrame({"age": list(range(20, 60)), "illness": ["flu", "cold"] * 20})
>>> found = shoal.explore(frame, {"k": 2}, quasi="age", sensitive="illness", vary={"k": [2, 5, 10]}, algorithms=["mondrian"])
>>> [point.classes for point in found.points]
[16, 8, 4]
>>> all(point.bound <= point.loss for point in found.points)
True
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from shoal import exact
from shoal.algorithms import find
from shoal.comparison import attempt
from shoal.errors import Cancelled, ConfigError, InputError, InternalError, ShoalError, did_you_mean
from shoal.inputs import Roles, as_policy, encoded
from shoal.io.frames import from_polars
from shoal.manifest import commitment
from shoal.measures.bounds import loss_bound
from shoal.measures.utility import query_error
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.progress import Progress, Told, side_by_side
from shoal.schema import Attribute, Schema
from shoal.shown import Shown
from shoal.space import Measure
from shoal.version import VERSION

Job = tuple[str | None, Mapping[str, float], str]
"""Which table (None: as it is), which values, which algorithm."""
# Evenly spaced on a scale of doublings, with the customary 5, 10, 20, 50 and 100 among them.
KS = (2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 75, 100)
ALGORITHMS = ("mondrian", "k_member", "greedy_pk")
THREADS = 2  # loops release the interpreter; more would hold more releases in memory at a time
QUERIES = 200
"""Enough for the median of their errors to be steady in its second digit."""
EACH = 1.0
"""Nominal seconds for the bound of each point."""
BENT = 0.1
"""A curve has a knee where it lies this far from its chord, both axes from 0 to 1; a straight one has none."""


@dataclass(frozen=True)
class Point:
    """One release that could be made: what it asks, what it would cost, and who could be found in it.

    - `asked`: the parameters, such as `{"k": 5}`; `column`: a quasi-identifier that was added ("+name") or left out ("-name").
    - `algorithm`, `loss` (the objective), `classes`, `risk` (the highest: one over the smallest class).
    - `average`: the average risk; `error`: the median error of counting queries.
    - `bound`: no release with this policy can lose less; None where no bound is known.
    - `refused`: why there is no such release; the figures are None then.

    >>> from shoal.frontier import Point
    >>> Point({"k": 5}, "mondrian", loss=0.1).asked
    {'k': 5}
    """

    asked: Mapping[str, float]
    algorithm: str
    column: str | None = None
    loss: float | None = None
    classes: int | None = None
    risk: float | None = None
    average: float | None = None
    error: float | None = None
    bound: float | None = None
    refused: str | None = None


@dataclass(frozen=True)
class Frontier(Shown):
    """What privacy costs; `shoal.explore` makes it.

    - `objective`: the loss; `points`: every release that was tried, in the order they were asked for.

    >>> from shoal.frontier import Frontier, Point
    >>> curve = [(2, 0.01), (5, 0.02), (10, 0.03), (20, 0.2), (40, 0.4)]
    >>> frontier = Frontier("ncp", tuple(Point({"k": k}, "mondrian", loss=loss) for k, loss in curve))
    >>> frontier.knee.asked["k"]
    10
    """

    objective: str
    points: tuple[Point, ...]
    backend: str = field(default="polars", repr=False, compare=False)

    @property
    def frame(self) -> Any:
        """One row a point, in the frame library that came in."""
        rows = [{**point.asked, **{k: v for k, v in asdict(point).items() if k != "asked"}} for point in self.points]
        return from_polars(pl.DataFrame(rows, infer_schema_length=None), self.backend)

    @property
    def curve(self) -> list[Point]:
        """The least loss that was reached at each value of the first parameter, all else as it was asked first."""
        by_value: dict[float, Point] = {}
        for point in self.points:
            if point.loss is None or point.column is not None or self._others(point) != self._others(self.points[0]):
                continue
            value = _first(point)
            if value not in by_value or point.loss < (by_value[value].loss or 0.0):
                by_value[value] = point
        return [by_value[value] for value in sorted(by_value)]

    @staticmethod
    def _others(point: Point) -> list[float]:
        return list(point.asked.values())[1:]

    @property
    def knee(self) -> Point | None:
        """The strongest demand before privacy becomes dear: where the curve of loss bends most; None where it is straight."""
        curve = self.curve
        if len(curve) < 3:
            return None
        # More privacy to the right: k grows on a scale of doublings; t, alpha and the like grow stronger as they fall.
        xs = [float(exact.log(_first(point))) if _first(point) > 0 else 0.0 for point in curve]
        ys = [float(point.loss or 0.0) for point in curve]
        width, height = xs[-1] - xs[0], ys[-1] - ys[0]
        if width == 0 or height == 0:
            return None
        gaps = [abs((x - xs[0]) / width - (y - ys[0]) / height) for x, y in zip(xs, ys, strict=True)]
        best = max(range(len(curve)), key=lambda i: gaps[i])
        return curve[best] if gaps[best] >= BENT else None

    @property
    def advice(self) -> list[str]:
        """What the figures say, in sentences."""
        return [*self._about_the_knee(), *self._about_columns()]

    def _about_the_knee(self) -> Iterator[str]:
        curve, knee = self.curve, self.knee
        if len(curve) < 2:
            return
        name = next(iter(curve[0].asked))
        if knee is None:
            yield (
                f"Loss changes evenly from {name} = {_first(curve[0]):g} ({_share(curve[0].loss)} of detail lost) to "
                f"{name} = {_first(curve[-1]):g} ({_share(curve[-1].loss)}): no value stands out, so choose by what you promise."
            )
            return
        at = curve.index(knee)
        before, after = curve[: at + 1], curve[at:]
        yield (
            f"{name} = {_first(knee):g} is where the curve bends ({knee.algorithm}, {_share(knee.loss)} of detail lost): up to "
            f"it each doubling costs {_doubling(before)} of the detail, beyond it {_doubling(after)}."
        )
        if knee.bound is not None and knee.loss:
            yield f"No release with this promise can lose less than {_share(knee.bound)}."

    def _about_columns(self) -> Iterator[str]:
        for column in dict.fromkeys(point.column for point in self.points if point.column is not None):
            there = [point for point in self.points if point.column == column and point.loss is not None]
            if not there:
                continue
            best = min(there, key=lambda point: point.loss or 0.0)
            plain = [p for p in self.points if p.column is None and p.loss is not None and p.asked == best.asked]
            if not plain:
                continue
            same = min(plain, key=lambda point: point.loss or 0.0)
            what = "With" if column.startswith("+") else "Without"
            asked = ", ".join(f"{name} = {value:g}" for name, value in best.asked.items())
            yield (
                f"{what} '{column[1:]}' among the quasi-identifiers, {asked} costs {_share(best.loss)} of the detail "
                f"instead of {_share(same.loss)}."
            )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        knee = self.knee
        return {
            "objective": self.objective,
            "points": [asdict(point) for point in self.points],
            "knee": asdict(knee) if knee is not None else None,
            "advice": self.advice,
        }


def _first(point: Point) -> float:
    return float(next(iter(point.asked.values())))


def _share(loss: float | None) -> str:
    return "nothing" if not loss else f"{100 * loss:.1f} %"


def _doubling(points: Sequence[Point]) -> str:
    """What a doubling of the first parameter costs on average between the first and the last point."""
    ratio = _first(points[-1]) / _first(points[0]) if len(points) > 1 else 1.0
    doublings = abs(float(exact.log(ratio)) / float(exact.log(2.0)))
    return _share((float(points[-1].loss or 0) - float(points[0].loss or 0)) / doublings) if doublings else "nothing"


def explore(
    data: Any,
    policy: Any,
    *,
    schema: Any = None,
    quasi: str | Iterable[str] = (),
    sensitive: str | Iterable[str] = (),
    person: str | None = None,
    vary: Mapping[str, Sequence[float]] | None = None,
    columns: Iterable[str] = (),
    algorithms: Iterable[str] = ALGORITHMS,
    bound: bool = True,
    keep: str | Path | None = None,
    each: Callable[[Point], object] | None = None,
    progress: Told | None = None,
    **settings: Any,
) -> Frontier:
    """What privacy would cost: one release for each value of the parameters and each algorithm, measured and not published.

    - `data`, `policy`, `schema`, `quasi`, `sensitive`, `person`: as for `anonymize`. The policy is where parameters come
      from that are not varied.
    - `vary`: values by parameter, such as `{"k": [2, 5, 10], "p_sensitive.p": [2, 3]}`; all combinations are tried. By
      default twelve values of k from 2 to 100.
    - `columns`: quasi-identifiers to leave out, one at a time, or other columns to add, each at the policy itself; none by
      default.
    - `algorithms`: mondrian, k_member and greedy_pk by default.
    - `bound`: whether the least that any release can lose is computed too; True by default.
    - `keep`: a file that remembers what was found, so that an interrupted run goes on where it stopped; none by default.
    - `each`, `progress`: called with each point as it is found, and with the share that is done; nobody by default.
    - `settings`: what else `anonymize` takes; `refine` is False by default here.

    Every figure is that of a single run with the same seed. Returns the points, with the knee and what they say.

    >>> import polars as pl, shoal
    >>> frame = pl.DataFrame({"age": list(range(40)), "zip": [1, 2] * 20})
    >>> found = shoal.explore(frame, {"k": 4}, quasi=["age", "zip"], vary={}, columns=["zip"], algorithms=["mondrian"])
    >>> [(point.column, point.classes) for point in found.points]
    [(None, 8), ('-zip', 8)]
    """
    table = encoded(data, Roles(schema, quasi, sensitive, person), policy=policy)
    start = as_policy(policy)
    settings = {"refine": False, **settings}
    chosen = list(algorithms)
    for name in chosen:
        find(name)
    asked = _asked(start, {"k": KS} if vary is None else vary)
    variants: list[tuple[str | None, Microdata]] = [(None, table), *(_variant(table, name) for name in columns)]
    own = dict(_parameters(start, list(asked[0]) or ["k"]))
    jobs: list[Job] = [(None, one, name) for one in asked for name in chosen]
    jobs += [(column, own, name) for column, _ in variants[1:] for name in chosen]
    tables = dict(variants)
    known = _Kept(keep, table, settings)
    told = Progress.of(progress)

    def work(job: Job, part: Progress) -> Point:
        column, values, name = job
        found = known.get(job)
        if found is None:
            found = _point(tables[column], _with(start, values), name, part, column, values, settings)
            known.add(job, found)
        if each is not None:
            each(found)
        return found

    with told.stage("exploring", 0.85 if bound else 1.0) as part:
        points = side_by_side(work, jobs, part, threads=THREADS)
    if bound:
        with told.stage("proving the least loss") as part:
            points = _bounded(points, tables, start, settings.get("objective", "ncp"), part)
    return Frontier(settings.get("objective", "ncp"), tuple(points), table.backend)


def _point(
    data: Microdata,
    policy: Policy,
    name: str,
    progress: Progress,
    column: str | None,
    values: Mapping[str, float],
    settings: Mapping[str, Any],
) -> Point:
    try:
        outcome, release = attempt(data, policy, name, progress, **settings)
    except (Cancelled, InternalError):
        raise
    except ShoalError as problem:
        return Point(values, name, column, refused=str(problem))
    if release is None:
        return Point(values, name, column, refused=outcome.refused)
    error = query_error(data, release.masked, queries=QUERIES, seed=settings.get("seed", 0)).median
    return Point(
        values,
        name,
        column,
        loss=outcome.losses[settings.get("objective", "ncp")],
        classes=release.evidence.classes,
        risk=outcome.risk,
        average=release.evidence.classes / data.n,
        error=error,
    )


def _bounded(
    points: Sequence[Point],
    tables: Mapping[str | None, Microdata],
    policy: Policy,
    objective: Measure,
    progress: Progress,
) -> list[Point]:
    """The points with the proven least loss of their policy, computed once for each."""
    wanted = list(
        dict.fromkeys((point.column, tuple(point.asked.items())) for point in points if point.loss is not None)
    )
    found: dict[Any, float | None] = {}
    for column, asked in progress.each(wanted):
        data = tables[column]
        try:
            rules = data.rules(_with(policy, dict(asked)))
            found[column, asked] = loss_bound(data.codes, data.space(objective), rules, effort=EACH).mean
        except ShoalError:
            found[column, asked] = None
    return [
        Point(**{**vars(point), "bound": found.get((point.column, tuple(point.asked.items())))}) for point in points
    ]


def _asked(policy: Policy, vary: Mapping[str, Sequence[float]]) -> list[dict[str, float]]:
    """All combinations of the values that are tried; what the policy asks where nothing is varied."""
    for name, values in vary.items():
        _parameters(policy, [name])
        if not isinstance(values, list | tuple | range):
            raise ConfigError(f"vary: '{name}' needs a list of numbers.")
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"vary: '{name}' needs numbers; {type(value).__name__} is none.")
    if not vary:
        return [dict(_parameters(policy, ["k"]))]
    return [dict(zip(vary, values, strict=True)) for values in product(*(list(values) for values in vary.values()))]


def _parameters(policy: Policy, names: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The policy's own values of some parameters: "k", or "p_sensitive.p"."""
    found: dict[str, float] = {}
    for model in policy.models:
        prefix = "" if model.name == "k_anonymity" else f"{model.name}."
        found |= {
            f"{prefix}{key}": value
            for key, value in model.parameters().items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
    found.setdefault("k", 1)
    for name in names:
        if name not in found:
            raise ConfigError(f"vary: the policy has no parameter '{name}'; {did_you_mean(name, found)}")
        yield name, found[name]


def _with(policy: Policy, values: Mapping[str, float]) -> Policy:
    """The policy with other parameters."""
    section = policy.to_config()
    for name, value in values.items():
        model, _, parameter = name.rpartition(".")
        if not model:
            section["k"] = value
            continue
        entries = section[model] if isinstance(section[model], list) else [section[model]]
        section[model] = [{**entry, parameter: value} for entry in entries]
    return Policy.from_config(section)


def _variant(data: Microdata, name: str) -> tuple[str, Microdata]:
    """The table without one of its quasi-identifiers, or with one more."""
    if name not in data.schema.attributes:
        raise ConfigError(f"columns: the table has no column '{name}'; {did_you_mean(name, data.schema.attributes)}")
    away = data.schema.attributes[name].role == "quasi"
    if away and len(data.quasi) == 1:
        raise ConfigError(f"columns: '{name}' is the only quasi-identifier and cannot be left out.")
    own = {"role": "identifier", "repeats": "allowed"} if away else {"role": "quasi"}
    attributes = {**data.schema.attributes, name: Attribute.model_validate(own)}
    schema = Schema(attributes, data.schema.folder, data.schema.missing)
    return f"{'-' if away else '+'}{name}", Microdata.of_table(data.frame, schema, backend=data.backend)


class _Kept:
    """Points that an earlier run of the same exploration has found, in a file of lines."""

    def __init__(self, path: str | Path | None, data: Microdata, settings: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.found: dict[str, Point] = {}
        if self.path is None:
            return
        about = [VERSION, {key: str(value) for key, value in sorted(settings.items())}]
        about += [(name, one.model_dump_json(exclude={"taxonomy"})) for name, one in data.schema.attributes.items()]
        if not self.path.exists():
            key = secrets.token_bytes(16)
            self._append({"key": key.hex(), "table": commitment(data.frame, key), "about": about})
            return
        try:
            lines = [
                json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines() if line.endswith("}")
            ]
            own = commitment(data.frame, bytes.fromhex(lines[0]["key"])) == lines[0]["table"]
            mine = own and lines[0]["about"] == json.loads(json.dumps(about))
            self.found = {line["job"]: Point(**line["point"]) for line in lines[1:]}
        except (OSError, ValueError, KeyError, IndexError, TypeError) as problem:
            raise InputError(f"'{self.path}' is no file that explore has kept ({type(problem).__name__}).") from None
        if not mine:
            raise InputError(
                f"'{self.path}' was kept by an exploration of another table, or with other settings; choose another name."
            )

    @staticmethod
    def _job(job: Job) -> str:
        return json.dumps([job[0], dict(job[1]), job[2]])

    def get(self, job: Job) -> Point | None:
        """What was found earlier."""
        return self.found.get(self._job(job))

    def add(self, job: Job, point: Point) -> None:
        """Remember a point."""
        if self.path is not None:
            self._append({"job": self._job(job), "point": asdict(point)})

    def _append(self, line: Mapping[str, Any]) -> None:
        assert self.path is not None
        # It tells about the original: the owner's alone.
        self.path.touch(mode=0o600)
        with self.path.open("a", encoding="utf-8") as handle:
            handle.write(json.dumps(line) + "\n")
