"""The command line. Every command is a file here; nothing heavy is imported before a command runs.

Exit codes: 0 done and verified, 1 a check failed, 2 the request or the input is wrong or infeasible, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import sys
import warnings

from shoal.cli.app import app
from shoal.cli.memory import give_back
from shoal.errors import LONGEST, InternalError, ShoalError, because, show_values


def main() -> None:
    """Run the command line and turn every error into one sentence and an exit code."""
    debug = "--debug" in sys.argv
    arguments = [word for word in sys.argv[1:] if word not in ("--debug", "--show-values")]
    warnings.showwarning = _note
    give_back()
    try:
        with show_values("--show-values" in sys.argv):
            code = app(args=arguments, prog_name="shoal", standalone_mode=False)
    except ShoalError as problem:
        if debug:
            raise
        _say(str(problem))
        raise SystemExit(problem.exit_code) from None
    except KeyboardInterrupt:
        _say("Stopped.")
        raise SystemExit(130) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
    except MemoryError:
        _say("There is not enough memory for this table; use blocks, fewer columns, or a larger machine.")
        raise SystemExit(2) from None
    except OSError as problem:
        if debug:
            raise
        where = f" '{str(problem.filename)[:LONGEST]}'" if problem.filename else ""
        _say(f"The system refuses{where}: {problem.strerror or type(problem).__name__}.")
        raise SystemExit(2) from None
    except InternalError as problem:
        if debug:
            raise
        _say(f"This is a bug in Shoal, not in your data: {problem} Run again with --debug and report what it prints.")
        raise SystemExit(2) from None
    except Exception as problem:
        # Typer brings its own copy of click, so its errors are known by what they can do.
        told = getattr(problem, "format_message", None)
        if told is not None:
            if not told().strip():  # the help was shown because nothing was asked
                raise SystemExit(0) from None
            _say(f"{told().rstrip('.')}; see shoal --help.")
            raise SystemExit(2) from None
        if type(problem).__name__ == "Abort":
            _say("Stopped.")
            raise SystemExit(130) from None
        if debug:
            raise
        _say(f"A bug in Shoal ({type(problem).__name__}{because(problem)}). Run again with --debug and report it.")
        raise SystemExit(2) from None
    raise SystemExit(code if isinstance(code, int) else 0)


def _note(message: Warning | str, *_: object, **__: object) -> None:
    if not {"--quiet", "-q"} & set(sys.argv):
        sys.stderr.write(f"Note: {message}\n")


def _say(sentence: str) -> None:
    sys.stderr.write(f"shoal: {sentence}\n")


__all__ = ["app", "main"]
