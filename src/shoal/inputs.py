"""Tables, roles and policies however people write them, made into what the house works with.

A table is a frame of pandas, polars or pyarrow, or a file. Roles are a schema, a mapping such as `{"age": "quasi"}`, a
`shoal.toml`, or just the names of columns. A policy is a model, several joined with `&`, a dictionary as in TOML, or a
`shoal.toml`.

>>> import polars as pl
>>> from shoal.inputs import Roles, as_policy, encoded
>>> table = pl.DataFrame({"age": [21, 22], "illness": ["flu", "cold"], "note": ["x", "y"]})
>>> data = encoded(table, Roles(quasi="age", sensitive="illness"))
>>> data.quasi, data.schema.named("identifier")
(['age'], ['note'])
>>> print(as_policy({"k": 2, "p_sensitive": {"p": 2}}))
k_anonymity(k = 2) & p_sensitive(p = 2)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from shoal.configuration import Configuration, read_config, read_schema
from shoal.errors import ConfigError
from shoal.io.frames import apply_missing, to_polars
from shoal.microdata import Microdata, Missing
from shoal.models import MODELS, Model
from shoal.policy import Policy
from shoal.reading import as_declared
from shoal.schema import Attribute, Schema
from shoal.suggesting import profile

# Whoever names some columns has said nothing about the others: they stay where they are.
UNNAMED = {"role": "identifier", "repeats": "allowed"}


class Roles(NamedTuple):
    """Who the columns are, as a user says it: a schema, names of columns, or both."""

    schema: Any = None
    quasi: str | Iterable[str] = ()
    sensitive: str | Iterable[str] = ()
    person: str | None = None

    @property
    def given(self) -> bool:
        """Whether anything was said."""
        named = (_names("quasi", self.quasi), _names("sensitive", self.sensitive))
        return self.schema is not None or any(named) or self.person is not None


def as_policy(policy: Any) -> Policy:
    """The policy that a model, a policy, a dictionary or a `shoal.toml` means.

    >>> import shoal
    >>> as_policy(shoal.KAnonymity(3)).models[0].k
    3
    >>> as_policy(5)
    Traceback (most recent call last):
    ...
    shoal.errors.ConfigError: a policy is a model, models joined with &, a dictionary such as {"k": 5} or a shoal.toml, not int.
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, Model):
        return Policy((policy,))
    if isinstance(policy, Mapping):
        return Policy.from_config(policy)
    if isinstance(policy, Configuration):
        return Policy.from_config(policy.config.policy)
    if isinstance(policy, str) and policy in MODELS:
        raise ConfigError(f'a policy says how much is asked: write {{"{policy}": {{ … }}}} instead of "{policy}".')
    if isinstance(policy, str | Path):
        return Policy.from_config(read_config(policy).config.policy)
    kind = f"the class {policy.__name__}" if isinstance(policy, type) else type(policy).__name__
    raise ConfigError(
        f'a policy is a model, models joined with &, a dictionary such as {{"k": 5}} or a shoal.toml, not {kind}.'
    )


def encoded(table: Any, roles: Roles, *, policy: Any = None, missing: Missing | None = None) -> Microdata:
    """The table, encoded: `roles` say who its columns are, or the `shoal.toml` that was given as the policy does.

    A `Microdata` knows its roles already. Columns that are not named where only names are given are left out.
    """
    if isinstance(table, Microdata):
        if roles.given:
            raise ConfigError("this table was encoded with its roles already; give them to it, or give a plain frame.")
        return table
    if isinstance(table, Schema | Policy | Model | Mapping):
        raise ConfigError(f"the first argument is the table: a frame or a path, not {type(table).__name__}.")
    configuration = _configuration(roles.schema, policy)
    schema = declared(roles._replace(schema=configuration or roles.schema))
    if missing is None:
        missing = configuration.config.method.missing if configuration is not None else "category"
    if isinstance(table, str | Path):
        from shoal.io.files import file_types, read_table

        reading = configuration.config.source.reading if configuration is not None else {}
        read = read_table(table, **reading, as_text=schema.as_text)
        require_nobody_unnamed(read, schema, roles)
        data = Microdata.of_table(read, schema, missing=missing)
        return replace(data, frame=data.table, source=Path(table), types=file_types(table))
    require_nobody_unnamed(table, schema, roles)
    return Microdata.from_frame(table, schema, missing=missing)


