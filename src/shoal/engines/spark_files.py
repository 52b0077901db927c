"""Where Spark stages a table: a folder of its own on any file system that Spark reaches, seen through Hadoop's interface.

The folder is its owner's alone until its table has been verified. Then it is renamed, which is the moment at which the release
appears; what a crash leaves is a folder with a hidden name and no release.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.errors import InputError, VerificationError

PREFIX = ".shoal-spark-"
_PART = re.compile(r"part-\d{5,}\.(parquet|csv|tsv)")
_WRITTEN = re.compile(r"part-(\d{5,})-.*\.(parquet|txt)")


def absolute(place: str | Path) -> str:
    """A path as Spark is told it: one that begins nowhere begins in the folder of this process, and not in that of Java."""
    return str(place) if ":/" in str(place) else str(Path(place).absolute())


class Files:
    """The file system of a place, through the session's Java machine."""

    def __init__(self, session: Any, place: str) -> None:
        self._session, self._jvm = session, session._jvm
        self._conf = session._jsc.hadoopConfiguration()
        self.place = self._qualified(place)

    def _path(self, text: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(text)

    def _system(self, path: Any) -> Any:
        system = path.getFileSystem(self._conf)
        # The plain local file system, which shows and writes no files of checksums.
        return system.getRawFileSystem() if system.getScheme() == "file" else system

    def _qualified(self, text: str) -> str:
        path = self._path(text)
        return str(self._system(path).makeQualified(path).toString())

    def exists(self, text: str) -> bool:
        """Whether something is there."""
        path = self._path(text)
        return bool(self._system(path).exists(path))

    def new_folder(self) -> str:
        """A folder at this place that only its owner can read."""
        folder = f"{self.place.rstrip('/')}/{PREFIX}{secrets.token_hex(8)}"
        path = self._path(folder)
        only = self._jvm.org.apache.hadoop.fs.permission.FsPermission("700")
        if not self._system(path).mkdirs(path, only):
            raise InputError(f"Spark cannot make a folder in '{self.place}'; name one that it may write to.")
        self._system(path).setPermission(path, only)
        return folder

    def names(self, folder: str) -> list[str]:
        """What lies in a folder."""
        path = self._path(folder)
        return sorted(str(one.getPath().getName()) for one in self._system(path).listStatus(path))

    def tidy(self, folder: str) -> None:
        """Give the files that Spark wrote names that tell nothing, and remove what is not part of the table."""
        path, ending = self._path(folder), folder.rpartition(".")[2]
        system = self._system(path)
        for name in self.names(folder):
            found = _WRITTEN.fullmatch(name)
            own = self._path(f"{folder}/{name}")
            if found is None:
                system.delete(own, True)
            elif not system.rename(own, self._path(f"{folder}/part-{found[1]}.{ending}")):
                raise InputError(f"Spark cannot rename files in '{self.place}'; name a place where it can.")

    def numbers(self, folder: str) -> list[int]:
        """Those of the files of a table."""
        return [int(name.partition("-")[2].partition(".")[0]) for name in self.names(folder)]

    def require_plain(self, folder: str) -> None:
        """Nothing but the table's files may lie in the folder: all of it becomes public."""
        for name in self.names(folder):
            if _PART.fullmatch(name) is None:
                raise VerificationError("A file was put beside the staged table; nothing was released.")

    def holds(self, target: str) -> bool:
        """Whether a path lies right at this place, where a rename is one step."""
        return self._qualified(target).rpartition("/")[0] == self.place.rstrip("/")

    def copied(self, folder: str, target: str) -> str:
        """A copy of a folder, in a hidden folder of its own beside a target."""
        beside = Files(self._session, self._qualified(target).rpartition("/")[0])
        ready = f"{beside.new_folder()}/{folder.rpartition('/')[2]}"
        for name in self.names(folder):
            source, goal = self._path(f"{folder}/{name}"), self._path(f"{ready}/{name}")
            self._jvm.org.apache.hadoop.fs.FileUtil.copy(
                self._system(source), source, self._system(goal), goal, False, False, self._conf
            )
        return ready

    def require_free(self, names: Sequence[str], force: bool) -> list[str]:
        """Those of the names that something has already; without `force` none may."""
        there = [name for name in names if self.exists(name)]
        if there and not force:
            raise InputError(f"'{there[-1]}' already exists: choose another name, or use force to overwrite it.")
        return there

    def publish(
        self, folder: str, target: str, companions: Mapping[str, tuple[bytes, str]], aside: str, force: bool
    ) -> None:
        """Write small files and give a folder its name, all or none; what has the names already goes `aside` with `force`."""
        there = self.require_free((*companions, target), force)
        moved: list[tuple[str, str]] = []
        made: list[str] = []
        try:
            for i, name in enumerate(there):
                self.rename(name, f"{aside}/old{i}")
                moved.append((f"{aside}/old{i}", name))
            for name, (data, mode) in companions.items():
                made.append(name)
                self.write(name, data, mode=mode)
            self._open(folder)
            self.rename(folder, target)
        except BaseException:
            for name in made:
                self.remove(name)
            for place, name in moved:
                self.rename(place, name)
            raise

    def _open(self, folder: str) -> None:
        """Let others read a folder, as they may read any that is made."""
        path, permission = self._path(folder), self._jvm.org.apache.hadoop.fs.permission.FsPermission
        mode = permission.getDirDefault().applyUMask(permission.getUMask(self._conf))
        self._system(path).setPermission(path, mode)

    def rename(self, one: str, other: str) -> None:
        """Move a file or folder."""
        source = self._path(one)
        if not self._system(source).rename(source, self._path(other)):
            raise InputError(f"Spark cannot rename '{one}'; check that it may write there.")

    def write(self, text: str, data: bytes, *, mode: str = "644") -> None:
        """A new small file."""
        path = self._path(text)
        stream = self._system(path).create(path, True)
        try:
            self._system(path).setPermission(path, self._jvm.org.apache.hadoop.fs.permission.FsPermission(mode))
            stream.write(data)
        finally:
            stream.close()

    def remove(self, text: str) -> None:
        """Remove a file or folder, if it is there."""
        path = self._path(text)
        self._system(path).delete(path, True)
