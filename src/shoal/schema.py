"""Who each column is, and everything else that stands in a `shoal.toml`.

>>> schema = Schema({"age": Attribute(role="quasi"), "name": Attribute(role="identifier")})
>>> schema.named("quasi")
['age']
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema, ValidationError, field_validator, model_validator
from pydantic_core import core_schema

from shoal.errors import ConfigError, InputError, did_you_mean, require_a, shown
from shoal.taxonomy import Taxonomy

Role = Literal["identifier", "person", "quasi", "sensitive", "other"]
Kind = Literal["number", "category", "date"]
# How a release looks: which values, in what form, in what order, and what becomes of suppressed records.
Recode = Literal["generalize", "microaggregate", "suppress"]
Intervals = Literal["text", "columns", "midpoint"]
Order = Literal["shuffle", "keep"]
Suppressed = Literal["mask", "drop"]
Within = Literal["first", "last", "min", "max", "most"]
ROLES: tuple[Role, ...] = ("identifier", "person", "quasi", "sensitive", "other")

# A taxonomy made in Python. A table in a file is never one: it is read as a rule, and told what is wrong with it.
Made = Annotated[Taxonomy, GetPydanticSchema(lambda kind, _: core_schema.is_instance_schema(kind))]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaxonomySource(_Strict):
    """How to make a taxonomy from the values themselves; exactly one of these."""

    prefix: list[int] | None = Field(None, description="Characters kept per level, the rest starred: [3, 2, 0].")
    intervals: list[float] | None = Field(None, description="Widths of nested intervals: [5, 10, 20].")
    edges: list[list[float]] | None = Field(None, description="Edges of nested intervals, finest level first.")
    dates: list[Literal["day", "month", "quarter", "year", "decade"]] | None = Field(
        None, description="Units, finest first."
    )
    parents: dict[str, str] | None = Field(None, description="Each value's parent.")
    rows: list[list[str]] | None = Field(None, description="Paths from leaf to root.")

    @model_validator(mode="after")
    def _exactly_one(self) -> TaxonomySource:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"give exactly one of {', '.join(type(self).model_fields)}")
        return self


class _Called(type(BaseModel)):  # type: ignore[misc]
    """What is made in Python gets our sentence; what stands in a file gets it with the file's name and line."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        try:
            return super().__call__(*given, **named)
        except ValidationError as problem:
            raise ConfigError(_explain(problem, "", cls.__name__)) from None


