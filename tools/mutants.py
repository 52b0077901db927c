"""Small mistakes that somebody could make in a source file, one at a time.

A mutant is a piece of the text replaced by another: `<` becomes `<=`, `and` becomes `or`, a constant grows by one, a statement or
an argument goes, a function returns nothing. Spared is what promises nothing: annotations, decorators, docstrings, what an error
says, `zip(strict=)` (which asserts what always holds), `copy=` and `dtype=` (which are about memory).

>>> [mutant.now for mutant in mutants_of("demo.py", "def f(a, b):\\n    return a < b")]
['return (a <= b)', 'return None']
"""

from __future__ import annotations

import ast
import hashlib
import math
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.MatMult: ast.Mult,
}  # fmt: skip
# Names of functions and methods that are easily taken for each other.
TWINS = {
    "min": "max", "minimum": "maximum", "any": "all", "floor": "ceil", "zeros": "ones", "argmin": "argmax",
    "is_null": "is_not_null", "cummin": "cummax", "first": "last", "nanmin": "nanmax",
    "logical_and": "logical_or", "removeprefix": "removesuffix",
}  # fmt: skip
TWINS |= {other: name for name, other in TWINS.items()}
SPARED_KEYWORDS = {"strict", "copy", "dtype", "description"}
# Libraries and builtins whose last positional argument can often be left out.
ROOMY = {"np", "pl", "math", "range", "round", "min", "max", "getattr", "sum", "sorted", "int", "next"}


@dataclass(frozen=True)
class Mutant:
    """One mistake: the bytes from `start` to `end` of `file` replaced by `text`."""

    file: str
    where: str
    line: int
    called: bool  # in a function, so that it does nothing before the function is called
    lines: frozenset[int]
    was: str
    now: str
    start: int = field(repr=False)
    end: int = field(repr=False)
    text: bytes = field(repr=False)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What stays the same when lines move: the file, the function, and the text before and after."""
        return self.file, self.where, self.was, self.now

    def applied(self, source: bytes) -> bytes:
        """The source with the mistake in it."""
        return source[: self.start] + self.text + source[self.end :]


def mutants_of(file: str, source: str) -> list[Mutant]:
    """Every mutant of a source file that is still Python, in the order of its lines."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found.values(), key=lambda mutant: (mutant.start, mutant.end, mutant.text))


