"""Who each column is.

>>> schema = Schema({"age": Attribute(role="quasi"), "name": Attribute(role="identifier")})
>>> schema.named("quasi")
['age']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetPydanticSchema,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import core_schema

from shoal.errors import ConfigError, did_you_mean, require_a
from shoal.explaining import explain
from shoal.formats import Pattern
from shoal.taxonomy import Taxonomy

Role = Literal["identifier", "person", "quasi", "sensitive", "other"]
Kind = Literal["number", "category", "date"]
# How a release looks: which values, in what form, in what order, and what becomes of suppressed records.
Recode = Literal["generalize", "microaggregate", "suppress"]
Intervals = Literal["text", "columns", "midpoint"]
Order = Literal["shuffle", "keep"]
Suppressed = Literal["mask", "drop"]
Within = Literal["first", "last", "min", "max", "most"]
Unit = Literal["day", "month", "quarter", "year", "decade"]
UNITS: tuple[Unit, ...] = get_args(Unit)
ROLES: tuple[Role, ...] = ("identifier", "person", "quasi", "sensitive", "other")

# A taxonomy made in Python. A table in a file is never one: it is read as a rule, and told what is wrong with it.
Made = Annotated[Taxonomy, GetPydanticSchema(lambda kind, _: core_schema.is_instance_schema(kind))]


class Strict(BaseModel):
    """A table of a configuration: no key but those it names, and nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TaxonomySource(Strict):
    """How to make a taxonomy from the values themselves; exactly one of these."""

    prefix: list[int] | None = Field(None, description="Characters kept per level, the rest starred: [3, 2, 0].")
    intervals: list[float] | None = Field(None, description="Widths of nested intervals: [5, 10, 20].")
    edges: list[list[float]] | None = Field(None, description="Edges of nested intervals, finest level first.")
    dates: list[Unit] | None = Field(None, description="Units, finest first.")
    parents: dict[str, str] | None = Field(None, description="Each value's parent.")
    rows: list[list[str]] | None = Field(None, description="Paths from leaf to root.")

    @model_validator(mode="after")
    def _exactly_one(self) -> TaxonomySource:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"give exactly one of {', '.join(type(self).model_fields)}")
        return self


class Shift(Strict):
    """How far dates are moved, and by whose secret."""

    days: int = Field(ge=1, le=36525, description="The most days by which a date moves, earlier or later.")
    key: str = Field(
        min_length=1, description="A file with a key, readable by its owner only; made if it is not there."
    )
    by: str | None = Field(
        None,
        description="The column that says whose a date is; the person column, or the only identifier, when absent.",
    )


def attribute_table(path: list[str]) -> type[BaseModel]:
    """The table of a column, or the one at the end of a `path` below it."""
    below: dict[str, type[BaseModel]] = {"shift": Shift, "taxonomy": TaxonomySource}
    return below.get(path[-1] if path else "", Attribute)


