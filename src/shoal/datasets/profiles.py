"""What the synthetic hospital believes about the world: places, ages, jobs, illnesses, names.

Everything here is made up to look plausible; no figure is an estimate of anything real. Every function
returns a table of weights with one row a context, which `population` turns into random values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import exact

Floats = NDArray[np.float64]

OLDEST = 105
AGES = np.arange(OLDEST + 1)
SEXES = ("female", "male")
AREAS = ("city", "country", "coast")
PRICES = (1.18, 0.93, 1.0)  # of a treatment, per area

FIRST_DAY = np.datetime64("2023-01-01")
DAYS = 731

# Region prefix and area, largest region first.
REGIONS = (
    *(("10", 0), ("41", 0), ("26", 1), ("73", 0), ("58", 2), ("04", 1), ("62", 1), ("19", 2)),
    *(("85", 0), ("33", 1), ("47", 1), ("91", 2), ("12", 1), ("68", 1), ("79", 1), ("29", 2)),
)
TOWNS = 9
CODES = 40  # of the largest town; the next has half as many, then a third

OCCUPATIONS = (
    *("child", "pupil", "student", "farm worker", "construction worker", "factory worker", "driver"),
    *("shop assistant", "care worker", "office clerk", "teacher", "engineer"),
    *("homemaker", "unemployed", "retired"),
)
# Weight of each job from "farm worker" to "engineer", per sex, and how much more likely per area.
_JOBS = {
    "female": (2.0, 0.6, 6.0, 1.5, 17.0, 21.0, 24.0, 12.0, 4.0),
    "male": (4.0, 12.0, 14.0, 11.0, 9.0, 5.0, 13.0, 5.0, 14.0),
}
_JOBS_BY_AREA = {
    "city": (0.05, 0.9, 0.7, 1.0, 1.1, 1.0, 1.4, 1.0, 1.6),
    "country": (4.0, 1.2, 1.4, 1.1, 0.9, 1.0, 0.7, 1.0, 0.6),
    "coast": (1.0, 1.1, 0.6, 1.0, 1.4, 1.3, 0.8, 1.0, 0.6),
}

# Weight by age as straight lines between (age, weight) points.
_CURVES: dict[str, tuple[tuple[int, float], ...]] = {
    "any": ((0, 1.0),),
    "newborn": ((0, 1.0), (1, 0.0)),
    "infant": ((0, 1.0), (2, 0.7), (4, 0.1), (6, 0.0)),
    "child": ((0, 0.5), (3, 1.0), (9, 0.9), (18, 0.3), (35, 0.08), (60, 0.02)),
    "ends": ((0, 1.0), (5, 0.6), (20, 0.2), (55, 0.3), (75, 1.0), (105, 1.6)),
    "young": ((2, 0.0), (8, 0.6), (16, 1.0), (30, 0.7), (50, 0.3), (80, 0.1)),
    "injury": ((0, 0.2), (8, 1.0), (18, 1.0), (40, 0.5), (65, 0.5), (85, 1.2)),
    "grown": ((13, 0.0), (18, 0.6), (30, 1.0), (50, 0.9), (70, 0.4), (95, 0.1)),
    "middle": ((17, 0.0), (30, 0.3), (50, 1.0), (65, 0.9), (80, 0.5), (105, 0.2)),
    "older": ((29, 0.0), (45, 0.2), (60, 0.7), (75, 1.0), (90, 0.9), (105, 0.7)),
    "oldest": ((54, 0.0), (65, 0.15), (78, 0.7), (90, 1.2), (105, 1.3)),
    "fertile": ((14, 0.0), (18, 0.2), (24, 0.7), (30, 1.0), (36, 0.7), (42, 0.15), (49, 0.01), (50, 0.0)),
}


class Illness(NamedTuple):
    """One diagnosis: how often, for whom and when it occurs, how long it keeps and what it costs."""

    name: str
    weight: float
    curve: str
    female: float  # weight for women, where men have 1 …
    male: float  # … unless it says otherwise here
    peak: int  # month of the year with most cases, 1 to 12
    swing: float  # from 0 (all year alike) to almost 1 (none in the opposite season)
    days: float  # median stay of a fifty-year-old
    spread: float  # of the logarithm of the stay
    fixed: float  # cost of the treatment itself
    daily: float  # cost of a day


ILLNESSES = (
    Illness("Heart attack", 2.6, "older", 0.55, 1, 1, 0.15, 5.0, 0.5, 7200, 780),
    Illness("Heart failure", 4.2, "oldest", 0.9, 1, 1, 0.25, 7.5, 0.6, 1500, 520),
    Illness("Irregular heartbeat", 2.6, "older", 0.85, 1, 1, 0.05, 2.5, 0.7, 1900, 560),
    Illness("Angina", 2.0, "older", 0.6, 1, 2, 0.1, 2.2, 0.6, 2600, 560),
    Illness("Stroke", 2.7, "older", 0.85, 1, 1, 0.1, 9.0, 0.8, 3900, 690),
    Illness("High blood pressure", 1.6, "older", 1.3, 1, 1, 0.1, 2.4, 0.6, 400, 430),
    Illness("Leg vein clot", 0.7, "middle", 1.1, 1, 8, 0.05, 3.4, 0.6, 700, 420),
    Illness("Pneumonia", 4.0, "ends", 0.85, 1, 1, 0.5, 6.5, 0.6, 900, 520),
    Illness("Influenza", 2.2, "ends", 1.0, 1, 2, 0.97, 4.0, 0.6, 500, 460),
    Illness("Bronchiolitis", 7.0, "infant", 0.75, 1, 12, 0.95, 3.2, 0.5, 350, 610),
    Illness("Tonsillitis", 2.2, "child", 1.15, 1, 3, 0.2, 1.6, 0.4, 1100, 420),
    Illness("Asthma", 2.0, "child", 0.95, 1, 10, 0.4, 2.4, 0.6, 350, 450),
    Illness("Chronic bronchitis", 2.6, "older", 0.8, 1, 1, 0.4, 6.2, 0.6, 800, 470),
    Illness("Bowel cancer", 1.5, "older", 0.75, 1, 6, 0.0, 8.5, 0.7, 6900, 610),
    Illness("Stomach cancer", 0.4, "older", 0.6, 1, 6, 0.0, 9.0, 0.7, 7400, 620),
    Illness("Pancreatic cancer", 0.4, "older", 0.9, 1, 6, 0.0, 9.5, 0.8, 8200, 650),
    Illness("Lung cancer", 1.3, "older", 0.6, 1, 6, 0.0, 6.5, 0.8, 5600, 640),
    Illness("Breast cancer", 1.9, "middle", 1.0, 0.01, 6, 0.0, 3.4, 0.6, 5900, 560),
    Illness("Prostate cancer", 1.2, "older", 0.0, 1, 6, 0.0, 4.6, 0.6, 5300, 540),
    Illness("Ovarian cancer", 0.4, "middle", 1.0, 0, 6, 0.0, 7.2, 0.7, 6600, 610),
    Illness("Leukaemia", 0.45, "ends", 0.75, 1, 6, 0.0, 16.0, 0.9, 9800, 930),
    Illness("Lymphoma", 0.5, "older", 0.8, 1, 6, 0.0, 8.0, 0.8, 6100, 760),
    Illness("Gastroenteritis", 3.0, "ends", 1.05, 1, 2, 0.4, 2.8, 0.5, 250, 410),
    Illness("Appendicitis", 2.4, "young", 0.85, 1, 7, 0.1, 3.0, 0.4, 2700, 480),
    Illness("Stomach ulcer", 0.8, "older", 0.8, 1, 11, 0.05, 4.6, 0.6, 1700, 470),
    Illness("Bowel inflammation", 0.8, "young", 1.05, 1, 6, 0.0, 5.4, 0.7, 1300, 480),
    Illness("Hernia", 2.2, "middle", 0.25, 1, 6, 0.0, 1.2, 0.5, 2300, 420),
    Illness("Gallstones", 2.5, "middle", 1.7, 1, 7, 0.05, 3.2, 0.5, 3000, 450),
    Illness("Liver cirrhosis", 0.8, "middle", 0.45, 1, 6, 0.0, 8.2, 0.7, 1900, 540),
    Illness("HIV infection", 0.3, "grown", 0.35, 1, 6, 0.0, 8.0, 0.8, 2600, 590),
    Illness("Hepatitis B", 0.2, "grown", 0.6, 1, 6, 0.0, 5.0, 0.6, 1500, 470),
    Illness("Hepatitis C", 0.25, "grown", 0.6, 1, 6, 0.0, 4.0, 0.6, 2900, 460),
    Illness("Blood poisoning", 1.8, "ends", 0.9, 1, 1, 0.1, 10.0, 0.7, 3300, 960),
    Illness("Tuberculosis", 0.12, "middle", 0.55, 1, 4, 0.1, 18.0, 0.6, 1800, 450),
    Illness("Tick-borne infection", 0.3, "any", 0.85, 1, 7, 0.95, 6.0, 0.6, 900, 430),
    Illness("Depression", 2.4, "grown", 1.6, 1, 12, 0.15, 21.0, 0.8, 300, 330),
    Illness("Bipolar disorder", 0.6, "grown", 1.15, 1, 4, 0.1, 22.0, 0.7, 300, 340),
    Illness("Schizophrenia", 0.8, "grown", 0.7, 1, 6, 0.0, 25.0, 0.8, 300, 350),
    Illness("Alcohol dependence", 2.2, "middle", 0.35, 1, 1, 0.1, 7.0, 0.8, 300, 310),
    Illness("Opioid dependence", 0.5, "grown", 0.35, 1, 6, 0.0, 9.0, 0.8, 350, 320),
    Illness("Epilepsy", 1.3, "ends", 0.85, 1, 6, 0.0, 3.0, 0.7, 700, 520),
    Illness("Migraine", 0.8, "grown", 2.6, 1, 6, 0.0, 2.0, 0.5, 350, 400),
    Illness("Multiple sclerosis", 0.5, "grown", 2.3, 1, 4, 0.05, 5.0, 0.5, 2400, 480),
    Illness("Dementia", 1.7, "oldest", 1.35, 1, 6, 0.0, 12.0, 0.8, 300, 360),
    Illness("Type 1 diabetes", 0.7, "young", 0.9, 1, 1, 0.1, 4.5, 0.5, 500, 450),
    Illness("Type 2 diabetes", 2.0, "older", 0.8, 1, 1, 0.05, 6.8, 0.6, 600, 430),
    Illness("Overactive thyroid", 0.4, "middle", 3.2, 1, 6, 0.0, 2.4, 0.4, 2500, 440),
    Illness("Dehydration", 1.1, "ends", 1.25, 1, 7, 0.8, 3.4, 0.6, 150, 380),
    Illness("Kidney failure", 1.6, "older", 0.8, 1, 6, 0.0, 7.5, 0.7, 2100, 590),
    Illness("Kidney stones", 1.9, "middle", 0.45, 1, 8, 0.25, 1.8, 0.5, 1700, 420),
    Illness("Urinary infection", 2.3, "ends", 1.8, 1, 8, 0.1, 4.2, 0.5, 300, 410),
    Illness("Enlarged prostate", 1.3, "older", 0.0, 1, 6, 0.0, 3.4, 0.5, 2600, 430),
    Illness("Normal birth", 40.0, "fertile", 1.0, 0, 8, 0.08, 2.6, 0.3, 1700, 380),
    Illness("Caesarean birth", 17.0, "fertile", 1.0, 0, 8, 0.05, 4.2, 0.3, 3400, 410),
    Illness("Miscarriage", 5.0, "fertile", 1.0, 0, 6, 0.0, 1.1, 0.4, 900, 410),
    Illness("Premature labour", 4.0, "fertile", 1.0, 0, 6, 0.0, 7.0, 0.9, 1200, 480),
    Illness("Newborn jaundice", 26.0, "newborn", 0.9, 1, 6, 0.0, 3.0, 0.4, 350, 520),
    Illness("Newborn breathing trouble", 10.0, "newborn", 0.8, 1, 6, 0.0, 5.0, 0.7, 1900, 980),
    Illness("Premature newborn", 9.0, "newborn", 0.95, 1, 6, 0.0, 24.0, 0.8, 6200, 1150),
    Illness("Hip fracture", 2.4, "oldest", 1.7, 1, 1, 0.15, 12.0, 0.5, 6100, 460),
    Illness("Wrist fracture", 1.9, "injury", 1.2, 1, 7, 0.2, 2.0, 0.5, 1900, 420),
    Illness("Knee arthrosis", 2.9, "older", 1.4, 1, 6, 0.0, 7.2, 0.35, 6700, 410),
    Illness("Back pain", 2.6, "middle", 1.1, 1, 6, 0.0, 4.8, 0.7, 800, 390),
    Illness("Concussion", 2.6, "injury", 0.75, 1, 6, 0.15, 1.2, 0.4, 300, 420),
    Illness("Burn", 0.35, "child", 0.65, 1, 12, 0.1, 8.0, 0.9, 3600, 890),
)


class Places(NamedTuple):
    """Every zip code with its weight and the position of its area in `AREAS`."""

    codes: list[str]
    weights: Floats
    areas: NDArray[np.uint8]


def places() -> Places:
    """Regions (two digits) of towns (three digits) of delivery areas (five), each level by Zipf's law."""
    codes: list[str] = []
    weights: list[float] = []
    areas: list[int] = []
    for region_rank, (prefix, area) in enumerate(REGIONS, start=1):
        for town_rank in range(1, TOWNS + 1):
            town = (region_rank * 3 + town_rank * 7) % 10
            size = 1.0 / float(exact.power(region_rank, 0.8) * exact.power(town_rank, 1.1))
            ranks = np.arange(1, max(2, CODES // town_rank) + 1)
            shares = exact.power(ranks, -0.8)
            # 37 has no factor in common with 100: no ending comes twice in a town.
            codes += [f"{prefix}{town}{(rank * 37 + town_rank * 11) % 100:02d}" for rank in ranks.tolist()]
            weights += (size * shares / shares.sum()).tolist()
            areas += [area] * len(ranks)
    return Places(codes, np.array(weights), np.array(areas, dtype=np.uint8))


def ages() -> Floats:
    """Weights of the ages 0 to 105; a row for each (area, sex)."""
    rows = []
    for tilt in (-0.006, 0.002, 0.014):
        for sex in SEXES:
            points = (
                ((0, 30), (1, 8), (5, 4.5), (15, 5), (20, 8), (30, 14), (38, 9), (50, 10), (65, 17), (78, 23))
                if sex == "female"
                else (
                    (0, 33),
                    (1, 10),
                    (5, 5.5),
                    (15, 5),
                    (20, 6),
                    (30, 6),
                    (38, 7),
                    (50, 12),
                    (65, 21),
                    (78, 23),
                )
            )
            last = ((90, 12.0), (98, 1.6), (105, 0.02)) if sex == "female" else ((90, 7.0), (98, 0.7), (105, 0.008))
            rows.append(_lines((*points, *last)) * exact.exp(tilt * (AGES - 50)))
    return np.array(rows)


def days() -> Floats:
    """Weights of the days of admission: few on Sundays and holidays, more in winter, a wave each February."""
    dates = FIRST_DAY + np.arange(DAYS)
    weekday = (dates.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday
    year_start = dates.astype("datetime64[Y]").astype("datetime64[D]")
    day_of_year = (dates - year_start).astype(np.int64)
    by_weekday = np.array([1.25, 1.15, 1.1, 1.08, 1.0, 0.72, 0.65])[weekday]
    season = 1 + 0.1 * _wave((day_of_year - 20) / 365.25)
    wave = 1 + 0.22 * exact.exp(-(((day_of_year - 42) / 14.0) ** 2))
    holiday = np.where((day_of_year >= 357) | (day_of_year == 0), 0.6, 1.0)
    return np.array([by_weekday * season * wave * holiday])


def months() -> NDArray[np.uint8]:
    """The month, 0 to 11, of every day of `days`."""
    dates = FIRST_DAY + np.arange(DAYS)
    return (dates.astype("datetime64[M]").astype(np.int64) % 12).astype(np.uint8)


def occupations() -> Floats:
    """Weights of `OCCUPATIONS`; a row for each (area, sex, age)."""
    table = np.zeros((len(AREAS), len(SEXES), len(AGES), len(OCCUPATIONS)))
    child = _lines(((5, 1.0), (6, 0.3), (7, 0.0)))
    pupil = _lines(((5, 0.0), (6, 0.7), (7, 1.0), (15, 1.0), (16, 0.85), (18, 0.4), (20, 0.0)))
    student = _lines(((16, 0.0), (18, 0.2), (20, 0.38), (23, 0.3), (27, 0.1), (34, 0.0)))
    retired = _lines(((51, 0.0), (58, 0.06), (62, 0.22), (65, 0.6), (67, 0.88), (75, 0.98), (85, 1.0)))
    left = np.clip(1 - child - pupil - student - retired, 0.0, None)
    left[AGES < 16] = 0.0
    left[AGES >= 85] = 0.0
    unemployed = left * np.where(AGES < 25, 0.11, 0.065)
    for area, area_name in enumerate(AREAS):
        for sex, sex_name in enumerate(SEXES):
            homemaker = left * _lines(((19, 0.0), (32, 0.16), (60, 0.2))) * (1.0 if sex_name == "female" else 0.08)
            jobs = np.array(_JOBS[sex_name]) * np.array(_JOBS_BY_AREA[area_name])
            rest = left - unemployed - homemaker
            parts = [
                child,
                pupil,
                student,
                *np.outer(jobs / jobs.sum(), rest),
                homemaker,
                unemployed,
                retired,
            ]
            table[area, sex] = np.stack(parts, axis=1)
    # Nobody is a teacher or an engineer straight from school.
    table[:, :, AGES < 22, OCCUPATIONS.index("teacher") : OCCUPATIONS.index("engineer") + 1] = 0.0
    return table.reshape(-1, len(OCCUPATIONS))


def diagnoses() -> Floats:
    """Weights of `ILLNESSES`; a row for each (age, sex, month)."""
    weight = np.array([ill.weight for ill in ILLNESSES])
    by_age = np.array([_lines(_CURVES[ill.curve]) for ill in ILLNESSES]).T
    by_sex = np.array([[ill.female for ill in ILLNESSES], [ill.male for ill in ILLNESSES]])
    phase = (np.arange(1, 13)[:, None] - np.array([ill.peak for ill in ILLNESSES])) / 12
    by_month = 1 + np.array([ill.swing for ill in ILLNESSES]) * _wave(phase)
    table: Floats = weight * by_age[:, None, None, :] * by_sex[None, :, None, :] * by_month[None, None, :, :]
    return table.reshape(-1, len(ILLNESSES))


def names() -> tuple[list[list[str]], list[str]]:
    """First names per sex and last names, most common first, put together from syllables."""
    starts = (
        "Al",
        "Mar",
        "Te",
        "Jo",
        "Li",
        "Ka",
        "Ro",
        "Ve",
        "Si",
        "Da",
        "El",
        "No",
        "Ha",
        "Mi",
        "Be",
        "Ori",
    )
    ends = (
        ("na", "lia", "ra", "line", "sa", "mina", "ria", "lotte", "vina", "dora"),
        ("do", "rin", "mir", "bert", "ton", "las", "nik", "vid", "rek", "gar"),
    )
    fronts = (
        *("Ash", "Brook", "Cold", "Dun", "East", "Fern", "Gold", "Hazel", "Iron", "Kest", "Lind", "Marsh"),
        *(
            "North",
            "Oak",
            "Pine",
            "Quill",
            "Rook",
            "Stone",
            "Thorn",
            "Under",
            "Wald",
            "Winter",
            "Yar",
            "Zell",
        ),
    )
    backs = (
        *("mann", "field", "wood", "berg", "ley", "ström", "brook", "stead", "feld", "son", "worth", "by"),
        *("ham", "hurst", "low", "mere", "ridge", "shaw", "wick", "vik", "gate", "holm", "dale", "ner"),
    )
    # Walking along the diagonals mixes the syllables, so that common names are not all alike.
    first = [[a + part[(i + j) % len(part)] for j in range(len(part)) for i, a in enumerate(starts)] for part in ends]
    last = [a + backs[(i + j) % len(backs)] for j in range(len(backs)) for i, a in enumerate(fronts)]
    return first, last


def _wave(turns: Floats) -> Floats:
    """Cosines of so many turns, to thirty binary digits: libraries disagree on the last of fifty-three."""
    return np.asarray(np.rint(np.cos(2 * np.pi * turns) * 2.0**30) / 2.0**30)


def _lines(points: tuple[tuple[float, float], ...]) -> Floats:
    """A weight for every age, on straight lines between (age, weight) points and level outside them."""
    return np.interp(AGES, [age for age, _ in points], [weight for _, weight in points])
