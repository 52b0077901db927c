"""Requests that make no sense, generated: every key × every wrong value, every option of every command, every parameter.

Nothing here says what is wrong: a case is right if it ends in one of our sentences (or, where the value is allowed after all, in a
result), and no value of the table stands in what is said.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import typer

import shoal
from shoal.algorithms import names
from shoal.algorithms.options import options_of
from shoal.cli.app import app
from shoal.configuration import Method, Publication, Source
from shoal.models import MODELS
from shoal.models.parameters import declared
from shoal.schema import Attribute, TaxonomySource

# Every cell is a canary: nothing else in the world looks like it.
AGES = [8675301 + 11 * (i % 7) for i in range(16)]
FRAME = pl.DataFrame(
    {
        "name": [f"Qzname{i:02d}" for i in range(16)],
        "age": AGES,
        "zip": [f"Qz41{i % 4}" for i in range(16)],
        "born": [f"19{71 + i % 5}-07-1{i % 3}" for i in range(16)],
        "illness": [f"Qzill{i % 3}" for i in range(16)],
        "cost": [7203100 + 17 * (i % 5) for i in range(16)],
    }
)
CANARIES = ("Qzname", "Qz41", "Qzill", "86753", "72031", "1971-07", "1972-07", "1973-07", "1974-07", "1975-07")
TREE = 'rows = [["Qzill0", "a", "*"], ["Qzill1", "a", "*"], ["Qzill2", "*"]]'
BASE = """[source]
path = "table.csv"
[attributes.name]
role = "identifier"
[attributes.age]
role = "quasi"
[attributes.zip]
role = "quasi"
kind = "category"
[attributes.born]
role = "quasi"
kind = "date"
[attributes.illness]
role = "sensitive"
[attributes.cost]
role = "sensitive"
kind = "number"
"""
END = '[policy]\nk = 2\n[method]\nalgorithm = "mondrian"\nrefine = false\n'

# Values as TOML writes them, and as Python does.
WRONG = [
    "true", "-1", "0", "1.5", "1e308", "nan", "inf", '""', '"x"', '"auto"', "[]", "[1]", '["a", "a"]', "[[1, 2]]", '[["a"]]', "{}",
    "{ a = 1 }", "2024-01-01", "99999999999999999999", '"\\u0000"', '"../../x"',
]  # fmt: skip
VALUES: list[Any] = [
    None, True, -1, 0, 1.5, 1e308, float("nan"), float("inf"), "", "x", "shufle", b"x", [], [1], ["a", "a"], [[1, 2]], {}, {"a": 1},
    object(), 10**30, 1j, pl.Series([1]), print,
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One request: a configuration, a command line, or a call."""

    what: str
    config: str | None = None
    arguments: tuple[str, ...] | None = None
    call: Callable[[Path], Any] | None = None


def cases() -> list[Case]:
    """All of them."""
    return [*configurations(), *command_lines(), *calls()]


def configurations() -> Iterator[Case]:
    """A configuration that is right but for one key."""

    def made(what: str, value: str, text: str) -> Case:
        return Case(f"{what} = {value}", config=text)

    for value in WRONG:
        for key in Source.model_fields:
            if key == "path":
                text = BASE.replace('path = "table.csv"', f"path = {value}") + END
            else:
                text = BASE.replace("[source]\n", f"[source]\n{key} = {value}\n") + END
            yield made(f"[source] {key}", value, text)
        for column in ("age", "zip", "born", "illness", "cost", "name"):
            for key in Attribute.model_fields:
                head = f"[attributes.{column}]\n"
                block = BASE.partition(head)[2].partition("[")[0]
                kept = "".join(f"{line}\n" for line in block.splitlines() if not line.startswith(f"{key} ="))
                text = BASE.replace(head + block, f"{head}{key} = {value}\n{kept}") + END
                yield made(f"[attributes.{column}] {key}", value, text)
        for column in ("age", "zip", "born", "illness"):
            for key in TaxonomySource.model_fields:
                head = f"[attributes.{column}]\n"
                yield made(
                    f"[attributes.{column}] taxonomy {key}",
                    value,
                    BASE.replace(head, f"{head}taxonomy = {{ {key} = {value} }}\n") + END,
                )
        for key in Publication.model_fields:
            yield made(f"[release] {key}", value, f"{BASE}{END}[release]\n{key} = {value}\n")
        for key in Method.model_fields:
            own = (
                END.replace('algorithm = "mondrian"\n', "")
                if key == "algorithm"
                else END.replace("refine = false\n", "")
                if key == "refine"
                else END
            )
            yield made(f"[method] {key}", value, f"{BASE}{own}{key} = {value}\n")
        for algorithm in names():
            for key in [*options_of(algorithm), "data", "rules", "progress", "policy", "allowed"]:
                if key not in ("threads", "preparation"):
                    yield made(
                        f"{algorithm} {key}",
                        value,
                        f"{BASE}{END.replace('mondrian', algorithm)}options = {{ {key} = {value} }}\n",
                    )
        for name, model in MODELS.items():
            on = "cost" if name in ("k_e", "kpqr") else "illness"
            base = BASE.replace(
                '[attributes.illness]\nrole = "sensitive"',
                f'[attributes.illness]\nrole = "sensitive"\ntaxonomy = {{ {TREE} }}',
            )
            own = model.examples()[0].parameters()
            for key in [*declared(model), "attribute", "nothing"]:
                given = {
                    **{k: repr(v).replace("'", '"') for k, v in own.items()},
                    **({} if name == "k_anonymity" else {"attribute": f'"{on}"'}),
                    key: value,
                }
                inner = ", ".join(f"{k} = {v}" for k, v in given.items())
                yield made(
                    f"[policy] {name} {key}",
                    value,
                    f"{base}[policy]\n{name} = {{ {inner} }}\n{END.partition(chr(10))[2].partition(chr(10))[2]}",
                )
            yield made(f"[policy] {name}", value, f"{base}[policy]\n{name} = {value}\n")
        for section in ("source", "attributes", "policy", "method", "release", "attributes.age", "nothing"):
            yield made(section, value, f"{section} = {value}\n")


