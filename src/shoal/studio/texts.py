"""All words of the studio, a file a language (`texts/en.toml`): a new one is a new file; what it leaves out is said in English.

>>> words = Words("en")
>>> words("steps.data"), words.count("records", 1), words.count("records", 5000)
(Markup('Data'), Markup('1 record'), Markup('5,000 records'))
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup

ENGLISH = "en"


@cache
def languages() -> dict[str, str]:
    """The languages there are, by their codes, each by its own name."""
    found = (one.name.removesuffix(".toml") for one in files("shoal.studio").joinpath("texts").iterdir())
    return {code: catalogue(code)["language.name"] for code in sorted(found)}


@cache
def catalogue(code: str) -> dict[str, str]:
    """The texts of a language by their dotted keys."""
    text = files("shoal.studio").joinpath("texts", f"{code}.toml").read_text(encoding="utf-8")
    return dict(_flat(tomllib.loads(text), ""))


def _flat(table: Mapping[str, Any], before: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", str(value)


class Words:
    """The texts of one language. What is put into them is escaped."""

    def __init__(self, code: str) -> None:
        self.code = code if code in languages() else ENGLISH
        self._texts = {**catalogue(ENGLISH), **catalogue(self.code)}

    def __call__(self, key: str, **values: object) -> Markup:
        """The text of a key with its values in place; a key that nobody wrote is a mistake of ours."""
        return Markup(self._texts[key]).format(**values)

    def has(self, key: str) -> bool:
        """Whether there is such a text."""
        return key in self._texts

    def count(self, key: str, number: int, **values: object) -> Markup:
        """`key.one` for one, `key.many` for any other number, which stands in {n}."""
        return self(f"{key}.{'one' if number == 1 else 'many'}", n=self.number(number), **values)

    def number(self, value: float, digits: int = 1) -> str:
        """A number as it is written in this language."""
        from shoal.report.markup import number

        return _signs(number(value, digits), self("language.signs"))

    def percent(self, share: float) -> str:
        """A share in percent."""
        from shoal.report.markup import percent

        text = percent(share)
        for english, key in (("under", "words.under"), ("over", "words.over"), ("not known", "words.not_known")):
            text = text.replace(english, self(key))
        return _signs(text, self("language.signs"))

    def left(self, seconds: float | None) -> str:
        """The time left as people say it; nothing while it is too early to say."""
        if seconds is None:
            return ""
        if seconds < 90:
            return self("words.seconds_left", n=max(1, round(seconds)))
        return self("words.minutes_left", n=round(seconds / 60))

    def doing(self, what: Mapping[str, Any]) -> str:
        """How far a job or an answer is, in a line."""
        stage = str(what["stage"] or "")
        key = f"stages.{stage.replace(' ', '_')}"
        parts = [
            self(key) if self.has(key) else Markup.escape(stage),
            self.percent(round(what["share"], 2)) if what["share"] else "",
        ]
        return " · ".join(str(part) for part in [*parts, self.left(what["left"])] if part)


def _signs(text: str, signs: str) -> str:
    """1,234.5 with the signs of another language for thousands and decimals."""
    if signs == ",.":
        return text
    return text.translate(str.maketrans(",.", signs))


def chosen(cookie: str | None, accepted: str) -> str:
    """The language to speak: the one that was chosen, or the first that the browser asks for and that there is."""
    if cookie in languages():
        return str(cookie)
    for part in accepted.split(","):
        code = part.partition(";")[0].strip().lower().partition("-")[0]
        if code in languages():
            return code
    return ENGLISH
