"""*Taxonomies*: how may values be made coarser?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import InputError, ShoalError, require_word
from shoal.io.atomic import atomic_write_text
from shoal.studio.jobs import waited
from shoal.studio.project import Project, edited
from shoal.studio.studio import Action, Form, Studio
from shoal.studio.trees import CHANGES

RULES = ("none", "auto", "prefix", "intervals", "dates")


def view(studio: Studio, query: Mapping[str, str]) -> dict[str, Any]:
    """The columns that others may know or that are secret, one of them picked, with its tree."""
    project = studio.project
    told: dict[str, Any] = {"begun": project.begun}
    if not project.begun:
        return told
    attributes = project.configuration.config.attributes
    columns: list[dict[str, Any]] = [
        {"name": name, "role": one.role, "kind": one.kind, "rule": _rule(one.taxonomy)}
        for name, one in attributes.items()
        if one.role in ("quasi", "sensitive") and name != "*"
    ]
    told |= {"source": project.source, "columns": columns, "rules": list(RULES)}
    if not columns:
        return told
    asked = query.get("column", "")
    picked = next((one for one in columns if one["name"] == asked), None) or next(
        (one for one in columns if one["rule"] in ("file", "rows")), columns[0]
    )
    told |= {"column": picked["name"], "rule": picked["rule"], "given": _given(attributes[picked["name"]].taxonomy)}
    if picked["rule"] != "none":
        found = studio.answer("tree", "taxonomies:shown", {"column": picked["name"], "open": query.get("open", "")})
        told |= {"looking": found.to_dict(), "tree": found.value, "opened": query.get("open", "")}
    return told


def _rule(taxonomy: Any) -> str:
    """Where a column's taxonomy comes from: none, auto, file, or the rule that makes it."""
    if taxonomy is None:
        return "none"
    if isinstance(taxonomy, str):
        return "auto" if taxonomy == "auto" else "file"
    return next(iter(taxonomy.model_fields_set), "rows")


def _given(taxonomy: Any) -> str:
    """What a rule was given, as a field shows it; of a file its name."""
    if taxonomy is None or taxonomy == "auto":
        return ""
    if isinstance(taxonomy, str):
        return Path(taxonomy).name
    name = _rule(taxonomy)
    return ", ".join(str(one) for one in getattr(taxonomy, name)) if name in RULES else ""


def rule(studio: Studio, form: Form) -> str:
    """Another rule for a column: none, automatic, or prefixes, intervals and dates with what they are given."""
    column, chosen = _column(studio, form), form("rule")
    if chosen not in RULES and chosen == _rule(studio.project.configuration.config.attributes[column].taxonomy):
        return _address(column)  # a tree of its own stays what it is
    words = [word.strip() for word in form(f"given-{chosen}", "").split(",") if word.strip()]
    require_word("rule", chosen, RULES)
    taxonomy: Any = {"none": None, "auto": "auto"}.get(chosen, {chosen: words})
    if chosen in ("prefix", "intervals"):
        try:
            taxonomy = {chosen: [int(word) if chosen == "prefix" else float(word) for word in words]}
        except ValueError:
            raise InputError("Numbers are wanted there, separated by commas, such as 5, 10, 20.") from None
    _write(studio.project, column, taxonomy)
    return _address(column)


def change(studio: Studio, form: Form) -> str:
    """Rename, move, group or split what was marked; the tree becomes a file of the project."""
    column, wanted = _column(studio, form), form("change")
    require_word("change", wanted, (*CHANGES, "export"))
    to = form("into", "") if wanted == "move" else form("label", "")
    _keep(studio, column, {"change": wanted, "nodes": form.all("node"), "to": to})
    return _address(column)


def load(studio: Studio, form: Form) -> str:
    """A taxonomy from a file: leaf;…;root, one line a value."""
    if form.file is None:
        raise InputError("No file was sent; choose one, and send it again.")
    column = _column(studio, form)
    found = _asked(studio, "taxonomies:imported", {"column": column, "path": f"data/{form.file.name}"})
    form.file.unlink(missing_ok=True)
    _file(studio.project, column, found["text"])
    return _address(column)


def undo(studio: Studio, form: Form) -> str:
    """Take the last change back: the tree before it is still a file."""
    studio.project.undo()
    return _address(_column(studio, form))


def _column(studio: Studio, form: Form) -> str:
    column = form("column")
    found = studio.project.configuration.config.attributes.get(column)
    if found is None or found.role not in ("quasi", "sensitive"):
        raise InputError("There is no such column that others may know or that is secret; open the page again.")
    return column


def _address(column: str) -> str:
    from urllib.parse import quote

    return f"/taxonomies?column={quote(column, safe='')}"


def _asked(studio: Studio, task: str, arguments: Mapping[str, Any]) -> Any:
    answer = waited(studio.answer("changed", task, arguments, wait=5), 600)
    studio.desk.forget("changed")
    if answer.state == "failed":
        raise ShoalError(answer.sentence)
    return answer.value


def _keep(studio: Studio, column: str, arguments: Mapping[str, Any]) -> None:
    _file(studio.project, column, _asked(studio, "taxonomies:edited", {"column": column, **arguments}))


def _file(project: Project, column: str, text: str) -> None:
    """Write a tree beside the earlier ones of its column, so that a change can be taken back, and name it."""
    project.taxonomies.mkdir(exist_ok=True, mode=0o700)
    stem = re.sub(r"[^\w.-]+", "_", column).strip("._") or "column"
    taken = {path.name.casefold() for path in project.taxonomies.iterdir()}
    names = (f"{stem}.csv" if number == 1 else f"{stem}-{number}.csv" for number in range(1, 100_000))
    name = next(name for name in names if name.casefold() not in taken)
    atomic_write_text(project.taxonomies / name, text)
    (project.taxonomies / name).chmod(0o600)
    _write(project, column, f"taxonomies/{name}")


def _write(project: Project, column: str, taxonomy: Any) -> None:
    project.write(edited(project.text, {("attributes", column, "taxonomy"): taxonomy}))


ACTIONS: dict[str, Action] = {"rule": rule, "change": change, "import": load, "undo": undo}
