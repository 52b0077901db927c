"""Policy: the models that every class must satisfy together.

`Policy` is what a person writes; bound to a table it becomes `Rules`, which algorithms ask about classes.

>>> from shoal.models.k_anonymity import KAnonymity
>>> from shoal.models.p_sensitive import PSensitive
>>> print(KAnonymity(5) & PSensitive(3, "diagnosis"))
k_anonymity(k = 5) & p_sensitive(p = 3) on diagnosis
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError, InfeasibleError, did_you_mean, require_a, shown
from shoal.models import MODELS, Form, Kind, Model, Rule, Sensitive
from shoal.models.forms import Distinct
from shoal.models.persons import Crowd, bound
from shoal.models.sets import sparse
from shoal.pieces import pieces

if TYPE_CHECKING:
    import polars as pl

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Held = TypeVar("Held", bound=Sensitive | Crowd)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Policy:
    """The `models` that every class must satisfy together. Models join with `&`; `bind` makes them the rules of one table.

    >>> import shoal
    >>> policy = shoal.KAnonymity(5) & shoal.PSensitive(3, "diagnosis")
    >>> print(policy)
    k_anonymity(k = 5) & p_sensitive(p = 3) on diagnosis
    >>> policy.to_config()
    {'k': 5, 'p_sensitive': {'p': 3, 'attribute': 'diagnosis'}}
    >>> shoal.Policy.from_config({"k": 5, "t_closeness": {"t": 0.3}}).models[1].t
    0.3
    >>> shoal.Policy((shoal.KAnonymity(5),)).bind([], n=12).max_classes
    2
    """

    models: tuple[Model, ...]

    def __post_init__(self) -> None:
        require_a("a policy", self.models, (tuple, list), "a list of models, such as KAnonymity(5)")
        for model in self.models:
            require_a("a model of a policy", model, Model, "such as KAnonymity(5)")
        object.__setattr__(self, "models", tuple(self.models))

    def __and__(self, other: Policy | Model) -> Policy:
        return Policy(self.models + (other.models if isinstance(other, Policy) else (other,)))

    @classmethod
    def from_config(cls, section: Mapping[str, Any]) -> Policy:
        """From `section`, the `[policy]` table of a configuration: `k = 5`, `p_sensitive = { p = 3 }`, or a list of tables.

        Returns the policy; raises `ConfigError` for a name or a parameter that is not there.
        """
        require_a("[policy]", section, Mapping, "a table such as { k = 5 }")
        models: list[Model] = []
        for key, value in section.items():
            require_a("the name of a model", key, str, "a text")
            if key == "k":
                models.append(_model("k_anonymity", {"k": value}))
                continue
            if key not in MODELS:
                raise ConfigError(f"[policy] {key}: no such model; {did_you_mean(key, ['k', *MODELS])}")
            for entry in value if isinstance(value, list) else [value]:
                models.append(_model(key, entry))
        if not models:
            raise ConfigError("[policy] is empty; write for example k = 5.")
        return cls(tuple(models))

    def to_config(self) -> dict[str, Any]:
        """The `[policy]` table that `from_config` reads."""
        section: dict[str, Any] = {}
        for model in self.models:
            if model.name == "k_anonymity":
                section["k"] = max(model.parameters()["k"], section.get("k", 0))
            else:
                section.setdefault(model.name, []).append(model.parameters())
        return {
            key: value[0] if isinstance(value, list) and len(value) == 1 else value for key, value in section.items()
        }

    def beside(self, attributes: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The columns whose labels models want beside each of the sensitive `attributes` (guards of personalized privacy).

        Returns them by attribute.

        >>> import shoal
        >>> shoal.Policy((shoal.Personalized(0.5, guard="wish"),)).beside(["illness"])
        {'illness': ('wish',)}
        """
        found: dict[str, tuple[str, ...]] = {}
        for name in attributes:
            wanted = [m.beside for m in self.models if getattr(m, "attribute", None) in (None, name)]
            found[name] = tuple(dict.fromkeys(column for column in wanted if column is not None))
        return {name: columns for name, columns in found.items() if columns}

    def bind(self, columns: Sequence[Sensitive | Crowd], n: int) -> Rules:
        """The policy's rules on a table with these sensitive attributes (`columns`) and `n` records.

        Returns what algorithms ask. A model without an attribute is bound to every sensitive one. `Microdata.rules` is
        the short way.
        """
        by_name = {column.name: column for column in columns}
        rules: list[Rule] = []
        seen: dict[tuple[Any, ...], Seen] = {}
        for model in self.models:
            for column in self._asked(model, by_name):
                rule = bound(model, column, n)
                rules.append(rule)
                if rule.view is not None and column is not None and rule.view.key not in seen:
                    codes = rule.view.of_records(column)  # type: ignore[arg-type]
                    seen[rule.view.key] = Seen(rule.view.key, codes, rule.view.width, rule.view.groups)
        return Rules(self, tuple(rules), seen, n)

    def _asked(self, model: Model, by_name: Mapping[str, Sensitive | Crowd]) -> Iterable[Sensitive | Crowd | None]:
        """The attributes that a model is asked of; None for one that looks at sizes alone."""
        wanted = getattr(model, "attribute", None)
        if not model.per_attribute:
            return [None]
        if wanted is None and by_name:
            return by_name.values()
        if wanted is None:
            raise ConfigError(f'{model.name} needs a sensitive attribute; give a column the role "sensitive".')
        if wanted not in by_name:
            hint = did_you_mean(wanted, by_name) if by_name else "no column has the role sensitive."
            raise ConfigError(f"{model.name}: '{wanted}' is not a sensitive attribute; {hint}")
        return [by_name[wanted]]

    def __str__(self) -> str:
        targets = [getattr(model, "attribute", None) for model in self.models]
        pairs = zip(self.models, targets, strict=True)
        return " & ".join(f"{model} on {target}" if target else str(model) for model, target in pairs)


