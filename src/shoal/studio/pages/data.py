"""*Data*: what is in each column?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from shoal.errors import InputError, ShoalError
from shoal.schema import Role
from shoal.studio.jobs import Job, waited
from shoal.studio.project import edited
from shoal.studio.studio import TASKS, Action, Form, Studio

SHOWN = 100
"""Columns on a page; of a table with more, the rest is on further pages."""


def view(studio: Studio, query: Mapping[str, str]) -> dict[str, Any]:
    """The columns with facts, suggestions and consequences; or how far opening the table is."""
    project = studio.project
    opening = studio.jobs.of("open")
    told: dict[str, Any] = {"begun": project.begun, "opening": opening.to_dict() if opening and opening.open else None}
    told["failed"] = opening.sentence if opening is not None and opening.state == "failed" else ""
    if not project.begun or told["opening"]:
        return told
    looked = studio.answer("looked", "data:looked", {"config": None})
    meant = studio.answer("consequences", "data:consequences")
    told |= {"source": project.source, "looking": looked.to_dict(), "weighing": meant.to_dict()}
    found = looked.shown
    if found is None:
        return told
    attributes = project.configuration.schema.resolve([column["name"] for column in found["columns"]]).attributes
    columns = [{**column, **_now(column, attributes[column["name"]], meant.shown)} for column in found["columns"]]
    page, first = _page(query.get("page", "1"), len(columns))
    roles = [column["role"] for column in columns]
    return told | {
        "records": found["records"],
        "persons": meant.shown["records"] if meant.shown and meant.shown["persons"] else None,
        "notes": found["notes"],
        "columns": columns[first : first + SHOWN],
        "all_columns": len(columns),
        "page": page,
        "pages": -(-len(columns) // SHOWN),
        "counts": {role: roles.count(role) for role in get_args(Role)},
        "decide": sum(bool(column["warning"]) and not column["accepted"] for column in columns),
        "refused": sum(column["refused"] for column in columns),
        "alone": meant.shown,
        "person": next((column["name"] for column in columns if column["role"] == "person"), None),
        "keys": [column["name"] for column in columns if _may_be_key(column, found["records"])][:SHOWN],
        "codes": _codes(columns),
        "candidates": len(project.candidates()),
    }


def _now(column: Mapping[str, Any], attribute: Any, meant: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is declared about a column, and what is wrong with that."""
    findings = [one for one in (meant or {}).get("findings", []) if one["column"] == column["name"]]
    return {
        "suggested": column["role"],
        "role": attribute.role,
        "warning": " ".join(one["detail"] for one in findings),
        "refused": any(one["refused"] for one in findings),
        "accepted": attribute.accept or "",
        "missing_codes": attribute.missing if attribute.missing is not None else [],
    }


def _may_be_key(column: Mapping[str, Any], records: int) -> bool:
    """Whether a column may say whose each row is: a person's key repeats, and is not the same for half the table."""
    if column["role"] == "person" or column["suggested"] == "person":
        return True
    return bool(column["suggested"] == "identifier" and 1 < column["distinct"] < records)


