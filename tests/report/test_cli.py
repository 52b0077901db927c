"""`--report FILE --for owner|public` on the commands that have something to show."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.errors import call, captured, inside
from tests.cli.test_judge import CONFIG, MASKED, ORIGINAL
from tests.report.test_report import words

from shoal.io.files import write_table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_table(ORIGINAL, tmp_path / "patients.csv")
    write_table(MASKED[::-1], tmp_path / "masked.csv")
    write_table(ORIGINAL.select("age", "zip"), tmp_path / "voters.csv")
    (tmp_path / "shoal.toml").write_text(CONFIG + "\n[policy]\nk = 2\n")
    (tmp_path / "strict.toml").write_text(CONFIG + "\n[policy]\nk = 3\n")
    (tmp_path / "bare.toml").write_text(CONFIG)
    return tmp_path


def shoal(folder: Path, *arguments: str) -> tuple[int, str]:
    with inside(folder), captured() as (out, err):
        code = call(arguments)
    return code, out.getvalue() + err.getvalue()


def page(folder: Path) -> str:
    return words((folder / "report.html").read_text(encoding="utf-8"))


def test_anonymize_reports_for_the_owner(folder: Path) -> None:
    made = ("anonymize", "patients.csv", "-o", "new.csv", "--report", "report.html", "--seed", "4", "-a", "mondrian")
    code, told = shoal(folder, *made)
    assert code == 0 and "Report: report.html, for the owner." in told, told
    text = page(folder)
    assert "for the owner, with figures of the original" in text and "new.csv" in text
    assert "shoal anonymize -c shoal.toml -o new.csv -a mondrian --seed 4" in text
    code, told = shoal(folder, *made, "--for", "public", "--force")
    assert code == 0 and "for the public" in page(folder) and "--seed" not in page(folder), told


def test_verify_reports_for_the_public_and_tells_what_fails(folder: Path) -> None:
    code, told = shoal(folder, "verify", "masked.csv", "--report", "report.html")
    assert code == 0 and "for the public" in page(folder) and "The promise holds" in page(folder), told
    code, _ = shoal(folder, "verify", "masked.csv", "-c", "strict.toml", "--report", "report.html")
    assert code == 1
    text = page(folder)
    assert "The promise fails" in text and "1 class fails of 2" in text and "Classes that fail" in text
    code, _ = shoal(folder, "verify", "masked.csv", "-c", "bare.toml", "--report", "report.html")
    assert code == 0 and "No promise was made about this file." in page(folder)


def test_verify_has_no_original_to_tell_about(folder: Path) -> None:
    code, told = shoal(folder, "verify", "masked.csv", "--report", "report.html", "--for", "owner")
    assert code == 2 and "--for owner tells about the original" in told
    assert not (folder / "report.html").exists()


def test_attack_tells_of_a_list_to_its_owner_only(folder: Path) -> None:
    code, told = shoal(folder, "attack", "masked.csv", "--report", "report.html")
    assert code == 0 and "for the public" in page(folder) and "The list at hand" not in page(folder), told
    arguments = ("attack", "masked.csv", "--external", "voters.csv", "--report", "report.html")
    code, told = shoal(folder, *arguments)
    assert code == 0 and "The list at hand" in page(folder) and "for the owner" in page(folder), told
    code, told = shoal(folder, *arguments, "--for", "public")
    assert code == 0 and "The list at hand" not in page(folder) and "for the public" in page(folder), told


def test_measure_reports_any_file_beside_its_original(folder: Path) -> None:
    code, told = shoal(folder, "measure", "patients.csv", "masked.csv", "--report", "report.html", "--queries", "60")
    assert code == 0, told
    text = page(folder)
    assert "for the owner, with figures of the original" in text and "Could less be lost?" in text
    # Two of six ages span (35 − 31) / 14 and four (29 − 21) / 14 of the range.
    assert f"{100 * (2 * 4 + 4 * 8) / 14 / 6:.1f} %" in text
    code, told = shoal(folder, "measure", "patients.csv", "masked.csv", "--report", "report.html", "--for", "public")
    assert code == 0 and "Could less be lost?" not in page(folder), told


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("verify", "masked.csv", "--for", "public"), "add --report report.html"),
        (("verify", "masked.csv", "--report", "masked.csv"), "let it end in .html"),
        (("verify", "masked.csv", "--report", "gone/report.html"), "does not exist"),
        (("measure", "patients.csv", "masked.csv", "--report", "r.html", "--for", "all"), "--for"),
    ],
)
def test_what_cannot_be_is_said_before_the_work(folder: Path, arguments: tuple[str, ...], says: str) -> None:
    before = (folder / "masked.csv").read_bytes()
    code, told = shoal(folder, *arguments)
    assert code == 2 and says in told, told
    assert (folder / "masked.csv").read_bytes() == before