def _model(name: str, entry: Any) -> Model:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"[policy] {name} = {shown(entry)} is not allowed; write a table such as {{ … }}.")
    kind = MODELS[name]
    allowed = [field.name for field in fields(kind)]
    for key in entry:
        if key not in allowed:
            raise ConfigError(f"[policy] {name}.{key}: no such parameter; {did_you_mean(key, allowed)}")
    try:
        return kind(**entry)
    except TypeError as problem:
        raise ConfigError(f"[policy] {name}: {problem}; parameters are {', '.join(allowed)}.") from None


@dataclass(frozen=True, eq=False)
class Stats:
    """Sizes and histograms (one matrix a view) of some classes."""

    sizes: Ints
    counts: tuple[Ints, ...]


class Seen(NamedTuple):
    """What is counted of every record under one view: its code, -1 for none."""

    key: tuple[Any, ...]
    codes: Codes
    width: int
    groups: int = 0
    """Where codes are sets of groups, of which there are very many and in a class a few: how many groups there are."""


class Entry(NamedTuple):
    """One form of a policy: the rule and the view it belongs to (-1: the size alone), by their place."""

    rule: int
    view: int
    form: Form


class FlatRules(NamedTuple):
    """All forms of a policy for compiled loops; form i has ints[int_start[i]:int_start[i+1]] and likewise floats.

    `others` is how many forms are about more than sizes and distinct values. Without any it is None, a type of its own: loops
    compiled for such a policy, as most are, need not wait for the code of kinds that it does not have.
    """

    kind: NDArray[np.int64]
    offset: NDArray[np.int64]
    width: NDArray[np.int64]
    int_start: NDArray[np.int64]
    ints: NDArray[np.int64]
    float_start: NDArray[np.int64]
    floats: NDArray[np.float64]
    others: int | None
    sets: NDArray[np.int64] | None
    """Likewise None without forms about people with several values. Of each form where in a class's histograms the sums of blocks
    of sets are (`shoal.kernels.hitting`), -1 where nobody keeps them."""


