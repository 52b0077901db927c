"""The first half page: the verdict, what needs a decision, and the four numbers."""

from __future__ import annotations

from shoal.report.findings import Findings
from shoal.report.icons import icon
from shoal.report.markup import (
    Html,
    at_least,
    counted,
    element,
    escaped,
    joined,
    listed,
    named,
    number,
    one_in,
    percent,
    plain,
    shown,
)
from shoal.report.words import model_of, promise


def opening(found: Findings) -> Html:
    """Who stops after ten lines has read the truth, including what is not covered."""
    state, stamp, lines = verdict(found)
    blocks = [
        ("What is in it", _content(found)),
        ("What was promised", _promised(found)),
        ("What was checked", _checked(found)),
        ("What an intruder could do", _intruder(found)),
        ("What an analyst loses", _analyst(found)),
        ("What was accepted by hand", _accepted(found)),
    ]
    lede = element(
        "div",
        *(element("div", element("h2", title), element("p", text)) for title, text in blocks),
        class_="lede",
    )
    mark = "ok" if state == "holds" else "warn"
    return element(
        "section",
        element("p", icon(mark), stamp, class_=f"stamp v-{state}"),
        element("h1", *(element("span", line) for line in lines), id="verdict"),
        _decide(found),
        lede,
        class_=f"open o-{state}",
        aria_labelledby="verdict",
    )


def verdict(found: Findings) -> tuple[str, str, list[str]]:
    """A state, a stamp of a few words, and the headline."""
    evidence = found.published.evidence
    if evidence.problems:
        return "fails", "Not what its configuration knows", ["This file cannot be vouched for."]
    if not found.judged:
        return "caution", "No promise to check", ["No promise was made about this file.", *_needed(found)]
    total, failing = len(evidence.checks), sum(not check.holds for check in evidence.checks)
    if failing:
        stamp = (
            f"{failing} of {total} promises {'fails' if failing == 1 else 'fail'}" if total > 1 else "The promise fails"
        )
        return "fails", stamp, ["This file does not keep its promises."]
    stamp = "The promise holds" if total == 1 else "Both promises hold" if total == 2 else f"All {total} promises hold"
    return "holds", stamp, ["This file keeps its promises.", *_needed(found)]


def _needed(found: Findings) -> list[str]:
    columns = len(found.decisions)
    if columns:
        return [f"{'One column needs' if columns == 1 else f'{_word(columns)} columns need'} your decision."]
    return [f"{_word(len(found.asis.columns))} columns together need your decision."] if found.together else []


def _word(number: int) -> str:
    """A small number at the beginning of a sentence."""
    words = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
    return words[number] if number < len(words) else f"{number:,}"


def _decide(found: Findings) -> Html | None:
    """A warning that needs a decision stands beside the verdict."""
    asis = found.asis
    covered = "The promises do not cover these columns." if found.judged else ""
    if found.decisions:
        told = [
            element("p", shown(finding.column), " ", escaped(_finding(finding.detail)), ".")
            for finding in found.decisions[:5]
        ]
        if len(found.decisions) > 5:
            told.append(element("p", f"{len(found.decisions) - 5} more columns are below."))
        names: Html = named([finding.column for finding in found.decisions], 4)
    elif found.together:
        names = named(asis.columns, 6)
        told = [
            element(
                "p",
                f"{asis.alone:,} of {asis.records:,} {asis.counted} are the only ones with their "
                f"values of these columns together, which are published as they are. Whoever knows them finds the record.",
            )
        ]
    else:
        return None
    told.append(
        element("p", covered, " Round them, give them a role, or accept them with a reason in the configuration.")
    )
    heading = element("h2", icon("warn"), element("span", "Decide before you sign: ", names))
    return element("div", heading, *told, class_="decide")


def _finding(detail: str) -> str:
    return detail.rstrip(".")


