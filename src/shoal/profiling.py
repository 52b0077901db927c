"""Profile a table: what its columns look like, which roles and taxonomies suit them, and why.

Suggestions rest on three things: what a column is called, what its values look like, and how well they tell
records apart. A column nobody can place becomes a quasi-identifier: masking too much is the safe mistake.

>>> import polars as pl
>>> frame = pl.DataFrame({"surname": ["Ash", "Birch", "Cole"], "age": [21, 34, 34], "illness": ["flu", "flu", "cold"]})
>>> [column.role for column in profile(frame).columns]
['identifier', 'quasi', 'sensitive']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import EXACT_INTEGER
from shoal.errors import InputError
from shoal.io.frames import apply_missing, from_polars, to_polars
from shoal.looks import ENOUGH, FREE_TEXT, FREE_TEXT_LEAST, MOSTLY, PATTERNS, direct_identifier, shows, words_of
from shoal.models import Sensitive
from shoal.models.conditions import max_classes
from shoal.models.p_sensitive import PSensitive
from shoal.models.persons import Crowd, bound
from shoal.persons import REPEATED, Persons, settled
from shoal.schema import Kind, Role, Within
from shoal.shown import Shown
from shoal.whose import belongs_together, differing, persons_in, quasi_schema, rows_each, settling

K, P = 5, 3  # what is suggested: nobody among fewer than five, with three different secrets
FEW_VALUES = 20  # categories with no more values than this do well as sets
CLUSTERED_AT_MOST = 2000  # an automatic taxonomy compares all pairs of this many values
CODED_AT_MOST = 50  # integers with more distinct values than this are quantities, whatever their name
SHOWN = 30  # columns that are listed, and compared with each other
SLACK = 10  # p may make the average class this many times k before it is no longer suggested

TaxonomyRule = str | dict[str, list[int]] | dict[str, list[str]]


@dataclass(frozen=True)
class ColumnProfile:
    """One column: facts, and what is suggested for it."""

    name: str
    kind: Kind
    distinct: int
    """Distinct values; missing is not counted."""
    missing: float
    """Share of records without a value."""
    distinction: float
    """Distinct values per record."""
    separation: float
    """Share of the pairs of records that it tells apart, missing being a value of its own."""
    role: Role
    why: str
    taxonomy: TaxonomyRule | None = None
    taxonomy_why: str = ""
    within: Within | None = None
    """Which value counts where the rows of a person differ."""
    within_why: str = ""
    repeats: Literal["allowed"] | None = None
    """For an identifier that repeats and is no person's."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else is suggested for it: top = 90, truncate = "year" …"""


@dataclass(frozen=True)
class Diversity:
    """The p suggested for a sensitive attribute; 1 stands for no rule."""

    attribute: str
    p: int
    why: str


@dataclass(frozen=True)
class Profile(Shown):
    """A table's columns, and what is suggested for all of them together."""

    records: int
    columns: tuple[ColumnProfile, ...]
    unique: float
    """Share of the records, or of the persons, that no other equals on the suggested quasi-identifiers."""
    k: int
    diversity: tuple[Diversity, ...]
    missing: tuple[str, ...]
    """Texts found among the values that mean missing."""
    notes: tuple[str, ...]
    persons: int | None = None
    """How many persons the rows belong to, where a column says whose each row is."""
    backend: str = field(default="polars", repr=False, compare=False)
    """The frame library that `frame` is in."""

    def named(self, role: Role) -> list[str]:
        """Columns with a suggested role."""
        return [column.name for column in self.columns if column.role == role]

    @property
    def reason(self) -> str:
        """Why anonymize at all: how many records the quasi-identifiers single out."""
        quasi = self.named("quasi")
        more = f" and {len(quasi) - SHOWN} more columns" if len(quasi) > SHOWN else ""
        return (
            f"{percent(self.unique)} of the {'records' if self.persons is None else 'persons'} are the only ones with their "
            f"values of {', '.join(quasi[:SHOWN])}{more}; whoever knows these about a person finds the record."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "backend"}

    @property
    def frame(self) -> Any:
        """The columns with facts and suggestions, one row each, in the frame library that came in."""
        names = ("name", "role", "why", "kind", "distinct", "missing", "separation")
        rows = [{name: getattr(column, name) for name in names} for column in self.columns]
        return from_polars(pl.DataFrame(rows), self.backend)