class Rules:
    """A policy bound to one table: what algorithms ask about classes."""

    def __init__(self, policy: Policy, rules: tuple[Rule, ...], seen: Mapping[tuple[Any, ...], Seen], n: int) -> None:
        self.policy, self.rules, self.n = policy, rules, n
        keys = dict.fromkeys(rule.view.key for rule in rules if rule.view is not None)
        self.views = tuple(seen[key] for key in keys)
        position = {key: i for i, key in enumerate(keys)}
        self.view_of = [position[rule.view.key] if rule.view is not None else -1 for rule in rules]
        """The view of each rule, by its place; -1 for none."""

    @cached_property
    def superset_closed(self) -> bool:
        """Whether a good class stays good whatever joins it."""
        return all(rule.model.superset_closed for rule in self.rules)

    @cached_property
    def union_closed(self) -> bool:
        """Whether two good classes merged are good."""
        return all(rule.model.union_closed for rule in self.rules)

    @cached_property
    def only_size(self) -> bool:
        """Whether the policy is k-anonymity alone."""
        return not self.views

    @cached_property
    def k(self) -> int:
        """No class smaller than this can be good."""
        return max(rule.min_size() for rule in self.rules)

    @cached_property
    def max_classes(self) -> int:
        """A proven upper bound on the number of classes."""
        return min(rule.max_classes() for rule in self.rules)

    def require_feasible(self) -> None:
        """Raise when no partition of the table can satisfy the policy."""
        for rule in self.rules:
            reason = rule.infeasible()
            if reason:
                raise InfeasibleError(f"{reason}.", witness=rule.attribute)

    def restrict(self, records: NDArray[Any]) -> Rules:
        """The rules for some of the records alone, which still measure them by the whole table's distributions.

        What a rule took from the table when it was bound (a distribution, which values are rare, a variance) stays; what
        it counts (codes, records, bounds on the number of classes) is that of the records.
        """
        return self.elsewhere([view.codes[records] for view in self.views], len(records)).alone()

    def elsewhere(self, codes: Sequence[Codes], n: int) -> Rules:
        """The same rules, asked about `n` records of which `codes` says what each view counts.

        Rules may be bound to the distinct values of a table with the number of records that have each; whoever has the
        records then asks them here. Everything that a rule knows is still the whole table's.
        """
        seen = {view.key: view._replace(codes=own) for view, own in zip(self.views, codes, strict=True)}
        return Rules(self.policy, self.rules, seen, n)

    def alone(self) -> Rules:
        """The rules as if these records were the table, but for its distributions, which stay."""
        rules = [copy(rule) for rule in self.rules]
        seen = {view.key: view for view in self.views}
        for rule in rules:
            rule.n = self.n
            if rule.view is not None:
                codes = seen[rule.view.key].codes
                rule.table_counts = np.bincount(codes[codes >= 0], minlength=rule.view.width).astype(np.int64)
        return Rules(self.policy, tuple(rules), seen, self.n)

    def only(self, rules: Iterable[Rule]) -> Rules:
        """Some of the rules."""
        return Rules(self.policy, tuple(rules), {view.key: view for view in self.views}, self.n)

    def stats(self, labels: NDArray[Any], classes: int, *, sparsely: bool = False) -> Stats:
        """Sizes and histograms of all classes of a labelling; label -1 is nobody's.

        `sparsely`: of histograms that are mostly empty only what occurs, which the rules that ask for them take as well.
        """
        inside = labels >= 0
        sizes = np.bincount(labels[inside], minlength=classes).astype(np.int64)
        counts: list[Any] = []
        for view in self.views:
            if sparsely and view.groups:
                counts.append(sparse(labels, view.codes, classes, view.width))
                continue
            known = inside & (view.codes >= 0)
            cells = labels[known].astype(np.int64) * view.width + view.codes[known]
            counted = np.bincount(cells, minlength=classes * view.width)
            counts.append(counted.astype(np.int64, copy=False).reshape(classes, view.width))
        return Stats(sizes, tuple(counts))

    def rule_deficits(self, stats: Stats) -> Floats:
        """Deficit per rule and class."""
        pairs = zip(self.rules, self.counts_by_rule(stats), strict=True)
        deficits = [rule.deficit(stats.sizes, counts) for rule, counts in pairs]
        return np.array(deficits).reshape(len(self.rules), len(stats.sizes))

    def counts_by_rule(self, stats: Stats) -> list[Ints]:
        """The histogram matrix each rule looks at."""
        empty = np.zeros((len(stats.sizes), 0), dtype=np.int64)
        return [stats.counts[view] if view >= 0 else empty for view in self.view_of]

    def deficit(self, stats: Stats) -> Floats:
        """Total deficit per class."""
        return np.asarray(self.rule_deficits(stats).sum(axis=0))

    def deficits(self, labels: NDArray[Any], classes: int) -> Floats:
        """Total deficit per class of a labelling, counted in pieces when the histograms are large."""
        some = list(pieces(classes, max((view.groups or view.width for view in self.views), default=1)))
        if len(some) <= 1:
            return self.deficit(self.stats(labels, classes, sparsely=True))
        parts = []
        for piece in some:
            part = np.where((labels >= piece.start) & (labels < piece.stop), labels - piece.start, -1)
            parts.append(self.deficit(self.stats(part, piece.stop - piece.start, sparsely=True)))
        return np.concatenate(parts)

    def stats_of(self, members: NDArray[Any]) -> Stats:
        """Size and histograms of one class given by its records."""
        counts = []
        for view in self.views:
            codes = view.codes[members]
            counts.append(np.bincount(codes[codes >= 0], minlength=view.width).astype(np.int64)[None, :])
        return Stats(np.array([len(members)], dtype=np.int64), tuple(counts))

    def ok(self, members: NDArray[Any]) -> bool:
        """Whether these records are a good class."""
        return len(members) > 0 and bool(self.deficit(self.stats_of(members))[0] <= 0)

    @cached_property
    def widest(self) -> int:
        """The largest number of codes of a view."""
        return max((view.width for view in self.views), default=1)

    @cached_property
    def view_starts(self) -> Ints:
        """Where the histogram of each view begins when they lie side by side; the last number is where they end."""
        return np.cumsum([0, *(view.width for view in self.views)], dtype=np.int64)

    def cells(self, codes: NDArray[np.int32]) -> Ints:
        """Where rows of codes, one a view, are counted in histograms that lie side by side; -1 for none."""
        return np.ascontiguousarray(np.where(codes >= 0, codes + self.view_starts[:-1], -1), dtype=np.int64)

    def codes(self) -> NDArray[np.int32]:
        """The views' codes side by side, one row a record."""
        if not self.views:
            return np.zeros((self.n, 0), dtype=np.int32)
        return np.ascontiguousarray(np.stack([view.codes for view in self.views], axis=1), dtype=np.int32)

    @cached_property
    def entries(self) -> tuple[Entry, ...] | None:
        """The forms of all rules, rule by rule; None when some rule has none."""
        forms = [rule.forms() for rule in self.rules]
        if any(found is None for found in forms):
            return None
        places = zip(forms, self.view_of, strict=True)
        return tuple(
            Entry(i, -1 if form.kind == Kind.SIZE else view, form)
            for i, (found, view) in enumerate(places)
            for form in found or ()
        )

    @cached_property
    def distinct(self) -> dict[int, int]:
        """The rules that ask for distinct values and nothing else, with how many."""
        alone = [(i, rule.forms() or ()) for i, rule in enumerate(self.rules)]
        return {i: forms[0].p for i, forms in alone if len(forms) == 1 and isinstance(forms[0], Distinct)}

    def flat(self, entries: Sequence[Entry] | None = None) -> FlatRules | None:
        """The rules, or some of their forms, for compiled loops; None when some rule has no form."""
        entries = self.entries if entries is None else entries
        if entries is None:
            return None
        widths, starts = np.diff(self.view_starts), self.view_starts
        ints = [np.asarray(entry.form.ints(), dtype=np.int64) for entry in entries]
        floats = [np.asarray(entry.form.floats(), dtype=np.float64) for entry in entries]
        others = sum(entry.form.kind not in (Kind.SIZE, Kind.DISTINCT, Kind.HITTING) for entry in entries)
        nowhere = np.full(len(entries), -1, dtype=np.int64)
        return FlatRules(
            kind=np.array([int(entry.form.kind) for entry in entries], dtype=np.int64),
            offset=np.array([starts[e.view] if e.view >= 0 else 0 for e in entries], dtype=np.int64),
            width=np.array([widths[e.view] if e.view >= 0 else 0 for e in entries], dtype=np.int64),
            int_start=np.concatenate([[0], np.cumsum([len(part) for part in ints])]).astype(np.int64),
            ints=np.concatenate([*ints, np.zeros(0, dtype=np.int64)]),
            float_start=np.concatenate([[0], np.cumsum([len(part) for part in floats])]).astype(np.int64),
            floats=np.concatenate([*floats, np.zeros(0)]),
            others=others or None,
            sets=nowhere if any(entry.form.kind >= Kind.HITTING for entry in entries) else None,
        )


