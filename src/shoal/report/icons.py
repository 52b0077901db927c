"""Shapes that stand beside a word: never a colour alone."""

from __future__ import annotations

from shoal.report.markup import Html

_SHAPES = {
    "ok": (16, '<circle cx="8" cy="8" r="8" fill="currentColor"/>'
           '<path d="M4.4 8.3l2.4 2.4 4.8-5.2" fill="none" stroke="var(--paper)" stroke-width="1.8"/>'),
    "warn": (16, '<path d="M8 .8 15.6 15H.4z" fill="currentColor"/>'
             '<path d="M8 5.8v4.2M8 11.6v1.6" stroke="var(--paper)" stroke-width="1.7"/>'),
    "half": (16, '<circle cx="8" cy="8" r="7" fill="none" stroke="currentColor" stroke-width="2"/>'
             '<path d="M8 1a7 7 0 0 1 0 14z" fill="currentColor"/>'),
    "identifier": (12, '<path d="M2 2l8 8M10 2l-8 8" stroke="currentColor" stroke-width="2.4"/>'),
    "person": (12, '<path d="M6 1v10M1 6h10" stroke="currentColor" stroke-width="2.4"/>'),
    "quasi": (12, '<circle cx="6" cy="6" r="4.6" fill="none" stroke="currentColor" stroke-width="2.2"/>'),
    "sensitive": (12, '<path d="M6 .4 11.6 6 6 11.6.4 6z" fill="currentColor"/>'),
    "other": (12, '<path d="M1 6h10" stroke="currentColor" stroke-width="2.4"/>'),
}  # fmt: skip

ROLES = {
    "identifier": "left out",
    "person": "whose row it is",
    "quasi": "others may know it",
    "sensitive": "secret",
    "other": "as it is",
}

_FISH = "c2.4-3.2 6-3.2 8.4 0l2-1.7v3.4l-2-1.7c-2.4 3.2-6 3.2-8.4 0z"
SHOAL = Html(
    '<svg class="mark" width="30" height="18" viewBox="0 0 30 18" aria-hidden="true" focusable="false"><g fill="var(--accent)">'
    f'<path d="M2 9{_FISH}"/><path d="M11 4{_FISH}" opacity=".75"/><path d="M13 14{_FISH}" opacity=".5"/></g></svg>'
)


def icon(name: str) -> Html:
    """A shape by its name."""
    size, inner = _SHAPES[name]
    box = f'width="{size}" height="{size}" viewBox="0 0 {size} {size}"'
    return Html(f'<svg {box} aria-hidden="true" focusable="false">{inner}</svg>')


def role(name: str) -> Html:
    """A role of a column: a shape, a word and a colour."""
    return Html(f'<span class="role r-{name}">{icon(name)}{ROLES[name]}</span>')
