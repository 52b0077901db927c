"""A real browser goes the whole road, from a file to a downloaded release, by what stands on the pages and nothing else."""

from __future__ import annotations

import http.server
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.cli.errors import call, captured, inside
from tests.report.browser import a_browser
from tests.studio.serving import PATIENT, Served

from shoal.datasets import adult, data_folder, hospital
from shoal.io import write_table

pytest.importorskip("starlette", reason="the studio's extra is not installed: pip install -e '.[studio]'")

WAIT = 1000 * PATIENT


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with a_browser() as found:
        yield found


class Visitor:
    """Somebody at a browser, and every request that comes of it."""

    def __init__(self, browser: Any, served: Served) -> None:
        self.served, self.asked, self.said = served, list[str](), list[str]()
        self.context = browser.new_context(accept_downloads=True, locale="en-GB")
        self.context.set_default_timeout(WAIT)
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda problem: self.said.append(str(problem)))
        self.page.goto(served.url)
        self.page.wait_for_url("**/data")

    def step(self, name: str) -> None:
        """Go to a page by its name in the row of steps."""
        self.page.get_by_role("navigation", name="Steps").get_by_role("link", name=re.compile(rf"\b{name}$")).click()
        self.page.wait_for_url(re.compile(f"/{name.lower()}"))

    def press(self, name: str) -> None:
        """Press a button, or follow a link, by what stands on it."""
        self.page.get_by_role("button", name=name, exact=True).or_(
            self.page.get_by_role("link", name=name, exact=True)
        ).click()

    def sees(self, text: str | re.Pattern[str]) -> Any:
        """Wait for a text."""
        found = self.page.get_by_text(text).first
        found.wait_for()
        return found

    def heading(self, name: str) -> None:
        """Wait for the question, or the verdict, of a page."""
        self.page.get_by_role("heading", name=name, level=1).wait_for()

    def download(self, name: str, folder: Path) -> Path:
        """Download a file of the release."""
        with self.page.expect_download() as found:
            self.press(f"Download {name}")
        found.value.save_as(folder / name)
        return folder / name

    def close(self) -> None:
        """Leave, and account for everything: no other host was asked, nothing was complained about."""
        hosts = {urlsplit(url).netloc for url in self.asked if not url.startswith("data:")}
        assert hosts == {f"{self.served.host}:{self.served.port}"}
        assert self.said == []
        self.context.close()


def made_up(visitor: Visitor, folder: Path) -> Path:
    """The made-up hospital, which the studio brings itself."""
    visitor.press("Open the made-up hospital")
    visitor.heading("What is in each column?")
    visitor.sees("records is alone with its values").wait_for()
    return visitor.served.folder / "data" / "patients.csv"


def sent(name: str, make: Callable[[], Any]) -> Callable[[Visitor, Path], Path]:
    """A file of somebody's own."""

    def send(visitor: Visitor, folder: Path) -> Path:
        path = folder / "own" / name
        path.parent.mkdir()
        write_table(make(), path)
        visitor.page.get_by_label("Choose a file").set_input_files(path)
        visitor.press("Open this file")
        visitor.heading("What is in each column?")
        return path

    return send


def visits() -> Any:
    return hospital(500, 5, readmitted=0.3).drop("name", "record", "cost", "stay")


def citizens() -> Any:
    if not (data_folder() / "adult.data").exists() and not list(data_folder().rglob("adult*")):
        pytest.skip(f"there is no Adult in {data_folder()}; set SHOAL_DATA")
    return adult().head(600).select("age", "sex", "race", "marital-status", "education", "native-country", "occupation")


TABLES = {"hospital": made_up, "Adult": sent("adult.csv", citizens), "visits": sent("visits.csv", visits)}


