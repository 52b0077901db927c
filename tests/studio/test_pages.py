"""The pages in a real browser: nothing is cut off at any width, axe finds nothing serious, the keyboard is enough."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.browser import a_browser, axe
from tests.report.test_browser import CUT_OFF
from tests.studio.serving import PATIENT, Served, until

from shoal.datasets import hospital
from shoal.io import write_table

studio = pytest.importorskip(
    "shoal.studio.pages", reason="the studio's extra is not installed: pip install -e '.[studio]'"
)


OWN = ("data", "run", "release")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with a_browser() as found:
        yield found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("pages")
    table = folder / "patients.csv"
    write_table(hospital(300, 3, readmitted=0.3), table)
    with Served(folder / "project", str(table)) as found:
        until(lambda: found.view("data").get("columns"))
        found.post("/run/make", algorithm="mondrian", effort="none")
        until(lambda: found.view("run")["done"] or None)
        yield found


def opened(browser: Any, served: Served, **how: Any) -> Any:
    context = browser.new_context(locale="en-GB", **how)
    context.set_default_timeout(1000 * PATIENT)
    page = context.new_page()
    page.goto(served.url)
    page.wait_for_url("**/data")
    return page


def test_nothing_is_cut_off_and_axe_finds_nothing_serious(browser: Any, served: Served) -> None:
    source = axe()
    for width, scheme in ((1240, "light"), (1240, "dark"), (390, "light")):
        page = opened(browser, served, viewport={"width": width, "height": 900}, color_scheme=scheme)
        for name in studio.pages():
            page.goto(f"http://127.0.0.1:{served.port}/{name}")
            page.locator("h1").wait_for()
            page.wait_for_function("() => !document.querySelector('[data-job]')")
            assert page.evaluate(CUT_OFF) == [], f"{name}, {width} pixels"
            page.evaluate("() => document.querySelectorAll('details').forEach(e => { e.open = true })")
            page.evaluate(source)
            found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
            serious = [
                (one["id"], one["nodes"][0]["html"][:200])
                for one in found["violations"]
                if one["impact"] in ("serious", "critical")
            ]
            assert serious == [], f"{name}, {scheme}, {width} pixels"
            assert page.locator(".btn.primary:visible").count() <= 1, name
        page.context.close()


def test_the_keyboard_is_enough_and_a_change_keeps_its_place(browser: Any, served: Served) -> None:
    page = opened(browser, served)
    page.locator("h1").wait_for()
    page.keyboard.press("Tab")
    page.wait_for_function("() => document.activeElement.textContent === 'Skip to the content'")
    page.evaluate("() => { window.before = document.getElementById('page') }")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash === '#main'")
    # A place in the page is no other page: were it loaded anew, it would be by the second answer.
    page.evaluate("async () => { for (const _ of [1, 2]) await (await fetch(location.pathname)).text() }")
    assert page.evaluate("() => window.before.isConnected && location.hash") == "#main"
    role = page.get_by_label("Role of occupation")
    role.focus()
    with page.expect_response("**/data/roles"):
        role.select_option(label="secret")
    page.locator("tr.e-sensitive", has_text="occupation").wait_for()
    # The page was drawn anew, and whoever was there is still there.
    page.wait_for_function("() => document.activeElement.getAttribute('aria-label') === 'Role of occupation'")
    assert (
        'role = "sensitive"'
        in (served.folder / "shoal.toml").read_text(encoding="utf-8").split("[attributes.occupation]")[1][:40]
    )
    page.context.close()


def test_it_works_without_the_script(browser: Any, served: Served) -> None:
    page = opened(browser, served, java_script_enabled=False)
    page.get_by_label("Role of sex").select_option(label="as it is")
    page.get_by_role("button", name="Save the roles").click()
    page.locator("tr.e-other", has_text="sex").wait_for()
    page.context.close()
