"""Rows of which a claim is true, or false: made from nothing but what the claim says it compares."""

from __future__ import annotations

from typing import Any

from shoal.reproduce.verdicts import Below, Claim, Ordered, Prints, Same, Smoother, Spread, Widens, Within, chosen

Made = list[dict[str, Any]]
AT = (2, 4, 6, 8)


def rows_for(claim: Claim, holds: bool) -> Made:
    """A few rows that have the series of the claim, with values that make it true, or false."""
    rows: Made
    if isinstance(claim, Prints | Spread):
        rows = [
            {**claim.where, "seed": seed, claim.column: 0.0} for seed in range(3 if isinstance(claim, Spread) else 1)
        ]
    elif isinstance(claim, Ordered):
        rows = [{**claim.where, claim.along: at, claim.column: 0.0} for at in AT]
    elif isinstance(claim, Smoother):
        rows = [{**claim.where, claim.along: at, claim.by: by, claim.column: 0.0} for at in AT for by in AT]
    elif isinstance(claim, Within):
        rows = [{**claim.where, "seed": seed, claim.column: 0.0} for seed in range(3)]
        if isinstance(claim.limit, str):
            rows = [{**row, claim.limit: 5.0} for row in rows]
    else:
        assert isinstance(claim, Below | Same | Widens)
        along = claim.along if isinstance(claim, Widens) else claim.by
        series = [claim.one, *(claim.others if not isinstance(claim, Same) else (claim.other,))]
        fixed = claim.where.get(along)
        rows = [
            {along: at, **claim.where, **one, claim.column: 0.0}
            for one in series
            for at in (AT if fixed is None else (fixed,))
        ]
    return set_to(claim, rows, holds)


def set_to(claim: Claim, rows: Made, holds: bool) -> Made:
    """The same rows with the values that the claim compares set so that it is true, or false; all else as it was."""
    rows = [dict(row) for row in rows]
    mine = [row for row in chosen(rows, getattr(claim, "where", {})) if claim.column in row]  # type: ignore[attr-defined]
    if isinstance(claim, Prints | Spread):
        value = float(str(claim.printed).replace(",", ""))
        for i, row in enumerate(mine):
            off = 0.0 if isinstance(claim, Prints) else 0.01 * (-1) ** i * (i < 2 * (len(mine) // 2))
            row[claim.column] = value + off + (0 if holds else 7)
    elif isinstance(claim, Within):
        for row in mine:
            limit = float(row[claim.limit] if isinstance(claim.limit, str) else claim.limit)
            row[claim.column] = limit + ({"≤": 0.0, "=": 0.0, "<": -1.0}[claim.sign] if holds else 1.0)
    elif isinstance(claim, Ordered):
        for row in mine:
            row[claim.column] = _placed(claim.order, holds, row[claim.along], sorted({r[claim.along] for r in mine}))
    elif isinstance(claim, Smoother):
        places = sorted({row[claim.by] for row in mine})
        for row in mine:
            high = row[claim.along] if not holds else 1 / row[claim.along]
            row[claim.column] = high * (places.index(row[claim.by]) % 2)
    elif isinstance(claim, Same):
        for row in chosen(mine, claim.one):
            row[claim.column] = 3.0 if holds else 4.0
        for row in chosen(mine, claim.other):
            row[claim.column] = 3.0
    elif isinstance(claim, Below):
        for other in claim.others:
            for row in chosen(mine, other):
                row[claim.column] = 3.0
        for row in chosen(mine, claim.one):
            row[claim.column] = 2.0 if holds else 4.0
    else:
        assert isinstance(claim, Widens)
        for other in claim.others:
            for row in chosen(mine, other):
                row[claim.column] = row[claim.along] * (1 if holds else -1)
        for row in chosen(mine, claim.one):
            row[claim.column] = 0.0
    return rows


def off_at_one(claim: Claim, rows: Made) -> Made | None:
    """Rows of which the claim is true but at one setting, or in one run; None where it says nothing of every single one."""
    right, wrong = set_to(claim, rows, True), set_to(claim, rows, False)
    if isinstance(claim, Within | Prints):
        compared = [i for i, row in enumerate(rows) if row in chosen(rows, claim.where)]
        return [wrong[i] if i == compared[-1] else row for i, row in enumerate(right)]
    if isinstance(claim, Below | Same):
        last = [row for row in chosen(rows, {**claim.where, **claim.one}) if claim.by in row][-1][claim.by]
        return [b if b.get(claim.by) == last else a for a, b in zip(right, wrong, strict=True)]
    if isinstance(claim, Ordered) and claim.order in ("rises", "falls"):
        places = sorted({row[claim.along] for row in chosen(rows, claim.where)})
        # The last value is that of the first: whatever lies between, the last step goes the other way.
        first = next(row for row in chosen(right, claim.where) if row[claim.along] == places[0])[claim.column]
        mine = chosen(right, {**claim.where, claim.along: places[-1]})
        return [{**row, claim.column: first} if row in mine else row for row in right]
    return None


def _placed(order: str, holds: bool, at: Any, places: list[Any]) -> float:
    number = places.index(at)
    if order == "bends":
        return float(number % 2) if holds else float(number)
    if order in ("lags", "squares"):
        return 1.0 if holds else float(at) ** 3
    up = {"rises": holds, "falls": not holds, "peaks": not holds, "begins": holds}[order]
    return float(number if up else -number)
