"""One made-up table of a clinic, and how exports of several countries and programs write it.

Every dialect writes the same people; whoever reads it right gets `clinic()` back. Nothing in here knows how the house reads.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

N = 240
MONTHS_FR = "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split()  # noqa: SIM905
MONTHS_ES = "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split()  # noqa: SIM905
MONTHS_PL = (
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia".split()  # noqa: SIM905
)
MONTHS_DE = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()  # noqa: SIM905


def clinic(n: int = N, seed: int = 5, *, low_days: bool = False) -> pl.DataFrame:
    """The table as it is meant: typed, and missing where nothing is known. `low_days`: no day of a month is above 12."""
    draw = random.Random(seed)

    def day(first: int, last: int) -> date:
        return date(draw.randint(first, last), draw.randint(1, 12), draw.randint(1, 12 if low_days else 28))

    def gaps(values: list[Any], share: float) -> list[Any]:
        return [None if draw.random() < share else value for value in values]

    return pl.DataFrame(
        {
            "name": [
                f"{draw.choice('ABCDEFGH')}{draw.choice('aeiou')}{draw.choice('lmnrst')}er{i:04d}" for i in range(n)
            ],
            "born": gaps([day(1932, 2006) for _ in range(n)], 0.05),
            "age": gaps([draw.randint(18, 92) for _ in range(n)], 0.08),
            "sex": [draw.choice(["f", "m"]) for _ in range(n)],
            "zip": [draw.choice(["01067", "01069", "04103", "10115", "20095", "50667", "80331"]) for _ in range(n)],
            "weight": gaps([round(draw.uniform(45, 120), 1) for _ in range(n)], 0.08),
            "seen": [day(2021, 2024) for _ in range(n)],
            "smoker": [draw.choice([0, 1]) for _ in range(n)],
            "cost": gaps([round(draw.uniform(80, 9900), 2) for _ in range(n)], 0.04),
            "diagnosis": gaps([draw.choice(["flu", "asthma", "angina", "ulcer", "migraine"]) for _ in range(n)], 0.06),
        },
        schema_overrides={"age": pl.Int64, "born": pl.Date},
    )


class Written(NamedTuple):
    """How a dialect writes each kind of value, and what it puts where there is none."""

    day: Callable[[date], str] = lambda d: d.isoformat()
    moment: Callable[[date], str] | None = None
    decimal: str = "."
    thousands: str = ""
    money: str = "{}"
    age: str = "{}"
    weight: str = "{}"
    no_day: str = ""
    no_number: str = ""
    no_word: str = ""
    delimiter: str = ","
    encoding: str = "utf-8"
    above: str = ""
    below: str = ""


def number(value: float, digits: int, how: Written) -> str:
    whole, _, rest = f"{value:,.{digits}f}".partition(".")
    return whole.replace(",", how.thousands) + (how.decimal + rest if rest else "")


def texts(table: pl.DataFrame, how: Written) -> list[dict[str, str]]:
    """Every record as it stands in the export."""

    def one(row: dict[str, Any]) -> dict[str, str]:
        born, seen = row["born"], row["seen"]
        return {
            "name": row["name"],
            "born": how.no_day if born is None else how.day(born),
            "age": how.no_number if row["age"] is None else how.age.format(row["age"]),
            "sex": row["sex"],
            "zip": row["zip"],
            "weight": how.no_number if row["weight"] is None else how.weight.format(number(row["weight"], 1, how)),
            "seen": (how.moment or how.day)(seen),
            "smoker": str(row["smoker"]),
            "cost": how.no_number if row["cost"] is None else how.money.format(number(row["cost"], 2, how)),
            "diagnosis": how.no_word if row["diagnosis"] is None else row["diagnosis"],
        }

    return [one(row) for row in table.iter_rows(named=True)]


def text_file(table: pl.DataFrame, how: Written, path: Path) -> Path:
    def cell(text: str) -> str:
        return f'"{text}"' if how.delimiter in text else text

    rows = texts(table, how)
    lines = [how.delimiter.join(rows[0]), *(how.delimiter.join(map(cell, row.values())) for row in rows)]
    path.write_bytes((how.above + "\n".join(lines) + "\n" + how.below).encode(how.encoding))
    return path


def excel(table: pl.DataFrame, how: Written, path: Path, *, typed: bool) -> Path:
    """A workbook with a title above the table, as people keep them; `typed`: numbers and dates are cells of their own kind."""
    import xlsxwriter

    book = xlsxwriter.Workbook(str(path))
    if not typed:
        about = book.add_worksheet("Info")
        about.write(0, 0, "Erläuterungen")
        about.write(1, 0, "Stand: 2024")
    page, as_date = book.add_worksheet("Patienten"), book.add_format({"num_format": "dd.mm.yyyy"})
    page.write(0, 0, "Patientenliste der Klinik, Stand 3. April 2024")
    rows: list[dict[str, Any]] = texts(table, how)
    if typed:
        blank = {"age": -99, "weight": -99, "cost": -99, "born": None, "diagnosis": "unbekannt"}
        rows = [{key: blank.get(key) if one is None else one for key, one in row.items()} for row in table.to_dicts()]
    for j, name in enumerate(table.columns):
        page.write(2, j, name)
        for i, row in enumerate(rows, start=3):
            if isinstance(row[name], date):
                page.write_datetime(i, j, datetime.combine(row[name], datetime.min.time()), as_date)
            elif isinstance(row[name], str):
                page.write_string(i, j, row[name])
            elif row[name] is not None:
                page.write_number(i, j, row[name])
    if not typed:
        page.write(len(rows) + 3, 0, "Summe")
        page.write(len(rows) + 3, 5, 12345.6)
    book.close()
    return path


SEX, SMOKER = {1: "f", 2: "m"}, {0: "no", 1: "yes"}


def statistics(table: pl.DataFrame, path: Path) -> Path:
    """A file of SPSS, Stata or SAS, with labels where the program has them and codes where somebody refused to answer."""
    import pyreadstat

    coded = table.with_columns(
        pl.col("sex").replace_strict({"f": 1, "m": 2}).cast(pl.Float64),
        pl.col("age").fill_null(-99).cast(pl.Float64),
        pl.col("smoker").cast(pl.Float64),
    )
    labels = {"sex": SEX, "age": {-99: "refused"}}
    if path.suffix == ".sav":
        pyreadstat.write_sav(coded, str(path), variable_value_labels=labels)
    elif path.suffix == ".dta":
        pyreadstat.write_dta(coded, str(path), variable_value_labels=labels)
    else:
        pyreadstat.write_xport(table.with_columns(pl.col("age").fill_null(-99).cast(pl.Float64)), str(path))
    return path


def zoned(day: date) -> str:
    return f"{day.isoformat()}T{7 + day.day % 12:02d}:30:00+0{1 + day.month % 2}:00"


def american(day: date) -> str:
    return f"{day.month:02d}/{day.day:02d}/{day.year} {1 + day.day % 12}:05 {'AM' if day.day % 2 else 'PM'}"


def german(day: date) -> str:
    return day.strftime("%d.%m.%Y")


def mixed(day: date) -> str:
    return german(day) if day.month > 4 else day.isoformat()


GERMAN = Written(
    german,
    decimal=",",
    thousands=".",
    money="{} €",
    age="{} J.",
    no_day="k.A.",
    no_number="k.A.",
    no_word="unbekannt",
    delimiter=";",
)
AMERICAN = Written(
    lambda d: d.strftime("%m/%d/%Y"),
    money="${}",
    thousands=",",
    age="{} y",
    no_day="",
    no_number="N/A",
    no_word="unknown",
)

DIALECTS: dict[str, tuple[str, Written]] = {
    "German export": (".csv", GERMAN._replace(encoding="cp1252")),
    "German export with a report's head": (".csv", GERMAN._replace(encoding="utf-8-sig", above="Klinik Nord;Station 3\nExport vom 03.04.2024\n\n")),
    "German export with dates that never end": (".csv", GERMAN._replace(no_day="31.12.9999", no_number="-99", age="{}", money="{}", moment=lambda d: german(d) + " 08:15:00")),
    "SAP list": (".txt", GERMAN._replace(delimiter="|", money="{}", age="{}", no_day="00.00.0000", no_number="-")),
    "German prose dates": (".csv", GERMAN._replace(day=lambda d: f"{d.day}. {MONTHS_DE[d.month - 1]} {d.year}")),
    "Swiss export": (".csv", Written(german, thousands="'", money="CHF {}", age="{} Jahre", no_number="n/a", no_day="n/a", no_word="unbekannt", delimiter=";")),
    "French export": (".csv", Written(lambda d: d.strftime("%d/%m/%Y"), decimal=",", thousands="\u202f", money="{} €", age="{} ans", no_day="inconnu", no_number="non renseigné", no_word="inconnu", delimiter=";")),
    "US export": (".csv", AMERICAN),
    "US export with a clock": (".csv", AMERICAN._replace(moment=american)),
    "US export with codes": (".csv", AMERICAN._replace(age="{}", money="{}", thousands="", no_number="9999")),
    "British export": (".csv", Written(lambda d: d.strftime("%d/%m/%Y"), money="£{}", thousands=",", age="{} yrs", weight="{} kg", no_number="not known", no_day="not known", no_word="not known")),
    "Timestamps with zones": (".csv", Written(moment=zoned, no_number="NA", no_day="NA", no_word="NA")),
    "Compact dates, tabs and minus nine": (".tsv", Written(lambda d: d.strftime("%Y%m%d"), no_number="-9", no_day="", delimiter="\t")),
    "Oracle's dates": (".csv", Written(lambda d: d.strftime("%d-%b-%y").upper(), no_number="", delimiter="|")),
    "Spreadsheet saved as Unicode text": (".txt", GERMAN._replace(delimiter="\t", encoding="utf-16")),
    "French export with words": (".csv", Written(lambda d: f"{'1er' if d.day == 1 else d.day} {MONTHS_FR[d.month - 1]} {d.year}", moment=lambda d: d.strftime("%d/%m/%Y %Hh30"), decimal=",", thousands="\u2009", money="{} €", weight="{}\u00a0kg", no_day="s/o", no_number="NR", no_word="non précisé", delimiter=";", encoding="utf-8-sig")),
    "Swiss amounts": (".csv", Written(lambda d: f"{d.day}.{d.month}.{d.year}", thousands="’", money="SFr. {}", age="{}J.", no_number="k. A.", no_day="unbek.", no_word="unbek.", delimiter=";", encoding="cp1252")),
    "Indian export": (".csv", Written(lambda d: d.strftime("%d-%b-%Y"), thousands=",", money="₹ {}", weight="{} kgs", no_number="N.A.", no_day="NIL", no_word="Not Known")),
    "Japanese export": (".csv", Written(lambda d: f"{d.year}年{d.month}月{d.day}日", thousands=",", money="¥{}", age="{}歳", no_number="不明", no_day="不明", no_word="無回答")),
    "Spanish export": (".csv", Written(lambda d: f"{d.day} de {MONTHS_ES[d.month - 1]} de {d.year}", moment=lambda d: d.strftime("%d-%m-%Y"), decimal=",", thousands=".", money="{} EUR", age="{} años", no_day="sin datos", no_number="N/C", no_word="no consta", delimiter=";", encoding="latin-1")),
    "Polish export": (".csv", Written(lambda d: f"{d.day} {MONTHS_PL[d.month - 1]} {d.year}", decimal=",", thousands="\u00a0", money="{} zł", age="{} lat", no_day="brak", no_number="brak", no_word="nieznane", delimiter=";", encoding="cp1250")),
    "Hungarian dates": (".csv", Written(lambda d: f"{d.year}. {d.month:02d}. {d.day:02d}.", decimal=",", thousands=" ", money="{} Ft", no_number="-", no_day="-", delimiter=";")),
    "US list with weekdays": (".csv", AMERICAN._replace(day=lambda d: d.strftime("%A, %B %d, %Y"), age="{}yo", money="US$ {}", no_number="#N/A")),
    "US list with short years": (".csv", AMERICAN._replace(moment=lambda d: d.strftime("%m/%d/%y"), age="{} years old", weight="{} kg", no_number="unk")),
    "Counted seconds": (".csv", Written(moment=lambda d: str(int((d - date(1970, 1, 1)).total_seconds()) + 30_000), no_number="null", no_day="null", no_word="null")),
    "A report with totals": (".csv", AMERICAN._replace(above="# Council export\n# made on 2024-05-01, do not edit\n", below="Total,,,,,,,,\"$1,234,567.00\",\n\nThese figures are preliminary.\n")),
    "Two ways to write a date": (".csv", Written(mixed, no_number="missing", no_day="missing", no_word="missing")),
}  # fmt: skip
FILES = (
    "Excel with a title",
    "Excel with a title and texts",
    "SPSS",
    "Stata",
    "SAS",
    "JSON lines",
    "Parquet with zones",
)
"""Files of other kinds, in `write`."""


def write(name: str, table: pl.DataFrame, folder: Path) -> Path:
    """The table in a dialect."""
    if name in DIALECTS:
        suffix, how = DIALECTS[name]
        return text_file(table, how, folder / f"export{suffix}")
    if name == "Excel with a title":
        return excel(table, GERMAN, folder / "export.xlsx", typed=True)
    if name == "Excel with a title and texts":
        return excel(table, GERMAN, folder / "export.xlsx", typed=False)
    if name in ("SPSS", "Stata", "SAS"):
        return statistics(table, folder / {"SPSS": "e.sav", "Stata": "e.dta", "SAS": "e.xpt"}[name])
    if name == "JSON lines":
        pl.DataFrame(texts(table, AMERICAN)).write_ndjson(folder / "export.jsonl")
        return folder / "export.jsonl"
    moments = pl.col("seen").cast(pl.Datetime("us")) + timedelta(hours=11)
    zones = table.with_columns(moments.dt.replace_time_zone("Europe/Berlin"), pl.col("smoker").cast(pl.Boolean))
    zones.with_columns(pl.col("age").fill_null(-99)).write_parquet(folder / "export.parquet")
    return folder / "export.parquet"