class _Called(type(BaseModel)):  # type: ignore[misc]
    """What is made in Python gets our sentence; what stands in a file gets it with the file's name and line."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        try:
            return super().__call__(*given, **named)
        except ValidationError as problem:
            raise ConfigError(explain(problem, attribute_table, name=cls.__name__)) from None


class Attribute(Strict, metaclass=_Called):
    """One column: its role, and what is known about its values. Only `role` is needed; `shoal.toml` has the same keys.

    - `role`: "identifier" (dropped), "person" (whose each row is; dropped), "quasi" (masked), "sensitive" (published,
      protected by the policy) or "other" (published as it is).
    - `kind`: "number", "category" or "date"; told from the values by default.
    - `format`: how its dates or numbers are written in the source: "DD.MM.YYYY", "MM/DD/YYYY hh:mm", "$#", "# J."; a list
      where they are written in several ways. By default as 2024-03-31 and 1234.5 (docs/formats.md).
    - `decimal`: "," where decimals follow a comma; "." by default.
    - `missing`: values of this column that mean there is none, such as [-99, "unknown"]; none by default.
    - `domain`: the range that losses are measured against, `[0, 120]`; by default what occurs.
    - `taxonomy`: a file (`leaf;…;root`), a rule such as `{"prefix": [3, 0]}`, "auto", or a `Taxonomy`; by default none,
      and categories are published as sets.
    - `weight`: how much the attribute's loss counts; 1.0 by default.
    - `order`: all values of an ordered category, lowest first.
    - `protect`: inner nodes of the taxonomy for extended p-sensitivity; none by default ([]).
    - `categories`: groups of values for p+ and (p, α), most secret first.
    - `within`: which value of a quasi-identifier counts where a person's rows differ: "first", "last", "min", "max", "most".
    - `publish`: "token" publishes a random number for each person in place of the person column.
    - `repeats`: "allowed" for an identifier that repeats and is no person's, such as a first name.
    - `round`, `top`, `bottom`, `truncate`: applied to the values before anything else: multiples of a number, top and
      bottom coding, dates to the start of a unit, numbers to decimals, texts to characters.
    - `shift`: move dates by a number of days that is secret and one for each person: `{"days": 183, "key": "shift.key"}`.
    - `pseudonym`: a file with a key, by which the values of a key column become tokens: the same for the same value always.
    - `drop`: leave the column out; False by default.
    - `accept`: why the column may be published as it is although it looks dangerous.

    >>> import shoal
    >>> shoal.Attribute(role="quasi", domain=[0, 120]).domain
    (0.0, 120.0)
    """

    # An editor shows one line; the rest of the docstring is for Python.
    model_config = ConfigDict(
        json_schema_extra={"description": "One column: its role, and what is known about its values."}
    )

    role: Role = Field(
        description="identifier (dropped), person (whose rows belong together; dropped), quasi, sensitive, or other "
        "(published unchanged)."
    )
    kind: Kind | None = Field(None, description="number, category or date; inferred when absent.")
    format: str | list[str] | None = Field(
        None,
        description='How dates or numbers are written in the source: "DD.MM.YYYY", "$#", "# J."; or a list of such.',
    )
    decimal: Literal[".", ","] | None = Field(
        None, description="The sign before decimals in the source; a point when absent."
    )
    missing: list[str | int | float] | None = Field(
        None, min_length=1, description='Values of this column that mean: no value, such as [-99, "unknown"].'
    )
    domain: tuple[float, float] | tuple[str, str] | None = Field(
        None, description="The range losses are measured against; observed range when absent."
    )
    taxonomy: Made | TaxonomySource | str | None = Field(
        None, description='A file (leaf;…;root), a rule such as { prefix = [3, 0] }, or "auto".'
    )
    weight: float = Field(1.0, ge=0, le=1e9, description="How much this attribute's loss counts.")
    order: list[str] | None = Field(None, description="All values of an ordered category, lowest first.")
    protect: list[str] = Field([], description="Protected inner nodes for extended p-sensitivity.")
    categories: dict[str, list[str]] | None = Field(
        None, description="Categories for p+ and (p, α), most secret first."
    )
    within: Within | None = Field(
        None, description="Which value of a quasi-identifier counts where the rows of a person differ in it."
    )
    publish: Literal["token"] | None = Field(
        None,
        description="For a person column: publish a random token a release, so that rows can be told to belong together.",
    )
    repeats: Literal["allowed"] | None = Field(
        None, description="For an identifier whose values repeat and that is not a person, such as a first name."
    )
    round: float | None = Field(None, gt=0, description="Round numbers to multiples of this, before anything else.")
    top: float | str | None = Field(None, description="Top coding: larger values become this one.")
    bottom: float | str | None = Field(None, description="Bottom coding: smaller values become this one.")
    truncate: Unit | Annotated[int, Field(ge=0, le=1000)] | None = Field(
        None, description="Dates to the start of a unit, numbers to so many decimals, texts to so many characters."
    )
    shift: Shift | None = Field(
        None, description="Move dates by days that are secret and the same for all of a person's."
    )
    pseudonym: str | None = Field(
        None,
        min_length=1,
        description="A file with a key: values become tokens, the same for the same value. Made if it is not there.",
    )
    drop: bool = Field(False, description="Leave the column out, as an identifier.")
    accept: str | None = Field(
        None, min_length=1, description="Why this column may be published as it is although it looks dangerous."
    )

    @field_validator("order")
    @classmethod
    def _all_different(cls, order: list[str] | None) -> list[str] | None:
        if order is not None and (not order or len(set(order)) < len(order)):
            raise ValueError("name every value once, lowest first")
        return order

    @model_validator(mode="after")
    def _keys_of_its_role(self) -> Attribute:
        for key, role in (("within", "quasi"), ("publish", "person"), ("repeats", "identifier")):
            if getattr(self, key) is not None and self.role != role:
                raise ValueError(f'{key} belongs to the role "{role}", not to "{self.role}"')
        return self

    @model_validator(mode="after")
    def _read_as_it_is_written(self) -> Attribute:
        patterns = self.patterns
        for one in patterns:
            if problem := one.problem():
                raise ValueError(f"{one.text!r} {problem}")
        kinds = {one.kind for one in patterns} | ({"number"} if self.decimal else set())
        if len(kinds) > 1:
            raise ValueError("a column is written as dates or as numbers, not as both")
        if kinds and self.kind not in (None, *kinds):
            raise ValueError(f'a column that is written as a {kinds.pop()} has that kind, not "{self.kind}"')
        if self.shift is not None and self.role not in ("quasi", "sensitive", "other"):
            raise ValueError("shift moves dates that are published")
        if self.pseudonym is not None and self.role not in ("identifier", "person", "other"):
            raise ValueError(f'pseudonym belongs to a key (identifier, person or other), not to "{self.role}"')
        if self.pseudonym is not None and (self.publish is not None or self.drop):
            raise ValueError("a pseudonym is published; leave out publish and drop")
        return self

    @property
    def key_files(self) -> list[str]:
        """The files with keys that it needs."""
        return [key for key in (self.pseudonym, self.shift.key if self.shift else None) if key is not None]

    @property
    def only_tokens(self) -> bool:
        """Whether the column was declared to publish tokens, so that nothing else may stand in it."""
        return self.publish == "token"

    @property
    def stays(self) -> bool:
        """Whether its values are published, masked or not: of identifiers and persons only pseudonyms are."""
        return self.role in ("quasi", "sensitive", "other") or self.pseudonym is not None

    @property
    def patterns(self) -> list[Pattern]:
        """How its values are written in the source; none where that is plain."""
        written = [self.format] if isinstance(self.format, str) else self.format or (["#"] if self.decimal else [])
        return [Pattern(text, self.decimal or ".") for text in written]

    @model_validator(mode="before")
    @classmethod
    def _dropped(cls, given: Any) -> Any:
        # A column that leaves needs no other role than that of an identifier.
        if isinstance(given, dict) and given.get("drop") is True:
            return {**given, "role": "identifier"}
        return given

    @model_validator(mode="before")
    @classmethod
    def _kind_as_it_is_written(cls, given: Any) -> Any:
        # What says how dates are written or coarsened says that they are dates, in a masked file too, which has no types.
        if not isinstance(given, dict) or given.get("kind") is not None or given.get("order") is not None:
            return given
        written = given.get("format")
        texts = [written] if isinstance(written, str) else written if isinstance(written, list) else []
        if given.get("decimal") is not None or any("#" in str(text) for text in texts):
            return {**given, "kind": "number"}
        unit = given.get("truncate")
        dated = bool(texts) or given.get("shift") is not None or (isinstance(unit, str) and unit in UNITS)
        return {**given, "kind": "date"} if dated else given


class _Key(Attribute):  # type: ignore[metaclass]
    """The column that whoever looks at somebody else's file names as the key of its persons; any keys may stand there."""

    @property
    def only_tokens(self) -> bool:
        return False


