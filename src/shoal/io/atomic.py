"""Outputs appear whole or not at all: written beside their place under a hidden name, synced, then renamed."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.errors import ConfigError, InputError
from shoal.progress import Progress


@contextmanager
def atomic_path(path: str | Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary path to write to; it becomes `path` when the block ends without an error."""
    with atomic_paths(path, force=force) as (temporary,):
        yield temporary


@contextmanager
def atomic_paths(
    main: str | Path, *companions: str | Path, force: bool = False, progress: Progress | None = None
) -> Iterator[tuple[Path, ...]]:
    """Publish several files together: yield one temporary path for each, in the order given.

    The companions are renamed first and `main` last, so whoever finds the main file finds all of them.
    Any failure, an interrupt included, leaves none of the temporary files behind. `progress` can be cancelled until the
    first file is renamed, and not afterwards.
    """
    # A link is never followed: whoever put it there would choose which file is overwritten.
    targets = [Path(os.path.realpath(Path(path).parent)) / Path(path).name for path in (main, *companions)]
    if len(set(targets)) < len(targets):
        raise ConfigError(f"'{main}' is named for two outputs at once: give each output its own path.")
    existed = [_check_target(target, force) for target in targets]
    temporaries: list[Path] = []
    published: list[Path] = []  # new companions, taken back if the main file does not follow
    try:
        for target in targets:
            temporaries.append(_create_beside(target))
        yield tuple(temporaries)
        for temporary in temporaries:
            _sync_file(temporary)
        Progress.of(progress).seal()
        for position in [*range(1, len(targets)), 0]:
            target = targets[position]
            _check_target(target, force)
            if existed[position]:
                # The new file is no more readable to others than the one it replaces.
                shutil.copymode(target, temporaries[position])
            temporaries[position].replace(target)
            if position == 0:
                published.clear()
            elif not existed[position]:
                published.append(target)
        for folder in sorted({target.parent for target in targets}):
            _sync_folder(folder)
    except BaseException as error:
        for left in [*temporaries, *published]:
            left.unlink(missing_ok=True)
        explained = _explain(error, targets, temporaries)
        if explained is None:
            raise
        raise explained from error


def atomic_write_text(path: str | Path, text: str, *, force: bool = False) -> None:
    """Write `text` as UTF-8 with plain newlines, all of it or nothing."""
    atomic_write_bytes(path, text.encode("utf-8"), force=force)


def atomic_write_bytes(path: str | Path, data: bytes, *, force: bool = False) -> None:
    """Write `data`, all of it or nothing."""
    with atomic_path(path, force=force) as temporary:
        temporary.write_bytes(data)


def _check_target(target: Path, force: bool) -> bool:
    """Whether the target is there already; an error when it may not be (over)written."""
    try:
        target.is_dir()
    except OSError as error:
        raise _sentence(error.errno or 0, target) or error from error
    if target.is_symlink():
        raise InputError(
            f"'{target}' is a symbolic link, which outputs do not follow: remove it, or name the file itself."
        )
    if target.is_dir():
        raise InputError(f"'{target}' is a folder: give the name of a file inside it.")
    if target.exists() and not target.is_file():
        raise InputError(f"'{target}' is not a regular file: choose another output path.")
    if target.exists() and not force:
        raise InputError(f"'{target}' already exists: choose another name, or use force to overwrite it.")
    if not target.parent.is_dir():
        raise InputError(f"cannot write '{target}': the folder '{target.parent}' does not exist; create it.")
    return target.exists()


def _create_beside(target: Path) -> Path:
    """An empty hidden file in the target's folder; made early, so that a closed folder shows before the work."""
    suffix = "".join(target.suffixes[-2:])
    if len(suffix) > 20:
        suffix = target.suffix[:20]
    temporary = target.parent / f".shoal-{secrets.token_hex(8)}{suffix}"
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except OSError as error:
        raise _sentence(error.errno or 0, target) or error from error
    os.close(descriptor)
    return temporary


def _sync_file(path: Path) -> None:
    with path.open("r+b") as handle:
        os.fsync(handle.fileno())


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows cannot open a folder to sync it
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network and overlay file systems refuse to sync a folder; the rename itself stands.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(descriptor)


def _explain(error: BaseException, targets: list[Path], temporaries: list[Path]) -> InputError | None:
    """The sentence for a failure to write, or nothing when the error is about something else."""
    code = error.errno if isinstance(error, OSError) else None
    if code is None and isinstance(error, Exception) and not isinstance(error, InputError):
        # Polars reports some failures of the system as text only.
        found = re.search(r"\(os error (\d+)\)", str(error))
        code = int(found.group(1)) if found else None
    if code is None:
        return None
    named = getattr(error, "filename", None)
    ours = {str(path): target for path, target in zip([*temporaries, *targets], [*targets, *targets], strict=False)}
    if named is not None and str(named) not in ours:
        return None
    return _sentence(code, ours.get(str(named), targets[0]))


def _sentence(code: int, target: Path) -> InputError | None:
    if code in (errno.ENOSPC, errno.EDQUOT):
        reason = "the disk is full; free some space or write to another place"
    elif code == errno.EFBIG:
        reason = "the file grows larger than this system allows; write to another place"
    elif code in (errno.EACCES, errno.EPERM):
        reason = f"no permission to write in '{target.parent}'; change it or choose another folder"
    elif code == errno.EROFS:
        reason = f"'{target.parent}' is read-only; choose another folder"
    elif code == errno.ENAMETOOLONG:
        reason = "its name is too long; choose a shorter one"
    elif code in (errno.ENOENT, errno.ENOTDIR):
        reason = f"the folder '{target.parent}' does not exist; create it"
    elif code == errno.EIO:
        reason = "the device reports an error; write to another place"
    else:
        return None
    return InputError(f"cannot write '{target}': {reason}; nothing was written.")
