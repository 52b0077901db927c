"""What a reader takes for the same value, however it is spelled.

`flu`, `Flu`, `ﬂu`, ` flu`, `fl​u` with a zero-width space inside and `fІu` with a Cyrillic letter are one illness to whoever
looks at a table; counted as six they make a class look diverse that is not. Every value gets two keys: its letters in
lower case, and its letters as they look (capitals that look like others first). Values that share a key are alike. Numbers
and dates are compared by what they say: `34`, `34.0`, `+34` and `3.4e1`.

The tables below cover what Latin, Greek and Cyrillic letters can be mistaken for; they are cautious in one direction: values that
are joined and should not have been cost diversity, never secrecy.

>>> alike(["flu", "Flu ", "ﬂu", "cold", "NA", "34", "34.0"])
[[0, 1, 2], [3], [5, 6]]
>>> means_missing(["NA", "n/a", "-", "none", "flu"])
[True, True, True, False, False]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import polars as pl

MISSING_WORDS = frozenset(
    ["", "na", "n/a", "n.a", "#n/a", "#na", "<na>", "nan", "nat", "null", "nil", "(null)", "<null>", "\\n"]
) | frozenset(["missing", "unknown", "not available", "not known", "?", "??", "???", "*", "**", "***"])
MISSING_WORDS |= {"-", "--", "---", "∅", "…", "...", "#", "-nan", "1.#qnan", "1.#ind", "-1.#ind"}
# What spreadsheets show where a formula failed, without the mark at the end.
MISSING_WORDS |= {"#null", "#value", "#ref", "#div/0", "#name", "#num", "#error"}
_ABSENT = (
    "missing value; value missing; not applicable; undefined; unspecified; not specified; not stated; not recorded; "
    "not reported; not given; "
    "not answered; no answer; no data; no value; blank; empty; tbd; unk; suppressed; redacted; masked; withheld; "
    "unbekannt; keine angabe; keine angaben; k.a; fehlt; inconnu; inconnue; non renseigné; desconocido; desconocida; "
    "sconosciuto; onbekend"
)
MISSING_WORDS |= frozenset(word.strip() for word in _ABSENT.split(";"))
"""Spellings of missing, as `means_missing` compares them. `none` is none of them: it may well be an answer."""

# What people write where they have nothing to write, beside the spellings above; in a column of its own each may be an answer.
_NOTHING = (
    "unbekannt; nicht bekannt; keine angabe; keine angaben; k. a; k.a; ka; o. a; o.a; ohne angabe; fehlt; fehlend; weiß nicht; "
    "weiss nicht; entfällt; nicht erhoben; inconnu; inconnue; non renseigné; non renseignée; non communiqué; nr; n.r; nsp; "
    "manquant; desconocido; desconocida; no sabe; sin dato; sin datos; s/d; ns/nc; sconosciuto; non disponibile; n.d; nd; "
    "onbekend; okänd; nieznany; brak danych; not stated; not reported; not recorded; not applicable; don't know; dont know; dk; "
    "do not know; refused; refuse to answer; no answer; no response; not answered; not asked; prefer not to say; undefined; "
    "unspecified; not specified; no data; not measured; not done; verweigert; verweigert die angabe; keine antwort; ukn; unk; "
    "unbek; unb; n.b; nicht erfasst; keine daten; ohne wert; leer; blank; n.v.t; not provided; not collected; not documented; "
    "not given; declined; declined to answer; decline to state; inconnus; s/o; sans objet; n/s; n/c; n.c; n.s; ne sait pas; "
    "non précisé; non précisée; non disponible; sans réponse; non spécifié; ns/nr; no responde; no contesta; sin información; "
    "no consta; ignorado; ignorada; não informado; não informada; não sabe; sem informação; sem dados; não declarado; "
    "non noto; ignoto; non rilevato; non dichiarato; non so; niet bekend; geen antwoord; weet niet; uppgift saknas; okänt; "
    "vet ej; ukjent; ukendt; vet ikke; ved ikke; ikke oplyst; ikke oppgitt; brak; nieznane; nieznana; nie wiem; brak odpowiedzi; "
    "不明; 無回答; 未回答; 未知; 不详; 不詳; 미상; 모름; неизвестно; нет данных; άγνωστο"
)
NOTHING_WORDS = MISSING_WORDS | frozenset(word.strip() for word in _NOTHING.split(";"))
"""Texts by which people say that they do not know; `says_nothing` compares with them. More than a policy takes for missing."""

# What cannot be seen: format characters, controls, fillers, variation selectors, characters that nobody has drawn, and strokes
# through letters. A Braille blank shows as a space.
_UNSEEN = (
    r"[\p{Cf}\p{Co}\p{Cn}\x{0335}-\x{0338}\x{034F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{FE00}-\x{FE0F}"
    r"\x{E0100}-\x{E01EF}]"
)
_CONTROLS = r"[\x00-\x08\x0E-\x1F\x7F-\x84\x86-\x9F]"
_SPACES = r"[\s\p{Z}\x{2800}_]+"
_QUOTES = "\"'`´‘’‚‛“”„‟«»‹›′″"
_DASHES = "‐‑‒–—―−⁃﹘﹣－ー"
# Writes what follows from right to left: "ulf" behind it is read as "flu".
_BACKWARDS = "\u202e"
# White letters on black, and those of flags: 26 in a row from each of these.
_PLAQUES = (0x1F150, 0x1F170, 0x1F1E6)
_MARKS = r"^[-.,;:?!*_#/\\|~…∅\s\"'()\[\]{}<>]+$"
_MONTHS = {
    "jan": 1, "feb": 2, "fév": 2, "mar": 3, "mär": 3, "apr": 4, "avr": 4, "may": 5, "mai": 5, "jun": 6, "jul": 7, "aug": 8,
    "sep": 9, "oct": 10, "okt": 10, "nov": 11, "dec": 12, "déc": 12, "dez": 12,
}  # fmt: skip

# Letters that look like Latin ones in lower case …
_LOWER = {
    "a": "аαɑ⍺ᴀ", "b": "ƅьᖯʙ", "c": "сϲᴄⲥ", "d": "ԁɖᴅ", "e": "еεҽєᴇ℮", "f": "ꜰƒẝ", "g": "ɡɢցǥ", "h": "һհʜ",
    "i": "іιıɩɪ⍳ӏı", "j": "јϳյᴊȷ", "k": "кκᴋĸ", "l": "ʟǀ|∣ⅼاⵏ", "m": "мᴍ", "n": "ηոռɴп∩", "o": "оοσօᴏഠⲟ", "p": "рρᴘϱ",
    "q": "ԛզգ", "r": "гᴦʀꭇ", "s": "ѕꜱƽ", "t": "тτᴛ", "u": "υսᴜʋц∪⊔", "v": "νѵᴠ∨", "w": "ωԝѡᴡɯ", "x": "хχ×ⅹ",
    "y": "уγʏүყ", "z": "ᴢʐ", "ë": "ё", "ï": "ї", "3": "зʒӡ", "6": "б",
}  # fmt: skip
# … and in capitals, whose own small letters look different.
_UPPER = {
    "A": "АΑᎪꓮ", "B": "ВΒᏴꓐ", "C": "СϹᏟꓚ", "D": "ᎠꓓԀ", "E": "ЕΕᎬꓰ", "F": "Ϝꓝ", "G": "ᏀꓖԌ", "H": "НΗᎻꓧ", "I": "ІΙӀꓲ",
    "J": "ЈᎫꓙͿ", "K": "КΚᏦꓗ", "L": "ᏞꓡԼ", "M": "МΜᎷꓟϺ", "N": "ΝꓠՈ", "O": "ОΟՕꓳ", "P": "РΡᏢꓑ", "Q": "Ԛ", "R": "ᎡꓣƦ",
    "S": "ЅᏚꓢՏ", "T": "ТΤᎢꓔ", "U": "Սꓴ", "V": "ѴᏙꓦ", "W": "ԜᎳꓪ", "X": "ХΧꓫ", "Y": "УΥҮᎩꓬ", "Z": "ΖᏃꓜ", "3": "ЗӠƷ",
}  # fmt: skip
# The zeros of the other scripts' decimal digits; nine more follow each.
_ZEROS = (
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20, 0x1040,
    0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0,
    0xA9F0, 0xAA50, 0xABF0,
)  # fmt: skip


def alike(values: Sequence[str]) -> list[list[int]]:
    """Positions of the values that a reader takes for one, group by group; those that mean missing are in none."""
    if not len(values):
        return []
    keys = _keys(pl.Series(values, dtype=pl.String))
    known = [row for row, key in enumerate(keys["case"]) if key not in MISSING_WORDS]
    pairs = pl.concat([keys.select("row", key=name) for name in ("case", "look")]).unique(maintain_order=True)
    shared = pairs.group_by("key", maintain_order=True).agg("row").filter(pl.col("row").list.len() > 1)
    above = list(range(len(values)))

    def top(row: int) -> int:
        while above[row] != row:
            above[row] = above[above[row]]
            row = above[row]
        return row

    for rows in shared["row"].to_list():
        first = top(rows[0])
        for row in rows[1:]:
            above[max(first, top(row))] = first = min(first, top(row))
    groups: dict[int, list[int]] = {}
    for row in known:
        groups.setdefault(top(row), []).append(row)
    return list(groups.values())


def looks_of(values: Sequence[str]) -> list[str]:
    """Each text as it looks: equal for texts that nobody tells apart."""
    return _keys(pl.Series(values, dtype=pl.String))["look"].to_list()


def means_missing(values: Sequence[str]) -> list[bool]:
    """Which texts say that there is no value."""
    return [key in MISSING_WORDS for key in _words(values)]


def says_nothing(values: Sequence[str]) -> list[bool]:
    """Which texts are how people say, in several languages, that there is no value or that they do not know it.

    >>> says_nothing(["k.A.", "unbekannt", "Don't know", "Неизвестно", "none"])
    [True, True, True, True, False]
    """
    nothing = _nothing()
    return [key in nothing for key in _words(values)]


@cache
def _nothing() -> frozenset[str]:
    """The words for nothing as texts are read: letters of other alphabets as the Latin ones that they look like."""
    return frozenset(_words(sorted(NOTHING_WORDS)))


def trimmed(text: pl.Expr) -> pl.Expr:
    """Without what cannot be seen, and without spaces of any kind around it."""
    seen = text.str.replace_all(_UNSEEN, "").str.replace_all(_CONTROLS, "")
    return seen.str.replace_all(r"^[\s\p{Z}\x{2800}]+|[\s\p{Z}\x{2800}]+$", "")


def _words(values: Sequence[str]) -> pl.Series:
    """Each value as it reads whatever the case; numbers and dates, which no word is, as they come."""
    cleaned, word = _reading()
    return pl.Series("text", values, dtype=pl.String).to_frame().select(cleaned).select(word)["text"]


@cache
def _reading() -> tuple[pl.Expr, pl.Expr]:
    """What is done to a text, and how what is left of it reads, put together once."""
    text = pl.col("text")
    return _cleaned(text).alias("text"), _listed(_lowered(text))


def _keys(values: pl.Series) -> pl.DataFrame:
    """Two keys a value: as it reads whatever the case (`case`), and as it looks (`look`)."""
    cleaned, said, case, look = _steps()
    plain = values.alias("text").to_frame().with_row_index("row").with_columns(cleaned)
    return plain.select("row", "text", said).select("row", case, look)


@cache
def _steps() -> tuple[pl.Expr, pl.Expr, pl.Expr, pl.Expr]:
    """What is done to a text. It is made of a thousand literals, and put together once."""
    text, said = pl.col("text"), pl.col("said")
    capitals = {letter: latin for latin, letters in _UPPER.items() for letter in letters}
    looks = text.str.replace_many(list(capitals), list(capitals.values()))
    # 0 and 1 among letters, O among digits, and a capital I, which is l in many a typeface.
    looks = looks.str.replace_all(r"(\p{L})0", "${1}o").str.replace_all(r"(\p{L})1(\p{L})", "${1}l${2}")
    looks = looks.str.replace_all(r"([0-9])[oO]", "${1}0").str.replace_all("I", "l", literal=True)
    looks = _closed(_listed(_lowered(looks).str.replace_many(["rn", "vv"], ["m", "w"])))
    cleaned, word = _reading()
    case, look = pl.coalesce(said, word).alias("case"), pl.coalesce(said, looks).alias("look")
    return cleaned, _said(text).alias("said"), case, look


def _listed(text: pl.Expr) -> pl.Expr:
    """What is listed with commas or semicolons, in one order: {flu, cold} and "cold; flu" are the same illnesses."""
    parts = text.str.strip_chars("{}[]").str.split(", ").list.sort().list.join(", ")
    several = text.str.replace_all(r"\s*;\s*", ", ").str.strip_chars("{}[]").str.split(", ").list.sort().list.join(", ")
    return (
        pl.when(text.str.contains(";", literal=True))
        .then(several)
        .when(text.str.contains(", "))
        .then(parts)
        .otherwise(text)
    )


def _closed(text: pl.Expr) -> pl.Expr:
    """Without spaces and hyphens, but between two digits: "heart attack", "heart-attack" and "heartattack" are one."""
    for _ in range(2):  # a digit may stand between two others
        text = text.str.replace_all(r"([0-9])[ -]([0-9])", "${1}\x00${2}")
    for _ in range(2):
        text = text.str.replace_all(r"([^ -])[ -]+([^ -])", "${1}${2}")
    return text


def _cleaned(text: pl.Expr) -> pl.Expr:
    """Compatibility forms resolved, nothing unseen, single spaces, plain dashes and digits, no quotes or stops around it."""
    digits = {chr(zero + i): str(i) for zero in _ZEROS for i in range(10)}
    digits |= {chr(first + i): chr(ord("a") + i) for first in _PLAQUES for i in range(26)} | {"⁄": "/", "∕": "/"}
    text = pl.when(text.str.contains(_BACKWARDS, literal=True)).then(text.str.reverse()).otherwise(text)
    # A lunate sigma is c to the eye, and an ordinary sigma to the normal form.
    text = (
        text.str.replace_many(["ϲ", "Ϲ"], ["c", "C"])
        .str.normalize("NFKC")
        .str.replace_all(_UNSEEN, "")
        .str.replace_all(_CONTROLS, "")
    )
    text = text.str.replace_many([*digits, *_DASHES], [*digits.values(), *["-"] * len(_DASHES)])
    text = text.str.replace_all(_SPACES, " ").str.strip_chars()
    text = text.str.replace(r'^="(.*)"$', "$1").str.strip_chars(_QUOTES + " ")
    # Letters in brackets one by one, and a whole text in them.
    text = text.str.replace_all(r"\((\p{L})\)", "$1").str.replace(r"^[(\[{<]([^()\[\]{}<>,;]*)[)\]}>]$", "$1")
    # Marks around a text, but no sign of a number and no result of a test (A+, A-, <5). Nothing but marks is no value.
    text = text.str.replace(r"^[.,;:!?*~•·_ ]+([^.,;:!?*~•·_ ])", "$1").str.replace(r"^-+ *(\p{L})", "$1")
    text = text.str.replace(r"^(.*[^.,;:!?*~•· ])[.,;:!?*~•· ]+$", "$1")
    return pl.when(text.str.contains(_MARKS)).then(pl.lit("")).otherwise(text)


def _lowered(text: pl.Expr) -> pl.Expr:
    small = {letter: latin for latin, letters in _LOWER.items() for letter in letters}
    return text.str.to_lowercase().str.replace_many(["ß", "ς", "i̇", *small], ["ss", "σ", "i", *small.values()])


def _said(text: pl.Expr) -> pl.Expr:
    """A number or a date in one spelling; null for all other texts."""
    number = (
        text.str.replace(r"^([+-]?[0-9]{1,3})((?:[ '][0-9]{3})+)([.,][0-9]+)?$", "$1$2$3")
        .str.replace_all(r"[ ']", "")
        .str.replace(r"^([+-]?[0-9]+),([0-9]{1,2}|[0-9]{4,})$", "$1.$2")
    )
    grouped = number.str.contains(r"^[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?$")
    european = number.str.contains(r"^[+-]?[0-9]{1,3}(\.[0-9]{3})+,[0-9]+$")
    number = (
        pl.when(grouped)
        .then(number.str.replace_all(",", "", literal=True))
        .when(european)
        .then(number.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True))
        .otherwise(number)
    )
    numeric = text.str.contains(r"^[+-]?[0-9][0-9 ',.]*(?:[eE][+-]?[0-9]+)?$|^[+-]?\.[0-9]+(?:[eE][+-]?[0-9]+)?$")
    # Whole numbers stay text, whatever their length: no two of them become one float.
    whole = number.str.contains(r"^[+-]?[0-9]+(\.0*)?$")
    as_whole = number.str.replace(r"\.0*$", "").str.replace(r"^([+-]?)0+([0-9])", "$1$2").str.replace(r"^\+|^-0$", "")
    as_whole = pl.when(as_whole == "").then(pl.lit("0")).otherwise(as_whole)
    as_float = number.cast(pl.Float64, strict=False)
    exact = (as_float == as_float.floor()) & (as_float.abs() < 2**53)
    as_real = (
        pl.when(exact)
        .then(as_float.cast(pl.Int64, strict=False).cast(pl.String))
        .when(as_float.is_finite())
        .then(as_float.cast(pl.String))
    )
    value = pl.when(numeric).then(pl.when(whole).then(as_whole).otherwise(as_real))
    seconds = text.str.extract(r"^([0-9]{1,2}:[0-9]{2}):00(?:\.0+)?$")
    return pl.coalesce(_day(text), seconds, value)


def _day(text: pl.Expr) -> pl.Expr:
    """2024-03-31, 2024/3/31, 31.03.2024, 31/03/2024, 03/31/2024 and midnight of that day; null for other texts."""
    day = text.str.replace(r"[T ]00:00(:00(\.0+)?)?Z?$", "")
    first = day.str.extract_groups(r"^([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})$")
    last = day.str.extract_groups(r"^([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4})$")
    swapped = last.struct.field("2").cast(pl.Int32, strict=False) > 12

    def iso(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
        return pl.concat_str(year, month.str.zfill(2), day.str.zfill(2), separator="-")

    begins = iso(first.struct.field("1"), first.struct.field("2"), first.struct.field("3"))
    ends = (
        pl.when(swapped)
        .then(iso(last.struct.field("3"), last.struct.field("1"), last.struct.field("2")))
        .otherwise(iso(last.struct.field("3"), last.struct.field("2"), last.struct.field("1")))
    )
    return pl.coalesce(begins, ends, *_named(day.str.to_lowercase(), iso))


def _named(day: pl.Expr, iso: Callable[[pl.Expr, pl.Expr, pl.Expr], pl.Expr]) -> Iterator[pl.Expr]:
    """31 March 2024, 31. Mär 2024 and Mar 31, 2024."""
    month = rf"({'|'.join(_MONTHS)})\p{{L}}*\.?"
    first = rf"^([0-9]{{1,2}})[. -]+{month}[ ,-]+([0-9]{{4}})$"
    second = rf"^{month} ([0-9]{{1,2}}),? ([0-9]{{4}})$"
    for form, (y, m, d) in ((first, "321"), (second, "312")):
        found = day.str.extract_groups(form).struct
        number = found.field(m).replace_strict(_MONTHS, default=None, return_dtype=pl.Int64).cast(pl.String)
        yield iso(found.field(y), number, found.field(d))
