"""Code, pages and messages point only to what is there: pages, their sections, files, names of the package, papers."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from functools import cache
from importlib import import_module
from pathlib import Path
from tokenize import COMMENT

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "benchmarks", "docs", "examples", "tools", ".ci")
KINDS = {".py", ".md", ".toml", ".sh", ".json", ".csv", ".txt", ""}
# What programs write, and what stands in another folder than the one it is named in.
WRITTEN = ("benchmarks/out",)

# Letters and numbers of notes that are not here, put together so that this file does not hold them itself.
NOTES = {
    "a document that is not here": "(?:SP" + r"EC|DES" + r"IGN|INSI" + r"GHTS)\b",
    "an erratum by its number": r"\bE[0-4]" + r"-\d{1,2}\b",
    "a plan by its number": r"\b[FRG]\d{1,2}\b(?!\.)",
    "a paper by its number": r"(?<![\w,.])00[0-4](?:'s\b|, (?:§|[A-Z]))|\b(?:of|in|as|by|to|that|than|with) 00[0-4]\b",
}
PAGE = re.compile(r"\bdocs/[\w/-]+\.md(?:#[\w-]+)?")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"(?<![\w/.:-])(?:[\w-]+/)+[\w-]+\.(?:py|md|sh)\b|`[\w-]+\.(?:py|md|sh)`")
NAME = re.compile(r"`(shoal(?:\.\w+)+)")
PAPER = re.compile(r"[A-ZÀ-Þ][\w-]+ (?:et al\.|& [A-ZÀ-Þ][\w-]+),? \(?(?:19|20)\d\d")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def texts() -> list[Path]:
    """Every text of the repository."""
    found = [path for path in ROOT.iterdir() if path.is_file() and path.suffix in KINDS]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix in KINDS]
    hidden = ("__pycache__", ".egg-info", "/out/", "/.git")
    return sorted(path for path in found if not any(part in path.as_posix() for part in hidden))


def test_everything_points_to_what_is_there():
    found = [
        f"{path.relative_to(ROOT)}: {problem}"
        for path in texts()
        for problem in problems(path.read_text(encoding="utf-8", errors="replace"), path)
    ]
    assert not found, "\n" + "\n".join(found)


def problems(text: str, path: Path) -> list[str]:
    """What a text points to in vain; `path` says where the text stands."""
    joined = re.sub(r"\s*\n\s*(?:# )?", " ", text)
    found = [f"{what}: {match}" for what, pattern in NOTES.items() for match in _plain(pattern, text, path)]
    found += [f"no such page or section: {match}" for match in PAGE.findall(joined) if not _is_section(ROOT, match)]
    if path.suffix == ".md":
        links = [target for target in LINK.findall(FENCE.sub("", text)) if "://" not in target]
        found += [f"no such link: {target}" for target in links if not _is_section(path.parent, target, path)]
    if path.suffix in (".py", ".md"):
        files = (match.strip("`") for match in FILE.findall(_prose(text, path)) if not PAGE.match(match))
        found += [f"no such file: {name}" for name in files if not _is_file(name, path)]
        found += [f"no such name: {name}" for name in NAME.findall(joined) if not _is_name(name)]
        cited = (re.sub(r"[,(]", "", match) for match in PAPER.findall(joined))
        found += [f"no such paper in docs/papers.md: {name}" for name in cited if name not in _papers()]
    return found


def _prose(text: str, path: Path) -> str:
    """Of a program its comments, docstrings and messages; a path by itself is data, and tests make up files."""
    if path.suffix != ".py":
        return text
    comments = [token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == COMMENT]
    nodes = list(ast.walk(ast.parse(text)))
    if "tests" in path.relative_to(ROOT).parts:
        nodes = [node.value for node in nodes if isinstance(node, ast.Expr)]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return "\n".join([*comments, *(value for value in constants if isinstance(value, str) and " " in value)])


def _plain(pattern: str, text: str, path: Path) -> list[str]:
    """Matches outside of tables of data: codes of diseases and the like are no notes."""
    return [] if path.suffix in (".csv", ".json") else re.findall(pattern, text)


def _is_section(folder: Path, target: str, own: Path | None = None) -> bool:
    name, _, section = target.partition("#")
    page = folder / name if name else own
    if page is None or not page.exists():
        return False
    return not section or section in sections(page)


@cache
def sections(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    times: dict[str, int] = {}
    found = set()
    for heading in HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        again = times.get(anchor, 0)
        times[anchor] = again + 1
        found.add(f"{anchor}-{again}" if again else anchor)
    return frozenset(found)


def _is_file(name: str, path: Path) -> bool:
    """Named from the top of the repository, of the package or of the tests, or from beside the text."""
    if name.startswith(WRITTEN):
        return True
    places = (ROOT, ROOT / "src" / "shoal", ROOT / "tests", ROOT / "docs", path.parent)
    return any((place / name).exists() for place in places)


@cache
def _is_name(dotted: str) -> bool:
    """A module of the package, or something in one."""
    if dotted in ("shoal.toml", "shoal.schema.json"):
        return True
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@cache
def _papers() -> str:
    return (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


PLANTED = [
    ("see SP" + "EC §4.2", "a document that is not here"),
    ("(DES" + "IGN §6)", "a document that is not here"),
    ("as E0" + "-9 says", "an erratum by its number"),
    ("with repair R" + "1 on", "a plan by its number"),
    ("(00" + "4, §3)", "a paper by its number"),
    ("as in 00" + "2 before", "a paper by its number"),
    ("00" + "3's tools", "a paper by its number"),
    ("docs/nowhere" + ".md", "no such page or section"),
    ("docs/models.md" + "#k_anonymous", "no such page or section"),
    ("[here](nowhere" + ".md)", "no such link"),
    ("[here](#now" + "here)", "no such link"),
    ("kernels/now" + "here.py", "no such file"),
    ("`now" + "here.py`", "no such file"),
    ("`shoal.measures." + "nothing`", "no such name"),
    ("Nobody " + "& Noone 1999", "no such paper"),
    ("Nobody " + "et al. (1999)", "no such paper"),
]


@pytest.mark.parametrize(("text", "what"), PLANTED)
def test_what_is_not_there_is_found(text, what):
    found = problems(text, ROOT / "docs" / "page.md")
    assert len(found) == 1
    assert found[0].startswith(what)


@pytest.mark.parametrize(
    "text",
    [
        "docs/models.md#k_anonymity",
        "`shoal reproduce 004`",
        "10,004 records, 0.001 and paper_002",
        "[models](models.md#closure)",
        "kernels/rules.py and `tests/reference/pk.py`",
        "`shoal.measures.bounds.loss_bound` and `shoal.anonymize(data)`",
        "Truta & Campan 2007; Wong et al. (2006)",
        "Sarrafi\n    Aghdam & Sonehara 2013",
    ],
)
def test_what_is_there_is_let_be(text):
    assert problems(text, ROOT / "docs" / "page.md") == []


def test_anchors_are_those_of_github(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One & two\n```\n# no heading\n```\n## `p_sensitive`, (k, p)\n## Again\n## Again\n")
    assert sections(page) == {"one--two", "p_sensitive-k-p", "again", "again-1"}
