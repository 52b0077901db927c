"""The compiled loops. The only room that imports numba; nobody imports it at the top of a module.

Compiled code is kept on disk. Numba's own cache does not notice when a function that a kernel calls changes in another file,
so the folder is named after all the sources that go into it.
"""

from __future__ import annotations

import gc
import hashlib
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
from numba.core import config, event

from shoal.errors import ConfigError
from shoal.kernels.keeping import drop_unused

HERE = Path(__file__).parent
# Constants of these are compiled in as well.
OTHERS = ("exact.py", "space.py", "policy.py", "models/base.py", "models/forms.py")


class _Undisturbed(event.Listener):
    """No garbage is collected while something compiles: what Numba makes is kept, and to look through it again and again takes
    a tenth of the time.
    """

    def __init__(self) -> None:
        self.depth, self.collecting = 0, False

    def on_start(self, event: event.Event) -> None:
        """The outermost function begins; Numba lets one thread compile at a time."""
        if self.depth == 0:
            self.collecting = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        """It is done, or has failed."""
        self.depth -= 1
        if self.depth == 0 and self.collecting:
            gc.enable()


def cache_folder() -> Path:
    """Where the code compiled from these very sources is kept, in the user's cache."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for path in [*sorted(HERE.glob("*.py")), *(HERE.parent / name for name in OTHERS)]:
        digest.update(path.name.encode() + b"\x00" + path.read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "shoal" / f"kernels-{digest.hexdigest()[:16]}"


def kept_in() -> Path:
    """Where Numba keeps compiled code now: our folder, or the one the user chose."""
    return Path(config.CACHE_DIR or cache_folder())  # type: ignore[attr-defined]


def compiled() -> list[Path]:
    """The kernels that are compiled already, a file each; in a folder that others use too, those of these sources alone."""
    return sorted(kept_in().glob(f"{HERE.name}_*/*.nbi"))


def is_cold() -> bool:
    """Whether nothing has been compiled yet, so that a first use will take a while."""
    return not compiled()


def ready() -> None:
    """Load what every kernel needs before it can be called: otherwise the first call does, and everybody waits for it."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    with global_compiler_lock:
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()


def _require_own(folder: Path) -> None:
    """Whoever can write to the folder decides what runs in this process, with the table in its hands."""
    if os.name != "posix" or not folder.exists():
        return
    found = folder.stat()
    if found.st_mode & 0o022 or found.st_uid not in (os.getuid(), 0):
        raise ConfigError(
            f"The folder of compiled code '{folder}' can be written by others, who could put code of theirs there: remove it, or "
            f"make it yours alone (chmod go-w), or name another with XDG_CACHE_HOME."
        )


def _keep_compiled_code() -> None:
    """Point Numba to our folder, unless the user chose one; a home that cannot be written leaves Numba to its own ways."""
    if config.CACHE_DIR:  # type: ignore[attr-defined]
        _require_own(Path(config.CACHE_DIR))  # type: ignore[attr-defined]
        return
    folder = cache_folder()
    try:
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        is_new = not folder.exists()
        for place in (folder.parent, folder):
            place.mkdir(mode=0o700, exist_ok=True)
            _require_own(place)
        os.utime(folder)
    except OSError:
        return
    config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
    if is_new:
        drop_unused(folder)


def _leave_linear_algebra() -> None:
    """Numba asks whether SciPy has a BLAS by importing all of its linear algebra, a third of what a process waits for.

    SciPy has one. No loop here calls it; where a loop of somebody else's does, Numba imports it then.
    """
    from numba.np import linalg

    asking = getattr(linalg, "ensure_blas", None)
    if asking is None:
        return
    linalg.ensure_blas = lambda: None
    try:
        arraymath: Any = import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = asking
    arraymath.ensure_blas = asking


_keep_compiled_code()
_leave_linear_algebra()
event.register("numba:compile", _Undisturbed())  # type: ignore[no-untyped-call]