SLOW = ("demo", "reproduce", "doctor", "explore", "compare")
"""Commands that do much by themselves: only requests that they must refuse at once are made of them."""


def command_lines() -> Iterator[Case]:
    """Every option of every command with every wrong word, one at a time."""
    words = [
        "",
        "-1",
        "nope",
        "1e999",
        "nan",
        "/nowhere/x.csv",
        "shoal.toml",
        ".",
        "table.csv",
        "sqlite:///nowhere.db",
        "a\x00b",
        "ü" * 300,
    ]
    group = typer.main.get_command(app)
    for name, command in _commands(group):
        leading = name.split()
        right = {
            "anonymize": ["-o", "masked.csv"], "verify": ["ready.csv"], "attack": ["ready.csv"], "measure": ["table.csv", "ready.csv"],
            "compare": ["-a", "mondrian"], "init": ["table.csv", "-o", "new.toml"],
        }.get(name, [])  # fmt: skip
        yield Case(f"{name} --nothing", arguments=(*leading, "--nothing"))
        yield Case(f"{name} too much", arguments=(*leading, *right, *["too"] * 9))
        for parameter in command.params:
            if parameter.name == "help" or getattr(parameter, "is_flag", False):
                continue
            option = parameter.opts[0] if parameter.param_type_name == "option" else None
            if name in SLOW:
                typed = ["nope", "1e999"] if option in ("--records", "--seed") else []
            elif name in ("watch",) or name.endswith("watch"):
                continue
            else:
                typed = words
            for word in typed:
                extra = [option, word] if option else [word]
                yield Case(
                    f"{' '.join([name, *extra])[:60]!r}",
                    arguments=(*leading, *(right if option else right[1:]), *extra),
                )


def _commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


SCHEMA = {
    "name": {"role": "identifier"}, "age": {"role": "quasi"}, "zip": {"role": "quasi"}, "born": {"role": "quasi", "kind": "date"},
    "illness": {"role": "sensitive"}, "cost": {"role": "sensitive"},
}  # fmt: skip


