"""What a column of texts may be: dates in some order, or numbers with some decimal sign and unit.

Patterns are read off the first values and then held against all of them. Nearly all must fit before anything is proposed.

>>> import polars as pl
>>> date_guess(Spelled.of(pl.Series("seen", ["03/31/2024", "04/01/2024"]))).patterns[0].text
'MM/DD/YYYY'
>>> guess = date_guess(Spelled.of(pl.Series("seen", ["03/04/2024", "05/06/2024"])))
>>> guess.patterns[0].text, guess.other[0].text
('DD/MM/YYYY', 'MM/DD/YYYY')
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.formats import EPOCHS, MONTHS, ZONES, Pattern
from shoal.looks import words_of
from shoal.spelling import says_nothing

ENOUGH_FIT = 0.95  # of the values must be written in a way before it is proposed
SOME_FIT = 0.01  # of them make another way worth a second pattern
SAMPLE = 300  # different values whose spellings are looked at
WORDS_AT_MOST = 2000  # different texts among which words for "unknown" are looked for
PATTERNS_AT_MOST = 3  # more ways to write one thing are no format
NO_DAY = r"^0{1,4}[-./]?0{1,2}[-./]?0{2,4}([ T][0:]+)?$"
"""00.00.0000, which programs write for no date."""
PLAUSIBLE = (1800, 2200)  # years that dates of a table have

_TIME = re.compile(
    rf"(,? +|T)\d{{1,2}}([:h])\d{{2}}(:\d{{2}}(?:[.,]\d{{1,9}})?)?( ?[AaPp]\.?[Mm]\.?)?( ?(?:{ZONES}))?( Uhr)?$"
)
_WEEKDAY = re.compile(r"^[^\W\d_]{2,13}\.?(,? )(?=\d{1,2}\D|[^\W\d_]{3,})")
_LONG = r"[^\W\d_]{3,12}"
_DATES = (
    (re.compile(r"^\d{4}([-/.])\d{1,2}\1\d{1,2}"), ("YYYY{0}MM{0}DD",)),
    (re.compile(r"^\d{1,2}([-/.]|\. )\d{1,2}\1\d{4}"), ("DD{0}MM{0}YYYY", "MM{0}DD{0}YYYY")),
    (re.compile(r"^\d{1,2}([-/.]|\. )\d{1,2}\1\d{2}"), ("DD{0}MM{0}YY", "MM{0}DD{0}YY")),
    (re.compile(r"^\d{4}\.( ?)\d{1,2}\.\1\d{1,2}\."), ("YYYY.{0}MM.{0}DD.",)),
    (re.compile(rf"^\d{{1,2}}(?:er|st|nd|rd|th|º)?([-/ ]?){_LONG}\.?\1\d{{4}}"), ("DD{0}MMM{0}YYYY",)),
    (re.compile(rf"^\d{{1,2}}([-/ ]?){_LONG}\.?\1\d{{2}}"), ("DD{0}MMM{0}YY",)),
    (re.compile(rf"^\d{{1,2}}\.( ?){_LONG}\.? \d{{4}}"), ("DD.{0}MMM YYYY",)),
    (re.compile(rf"^\d{{1,2}}º? (de ){_LONG} de \d{{4}}"), ("DD {0}MMM {0}YYYY",)),
    (re.compile(rf"^{_LONG}\.? \d{{1,2}}(?:st|nd|rd|th)?(,?) \d{{4}}"), ("MMM DD{0} YYYY",)),
    (re.compile(r"^\d{4}([年년]) ?\d{1,2}[月월] ?\d{1,2}[日일]"), ("YYYY{0}",)),
    (re.compile(r"^(\d)\d{7}$"), ("YYYYMMDD",)),
    (re.compile(r"^\d{4}([-/.])\d{2}$"), ("YYYY{0}MM",)),
    (re.compile(r"^\d{1,2}([-/.])\d{4}$"), ("MM{0}YYYY",)),
    (re.compile(rf"^{_LONG}\.?([- ])\d{{4}}$"), ("MMM{0}YYYY",)),
    (re.compile(rf"^{_LONG}\.?([- ])\d{{2}}$"), ("MMM{0}YY",)),
)
_BEFORE, _AFTER = r"([^\d\s+\-−.,()]{1,4}\.?|)", r"(\+|[^\d\s+\-−,()][^\d+]*?)?"
_BOUNDS = "<>≤≥~+"
"""<0.5 below what could be measured, 90+ at the end of a scale: read as the number itself."""
_NUMBER = re.compile(
    rf"^\(?[+\-−]?\s*{_BEFORE}\s*[+\-−]?((?:\d[\d.,'’\s]*?)?[.,]?\d+(?:[eE][+-]?\d+)?)[-−]?\s*{_AFTER}\)?$"
)
_MONEY = (
    "$ € £ ¥ ₹ ₽ ₺ ₩ eur usd gbp chf jpy cad aud sek nok dkk pln czk huf inr brl kr zł kč ft rs rs. r$ fr fr. us$ c$ a$ sfr sfr. "
    "t€ k€ 円 元 원"
)
_MEASURES = (
    "y yr yrs year years yo y/o j j. jahr jahre jahren lj. lebensjahre an ans ano anos año años anni jaar år lat "
    "mo month months monat monate d day days tag tage tagen jour jours h hr hrs hour hours std std. stunden min mins minutes "
    "minuten s sec sek kg g mg µg mcg lb lbs oz st t cm mm m km ft in inch inches \" ' mi ml l dl cl % ‰ °c °f c f mmhg bpm "
    "kpa mg/dl mmol/l g/dl g/l u/l iu/l u iu kg/m² kg/m2 kcal kj kwh kw w ,- .- stk stück pcs x pts points punkte 歳 才 岁 세"
)
_LAB = "mmhg bpm kpa mg/dl mmol/l g/dl g/l u/l iu/l kg/m² kg/m2 ng/ml µg/l mmol/mol"
_CURRENCIES, _UNITS, _MEDICAL = (frozenset(units.split()) for units in (_MONEY, _MEASURES, _LAB))
_LETTERS = re.compile(r"^[^\W\d_]{1,12}\.?( [^\W\d_]{1,12}\.?)?$")
# Under such names ten digits are seconds since 1970 and thirteen milliseconds; elsewhere they are numbers of customers.
_CLOCKS = (
    "time timestamp ts date datetime created updated modified registered epoch unix login seen visit event start end begin datum "
    "zeit zeitpunkt fecha hora heure"
)
_TIMES = frozenset(_CLOCKS.split())
# Answers, not the lack of one, where they stand among words.
_SAID = (
    "refused; refuse to answer; prefer not to say; verweigert; verweigert die angabe; not applicable; entfällt; not done; "
    "not asked; undefined"
)
_ANSWERS = frozenset(_SAID.split("; "))


@dataclass(frozen=True, eq=False)
class Spelled:
    """The different texts of a column, the most frequent first, and how often each occurs."""

    name: str
    values: pl.Series
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, column: pl.Series) -> Spelled:
        """The texts of a column, without outer spaces."""
        stripped = column.drop_nulls().str.strip_chars().alias("value")
        counted = stripped.value_counts(name="records").sort("records", "value", descending=[True, False])
        return cls(column.name, counted["value"], counted["records"].to_numpy().astype(np.int64))

    @property
    def sample(self) -> list[str]:
        """Some of the texts, evenly spaced from the most frequent to the rarest."""
        return self.values.gather_every(max(1, len(self.values) // SAMPLE)).to_list()

    def share(self, fits: pl.Series, of: NDArray[np.bool_]) -> float:
        """How many of the records in `of` are written in a way."""
        total = int(self.counts[of].sum())
        return int(self.counts[of & fits.to_numpy()].sum()) / total if total else 0.0

    @property
    def nothing(self) -> list[str]:
        """The texts that say "unknown" among words; short ones may be codes, as NA is Namibia."""
        looked = self.values.head(WORDS_AT_MOST)
        found = [
            text
            for text, says in zip(looked, says_nothing(looked.to_list()), strict=True)
            if says
            and (len(text) > 3 or re.search(r"[./]|[^ -~]", text))
            and text.casefold().rstrip(".") not in _ANSWERS
        ]
        return sorted(found)


@dataclass(frozen=True)
class Guess:
    """How a column is written, why that is thought, and the other way in which it could be read."""

    name: str
    patterns: list[Pattern]
    why: str
    other: list[Pattern] | None = None
    plain: bool = False
    """Whether every program reads it like this, so that nothing is to be said."""

    @property
    def is_doubtful(self) -> bool:
        """1.234 is a fraction, unless all else speaks for a comma before decimals."""
        return self.plain and self.other is not None

    @property
    def votes(self) -> set[str]:
        """What it says about columns that could be read in two ways."""
        first = self.patterns[0]
        if first.kind == "number":
            return {first.decimal}
        return {first.text[:2]} if re.match(r"(DD.MM|MM.DD)", first.text) else set()

    def settled(self, votes: set[str]) -> tuple[Guess, list[str]]:
        """The way that the other columns speak for, and what to ask where there are two."""
        if self.other is None:
            return self, []
        ours, theirs = (_vote(one[0]) for one in (self.patterns, self.other))
        chosen, left = self.patterns, self.other
        if (theirs in votes and ours not in votes) or (not {ours, theirs} & votes and _habit(left[0], votes)):
            chosen, left = left, chosen
        why = "as other columns are" if _vote(chosen[0]) in votes else "which is a guess"
        told = (
            f"'{self.name}' could be read in two ways, as {_word(chosen[0])} or as {_word(left[0])}: no value tells. It is read "
            f"as {_word(chosen[0])}, {why}; if that is wrong, change {_key(chosen[0], left[0])} under [attributes.{self.name}]."
        )
        return replace(self, patterns=chosen, other=None, plain=False, why=_why(chosen)), [told]


def speaks_of_time(name: str) -> bool:
    """Whether a column is called as points in time are."""
    words = words_of(name)
    return bool(_TIMES.intersection(words)) or words[-1:] == ["at"]


def date_guess(spelled: Spelled, year: int | None = None) -> Guess | None:
    """How dates are written, where nearly all texts are dates."""
    shapes = Counter(shape for text in spelled.sample for shape in _date_shapes(text))
    if not shapes and speaks_of_time(spelled.name):
        shapes = Counter(shape for text in spelled.sample if (shape := _counted(text)))
    if not shapes or sum(shapes.values()) < ENOUGH_FIT / 2 * len(spelled.sample):
        return None
    last = datetime.now().year if year is None else year
    candidates = [Pattern(f"{shape} to {last}" if _short(shape) else shape) for shape in shapes]
    fits = {one.text: _plausible(one, spelled.values) for one in candidates}
    chosen = _cover(spelled, candidates, fits, _known(spelled))
    if chosen is None or (chosen[0].text.startswith("YYYY") and "DD" not in chosen[0].text and _terms(spelled)):
        return None
    if _contradict(chosen):
        told = (
            f"'{spelled.name}' holds dates with the day first and dates with the month first, and most could be either: it is "
            "left as text. Write them one way."
        )
        return Guess(spelled.name, [], told)
    twin = _twin(chosen[0], candidates)
    other = None
    if (
        len(chosen) == 1
        and twin is not None
        and "." not in twin.text
        and (fits[twin.text] == fits[chosen[0].text]).all()
    ):
        other = [twin]
    return Guess(spelled.name, chosen, _why(chosen), other, plain=[one.text for one in chosen] == ["YYYY-MM-DD"])


def number_guess(spelled: Spelled) -> Guess | None:
    """How numbers are written, where nearly all texts are numbers and not as every program writes them."""
    units: Counter[str] = Counter()
    for text in spelled.sample:
        found = _NUMBER.match(text)
        if found and not re.match(r"0\d", found[2]) and _is_unit(found[1], found[3] or "", text):
            units[_form(found[1], found[3] or "", text)] += 1
    if not units or sum(units.values()) < ENOUGH_FIT / 2 * len(spelled.sample):
        return None
    written = [unit for unit in units if unit != "#"]
    often = [unit for unit in written if units[unit] >= SOME_FIT * len(spelled.sample)]
    used = sorted({_bare(unit).casefold() for unit in often} - {"#"})
    if len(used) > PATTERNS_AT_MOST:
        return None  # 12345678T is a number of its own kind
    if len(used) > 1:
        told = f"'{spelled.name}' has numbers with different units ({', '.join(used)}) and is left as text: write them in one."
        return Guess(spelled.name, [], told)
    if (spelled.values.str.contains(r"^[+-]?0[0-9]") & ~spelled.values.str.contains(r"[.,/:]")).any():
        return None  # 01234 is a code
    known = _known(spelled)
    if (
        not written
        and known.any()
        and _is_plain(spelled, known)
        and not _parted(spelled.values.filter(pl.Series(known)))
    ):
        return Guess(spelled.name, [Pattern("#")], "", plain=True)  # nearly all columns of numbers end here
    ways: dict[str, list[Pattern]] = {}
    shares: dict[str, float] = {}
    for decimal in (".", ","):
        candidates = [Pattern(unit, decimal) for unit in units]
        fits = {one.text: one.fits(spelled.values) for one in candidates}
        chosen = _cover(spelled, candidates, fits, known)
        if chosen is not None:
            chosen += [one for one in candidates if _is_bound(one.text) and one not in chosen]
            ways[decimal] = chosen
            together = pl.Series(np.logical_or.reduce([fits[one.text].to_numpy() for one in chosen]))
            shares[decimal] = spelled.share(together, known)
    if not ways:
        return None
    best = max(ways, key=lambda decimal: (shares[decimal], decimal == "."))
    chosen, other = ways[best], None
    plain = best == "." and [one.text for one in chosen] == ["#"] and _is_plain(spelled, known)
    if len(ways) == 2 and shares["."] == shares[","] and (sign := _parted(spelled.values.filter(pl.Series(known)))):
        # 1,234 is a thousand and more to most, and beyond doubt behind a dollar; 1.234 is not.
        sure = sign == "," and any(money in unit for unit in units for money in "$£¥")
        other = None if sure else ways[","]
    return Guess(spelled.name, chosen, "" if plain else _why(chosen), other, plain)


def _known(spelled: Spelled) -> NDArray[np.bool_]:
    """Texts with a digit: the others cannot be dates or numbers, and a word among these is looked at later."""
    digits = (spelled.values.str.contains(r"[0-9]") & ~spelled.values.str.contains(NO_DAY)).to_numpy()
    words = int(spelled.counts[~digits].sum())
    # A column of words has no format, whatever stands between them.
    return digits if words <= spelled.counts.sum() / 2 else np.zeros(len(digits), dtype=np.bool_)


def _cover(
    spelled: Spelled, candidates: Sequence[Pattern], fits: dict[str, pl.Series], known: NDArray[np.bool_]
) -> list[Pattern] | None:
    """The fewest patterns, the best first, that nearly all texts are written in; None where there are none."""
    left = known.copy()
    total = int(spelled.counts[known].sum())
    chosen: list[Pattern] = []
    while total and left.any() and len(chosen) < PATTERNS_AT_MOST:
        weights = {one.text: int(spelled.counts[left & fits[one.text].to_numpy()].sum()) for one in candidates}
        best = max(candidates, key=lambda one: weights[one.text])
        if weights[best.text] < max(1, SOME_FIT * total):
            break
        chosen.append(best)
        left &= ~fits[best.text].to_numpy()
    return chosen if chosen and int(spelled.counts[left].sum()) <= (1 - ENOUGH_FIT) * total else None


def _date_shapes(text: str) -> Iterable[str]:
    """The patterns that a text may be written in."""
    time, end, front = _TIME.search(text), "", ""
    if time:
        begin, sign, seconds, half, zone, clock = time.groups()
        between = "T" if begin == "T" else ", " if begin.startswith(",") else " "
        end = f"{between}hh{sign}mm{':ss' if seconds else ''}{' AM' if half else ''}{'Z' if zone else ''}{clock or ''}"
        text = text[: time.start()]
    weekday = _WEEKDAY.match(text)
    if weekday and not (_month(weekday[0]) and not _month(text[weekday.end() :])):
        front, text = f"WWW{weekday[1]}", text[weekday.end() :]
    for form, shapes in _DATES:
        found = form.match(text)
        if found and found.end() == len(text) and ("MMM" not in shapes[0] or _month(text)):
            if shapes[0] == "YYYY{0}":  # signs that part the digits, as they stand there
                shapes = (re.sub(r"^\d+(\D+)\d+(\D+)\d+(\D+)$", r"YYYY\1MM\2DD\3", text),)
            return [front + shape.format(found[1]) + end for shape in shapes]
    return []


def _counted(text: str) -> str | None:
    """Seconds or milliseconds since 1970, of the years from 1973 on."""
    return {10: "epoch", 9: "epoch", 13: "epoch ms", 12: "epoch ms"}.get(len(text)) if text.isdigit() else None


def _terms(spelled: Spelled) -> bool:
    """2010-11, 2011-12: years of school, not months."""
    parts = [re.match(r"^\d\d(\d\d)\D(\d\d)$", text) for text in spelled.sample]
    return all(part is not None and int(part[2]) == (int(part[1]) + 1) % 100 for part in parts)


def _month(text: str) -> bool:
    return any(word.lower() in MONTHS for word in re.findall(_LONG, text))


def _short(shape: str) -> bool:
    return "YY" in shape and "YYYY" not in shape


def _plausible(one: Pattern, values: pl.Series) -> pl.Series:
    """The texts that a pattern reads as a day of our times, or as a code such as the year 9999."""
    years = one.read(values).dt.year()
    return (years.is_between(*PLAUSIBLE) | years.is_in([1111, 3000, 9999])).fill_null(False)


def _twin(one: Pattern, candidates: Sequence[Pattern]) -> Pattern | None:
    """The pattern with day and month the other way round."""
    swapped = re.sub(r"^(DD|MM)([-/.])(DD|MM)", lambda found: f"{found[3]}{found[2]}{found[1]}", one.text)
    return next((other for other in candidates if other.text == swapped and other != one), None)


def _contradict(chosen: Sequence[Pattern]) -> bool:
    """Days before months and months before days in one column: nobody can tell which 03/04 is which."""
    return any(_twin(one, chosen) is not None for one in chosen)


def _is_unit(before: str, after: str, text: str) -> bool:
    """Currencies may stand before a number; what stands behind it is a unit, or a word of its own."""
    after = after.strip()
    before = before.strip(_BOUNDS)
    if before and before.casefold() not in _CURRENCIES:
        return False
    if not after.strip(_BOUNDS):
        return True
    # A unit, or one by another: €/h.
    measures = _CURRENCIES | _UNITS
    known = after.casefold() in measures or measures.issuperset(after.casefold().split("/"))
    return known or (
        not before and bool(_LETTERS.match(after)) and bool(re.search(rf"\d\s+{re.escape(after)}\)?$", text))
    )


def _form(before: str, after: str, text: str) -> str:
    """The pattern of a number with its unit, spaced as it is written."""
    after = after.strip()
    space = " " if after and re.search(rf"\s{re.escape(after)}", text) else ""
    front = f"{before} " if before and re.search(rf"{re.escape(before)}\s", text) else before
    return f"{front}#{space}{after}"


def measured(patterns: Iterable[str]) -> str | None:
    """What the unit of numbers speaks of: "money" or "health"; None of all others.

    >>> measured(["US$ #"]), measured(["# mmHg", "<# mmHg"]), measured(["# kg"])
    ('money', 'health', None)
    """
    units = {part for one in patterns for part in _bare(one).casefold().split("#") if part}
    if any(unit.split("/")[0] in _CURRENCIES for unit in units):
        return "money"
    return "health" if units & _MEDICAL else None


def _bare(unit: str) -> str:
    """A pattern without spaces and without what says "less than"."""
    return re.sub(rf"[\s{_BOUNDS}]", "", unit)


def _is_bound(unit: str) -> bool:
    return any(sign in unit for sign in _BOUNDS)


def _parted(values: pl.Series) -> str | None:
    """The sign that parts every number that has one in groups of three, once: a decimal sign, or one of thousands."""
    bodies = values.str.extract(r"([0-9][0-9.,]*)").drop_nulls()
    for sign in (",", "."):
        marked = bodies.filter(bodies.str.contains(sign, literal=True))
        grouped = marked.str.contains(rf"^[1-9][0-9]{{0,2}}{re.escape(sign)}[0-9]{{3}}$")
        if len(marked) and grouped.all() and len(marked) == int(bodies.str.contains(r"[.,]").sum()):
            return sign
    return None


def _is_plain(spelled: Spelled, known: NDArray[np.bool_]) -> bool:
    """Whether every program would read the numbers."""
    numbers = spelled.values.filter(pl.Series(known))
    return numbers.cast(pl.Float64, strict=False).null_count() == 0


def _vote(one: Pattern) -> str:
    return one.decimal if one.kind == "number" else one.text[:2]


def _habit(one: Pattern, votes: set[str]) -> bool:
    """Whether the other way is the usual one where nothing is known: months first between slashes, but not beside a comma."""
    return one.kind == "date" and one.text.startswith("MM/") and "," not in votes


def _word(one: Pattern) -> str:
    if one.kind == "date":
        return one.text
    return f"numbers with a decimal {'comma' if one.decimal == ',' else 'point'}"


def _key(one: Pattern, other: Pattern) -> str:
    return f'format to "{other.text}"' if one.kind == "date" else f'decimal to "{other.decimal}"'


def _why(patterns: Sequence[Pattern]) -> str:
    """What is said about a column that is written like this."""
    if patterns[0].kind == "date":
        years = " Look whether the century is right." if any(" to " in one.text for one in patterns) else ""
        if patterns[0].text in EPOCHS:
            unit = "seconds" if patterns[0].text == "epoch" else "milliseconds"
            return f"Points in time, counted in {unit} since 1970; published as 2024-03-31 08:30:00."
        months = " Months: the first day stands for all of it." if "DD" not in patterns[0].text else ""
        return f"Dates written {' or '.join(one.text for one in patterns)}; published as 2024-03-31.{years}{months}"
    units = [unit for one in patterns if (unit := _bare(one.text).replace("#", ""))]
    with_unit = f" and the unit '{units[0]}'" if units else ""
    sign = "comma" if patterns[0].decimal == "," else "point"
    bounds = [one.text for one in patterns if _is_bound(one.text)]
    read = f" Of {' and '.join(bounds)} the number is taken." if bounds else ""
    return f"Numbers with a decimal {sign}{with_unit}; published as 1234.5.{read}"