@pytest.mark.parametrize("table", TABLES)
def test_from_upload_to_a_release_that_the_command_line_makes_again(browser: Any, tmp_path: Path, table: str) -> None:
    with Served(tmp_path / "project") as served:
        visitor = Visitor(browser, served)
        visitor.heading("Which table do you want to publish?")
        original = TABLES[table](visitor, tmp_path)
        if table == "visits":
            assert visitor.page.get_by_role("radio", name=re.compile("Rows with the same patient")).is_checked()
            visitor.sees(re.compile("rows belong to .* persons"))
        if table == "Adult":
            # A secret, and a role that is changed by hand: its consequences show at once.
            visitor.page.get_by_label("Role of occupation").select_option(label="secret")
            visitor.sees("1 secret")
        visitor.step("Run")
        if table == "hospital":
            visitor.page.get_by_label("Algorithm").select_option(label="mondrian")
            visitor.page.get_by_label("Effort").select_option(label="None: take what the algorithm finds")
        visitor.press("Make a candidate")
        visitor.sees("done and verified")
        visitor.step("Release")
        visitor.heading("This file keeps its promises.")
        visitor.press("Release candidate A")
        visitor.page.get_by_role("heading", name="The files").wait_for()
        own = tmp_path / "downloads"
        own.mkdir()
        names = ("masked.csv", "masked.parquet", "masked.xlsx", "masked.csv.manifest.json", "shoal.toml", "report.html")
        files = {name: visitor.download(name, own) for name in names}
        command = visitor.page.locator("#again").inner_text()
        visitor.close()
    shutil.copy(original, own / original.name)
    with inside(own), captured() as (_, err):
        for name in ("masked.csv", "masked.parquet", "masked.xlsx"):
            assert call(("verify", name, "-c", "shoal.toml", "--quiet")) == 0, f"{name}: {err.getvalue()}"
        assert call(("verify", "masked.csv", "-c", "shoal.toml", "--manifest", "--quiet")) == 0, err.getvalue()
        words = command.replace("-o masked.csv", "-o again.csv").split()
        assert words[0] == "shoal" and call((*words[1:], "--quiet")) == 0, err.getvalue()
        assert call((*words[1:-1], "again.parquet", "--quiet")) == 0, err.getvalue()
    assert (own / "again.csv").read_bytes() == files["masked.csv"].read_bytes()
    assert (own / "again.parquet").read_bytes() == files["masked.parquet"].read_bytes()


ATTACK = """
<!doctype html><title>another site</title><p id="out">…</p>
<form id="post" method="post" action="{studio}/data/made-up" target="into"></form>
<iframe name="into"></iframe><iframe id="framed" src="{studio}/data"></iframe>
<script>
(async () => {{
  const found = [];
  for (const [path, how] of [["/data.json", {{credentials: "include"}}], ["/data.json", {{credentials: "include", mode: "no-cors"}}],
       ["/data/made-up", {{method: "POST", credentials: "include", mode: "no-cors", body: ""}}]]) {{
    try {{ const r = await fetch("{studio}" + path, how); found.push(r.type + ":" + (await r.text()).length); }} catch (e) {{ found.push("refused"); }}
  }}
  document.getElementById("post").submit();
  document.getElementById("out").textContent = "done " + found.join(" ");
}})();
</script>
"""


def test_a_page_of_another_origin_neither_reads_nor_changes_anything(browser: Any, tmp_path: Path) -> None:
    with Served(tmp_path / "project") as served:

        class Another(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(ATTACK.format(studio=f"http://127.0.0.1:{served.port}").encode())

            def log_message(self, *_: object) -> None:
                pass

        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Another)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            visitor = Visitor(browser, served)  # the cookie is there
            answers: dict[str, list[int]] = {}
            page = visitor.context.new_page()
            page.on(
                "response",
                lambda r: (
                    answers.setdefault(urlsplit(r.url).path, []).append(r.status)
                    if f":{served.port}" in r.url
                    else None
                ),
            )
            # The same machine by two names: another site, and another origin of the same site.
            for host in ("localhost", "127.0.0.1"):
                page.goto(f"http://{host}:{other.server_port}/")
                found = page.get_by_text(re.compile("^done ")).inner_text()
                assert re.fullmatch(r"done refused (refused|opaque:0) (refused|opaque:0)", found), found
                page.wait_for_timeout(300)
            assert answers and all(status == 403 for told in answers.values() for status in told), answers
            assert not (served.folder / "shoal.toml").exists() and served.view("data")["opening"] is None
            visitor.context.close()
        finally:
            other.shutdown()
            other.server_close()
