"""`shoal.anonymize(…, engine="duckdb")`, or of a Spark frame: a file or a frame goes to an engine, whatever it is written in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.configuration import Configuration, Source, read_config, read_schema
from shoal.engines.choosing import DEFAULT, bytes_of, choose, source_of
from shoal.engines.spark_session import is_spark, spark_session
from shoal.engines.walk import LargeRelease, Settings, walk
from shoal.errors import ConfigError, UnsupportedError
from shoal.inputs import Roles, as_policy
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.progress import Told


def beyond_memory(data: Any, engine: str, memory: str | None = None) -> bool:
    """Whether this table is not to be masked in memory: asked for, or a file that does not fit."""
    return choose(engine, Path(data) if isinstance(data, str | Path) else None, memory).engine != "memory"


def release_from(
    data: Any,
    policy: Any,
    roles: Roles,
    settings: Settings,
    *,
    engine: str,
    memory: str | None = None,
    progress: Told | None = None,
) -> LargeRelease:
    """Mask a file or a frame with another engine than memory.

    Columns have to be declared in a schema or a `shoal.toml`: to suggest what columns that nobody names may be takes the records.
    """
    from shoal.engines.duck import BLOCKS, DuckEngine, frame_source

    given = roles.schema if roles.schema is not None else policy
    if isinstance(given, str | Path):
        given = read_config(given)
    if not isinstance(given, Configuration) and roles.schema is None:
        raise ConfigError(
            f'engine = "{engine}" needs a schema that declares every column, or a shoal.toml; a few names are not enough.'
        )
    if isinstance(data, Microdata):
        raise UnsupportedError(
            f'this table is encoded in memory already; give the file or the frame to engine = "{engine}".'
        )
    if engine == "spark":
        return _on_spark(data, as_policy(policy), given, settings, progress)
    size = DEFAULT if memory is None else bytes_of(memory)
    if isinstance(data, str | Path):
        configuration = given if isinstance(given, Configuration) else _plain(Path(data))
        found = source_of(configuration, Path(data))
    else:
        found = frame_source(_arrow(data))
    return walk(
        DuckEngine(found, memory=size),
        read_schema(given),
        as_policy(policy),
        replace(settings, room=int(BLOCKS * size)),
        as_text=found.as_text,
        progress=progress,
    )


def _on_spark(data: Any, policy: Policy, given: Any, settings: Settings, progress: Told | None) -> LargeRelease:
    """Mask a Spark frame in its session, or what Spark reads at a path; `staging` among the options says where it is staged."""
    from shoal.engines.spark_release import anonymize_spark, read_source

    as_text = False
    if isinstance(data, str | Path):
        how = given.config.source if isinstance(given, Configuration) else Source.model_validate({})
        data, as_text = read_source(spark_session(), str(data), delimiter=how.delimiter, encoding=how.encoding)
    elif not is_spark(data):
        raise UnsupportedError(
            'engine = "spark" masks Spark data frames, and files that Spark reads; give one of them.'
        )
    staging = settings.options.get("staging")
    options = {name: value for name, value in settings.options.items() if name != "staging"}
    asked = replace(settings, options=options)
    return anonymize_spark(data, read_schema(given), policy, asked, staging=staging, as_text=as_text, progress=progress)


def _plain(path: Path) -> Configuration:
    """A configuration that says nothing but what separates columns by default."""
    from shoal.configuration import Config

    return Configuration(Config(source=Source.model_validate({"path": str(path), "delimiter": ","})))


def _arrow(data: Any) -> Any:
    """A frame of any library as an Arrow table."""
    from shoal.io.frames import to_polars

    return to_polars(data)[0].to_arrow()
