"""Eight made-up tables in the style of public ones, and who each of their columns is, as somebody of the field would say it.

The roles were written down before anything that suggests roles was changed, and are judged by one question a column: who else
can know this about a person? Names, numbers and addresses name somebody (identifier); a key that repeats says whose the rows are
(person); what neighbours, colleagues, classmates or registers know can be looked up (quasi), and so can the days on which something
happened to a person; what nobody must learn is sensitive; answers, amounts of use and how an organisation works are other.
Suggestions are scored for identifiers, persons and quasi-identifiers: whether an answer or a measurement is delicate is for the
owner to say, and neither hides nor finds anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import polars as pl

RECORDS = 1200
FIRST = [
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gwen",
    "Hugo",
    "Ida",
    "Jan",
    "Kim",
    "Lea",
    "Max",
    "Nora",
    "Otto",
    "Pia",
]
LAST = [
    "Ash",
    "Birch",
    "Cole",
    "Dorn",
    "Eden",
    "Frost",
    "Gale",
    "Holt",
    "Ives",
    "Joyce",
    "Kern",
    "Lund",
    "Marsh",
    "Nye",
    "Orr",
]
TOWNS = [
    "Aldby",
    "Brack",
    "Corve",
    "Dunmore",
    "Esk",
    "Farne",
    "Goole",
    "Hythe",
    "Ilam",
    "Jura",
    "Kelso",
    "Looe",
    "Moss",
    "Nairn",
]
JOBS = [
    "clerk",
    "nurse",
    "driver",
    "teacher",
    "cook",
    "farmer",
    "welder",
    "lawyer",
    "painter",
    "guard",
    "baker",
    "analyst",
]


class Made:
    """Columns drawn by one seed; those of persons are drawn once a person and repeated in their rows."""

    def __init__(self, seed: int, rows_each: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.persons = RECORDS // rows_each
        self.whose = np.sort(
            np.concatenate([np.arange(self.persons), self.rng.integers(0, self.persons, RECORDS - self.persons)])
        )

    def own(self, values: np.ndarray | list[object]) -> list[object]:
        """One value a person, in each of the rows."""
        return [values[i] for i in self.whose]

    def pick(self, values: list[object], weights: list[float] | None = None, n: int = RECORDS) -> list[object]:
        """So many values, with chances in the ratio of the weights."""
        chances = None if weights is None else np.array(weights) / sum(weights)
        return [values[i] for i in self.rng.choice(len(values), n, p=chances)]

    def whole(self, low: int, high: int, n: int = RECORDS) -> list[int]:
        """Whole numbers from low to high."""
        return [int(x) for x in self.rng.integers(low, high + 1, n)]

    def bell(self, mean: float, spread: float, low: float, high: float, n: int = RECORDS) -> list[int]:
        """Whole numbers around a mean."""
        return [int(x) for x in np.clip(self.rng.normal(mean, spread, n), low, high)]

    def amount(self, typical: float, n: int = RECORDS) -> list[float]:
        """Amounts of money, a few of them large, to the cent."""
        return [round(float(x), 2) for x in typical * self.rng.lognormal(0, 0.6, n)]

    def day(self, first: date, days: int, n: int = RECORDS) -> list[date]:
        """Days of a period."""
        return [first + timedelta(days=int(x)) for x in self.rng.integers(0, days, n)]

    def codes(self, count: int, form: str, n: int = RECORDS) -> list[object]:
        """Codes of a list of so many, some far more frequent than others."""
        drawn = np.minimum(self.rng.geometric(3.0 / count, n) - 1, count - 1)
        return [form.format(int(x)) for x in drawn]


def survey() -> pl.DataFrame:
    """A social survey: one row a respondent, eighty columns, most of them answers."""
    made = Made(11)
    table: dict[str, object] = {
        "respid": [100_000 + 7 * i for i in range(RECORDS)],
        "mode": made.pick(["web", "phone", "face"], [6, 3, 1]),
        "duration_min": made.bell(42, 12, 12, 95),
        "design_weight": [round(x, 1) for x in made.rng.uniform(0.3, 2.9, RECORDS)],
        "sex": made.pick(["female", "male"], [52, 48]),
        "birth_year": [2024 - age for age in made.bell(48, 17, 18, 95)],
        "region": made.codes(16, "R{:02d}"),
        "urban_rural": made.pick(["city", "suburb", "village"]),
        "education_level": made.whole(0, 6),
        "marital_status": made.pick(["single", "married", "divorced", "widowed"], [3, 5, 1.5, 0.5]),
        "employment_status": made.pick(["employed", "retired", "student", "unemployed", "home"], [6, 2, 1, 0.5, 0.5]),
        "household_size": [1 + min(int(x), 7) for x in made.rng.poisson(1.4, RECORDS)],
        "nationality": made.codes(12, "N{}"),
        "children_under_18": [min(int(x), 5) for x in made.rng.poisson(0.6, RECORDS)],
        "net_income": [50 * round(x / 50) for x in made.amount(1900)],
        "party_voted": made.pick(["A", "B", "C", "D", "none"], [4, 3, 2, 1, 3]),
        "religion": made.pick(["none", "catholic", "protestant", "muslim", "other"], [5, 3, 3, 1, 0.3]),
        "sexual_orientation": made.pick(["hetero", "gay", "bi"], [93, 4, 3]),
        "chronic_illness": made.pick(["no", "yes"], [8, 2]),
    }
    for name in ("parliament", "courts", "police", "press", "churches", "science"):
        table[f"trust_{name}"] = made.whole(0, 10)
    for name in ("life", "economy", "democracy", "services"):
        table[f"satisfaction_{name}"] = made.bell(6, 2, 0, 10)
    for name in ("tv_hours", "radio_hours", "internet_hours"):
        table[name] = [min(int(x), 12) for x in made.rng.poisson(2, RECORDS)]
    for number in range(1, 81 - len(table)):
        table[f"q{number}"] = made.bell(3, 1.1, 1, 5)
    return pl.DataFrame(table)


def claims() -> pl.DataFrame:
    """Claims of a health insurer: several rows a member."""
    made = Made(12, rows_each=4)
    people = made.persons
    billed = made.amount(420)
    return pl.DataFrame(
        {
            "claim_id": [f"CL{90_000_000 + 13 * i}" for i in range(RECORDS)],
            "member_id": made.own([f"M{5_000_000 + 37 * i}" for i in range(people)]),
            "member_dob": made.own(made.day(date(1935, 1, 1), 30_000, people)),
            "member_gender": made.own(made.pick(["F", "M"], n=people)),
            "member_zip": made.own(made.codes(40, "60{:03d}", people)),
            "plan_type": made.own(made.pick(["HMO", "PPO", "EPO"], n=people)),
            "provider_id": made.codes(60, "PR{:03d}"),
            "provider_specialty": made.codes(14, "S{:02d}"),
            "service_date": made.day(date(2023, 1, 1), 360),
            "paid_date": made.day(date(2023, 2, 1), 360),
            "place_of_service": made.pick([11, 21, 22, 23, 81], [6, 1, 2, 1, 2]),
            "icd10_code": made.codes(90, "D{:02d}.1"),
            "cpt_code": made.codes(60, "99{:03d}"),
            "ndc_drug": made.codes(50, "0093-{:04d}"),
            "days_supply": made.pick([0, 14, 30, 90], [6, 1, 3, 1]),
            "billed_amount": billed,
            "allowed_amount": [round(0.6 * x, 2) for x in billed],
            "paid_amount": [
                round(0.5 * x * f, 2) for x, f in zip(billed, made.rng.uniform(0.5, 1, RECORDS), strict=True)
            ],
            "network": made.pick(["in", "out"], [9, 1]),
            "claim_status": made.pick(["paid", "denied", "pending"], [90, 7, 3]),
        }
    )


def visits() -> pl.DataFrame:
    """Stays in a hospital, with German names: several rows a patient."""
    made = Made(13, rows_each=3)
    people, admitted = made.persons, made.day(date(2022, 1, 1), 700)
    return pl.DataFrame(
        {
            "Fallnummer": [7_000_001 + 11 * i for i in range(RECORDS)],
            "Patientennummer": made.own([300_000 + 17 * i for i in range(people)]),
            "Nachname": made.own([f"{LAST[i % 15]}" for i in made.whole(0, 400, people)]),
            "Geburtsdatum": made.own(made.day(date(1930, 1, 1), 31_000, people)),
            "Geschlecht": made.own(made.pick(["w", "m", "d"], [50, 49, 1], people)),
            "PLZ": made.own(made.codes(50, "53{:03d}", people)),
            "Staatsangehoerigkeit": made.own(made.pick(["DE", "TR", "PL", "SY"], [85, 7, 5, 3], people)),
            "Aufnahmedatum": admitted,
            "Entlassungsdatum": [
                day + timedelta(days=int(x)) for day, x in zip(admitted, made.rng.poisson(5, RECORDS), strict=True)
            ],
            "Versicherungsart": made.own(made.pick(["gesetzlich", "privat"], [87, 13], people)),
            "Hauptdiagnose": made.codes(80, "I{:02d}.9"),
            "Nebendiagnose": made.codes(60, "E{:02d}.0"),
            "Prozedur": made.codes(40, "5-{:03d}"),
            "Beatmungsstunden": made.pick([0, 6, 24, 72], [92, 4, 3, 1]),
            "Fallkosten": made.amount(4300),
            "Entlassungsgrund": made.pick(["regulaer", "verlegt", "verstorben"], [90, 7, 3]),
        }
    )


def census() -> pl.DataFrame:
    """A public use file of a census: short names, codes, several persons of a household."""
    made = Made(14)
    household = np.sort(made.rng.integers(0, RECORDS // 2, RECORDS))
    state, county = made.codes(20, "{:02d}", RECORDS // 2), made.codes(60, "{:03d}", RECORDS // 2)
    return pl.DataFrame(
        {
            "SERIAL": [20_000 + 8 * int(h) for h in household],
            "PERNUM": [1 + int(np.count_nonzero(household[:i] == h)) for i, h in enumerate(household)],
            "PERWT": [int(20 * round(x / 20)) for x in made.amount(100)],
            "STATEFIP": [state[h] for h in household],
            "COUNTY": [county[h] for h in household],
            "AGE": made.whole(0, 94),
            "SEX": made.pick([1, 2]),
            "RACE": made.pick([1, 2, 3, 4, 7], [70, 13, 1, 6, 10]),
            "MARST": made.pick([1, 3, 4, 5, 6], [45, 2, 10, 6, 37]),
            "BPL": made.codes(40, "{:03d}"),
            "CITIZEN": made.pick([0, 2, 3], [86, 7, 7]),
            "EDUC": made.whole(0, 11),
            "OCC": made.codes(90, "{:04d}"),
            "RELATE": made.pick([1, 2, 3, 11, 12], [40, 25, 28, 2, 5]),
            "NCHILD": [min(int(x), 6) for x in made.rng.poisson(0.7, RECORDS)],
            "OWNERSHP": made.pick([1, 2], [65, 35]),
            "ROOMS": made.bell(5, 1.7, 1, 12),
            "INCTOT": [100 * round(x / 100) for x in made.amount(31_000)],
            "INCWAGE": [100 * round(x / 100) for x in made.amount(24_000)],
            "HCOVANY": made.pick([1, 2], [9, 91]),
            "UHRSWORK": made.pick([0, 20, 30, 40, 50], [38, 6, 6, 42, 8]),
        }
    )


def school() -> pl.DataFrame:
    """Marks of a school district: a row a pupil and course."""
    made = Made(15, rows_each=4)
    people = made.persons
    return pl.DataFrame(
        {
            "student_id": made.own([8_000_000 + 29 * i for i in range(people)]),
            "first_name": made.own(made.pick(list(FIRST), n=people)),
            "last_name": made.own(made.pick(list(LAST), n=people)),
            "date_of_birth": made.own(made.day(date(2006, 1, 1), 3600, people)),
            "gender": made.own(made.pick(["F", "M", "X"], [49, 50, 1], people)),
            "ethnicity": made.own(
                made.pick(["white", "black", "hispanic", "asian", "other"], [50, 20, 20, 7, 3], people)
            ),
            "home_language": made.own(made.codes(9, "lang{}", people)),
            "zip_code": made.own(made.codes(18, "48{:03d}", people)),
            "school_name": made.own(made.codes(9, "School {}", people)),
            "grade_level": made.own(made.whole(1, 12, people)),
            "course": made.codes(20, "C-{:02d}"),
            "term": made.pick(["fall", "spring"]),
            "special_education": made.own(made.pick(["no", "yes"], [88, 12], people)),
            "free_lunch": made.own(made.pick(["no", "yes"], [60, 40], people)),
            "days_absent": [min(int(x), 40) for x in made.rng.poisson(4, RECORDS)],
            "suspensions": made.own(made.pick([0, 1, 2], [93, 5, 2], people)),
            "math_score": made.bell(240, 30, 150, 330),
            "reading_score": made.bell(245, 28, 150, 330),
            "final_mark": made.pick(["A", "B", "C", "D", "F"], [25, 35, 25, 10, 5]),
        }
    )


def hr() -> pl.DataFrame:
    """Staff of a company: one row each."""
    made = Made(16)
    return pl.DataFrame(
        {
            "EmployeeNumber": [40_000 + 3 * i for i in range(RECORDS)],
            "FullName": [f"{FIRST[i % 16]} {LAST[i % 15]}{'son' * (i % 3)}" for i in made.whole(0, 5000)],
            "WorkEmail": [f"user{i}@example.org" for i in range(RECORDS)],
            "BirthDate": made.day(date(1960, 1, 1), 15_000),
            "Gender": made.pick(["Female", "Male"]),
            "Nationality": made.codes(20, "N{}"),
            "MaritalStatus": made.pick(["Single", "Married", "Divorced"]),
            "OfficeCity": made.codes(8, "City {}"),
            "Department": made.codes(9, "Dept {}"),
            "JobTitle": made.pick(list(JOBS)),
            "HireDate": made.day(date(2000, 1, 1), 8500),
            "Education": made.whole(1, 5),
            "ContractType": made.pick(["permanent", "temporary"], [9, 1]),
            "AnnualSalary": [100 * round(x / 100) for x in made.amount(52_000)],
            "Bonus": [100 * round(x / 100) for x in made.amount(3000)],
            "PerformanceRating": made.whole(1, 5),
            "JobSatisfaction": made.whole(1, 4),
            "EngagementScore": made.bell(70, 12, 20, 100),
            "SickDays": [min(int(x), 60) for x in made.rng.poisson(6, RECORDS)],
            "OverTime": made.pick(["Yes", "No"], [3, 7]),
            "TrainingHours": [min(int(x), 40) for x in made.rng.poisson(9, RECORDS)],
            "DisabilityStatus": made.pick(["no", "yes"], [97, 3]),
            "TerminationReason": made.pick([None, "resigned", "dismissed", "retired"], [88, 7, 2, 3]),
        }
    )


def telecom() -> pl.DataFrame:
    """Bills of a telephone company: a row a customer and month."""
    made = Made(17, rows_each=4)
    people = made.persons
    return pl.DataFrame(
        {
            "customer_id": made.own([f"{1_000_000 + 91 * i}" for i in range(people)]),
            "msisdn": made.own([f"+4917{10_000_000 + 7919 * i}" for i in range(people)]),
            "imei": made.own([350_000_000_000_000 + 104_729 * i for i in range(people)]),
            "age": made.own(made.bell(44, 15, 18, 90, people)),
            "gender": made.own(made.pick(["f", "m"], n=people)),
            "home_postcode": made.own(made.codes(45, "{:05d}", people)),
            "home_city": made.own(made.pick(list(TOWNS), n=people)),
            "household_type": made.own(made.pick(["single", "couple", "family"], n=people)),
            "contract_start": made.own(made.day(date(2016, 1, 1), 2500, people)),
            "tariff_plan": made.own(made.pick(["S", "M", "L", "XL"], n=people)),
            "payment_method": made.own(made.pick(["debit", "card", "invoice"], n=people)),
            "device_model": made.own(made.codes(25, "Model {}", people)),
            "minutes_day": made.bell(180, 60, 0, 400),
            "minutes_night": made.bell(90, 30, 0, 250),
            "sms_count": [min(int(x), 90) for x in made.rng.poisson(15, RECORDS)],
            "data_gb": [round(x, 1) for x in made.rng.gamma(2, 4, RECORDS)],
            "roaming_days": made.pick([0, 1, 3, 7], [85, 7, 5, 3]),
            "support_calls": [min(int(x), 8) for x in made.rng.poisson(0.6, RECORDS)],
            "dropped_calls": [min(int(x), 12) for x in made.rng.poisson(2, RECORDS)],
            "monthly_charge": made.amount(34),
            "overdue_payments": made.pick([0, 1, 2], [92, 6, 2]),
            "churned": made.pick(["no", "yes"], [96, 4]),
        }
    )


def bank() -> pl.DataFrame:
    """Accounts of a bank: one or more a customer."""
    made = Made(18, rows_each=2)
    people = made.persons
    return pl.DataFrame(
        {
            "iban": [f"DE{10 + i % 89} 3704 0044 0532 {1000 + i:04d} {i % 90 + 10:02d}" for i in range(RECORDS)],
            "client_id": made.own([60_000 + 7 * i for i in range(people)]),
            "birth_number": made.own([f"{int(x):06d}" for x in made.rng.choice(900_000, people, replace=False)]),
            "birth_year": made.own([2023 - age for age in made.bell(46, 15, 18, 92, people)]),
            "gender": made.own(made.pick(["f", "m"], n=people)),
            "marital_status": made.own(made.pick(["single", "married", "divorced"], n=people)),
            "dependents": made.own([min(int(x), 5) for x in made.rng.poisson(0.8, people)]),
            "town": made.own(made.pick(list(TOWNS), n=people)),
            "occupation": made.own(made.pick(list(JOBS), n=people)),
            "housing": made.own(made.pick(["own", "rent", "free"], [5, 4, 1], people)),
            "account_opened": made.day(date(1999, 1, 1), 8000),
            "account_type": made.pick(["current", "savings", "joint"], [6, 3, 1]),
            "card_type": made.pick(["none", "classic", "gold"], [3, 6, 1]),
            "online_banking": made.pick(["yes", "no"], [8, 2]),
            "branch_id": made.codes(25, "B{:02d}"),
            "transactions_per_month": [min(int(x), 60) for x in made.rng.poisson(18, RECORDS)],
            "balance": made.amount(2600),
            "credit_limit": [500 * round(x / 500) for x in made.amount(3000)],
            "loan_amount": [1000 * round(x / 1000) for x in made.amount(12_000)],
            "monthly_income": [50 * round(x / 50) for x in made.amount(2200)],
            "credit_score": made.bell(640, 80, 350, 850),
            "default_flag": made.pick([0, 1], [97, 3]),
        }
    )


TABLES: dict[str, Callable[[], pl.DataFrame]] = {
    "survey": survey,
    "claims": claims,
    "visits": visits,
    "census": census,
    "school": school,
    "hr": hr,
    "telecom": telecom,
    "bank": bank,
}

# What is not listed is other.
_LISTED: dict[str, dict[str, str]] = {
    "survey": {
        "identifier": "respid",
        "quasi": "sex birth_year region urban_rural education_level marital_status employment_status household_size nationality "
        "children_under_18",
        "sensitive": "net_income party_voted religion sexual_orientation chronic_illness",
    },
    "claims": {
        "identifier": "claim_id",
        "person": "member_id",
        "quasi": "member_dob member_gender member_zip service_date paid_date",
        "sensitive": "icd10_code cpt_code ndc_drug billed_amount allowed_amount paid_amount",
    },
    "visits": {
        "identifier": "Fallnummer Nachname",
        "person": "Patientennummer",
        "quasi": "Geburtsdatum Geschlecht PLZ Staatsangehoerigkeit Aufnahmedatum Entlassungsdatum",
        "sensitive": "Hauptdiagnose Nebendiagnose Prozedur Beatmungsstunden Fallkosten Entlassungsgrund",
    },
    "census": {
        "identifier": "SERIAL",
        "quasi": "STATEFIP COUNTY AGE SEX RACE MARST BPL CITIZEN EDUC OCC RELATE NCHILD",
        "sensitive": "INCTOT INCWAGE HCOVANY",
    },
    "school": {
        "identifier": "first_name last_name",
        "person": "student_id",
        "quasi": "date_of_birth gender ethnicity home_language zip_code school_name grade_level",
        "sensitive": "special_education free_lunch days_absent suspensions math_score reading_score final_mark",
    },
    "hr": {
        "identifier": "EmployeeNumber FullName WorkEmail",
        "quasi": "BirthDate Gender Nationality MaritalStatus OfficeCity Department JobTitle HireDate Education",
        "sensitive": "AnnualSalary Bonus PerformanceRating SickDays DisabilityStatus TerminationReason",
    },
    "telecom": {
        "identifier": "msisdn imei",
        "person": "customer_id",
        "quasi": "age gender home_postcode home_city household_type contract_start",
        "sensitive": "monthly_charge overdue_payments",
    },
    "bank": {
        "identifier": "iban birth_number",
        "person": "client_id",
        "quasi": "birth_year gender marital_status dependents town occupation housing account_opened",
        "sensitive": "balance credit_limit loan_amount monthly_income credit_score default_flag",
    },
}


def expected(name: str) -> dict[str, str]:
    """The role of every column of a table."""
    roles = {column: role for role, columns in _LISTED[name].items() for column in columns.split()}
    return {column: roles.get(column, "other") for column in TABLES[name]().columns}
