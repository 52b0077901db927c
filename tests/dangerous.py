"""Two tables of columns for the declaration: what must not leave as it is, in the forms of many countries, and what may."""

from __future__ import annotations

import base64
import hashlib
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np

N = 3000
FIRST = ["Anna", "Ben", "Clara", "David", "Eva", "Felix", "Greta", "Hans", "Ines", "Jan", "Klara", "Leo"]
LAST = ["Ash", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gum", "Hazel", "Ivy", "Juniper"]
NAMED_ONLY = [
    "dob_text",
    "dob_us",
    "dob_int",
    "dob",
    "admission",
    "admission_text",
    "town",
    "order",
    "salary",
    "surname",
    "years_of_birth",
    "age_decade",
    "weight_exact",
    "json",
    "sex_letter",
]
"""What a sensitive column may be, and is named for; all others name people, and are refused there too."""


def people(rng: np.random.Generator) -> dict[str, Any]:
    """Three quasi-identifiers."""
    zips = np.array([f"4{x:03d}0" for x in rng.integers(0, 60, N)])
    return {"age": rng.integers(18, 95, N), "sex": rng.choice(["f", "m"], N), "zip": zips}


def dangerous(rng: np.random.Generator, base: dict[str, Any]) -> dict[str, Any]:
    """Columns that name people, tell them apart, or say a quasi-identifier in other words."""
    age, zips = base["age"], base["zip"]

    def digs(n: int) -> list[str]:
        return ["".join(row) for row in rng.integers(0, 10, (N, n)).astype(str)]

    firsts, lasts = FIRST, LAST
    seconds = rng.integers(0, 31_000_000, N)
    born = [
        date(2024 - int(a), 1 + int(m), 1 + int(x))
        for a, m, x in zip(age, rng.integers(0, 12, N), rng.integers(0, 28, N), strict=True)
    ]
    towns = {z: f"Town {i // 2}" for i, z in enumerate(sorted(set(zips)))}
    return {
        "mail_caps": [f"P{i}@EXAMPLE.ORG" for i in range(N)],
        "mail_named": [f"Ann Ash <p{i}@example.org>" for i in range(N)],
        "mailto": [f"mailto:p{i}@example.org" for i in range(N)],
        "mails_two": [f"p{i}@example.org; q{i}@example.org" for i in range(N)],
        "phone_us": [f"({a[:3]}) {a[3:6]}-{a[6:]}" for a in digs(10)],
        "phone_us2": [f"{a[:3]}-{a[3:6]}-{a[6:]}" for a in digs(10)],
        "phone_us3": [f"1-{a[:3]}-{a[3:6]}-{a[6:]}" for a in digs(10)],
        "phone_fr": [f"0{a[0]} {a[1:3]} {a[3:5]} {a[5:7]} {a[7:9]}" for a in digs(9)],
        "phone_uk": [f"07{a[:3]} {a[3:]}" for a in digs(9)],
        "phone_e164": [f"+49{a}" for a in digs(10)],
        "phone_int": [int("49" + a) for a in digs(10)],
        "phone_repeat": [f"+49 30 {1000000 + i % 900}" for i in range(N)],
        "phone_plain": [f"0{a}" for a in digs(10)],
        "phone_tel": [f"tel:+49{a}" for a in digs(9)],
        "iban_nospace": ["DE" + a for a in digs(20)],
        "iban_fr": [f"FR76 {a[:4]} {a[4:8]} {a[8:12]} {a[12:16]} {a[16:20]} {a[20:23]}" for a in digs(23)],
        "iban_lower": ["de" + a for a in digs(20)],
        "ssn_plain": digs(9),
        "ssn_repeat": [f"{100 + i % 700:03d}-12-3456" for i in range(N)],
        "nino": [f"AB {a[:2]} {a[2:4]} {a[4:6]} C" for a in digs(6)],
        "nir": [f"1 {a[:2]} {a[2:4]} {a[4:6]} {a[6:9]} {a[9:12]} {a[12:14]}" for a in digs(14)],
        "cpr": [f"{a[:6]}-{a[6:]}" for a in digs(10)],
        "cpf": [f"{a[:3]}.{a[3:6]}.{a[6:9]}-{a[9:]}" for a in digs(11)],
        "codice": [f"RSSMRA{a[:2]}A{a[2:4]}H{a[4:7]}X" for a in digs(7)],
        "dni": [f"{a}Z" for a in digs(8)],
        "aadhaar": [f"{a[:4]} {a[4:8]} {a[8:]}" for a in digs(12)],
        "nhs": [f"{a[:3]} {a[3:6]} {a[6:]}" for a in digs(10)],
        "passport": [f"C{a}" for a in digs(8)],
        "mrn": [f"MRN{a}" for a in digs(7)],
        "mrn_repeat": [1000000 + i % 900 for i in range(N)],
        "uuid_nodash": [hashlib.md5(str(i).encode()).hexdigest() for i in range(N)],
        "sha1": [hashlib.sha1(str(i % 900).encode()).hexdigest() for i in range(N)],
        "sha_short": [hashlib.sha1(str(i).encode()).hexdigest()[:10] for i in range(N)],
        "b64": [base64.b64encode(hashlib.md5(str(i).encode()).digest()).decode() for i in range(N)],
        "lat_lon": [f"{a:.5f},{b:.5f}" for a, b in rng.normal((48.1, 11.5), 0.2, (N, 2))],
        "dms": [f"48°{a:02d}'{b:02d}\"N 11°{c:02d}'{e:02d}\"E" for a, b, c, e in rng.integers(0, 60, (N, 4))],
        "wkt": [f"POINT ({a:.5f} {b:.5f})" for a, b in rng.normal((11.5, 48.1), 0.2, (N, 2))],
        "geohash": ["u281" + "".join(r) for r in rng.choice(list("0123456789bcdefghjkmnpqrstuvwxyz"), (N, 5))],
        "pluscode": [
            "8FWH" + "".join(r[:4]) + "+" + "".join(r[4:]) for r in rng.choice(list("23456789CFGHJMPQRVWX"), (N, 6))
        ],
        "geojson": [
            f'{{"type":"Point","coordinates":[{a:.4f},{b:.4f}]}}' for a, b in rng.normal((11.5, 48.1), 0.2, (N, 2))
        ],
        "lat_coarse_repeat": np.round(rng.normal(48.1, 0.02, N), 3),
        "latitude_text": [f"{a:.4f}" for a in rng.normal(48.1, 0.02, N)],
        "dob_text": [b.strftime("%d.%m.%Y") for b in born],
        "dob_us": [b.strftime("%m/%d/%Y") for b in born],
        "dob_int": [int(b.strftime("%Y%m%d")) for b in born],
        "dob": born,
        "admission": [datetime(2024, 1, 1) + timedelta(seconds=int(s)) for s in seconds],
        "admission_text": [(datetime(2024, 1, 1) + timedelta(seconds=int(s))).isoformat() for s in seconds],
        "epoch": 1704067200 + seconds,
        "town": [towns[z] for z in zips],
        "note": [f"{rng.choice(firsts)} came with her mother and said {i}" for i in range(N)],
        "note_short": [f"fell off bike {i}" for i in range(N)],
        "imei": digs(15),
        "mac": [":".join(f"{x:02x}" for x in r) for r in rng.integers(0, 256, (N, 6))],
        "mac_cisco": [f"{a:04x}.{b:04x}.{c:04x}" for a, b, c in rng.integers(0, 65536, (N, 3))],
        "plate_uk": [f"AB{a[:2]} C{chr(65 + int(a[2]))}{chr(65 + int(a[3]))}" for a in digs(4)],
        "plate_de": [f"M-AB {1 + i % 9000}" for i in range(N)],
        "url": [f"http://x.org/u?id={i}" for i in range(N)],
        "url_bare": [f"example.org/user/{i}" for i in range(N)],
        "ip6": [f"2001:db8:{a:x}:{b:x}::1" for a, b in rng.integers(0, 65536, (N, 2))],
        "ip_port": [f"10.0.{a}.{b}:8080" for a, b in rng.integers(0, 256, (N, 2))],
        "ip_repeat": [f"10.0.0.{i % 200}" for i in range(N)],
        "order": [f"2024/{i:05d}" for i in range(N)],
        "order2": [f"ORD_{i:05d}_A" for i in range(N)],
        "salary": np.round(rng.lognormal(10.5, 0.5, N), 2),
        "names": [f"{rng.choice(firsts)} {rng.choice(lasts)}" for i in range(N)],
        "surname_first": [f"{rng.choice(lasts)}, {rng.choice(firsts)}" for i in range(N)],
        "names_unique": [
            f"{firsts[i % 12]}{chr(97 + i % 26)}{chr(97 + i // 26 % 26)} {lasts[i % 10]}{chr(97 + i // 676 % 26)}"
            for i in range(N)
        ],
        "names_lower": [
            f"{firsts[i % 12]}{chr(97 + i % 26)}{chr(97 + i // 26 % 26)} {lasts[i % 10]}".lower() for i in range(N)
        ],
        "names_upper": [
            f"{firsts[i % 12]}{chr(97 + i % 26)}{chr(97 + i // 26 % 26)} {lasts[i % 10]}".upper() for i in range(N)
        ],
        "initials_year": [
            f"{chr(65 + int(a))}{chr(65 + int(b))}{y}"
            for a, b, y in zip(rng.integers(0, 26, N), rng.integers(0, 26, N), 2024 - age, strict=True)
        ],
        "surname": [f"{lasts[i % 10].lower()}{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}" for i in range(N)],
        "street": [f"{rng.choice(lasts)}straße {1 + int(x)}" for x in rng.integers(0, 140, N)],
        "handle": [f"@user{i}" for i in range(N)],
        "card": [f"4111{a}" for a in digs(12)],
        "vin": ["WVWZZZ1JZ" + "".join(r) for r in rng.choice(list("0123456789ABCDEFGHJKLMNPRSTUVWXYZ"), (N, 8))],
        "years_of_birth": 2024 - age,
        "age_decade": [f"{a // 10 * 10}-{a // 10 * 10 + 9}" for a in age],
        "weight_exact": np.round(rng.normal(80, 15, N), 3),
        "json": [f'{{"id": {i}}}' for i in range(N)],
        "mixed_id": [f"{a[:2]}-{a[2:5]}-{chr(65 + int(a[5]))}" for a in digs(6)],
        "sex_letter": np.where(base["sex"] == "f", "W", "M"),
    }


def harmless(rng: np.random.Generator) -> dict[str, Any]:
    """Columns that say nothing about who somebody is."""
    return {
        "icd": rng.choice([f"{c}{n:02d}.{k}" for c in "IJEK" for n in range(10, 20) for k in range(3)], N),
        "icd3": rng.choice([f"{c}{n}" for c in "ABCDEIJK" for n in range(10, 60)], N),
        "likert": rng.choice(
            ["strongly agree", "agree", "neither agree nor disagree at all", "disagree", "strongly disagree"], N
        ),
        "flag": rng.random(N) < 0.3,
        "count": rng.poisson(3, N),
        "ward": rng.choice(["Ward 1", "Ward 2", "Ward 3"], N),
        "month_name": rng.choice(["January", "February", "March"], N),
        "blood": rng.choice(["A+", "A-", "B+", "0-", "AB+"], N),
        "drug": rng.choice(["Aspirin", "Ibuprofen", "Metformin Hydrochloride", "Vitamin D"], N),
        "bp": rng.integers(90, 180, N),
        "bmi": np.round(rng.normal(25, 4, N), 0),
        "temp": np.round(rng.normal(37, 0.4, N), 1),
        "city_district": rng.choice(["Old Town", "New Town", "West End", "East End"], N),
        "admission_day": [date(2024, 1, 1) + timedelta(days=int(x)) for x in rng.integers(0, 200, N)],
        "hour": rng.integers(0, 24, N),
        "time": [time(int(h), 30 * int(m)) for h, m in zip(rng.integers(0, 24, N), rng.integers(0, 2, N), strict=True)],
        "currency": rng.choice(["EUR", "USD"], N),
        "percent": rng.integers(0, 101, N),
        "version": rng.choice(["1.0.1", "1.2.0", "2.0.0"], N),
        "department": rng.choice(["Internal Medicine", "Cardiac Surgery", "Emergency Room"], N),
        "doctor_code": rng.choice([f"D{n:03d}" for n in range(30)], N),
        "atc": rng.choice(["N02BA01", "A10BA02", "C07AB02", "M01AE01"], N),
        "loinc": rng.choice(["718-7", "4548-4", "2345-7"], N),
        "rating": rng.choice([1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5], N),
        "yes_no": [("yes", "no", None)[i] for i in rng.integers(0, 3, N)],
        "rounded_cost": np.round(rng.lognormal(7, 0.5, N), -2),
        "stay_days": np.minimum(rng.geometric(0.1, N), 60),
        "lab_positive": rng.choice(["+", "-", "++"], N),
        "color": rng.choice(["#ff0000", "#00ff00", "#0000ff"], N),
        "country": rng.choice(["Germany", "New Zealand", "South Africa"], N),
        "language": rng.choice(["de", "en", "fr"], N),
        "procedure": rng.choice(["5-470.11", "5-511.11", "8-980"], N),
        "number_of_visits": rng.poisson(2, N),
        "score_id": rng.integers(0, 30, N),
        "year_month": rng.choice(["2024-01", "2024-02", "2023-12"], N),
        "room_no": rng.integers(100, 180, N),
        "triage": rng.choice(["red", "yellow", "green"], N),
    }