def _content(found: Findings) -> Html:
    of, evidence = found.published, found.published.evidence
    people = f" of {evidence.persons:,} persons" if evidence.persons is not None else ""
    rows = "rows" if evidence.persons is not None else "records"
    told: list[object] = [f"{evidence.records:,} {rows}{people} in {counted(len(of.columns), 'column')}. "]
    left = [name for name, one in of.schema.attributes.items() if one.role in ("identifier", "person")]
    left = [name for name in left if name not in of.columns]
    if left:
        told += [named(left, 6), f" {'is' if len(left) == 1 else 'are'} left out. "]
    told.append(_dropped(found))
    order = of.settings.get("order")
    if order == "shuffle":
        told.append(" Their order is shuffled.")
    elif order == "keep":
        told.append(" They stand in the order of the original, which may tell who is who.")
    return joined(told)


def _dropped(found: Findings) -> str:
    starred = found.published.starred
    shown_starred = f"{starred:,} show no masked column at all." if starred else ""
    if found.original is None:
        return shown_starred
    dropped, lost = found.original.data.dropped, found.original.measures.suppressed
    told = []
    if dropped:
        told.append(f"{dropped:,} were left out before, for missing values.")
    if found.original.settings.get("suppressed") == "drop" and lost:
        told.append(f"{lost:,} were left out because they stood out.")
    what = "record" if found.published.evidence.persons is None else "row"
    return " ".join([*told, shown_starred]).strip() or f"No {what} was left out."


def _promised(found: Findings) -> Html:
    of = found.published
    if not of.evidence.checks:
        return escaped("Nothing that could be checked: the configuration has no policy.")
    many = "persons" if of.evidence.persons is not None else "records"
    told = [joined([promise(model_of(check, of.models), check, many), ". "]) for check in of.evidence.checks[:4]]
    if len(of.evidence.checks) > 4:
        told.append(escaped(f"{len(of.evidence.checks) - 4} more are below. "))
    told.append(joined(["A class: those that look the same by ", named(of.schema.named("quasi")), "."]))
    return joined(told)


def _checked(found: Findings) -> Html:
    of = found.published
    return joined(
        [
            f"All {counted(of.evidence.classes, 'class', 'classes')}, read back from the published values alone, by code that "
            f"shares nothing with what made them. {len(found.attacks)} attacks were tried: ",
            listed(_states(found)),
            ".",
        ]
    )


def _states(found: Findings) -> list[str]:
    states = [attack.state for attack in found.attacks]
    return [f"{states.count(state)} {state}" for state in ("stopped", "limited", "open") if state in states]


def _intruder(found: Findings) -> Html:
    of = found.published
    if found.intruders:
        one = found.intruders[0]
        listed_by = "a voter list with" if one.source == "a voter list" else "a list of everybody’s"
        return joined(
            [
                f"With {listed_by} ",
                named(one.knows),
                f", an intruder would have found {one.certain_before:,} of {one.persons:,} {of.many} for certain in the "
                f"original. In the release: {one.certain if one.certain else 'none'}, and guessing gets "
                f"{number(one.right, 0)} right.",
            ]
        )
    highest, average = of.risks.prosecutor.highest, of.risks.prosecutor.average
    before = "Figures of the original are left out of this report."
    if found.unlinked:
        before = f"How many could be found before and after is not known: {plain(found.unlinked, 300).rstrip('.')}."
    return joined(
        [
            "Whoever has a list, such as voters’, with ",
            named(of.schema.named("quasi")),
            f" picks the right record with a chance of at most {one_in(highest)}, on average {one_in(average)}. {before}",
        ]
    )


def _analyst(found: Findings) -> Html:
    of = found.published
    if found.original is not None:
        measures = found.original.measures
        by_loss = sorted(of.schema.named("quasi"), key=lambda name: -found.original.loss(name))  # type: ignore[union-attr]
        worst = by_loss[0] if by_loss else None
        told: list[object] = [f"{percent(measures.ncp)} of the detail in the masked columns"]
        if worst is not None and len(by_loss) > 1 and found.original.loss(worst) > 0:
            most = 2 * found.original.loss(worst) > sum(found.original.loss(name) for name in by_loss)
            told += [", most of it in " if most else ", the largest part in ", shown(worst)]
        told.append(". ")
        if not isinstance(found.queries, str) and found.queries is not None:
            told.append(
                f"Half of {found.queries.queries:,} random counts are off by less than {percent(found.queries.median)}."
            )
        return joined(told)
    exact = [one for one in of.shown if one.share("exact") >= 0.5]
    if exact:
        return joined(
            [
                named([one.column for one in exact]),
                " are exact in at least half of the rows; the others are ranges or groups.",
            ]
        )
    return escaped("The masked columns are mostly ranges or groups; the table below has the shares.")


