"""`shoal store …`: a table that is kept anonymized while it changes, and its releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.output import JSON, QUIET, SEED, Speaker
from shoal.cli.reporting import FOR, REPORT, reader
from shoal.cli.store_words import TOLD, draw, foresee, tell
from shoal.configured import read_source

if TYPE_CHECKING:
    from shoal.evolve.store.store import Store

store = typer.Typer(
    name="store",
    help="Keep a table anonymized while it changes, and release it again and again.\n\n"
    "Start with: shoal store create --store sqlite:///registry.db -c shoal.toml --key patient_id\n\n"
    "then insert, update and delete with files, and release when there is something to publish. Every batch is one "
    "transaction: after it the policy holds, and if it fails nothing has changed.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

URL = typer.Option(..., "--store", "-s", help="Where it is: sqlite:///registry.db or postgresql://user@host/database.")
DRY = typer.Option(False, "--dry-run", help="Say what it would do, and do nothing.")
BATCH = typer.Option(
    None, "--batch", "-b", help="A name for this batch; a batch that was applied is not applied again."
)
FILE = typer.Argument(..., help="csv, tsv, parquet, arrow, jsonl or xlsx, with the key column.")
NEVER = typer.Option(False, "--never-handed-out", help="Your word that nobody has the release, not even one reader.")
RELEASES: tuple[str, ...] = ("release", "day", "records", "classes", "ncp", "waiting", "counterfeits", "bytes")
BATCHES: tuple[str, ...] = ("version", "day", "kind", "batch", "inserted", "updated", "deleted", "moved")
FORCE = typer.Option(False, "--force", help="Overwrite an existing output.")


@store.command("create")
def create(
    url: str = URL,
    key: str = typer.Option(..., "--key", "-k", help="The column that names each record; it is never published."),
    config: Path = typer.Option(
        "shoal.toml", "--config", "-c", help="Table, roles and policy; make one with shoal init."
    ),
    source: Path | None = typer.Argument(None, help="The table, when not the one named in the configuration."),
    guard: str = typer.Option("batching", "--guard", "-g", help="Between releases: batching, m-invariance or none."),
    m: int | None = typer.Option(None, "--m", help="For m-invariance: how many values stay possible for everybody."),
    retention: int | None = typer.Option(
        None, "--retention", help="How many releases are kept in full; all by default. See shoal store retain."
    ),
    seed: int | None = SEED,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Anonymize a table and keep it in a store, which holds the secrets: only its owner can read the file.

    Example: shoal store create --store sqlite:///registry.db -c shoal.toml --key patient_id
    """
    from shoal.configuration import read_config
    from shoal.evolve.store.configured import create_configured

    speaker = Speaker(as_json, quiet)
    configuration = read_config(config)
    frame, _ = read_source(configuration, source)
    speaker.say_if_cold()
    with speaker.progress("anonymizing") as progress:
        made = create_configured(
            url, configuration, frame, key=key, guard=guard, m=m, retention=retention, seed=seed, progress=progress
        )
    found = made.check().require()
    speaker.say(f"{found.records:,} records in {found.classes:,} classes under {made.settings.policy}; guard: {guard}.")
    speaker.say(f"Next: shoal store release --store {url} -o masked.csv")
    speaker.result({"store": url, **found.to_dict()})