def profile(table: Any) -> Profile:
    """Look at every column and suggest roles, kinds, taxonomies and a policy, each with its reason.

    `table` is a pandas, polars or pyarrow frame, or a file. Returns the suggestions.

    >>> import polars as pl, shoal
    >>> found = shoal.profile(pl.DataFrame({"surname": ["Ash", "Birch", "Cole"], "age": [21, 34, 34]}))
    >>> found.named("quasi"), found.frame["role"].to_list()
    (['age'], ['identifier', 'quasi'])
    """
    if isinstance(table, str | Path):
        from shoal.io.files import read_table

        table = read_table(table, missing=[])
    table, backend = to_polars(table)
    if table.height < 2:
        raise InputError(
            f"The table has {table.height} records; at least two are needed for one to hide behind another."
        )
    missing, notes = _missing_texts(table)
    table = apply_missing(table, missing)
    seen = [_look(column) for column in table.iter_columns()]
    columns, people = _of_persons(table, seen, tuple(_suggest(facts) for facts in seen))
    k = min(K, max(2, (table.height if people is None else people.count) // 10))
    return Profile(
        records=table.height,
        columns=columns,
        unique=_unique_share(_quasi(table, columns, people)),
        k=k,
        diversity=tuple(
            _diversity(facts, k, people)
            for facts, column in zip(seen, columns, strict=True)
            if column.role == "sensitive"
        ),
        missing=tuple(missing),
        notes=(*notes, *_notes(table, seen, columns)),
        persons=None if people is None else people.count,
        backend=backend,
    )


def percent(share: float) -> str:
    """A share as people read it, never rounded to none or all.

    >>> percent(0.1234), percent(0.00001), percent(0.99999), percent(1.0)
    ('12.3 %', '0.001 %', '99.999 %', '100 %')
    """
    for digits in (1, 2, 3):
        text = f"{100 * share:.{digits}f}"
        if share in (0.0, 1.0) or 0 < float(text) < 100:
            break
    return f"{text.rstrip('0').rstrip('.')} %"


class _Hint(NamedTuple):
    role: Role
    about: str


# What words in a column's name speak of; the first that fits counts. Whole words or two neighbours written together,
# stems between stars anywhere in the name, for languages that join their words. Without accents, in English, German,
# French, Spanish, Italian, Portuguese, Dutch, the Scandinavian languages and Polish.
_PERSONAL_NAME = _Hint("identifier", "personal names")
_CONTACT = _Hint("identifier", "ways to reach a person")
_PERSONAL_NUMBER = _Hint("identifier", "numbers that belong to one person")
_HEALTH = _Hint("sensitive", "health")
_BELIEF = _Hint("sensitive", "belief, convictions or private life")
_SEX = _Hint("quasi", "sex")
_PLACE = _Hint("quasi", "a place")
_ORIGIN = _Hint("quasi", "origin")
_WORK = _Hint("quasi", "work")
_HINTS = {
    _PERSONAL_NAME: "*surname* *nachname* *vorname* forename firstname lastname fullname givenname familyname nickname "
    "middlename maidenname username familienname geburtsname prenom apellido apellidos cognome sobrenome apelido "
    "achternaam voornaam efternamn fornamn etternavn fornavn nazwisko imie",
    _CONTACT: "*email* *telefon* *telephone* *phonenum* *strasse* *ipaddress* mail phone tel mobile handy fax address "
    "adresse adres direccion indirizzo endereco anschrift street rue calle straat gata ulica url website homepage ip "
    "login",
    _PERSONAL_NUMBER: "*socialsecurity* *versicherungsnummer* *versichertennummer* *steuernummer* *kontonummer* "
    "*accountnum* *cardnum* *codicefiscale* *medicalrecord* ssn nino nhs mrn passport passeport pasaporte passaporto "
    "reisepass iban dni nie nif curp cpf bsn pesel aadhaar personnummer imei vin kennzeichen licenceplate "
    "licenseplate fingerprint photo signature",
    _Hint("quasi", "age"): "age edad eta idade leeftijd alder alter wiek agegroup ageband agerange *altersgr*",
    _Hint("quasi", "birth"): "dob yob *birth* *geburt* *naissance* *nacimiento* *nascita* *nascimento* *geboorte*",
    _Hint("quasi", "a point in time"): "date datum fecha year month day jahr monat annee mois ano mes",
    _HEALTH: "*diagnos* *disease* *illness* *medicament* *medikament* *krankheit* *pregnan* *genetic* *psych* *suicid* "
    "*depress* *therap* *addict* icd condition disorder symptom symptoms hiv aids cancer tumor tumour drug drugs "
    "medication prescription treatment procedure surgery allergy disability handicap blood genotype mutation smoker "
    "smoking alcohol bmi glucose outcome result maladie enfermedad malattia doenca ziekte sjukdom choroba",
    _Hint("sensitive", "money"): "*salary* *income* *einkommen* earning earnings wage wages pay debt loan credit tax "
    "balance capital cost costs charge charges payment bonus assets wealth mortgage gehalt lohn kosten schulden "
    "salaire revenu salario sueldo ingresos deuda stipendio reddito renda loon inkomen",
    _BELIEF: "*religi* *politic* *sexual* *criminal* faith confession konfession party vote orientation offence "
    "offense crime conviction arrest sentence straftat delit delito reato gpa score",
    _SEX: "sex gender geschlecht sexe sexo sesso genere genero geslacht kon kjonn plec",
    _PLACE: "*zipcode* *postleit* *codepostal* *codigopostal* *country* *municip* zip postcode postal plz city town "
    "village county district state province region nation residence location area tract neighbourhood neighborhood "
    "stadt ort wohnort gemeinde kreis bezirk bundesland land ville commune departement pays ciudad provincia pais "
    "citta comune regione paese cidade estado stad gemeente miasto lat lon lng latitude longitude",
    _ORIGIN: "*ethnic* *nationalit* *citizen* *staatsangeh* race native origin language herkunft sprache langue idioma "
    "lingua nacionalidad nazionalita",
    _Hint("quasi", "family"): "*marital* *familienst* married relationship household children kids etatcivil "
    "estadocivil statocivile kinder enfants hijos figli",
    _WORK: "*occupat* *profession* *employer* job employment workclass industry title rank department beruf arbeit "
    "metier emploi ocupacion trabajo profesion lavoro occupazione profissao ocupacao beroep yrke zawod",
    _Hint("quasi", "education"): "*educat* *bildung* school degree university college diploma schule estudios "
    "istruzione escolaridade opleiding",
    _Hint("quasi", "a visible trait or event"): "admission admitted discharge discharged visit arrival entry hired "
    "hire death height weight eye hair stay grosse gewicht taille",
}
_WORDS = {
    hint: (frozenset(words.split()), tuple(word.strip("*") for word in words.split() if "*" in word))
    for hint, words in _HINTS.items()
}
_CODED = (_HEALTH, _BELIEF, _SEX, _PLACE, _ORIGIN, _WORK)  # integers under such names are codes, not quantities
_PERSONS = {
    *("patient", "person", "customer", "client", "employee", "user", "student", "member", "subject", "respondent"),
    *("participant", "owner", "holder", "mother", "father", "spouse", "parent", "child", "doctor", "physician"),
    *("kunde", "mitarbeiter", "paciente", "cliente", "persona"),
}
_NAMES = {"name", "names", "nom", "nombre", "nombres", "nome", "naam", "namn", "navn"}
_NAME_PARTS = _PERSONS | {
    *("first", "last", "full", "given", "family", "middle", "maiden", "birth", "legal", "completo", "famille", "de")
}
_KEYS = {"id", "ids", "uid", "uuid", "guid", "key", "pk", "record", "hash", "token", "barcode"}
_NUMBERS = {"no", "nr", "num", "number", "nummer", "numero", "code", "ref", "index", "idx", "case", "serial", "row"}
_QUANTITIES = {"num", "number", "count", "years", "level", "per", "of"}
_PERSON_KEYS = {
    joined for one in _PERSONS for other in (*_KEYS, *_NUMBERS, "") for joined in (one + other, other + one)
}
# People whom a row mentions although it is about somebody else.
_MENTIONED = ("owner", "holder", "mother", "father", "spouse", "parent", "child", "doctor", "physician")
_OWN_KEYS = {key for key in _PERSON_KEYS if not any(one in key for one in _MENTIONED)} | {
    *("pid", "patid", "patno", "patnr", "patientenid", "patientennr", "patientennummer", "personid", "kundennr"),
    *("kundennummer", "persnr", "empno", "custno", "memberno", "subjid", "usubjid", "idpaciente", "idpatient"),
}
_ZIP = ("zip", "postcode", "postal", "plz", "postleit")

_ISO_DATE = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$"
_ISO_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}"
_CODE = r"^[+-]?0[0-9]"
_ALWAYS_MISSING = ["N/A", "n/a", "#N/A", "NULL", "null", "Null", "NaN", "nan", "NAN", "<NA>", "NaT", "-", "--", "\\N"]
_MISSING_AMONG_NUMBERS = ["NA", "na", "None", "none", ".", "unknown", "Unknown", "missing", "Missing", "0000-00-00"]


class _Facts(NamedTuple):
    """What is known about a column before anything is suggested."""

    series: pl.Series
    values: pl.Series  # distinct, in no order
    counts: NDArray[np.int64]
    kind: Kind
    words: frozenset[str]
    hint: _Hint | None
    is_zip: bool

    @property
    def distinct(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> int:
        return self.series.null_count()

    @property
    def share(self) -> float:
        """Distinct values per value."""
        return self.distinct / max(1, len(self.series) - self.missing)

    @property
    def separation(self) -> float:
        records = len(self.series)
        alike = int((self.counts * (self.counts - 1)).sum()) + self.missing * (self.missing - 1)
        return 1 - alike / (records * (records - 1))

    @property
    def is_text(self) -> bool:
        return self.series.dtype == pl.String and self.kind == "category"

    def looks_like(self, pattern: str) -> bool:
        return self.is_text and shows(self.series, pattern)


def _missing_texts(table: pl.DataFrame) -> tuple[list[str], list[str]]:
    """Texts such as NA that stand for missing, and notes on columns where they may be values."""
    candidates = [*_ALWAYS_MISSING, *_MISSING_AMONG_NUMBERS]
    found: dict[str, str] = {}
    doubtful: list[tuple[str, str]] = []
    for column in table.iter_columns():
        if column.dtype != pl.String or not column.is_in(candidates).any():
            continue
        values = column.drop_nulls().unique()
        rest = values.filter(~values.is_in(candidates))
        gap = len(rest) == 0 or _kind_of_text(rest) != "category"
        # Among codes of two or three letters, NA is Namibia.
        spelled_out = _longest(rest) > 3
        for text in values.filter(values.is_in(candidates)).sort():
            if gap or text in _ALWAYS_MISSING or (spelled_out and text in ("NA", "na")):
                found.setdefault(text, column.name)
            else:
                doubtful.append((text, column.name))
    notes = [
        f"'{text}' means missing in '{found[text]}' and so in '{name}' too; if it is a value there, spell it otherwise."
        for text, name in doubtful
        if text in found
    ]
    return [text for text in candidates if text in found], notes


def _look(series: pl.Series) -> _Facts:
    counted = series.drop_nulls().alias("value").value_counts(name="records")
    values, counts = counted["value"], counted["records"].to_numpy().astype(np.int64)
    words = words_of(series.name)
    hint = _hint(words)
    is_zip = hint is _PLACE and any(part in "".join(words) for part in _ZIP)
    kind: Kind = "category"
    if series.dtype == pl.String:
        kind = _kind_of_text(values)
    elif series.dtype.is_temporal():
        kind = "date"
    elif series.dtype.is_float() or np.abs(values.cast(pl.Float64).to_numpy()).max(initial=0) <= EXACT_INTEGER:
        kind = "number"
    if kind == "number" and is_zip:
        # Zip codes of different length have lost their zeros; as numbers, neighbours are still near each other.
        kind = "category" if _width(values) else "number"
    elif kind == "number" and hint is not None and hint in _CODED and series.dtype.is_integer():
        kind = "category" if len(values) <= CODED_AT_MOST and not _QUANTITIES & {*words} else "number"
    return _Facts(series, values, counts, kind, frozenset(words), hint, is_zip)


def _kind_of_text(values: pl.Series) -> Kind:
    """What text is, when all of it is: numbers, ISO dates, or just text."""
    # The first values tell most columns apart, so that long ones are parsed once at most.
    for part in (values.head(100), values):
        numbers = part.cast(pl.Float64, strict=False)
        exact = numbers.is_finite() & (numbers.abs() <= EXACT_INTEGER) & ~part.str.contains(_CODE)
        is_number = len(part) > 0 and exact.fill_null(False).all()
        is_date = len(part) > 0 and part.str.contains(_ISO_DATE).all()
        is_date = is_date and part.str.to_date("%Y-%m-%d", strict=False).null_count() == 0
        if not is_number and not is_date:
            return "category"
    return "number" if is_number else "date"


def _hint(words: Sequence[str]) -> _Hint | None:
    joined = "".join(words)
    if joined in _PERSON_KEYS:
        return _PERSONAL_NUMBER
    if _NAMES & {*words} and {*words} - _NAMES <= _NAME_PARTS:
        return _PERSONAL_NAME
    known = {*words, *(one + other for one, other in pairwise(words))}
    for hint, (whole, stems) in _WORDS.items():
        if known & whole or any(stem in joined for stem in stems):
            return hint
    return None


def speaks_of(name: str) -> str | None:
    """What the name of a column speaks of, where that is known.

    >>> speaks_of("zip"), speaks_of("admitted"), speaks_of("x17")
    ('a place', 'a visible trait or event', None)
    """
    hint = _hint(words_of(name))
    return None if hint is None else hint.about


def _suggest(facts: _Facts) -> ColumnProfile:
    role, why = _role(facts)
    taxonomy, taxonomy_why = _taxonomy(facts) if role == "quasi" else (None, "")
    records = len(facts.series)
    return ColumnProfile(
        name=facts.series.name,
        kind=facts.kind,
        distinct=facts.distinct,
        missing=facts.missing / records,
        distinction=facts.distinct / records,
        separation=facts.separation,
        role=role,
        why=why,
        taxonomy=taxonomy,
        taxonomy_why=taxonomy_why,
    )


def _role(facts: _Facts) -> tuple[Role, str]:
    hint = facts.hint
    if facts.distinct == 0:
        return "other", "It has no values at all, so there is nothing to protect."
    if facts.distinct == 1 and not facts.missing:
        return "other", "It says the same of every record, so it tells nobody apart."
    for what, pattern, least in PATTERNS:
        if least == 0 and facts.looks_like(pattern):
            return "identifier", f"Its values look like {what}."
    apart = f"it tells {percent(facts.separation)} of the pairs of records apart"
    if len(facts.series) >= ENOUGH and facts.share >= FREE_TEXT_LEAST and facts.looks_like(FREE_TEXT):
        return "identifier", "It is free text, in which anybody may be named."
    if hint is not None and hint.role == "identifier" and _names_people(facts, hint):
        return "identifier", f"Its name speaks of {hint.about}."
    if hint is not None and hint.role == "sensitive" and facts.kind != "date":
        looks = direct_identifier(facts.series)
        if looks is not None:
            return "identifier", f"Its values look like {looks}, whatever its name says."
        return "sensitive", f"Its name speaks of {hint.about}, which nobody must learn about a person."
    if hint is not None and hint.role == "quasi":
        return "quasi", f"Its name speaks of {hint.about}, which others may know; {apart}."
    if facts.kind == "date":
        return "quasi", f"Others may know on which day something happened to a person; {apart}."
    looks = _looks_like_key(facts)
    if looks:
        return "identifier", looks
    return "quasi", f"Nothing is known about it and {apart}: quasi, to be on the safe side."


def _of_persons(
    table: pl.DataFrame, seen: Sequence[_Facts], columns: tuple[ColumnProfile, ...]
) -> tuple[tuple[ColumnProfile, ...], Persons | None]:
    """The suggestions for people with several rows, where a column says whose each row is."""
    found = _person_column(table, seen, columns)
    if found is None:
        return tuple(_repeating(facts, column) for facts, column in zip(seen, columns, strict=True)), None
    key, why = found
    people = persons_in(table, key)
    suggested = []
    for column in columns:
        if column.name == key:
            told = f"{why}, and its values repeat: {rows_each(table[key])}. What is protected is a person, not a row."
            column = replace(column, role="person", why=told, taxonomy=None, taxonomy_why="")
        elif column.role == "quasi" and (apart := differing(table[column.name], people)):
            told = f"It differs between the rows of {apart:,} persons; this says which value counts, and is published."
            column = replace(column, within=settling(column.kind), within_why=told)
        suggested.append(column)
    return tuple(suggested), people


def _person_column(
    table: pl.DataFrame, seen: Sequence[_Facts], columns: Sequence[ColumnProfile]
) -> tuple[str, str] | None:
    """The column whose values are people's keys, and why; none where no such key repeats.

    A column called a person's key needs nothing else, nor do e-mail addresses and the like. Whatever else repeats is a
    person's key only if its rows agree in other columns.
    """
    others = table.select([column.name for column in columns if column.role == "quasi"][:SHOWN])
    found = []
    for facts, column in zip(seen, columns, strict=True):
        repeated = len(facts.series) - facts.missing - facts.distinct
        name = column.name
        if not repeated or facts.distinct <= min(FEW_VALUES, len(facts.series) // 4) or _is_quantity(facts):
            continue
        if _named_key(facts):
            found.append((0, -facts.distinct, name, f"Its name speaks of {_PERSONAL_NUMBER.about}"))
        elif any(least == 0 and facts.looks_like(form) for _, form, least in PATTERNS):
            found.append((1, -facts.distinct, name, column.why.rstrip(".")))
        elif (
            (column.role == "identifier" or facts.hint is None)
            and repeated > REPEATED * len(facts.series)
            and belongs_together(facts.series, others.drop(name, strict=False))
        ):
            why = "Rows with the same value of it agree in most other columns, as those of one person do"
            found.append((2, -facts.distinct, name, why))
    return (found[0][2], found[0][3]) if (found := sorted(found)) else None


def _named_key(facts: _Facts) -> bool:
    joined = "".join(words_of(facts.series.name))
    return joined in _OWN_KEYS or (facts.hint is _PERSONAL_NUMBER and joined not in _PERSON_KEYS)


def _is_quantity(facts: _Facts) -> bool:
    """Numbers with fractions and dates are nobody's key."""
    return facts.series.dtype.is_float() or facts.kind == "date" or facts.series.dtype == pl.Boolean


def _repeating(facts: _Facts, column: ColumnProfile) -> ColumnProfile:
    """Names and addresses may repeat without being one person's; of anything else the owner is asked."""
    repeated = len(facts.series) - facts.missing - facts.distinct
    if column.role != "identifier" or repeated <= REPEATED * len(facts.series):
        return column
    if facts.hint not in (_PERSONAL_NAME, _CONTACT) and not facts.looks_like(FREE_TEXT):
        return column
    why = f"{column.why} It repeats in {repeated:,} rows that do not look like one person's."
    return replace(column, repeats="allowed", why=why)


def _quasi(table: pl.DataFrame, columns: Sequence[ColumnProfile], people: Persons | None) -> pl.DataFrame:
    """The quasi-identifiers, one row a person."""
    quasi = {column.name: (column.kind, column.within) for column in columns if column.role == "quasi"}
    if people is None or not quasi:
        return table.select(list(quasi))
    return settled(table, quasi_schema(quasi), people)


def _names_people(facts: _Facts, hint: _Hint) -> bool:
    """A name alone is not enough: 'phone' may be yes or no, and 'street' one of three."""
    enough = facts.share >= 0.05 or facts.distinct > FEW_VALUES or hint is _PERSONAL_NAME
    return facts.distinct > min(2, len(facts.series) - 1) and enough and not facts.series.dtype.is_float()


def _looks_like_key(facts: _Facts) -> str | None:
    for what, pattern, least in PATTERNS:
        if least > 0 and facts.share >= least and facts.looks_like(pattern):
            return f"Its values look like {what} and {percent(facts.share)} of them are distinct."
    if facts.series.dtype.is_float() or facts.looks_like(_ISO_TIME):
        return None
    distinct = f"{percent(facts.share)} of its values are distinct"
    enough = len(facts.series) >= ENOUGH
    is_number = facts.words & _NUMBERS and "of" not in facts.words and enough and facts.share >= MOSTLY
    if is_number or (facts.words & _KEYS and facts.share >= 0.5):
        return f"Its name speaks of a number or key of a record, and {distinct}."
    if facts.is_text and enough and facts.share >= 0.95:
        return f"It is text and {distinct}: nearly every record has its own."
    if facts.series.dtype.is_integer() and enough and facts.share == 1.0:
        span = float(np.ptp(facts.values.cast(pl.Float64).to_numpy()))
        if span < 2 * len(facts.series) or (_width(facts.values) or 0) >= 7:
            return "Its whole numbers are all different and look counted or issued, like record numbers."
    return None


def _taxonomy(facts: _Facts) -> tuple[TaxonomyRule | None, str]:
    if facts.kind == "number":
        return None, "Numbers need no taxonomy: classes get the intervals that fit them."
    if facts.kind == "date":
        days = facts.values.cast(pl.String).str.head(10).str.to_date("%Y-%m-%d").to_physical().to_numpy()
        years = float(np.ptp(days)) / 365
        if years < 0.2:
            return None, "A few weeks need no taxonomy: classes get the intervals of days that fit them."
        if years > 20:
            return {"dates": ["month", "year", "decade"]}, "Days, then months, years and decades."
        return {"dates": ["month", "year"]}, "Days, then months and years."
    texts = facts.values.cast(pl.String)
    width = _width(facts.values)
    if texts.str.contains("*", literal=True).any():
        return None, "Some values hold a star, which is how taxonomies hide characters: classes get sets of values."
    if facts.looks_like(_ISO_TIME):
        return {"prefix": [10, 7, 4, 0]}, "Points in time, then days, months and years."
    if width and width > 2 and (facts.is_zip or facts.distinct > FEW_VALUES):
        return {"prefix": _prefixes(width)}, "Codes of one length: their last digits are hidden first."
    if facts.is_zip and facts.distinct > 1:
        return {"prefix": _prefixes(_longest(texts))}, "Postal codes: their last characters are hidden first."
    if facts.distinct <= FEW_VALUES:
        return None, "Few values need no taxonomy: classes get sets of values."
    if facts.distinct <= CLUSTERED_AT_MOST:
        return "auto", "Many values: grouped by what they occur with. A taxonomy file of your own is better."
    return {"prefix": [3, 2, 1, 0]}, "Very many values: grouped by how they begin. A file of your own is better."


def _width(values: pl.Series) -> int | None:
    """The number of digits, when all values are that many digits."""
    if values.dtype.is_float() or len(values) == 0:
        return None
    texts = values.cast(pl.String)
    lengths = texts.str.len_chars()
    same = lengths.min() == lengths.max() and texts.str.contains(r"^[0-9]+$").all()
    return int(lengths[0]) if same else None


def _longest(texts: pl.Series) -> int:
    return int(texts.str.len_chars().to_numpy().max(initial=0))


def _prefixes(width: int) -> list[int]:
    return sorted({round(0.6 * width), round(0.35 * width), 0} - {width}, reverse=True)


def _unique_share(table: pl.DataFrame) -> float:
    return _mean(table.is_unique()) if table.width else 0.0


def _mean(flags: pl.Series) -> float:
    return int(flags.sum()) / len(flags)


def _diversity(facts: _Facts, k: int, people: Persons | None) -> Diversity:
    """The largest p up to 3 that leaves classes of a bearable size (docs/models.md#condition-2, docs/persons.md)."""
    records, name = len(facts.series) if people is None else people.count, facts.series.name
    classes = 0
    for p in range(min(P, k), 1, -1):
        classes = max_classes(facts.counts, p) if people is None else _classes_of_persons(facts, p, people)
        if classes * SLACK * k >= records:
            return Diversity(name, p, f"Its values allow up to {classes:,} classes with {p} different ones each.")
    why = f"p = 2 would leave no more than {classes:,} of them" if classes else "its values do not differ"
    return Diversity(name, 1, f"No rule on its classes: {why}.")


def _classes_of_persons(facts: _Facts, p: int, people: Persons) -> int:
    codes = (facts.series.rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy().astype(np.int32)
    column = Sensitive(facts.series.name, codes, tuple(str(i) for i in range(facts.distinct)))
    rule = bound(PSensitive(p), Crowd(column, people.of_row, people.count), people.count)
    return 0 if rule.infeasible() else rule.max_classes()


def _notes(table: pl.DataFrame, seen: Sequence[_Facts], columns: Sequence[ColumnProfile]) -> list[str]:
    notes = []
    exact = [facts for facts in seen if not facts.series.dtype.is_float()]
    own = sum(facts.series.name in facts.values.cast(pl.String) for facts in exact)
    if own > 1 and 2 * own >= len(columns):
        notes.append(
            "The column names also occur as values: if the file begins with its first record, name its columns with "
            "--header."
        )
    quasi = [facts for facts, column in zip(seen, columns, strict=True) if column.role == "quasi"]
    if not quasi:
        notes.append("No column is left to mask: without a quasi-identifier there is nothing to anonymize.")
    if not any(column.role == "sensitive" for column in columns):
        notes.append(
            'No column looks sensitive by its name: if one is, give it the role "sensitive" and add p_sensitive '
            "to [policy]."
        )
    for facts in seen:
        numbers = facts.values.cast(pl.Float64, strict=False) if facts.is_text else facts.values
        strange = numbers.null_count()
        if facts.is_text and 0 < strange <= 0.1 * facts.distinct:
            example = facts.values.filter(numbers.is_null()).sort()[0]
            notes.append(
                f"'{facts.series.name}' would be numbers without '{example}'"
                + (f" and {strange - 1} more values" if strange > 1 else "")
                + ': correct them or list them under missing, then declare kind = "number".'
            )
    # Two columns of nearly unique values, or two of hundreds of columns, match by chance.
    repeated = [facts for facts in quasi if 2 < facts.distinct <= table.height / 2][:SHOWN]
    for one, other in combinations(repeated, 2):
        if one.distinct == other.distinct == pl.DataFrame([one.series, other.series]).drop_nulls().n_unique():
            notes.append(
                f"'{one.series.name}' and '{other.series.name}' say the same: less is lost when one of them is dropped "
                '(role = "identifier").'
            )
    return notes