def _codes(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Columns in which some numbers seem to mean: no value."""
    found = []
    for column in columns:
        codes = column["reading"].get("missing", [])
        if codes and column["role"] in ("quasi", "sensitive", "other"):
            named = [str(one) for one in codes]
            found.append(
                {
                    "column": column["name"],
                    "codes": named,
                    "why": column["reading_why"],
                    "taken": bool(column["missing_codes"]),
                }
            )
    return found


def _page(asked: str, columns: int) -> tuple[int, int]:
    last = max(1, -(-columns // SHOWN))
    page = min(max(1, int(asked)), last) if asked.isdigit() and len(asked) < 9 else 1
    return page, (page - 1) * SHOWN


def _open(studio: Studio, task: str, arguments: Mapping[str, Any]) -> None:
    opening = studio.jobs.of("open")
    if opening is not None and opening.open:
        raise InputError("A table is being opened already; wait for it, or stop it.")
    studio.project.put_away()

    def ended(job: Job, state: str) -> None:
        # What was seen while it was opened need not be looked for again.
        if state == "done" and "columns" in job.result:
            studio.desk.put("looked", TASKS + "data:looked", {**studio.project.asked, "config": None}, job.result)

    studio.start("open", task, arguments, ended=ended)


def upload(studio: Studio, form: Form) -> None:
    """A file that came in."""
    if form.file is None:
        raise InputError("No file was sent; choose one, and send it again.")
    _open(studio, "data:opened", {"path": f"data/{form.file.name}"})


def made_up(studio: Studio, form: Form) -> None:
    """The made-up hospital."""
    _open(studio, "data:made_up", {})


def database(studio: Studio, form: Form) -> None:
    """A table of a database."""
    url, table = form("url").strip(), form("table").strip()
    if not url or not table:
        raise InputError("A database needs its address, such as sqlite:///registry.db, and the name of a table.")
    _open(studio, "data:opened", {"url": url, "table": table})


def open_file(studio: Studio, path: Path) -> None:
    """A file on this machine, named on the command line; it stays where it is."""
    from shoal.configured import relative

    _open(studio, "data:opened", {"path": relative(path, studio.project.folder)})


def roles(studio: Studio, form: Form) -> None:
    """Other roles for columns: fields `role:COLUMN`."""
    wanted = {name.partition(":")[2]: values[-1] for name, values in form.fields.items() if name.startswith("role:")}
    attributes = studio.project.configuration.config.attributes
    rest = attributes.get("*")
    changed = {}
    for name, role in wanted.items():
        if role not in get_args(Role):
            raise InputError("A column is left out, known to others, secret, as it is, or says whose a row is.")
        now = attributes.get(name, rest)
        if now is None or now.role != role:
            changed[name] = role
    if changed:
        _declare(studio, changed, alone=False)


def person(studio: Studio, form: Form) -> None:
    """Whose each row is: a column, or nobody's but its own."""
    column = form("person", "")
    attributes = studio.project.configuration.config.attributes
    if column:
        _declare(studio, {column: "person"}, alone=False)
        return
    keys = {name: "identifier" for name, one in attributes.items() if one.role == "person"}
    if keys:
        _declare(studio, keys, alone=True)


def _declare(studio: Studio, changed: Mapping[str, str], *, alone: bool) -> None:
    answer = waited(studio.answer("declared", "data:declared", {"roles": changed, "alone": alone}, wait=5), 600)
    if answer.state == "failed":
        studio.desk.forget("declared")
        raise ShoalError(answer.sentence)
    if answer.state == "ready":
        studio.project.write(answer.value)


def accept(studio: Studio, form: Form) -> None:
    """A dangerous column is accepted by hand, with the reason that the manifest shows; an empty reason takes it back."""
    column, reason = form("column"), form("reason", "").strip()
    studio.project.write(edited(studio.project.text, {("attributes", column, "accept"): reason or None}))


def codes(studio: Studio, form: Form) -> None:
    """Whether some numbers of a column mean: no value."""
    column, taken = form("column"), form("taken", "")
    looked = studio.answer("looked", "data:looked", {"config": None}, wait=5).shown or {"columns": []}
    suggested = next((one["reading"].get("missing") for one in looked["columns"] if one["name"] == column), None)
    if suggested is None:
        raise InputError("There is no such column in the table; open the page again.")
    studio.project.write(edited(studio.project.text, {("attributes", column, "missing"): suggested if taken else None}))


def retry(studio: Studio, form: Form) -> None:
    """Look again."""
    for name in ("looked", "consequences", "declared"):
        studio.desk.forget(name)


def undo(studio: Studio, form: Form) -> str | None:
    """Take the last change of the configuration back."""
    studio.project.undo()
    return None


ACTIONS: dict[str, Action] = {
    "upload": upload,
    "made-up": made_up,
    "database": database,
    "roles": roles,
    "person": person,
    "accept": accept,
    "codes": codes,
    "retry": retry,
    "undo": undo,
}
