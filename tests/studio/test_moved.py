"""Promises moved by a slider or a field, sent once or twice."""

from __future__ import annotations

import pytest

from shoal.errors import ShoalError
from shoal.studio.pages.policy import _value
from shoal.studio.studio import Form


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"k": "10", "was": "5", "at": "1", "steps": "2 5 20"}, "10"),  # typed; the slider still stands where it stood
        ({"k": "5", "was": "5", "at": "2", "steps": "2 5 20"}, "20"),  # slid, without the script
        ({"k": "20", "was": "5", "at": "2", "steps": "2 5 20"}, "20"),  # slid, with the script
        ({"k": "7"}, "7"),  # a program
        ({"k": "5", "was": "5", "at": "99", "steps": "2 5 20"}, "5"),
        ({"k": "0,5", "was": "0.3", "at": "0", "steps": "0.3 0.2"}, "0.5"),
    ],
)
def test_what_was_moved_counts_and_twice_is_once(fields: dict[str, str], wanted: str) -> None:
    form = Form({name: [value] for name, value in fields.items()})
    assert [_value(form, "k"), _value(form, "k")] == [wanted, wanted]


@pytest.mark.parametrize("text", ["", "many", "1e", "--", "inf", "nan"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ShoalError):
        _value(Form({"k": [text]}), "k")