class Attribute(_Strict, metaclass=_Called):
    """One column: its role, and what is known about its values. Only `role` is needed; `shoal.toml` has the same keys.

    - `role`: "identifier" (dropped), "person" (whose each row is; dropped), "quasi" (masked), "sensitive" (published,
      protected by the policy) or "other" (published as it is).
    - `kind`: "number", "category" or "date"; told from the values by default.
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
    truncate: Literal["day", "month", "quarter", "year", "decade"] | Annotated[int, Field(ge=0, le=1000)] | None = (
        Field(
            None, description="Dates to the start of a unit, numbers to so many decimals, texts to so many characters."
        )
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

    @model_validator(mode="before")
    @classmethod
    def _dropped(cls, given: Any) -> Any:
        # A column that leaves needs no other role than that of an identifier.
        if isinstance(given, dict) and given.get("drop") is True:
            return {**given, "role": "identifier"}
        return given


class Source(_Strict):
    """Where the table comes from: a file, or a database."""

    path: str | None = Field(None, description="csv, tsv, parquet, arrow, json lines or xlsx.")
    url: str | None = Field(None, description="A database, as SQLAlchemy writes it.")
    table: str | None = None
    query: str | None = None
    delimiter: str | None = Field(None, description="Detected when absent.")
    encoding: str | None = Field(None, description="Detected when absent.")
    sheet: str | None = None
    header: list[str] | None = Field(None, description="Column names of a file that has none.")
    missing: list[str] = Field(["", "?"], description="Texts that mean missing.")

    @property
    def reading(self) -> dict[str, Any]:
        """How to read the file, as `shoal.io.read_table` takes it."""
        given = {name: getattr(self, name) for name in ("delimiter", "encoding", "header", "sheet", "missing")}
        return {name: value for name, value in given.items() if value is not None}


class Method(_Strict):
    """How the classes are made."""

    algorithm: str = "auto"
    objective: Literal["il", "ncp", "granularity"] = Field("ncp", description="The loss that the search minimises.")
    refine: bool | Literal["fast", "thorough"] | float = Field(
        True, description="true, fast, thorough, seconds or false."
    )
    missing: Literal["category", "drop", "error"] = "category"
    suppress: float | None = Field(
        None, ge=0, le=1, description="Largest share of records that may be suppressed; none when absent."
    )
    seed: int = Field(0, ge=0)
    options: dict[str, Any] = Field({}, description="Options of the algorithm itself.")


class Publication(_Strict):
    """How the release looks."""

    order: Order = "shuffle"
    recode: Recode = Field(
        "generalize", description="Intervals and nodes; means and modes; or single cells blanked, as few as possible."
    )
    intervals: Intervals = "text"
    suppressed: Suppressed = Field("mask", description="Suppressed records: starred, or left out.")


class Config(_Strict):
    """A whole `shoal.toml`."""

    source: Source = Source()  # type: ignore[call-arg]
    attributes: dict[str, Attribute] = {}
    policy: dict[str, Any] = {}
    method: Method = Method()  # type: ignore[call-arg]
    release: Publication = Publication()  # type: ignore[call-arg]


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
        publish = "token" if published else own.publish if own is not None else None
        return Schema(
            {**self.attributes, column: Attribute.model_validate({"role": "person", "publish": publish})},
            self.folder,
            self.missing,
        )

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
                + f"; declare [attributes.{_key(undeclared[0])}] with a role of {', '.join(ROLES)}, "
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
                        f"or declare [attributes.{_key(names[group[-1]])}] with a role of its own."
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
            raise ConfigError(f"[attributes.{_key(name)}] taxonomy: there is no file '{path}'.")
        return Taxonomy.read(path)


@dataclass(frozen=True)
class Configuration:
    """A parsed `shoal.toml` and where it was found."""

    config: Config
    path: Path | None = None

    @property
    def folder(self) -> Path:
        """Relative paths in the file start here."""
        return self.path.parent if self.path else Path()

    @property
    def schema(self) -> Schema:
        """The columns."""
        return Schema(self.config.attributes, self.folder, tuple(self.config.source.missing))

    def with_person(self, column: str | None, *, published: bool = False) -> Configuration:
        """The configuration with `column` in the role `person`; the same for None."""
        attributes = dict(self.schema.with_person(column, published=published).attributes)
        return replace(self, config=self.config.model_copy(update={"attributes": attributes}))


def read_config(path: str | Path) -> Configuration:
    """Read a `shoal.toml`; every error names the key, its line and what is allowed."""
    require_a("the configuration", path, (str, Path), "the path of a shoal.toml")
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration '{path}'; make one with: shoal init FILE.") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"The configuration '{path}' cannot be read: {problem}.") from None
    return Configuration(parse_config(text, str(path)), path)


def parse_config(text: str, name: str = "shoal.toml") -> Config:
    """Parse the text of a `shoal.toml`."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{name} is not valid TOML: {problem}.") from None
    try:
        return Config.model_validate(raw)
    except ValidationError as problem:
        raise ConfigError(_explain(problem, text, name)) from None


def read_schema(source: str | Path | Mapping[str, Any] | Schema | Configuration) -> Schema:
    """A schema from a `shoal.toml`, a mapping of columns to attributes or just their roles, or itself."""
    if isinstance(source, Schema):
        return source
    if isinstance(source, Configuration):
        return source.schema
    if isinstance(source, Mapping):
        return Schema({name: _attribute(name, value) for name, value in source.items()})
    require_a("schema", source, (str, Path), 'a mapping such as {"age": "quasi"}, a Schema or a shoal.toml')
    return read_config(source).schema


