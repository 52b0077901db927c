"""The pages, a file each, in the order of the road. A page that has a file here is there; nothing else lists it.

A page is a module with

- `view(studio, query) -> dict`: plain values, which are its JSON twin at `/NAME.json` and what `templates/NAME.html` draws as
  `page`;
- `ACTIONS`: functions `(studio, form) -> str | None` by name, reached by POST at `/NAME/ACTION`. They change the project's
  folder or begin a job, and return the address to go to, or None for the page itself. A `ShoalError` is shown as its sentence.

Both run in a thread of their own. Neither works on the table: what needs it is a task (`studio.answer`, `studio.start`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

ROAD = ("data", "taxonomies", "policy", "run", "compare", "release", "evolve")


@cache
def pages() -> dict[str, ModuleType]:
    """The pages there are, in the order of the road."""
    there = [name for name in ROAD if find_spec(f"shoal.studio.pages.{name}")]
    return {name: import_module(f"shoal.studio.pages.{name}") for name in there}
