"""Which spellings are one value: cautious where a reader would be fooled, and nowhere else."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.spelling import _LOWER, _UPPER, MISSING_WORDS, NOTHING_WORDS, alike, means_missing, says_nothing

ONE = [
    ["flu", "Flu", "FLU", " flu\t", "flu.", '"flu"', "ﬂu", "f\u200blu", "fｌu", "f\u00adlu", "='flu'"[1:], '="flu"'],
    ["34", "34.0", "+34", "3.4e1", "034", "٣٤", "３４"],
    ["1000", "1,000", "1 000", "1'000", "1e3", "1000.00"],
    ["1234.5", "1,234.5", "1.234,5"],
    ["0", "-0", "0.0", "+0"],
    ["2024-03-31", "31.03.2024", "03/31/2024", "2024/3/31", "2024-03-31T00:00:00"],
    ["Вода", "вода"],
    ["BRCA", "ВRСА"],
    ["straße", "STRASSE"],
    ["lung cancer", "lung_cancer", "Lung  Cancer", "lung\u00a0cancer"],
]
MANY = [
    ["A+", "A-", "AB+", "0+"],
    ["12345678901234567890", "12345678901234567891"],
    ["0.1", "0.10000000000000001e1", "0.2"],
    ["flu", "flux", "fly", "fluid"],
    ["<5", ">5", "5"],
    ["1-2", "12", "2-1"],
    ["pêche", "peche", "péché"],
    ["2024-03-31", "2024-03", "2024-03-30", "2024"],
    ["-5", "5"],
    ["none", "no", "yes"],
]


@pytest.mark.parametrize("texts", ONE, ids=lambda texts: texts[0])
def test_what_a_reader_takes_for_one(texts: list[str]) -> None:
    assert alike(texts) == [list(range(len(texts)))]


@pytest.mark.parametrize("texts", MANY, ids=lambda texts: texts[0])
def test_what_a_reader_tells_apart(texts: list[str]) -> None:
    assert alike(texts) == [[i] for i in range(len(texts))]


def test_spellings_of_missing_are_no_value() -> None:
    spelled = [
        "NA",
        "nan",
        "null",
        "?",
        "*",
        "-",
        "",
        "  ",
        "N/A",
        "n.a.",
        "#N/A",
        "<NA>",
        "—",
        "∅",
        "Unknown",
        "\u200b",
    ]
    assert all(means_missing(spelled))
    assert alike([*spelled, "flu"]) == [[len(spelled)]]
    assert not any(means_missing(["none", "no", "0", "a*", "-1", "nap", "Anna"]))


def test_no_word_for_nothing_is_a_number_or_a_date() -> None:
    """`means_missing` and `says_nothing` look at words alone, `alike` at numbers and dates as well: they must not differ."""
    assert all(means_missing(sorted(MISSING_WORDS))) and alike(sorted(MISSING_WORDS)) == []
    assert all(says_nothing(sorted(NOTHING_WORDS)))
    for words in (sorted(NOTHING_WORDS), [f" {word.upper()} " for word in sorted(NOTHING_WORDS)]):
        known = [row for row, gone in enumerate(means_missing(words)) if not gone]
        assert sorted(row for group in alike(words) for row in group) == known


def test_every_look_alike_is_joined_with_its_letter() -> None:
    for table in (_LOWER, _UPPER):
        for latin, letters in table.items():
            for letter in letters:
                assert alike([f"x{latin}x", f"x{letter}x"]) == [[0, 1]], unicodedata.name(letter)


@given(st.lists(st.text(max_size=8), max_size=8))
def test_groups_hold_every_value_once(texts: list[str]) -> None:
    groups = alike(texts)
    missing = [row for row, gone in enumerate(means_missing(texts)) if gone] if texts else []
    assert sorted([row for group in groups for row in group] + missing) == list(range(len(texts)))
    for group in groups:
        assert all(texts[row] != texts[other] for other in missing for row in group)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=10))
def test_case_and_spaces_never_make_two(text: str) -> None:
    if not means_missing([text])[0] and text.upper().lower() == text.lower():
        assert len(alike([text, f" {text} ", text.lower()])) == 1
