"""What pyproject.toml cannot say: built packages carry a stub with the public names.

Names are loaded when they are first used, and models are found in their folder, which no editor can follow. The stub is made
from the sources, so that a new model is in it without being written down anywhere else.
"""

from __future__ import annotations

import ast
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PACKAGE = Path(__file__).parent / "src" / "shoal"


def stub() -> str:
    """The names of `src/shoal/__init__.py` and the classes of all models, as imports that editors understand."""
    source = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    static = next(node for node in source.body if isinstance(node, ast.If))
    found = [
        (node.module, alias.name) for node in static.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    for path in sorted((PACKAGE / "models").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and any(_is_name(line) for line in node.body):
                found.append((f"shoal.models.{path.stem}", node.name))
    lines = [f"from {module} import {name} as {name}" for module, name in found]
    names = sorted(["__version__", *(name for _, name in found)])
    return "\n".join([*lines, "", "__version__: str", f"__all__ = {names!r}", ""])


def _is_name(line: ast.stmt) -> bool:
    """Whether a line of a class gives a model its name in configurations."""
    return isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == "name" and line.value is not None


class WithStub(build_py):
    """Copies the package, and writes the stub beside `__init__.py`; sources that are used in place are left alone."""

    def run(self) -> None:
        """Build, then write."""
        super().run()
        if not self.editable_mode:
            (Path(self.build_lib) / "shoal" / "__init__.pyi").write_text(stub(), encoding="utf-8")


if __name__ == "__main__":
    setup(cmdclass={"build_py": WithStub})
