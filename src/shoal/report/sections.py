"""The evidence behind the first half page, section by section."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.declaration import ALONE
from shoal.report.charts import Bin, bar, line_chart, size_bins, sizes_chart, stack
from shoal.report.findings import Findings
from shoal.report.icons import icon, role
from shoal.report.levels import EXACT, HIDDEN, MISSING, Shown
from shoal.report.markup import (
    Html,
    at_least,
    counted,
    element,
    escaped,
    joined,
    named,
    number,
    percent,
    plain,
    shown,
)
from shoal.report.published import Tightest
from shoal.report.words import model_of, promise, rule
from shoal.schema import Role
from shoal.verifier import Check, Violation

TAG = {"stopped": ("holds", "ok"), "limited": ("caution", "half"), "open": ("fails", "warn")}


def section(name: str, title: str, *body: object, kind: str | None = None) -> Html:
    """A heading in the gutter, and what is under it."""
    inside = element("div", *body, class_="body" if kind is None else f"body {kind}")
    return element("section", element("h2", title, id=name), inside, aria_labelledby=name)


def table(headers: Sequence[object], rows: Sequence[Html], kind: str = "stack", caption: object = None) -> Html:
    """A table whose first column names its rows. A header that begins with # is of numbers."""
    heads = [
        element("th", str(head).lstrip("#"), scope="col", class_="num" if str(head).startswith("#") else None)
        for head in headers
    ]
    title = element("caption", caption) if caption is not None else None
    return element("table", title, element("thead", element("tr", *heads)), element("tbody", *rows), class_=kind)


def row(first: object, *cells: Html) -> Html:
    """A row of a table."""
    return element("tr", element("th", first, scope="row"), *cells)


def cell(content: object, *, label: str | None = None, numeric: bool = False, kind: str | None = None) -> Html:
    """A cell; its label names it where the table is stacked."""
    classes = " ".join(word for word in ("num" if numeric else "", kind or "") if word) or None
    return element("td", element("span", content) if label and numeric else content, class_=classes, data_l=label)


def pair(*bars: tuple[float, str, str]) -> Html:
    """Bars with their numbers beside them: the share, its colour, the text."""
    return element(
        "div",
        *(piece for share, kind, text in bars for piece in (bar(share, kind), element("span", text))),
        class_="pair",
    )


def details(summary: str, content: Html) -> Html:
    """What only some will open."""
    inside = element("div", content, class_="scroll", tabindex="0", role="region", aria_label=summary)
    return element("details", element("summary", summary), inside)


def intruder(found: Findings) -> Html:
    """What somebody with a list could do, before and after."""
    of = found.published
    body: list[object] = []
    if found.intruders:
        rows = []
        for one in found.intruders:
            knows = joined([named(one.knows, 6), element("span", one.source, class_="sub")])
            bars = pair(
                (one.right_before / one.persons, "before", number(one.right_before, 0)),
                (one.right / one.persons, "after", number(one.right, 0)),
            )
            rows.append(
                row(
                    knows,
                    cell(bars),
                    cell(
                        _arrow(f"{one.certain_before:,}", f"{one.certain:,}"), label="found for certain", numeric=True
                    ),
                    cell(
                        _arrow(number(one.median_before), number(one.median)), label="candidates, median", numeric=True
                    ),
                )
            )
        persons = found.intruders[0].persons
        caption = joined([f"Right guesses to expect among {persons:,} {of.many}: ", _key(found)])
        body.append(
            table(
                ["The intruder knows", "right guesses", "#found for certain", "#candidates, median"],
                rows,
                "stack intr",
                caption,
            )
        )
    else:
        body.append(_knowing(found))
    body += _class_sizes(found)
    return section("intruder", "What an intruder could do", *body)


def _arrow(before: str, after: str) -> Html:
    return joined([f"{before} → ", element("b", after)])


def _key(found: Findings) -> Html:
    square = element("span", "■ ", aria_hidden="true")
    release = element("span", square, "release", class_="t-after")
    if not found.for_owner:
        return release
    return joined([element("span", square, "original", class_="t-before"), " ", release])


def _knowing(found: Findings) -> Html:
    """Without the original: how many records are left to whoever knows some columns."""
    from shoal.report.original import knowledge

    of, rows = found.published, []
    for names, source in knowledge(of.schema.named("quasi")):
        left = of.left_to(names)
        rows.append(
            row(
                joined([named(names, 6), element("span", source, class_="sub")]),
                cell(f"{left.smallest:,}", label="candidates, at least", numeric=True),
                cell(number(left.median), label="candidates, median", numeric=True),
            )
        )
    return table(["The intruder knows", "#candidates, at least", "#candidates, median"], rows, "stack intr")


