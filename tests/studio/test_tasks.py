"""Ten things that somebody does who has never seen the studio, by what stands on its pages and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.browser import a_browser
from tests.studio.serving import Served
from tests.studio.test_road import Visitor

from shoal.datasets import hospital
from shoal.io import write_table


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with a_browser() as found:
        yield found


def test_ten_tasks_by_visible_labels(browser: Any, tmp_path: Path) -> None:
    table = tmp_path / "patients.csv"
    write_table(hospital(400, 3).drop("stay", "cost"), table)
    with Served(tmp_path / "project") as served:
        visitor = Visitor(browser, served)
        page = visitor.page
        # 1. Open a table of one's own.
        page.get_by_label("Choose a file").set_input_files(table)
        visitor.press("Open this file")
        visitor.heading("What is in each column?")
        # 2. See who stands out, and leave a column out.
        visitor.sees(re.compile("alone with its values|are the only ones"))
        page.get_by_label("Role of occupation").select_option(label="left out")
        visitor.sees(re.compile("3 left out"))
        # 3. Take that back.
        page.get_by_label("Role of occupation").select_option(label="others may know it")
        visitor.sees(re.compile("2 left out"))
        # 4. Make a column coarser by a rule.
        visitor.step("Taxonomies")
        page.get_by_role("link", name=re.compile("^occupation")).click()
        page.get_by_label("Made coarser by").select_option(label="automatic groups")
        visitor.press("Use this rule")
        visitor.sees(re.compile("values in a tree of"))
        # 5. Group two values by hand, and undo it.
        for value in ("retired", "child"):
            page.get_by_role("checkbox", name=value, exact=True).check()
        page.get_by_label("New name").fill("At home")
        visitor.press("Group what is marked")
        page.get_by_role("checkbox", name="At home", exact=True).wait_for()
        visitor.press("Undo the last change")
        page.get_by_role("checkbox", name="At home", exact=True).wait_for(state="detached")
        # 6. Promise more: k = 10.
        visitor.step("Policy")
        field = page.get_by_label("k =", exact=True)
        field.fill("10")
        field.press("Enter")
        visitor.sees(re.compile("1 in 10"))
        # 7. See that something is not possible, and set what is.
        page.get_by_role("button", name="Add this promise").first.wait_for()
        # 8. Make a candidate.
        visitor.step("Run")
        page.get_by_label("Algorithm").select_option(label="mondrian")
        page.get_by_label("Effort").select_option(label="None: take what the algorithm finds")
        visitor.press("Make a candidate")
        visitor.sees("done and verified")
        # 9. Look at it beside the original, and release it.
        visitor.press("Compare →")
        visitor.heading("Which candidate do you release?")
        visitor.sees("Original and release, side by side")
        visitor.press("Release A →")
        visitor.heading("This file keeps its promises.")
        visitor.press("Release candidate A")
        visitor.download("masked.csv", tmp_path)
        # 10. Go on with a store.
        visitor.press("Evolve →")
        page.get_by_label(re.compile("^Key")).select_option(label="record")
        visitor.press("Make the store")
        visitor.press("Make the next release")
        visitor.sees(re.compile("Release 1: 400 rows"))
        visitor.close()
    assert (tmp_path / "masked.csv").read_text(encoding="utf-8").count("\n") == 401
