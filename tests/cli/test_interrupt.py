"""Ctrl-C: answered at once, with what was stopped and that nothing was written; and what is told about long work until then."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from tests.cli.test_journey import hospital_folder

from shoal.cli import main, output
from shoal.cli.output import Speaker
from shoal.errors import Cancelled
from shoal.progress import Moment

# Processor seconds between Ctrl-C and the end: a second for the work, and one for Python itself to leave.
SOON = 2.0


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Ctrl-C is heard, also where the tests run in the background of a shell, which has its jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def long_work(folder: Path) -> None:
    """A folder whose table would be refined for an hour."""
    hospital_folder(folder)
    config = folder / "shoal.toml"
    text = config.read_text()
    assert "[method]\n" in text
    config.write_text(text.replace("[method]\n", "[method]\nrefine = 3600.0\n"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The loops that refining needs, compiled: nothing can stop a compiler, and only a first run has to wait for it."""
    folder = tmp_path_factory.mktemp("compiled")
    long_work(folder)
    config = folder / "shoal.toml"
    config.write_text(config.read_text().replace("refine = 3600.0", "refine = 1.0"))
    subprocess.run([sys.executable, "-m", "shoal", "anonymize", "-o", "masked.csv", "-q"], cwd=folder, check=True)


def spent(process: int) -> float:
    """Processor seconds of another process."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_from(terminal: int, seen: bytes) -> bytes:
    """What has been written there since; a command that ended too early has said why."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        raise AssertionError(f"the command ended before it was interrupted: {seen.decode()}") from None


def rest_of(terminal: int) -> str:
    """What is still written there, until nobody can write any more."""
    text = b""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            text += part
    return text.decode()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads processor seconds from /proc")
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("attempt", range(2))
def test_ctrl_c_says_what_was_stopped_and_leaves_nothing(attempt: int, tmp_path: Path) -> None:
    long_work(tmp_path)
    before = sorted(tmp_path.iterdir())
    terminal, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal", "anonymize", "-o", "masked.csv"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    # A terminal is told ten times a second: a stage that is over sooner is never seen there, a search of an hour is.
    while b"searching for better classes" not in seen:
        seen += read_from(terminal, seen)
    time.sleep(random.Random(attempt).uniform(0.0, 0.5))
    until = spent(process.pid)
    process.send_signal(signal.SIGINT)
    text = rest_of(terminal)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    os.close(terminal)
    assert process.returncode == 130, text
    told = text.splitlines()[-1]
    assert "shoal: Stopped while searching for better classes, with " in told
    assert told.endswith(" % done. Nothing was written.")
    assert "Traceback" not in text
    assert sorted(tmp_path.iterdir()) == before
    assert usage.ru_utime + usage.ru_stime - until < SOON


def interrupted(folder: Path, where: str, *arguments: str) -> tuple[int, str]:
    """Run a command that is interrupted as soon as it tells of a stage: exit code, stderr."""

    class Telltale(io.StringIO):
        def write(self, text: str) -> int:
            if where in text:
                signal.raise_signal(signal.SIGINT)
            return super().write(text)

    err = Telltale()
    with (
        contextlib.chdir(folder),
        mock.patch.object(sys, "argv", ["shoal", *arguments]),
        mock.patch.object(output, "SECONDS", 0.0),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return int(ended.value.code or 0), err.getvalue()


@pytest.mark.parametrize("stage", ["reading", "grouping records", "masking", "verifying", "measuring", "writing"])
def test_every_stage_can_be_interrupted(stage: str, tmp_path: Path) -> None:
    hospital_folder(tmp_path)
    before, threads = sorted(tmp_path.iterdir()), threading.active_count()
    code, err = interrupted(tmp_path, f"({stage})", "anonymize", "-o", "masked.csv")
    assert code == 130
    assert err.splitlines()[-1].startswith(f"shoal: Stopped while {stage}, with ")
    assert sorted(tmp_path.iterdir()) == before
    assert threading.active_count() == threads
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_comparison_is_stopped_and_not_only_one_of_its_algorithms(tmp_path: Path) -> None:
    hospital_folder(tmp_path)
    code, err = interrupted(tmp_path, "(running mdav)", "compare", "-a", "k_member,mdav,mondrian")
    assert code == 130
    assert "running mondrian" not in err


def test_a_demo_that_is_stopped_says_what_is_there(tmp_path: Path) -> None:
    code, err = interrupted(tmp_path, "(grouping records)", "demo", "--records", "500")
    assert code == 130
    assert err.splitlines()[-1].endswith("The made-up hospital is in 'demo'; it was not masked.")
    assert not (tmp_path / "demo" / "masked.csv").exists()


def test_what_is_being_written_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hospital_folder(tmp_path)
    replace = Path.replace

    def interrupting(self: Path, target: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", interrupting)
    code, err = interrupted(tmp_path, "no stage at all", "anonymize", "-o", "masked.csv", "--quiet")
    assert code == 0
    assert "cannot be stopped any more" in err
    assert (tmp_path / "masked.csv").exists() and (tmp_path / "masked.csv.manifest.json").exists()


def test_where_nobody_looks_on_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    tell = output._lines("masking")
    for second in range(31):
        tell(Moment("refining", second / 40, float(second), 40.0 - second if second else None))
    assert capsys.readouterr().err.splitlines() == [
        "masking (refining): 25% done, about 30 s left",
        "masking (refining): 50% done, about 20 s left",
        "masking (refining): 75% done, about 10 s left",
    ]


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (None, ""),
        (0.2, "about 1 s left"),
        (89.0, "about 89 s left"),
        (150.0, "about 2 min left"),
        (9000.0, "about 2.5 h left"),
    ],
)
def test_time_left_as_people_say_it(left: float | None, said: str) -> None:
    assert output._time_left(Moment("", 0.5, 1.0, left)) == said


def test_quiet_work_is_cancelled_too() -> None:
    with pytest.raises(Cancelled), Speaker(False, True).progress("masking"):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ignored_interrupts_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Speaker(False, True).progress("masking") as progress:
            signal.raise_signal(signal.SIGINT)
            progress.check()
    finally:
        signal.signal(signal.SIGINT, before)
