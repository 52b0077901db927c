"""Pieces of HTML: everything that is not a piece itself is escaped, and what comes from a table is shown as what it is.

>>> element("p", "a < b, ", element("b", "c & d"), class_="note")
'<p class="note">a &lt; b, <b>c &amp; d</b></p>'
>>> shown("<script>")
'<bdi class="q">&lt;script&gt;</bdi>'
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable
from typing import Any

LONGEST = 60
"""Characters of a value that are shown; of a longer one it is said how long it is."""

# Categories of characters that are not seen, or that change how others are: controls, formats, separators of lines.
_UNSEEN = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
_VOID = {"meta", "rect", "path", "circle"}


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def escaped(thing: object) -> Html:
    """Markup as it is, anything else as text; nothing for None."""
    if isinstance(thing, Html):
        return thing
    return Html("" if thing is None else html.escape(str(thing), quote=True))


def joined(pieces: Iterable[object], between: str = "") -> Html:
    """Pieces one after the other."""
    return Html(html.escape(between, quote=True).join(escaped(piece) for piece in pieces))


def element(name: str, /, *children: object, **attributes: Any) -> Html:
    """An element; `class_` is its class, `data_l` its data-l, and an attribute that is None is left out."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = joined(children)
    return Html(f"<{name}{told}/>") if name in _VOID and not inner else Html(f"<{name}{told}>{inner}</{name}>")


def plain(value: object, longest: int = LONGEST) -> str:
    """A value of a table as text that hides nothing: controls and marks of direction by their numbers, long ones cut.

    >>> plain("a\\u202eb"), plain("x" * 10_000, 5)
    ('a⟨U+202E⟩b', 'xxxxx… (10,000 characters)')
    """
    text = "missing" if value is None else str(value)
    kept = text if len(text) <= longest else text[:longest]
    seen = "".join(f"⟨U+{ord(c):04X}⟩" if unicodedata.category(c) in _UNSEEN else c for c in kept)
    return seen if kept is text else f"{seen}… ({len(text):,} characters)"


def shown(value: object, longest: int = LONGEST) -> Html:
    """A value or a name out of a table, kept apart from the direction of what stands around it."""
    return element("bdi", plain(value, longest), class_="q")


def named(names: Iterable[str], most: int = 12) -> Html:
    """Names of columns as people list them: a, b and c."""
    chosen = list(names)
    told: list[object] = [shown(name) for name in chosen[:most]]
    if len(chosen) > most:
        told.append(f"{len(chosen) - most:,} more")
    return listed(told)


def listed(pieces: Iterable[object]) -> Html:
    """a, b and c."""
    told = [escaped(piece) for piece in pieces]
    if len(told) < 2:
        return Html("".join(told))
    return Html(f"{', '.join(told[:-1])} and {told[-1]}")


def number(value: float, digits: int = 1) -> str:
    """A number as people read it: 4,877; 0.25; not more digits than it has.

    >>> number(4877), number(0.25, 2), number(3.0), number(float("nan"))
    ('4,877', '0.25', '3', 'not known')
    """
    if value != value:
        return "not known"
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def counted(count: int, one: str, many: str | None = None) -> str:
    """1 class, 2 classes; "no" for none.

    >>> counted(1, "record"), counted(0, "class", "classes")
    ('1 record', 'no classes')
    """
    return f"{count:,} {one}" if count == 1 else f"{f'{count:,}' if count else 'no'} {many or one + 's'}"


def percent(share: float) -> str:
    """A share in percent, never rounded to none or all; a space that does not break stands before the sign.

    >>> percent(0.1446), percent(0.0001), percent(0.9999), percent(1.0), percent(0.0)
    ('14.5\\xa0%', 'under 0.1\\xa0%', 'over 99.9\\xa0%', '100\\xa0%', '0\\xa0%')
    """
    if share != share:
        return "not known"
    if 0 < share < 0.0005:
        return "under 0.1\xa0%"
    if 0.9995 <= share < 1:
        return "over 99.9\xa0%"
    return f"{100 * share:.0f}\xa0%" if share in (0.0, 1.0) else f"{100 * share:.1f}\xa0%"


def at_least(share: float) -> str:
    """A proven lower bound in percent: rounded down, since more is not proven.

    >>> at_least(0.1379999), at_least(0.14)
    ('13.7\\xa0%', '14.0\\xa0%')
    """
    return f"{math.floor(1000 * share + 1e-9) / 10:.1f}\xa0%"


def one_in(risk: float) -> str:
    """A chance as people say it: 1 in 5.

    >>> one_in(0.2), one_in(1.0), one_in(0.1768)
    ('1 in 5', 'certain', '1 in 5.7')
    """
    if risk <= 0:
        return "none"
    return "certain" if risk >= 1 else f"1 in {number(1 / risk)}"
