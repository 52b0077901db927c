"""Cards for notebooks: what a thing is at a glance, a few numbers and one chart. Never a record of the original.

`compose` puts a card together from its pieces; whoever has another thing to show calls it, or adds to `CARDS`.

>>> print(compose("Two and two", facts=[("4", "in all")])[:25])
<div class="shoal-card"><
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from shoal.report.charts import bar, pictured, size_bins
from shoal.report.icons import icon, role
from shoal.report.markup import Html, counted, element, escaped, joined, number, one_in, percent, plain, shown
from shoal.report.page import style
from shoal.report.sizes import Sizes
from shoal.report.words import model_of, promise, rule

Fact = tuple[str, str]
MOST = 12
"""Rows of a card's table; what is more is counted."""
SENTENCE = 40
"""Characters from which on a text may wrap."""


def card(thing: Any) -> str:
    """The card of a thing; of one that has none, what it says of itself."""
    for kind in type(thing).__mro__:
        if kind.__name__ in CARDS:
            return CARDS[kind.__name__](thing)
    return element("pre", plain(repr(thing), 2000))


def compose(
    title: object,
    *,
    state: str | None = None,
    stamp: object = None,
    facts: Sequence[Fact] = (),
    chart: Html | None = None,
    rows: Sequence[Html] = (),
    note: object = None,
) -> Html:
    """A card: a title, a verdict (`state` holds, caution or fails, `stamp` in words), facts (a number, what it counts), a chart,
    rows of a table and a note. Anything may be left out.
    """
    parts: list[object] = [Html(f"<style>{_style()}</style>"), element("p", title, class_="title")]
    if stamp is not None:
        mark = icon("ok" if state == "holds" else "warn") if state else None
        parts.append(element("p", mark, stamp, class_=f"stamp v-{state}" if state else "stamp"))
    if facts:
        boxes = [element("div", element("dt", label), element("dd", big)) for big, label in facts]
        parts.append(element("dl", *boxes))
    parts.append(chart)
    if rows:
        more = len(rows) - MOST
        parts.append(element("table", element("tbody", *rows[:MOST])))
        parts.append(element("p", f"and {more:,} more", class_="note") if more > 0 else None)
    if note is not None:
        parts.append(element("p", note, class_="note"))
    return element("div", *parts, class_="shoal-card")


def line(label: object, *cells: object) -> Html:
    """A row of a card's table; a bar gets room, a sentence wraps, anything else stays on its line."""
    return element(
        "tr", element("th", label, scope="row"), *(element("td", cell, class_=_kind(cell)) for cell in cells)
    )


def _kind(cell: object) -> str | None:
    if isinstance(cell, Html):
        return "wide" if cell.startswith('<svg class="bar"') else None
    return "long" if len(str(cell)) > SENTENCE else None


@cache
def _style() -> str:
    """The tokens, for cards only: a notebook has a look of its own, which they leave alone."""
    tokens = re.sub(r"@media print \{.*", "", style("tokens.css"), flags=re.DOTALL)
    return (tokens.replace(":root", ".shoal-card") + style("card.css")).strip()


def _release(release: Any) -> Html:
    evidence, measures = release.evidence, release.measures
    facts = [
        (f"{evidence.smallest:,}", "look the same, at least"),
        (one_in(1 / max(1, evidence.smallest)), "best chance to pick the right one"),
        (percent(measures.ncp), "of detail lost"),
    ]
    sizes = np.bincount(release.partition.labels[release.partition.labels >= 0]) if evidence.records else np.zeros(1)
    return compose(
        joined([f"Release: {counted(evidence.records, 'record')} in {counted(release.masked.width, 'column')}"]),
        **_verdict(evidence),
        facts=facts,
        chart=_sizes(sizes[sizes > 0].astype(np.int64), "persons" if evidence.persons is not None else "records"),
        rows=_checks(evidence, release.policy.models),
        note='release.report("report.html") writes all of it; release.frame is the table.',
    )