def _attribute(name: Any, value: Any) -> Attribute:
    if not isinstance(name, str):
        raise ConfigError(f"A schema names columns by text; {type(name).__name__} is no name.")
    try:
        # A role by itself will do where nothing else is to be said.
        return Attribute.model_validate({"role": value} if isinstance(value, str) else value)
    except ValidationError as problem:
        raise ConfigError(_explain(problem, "", f"schema of column '{name}'")) from None


def write_config(config: Config) -> str:
    """The text of a `shoal.toml`."""
    import tomlkit

    for name, column in config.attributes.items():
        if isinstance(column.taxonomy, Taxonomy):
            raise InputError(
                f"[attributes.{_key(name)}] taxonomy: one made in Python has no place in a TOML file; write it to a file first."
            )
    return tomlkit.dumps(config.model_dump(exclude_defaults=True))


def _explain(problem: ValidationError, text: str, name: str) -> str:
    # What is no taxonomy made in Python, and no table, may still be what the next branch of the union is about.
    errors = problem.errors()
    error = next((error for error in errors if error["type"] not in ("is_instance_of", "model_type")), errors[0])
    where = [str(part) for part in error["loc"] if not _is_branch(part)]
    line = _line_of(text, where)
    spot = ".".join(where) or "it"
    place = f"{name}, line {line}" if line else name
    if error["type"] == "extra_forbidden":
        return f"{place}: {spot}: no such key; {did_you_mean(where[-1], _allowed(where[:-1]))}"
    if error["type"] == "missing":
        return f"{place}: {spot} is missing; {_hint(where[-1])}."
    if error["type"] == "literal_error":
        given = error["input"]
        allowed = re.findall(r"'([^']+)'", str(error["ctx"]["expected"]))
        return f"{place}: {spot} = {shown(given)} is not allowed; {did_you_mean(given, allowed)}"
    return f"{place}: {spot} = {shown(error['input'])} is not allowed; {error['msg'].removeprefix('Value error, ').lower()}."


def _is_branch(part: Any) -> bool:
    # pydantic names the branch of a union it tried ("TaxonomySource", "tuple[float, float]"); nobody wrote that.
    return isinstance(part, str) and bool(re.search(r"[\[(]|^[A-Z]\w+$|^(str|bool|float|is-instance.*)$", part))


def _allowed(path: list[str]) -> list[str]:
    if not path:
        return list(Config.model_fields)
    places: dict[str, type[BaseModel]] = {"source": Source, "method": Method, "release": Publication}
    if path[0] in places:
        return list(places[path[0]].model_fields)
    return list(TaxonomySource.model_fields if path[-1] == "taxonomy" else Attribute.model_fields)


def _hint(key: str) -> str:
    return f"one of {', '.join(ROLES)}" if key == "role" else "it is required"


def _line_of(text: str, where: list[str]) -> int | None:
    """The line of the deepest part of a key path that can be found under its table header."""
    lines = text.splitlines()
    for depth in range(len(where), 0, -1):
        header = r"\s*\.\s*".join(rf"[\"']?{re.escape(part)}[\"']?" for part in where[:depth])
        hits = [i for i, line in enumerate(lines) if re.match(rf"\s*\[+\s*{header}\s*\]", line)]
        if hits:
            section = hits[0]
            if depth == len(where):
                return section + 1
            key = re.escape(where[depth])
            for i in range(section + 1, len(lines)):
                if re.match(r"\s*\[", lines[i]):
                    break
                if re.match(rf"\s*[\"']?{key}[\"']?\s*[.=]", lines[i]):
                    return i + 1
            return section + 1
    return None


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name) else f'"{name}"'
