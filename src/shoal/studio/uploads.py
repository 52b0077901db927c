"""Files that come in: streamed to the disk, bounded, readable by their owner only, under a name that is one."""

from __future__ import annotations

import os
import re
import secrets
import unicodedata
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from shoal.errors import InputError
from shoal.io.files import FORMATS

LONGEST_NAME = 80  # characters of a file's name that are kept; every file system takes more
FIELD, FIELDS = 10_000, 20
"""Bytes of a field beside the file, and how many of them there may be."""
UNPACKED, PACKED_TIGHT, SMALL = 2 << 30, 100, 64 << 20
"""What a packed file may grow to, how many times its size where that is more than little, and what is little."""
READ = (".csv", ".tsv", ".txt", ".xlsx", ".parquet", ".arrow", ".jsonl", ".sav", ".dta", ".sas7bdat", ".csv.gz")
"""Endings that a file dialogue offers; whatever `shoal init` reads is taken."""


class Upload(NamedTuple):
    """A file that came in, and the fields beside it."""

    path: Path
    fields: dict[str, str]


def safe_name(given: str) -> str:
    """The name of a file as it may stand in a folder: no folders, no controls, not hidden, with an ending that can be read.

    >>> safe_name("../../etc/Patients 2024.csv"), safe_name("<b>x</b>.xlsx")
    ('Patients 2024.csv', 'b.xlsx')
    """
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", given))[-1]
    plain = "".join(c if c.isalnum() or c in " ._-" else "_" for c in last).strip(" ._")
    plain = re.sub(r"_+", "_", plain)
    ending = "".join(Path(plain).suffixes[-2:]).lower()
    if not ending.endswith(".gz"):
        ending = Path(plain).suffix.lower()
    if ending.removesuffix(".gz") not in FORMATS:
        raise InputError(
            "The studio cannot tell from its name what kind of table this is; it reads files that end in "
            f"{', '.join(READ[:-1])} or {READ[-1]}."
        )
    stem = plain[: -len(ending)].strip(" ._")[: LONGEST_NAME - len(ending)]
    return f"{stem or 'table'}{ending}"


def free_name(folder: Path, name: str) -> Path:
    """A path in the folder that nothing has yet."""
    stem, ending = name.partition(".")[::2]
    path, number = folder / name, 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}.{ending}"
    return path


async def receive(request: Any, folder: Path) -> Upload:
    """The file of a multipart form, written to the folder while it comes."""
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import MultipartParser, parse_options_header

    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 1 <= len(boundary) <= 200:
        raise InputError("No file was sent; choose one, and send it again.")
    taken = _Taken(folder, parse_options_header)
    try:
        parser = MultipartParser(boundary, taken.callbacks)
        async for piece in request.stream():
            parser.write(piece)
        parser.finalize()
        return taken.done()
    except (FormParserError, UnicodeDecodeError, ValueError) as problem:
        raise InputError("The file did not come whole; send it again.") from problem
    finally:
        taken.clean()


class _Taken:
    """What the parts of a form become while they come."""

    def __init__(self, folder: Path, options: Any) -> None:
        self.folder, self.options = folder, options
        self.temporary = folder / f".shoal-{secrets.token_hex(8)}"
        self.file: int | None = None
        self.name: str | None = None
        self.fields: dict[str, bytes] = {}
        self.header, self.value, self.about = b"", b"", b""
        self.field: str | None = None
        self.whole = False

    @property
    def callbacks(self) -> Any:
        return {
            "on_part_begin": self.begin,
            "on_header_field": self.header_field,
            "on_header_value": self.header_value,
            "on_header_end": self.header_end,
            "on_headers_finished": self.opened,
            "on_part_data": self.data,
            "on_end": self.ended,
        }

    def ended(self) -> None:
        self.whole = True

    def begin(self) -> None:
        self.header, self.value, self.about, self.field = b"", b"", b"", None

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self.header += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self.value += data[start:end]
        if len(self.value) > FIELD:
            raise ValueError("a header that is too long")

    def header_end(self) -> None:
        if self.header.lower() == b"content-disposition":
            self.about = self.value
        self.header, self.value = b"", b""

    def opened(self) -> None:
        """A part begins: the file, or a field."""
        _, options = self.options(self.about)
        name = options.get(b"name", b"").decode("utf-8")
        if b"filename" not in options:
            self.field = name
            self.fields.setdefault(name, b"")
            if len(self.fields) > FIELDS:
                raise ValueError("too many fields")
            return
        if self.name is not None:
            raise ValueError("two files")
        self.name = safe_name(options[b"filename"].decode("utf-8"))
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.file = os.open(self.temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)

    def data(self, data: bytes, start: int, end: int) -> None:
        if self.field is not None:
            self.fields[self.field] += data[start:end]
            if len(self.fields[self.field]) > FIELD:
                raise ValueError("a field that is too long")
        elif self.file is not None:
            view = memoryview(data)[start:end]
            while view:
                view = view[os.write(self.file, view) :]

    def done(self) -> Upload:
        """The file under its name."""
        if not self.whole:
            raise ValueError("a form without its end")
        if self.name is None or self.file is None:
            raise InputError("No file was sent; choose one, and send it again.")
        os.close(self.file)
        self.file = None
        require_modest(self.temporary, self.name)
        path = free_name(self.folder, self.name)
        self.temporary.rename(path)
        return Upload(path, {key: value.decode("utf-8") for key, value in self.fields.items()})

    def clean(self) -> None:
        """Nothing is left of what did not come whole."""
        if self.file is not None:
            os.close(self.file)
        self.temporary.unlink(missing_ok=True)


def require_modest(path: Path, name: str) -> None:
    """Refuse a packed file that would grow beyond all measure, whatever it says of itself."""
    if name.endswith(".xlsx"):
        _require_modest_archive(path, name)
    elif name.endswith(".gz"):
        with path.open("rb") as handle:
            _require_modest_stream(handle, path.stat().st_size, zlib.decompressobj(31), 0, name)


def _require_modest_archive(path: Path, name: str) -> None:
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as handle:
            grown = 0
            for entry in archive.infolist():
                handle.seek(entry.header_offset)
                head = handle.read(30)
                handle.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
                if entry.compress_type == zipfile.ZIP_DEFLATED:
                    grown = _require_modest_stream(handle, path.stat().st_size, zlib.decompressobj(-15), grown, name)
                else:
                    grown += entry.file_size
                    _require_modest_size(grown, path.stat().st_size, name)
    except (zipfile.BadZipFile, OSError, ValueError) as problem:
        raise InputError(f"'{name}' is no Excel file, or it is damaged; save it again as .xlsx.") from problem


def _require_modest_stream(handle: Any, packed: int, unpacking: Any, grown: int, name: str) -> int:
    """What the stream grows to, beside what has grown already; refused as soon as it is too much."""
    try:
        while not unpacking.eof:
            piece = unpacking.unconsumed_tail or handle.read(1 << 16)
            if not piece:
                break
            grown += len(unpacking.decompress(piece, 1 << 22))
            _require_modest_size(grown, packed, name)
    except zlib.error as problem:
        raise InputError(f"'{name}' is damaged: it cannot be unpacked; save or pack it again.") from problem
    return grown


def _require_modest_size(grown: int, packed: int, name: str) -> None:
    if grown > UNPACKED or (grown > SMALL and grown > PACKED_TIGHT * packed):
        raise InputError(
            f"'{name}' would grow to more than {grown >> 20:,} MB out of {max(1, packed >> 10):,} kB: such files are made to "
            "fill a machine; save the table as .csv or .parquet."
        )
