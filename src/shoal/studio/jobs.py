"""Long work in processes of its own: it says how far it is, can be stopped at once, and takes nobody with it when it falls.

- A **job** is asked for by a button and leaves files: opening a table, making a candidate. It has a process to itself.
- An **answer** is what a page shows about the project as it stands. The `Desk` keeps one process that has the table at hand,
  finds answers one after the other and keeps them in the project's `.studio/` folder, by what they were found from.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shoal.errors import ShoalError
from shoal.version import VERSION

SIDE_BY_SIDE = 1
"""Jobs at a time: one uses all cores of the machine as it is."""
KEPT = 400
"""Answers that are kept on the disk."""
GRACE = 1.0
"""Seconds that a process has to go by itself."""

Told = Callable[[dict[str, Any]], None]


class Fell(ShoalError):  # noqa: N818 - no mistake of anybody's
    """A process ended before its work did."""


class Worker:
    """A process that waits for something to do."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "shoal.studio.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self.process.poll() is None

    def ask(self, call: str, folder: Path, arguments: dict[str, Any], told: Told) -> Any:
        """What comes of a call; meanwhile `told` hears how far it is. Raises `ShoalError` with the sentence where it fails."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            line = json.dumps({"call": call, "folder": str(folder), "arguments": arguments})
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        for line in self.process.stdout:
            found = json.loads(line)
            if "error" in found:
                raise ShoalError(found["error"])
            if "done" in found:
                return found["done"]
            told(found)
        raise Fell(self._end())

    def _end(self) -> str:
        code = self.process.wait()
        how = f"was ended by the system ({signal.Signals(-code).name})" if code < 0 else f"ended by itself ({code})"
        return f"The process that did the work {how} before it was done; the table may need more memory than there is."

    def kill(self) -> None:
        """Stop it, whatever it does; whoever listens hears the end."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def end(self) -> None:
        """Stop it and let go of it; called by the one who listens."""
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError, ValueError):
                    pipe.close()


@dataclass
class Job:
    """Something that was asked for, and how far it is."""

    id: str
    kind: str
    about: str
    call: str
    arguments: dict[str, Any]
    state: str = "waiting"  # waiting, running, done, failed, stopped
    stage: str = ""
    share: float = 0.0
    left: float | None = None
    sentence: str = ""
    result: Any = None
    worker: Worker | None = field(default=None, repr=False)
    ended: Callable[[Job, str], None] | None = field(default=None, repr=False)

    @property
    def open(self) -> bool:
        """Whether it is still to be waited for."""
        return self.state in ("waiting", "running")

    def hear(self, told: dict[str, Any]) -> None:
        """How far it is."""
        self.stage, self.share, self.left = told["stage"], told["share"], told["left"]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        names = ("id", "kind", "about", "state", "stage", "share", "left", "sentence")
        worker = self.worker
        return {name: getattr(self, name) for name in names} | {
            "pid": worker.process.pid if worker is not None else None
        }


class Jobs:
    """All jobs of this studio, the newest last, and the processes that do them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.all: list[Job] = []
        self._lock = threading.RLock()
        self._spare: Worker | None = None
        self._closed = False

    def start(
        self,
        kind: str,
        call: str,
        arguments: dict[str, Any],
        *,
        about: str = "",
        ended: Callable[[Job, str], None] | None = None,
    ) -> Job:
        """Begin a job, or queue it; `ended` is called with how it ended (done, failed, stopped) before anybody sees it."""
        with self._lock:
            job = Job(f"{len(self.all) + 1}", kind, about, call, arguments, ended=ended)
            self.all.append(job)
        self._next()
        return job

    def find(self, id: str) -> Job | None:
        """The job with this number."""
        return next((job for job in self.all if job.id == id), None)

    def of(self, kind: str, about: str | None = None) -> Job | None:
        """The newest job of a kind."""
        fits = (job for job in reversed(self.all) if job.kind == kind and about in (None, job.about))
        return next(fits, None)

    @property
    def running(self) -> list[Job]:
        """Jobs that are not over."""
        return [job for job in self.all if job.open]

    def stop(self, job: Job) -> None:
        """Stop a job; its processor is free when this returns."""
        with self._lock:
            if not job.open:
                return
            waiting, job.state = job.state == "waiting", "stopped"
            worker = job.worker
        if waiting:
            self._over(job, "stopped")
        elif worker is not None:
            worker.kill()

    def warm(self) -> None:
        """Have a process ready, so that whoever asks first need not wait for it."""
        with self._lock:
            if not self._closed and (self._spare is None or not self._spare.alive):
                self._spare = Worker()

    def close(self) -> None:
        """Stop everything."""
        with self._lock:
            self._closed = True
            spare, self._spare = self._spare, None
        for job in self.running:
            self.stop(job)
        if spare is not None:
            spare.end()

    def _next(self) -> None:
        with self._lock:
            busy = sum(job.state == "running" for job in self.all)
            waiting = [job for job in self.all if job.state == "waiting"]
            if self._closed or not waiting or busy >= SIDE_BY_SIDE:
                return
            job = waiting[0]
            job.state = "running"
            ready, self._spare = self._spare, None
            job.worker = ready if ready is not None and ready.alive else Worker()
        threading.Thread(target=self._do, args=(job,), daemon=True).start()

    def _do(self, job: Job) -> None:
        worker = job.worker
        assert worker is not None
        state, result, sentence = "done", None, ""
        try:
            result = worker.ask(job.call, self.folder, job.arguments, job.hear)
        except ShoalError as problem:
            state, sentence = "failed", str(problem)
        worker.end()
        with self._lock:
            if job.state == "stopped":
                state, sentence = "stopped", ""
            job.worker, job.result, job.sentence = None, result, sentence
        self._over(job, state)
        self.warm()
        self._next()

    def _over(self, job: Job, state: str) -> None:
        """Only when what it leaves is in its place does anybody see that it is over."""
        if job.ended is not None:
            job.ended(job, state)
        job.state = state


@dataclass
class Answer:
    """What a page asked: the value, or how far it is, and meanwhile the value from before the last change."""

    state: str = "working"  # ready, working, failed
    value: Any = None
    before: Any = None
    sentence: str = ""
    stage: str = ""
    share: float = 0.0
    left: float | None = None
    found: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def shown(self) -> Any:
        """What there is to show: the value, or the one from before, or None."""
        return self.value if self.state == "ready" else self.before

    def hear(self, told: dict[str, Any]) -> None:
        """How far it is."""
        self.stage, self.share, self.left = told["stage"], told["share"], told["left"]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; the value itself is for the page to place."""
        names = ("state", "sentence", "stage", "share", "left")
        return {
            **{name: getattr(self, name) for name in names},
            "stale": self.state != "ready" and self.before is not None,
        }


