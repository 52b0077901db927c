"""All words are there in all languages, with the same things to fill in, and no page asks for one that nobody wrote."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from shoal.studio.texts import Words, catalogue, languages

NAMED = re.compile(r"\{(\w+)\}")
USED = re.compile(r"""\bt(?:\.count)?\(\s*"([\w.-]+)"\s*[,)]""")


@pytest.mark.parametrize("code", sorted(languages()))
def test_a_language_says_what_english_says(code: str) -> None:
    english, own = catalogue("en"), catalogue(code)
    assert set(own) <= set(english), "words that nobody asks for"
    # Lists of what the program itself expects are the same in every language.
    left = {key for key in set(english) - set(own) if not key.startswith(("policy.models.", "taxonomies.start_"))}
    assert left <= {"data.codes_says"}
    for key, text in own.items():
        assert set(NAMED.findall(text)) == set(NAMED.findall(english[key])), key


def test_pages_ask_for_words_that_are_there() -> None:
    words = Words("en")
    for one in files("shoal.studio").joinpath("templates").iterdir():
        for key in USED.findall(one.read_text(encoding="utf-8")):
            assert words.has(key) or words.has(f"{key}.one") or key.endswith((".", "_")), f"{one.name}: {key}"