def _class_sizes(found: Findings) -> list[Html]:
    of = found.published
    before = found.original.sizes if found.original is not None else None
    bins = size_bins(of.sizes, before)
    together = f"In the release every {of.one} is in a class of at least {of.sizes.smallest:,}."
    single = ""
    if before is not None:
        single = f"In the original {before.alone:,} of {before.records:,} {of.many} are alone. "
    told = f"{single}{together} Classes have {of.sizes.smallest:,} to {of.sizes.largest:,} {of.many}."
    chart = sizes_chart(bins, of.many, f"How many {of.many} look the same", told)
    caption = joined([f"{of.many.capitalize()} by the size of their class: ", _key(found)])
    figure = element("figure", element("figcaption", caption), chart)
    return [figure, details("Class sizes as a table", _sizes_table(bins, of.many))]


def _sizes_table(bins: Sequence[Bin], many: str) -> Html:
    owner = bins[0].before is not None
    heads = ["Class size", *([f"#{many}, original"] if owner else []), f"#{many}, release", "#classes, release"]
    rows = [
        row(
            one.label,
            *([cell(f"{one.before or 0:,}", numeric=True)] if owner else []),
            cell(f"{one.after:,}", numeric=True),
            cell(f"{one.classes:,}", numeric=True),
        )
        for one in bins
    ]
    return table(heads, rows, "tight")


def loss(found: Findings) -> Html:
    """What masking cost, column by column."""
    of, original = found.published, found.original
    columns = of.shown
    if original is not None:
        columns = sorted(columns, key=lambda one: -original.loss(one.column))
    rows = [_loss_row(found, one) for one in columns]
    heads = ["Column", *(["detail lost"] if original is not None else []), "published as, share of rows", "for example"]
    body: list[object] = [table(heads, rows, "stack losses" if original is not None else "stack losses public")]
    if original is not None:
        note = "Detail lost: 0\xa0% is untouched, 100\xa0% is hidden (NCP, the mean over the cells of a column). "
    else:
        note = "How much detail was lost needs the original, and is left out of a report for the public. "
    body.append(element("p", note, "Darker is more exact. The examples are values of the file.", class_="note"))
    body += _utility(found)
    return section("loss", "What an analyst loses", *body)


_COLOURS = ("s1", "s2", "s3", "s4")


def _loss_row(found: Findings, one: Shown) -> Html:
    parts, told, step = [], [], 1
    for level in one.levels:
        share = level.records / max(1, one.records)
        if level.name == EXACT:
            colour = "s1"
        elif level.name == HIDDEN:
            colour = "s5"
        elif level.name == MISSING:
            colour = "track"
        else:
            colour, step = _COLOURS[min(step, 3)], step + 1
        parts.append((share, colour))
        told.append(joined([f"{level.name} ".replace(" ", "\xa0"), percent(share)]))
    key = element("div", joined(told, ", "), class_="key")
    examples = element("td", joined([shown(text, 40) for text in one.examples], ", "), data_l=None)
    original = found.original
    if original is None:
        values = f"{counted(one.values, 'value')} published"
        name = joined([shown(one.column), element("span", values, class_="sub")])
        return row(name, cell(joined([stack(parts), key]), kind="levels"), examples)
    values = f"{original.different(one.column):,} → {counted(one.values, 'value')}"
    name = joined([shown(one.column), element("span", values, class_="sub")])
    lost = original.loss(one.column)
    bars = pair((0.0 if lost != lost else lost, "after", percent(lost)))
    return row(name, cell(bars), cell(joined([stack(parts), key]), kind="levels"), examples)


def _utility(found: Findings) -> list[Html]:
    told: list[Html] = []
    queries, tree = found.queries, found.classifier
    if isinstance(queries, str):
        told.append(element("p", f"How far counts are off is not known: {queries.rstrip('.')}."))
    elif queries is not None:
        told.append(
            element(
                "p",
                f"Of {queries.queries:,} random counts (on up to three masked columns, each of about a tenth of the table) half "
                f"are off by less than {percent(queries.median)} and one in ten by more than {percent(queries.percentile_90)}.",
            )
        )
    if tree is not None:
        told.append(
            element(
                "p",
                "A decision tree that predicts ",
                shown(tree.target),
                f" from the masked columns is right in {percent(tree.masked)} of the records; with the original in "
                f"{percent(tree.original)}, and without looking in {percent(tree.baseline)}.",
            )
        )
    return told