def _accepted(found: Findings) -> Html:
    if not found.accepted:
        return escaped("Nothing.")
    return joined(
        joined([shown(finding.column), ": ", shown(finding.accepted, 200), ". "]) for finding in found.accepted[:5]
    )


def four(found: Findings) -> Html:
    """Every number has a comparison."""
    of = found.published
    risk = of.risks.prosecutor
    smallest = of.sizes.smallest
    asked = next((check for check in of.evidence.checks if check.model == "k_anonymity"), None)
    compared = f"asked {number(asked.required, 0)}, found {smallest:,}" if asked is not None else "no number was asked"
    before = ""
    if found.original is not None:
        before = f"; in the original {found.original.sizes.smallest:,}"
    told = [
        (f"{smallest:,}", "", f"{of.many} look the same, at least", compared + before),
        (*_chance(risk.highest), "best chance to pick the right one", f"average {one_in(risk.average)}{_sure(found)}"),
        *(_of_owner(found) if found.original is not None else _of_public(found)),
    ]
    boxes = [
        element(
            "div",
            element("dt", label),
            element("dd", big, element("small", f"\xa0{unit}") if unit else None, class_="n"),
            element("dd", note, class_="c"),
        )
        for big, unit, label, note in told
    ]
    heading = element("h2", "The four numbers that matter", class_="vh", id="numbers")
    return joined([heading, element("dl", *boxes, class_="four", aria_labelledby="numbers")])


def _chance(risk: float) -> tuple[str, str]:
    return ("1", "certain") if risk >= 1 else ("1", f"in {number(1 / risk)}")


def _sure(found: Findings) -> str:
    if found.original is None:
        return ""
    return f"; in the original {one_in(1 / found.original.sizes.smallest)}"


def _of_owner(found: Findings) -> list[tuple[str, str, str, str]]:
    assert found.original is not None
    assert found.least is not None
    measures, least, queries = found.original.measures, found.least, found.queries
    known = least.share is not None
    note = f"no tool can lose less than {at_least(least.share or 0.0)}" if known else "proven least: not known"
    lost = (
        _big(measures.ncp),
        "%" if measures.ncp == measures.ncp else "",
        "of detail lost in the masked columns",
        note,
    )
    if queries is None or isinstance(queries, str):
        return [lost, ("not known", "", "typical error of a count", str(queries or ""))]
    ninth = f"one count in ten is off by more than {percent(queries.percentile_90)}"
    return [lost, (_big(queries.median), "%", "typical error of a count", ninth)]


def _of_public(found: Findings) -> list[tuple[str, str, str, str]]:
    of = found.published
    exact = sum(one.share("exact") for one in of.shown) / max(1, len(of.shown))
    cells = (
        _big(exact),
        "%",
        "of the masked cells are exact",
        f"{len(of.shown)} masked columns; the others as they are",
    )
    guesses = [one for one in of.attacks if one.attack == "homogeneity"]
    if not guesses:
        return [
            cells,
            (f"{of.evidence.classes:,}", "", "classes", f"of {of.evidence.smallest:,} to {of.evidence.largest:,}"),
        ]
    worst = max(guesses, key=lambda one: one.worst)
    named_by = worst.attribute or ""
    return [
        cells,
        (
            number(100 * worst.worst, 0),
            "in 100",
            "best guess of a secret is right",
            f"{plain(named_by, 30)}, in the worst class",
        ),
    ]


def _big(share: float) -> str:
    return "not known" if share != share else percent(share).removesuffix("\xa0%")