def _evidence(evidence: Any) -> Html:
    facts = [
        (f"{evidence.classes:,}", "classes"),
        (
            f"{evidence.smallest:,} to {evidence.largest:,}",
            "persons in each" if evidence.persons is not None else "records in each",
        ),
    ]
    rows = _checks(evidence, bars=True)
    problems = joined([plain(problem, 200) for problem in evidence.problems[:3]], " ") if evidence.problems else None
    title = f"Verified: {counted(evidence.records, 'record')}"
    return compose(title, **_verdict(evidence), facts=facts, rows=rows, note=problems)


def _verdict(evidence: Any) -> dict[str, Any]:
    failing, total = sum(not check.holds for check in evidence.checks), len(evidence.checks)
    if evidence.problems:
        return {"state": "fails", "stamp": "cannot be vouched for"}
    if not total:
        return {"state": "caution", "stamp": "no promise to check"}
    if failing:
        some = (
            "the promise fails"
            if total == 1
            else f"{failing} of {total} promises {'fails' if failing == 1 else 'fail'}"
        )
        return {"state": "fails", "stamp": some}
    whole = {1: "the promise holds", 2: "both promises hold"}.get(total, f"all {total} promises hold")
    return {"state": "holds", "stamp": whole}


def _checks(evidence: Any, models: Sequence[Any] = (), *, bars: bool = False) -> list[Html]:
    many = "persons" if evidence.persons is not None else "records"
    rows = []
    for check in evidence.checks:
        state, mark = ("holds", "ok") if check.holds else ("fails", "warn")
        told = [f"asked {number(check.required, 4)}", f"found {number(check.strongest, 4)}"]
        drawn = [_against(check.required, check.strongest)] if bars else []
        tag = element("span", icon(mark), state, class_=f"tag v-{state}")
        model = model_of(check, models)
        label = promise(model, check, many) if model is not None else rule(check)
        rows.append(line(label, *told, *drawn, tag))
    return rows


def _against(asked: float, found: float) -> Html:
    """Two bars: what was asked, and what was found."""
    if found != found or max(asked, found) <= 0:
        return escaped("–")
    top = max(asked, found)
    return joined([bar(asked / top, "rival"), bar(found / top, "after")])


def _sizes(sizes: Any, many: str) -> Html | None:
    if not len(sizes):
        return None
    bins = size_bins(Sizes.of(sizes), None)
    told = ", ".join(f"{one.after:,} in classes of {one.label}" for one in bins)
    name = "card-" + hashlib.sha256(told.encode()).hexdigest()[:12]
    return pictured(bins, many, name, f"{many.capitalize()} by the size of their class", told)


def _microdata(data: Any) -> Html:
    unique = int((data.points.weights == 1).sum())
    facts = [
        (f"{data.n:,}", "persons" if data.persons is not None else "records"),
        (percent(unique / max(1, data.n)), "are alone by what others may know"),
    ]
    rows = []
    for name, attribute in data.schema.attributes.items():
        if name not in data.frame.columns:
            continue
        distinct = data.frame[name].n_unique()
        rows.append(
            line(
                shown(name, 40),
                role(attribute.role),
                counted(distinct, "value"),
                bar(distinct / max(1, data.frame.height), attribute.role),
            )
        )
    title = f"Table: {counted(data.frame.height, 'record')} in {counted(data.frame.width, 'column')}"
    return compose(title, facts=facts, rows=rows, note="Bars: different values, of as many as there are records.")


def _profile(profile: Any) -> Html:
    facts = [
        (f"{profile.records:,}", "records"),
        (percent(profile.unique), "are alone by the columns suggested as quasi"),
    ]
    rows = [
        line(
            shown(one.name, 40),
            role(one.role),
            counted(one.distinct, "value"),
            bar(one.separation, one.role),
            plain(one.why, 200),
        )
        for one in profile.columns
    ]
    # Its notes name values of the table; the reason to mask at all names none.
    note = plain(profile.reason, 400) if profile.named("quasi") else None
    title = f"Suggested roles of {counted(len(profile.columns), 'column')}"
    return compose(title, facts=facts, rows=rows, note=note)