def calls() -> Iterator[Case]:
    """Every parameter of the public functions with every wrong value, one at a time."""
    data = shoal.Microdata.from_frame(FRAME, SCHEMA)
    policy = shoal.Policy((shoal.KAnonymity(2),))
    release = shoal.anonymize(data, policy, algorithm="mondrian", refine=False)
    masked, schema = release.masked, data.schema

    def walked(**given: Any) -> Any:
        return shoal.anonymize(**{"data": data, "policy": policy, "algorithm": "mondrian", "refine": False, **given})

    public: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
        ("Microdata.from_frame", shoal.Microdata.from_frame, {"frame": FRAME, "schema": SCHEMA}),
        ("verify", shoal.verify, {"masked": masked, "policy": policy, "schema": schema}),
        ("audit", shoal.audit, {"masked": masked, "schema": schema}),
        ("measure_masked", shoal.measure_masked, {"original": data, "masked": masked}),
        ("attack", shoal.attack, {"masked": masked, "schema": schema}),
        ("measure", shoal.measure, {"original": data, "masked": masked, "schema": schema}),
        ("profile", shoal.profile, {"table": FRAME}),
        ("attack_releases", shoal.attack_releases, {"releases": [masked, masked], "schema": schema, "k": 2}),
        ("Policy.from_config", shoal.Policy.from_config, {"section": {"k": 2}}),
        ("Policy", lambda models: shoal.anonymize(data, shoal.Policy(models), algorithm="mondrian", refine=False), {"models": ()}),
        ("Schema", lambda attributes: shoal.Microdata.from_frame(FRAME, shoal.Schema(attributes)), {"attributes": {}}),
        ("Schema.resolve", schema.resolve, {"columns": []}),
        ("Taxonomy.from_rows", shoal.Taxonomy.from_rows, {"rows": [["a", "*"]], "name": "t"}),
        ("Taxonomy.from_parents", shoal.Taxonomy.from_parents, {"parents": {"a": "*"}, "name": "t"}),
        ("Taxonomy.read", shoal.Taxonomy.read, {"path": "x"}),
    ]  # fmt: skip
    public += _stores(schema, policy)
    for name, function, right in public:
        for key in inspect.signature(function).parameters:
            for i, value in enumerate(VALUES):
                yield Case(
                    f"{name}({key}={_named(value, i)})",
                    call=lambda _, f=function, r=right, k=key, v=value: f(**{**r, k: v}),
                )
    for key in inspect.signature(shoal.anonymize).parameters:
        if key in ("progress", "options"):
            continue
        for i, value in enumerate(VALUES):
            yield Case(f"anonymize({key}={_named(value, i)})", call=lambda _, k=key, v=value: walked(**{k: v}))
    for key in Attribute.model_fields:
        for i, value in enumerate(VALUES):
            yield Case(
                f"Attribute({key}={_named(value, i)})",
                call=lambda _, k=key, v=value: shoal.Attribute(**{"role": "quasi", k: v}),
            )
    for model in MODELS.values():
        right = model.examples()[0].parameters()
        for key in [*declared(model), "attribute"]:
            for i, value in enumerate(VALUES):
                if key != "attribute" or model.per_attribute:
                    yield Case(
                        f"{model.__name__}({key}={_named(value, i)})",
                        call=lambda _, m=model, r=right, k=key, v=value: shoal.anonymize(
                            data, m(**{**r, k: v}), algorithm="mondrian", refine=False
                        ),
                    )
    for key in ("path", "force", "safe_csv", "key"):
        for i, value in enumerate(VALUES):
            yield Case(
                f"Release.write({key}={_named(value, i)})",
                call=lambda folder, k=key, v=value: release.write(**{"path": folder / "out.csv", "force": True, k: v}),
            )
    for key in ("path", "schema", "missing", "delimiter", "encoding", "header", "sheet", "columns"):
        for i, value in enumerate(VALUES):
            yield Case(
                f"read({key}={_named(value, i)})",
                call=lambda folder, k=key, v=value: shoal.read(
                    **{"path": folder / "table.csv", "schema": SCHEMA, k: v}
                ),
            )


def _stores(schema: shoal.Schema, policy: shoal.Policy) -> list[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """What a store is asked: made anew, opened, changed, and made to release. All of it happens to one store."""
    place = Path(tempfile.mkdtemp(prefix="shoal-hostile-"))
    made = {"data": FRAME, "policy": policy, "key": "name", "schema": schema, "algorithm": "mondrian", "refine": False}
    numbers = count()

    def create(url: Any = None, **given: Any) -> Any:
        with shoal.Store.create(f"sqlite:///{place}/{next(numbers)}.db" if url is None else url, **{**made, **given}):
            return None

    create.__signature__ = inspect.signature(shoal.Store.create)  # type: ignore[attr-defined]
    url = f"sqlite:///{place}/one.db"
    store = shoal.Store.create(url, **made)
    store.release()
    right: dict[str, dict[str, Any]] = {
        "apply": {}, "insert": {"source": FRAME.clear()}, "update": {"source": FRAME[:1]}, "upsert": {"source": FRAME[:1]},
        "delete": {"keys": []}, "forget": {"keys": [], "dry_run": True}, "undo": {"dry_run": True}, "mark": {"feed": "nightly"},
        "export": {"number": 1, "path": place / "out.csv", "force": True}, "release": {"dry_run": True},
        "withdraw": {"never_handed_out": False},
    }  # fmt: skip
    asked = [(f"Store.{name}", getattr(store, name), given) for name, given in right.items()]
    return [("Store.create", create, {}), ("Store.open", shoal.Store.open, {"url": url}), *asked]


def _named(value: Any, i: int) -> str:
    return (
        f"{type(value).__name__} {value!r:.20}" if not callable(value) and type(value) is not object else f"value {i}"
    )
