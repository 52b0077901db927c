"""Every public name teaches: what each parameter is, its default, what comes back, and an example that runs.

Public are the names of `shoal.__all__` with their methods, what the modules of `shoal.measures` list, the verifier, the
data sets, and reading and writing tables. New names are found by themselves.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

import shoal
import shoal.datasets
import shoal.io
import shoal.measures
import shoal.verifier

# Modules of shoal.measures that are there for the others.
INNER = {"apart", "certificate_apart", "boxes", "regions", "conditions", "folding", "seen", "glimpses"}


class Name(NamedTuple):
    """A public function, class or method; `owner` is the class of a method."""

    label: str
    what: Any
    owner: type | None = None

    @property
    def text(self) -> str:
        """Its docstring, with those of what it inherits from and of methods it overrides: they explain what is common."""
        if not self.what.__doc__:
            return ""
        explained = [self.what]
        if self.owner is not None:
            methods = [vars(base).get(self.what.__name__) for base in self.owner.__mro__]
            explained = [_plain(method) for method in methods if method is not None]
        elif inspect.isclass(self.what):
            explained = [base for base in self.what.__mro__ if base.__module__.startswith("shoal")]
        fields = [text for one in explained if inspect.isclass(one) for text in _explained_fields(one)]
        return "\n".join([*(inspect.cleandoc(one.__doc__ or "") for one in explained), *fields])

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What it takes, except the object itself."""
        try:
            found = inspect.signature(self.what).parameters
        except (TypeError, ValueError):
            return {}
        own = {name: one for name, one in found.items() if name not in ("self", "cls", "args", "kwargs")}
        return {name: one for name, one in own.items() if not name.startswith("_")}


def public() -> Iterator[Name]:
    """Everything a user may call."""
    packages = {
        "shoal": shoal.__all__,
        "shoal.verifier": shoal.verifier.__all__,
        "shoal.datasets": shoal.datasets.__all__,
        "shoal.io": [name for name in shoal.io.__all__ if name.startswith(("read_", "write_"))],
    }
    for module in pkgutil.iter_modules(shoal.measures.__path__):
        if module.name not in INNER:
            home = f"shoal.measures.{module.name}"
            packages[home] = import_module(home).__all__
    seen = set()
    for home, names in packages.items():
        for name in names:
            what = getattr(import_module(home), name)
            if callable(what) and id(what) not in seen:
                seen.add(id(what))
                yield Name(f"{home}.{name}", what)
                if inspect.isclass(what):
                    yield from _methods(f"{home}.{name}", what)


def _methods(label: str, owner: type) -> Iterator[Name]:
    for name, method in vars(owner).items():
        if not name.startswith("_") and inspect.isfunction(_plain(method)):
            yield Name(f"{label}.{name}", _plain(method), owner)


def _explained_fields(owner: type) -> Iterator[str]:
    """Fields with a sentence of their own below them."""
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0].body
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            shown = ast.unparse(field.value).replace("'", '"') if field.value is not None else ""
            yield f"`{ast.unparse(field.target)}`: {text.value.value} {shown}"


def _plain(method: Any) -> Any:
    return method.__func__ if isinstance(method, classmethod | staticmethod) else method


NAMES = list(public())


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.label)
def test_teaches(name):
    assert lacks(name) == []


def lacks(name: Name) -> list[str]:
    """What a docstring leaves out."""
    text = name.text
    if not text:
        return ["no docstring"]
    found = [f"parameter `{one}` is not explained" for one in name.parameters if f"`{one}`" not in text]
    for one, parameter in name.parameters.items():
        shown = _shown(parameter.default)
        if shown and shown not in text:
            found.append(f"the default {shown} of `{one}` is not said")
    if not inspect.isclass(name.what) and name.parameters and _gives(name.what) and "eturns" not in text:
        found.append("what it returns is not said")
    if not _example(name):
        found.append("no example shows it")
    return found


def _shown(default: Any) -> str:
    """A default as it has to be written; those that go without saying are empty."""
    if isinstance(default, str) and default:
        return f'"{default}"'
    return repr(default) if isinstance(default, int | float) and not isinstance(default, bool) else ""


def _gives(function: Any) -> bool:
    return inspect.signature(function).return_annotation not in (None, "None")


def _example(name: Name) -> bool:
    """Whether a line of an example calls it: its own, or for a method one of its class, their modules included."""
    called = name.label.rpartition(".")[2] + ("" if inspect.isclass(name.what) else "(")
    if name.owner is not None:
        called = f".{called}"
    places = [name.what, inspect.getmodule(name.what)]
    if name.owner is not None:
        contract = any(name.what.__name__ in vars(base) for base in name.owner.__mro__[1:])
        places += [*(name.owner.__mro__[:-1] if contract else [name.owner])]
        places += [inspect.getmodule(base) for base in name.owner.__mro__[:-1]] if contract else []
    parser = doctest.DocTestParser()
    sources = (
        example.source for place in places for example in parser.get_examples(getattr(place, "__doc__", "") or "")
    )
    is_error = inspect.isclass(name.what) and issubclass(name.what, Exception)
    return any(called in source for source in sources) or (is_error and ">>>" in name.text)


class Planted:
    """Nothing to see."""

    def method(self, one: int, other: str = "two") -> int:
        """Takes `one`."""
        return one

    @cached_property
    def told(self) -> int:
        """Properties need a sentence and no more."""
        return 1


def test_what_a_docstring_leaves_out_is_found():
    assert lacks(Name("planted.Planted.method", Planted.method, Planted)) == [
        "parameter `other` is not explained",
        'the default "two" of `other` is not said',
        "what it returns is not said",
        "no example shows it",
    ]
    assert [name.label for name in _methods("planted", Planted)] == ["planted.method"]


def test_models_and_functions_are_among_the_names():
    labels = {name.label for name in NAMES}
    assert {"shoal.KAnonymity", "shoal.anonymize", "shoal.Store.insert", "shoal.measures.risk.dankar"} <= labels