def require_nobody_unnamed(table: Any, schema: Schema, roles: Roles) -> None:
    """Where columns are only named, one that says whose each row is may have been forgotten."""
    if roles.schema is not None or schema.person is not None:
        return
    frame = to_polars(table)[0]
    unnamed = [name for name in frame.columns if name not in schema.attributes]
    if not unnamed or frame.height < 2:
        return
    known = [name for name in schema.named("quasi") if name in frame.columns]
    person = profile(frame.select(*unnamed, *known)).named("person")
    if person:
        raise ConfigError(
            f"column '{person[0]}' is not named, and seems to say whose each row is: a class of rows would be no class of "
            f"people. Say person='{person[0]}' (--person {person[0]}), or, if its rows are not one person's, leave it out."
        )


def _configuration(schema: Any, policy: Any) -> Configuration | None:
    """The `shoal.toml` among what was given: as the schema, or as the policy where there is no schema."""
    for one in (schema, policy if schema is None else None):
        if isinstance(one, Configuration):
            return one
        if isinstance(one, str | Path) and one not in MODELS:
            return read_config(one)
    return None


def declared(roles: Roles, *, rest: Attribute | None = None) -> Schema:
    """The schema that was said; `rest` is what columns are that nobody names, left out by default."""
    named = [
        *((name, "quasi") for name in _names("quasi", roles.quasi)),
        *((name, "sensitive") for name in _names("sensitive", roles.sensitive)),
        *((name, "person") for name in _names("person", roles.person or ())),
    ]
    if roles.schema is None and not named:
        raise ConfigError(
            "nothing says which columns others may know; name them with quasi=[…] and sensitive=[…], or give a schema "
            "(shoal.profile suggests one)."
        )
    schema = Schema({}) if roles.schema is None else read_schema(_known(roles.schema))
    attributes = dict(schema.attributes)
    for name, role in named:
        own = attributes.get(name)
        if own is not None and own.role != role:
            raise ConfigError(f"column '{name}' is called {own.role} and {role}; say one of them.")
        attributes.setdefault(name, Attribute.model_validate({"role": role}))
    if roles.schema is None:
        attributes["*"] = rest or Attribute.model_validate(UNNAMED)
    return Schema(attributes, schema.folder, schema.missing)


def _names(what: str, given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, Iterable) or isinstance(names, Mapping | bytes | pl.Series):
        raise ConfigError(f"{what} is the name of a column, or a list of names, not {type(given).__name__}.")
    names = list(names)
    for one in names:
        if not isinstance(one, str):
            raise ConfigError(f"{what} is the name of a column, or a list of names; {type(one).__name__} is no name.")
    return names


def _known(schema: Any) -> Any:
    if isinstance(schema, Schema | Configuration | str | Path | Mapping):
        return schema
    raise ConfigError(
        f'a schema is a mapping such as {{"age": "quasi"}}, a Schema or a shoal.toml, not {type(schema).__name__}.'
    )


def people_of(source: Any, schema: Schema) -> pl.DataFrame:
    """A list of people, a frame or a file, written like the table that was masked or otherwise."""
    if isinstance(source, str | Path):
        from shoal.io.files import read_table

        table = read_table(source, missing=list(schema.missing), as_text=schema.as_text)
    else:
        table = table_of(source, schema.missing)[0]
    return as_declared(table, schema, strict=False)


def table_of(source: Any, missing: tuple[str, ...] = ("", "?")) -> tuple[pl.DataFrame, str]:
    """A frame or a file as a polars frame, and the library to which answers go back."""
    if isinstance(source, str | Path):
        from shoal.io.files import read_table

        return read_table(source, missing=list(missing)), "polars"
    table, backend = to_polars(source)
    return apply_missing(table, missing), backend
