"""The other end of `jobs`: a process that does what it is told, one thing after the other, and says how far it is.

A line in, lines out, each a JSON object: `{"call": "shoal.studio.tasks.data:profiled", "folder": …, "arguments": {…}}` comes, and
`{"stage", "share", "left"}` goes back any number of times, then `{"done": …}` or `{"error": "a sentence"}`. When the studio
is gone (its end of the pipe is closed) the process ends at once, whatever it is doing.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from shoal.errors import InternalError, ShoalError
from shoal.progress import Moment, Progress

HOME = "shoal.studio.tasks."
"""Nothing else is called, whoever asks."""


def main() -> None:
    """Serve until nobody is there any more."""
    said = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What a library prints would be taken for an answer, or tell a log what stands in the table.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    warnings.simplefilter("ignore")
    _be_modest()
    asked: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(sys.stdin, asked), daemon=True).start()
    import shoal.configured
    import shoal.road
    import shoal.suggesting  # noqa: F401 - whoever asks first need not wait for it

    while True:
        answer(json.loads(asked.get()), said)


def answer(request: dict[str, Any], said: IO[str]) -> None:
    """Do one thing and say what came of it."""

    def tell(told: dict[str, Any]) -> None:
        said.write(json.dumps(told, default=str) + "\n")
        said.flush()

    def moment(now: Moment) -> None:
        tell({"stage": now.stage, "share": now.share, "left": now.left})

    module, _, name = str(request["call"]).partition(":")
    try:
        if not module.startswith(HOME):
            raise InternalError(f"{module} is no room of tasks")
        work = getattr(import_module(module), name)
        tell({"done": work(Path(request["folder"]), Progress(moment), **request["arguments"])})
    except ShoalError as problem:
        tell({"error": str(problem)})
    except MemoryError:
        tell({"error": "There is not enough memory for this table; use fewer columns, or a larger machine."})
    except RecursionError:
        tell({"error": "What stands in the file is nested too deeply to be read as a table; save it as .csv."})
    except OSError as problem:
        tell({"error": f"The system refuses: {problem.strerror or type(problem).__name__}."})
    except Exception as problem:
        # A message of another library may repeat values; its type does not.
        tell({"error": f"This is a bug in Shoal, not in your data ({type(problem).__name__}); please report it."})


def _listen(source: IO[str], asked: queue.Queue[str]) -> None:
    for line in source:
        asked.put(line)
    os._exit(0)


def _be_modest() -> None:
    """The server answers first, and if memory runs out it is not the one to go."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("600")


if __name__ == "__main__":
    main()
