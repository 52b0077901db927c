"""How dates and numbers are written in files, and how they are read: the patterns of `format` and the sign of `decimal`.

A pattern of dates is made of YYYY or YY, MM or MMM (a month's name), DD, hh, mm, ss, AM, Z (a time zone) and WWW (a weekday's
name, read over): "DD.MM.YYYY", "MM/DD/YYYY hh:mm AM". Without DD it is the first of the month. Two digits of a year need the last
year they may mean: "DD.MM.YY to 2024". "epoch" and "epoch ms" count seconds and milliseconds since 1970. A pattern of numbers has
# where the number stands: "$#", "# €", "# J.". Thousands may be parted by the other of point and comma, by spaces or apostrophes.

Whatever a pattern does not fit is null: nothing is guessed here. A time zone is read over and the wall clock kept, since that is
the day that people remember.

>>> import polars as pl
>>> pattern("DD.MM.YYYY").read(pl.Series(["1.3.1994", "31.02.1994"])).to_list()
[datetime.date(1994, 3, 1), None]
>>> pattern("# €", ",").read(pl.Series(["1.234,50 €", "12,345.00 €"])).to_list()
[1234.5, None]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import polars as pl

SPACE = r"[ \t\x{00A0}\x{202F}\x{2009}]"
"""Spaces that people and programs put between a number and its unit, or between thousands."""
ZONES = "Z|UTC|GMT|CET|CEST|WET|WEST|EET|EEST|BST|EST|EDT|CST|CDT|MST|MDT|PST|PDT|IST|JST|[+-][0-9]{2}(?::?[0-9]{2})?"
"""Time zones as they are written behind a clock."""
_TOKEN = re.compile(r"yyyy|yy|mmm|mm|dd|hh|ss|am|www|z", re.IGNORECASE)
# Words that stand between the parts of a date; any other word is a slip of the pen.
_BETWEEN = {"T", "de", "del", "of", "den", "h", "Uhr", *"年月日時分秒년월일"}
_ORDINAL = "(?:er|st|nd|rd|th|º|ª)?"
EPOCHS = {"epoch": 1_000_000, "epoch ms": 1_000}
"""Patterns of counted time, and their microseconds."""
_LAST = re.compile(r"^(.*) to ([0-9]{4})$")
_MONTHS = (
    "january jan januar jän jänner janvier janv enero ene gennaio gen janeiro januari stycznia styczeń sty",
    "february feb februar février févr fév febrero febbraio fevereiro fev februari lutego luty lut",
    "march mar märz mrz mär mars marzo março maart mrt marts marca marzec",
    "april apr avril avr abril abr aprile kwietnia kwiecień kwi",
    "may mai mayo maggio mag maio mei maj maja",
    "june jun juni juin junio giugno giu junho czerwca czerwiec cze",
    "july jul juli juillet juil julio luglio lug julho lipca lipiec lip",
    "august aug août agosto ago augustus augusti sierpnia sierpień sie",
    "september sep sept septembre septiembre settembre set setembro września wrzesień wrz",
    "october oct oktober okt octobre octubre ottobre ott outubro out października październik paź",
    "november nov novembre noviembre novembro listopada listopad lis",
    "december dec dezember dez décembre déc diciembre dic dicembre dezembro desember des grudnia grudzień gru",
)
MONTHS = {name: f"{number:02d}" for number, names in enumerate(_MONTHS, start=1) for name in names.split()}
"""Names of months in English, German, French, Spanish, Italian, Portuguese, Dutch, the Scandinavian languages and Polish."""
_DAY_MICROSECONDS = 86_400_000_000  # a moment within a day is below this
_FAR = 250_000_000_000 * 1_000_000  # microseconds since 1970 to the end of the years of four digits, and a little more


@dataclass(frozen=True)
class Pattern:
    """One way to write dates or numbers."""

    text: str
    decimal: str = "."

    @property
    def kind(self) -> str:
        """What it reads: "number" or "date"."""
        return "number" if "#" in self.text else "date"

    def read(self, texts: pl.Series) -> pl.Series:
        """Numbers, days or moments; null where the pattern does not fit. Each different text is read once."""
        different = texts.drop_nulls().unique(maintain_order=True)
        found = self._read_dates(different) if self.kind == "date" else self._read_numbers(different)
        if not len(different):
            return pl.Series(texts.name, [None] * len(texts), dtype=found.dtype)
        return texts.replace_strict(different, found, default=None, return_dtype=found.dtype)

    def fits(self, texts: pl.Series) -> pl.Series:
        """Which of the texts it fits."""
        return self.read(texts).is_not_null()

    @cached_property
    def has_time(self) -> bool:
        """Whether it says a time of day."""
        return self.text in EPOCHS or (self.kind == "date" and any(name == "hour" for name, _ in self._tokens))

    @cached_property
    def _date(self) -> tuple[str, int | None]:
        """The pattern without its last year, and that."""
        found = _LAST.match(self.text)
        return (found[1], int(found[2])) if found else (self.text, None)

    @cached_property
    def _tokens(self) -> list[tuple[str, str]]:
        """What a pattern of dates is made of: (what, as it is written); literals have no what."""
        tokens: list[tuple[str, str]] = []
        text, at = self._date[0], 0
        while at < len(text):
            # A literal T before the time is no token, and neither are signs.
            found = _TOKEN.match(text, at)
            if found is None:
                tokens.append(("", text[at]))
                at += 1
                continue
            word, at = found[0].lower(), found.end()
            said = {
                "yyyy": "year",
                "yy": "short",
                "mmm": "name",
                "dd": "day",
                "hh": "hour",
                "ss": "second",
                "am": "half",
                "www": "weekday",
            }
            # mm is the month, and after the hour the minute.
            minute = "minute" if any(name == "hour" for name, _ in tokens) else "month"
            tokens.append((said.get(word, "zone" if word == "z" else minute), found[0]))
        return tokens

    def problem(self) -> str | None:
        """What is wrong with it, or None."""
        if self.kind == "number":
            return "has more than one #, and a number stands in one place" if self.text.count("#") > 1 else None
        if self.text in EPOCHS:
            return None
        names = [name for name, _ in self._tokens if name]
        literals = "".join(text if not name else " " for name, text in self._tokens)
        if not set(re.findall(r"[^\W\d_]+", literals)) <= _BETWEEN or not names:
            return 'is no pattern: write dates as in "DD.MM.YYYY", numbers with # as in "# €"'
        years = [name for name in names if name in ("year", "short")]
        months = [name for name in names if name in ("month", "name")]
        if len(years) != 1 or len(months) != 1 or len(set(names)) < len(names):
            return 'needs day, month and year once each (or month and year alone), as in "DD.MM.YYYY"'
        if years == ["short"] and self._date[1] is None:
            return f'has a year of two digits: say the last year that it may mean, as in "{self.text} to 2024"'
        if years == ["year"] and self._date[1] is not None:
            return "has all four digits of the year, so nothing is to be said about the last one"
        return None

    @cached_property
    def form(self) -> str:
        """The regular expression of a date's text, with a group for each part."""
        parts = []
        for place, (name, text) in enumerate(self._tokens):
            beside = [self._tokens[i][0] for i in (place - 1, place + 1) if 0 <= i < len(self._tokens)]
            digits = "[0-9]{2}" if any(other not in ("", "zone", "half", "name") for other in beside) else "[0-9]{1,2}"
            if name == "year":
                parts.append("(?P<year>[0-9]{4})")
            elif name == "short":
                parts.append("(?P<short>[0-9]{2})")
            elif name == "name":
                parts.append(r"(?P<name>\p{L}{3,12})\.?")
            elif name == "second":
                parts.append(rf"(?P<second>{digits})(?:[.,](?P<fraction>[0-9]{{1,9}}))?")
            elif name == "half":
                parts.append(r"(?P<half>[AaPp])\.?[Mm]\.?")
            elif name == "zone":
                parts.append(f"{SPACE}?(?:{ZONES})")
            elif name == "weekday":
                parts.append(r"\p{L}{2,13}\.?")
            elif name == "day":
                parts.append(f"(?P<day>{digits}){_ORDINAL if len(beside) < 2 or not beside[1] else ''}")
            elif name:
                parts.append(f"(?P<{name}>{digits})")
            else:
                parts.append(f"{SPACE}+" if text == " " else re.escape(text))
        return f"^{SPACE}*{''.join(parts)}{SPACE}*$"

    def _read_dates(self, texts: pl.Series) -> pl.Series:
        if self.text in EPOCHS:
            unit = EPOCHS[self.text]
            counted = texts.str.strip_chars().cast(pl.Int64, strict=False)
            counted = pl.select(pl.when(counted.abs() < _FAR // unit).then(counted)).to_series()
            return (counted * unit).cast(pl.Datetime("us")).alias(texts.name)
        found = texts.rename("text").to_frame().select(pl.col("text").str.extract_groups(self.form)).unnest("text")
        names = set(found.columns)
        day = pl.col("day").str.zfill(2) if "day" in names else pl.lit("01")
        month = pl.col("month").str.zfill(2) if "month" in names else _named()
        if "year" in names:
            year = pl.col("year")
        else:
            last = self._date[1] or 0
            short = pl.col("short").cast(pl.Int32, strict=False)
            # The one year of a hundred up to the last that ends in these digits.
            year = (last - (last - short) % 100).cast(pl.String)
        date = pl.concat_str(year, month, day, separator="-").str.to_date("%Y-%m-%d", strict=False)
        if not self.has_time:
            return found.select(date.alias(texts.name)).to_series()
        number = {
            name: pl.col(name).cast(pl.Int64, strict=False) for name in ("hour", "minute", "second") if name in names
        }
        hour, minute, second = (number.get(name, pl.lit(0, dtype=pl.Int64)) for name in ("hour", "minute", "second"))
        whole = minute.is_between(0, 59) & second.is_between(0, 59)
        if "half" in names:
            whole &= hour.is_between(1, 12)
            hour = hour % 12 + pl.when(pl.col("half").str.to_lowercase() == "p").then(12).otherwise(0)
        fraction = pl.lit(0, dtype=pl.Int64)
        if "fraction" in names:
            fraction = pl.col("fraction").str.pad_end(6, "0").str.head(6).cast(pl.Int64, strict=False).fill_null(0)
        moment = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
        whole &= moment < _DAY_MICROSECONDS
        clock = date.cast(pl.Datetime("us")) + pl.duration(microseconds=moment)
        return found.select(pl.when(whole).then(clock).alias(texts.name)).to_series()

    @cached_property
    def number_form(self) -> str:
        """The regular expression of a number's text: its signs, its whole part, its decimals."""
        before, _, after = self.text.partition("#")
        front, back = (_unit(part.strip()) for part in (before, after))
        other = r"\." if self.decimal == "," else ","
        # Threes, and in India twos before the last three: 12,34,567.
        grouped = "|".join(rf"[0-9]{{1,3}}(?:{sign}[0-9]{{3}})+" for sign in (other, SPACE, "['’]"))
        grouped += "|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}" if other == "," else ""
        mark = re.escape(self.decimal)
        body = rf"(?P<whole>{grouped}|[0-9]+)?(?:{mark}(?P<decimals>[0-9]+))?(?P<power>[eE][+-]?[0-9]+)?"
        sign = rf"(?P<open>\()?(?P<sign>[+\-−])?{SPACE}*{front}{SPACE}*(?P<inner>[+\-−])?"
        return rf"^{SPACE}*{sign}{body}(?P<last>[\-−])?{SPACE}*{back}(?P<close>\))?{SPACE}*$"

    def _read_numbers(self, texts: pl.Series) -> pl.Series:
        found = (
            texts.rename("text").to_frame().select(pl.col("text").str.extract_groups(self.number_form)).unnest("text")
        )
        whole = pl.col("whole").str.replace_all(r"[^0-9]", "")
        signs = pl.concat_str("sign", "inner", "last", "open", ignore_nulls=True)
        sign = pl.when(signs.str.contains(r"[\-−(]")).then(pl.lit("-")).otherwise(pl.lit(""))
        valid = (pl.col("whole").is_not_null() | pl.col("decimals").is_not_null()) & (signs.str.len_chars() <= 1)
        valid &= pl.col("open").is_null() == pl.col("close").is_null()
        spelled = pl.concat_str(
            sign,
            whole.fill_null("0"),
            pl.when(pl.col("decimals").is_not_null()).then(pl.lit(".") + pl.col("decimals")).otherwise(pl.lit("")),
            pl.col("power").fill_null(""),
        )
        plain = found.select(pl.when(valid).then(spelled).alias(texts.name)).to_series()
        as_whole = plain.cast(pl.Int64, strict=False)
        if as_whole.null_count() == plain.null_count():
            return as_whole
        numbers = plain.cast(pl.Float64, strict=False)
        return pl.select(pl.when(numbers.is_finite()).then(numbers).alias(texts.name)).to_series()


def pattern(text: str, decimal: str = ".") -> Pattern:
    """The pattern that a configuration says."""
    return Pattern(text, decimal)


def read(texts: pl.Series, patterns: list[Pattern]) -> pl.Series:
    """A column that is written in one way, or in several: the first pattern that fits says what a text means."""
    parts = [one.read(texts) for one in patterns]
    if len({part.dtype for part in parts}) > 1:
        wide = pl.Float64 if patterns[0].kind == "number" else pl.Datetime("us")
        parts = [part.cast(wide) for part in parts]
    found = parts[0]
    for part in parts[1:]:
        found = pl.select(pl.coalesce(found, part)).to_series()
    return found.alias(texts.name)


def _unit(text: str) -> str:
    """A unit as it may be written: in any kind of space and whatever the case."""
    words = (re.escape(word) for word in text.split())
    return f"(?i:{f'{SPACE}*'.join(words)})" if text else ""


def _named() -> pl.Expr:
    """The number of a month's name."""
    name = pl.col("name").str.to_lowercase()
    return name.replace_strict(MONTHS, default=None, return_dtype=pl.String)