def promises(found: Findings) -> Html:
    """Rule by rule: asked, found, and the classes that would fail first."""
    of, evidence = found.published, found.published.evidence
    many = "persons" if evidence.persons is not None else "records"
    body: list[object] = []
    if evidence.checks:
        rows = [_promise_row(found, check, many) for check in evidence.checks]
        body.append(table(["Promise", "#asked", "#found", "verdict", "tightest classes"], rows, "stack proms"))
    else:
        body.append(element("p", "The configuration has no policy, so there is no promise to check."))
    for problem in evidence.problems[:5]:
        body.append(element("p", icon("warn"), " ", plain(problem, 400), class_="v-fails"))
    if evidence.violations:
        body.append(details("Classes that fail", _classes(evidence.violations[:20])))
    else:
        some = [violation for one in of.tightest.values() for violation in one.some]
        if some:
            body.append(details("Some of the tightest classes", _classes(some, tight=True)))
    body.append(details("How strong the file is by every model", _strengths(found)))
    for note in evidence.notes[:6]:
        body.append(element("p", plain(note, 300), class_="note"))
    return section("promises", "The promises, checked", *body)


def _promise_row(found: Findings, check: Check, many: str) -> Html:
    state, mark = ("holds", "ok") if check.holds else ("fails", "warn")
    tag = element("span", icon(mark), state, class_=f"tag v-{state}")
    tight: Tightest | None = found.published.tightest.get(check.rule)
    classes = found.published.evidence.classes
    if not check.holds:
        told = f"{counted(check.failing, 'class fails', 'classes fail')} of {classes:,}"
    elif tight is None or tight.classes == 0:
        told = "not known"
    else:
        told = f"{tight.classes:,} of {classes:,} are at {number(check.strongest, 4)}"
    sentence = joined(
        [promise(model_of(check, found.published.models), check, many), element("span", rule(check), class_="sub code")]
    )
    return row(
        sentence,
        cell(number(check.required, 4), label="asked", numeric=True),
        cell(number(check.strongest, 4), label="found", numeric=True),
        cell(tag, label=None),
        cell(told, label="tightest classes"),
    )


def _classes(some: Sequence[Violation], *, tight: bool = False) -> Html:
    rows = []
    for one in some:
        values = joined(
            [joined([shown(name, 20), " ", shown(value, 30)]) for name, value in list(one.published.items())[:8]], ", "
        )
        rows.append(row(values, cell(f"{one.size:,}", numeric=True), *([] if tight else [cell(plain(one.rule, 80))])))
    return table(["Class", "#size", *([] if tight else ["fails"])], rows, "tight")


def _strengths(found: Findings) -> Html:
    rows = []
    for one in found.published.strengths:
        settings = ", ".join(f"{key} = {plain(value, 30)}" for key, value in one.settings.items())
        held = "–" if one.strongest != one.strongest else f"{one.parameter} = {one.strongest:.4g}"
        on = shown(one.attribute) if one.attribute else escaped("whole class")
        rows.append(row(one.model.replace("_", " "), cell(on), cell(settings or "–"), cell(held, numeric=True)))
    return table(["Model", "on", "with", "#holds up to"], rows, "tight")


def attacks(found: Findings) -> Html:
    """What was tried, and whether it is stopped, limited or open."""
    items = []
    for attack in found.attacks:
        state, mark = TAG[attack.state]
        tag = element("span", icon(mark), attack.state.capitalize(), class_=f"tag v-{state}")
        items.append(element("li", tag, element("p", element("b", attack.name), " ", attack.told)))
    return section("attacks", "Attacks tried", element("ul", *items, class_="attacks"))


def least(found: Findings) -> Html | None:
    """The distance to what no tool can do better than."""
    if found.original is None or found.least is None:
        return None
    lost, bound = found.original.measures.ncp, found.least
    if lost != lost:
        return section(
            "least", "Could less be lost?", element("p", "The loss of this file cannot be measured in detail lost.")
        )
    if bound.share is None:
        told: list[object] = [
            f"The proven least is not known: {bound.why.rstrip('.')}. This release loses {percent(lost)}."
        ]
    else:
        near = lost - bound.share <= 0.1 * lost + 1e-12
        told = [
            "Hardly. " if near else "",
            f"No release of this table that keeps these promises can lose less than {at_least(bound.share)}, whatever tool makes "
            f"it. This one loses {percent(lost)}.",
        ]
    rivals = _rivals(found)
    title = "Detail lost, on a line from nothing"
    words = [
        *([f"proven least {at_least(bound.share)}"] if bound.share is not None else []),
        f"this release {percent(lost)}",
    ]
    words += [f"{name} {percent(value)}" for name, value in rivals]
    chart = line_chart(lost, bound.share, rivals, title, ", ".join(words))
    shaded = element("p", "No release can be in the shaded part.", class_="note") if bound.share is not None else None
    rows = [row("proven least", cell(at_least(bound.share), numeric=True))] if bound.share is not None else []
    rows.append(row("this release", cell(percent(lost), numeric=True)))
    rows += [row(name, cell(percent(value), numeric=True)) for name, value in rivals]
    data = details("The line as a table", table(["Release", "#detail lost"], rows, "tight"))
    return section("least", "Could less be lost?", element("p", *told), element("figure", chart), shaded, data)