class _Finder(ast.NodeVisitor):
    """Walks through a module and keeps what each operator proposes."""

    def __init__(self, file: str, source: str) -> None:
        self.file, self.source = file, source.encode()
        self.starts = [0]
        for row in self.source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(row))
        self.found: dict[tuple[int, int, bytes], Mutant] = {}
        self.names: list[str] = []
        self.depth = 0  # of functions: a name inside a function is told by the outermost one
        self.statement: ast.stmt | None = None
        self.assigned: set[str] = set()

    # -- what is kept

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def keep(self, node: ast.AST, text: str) -> None:
        """Keep the mutant that has `text` in the place of the node."""
        start, end = self.span(node)
        self.splice(start, end, text.encode(), node.lineno)  # type: ignore[attr-defined]

    def splice(self, start: int, end: int, text: bytes, line: int, *, sure: bool = True) -> None:
        if self.source[start:end] == text or (start, end, text) in self.found:
            return
        begin = self.source.rfind(b"\n", 0, start) + 1
        stop = self.source.find(b"\n", end)
        stop = len(self.source) if stop < 0 else stop
        before = self.source[begin:stop]
        after = self.source[begin:start] + text + self.source[end:stop]
        if not sure:
            try:
                ast.parse(self.source[:start] + text + self.source[end:])
            except SyntaxError:
                return
        where, was, now = ".".join(self.names), _flat(before), _flat(after)
        self.found[start, end, text] = Mutant(
            self.file, where, line, self.depth > 0, self._lines(), was, now, start, end, text
        )

    def _lines(self) -> frozenset[int]:
        """The lines whose execution shows that the statement was reached."""
        statement = self.statement
        if statement is None:
            return frozenset()
        last = statement.end_lineno or statement.lineno
        body = getattr(statement, "body", None)
        if isinstance(body, list) and body:
            last = max(statement.lineno, body[0].lineno - 1)
        return frozenset(range(statement.lineno, last + 1))

    def replace(self, node: ast.expr, other: ast.expr) -> None:
        self.keep(node, f"({ast.unparse(ast.fix_missing_locations(other))})")

    # -- the walk

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        outer, self.statement = self.statement, node
        self.drop(node)
        super().visit(node)
        self.statement = outer

    def drop(self, node: ast.stmt) -> None:
        """Statements that can go without a name being missed."""
        if isinstance(node, ast.Expr):
            useful = not isinstance(node.value, ast.Constant) and not isinstance(node.value, ast.Yield | ast.YieldFrom)
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            plain = all(isinstance(target, ast.Name | ast.Tuple) for target in targets)
            useful = self.depth > 0 and (not plain or isinstance(node, ast.AugAssign) or names <= self.assigned)
            self.assigned |= names
        else:
            useful = isinstance(node, ast.Raise | ast.Continue | ast.Break | ast.Delete)
        if useful:
            self.keep(node, "pass")

    def visit_function(self, node: ast.FunctionDef) -> None:
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)  # evaluated where the function is made, not in it
        outermost = self.depth == 0
        if outermost:
            self.names.append(node.name)
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            self.assigned = {argument.arg for argument in every}
        self.depth += 1
        for statement in node.body:
            self.visit(statement)
        self.depth -= 1
        if outermost:
            self.names.pop()

    visit_FunctionDef = visit_function  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if self.depth == 0:
            self.names.append(node.name)
        for statement in node.body:
            self.visit(statement)
        if self.depth == 0:
            self.names.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            if isinstance(node.target, ast.Name):
                self.assigned.add(node.target.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        alias = isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
        if self.depth == 0 and (alias or isinstance(node.value, ast.Subscript)):
            return  # a name for a type
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self.assigned |= {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """What an error says is not code; whether it comes is the statement's."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts for people (and, before Python 3.12, nodes without a place of their own)."""

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self.negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self.keep(test, "True")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.keep(node.value, "None")
        self.generic_visit(node)

    # -- expressions

    def negate(self, test: ast.expr) -> None:
        # A comparison alone is turned round by its own operator.
        if not isinstance(test, ast.Compare) or len(test.ops) > 1:
            inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
            self.replace(test, inner or ast.UnaryOp(ast.Not(), deepcopy(test)))

    def visit_Compare(self, node: ast.Compare) -> None:
        for i, operator in enumerate(node.ops):
            other = deepcopy(node)
            other.ops[i] = COMPARISONS[type(operator)]()
            self.replace(node, other)
        for side in [node.left, *node.comparators]:
            if isinstance(side, ast.Constant) and isinstance(side.value, str) and side.value:
                self.keep(side, repr(f"not {side.value}"))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = deepcopy(node)
        other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self.replace(node, other)
        for value in node.values:
            # One condition forgotten.
            self.keep(value, "True" if isinstance(node.op, ast.And) else "False")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self.replace(node, deepcopy(node.operand))
        if not isinstance(node.operand, ast.Constant):
            self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if any(isinstance(side, ast.JoinedStr) or _is_text(side) for side in (node.left, node.right)):
            self.generic_visit(node)
            return
        types = {"int", "str", "bool", "float", "list", "tuple", "dict", "set"}
        names = {side.id for side in (node.left, node.right) if isinstance(side, ast.Name)}
        if not (isinstance(node.op, ast.BitOr) and (names & types or any(name[:1].isupper() for name in names))):
            other = deepcopy(node)
            other.op = ARITHMETIC[type(node.op)]()
            self.replace(node, other)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.keep(node, repr(not value))
        elif isinstance(value, int):
            self.keep(node, str(value + 1))
        elif isinstance(value, float):
            self.keep(node, repr(value * 2 if value else 1.0))

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        if name in TWINS:
            other = deepcopy(called)
            if isinstance(other, ast.Name):
                other.id = TWINS[name]
            else:
                other.attr = TWINS[name]  # type: ignore[attr-defined]
            self.keep(called, ast.unparse(other))
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in SPARED_KEYWORDS:
                self.leave_out(keyword)
        root = called
        while isinstance(root, ast.Attribute):
            root = root.value
        if len(node.args) > 1 and isinstance(root, ast.Name) and root.id in ROOMY:
            self.leave_out(node.args[-1])
        for part in [called, *node.args, *(k.value for k in node.keywords if k.arg not in SPARED_KEYWORDS)]:
            self.visit(part)

    def leave_out(self, argument: ast.AST) -> None:
        start, end = self.span(argument)
        comma = re.match(rb"\s*,\s*", self.source[end:])
        self.splice(start, end + (comma.end() if comma else 0), b"", argument.lineno, sure=False)  # type: ignore[attr-defined]

    def visit_Subscript(self, node: ast.Subscript) -> None:
        part = node.slice
        for edge in [part.lower, part.upper, part.step] if isinstance(part, ast.Slice) else []:
            if edge is not None:
                self.keep(edge, "")
        self.generic_visit(node)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _flat(text: bytes) -> str:
    return re.sub(r"\s+", " ", text.decode()).strip()


def sampled(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Some of the mutants, each file with its share, in order.

    A mutant is drawn by its own text, so a change in one place leaves the draw everywhere else alone.
    """
    files: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        files.setdefault(mutant.file, []).append(mutant)
    found: list[Mutant] = []
    for every in files.values():
        share = min(len(every), math.ceil(count * len(every) / len(mutants)))
        found += sorted(every, key=lambda mutant: _lot(mutant, seed))[:share]
    return sorted(found, key=lambda mutant: (mutant.file, mutant.start, mutant.end, mutant.text))


def _lot(mutant: Mutant, seed: int) -> bytes:
    return hashlib.sha256(repr((seed, mutant.key)).encode()).digest()
