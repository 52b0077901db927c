"""What stands below the axis of a figure: the settings that were tried, as they are."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from shoal.reproduce.figures import Figure, Series, inline
from shoal.reproduce.verdicts import Value


def texts(by: tuple[Value, ...], shares: bool = False) -> list[str]:
    """All words of a drawing with these settings."""
    figure = Figure("name", "Fig. 1", "A title", "one", "loss", "at", (Series("ours", {}),), shares=shares)
    rows = [{"at": at, "loss": 10.0 + i, "seed": seed} for i, at in enumerate(by) for seed in range(2)]
    return re.findall(r"<text[^>]*>([^<]*)</text>", inline(figure, rows))


@pytest.mark.parametrize(
    ("by", "shares", "written"),
    [
        ((0.005, 0.01, 0.05, 0.2, 0.5), True, ["0.5%", "1%", "5%", "20%", "50%"]),
        ((0.1, 0.3, 0.5, 0.7, 0.9), False, ["0.1", "0.3", "0.5", "0.7", "0.9"]),
        ((2, 10, 50, 100), False, ["2", "10", "50", "100"]),
        ((2_500, 5_000, 20_000), False, ["2,500", "5,000", "20,000"]),
        (("kmax = 20", "as it is"), False, ["as it is", "kmax = 20"]),
    ],
)
def test_settings_are_written_as_they_are(by: tuple[Value, ...], shares: bool, written: list[str]) -> None:
    # 0.05 was once rounded to 0.1, the axis' own precision, and 0.2 left out.
    assert [text for text in texts(by, shares) if text in written][: len(written)] == written


def test_small_shares_do_not_lie_on_top_of_each_other() -> None:
    figure = Figure("name", "Fig. 1", "A title", "one", "loss", "at", (Series("ours", {}),), shares=True)
    rows = [{"at": at, "loss": 1.0} for at in (0.005, 0.01, 0.5)]
    places = [float(x) for x in re.findall(r"<text[^>]*translate\(([\d.]+),[^>]*>[\d.]+%</text>", inline(figure, rows))]
    assert len(places) == 3
    assert min(b - a for a, b in pairwise(places)) > 50
