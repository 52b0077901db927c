"""What the commands of a store say: what a change did or would do, and releases over time as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli.output import Speaker

if TYPE_CHECKING:
    from shoal.evolve.store.commit import Applied, Prospect

# Findings of a dry run that are told; --json has all of them.
TOLD = 10


def tell(applied: Applied, speaker: Speaker, more: dict[str, Any] | None = None) -> None:
    """What a batch did, or would do."""
    if not applied.applied:
        speaker.say(
            f"Nothing to do: this batch was applied as version {applied.version}."
            if applied.batch
            else f"Nothing is new; the store stays at version {applied.version}."
        )
    else:
        done = {name: getattr(applied, name) for name in ("inserted", "updated", "deleted", "unchanged", "moved")}
        told = ", ".join(f"{count:,} {name}" for name, count in done.items() if count) or "nothing changed"
        speaker.say(
            f"Version {applied.version}: {told}. {applied.records:,} records in {applied.classes:,} classes, "
            f"loss {applied.loss:.4f}."
        )
        if applied.note:
            speaker.say(applied.note)
        if applied.advice:
            speaker.say(f"{applied.advice} Anonymize anew with: shoal store renew")
    foresee(applied.prospect, speaker)
    speaker.result({**(more or {}), **applied.to_dict()})


def foresee(prospect: Prospect | None, speaker: Speaker) -> None:
    """Of a dry run, the release that would follow, and that nothing happened."""
    if prospect is None:
        return
    if prospect.refused is not None:
        speaker.say(f"A release after it would be refused: {prospect.refused}")
    else:
        waiting = ", ".join(f"{count:,} {name}" for name, count in prospect.waiting.items() if count) or "none"
        fakes = f", {prospect.counterfeits:,} of them counterfeits" if prospect.counterfeits else ""
        speaker.say(
            f"A release after it would show {prospect.shown:,} rows{fakes}, loss {prospect.loss or 0:.4f}; "
            f"rows that would wait: {waiting}."
        )
        found = [*prospect.findings[:TOLD]] or ["nothing."]
        speaker.say("Its audit would find: " + " ".join(found))
        if prospect.undecided:
            speaker.say(f"About {prospect.undecided:,} records it could not be decided within the budget.")
    speaker.say("Nothing was changed: this was a dry run.")


def draw(lines: list[dict[str, Any]], path: Path, force: bool) -> None:
    """Loss, records and what the guard cost, release by release."""
    import altair as alt
    import polars as pl

    from shoal.io.atomic import atomic_path

    table = pl.DataFrame(lines).select("release", "records", "classes", "ncp", "waiting", "counterfeits")
    parts = []
    for name, title in (
        ("ncp", "loss (ncp)"),
        ("records", "records"),
        ("waiting", "waiting rows"),
        ("counterfeits", "counterfeits"),
    ):
        base = alt.Chart(table).encode(
            x=alt.X("release:Q", title="release", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y(f"{name}:Q", title=title, scale=alt.Scale(zero=name != "records")),
        )
        parts.append((base.mark_line() + base.mark_circle(size=40)).properties(width=420, height=130))
    picture = alt.vconcat(*parts, title="Releases over time")
    kind: Any = path.suffix.removeprefix(".")
    with atomic_path(path, force=force) as temporary:
        picture.save(str(temporary), format=kind)