def labelled(columns: Sequence[Held], policy: Policy, frame: pl.DataFrame) -> list[Held]:
    """The columns with the labels that the policy's models want beside them, as far as the table has them."""
    wanted = policy.beside(column.name for column in columns)
    names = dict.fromkeys(name for beside in wanted.values() for name in beside if name in frame.columns)
    labels = {name: np.array(frame[name].cast(str).to_list(), dtype=object) for name in names}
    beside = [{name: labels[name] for name in wanted.get(column.name, ()) if name in labels} for column in columns]
    return [cast("Held", column.labelled(one)) for column, one in zip(columns, beside, strict=True)]


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `shoal.toml`, for editors: `shoal schema` writes it down."""
    from shoal.configuration import Config

    schema = Config.model_json_schema(schema_generator=_generator())
    schema["title"] = "shoal.toml"
    k = MODELS["k_anonymity"]
    models: dict[str, Any] = {"k": {**k.schema()["properties"]["k"], "description": k.summary()}}
    for name, model in MODELS.items():
        if name != "k_anonymity":
            table = model.schema()
            models[name] = {"anyOf": [table, {"type": "array", "items": table}], "description": model.summary()}
    schema["properties"]["policy"] = {"type": "object", "properties": models, "additionalProperties": False}
    return schema


def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        def is_instance_schema(self, schema: Any) -> Any:  # a Taxonomy object cannot stand in a file
            return {"not": {}}

    return Generator
