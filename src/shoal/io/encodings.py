"""Which encoding a text file has that is not UTF-8 and does not say: a guess from its bytes, made the same way every time.

Western letters (cp1252) unless the bytes speak against it: signs between letters that no Western word has (Polish and its
neighbours, cp1250), words of nothing but letters beyond ASCII (Cyrillic, cp1251), or pairs of bytes as Japanese programs write
them. Czech and Greek cannot be told from these by bytes alone; whoever knows better says it with `encoding`.

>>> guessed("udział;śląskie".encode("cp1250")), guessed("Größe;Straße".encode("cp1252")), guessed("Москва".encode("cp1251"))
('cp1250', 'cp1252', 'cp1251')
"""

from __future__ import annotations

import re

from shoal.errors import InputError

SAMPLE = 1 << 20  # bytes that are looked at
# ¹ ³ ¿ £ ¥ ¯ Ÿ within a word: none of the West, and ą ł ż Ł Ą Ż ź in Central Europe; z³ is złoty.
_CENTRAL = re.compile(
    rb"[A-Za-z][\xb9\xb3\xbf\xa3\xa5\xaf][a-z]|[a-z]{3}\xb3|[a-z]\x9f[a-z]|(?<![A-Za-z])z\xb3(?![A-Za-z])"
)
_CYRILLIC = re.compile(rb"(?<![\x80-\xff])[\xc0-\xff]{4,}(?![\x80-\xff])")
_MANY = 0.5  # of all bytes beyond ASCII
# Bytes that begin a Japanese character and hardly ever stand in Western text.
_JAPANESE = re.compile(rb"[\x81-\x84\x86-\x90\x98\x9a-\x9d][\x40-\x7e\x80-\xfc]")
# Some of them are letters or quotes of Central Europe (ś is 9c); these are not, and hardly any Japanese text has none of them.
_KANA = re.compile(rb"[\x81-\x83\x88\x90\x98][\x40-\x7e\x80-\xfc]")


def guessed(data: bytes) -> str:
    """The encoding of bytes that are no UTF-8; one that reads all of them."""
    sample = data[:SAMPLE]
    beyond = len(re.findall(rb"[\x80-\xff]", sample))
    if _KANA.search(sample) and _many(_JAPANESE, sample, beyond) and _reads(data, "shift_jis"):
        return "shift_jis"
    if _many(_CYRILLIC, sample, beyond) and _reads(data, "cp1251"):
        return "cp1251"
    if _CENTRAL.search(sample) and _reads(data, "cp1250"):
        return "cp1250"
    # cp1252 leaves five bytes undefined; latin-1 defines all, so that the fallback never fails.
    return "latin-1" if re.search(rb"[\x81\x8d\x8f\x90\x9d]", data) else "cp1252"


def _many(form: re.Pattern[bytes], sample: bytes, beyond: int) -> bool:
    """Whether what a pattern finds makes up most of the bytes beyond ASCII."""
    return beyond > 0 and sum(len(found) for found in form.findall(sample)) >= _MANY * beyond


def _reads(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def check_is_text(data: bytes, label: str) -> None:
    """An error for what begins as files of other kinds do."""
    for magic, kind in ((b"PK\x03\x04", ".xlsx or a zip archive"), (b"PAR1", ".parquet"), (b"ARROW1", ".arrow")):
        if data.startswith(magic):
            raise InputError(f"{label} is not text but {kind}: rename or unpack it.")
    if data.startswith(b"\x1f\x8b"):
        raise InputError(f"{label} is packed with gzip: rename it so that it ends in .gz.")