@dataclass(frozen=True)
class Schema:
    """The declared columns: `attributes` by name, and `folder`, where relative taxonomy files are looked for (the
    current one by default); `missing` are the texts that mean missing.

    >>> import shoal
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "*": shoal.Attribute(role="other")})
    >>> schema.resolve(["age", "ward"]).named("other")
    ['ward']
    """

    attributes: Mapping[str, Attribute]
    folder: Path = field(default_factory=Path)
    missing: tuple[str, ...] = ("", "?")

    def __post_init__(self) -> None:
        require_a("attributes", self.attributes, Mapping, "a mapping of columns to attributes")
        for name, attribute in self.attributes.items():
            require_a("a column's name", name, str, "a text")
            require_a(f"the attribute of '{name}'", attribute, Attribute, 'such as Attribute(role="quasi")')

    def named(self, role: Role) -> list[str]:
        """Returns the columns with a `role`, in the order they are declared."""
        return [name for name, attribute in self.attributes.items() if attribute.role == role]

    @property
    def as_text(self) -> list[str] | Literal[True]:
        """The columns that a reader must leave as they are written, because they say how; all where `"*"` does."""
        return True if self._written("*") else [name for name in self.attributes if self._written(name)]

    def _written(self, name: str) -> bool:
        return name in self.attributes and bool(self.attributes[name].patterns)

    @property
    def person(self) -> str | None:
        """The column that says which rows are one person's, if there is one."""
        return next(iter(self.named("person")), None)

    @property
    def token(self) -> str | None:
        """The column in which a random number for each person is published, if that is asked for."""
        return next((name for name, attribute in self.attributes.items() if attribute.publish == "token"), None)

    def with_person(self, column: str | None, *, published: bool = False) -> Schema:
        """The schema with `column` in the role `person`; the same for None.

        `published` says that the column stands in the table, as a token does in a masked one; False by default. Returns a
        schema of its own.

        >>> import shoal
        >>> shoal.Schema({"age": shoal.Attribute(role="quasi")}).with_person("pid").person
        'pid'
        """
        if column is None:
            return self
        require_a("person", column, str, "the name of a column")
        own = self.attributes.get(column)
        keyed = own.pseudonym if own is not None else None
        publish = "token" if published and keyed is None else own.publish if own is not None else None
        kind = _Key if published and (own is None or own.publish is None) else Attribute
        person = kind.model_validate({"role": "person", "publish": publish, "pseudonym": keyed})
        return Schema({**self.attributes, column: person}, self.folder, self.missing)

    def of_versions(self) -> Schema:
        """The schema of a table in which a record may stand as it was and as it is. Returns one in which identifiers may
        repeat.

        >>> import shoal
        >>> shoal.Schema({"name": shoal.Attribute(role="identifier")}).of_versions().attributes["name"].repeats
        'allowed'
        """
        allowed = {
            name: attribute.model_copy(update={"repeats": "allowed"}) if attribute.role == "identifier" else attribute
            for name, attribute in self.attributes.items()
        }
        return Schema(allowed, self.folder, self.missing)

    def resolve(self, columns: Iterable[str]) -> Schema:
        """The schema of a table with exactly these `columns`, `"*"` spelled out.

        Returns a schema without `"*"`. Raises `ConfigError` for a column that is declared and not there, or there and
        not declared.

        >>> import shoal
        >>> shoal.Schema({"age": shoal.Attribute(role="quasi")}).resolve(["age", "ward"])
        Traceback (most recent call last):
        ...
        shoal.errors.ConfigError: Column 'ward' has no role; declare [attributes.ward] with a role of ...
        """
        require_a("columns", columns, Iterable, "the names of columns")
        columns = list(columns)
        for name in columns:
            require_a("a column's name", name, str, "a text")
        for name in self.attributes:
            if name != "*" and name not in columns:
                raise ConfigError(f"[attributes.{name}]: the table has no such column; {did_you_mean(name, columns)}")
        rest = self.rest([name for name in columns if name not in self.attributes])
        found = {name: self.attributes.get(name, rest) for name in columns}
        people = [name for name, attribute in found.items() if attribute and attribute.role == "person"]
        if len(people) > 1:
            raise ConfigError(
                f"Columns '{people[0]}' and '{people[1]}' both have the role \"person\"; one column says whose a row is."
            )
        return Schema({name: attribute for name, attribute in found.items() if attribute}, self.folder, self.missing)

    def rest(self, undeclared: list[str]) -> Attribute | None:
        """What `"*"` says about columns that are not declared by name (`undeclared`).

        A column called `Name` beside a declared `name` is hardly one of "all others": whoever looks takes it for that
        one. Returns the attribute; raises `ConfigError` where `"*"` says nothing, or should not.

        >>> import shoal
        >>> shoal.Schema({"*": shoal.Attribute(role="other")}).rest(["ward"]).role
        'other'
        """
        rest = self.attributes.get("*")
        if undeclared and rest is None:
            raise ConfigError(
                f"Column '{undeclared[0]}' has no role"
                + (f" (and {len(undeclared) - 1} more)" if len(undeclared) > 1 else "")
                + f"; declare [attributes.{toml_key(undeclared[0])}] with a role of {', '.join(ROLES)}, "
                + 'or [attributes."*"] for all others.'
            )
        if undeclared:
            from shoal.spelling import alike

            declared = [name for name in self.attributes if name != "*"]
            names = [*declared, *undeclared]
            for group in alike(names):
                if group[0] < len(declared) <= group[-1]:
                    raise ConfigError(
                        f"Column '{names[group[-1]]}' is spelled like the declared column '{names[group[0]]}'; rename it, "
                        f"or declare [attributes.{toml_key(names[group[-1]])}] with a role of its own."
                    )
        return rest

    def taxonomy_file(self, name: str, reference: str) -> Taxonomy:
        r"""Read the taxonomy file that `reference` names, from the schema's folder.

        `name` is the column, for the message when there is none. Returns the taxonomy.

        >>> import shoal, tempfile
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "zip.csv").write_text("41076;410**;*\n48201;482**;*\n")
        >>> shoal.Schema({}, folder).taxonomy_file("zip", "zip.csv")
        Taxonomy('zip.csv', 2 leaves, 3 levels)
        """
        path = self.folder / reference
        if not path.is_file():
            raise ConfigError(f"[attributes.{toml_key(name)}] taxonomy: there is no file '{path}'.")
        return Taxonomy.read(path)


def toml_key(name: str) -> str:
    """A name as TOML writes it in a key."""
    return name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'