def _rivals(found: Findings) -> list[tuple[str, float]]:
    """Other algorithms that were tried, by the same measure."""
    assert found.original is not None
    note: Any = found.original.notes.get("auto")
    if not isinstance(note, dict) or found.original.settings.get("objective", "ncp") != "ncp":
        return []
    tried = [(f"{name}, not refined", float(value)) for name, value in dict(note.get("losses", {})).items()]
    return [(name, value) for name, value in tried if 0 <= value <= 1]


def as_it_is(found: Findings) -> Html:
    """Columns that nothing was done to."""
    of, asis = found.published, found.asis
    names = [(name, of.schema.attributes[name].role) for name in of.columns if name in of.schema.attributes]
    plain_columns = [(name, kind) for name, kind in names if kind in ("other", "sensitive")]
    if not plain_columns:
        return section("asis", "Published as they are", element("p", "No column is published as it is."))
    by_name = {finding.column: finding for finding in asis.findings}
    rows = []
    for name, kind in plain_columns:
        (lone, different), total = of.alone_in(name), of.evidence.records
        finding = by_name.get(name)
        caution = "caution" if finding is not None or lone >= ALONE * total else "other"
        title = joined([shown(name), element("span", role(kind), class_="sub")])
        rows.append(
            row(
                title,
                cell(f"{different:,}", label="different values", numeric=True),
                cell(pair((lone / max(1, total), caution, f"{lone:,}"))),
                cell(_advice(finding, kind, of)),
            )
        )
    body: list[object] = [
        element(
            "p",
            "These columns are not made equal within a class. Each bar counts the rows with a value that nobody else has.",
        ),
        table(
            ["Column", "#different values", f"singles out, of {of.evidence.records:,}", "what was found"],
            rows,
            "stack asis",
        ),
    ]
    if len(asis.columns) > 1:
        body.append(
            element(
                "p",
                named(asis.columns),
                f" together single out {asis.alone:,} of {asis.records:,} {asis.counted}.",
                class_="note",
            )
        )
    return section("asis", "Published as they are", *body)


def _advice(finding: Any, kind: str, of: Any) -> Html:
    if finding is not None:
        accepted = (" Accepted by hand: ", shown(finding.accepted, 200), ".") if finding.accepted else ()
        return joined([f"It {finding.detail.rstrip('.')}.", *accepted])
    if kind == "sensitive":
        guards = [check for check in of.evidence.checks if check.attribute is not None]
        return escaped(
            "Kept exact for analysis; a promise guards it."
            if guards
            else "Kept exact for analysis; no promise guards it."
        )
    return escaped("Nothing that stands out by itself.")


def reproduce(found: Findings) -> Html:
    """How it can be made and checked again."""
    of, original = found.published, found.original
    lines = []
    if original is not None:
        lines.append(original.command or "shoal anonymize -c shoal.toml -o masked.csv")
    name = plain(of.name, 80)
    lines.append(f"shoal verify {name} -c shoal.toml --manifest")
    lines.append(f"shoal attack {name} -c shoal.toml")
    facts: list[tuple[str, object]] = [("Shoal", _version())]
    facts.append(("Policy", plain(str(of.policy), 300) if of.models else "none"))
    if original is not None and original.settings.get("algorithm"):
        facts.append(("Method", _method(original.settings, original.notes)))
        facts.append(("Seed", str(original.settings.get("seed"))))
    shown_settings = [f"{key} {value}" for key, value in of.settings.items() if key in ("recode", "intervals", "order")]
    if shown_settings:
        facts.append(("Published with", ", ".join(shown_settings)))
    kinds: tuple[Role, ...] = ("identifier", "person", "quasi", "sensitive", "other")
    roles = [element("div", role(kind), ": ", named(names)) for kind in kinds if (names := of.schema.named(kind))]
    facts.append(("Columns", joined(roles)))
    if of.digest:
        facts.append(("Output, SHA-256", element("span", of.digest, class_="code")))
    pairs = [piece for label, value in facts for piece in (element("dt", label), element("dd", value))]
    who = (
        "The same input, configuration and seed give the same bytes."
        if original is not None
        else ("Whoever has the file and its configuration can check every figure of this page.")
    )
    return section(
        "again",
        "Reproduce it",
        element("p", who),
        element("pre", "\n".join(lines), tabindex="0"),
        element("dl", *pairs, class_="facts"),
    )


def _method(settings: Any, notes: Any) -> str:
    told = plain(settings["algorithm"], 60)
    chosen = notes.get("auto", {}).get("algorithm") if isinstance(notes.get("auto"), dict) else None
    effort = settings.get("refine")
    refined = "not refined" if effort is False else f"refined ({'fast' if effort is True else plain(effort, 20)})"
    return f"{told}{f': {chosen}' if chosen else ''}, {refined}"


def _version() -> str:
    from shoal.version import VERSION

    return VERSION
