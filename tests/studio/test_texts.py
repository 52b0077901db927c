"""Texts are ours and what is put into them is not: escaped, and in no language more than a few harmless tags."""

from __future__ import annotations

import re

import pytest

texts = pytest.importorskip(
    "shoal.studio.texts", reason="the studio's extra is not installed: pip install -e '.[studio]'"
)


def test_what_is_put_into_a_text_is_escaped() -> None:
    words = texts.Words("en")
    assert words("data.role_of", name="<b>") == "Role of &lt;b&gt;"
    for code in texts.languages():
        for key, text in texts.catalogue(code).items():
            assert not re.search(r"</?(?!b>|code>|em>)\w", text), f"{code}, {key}: {text}"


def test_the_language_is_one_that_there_is() -> None:
    assert texts.chosen(None, "xx, de-AT;q=0.9, en") == "de"
    assert texts.chosen("en", "de") == "en"
    assert texts.chosen("../../etc/passwd", "xx") == "en"