class Desk:
    """Finds answers, one after the other, in a process that keeps the table at hand."""

    def __init__(self, folder: Path, kept: Path) -> None:
        self.folder, self.kept = folder, kept
        self._answers: dict[str, Answer] = {}
        self._last: dict[str, Any] = {}
        self._todo: list[tuple[str, str, str, dict[str, Any]]] = []
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)
        self._worker: Worker | None = None
        self._closed = False
        threading.Thread(target=self._serve, daemon=True).start()

    def ask(self, name: str, call: str, arguments: dict[str, Any], wait: float = 0.4) -> Answer:
        """The answer to a question; what is not found within so many seconds is still being worked on.

        `arguments` say everything that the answer depends on: the same arguments have the same answer. A newer question of the
        same name takes the place of one that has not been begun.
        """
        key = _key(name, call, arguments)
        with self._lock:
            answer = self._answers.get(key)
            if answer is None:
                answer = self._answers[key] = self._remembered(key) or Answer(before=self._last.get(name))
                if answer.state != "ready":
                    for old in [one for one in self._todo if one[1] == name]:
                        self._todo.remove(old)
                        self._answers.pop(old[0], None)
                    self._todo.append((key, name, call, arguments))
                    self._work.notify()
            if answer.state == "ready":
                self._last[name] = answer.value
        if answer.state == "working":
            answer.found.wait(wait)
        return answer

    def put(self, name: str, call: str, arguments: dict[str, Any], value: Any) -> None:
        """An answer that somebody found on another way."""
        key = _key(name, call, arguments)
        with self._lock:
            self._answers[key] = Answer("ready", value)
            self._last[name] = value
        self._keep(key, value)

    def forget(self, name: str) -> None:
        """Whatever failed under this name may be tried again."""
        with self._lock:
            for key in [k for k, a in self._answers.items() if k.startswith(f"{name}-") and a.state == "failed"]:
                del self._answers[key]

    def stop(self) -> None:
        """Give up what is being worked on; the next question begins afresh."""
        with self._lock:
            worker, self._worker = self._worker, None
            self._todo.clear()
        if worker is not None:
            worker.kill()

    @property
    def busy(self) -> list[tuple[str, Answer]]:
        """What is being worked on, by name."""
        with self._lock:
            return [(key.rpartition("-")[0], one) for key, one in self._answers.items() if one.state == "working"]

    def close(self) -> None:
        """Stop everything."""
        with self._lock:
            self._closed = True
            self._work.notify()
        self.stop()

    def warm(self) -> None:
        """Have the process ready."""
        with self._lock:
            if self._worker is None or not self._worker.alive:
                self._worker = Worker()

    def _serve(self) -> None:
        while True:
            with self._work:
                while not self._todo and not self._closed:
                    self._work.wait()
                if self._closed:
                    return
                key, name, call, arguments = self._todo.pop(0)
                answer = self._answers[key]
                self.warm()
                worker = self._worker
            assert worker is not None
            try:
                value = worker.ask(call, self.folder, arguments, answer.hear)
            except ShoalError as problem:
                answer.sentence, answer.state = str(problem), "failed"
            else:
                answer.value, answer.state = value, "ready"
                self._last[name] = value
                self._keep(key, value)
            answer.found.set()

    def _remembered(self, key: str) -> Answer | None:
        try:
            found = json.loads((self.kept / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return Answer("ready", found)

    def _keep(self, key: str, value: Any) -> None:
        with suppress(OSError):
            self.kept.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary = self.kept / f".{key}"
            descriptor = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
                json.dump(value, handle, default=str)
            temporary.rename(self.kept / f"{key}.json")
            old = sorted(self.kept.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in old[:-KEPT]:
                path.unlink(missing_ok=True)


def _key(name: str, call: str, arguments: dict[str, Any]) -> str:
    """What an answer is kept by: all that it depends on."""
    told = json.dumps([VERSION, name, call, arguments], sort_keys=True, default=str)
    return f"{name}-{hashlib.sha256(told.encode()).hexdigest()[:32]}"


def waited(answer: Answer, seconds: float) -> Answer:
    """The answer, after so long at most."""
    end = time.monotonic() + seconds
    while answer.state == "working" and time.monotonic() < end:
        answer.found.wait(0.1)
    return answer