@store.command("insert")
def insert(
    file: Path = FILE,
    url: str = URL,
    batch: str | None = BATCH,
    dry_run: bool = DRY,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """New records: each joins the class where it costs least, and classes that grow to twice their size are split.

    Example: shoal store insert --store sqlite:///registry.db admitted.csv
    """
    speaker = Speaker(as_json, quiet)
    with speaker.progress("applying") as progress:
        done = _open(url).apply(insert=file, batch=batch, dry_run=dry_run, progress=progress)
    tell(done, speaker)


@store.command("update")
def update(
    file: Path = FILE,
    url: str = URL,
    batch: str | None = BATCH,
    dry_run: bool = DRY,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """New values of records that are in the store; columns and rows that do not change may be left out.

    Example: shoal store update --store sqlite:///registry.db corrected.csv
    """
    speaker = Speaker(as_json, quiet)
    with speaker.progress("applying") as progress:
        done = _open(url).apply(update=file, batch=batch, dry_run=dry_run, progress=progress)
    tell(done, speaker)


@store.command("delete")
def delete(
    file: Path = FILE,
    url: str = URL,
    batch: str | None = BATCH,
    dry_run: bool = DRY,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Remove the records whose keys are in a file; classes that become too small are repaired or dispersed.

    Example: shoal store delete --store sqlite:///registry.db discharged.csv
    """
    speaker = Speaker(as_json, quiet)
    with speaker.progress("applying") as progress:
        done = _open(url).apply(delete=file, batch=batch, dry_run=dry_run, progress=progress)
    tell(done, speaker)


@store.command("forget")
def forget(
    keys: list[str] = typer.Argument(
        ..., help="The keys of the people (of the person column, if there is one), or one file with them."
    ),
    url: str = URL,
    dry_run: bool = DRY,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Remove people for good, whether they are still in the table or not: their keys and values are nowhere in it afterwards.

    What was published cannot be recalled. A row of theirs that is still shown stays, as one of the rows of its class and with
    somebody else's quasi-identifiers, until the class leaves: were it missing, its value could be told from the release before.

    Example: shoal store forget 1047 --store sqlite:///registry.db
    """
    speaker = Speaker(as_json, quiet)
    one = Path(keys[0])
    whom = one if len(keys) == 1 and one.suffix and one.exists() else keys
    with speaker.progress("forgetting") as progress:
        done = _open(url).forget(whom, progress=progress, dry_run=dry_run)
    speaker.say(f"Version {done.version}: {done.forgotten:,} forgotten, of whom {done.deleted:,} were in the table.")
    if done.still_shown:
        speaker.say(
            f"{done.still_shown:,} rows of theirs are published; they stay, as anybody's, until their classes leave."
        )
    foresee(done.prospect, speaker)
    speaker.result(done.to_dict())


@store.command("release")
def release(
    url: str = URL,
    output: Path | None = typer.Option(
        None, "--output", "-o", help="The masked file: csv, tsv, parquet, arrow, jsonl or xlsx."
    ),
    guard: str | None = typer.Option(
        None, "--guard", "-g", help="Instead of the store's: batching, m-invariance or none."
    ),
    m: int | None = typer.Option(None, "--m", help="For m-invariance, instead of the store's."),
    allow_exposure: bool = typer.Option(
        False, "--allow-exposure", help="Release even if the audit finds exposure; the manifest says so."
    ),
    again: int | None = typer.Option(
        None, "--again", help="Write the release of this number again, and make no new one."
    ),
    page: Path | None = REPORT,
    for_: str | None = FOR,
    dry_run: bool = DRY,
    force: bool = FORCE,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """The next release: verified, and audited against all earlier ones before it is written.

    The guard decides what may be shown: with batching, rows wait until those that come or go with them satisfy the policy
    themselves; with m-invariance everybody keeps the same set of possible values. Exposure is refused with exit code 1.

    Example: shoal store release --store sqlite:///registry.db -o masked.csv
    """
    from shoal.cli.anonymize import refuse_existing, report
    from shoal.errors import ConfigError
    from shoal.manifest import manifest_path

    speaker = Speaker(as_json, quiet)
    opened = _open(url)
    if output is not None:
        refuse_existing(output, force)
    whom = reader(page, for_, "public")
    if again is not None:
        if output is None:
            raise ConfigError("--again writes a file; name it with -o.")
        opened.export(again, output, force=force)
        speaker.say(f"Written: {output} and {manifest_path(output)}")
        speaker.result({"release": again, "output": str(output)})
        return
    chosen: Any = guard
    with speaker.progress("releasing") as progress:
        made = opened.release(
            output, guard=chosen, m=m, allow_exposure=allow_exposure, force=force, dry_run=dry_run, progress=progress
        )
    report(made.release, speaker)
    waiting = ", ".join(f"{count:,} {name}" for name, count in made.waiting.items() if count) or "none"
    speaker.say(f"Release {made.number} of version {made.version}; rows that wait: {waiting}.")
    if made.counterfeits:
        speaker.say(f"{made.counterfeits:,} rows are counterfeits, which nobody is behind; the manifest says where.")
    speaker.say("The audit against all earlier releases found " + ("EXPOSURE." if made.audit.exposed else "nothing."))
    if dry_run:
        for finding in made.audit.found[:TOLD]:
            speaker.say(finding.withheld)
        speaker.say("Nothing was published: this was a dry run.")
    elif output is not None:
        speaker.say(f"Written: {output} and {manifest_path(output)}")
    if page is not None:
        made.release.report(page, for_=whom)
        speaker.say(f"Report: {page}, for the {whom}.")
    speaker.result(made.to_dict())


@store.command("history")
def history(
    url: str = URL,
    batches: bool = typer.Option(False, "--batches", help="The batches instead of the releases."),
    chart: Path | None = typer.Option(
        None, "--chart", help="Also draw the releases over time: an svg, png or html file."
    ),
    force: bool = FORCE,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """The releases so far with their measures: records, classes, loss, waiting rows, counterfeits.

    Example: shoal store history --store sqlite:///registry.db --chart history.svg
    """
    from shoal.errors import InputError

    speaker = Speaker(as_json, quiet)
    opened = _open(url)
    lines = opened.batches() if batches else opened.history()
    if chart is not None and not opened.history():
        raise InputError("There are no releases to draw; make one with shoal store release.")
    title = "Batches" if batches else "Releases"
    shown = BATCHES if batches else RELEASES
    if any(line.get("exposed") for line in lines):
        shown = (*shown, "exposed")
    if any(line.get("withdrawn") for line in lines):
        shown = (*shown, "withdrawn")
    days = [{**line, "day": line["at"][:10]} for line in lines]
    speaker.table(title, shown, [[line.get(name) for name in shown] for line in days])
    found = opened.status()
    speaker.say(f"{found['bytes']:,} bytes in all; {found['releases_in_full']:,} releases are kept in full.")
    if chart is not None:
        draw([line for line in opened.history() if line["withdrawn"] is None], chart, force)
        speaker.say(f"Written: {chart}")
    speaker.result({title.lower(): lines, "bytes": found["bytes"]})


@store.command("retain")
def retain(
    releases: int = typer.Argument(..., help="How many of the newest releases to keep in full; 0 for all of them."),
    url: str = URL,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Keep so many releases in full, now and from now on; of older ones the masked table is dropped.

    These cannot be written again with release --again. What the guards and the audit ask of every release stays, so that both
    answer as before; it grows with what changes from one release to the next.

    Example: shoal store retain 12 --store sqlite:///registry.db
    """
    speaker = Speaker(as_json, quiet)
    opened = _open(url)
    count = opened.retain(releases or None)
    size = opened.status()["bytes"]
    speaker.say(f"{count:,} releases were compacted; the store has {size:,} bytes.")
    speaker.result({"compacted": count, "retention": opened.settings.retention, "bytes": size})


@store.command("status")
def status(url: str = URL, as_json: bool = JSON, quiet: bool = QUIET) -> None:
    """How the store is: records, classes, the last release and what its audit found, what waits, loss, size.

    Example: shoal store status --store sqlite:///registry.db --json
    """
    speaker = Speaker(as_json, quiet)
    found = _open(url).status()
    speaker.table("Store", ("what", "value"), [[name.replace("_", " "), value] for name, value in found.items()])
    speaker.result(found)


@store.command("metrics")
def metrics(url: str = URL) -> None:
    """The same as a text page that Prometheus can read.

    Example: shoal store metrics --store sqlite:///registry.db > /var/lib/node_exporter/shoal.prom
    """
    from datetime import datetime

    for name, value in _open(url).status().items():
        if name == "last_release":
            name, value = "last_release_seconds", None if value is None else datetime.fromisoformat(value).timestamp()
        if value is not None:
            typer.echo(f"# TYPE shoal_store_{name} gauge\nshoal_store_{name} {float(value):.15g}")


@store.command("audit")
def audit(url: str = URL, as_json: bool = JSON, quiet: bool = QUIET) -> None:
    """Attack all releases together: intersection, difference, tracing. Exit code 1 says what is exposed, or not decided.

    Example: shoal store audit --store sqlite:///registry.db
    """
    speaker = Speaker(as_json, quiet)
    with speaker.progress("comparing") as progress:
        found = _open(url).audit(progress=progress)
    for sentence in found.findings:
        speaker.say(str(sentence))
    if found.undecided:
        speaker.say(f"About {found.undecided:,} records it could not be decided within the budget.")
    if found.safe:
        speaker.say("Comparing the releases with each other exposes nobody.")
    speaker.result(found.to_dict())
    found.require()


@store.command("withdraw")
def withdraw(url: str = URL, never_handed_out: bool = NEVER, as_json: bool = JSON, quiet: bool = QUIET) -> None:
    """Take back the last release, which nobody has: the next one is made as if it had never been.

    If anybody has it, leave it: whoever can lay it beside later releases learns what these were not made to hide from them.
    Delete its file; the store does not know where it is.

    Example: shoal store withdraw --store sqlite:///registry.db --never-handed-out
    """
    speaker = Speaker(as_json, quiet)
    done = _open(url).withdraw(never_handed_out=never_handed_out)
    after = "no release is left" if done.last is None else f"the next one follows release {done.last}"
    speaker.say(f"Release {done.number} is withdrawn, and {after}. Delete its file: nobody may have it.")
    speaker.result(done.to_dict())


@store.command("undo")
def undo(url: str = URL, dry_run: bool = DRY, as_json: bool = JSON, quiet: bool = QUIET) -> None:
    """Take back the last batch. Only the last one; releases that were made of it stay published.

    Example: shoal store undo --store sqlite:///registry.db
    """
    speaker = Speaker(as_json, quiet)
    with speaker.progress("taking back") as progress:
        done = _open(url).undo(progress=progress, dry_run=dry_run)
    speaker.say(f"Taken back{f': {done.batch}' if done.batch else ''}. The store has {done.records:,} records again.")
    foresee(done.prospect, speaker)
    speaker.result(done.to_dict())


@store.command("renew")
def renew(url: str = URL, as_json: bool = JSON, quiet: bool = QUIET) -> None:
    """Anonymize the whole table anew: worth it when the loss has risen, which insert, update and delete will say.

    Under batching what was published stays together; the next release cuts it finer where it may, or renew says that it cannot.

    Example: shoal store renew --store sqlite:///registry.db
    """
    speaker = Speaker(as_json, quiet)
    opened = _open(url)
    with speaker.progress("anonymizing") as progress:
        done = opened.renew(progress=progress)
    tell(done, speaker)


@store.command("check")
def check(url: str = URL, as_json: bool = JSON, quiet: bool = QUIET) -> None:
    """Prove what the store promises: every record in one class, the policy in every class, releases as their manifests say.

    Example: shoal store check --store sqlite:///registry.db
    """
    speaker = Speaker(as_json, quiet)
    with speaker.progress("checking") as progress:
        found = _open(url).check(progress=progress)
    speaker.say(
        f"Version {found.version}: {found.records:,} records in {found.classes:,} classes, {found.releases:,} releases; "
        + ("everything is as it should be." if found.passed else f"{len(found.problems)} problems.")
    )
    for problem in found.problems:
        speaker.say(problem)
    speaker.result(found.to_dict())
    found.require()


@store.command("watch")
def watch(
    folder: Path = typer.Argument(..., help="Where batches arrive as files."),
    url: str = URL,
    kind: str = typer.Option("auto", "--as", help="insert, update, delete, upsert, or auto: by the file's name."),
    done: Path | None = typer.Option(None, "--done", help="Move files that were applied into this folder."),
    once: bool = typer.Option(False, "--once", help="Take what is there, then stop."),
    interval: float = typer.Option(2.0, "--interval", min=0.05, help="Seconds between two looks."),
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Apply the files of a folder as they arrive, in the order of their names, each once.

    A file whose name begins with insert, update or delete is that; any other updates the keys that are known and inserts
    the rest. A file is taken only when two looks find it unchanged, so that one still being written waits.

    Example: shoal store watch inbox --store sqlite:///registry.db --done applied
    """
    from shoal.errors import ConfigError, InputError, did_you_mean
    from shoal.evolve.store.watch import watch as look

    speaker = Speaker(as_json, quiet)
    kinds = ("auto", "insert", "update", "delete", "upsert")
    if kind not in kinds:
        raise ConfigError(f"--as {kind}: no such kind of batch; {did_you_mean(kind, kinds)}")
    chosen: Any = kind
    refused = []
    for taken in look(_open(url), folder, kind=chosen, once=once, interval=interval, done=done):
        if taken.applied is not None:
            speaker.say(f"{taken.path.name}:")
            tell(taken.applied, speaker, {"file": str(taken.path)})
        else:
            refused.append(taken)
            Speaker(True, False).say(f"{taken.path.name} was not applied: {taken.problem}")
    if refused:
        raise InputError(f"{len(refused)} files were not applied, among them '{refused[0].path}': {refused[0].problem}")


@store.command("sync")
def sync(
    source: str = typer.Option(..., "--from", help="The database to read: sqlite:///… or postgresql://…"),
    table: str = typer.Option(..., "--table", "-t", help="Its table or view, with the key column."),
    url: str = URL,
    since: str = typer.Option(
        "auto", "--since", help="auto: from where it was left; all: the whole table; or a value."
    ),
    column: str | None = typer.Option(
        None, "--column", help="The column that grows with every change; updated_at, version and such are found."
    ),
    deleted: str | None = typer.Option(None, "--deleted", help="A column that says that a row is deleted."),
    overlap: float | None = typer.Option(
        None,
        "--overlap",
        min=0,
        help="Read so many seconds or versions before the mark again; PostgreSQL tables need none.",
    ),
    dry_run: bool = DRY,
    as_json: bool = JSON,
    quiet: bool = QUIET,
) -> None:
    """Bring the store up to a table of another database: a nightly job in one line.

    Rows that are newer than the last ones seen are inserted or updated, as one batch. With --since all the whole table is
    read, and records that it does not have any more are deleted.

    Example: shoal store sync --store sqlite:///registry.db --from postgresql://reader@host/clinic --table admissions
    """
    from shoal.evolve.store.sync import sync as follow

    speaker = Speaker(as_json, quiet)
    with speaker.progress("following") as progress:
        found = follow(
            _open(url),
            source,
            table,
            since=since,
            column=column,
            deleted=deleted,
            overlap=overlap,
            progress=progress,
            dry_run=dry_run,
        )
    speaker.say(f"{found.read:,} rows read from '{table}', up to {found.mark}.")
    if found.applied is not None:
        tell(found.applied, Speaker(False, quiet or as_json))
    speaker.result(found.to_dict())


def _open(url: str) -> Store:
    from shoal.evolve.store.store import Store

    return Store.open(url)
