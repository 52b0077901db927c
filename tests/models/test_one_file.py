"""A model is one file: whatever the package offers of it follows from what the file declares."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest

import shoal
from shoal import models
from shoal.errors import ConfigError, UnsupportedError
from shoal.models import MODELS, Model
from shoal.models.parameters import OneOf, declared
from shoal.policy import Policy, json_schema

ROOT = Path(__file__).parents[2]
EXAMPLES = [example for model in MODELS.values() for example in model.examples()]
# Without forms on purpose: what compiled loops do not know has to work all the same.
STRANGER = '''
"""A model of somebody else's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from shoal.models.base import Attribute, Model, Rule, require_column
from shoal.models.column import own_values
from shoal.models.parameters import Whole


@dataclass(frozen=True)
class InCompany(Model):
    """No value stands alone in a class: it has `least` records or none."""

    least: Annotated[int, Whole("records of a value that occurs", 1)]
    attribute: Attribute = None

    name: ClassVar[str] = "in_company"
    superset_closed: ClassVar[bool] = False
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "least"

    @classmethod
    def examples(cls):
        return (cls(2),)

    def bind(self, column, n):
        column = require_column(self, column)
        return InCompanyRule(self, column, own_values(column), n)


class InCompanyRule(Rule):
    def deficit(self, sizes, counts):
        return np.where(counts > 0, np.maximum(0.0, self.model.least - counts), 0.0).sum(axis=1)

    def strongest(self, sizes, counts):
        return float(np.where(counts > 0, counts, counts.max(initial=1)).min(initial=self.n)) if len(sizes) else float("nan")
'''


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package with one file more in its folder of models."""
    (tmp_path / "in_company.py").write_text(STRANGER, encoding="utf-8")
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(tmp_path)])
    found = models._discover()["in_company"]
    monkeypatch.setitem(MODELS, "in_company", found)
    yield found
    del sys.modules["shoal.models.in_company"]


def table(n: int = 240) -> shoal.Microdata:
    random = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "age": random.integers(20, 70, n),
            "zip": [f"{a}{b}" for a, b in random.integers(0, 6, (n, 2))],
            "illness": random.choice(["flu", "cold", "ulcer", "HIV"], n, p=[0.4, 0.3, 0.2, 0.1]),
        }
    )
    roles = {"age": {"role": "quasi"}, "zip": {"role": "quasi"}, "illness": {"role": "sensitive"}}
    return shoal.Microdata.from_frame(frame, roles)


def test_one_file_is_enough(stranger: type[Model]) -> None:
    assert shoal.InCompany is stranger
    assert "InCompany" in shoal.__all__ and "InCompany" in dir(shoal)
    found = Policy.from_config({"k": 3, "in_company": {"least": 2}})
    assert str(found) == "k_anonymity(k = 3) & in_company(least = 2)"
    schema = json_schema()["properties"]["policy"]["properties"]["in_company"]
    assert schema["description"] == "No value stands alone in a class: it has `least` records or none."
    assert schema["anyOf"][0]["properties"]["least"]["minimum"] == 1
    with pytest.raises(ConfigError, match="in_company: least = 0 is not allowed; it must be a whole number at least 1"):
        Policy.from_config({"in_company": {"least": 0}})


def test_a_model_without_forms_is_refined_and_the_notes_say_how(stranger: Any) -> None:
    data, asked = table(), shoal.KAnonymity(3) & stranger(2, "illness")
    plain = shoal.anonymize(data, asked, algorithm="top_down", refine=False)
    release = shoal.anonymize(data, asked, algorithm="top_down")
    assert release.evidence.passed
    assert release.measures.ncp < plain.measures.ncp - 1e-3
    note = release.secret["notes"]["refined"]
    assert note["by"] == ["relocate", "il_optimization"]
    assert "in_company(least = 2) on illness" in note["why"]
    assert "refined" not in plain.secret["notes"]


def test_a_model_without_forms_is_refused_by_name_where_only_compiled_loops_go(stranger: Any) -> None:
    data, asked = table(60), shoal.KAnonymity(2) & stranger(2, "illness")
    with pytest.raises(UnsupportedError, match="peel cannot evaluate in_company"):
        shoal.anonymize(data, asked, algorithm="peel")


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_every_parameter_is_declared(model: type[Model]) -> None:
    assert list(declared(model)) == [field.name for field in fields(model)]
    assert all(parameter.says for parameter in declared(model).values())
    assert model.summary().endswith(".")


@pytest.mark.parametrize("model", EXAMPLES, ids=str)
def test_the_json_schema_takes_every_example(model: Model) -> None:
    jsonschema.validate({"policy": Policy((model,)).to_config()}, json_schema())
    jsonschema.validate(model.parameters(), model.schema())


VALUES: list[Any] = [
    0,
    1,
    2,
    0.0,
    0.3,
    1.0,
    1.5,
    -1,
    10**6,
    True,
    "",
    "entropy",
    "rows",
    "age",
    [],
    ["a"],
    {},
    {"a": "b"},
]


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_the_json_schema_and_the_model_refuse_the_same_values(model: type[Model]) -> None:
    refused = 0
    for name, parameter in declared(model).items():
        if isinstance(parameter, OneOf):
            continue  # the model itself checks them; test_model_parameters tries them
        for value in VALUES:
            try:
                parameter.check(model.name, name, value)
                allowed = True
            except ConfigError:
                allowed = False
            checker = jsonschema.Draft202012Validator(parameter.schema())
            # JSON has one kind of number: 1.0 is whole there, and not in Python.
            if not (isinstance(value, float) and value.is_integer()):
                assert checker.is_valid(value) == allowed, (name, value)
            refused += not allowed
    assert refused > 3


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_the_json_schema_knows_what_is_needed(model: type[Model]) -> None:
    needed = [field.name for field in fields(model) if field.default is MISSING]
    assert model.schema()["required"] == needed
    for name in needed:
        rest = {key: value for key, value in model.examples()[0].parameters().items() if key != name}
        with pytest.raises(jsonschema.ValidationError, match="required"):
            jsonschema.validate(rest, model.schema())
    with pytest.raises(jsonschema.ValidationError, match="Additional properties"):
        jsonschema.validate({**model.examples()[0].parameters(), "kk": 3}, model.schema())


def test_every_model_is_a_public_name() -> None:
    names = {model.__name__ for model in MODELS.values()}
    assert names <= set(shoal.__all__) and names <= set(dir(shoal))
    scope: dict[str, Any] = {}
    exec("from shoal import *", scope)
    assert all(scope[model.__name__] is model for model in MODELS.values())
    with pytest.raises(AttributeError, match="module 'shoal' has no attribute 'KAnonimity'"):
        _ = shoal.KAnonimity


def test_the_stub_of_a_built_package_has_every_public_name() -> None:
    text = runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["stub"]()
    scope: dict[str, Any] = {"__version__": shoal.__version__}
    exec(text, scope)
    assert scope["__all__"] == shoal.__all__
    assert all(scope[name] is getattr(shoal, name) for name in shoal.__all__)


def test_importing_shoal_loads_no_model() -> None:
    script = "import sys, shoal; assert not [name for name in sys.modules if name.startswith('shoal.models')]"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_command_writes_the_schema(tmp_path: Path) -> None:
    told = subprocess.run([sys.executable, "-m", "shoal", "schema"], capture_output=True, text=True, check=True)
    assert json.loads(told.stdout) == json.loads(json.dumps(json_schema()))
    path = tmp_path / "shoal.schema.json"
    command = [sys.executable, "-m", "shoal", "schema", "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(told.stdout)
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 2 and "--force" in again.stderr
