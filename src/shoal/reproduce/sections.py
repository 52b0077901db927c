"""The parts of a reproduction's page: one paper with its experiments, lines, figures and readings, and what papers wish for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shoal.report.icons import icon
from shoal.report.markup import Html, element, joined
from shoal.reproduce.experiments import Book, Experiment, Judged, Paper
from shoal.reproduce.figures import Figure, inline
from shoal.reproduce.verdicts import Rows, Value, told

# A verdict's shape and colour; a word always stands beside them.
LOOKS = {
    "equal": ("ok", "holds"),
    "within spread": ("ok", "holds"),
    "qualitatively": ("half", "holds"),
    "not reproduced": ("warn", "caution"),
}
HOLD = ("equal", "within spread", "qualitatively")


def paper_section(paper: Paper, lines: Sequence[Judged], book: Book, quick: bool) -> Html:
    """A paper: what it is, both readings where there are two, its experiments one by one, and what has no line."""
    name, _, about = paper.title.partition(": ")
    parts = [
        element("p", f"{paper.cited}."),
        element("p", f"{about[0].upper()}{about[1:]}: {tally(lines)}."),
        *_readings(paper, lines),
    ]
    first = 1
    for experiment in paper.experiments:
        mine = [one for one in lines if one.line.experiment == experiment.name]
        parts += _experiment(paper, experiment, list(enumerate(mine, first)), book.of(experiment, quick))
        first += len(mine)
    if paper.without:
        without = [element("li", f"{what}: {why}.") for what, why in paper.without]
        parts += [element("h3", "Without a line"), element("ul", *without)]
    heading = element("h2", f"{paper.number} · {name}", id=f"p{paper.number}")
    return element("section", heading, element("div", *parts, class_="body"), class_="paper")


def tally(lines: Sequence[Judged]) -> str:
    """How many lines came out how, in words."""
    counts = Counter(str(one.verdict) for one in lines)
    tested = sum(counts[kind] for kind in LOOKS)
    held = ", ".join(f"{counts[kind]} {kind}" for kind in HOLD if counts[kind])
    rest = f"; {counts['no claim']} more are no claim" if counts["no claim"] else ""
    return (
        f"of {tested} statements and numbers tested {held or 'none'}, {counts['not reproduced']} not reproduced{rest}"
    )


def _experiment(paper: Paper, one: Experiment, lines: Sequence[tuple[int, Judged]], rows: Rows) -> list[Html]:
    """Its settings, its lines, and its figures with their numbers."""
    seeds = len({row["seed"] for row in rows if "seed" in row})
    counted = f"{len(rows):,} runs" + (f", {seeds} seeds" if seeds > 1 else "")
    file = element("a", f"{one.name}.csv", href=f"{one.name}.csv")
    parts = [
        element("h3", one.name, id=one.name),
        element("p", f"{one.setting[0].upper()}{one.setting[1:]}. ", f"{counted}: ", file, ".", class_="note"),
    ]
    if lines:
        parts.append(_lines(paper, lines))
    for figure in paper.figures:
        if figure.experiment == one.name and figure.points(rows):
            parts.append(_figure(figure, rows))
    return parts


def _lines(paper: Paper, lines: Sequence[tuple[int, Judged]]) -> Html:
    rows = []
    for i, one in lines:
        line = one.line
        name = f"{paper.number}.{i}"
        tested = f"{line.claim.says}{f'; {line.note}' if line.note else ''}"
        what = element(
            "td",
            element("a", name, href=f"#L{name}", class_="num"),
            " ",
            element("b", f"{line.about}: "),
            line.what,
            element("div", tested, class_="note"),
            id=f"L{name}",
        )
        rows.append(
            element(
                "tr",
                what,
                element("td", line.printed, data_l="paper"),
                element("td", one.ours, data_l="here"),
                element("td", verdict(one.verdict), data_l="verdict"),
            )
        )
    return _table(("what, and what was tested", "paper", "here", "verdict"), rows, "lines stack")


def verdict(word: str) -> Html:
    """A verdict with its shape, where it has one."""
    if word not in LOOKS:
        return element("span", word)
    shape, colour = LOOKS[word]
    return element("span", icon(shape), word, class_=f"tag v-{colour}")


def _figure(figure: Figure, rows: Rows) -> Html:
    files = joined(
        [element("a", "SVG", href=f"{figure.name}.svg"), element("a", "CSV", href=f"{figure.experiment}.csv")], " · "
    )
    caption = element("figcaption", f"{figure.title} ", element("span", files, class_="note"))
    drawing = element(
        "div", inline(figure, rows), class_="scroll", tabindex="0", role="region", aria_label=figure.title
    )
    numbers = element("details", element("summary", "The numbers of this figure"), _numbers(figure, rows))
    return element("figure", caption, drawing, numbers)


def _numbers(figure: Figure, rows: Rows) -> Html:
    """What is drawn, with standard deviations, and what the paper prints, a row for every setting."""
    points = {(point["series"], point["at"]): point for point in figure.points(rows)}
    printed = {(point["series"], point["at"]): point["mean"] for point in figure.printed()}
    series = [one.name for one in figure.series]
    places = list(dict.fromkeys(at for _, at in points))

    def cell(name: str, at: Value) -> Html:
        point = points.get((name, at))
        if point is None:
            return element("td", class_="num", data_l=name)
        off, paper = point["high"] - point["mean"], printed.get((name, at))
        here = told(point["mean"]) + (f" ± {told(float(f'{off:.2g}'))}" if off > 0 else "")
        beside = None if paper is None else element("span", f"paper: {paper:g}", class_="sub")
        return element("td", element("span", here, beside), class_="num", data_l=name)

    def place(at: Value) -> str:
        return f"{100 * float(at):g} %" if figure.shares else told(at) if isinstance(at, float) else f"{at}"

    body = [
        element(
            "tr",
            element("th", place(at), scope="row"),
            *(cell(name, at) for name in series),
        )
        for at in places
    ]
    return _table((figure.x or figure.by, *series), body, "numbers tight stack", numbers=True)


def _table(heads: Sequence[str], rows: Sequence[Html], looks: str, numbers: bool = False) -> Html:
    cells = [element("th", text, scope="col", class_="num" if numbers and i else None) for i, text in enumerate(heads)]
    return element("table", element("thead", element("tr", *cells)), element("tbody", *rows), class_=looks)


def _readings(paper: Paper, lines: Sequence[Judged]) -> list[Html]:
    """Statements that were tested under two readings, both beside each other, and how many hold under which."""
    said: dict[str, dict[str, str]] = {}
    for one in lines:
        if one.line.beside is not None:
            statement, reading = one.line.beside
            said.setdefault(statement, {})[reading] = one.verdict
    if not said:
        return []
    names = list(dict.fromkeys(reading for found in said.values() for reading in found))
    counts = Counter(tuple(name for name in names if found.get(name) in HOLD) for found in said.values())
    first, second = names
    words = (
        f"{paper.readings} Of {len(said)} statements {counts[(first, second)]} hold under both, {counts[(first,)]} with {first} "
        f"alone, {counts[(second,)]} with {second} alone, and {counts[()]} under neither."
    )
    rows = [
        element(
            "tr",
            element("th", statement, scope="row"),
            *(element("td", verdict(found.get(name, "not run")), data_l=name) for name in names),
        )
        for statement, found in said.items()
    ]
    return [
        element("h3", "Both readings beside each other", id=f"r{paper.number}"),
        element("p", words),
        _table(("statement", *names), rows, "beside stack"),
    ]


def wishes_section(papers: Sequence[Paper], other: Sequence[tuple[str, str, str]], book: Book, quick: bool) -> Html:
    """Each wish for future work, where it is, and what it gives; and what is only named."""
    found: list[tuple[str, str, str, str]] = []
    for paper in papers:
        by_name = {one.name: one for one in paper.experiments}
        for one in paper.wishes:
            rows = book.of(by_name[one.experiment], quick) if one.experiment else []
            found.append((paper.number, one.wish, f"docs/{one.where}", one.gives(rows)))
    found += [("002", *one) for one in other]
    heads = ("paper", "wish", "where it is", "what it gives")
    lines = [
        element("tr", *(element("td", cell, data_l=head) for head, cell in zip(heads, cells, strict=True)))
        for cells in found
    ]
    return element(
        "section",
        element("h2", "What they wish for"),
        element("div", _table(heads, lines, "wishes stack"), class_="body"),
        class_="paper",
    )