def _attacks(found: Any) -> Html:
    highest = found.risks.prosecutor.highest
    facts = [
        (one_in(highest), "best chance to pick the right one"),
        (one_in(found.risks.prosecutor.average), "on average"),
    ]
    rows = [
        line(
            one.attack.replace("_", " "),
            shown(one.attribute, 40) if one.attribute else "–",
            f"{one.exposed:,} of {one.total:,} exposed",
            bar(one.share, "caution"),
        )
        for one in found.exposures
    ]
    title = f"Attacked: {counted(found.records, 'record')} in {counted(found.classes, 'class', 'classes')}"
    note = joined([plain(text, 200) for text in found.notes[:3]], " ") if found.notes else None
    return compose(title, facts=facts, rows=rows, note=note)


def _measured(found: Any) -> Html:
    measures = found.measures
    facts = [(percent(measures.ncp), "of detail lost"), (f"{measures.classes:,}", "classes")]
    if found.queries is not None:
        facts.append((percent(found.queries.median), "typical error of a count"))
    losses = {name: float(shares["ncp"]) for name, shares in measures.attributes.items()}
    rows = [
        line(shown(name, 40), percent(loss), bar(0.0 if loss != loss else loss, "after"))
        for name, loss in losses.items()
    ]
    note = joined([plain(text, 200) for text in found.notes[:3]], " ") if found.notes else None
    return compose("What masking cost", facts=facts, rows=rows, note=note)


def _audit(audit: Any) -> Html:
    state, stamp = "holds", "nothing found"
    if audit.found:
        state, stamp = "fails", f"{counted(len(audit.found), 'finding')} across releases"
    elif audit.undecided:
        state, stamp = "caution", f"nothing found, {audit.undecided:,} records undecided"
    rows = [line(plain(text, 300)) for text in audit.findings[:MOST]]
    return compose(f"Audit of {counted(audit.releases, 'release')}", state=state, stamp=stamp, rows=rows)


def _comparison(found: Any) -> Html:
    made = [one for one in found.results if one.refused is None]
    losses = [one.losses[found.objective] for one in made]
    rows = [
        line(
            shown(one.algorithm, 40),
            percent(loss),
            bar(loss, "after" if one is found.best else "rival"),
            f"{one.seconds:.1f} s",
        )
        for one, loss in zip(made, losses, strict=True)
    ]
    rows += [
        line(shown(one.algorithm, 40), "–", plain(one.refused, 200)) for one in found.results if one.refused is not None
    ]
    facts = [(percent(losses[0]), f"of detail lost by {made[0].algorithm}, the least")] if made else []
    return compose(f"{counted(len(found.results), 'algorithm')} side by side", facts=facts, rows=rows)


def _frontier(found: Any) -> Html:
    curve, knee = found.curve, found.knee
    rows = [
        line(
            ", ".join(f"{name} = {value:g}" for name, value in point.asked.items()),
            percent(point.loss),
            bar(point.loss, "after" if point is knee else "rival"),
            "–" if point.bound is None else f"no less than {percent(point.bound)}",
        )
        for point in curve
    ]
    facts = []
    if knee is not None:
        name, value = next(iter(knee.asked.items()))
        facts = [(f"{name} = {value:g}", "where the curve bends"), (percent(knee.loss), "of detail lost there")]
    note = joined([plain(text, 300) for text in found.advice[:3]], " ") if found.advice else None
    return compose("What privacy costs", facts=facts, rows=rows, note=note)


CARDS: dict[str, Callable[[Any], Html]] = {
    "Release": _release,
    "Evidence": _evidence,
    "Microdata": _microdata,
    "Profile": _profile,
    "Attacks": _attacks,
    "Measured": _measured,
    "Audit": _audit,
    "Comparison": _comparison,
    "Frontier": _frontier,
}
"""How a thing is drawn, by the name of its class."""
