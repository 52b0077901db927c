"""Key files: a secret that stays with the owner of a table, from which tokens and offsets are made.

A key is made where there is none, readable by its owner only, and refused where others can read it: whoever has the key can try
out names until one gives a token that stands in the release. It is never written anywhere else.

>>> import tempfile
>>> from pathlib import Path
>>> import warnings
>>> path = Path(tempfile.mkdtemp()) / "tokens.key"
>>> with warnings.catch_warnings():
...     warnings.simplefilter("ignore")
...     first = secret_key(path)
>>> secret_key(path) == first, oct(path.stat().st_mode & 0o777)
(True, '0o600')
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import stat
import warnings
from collections.abc import Iterable
from pathlib import Path

from shoal.errors import ConfigError

BYTES = 32  # of a new key: as many as SHA-256 has
SHORTEST = 32  # characters of a key that somebody made elsewhere: 128 bits written in sixteen digits
TOKEN = r"^p_[a-z2-7]{26}$"
"""What a pseudonym looks like: 128 bits in letters and digits that no program takes for a number."""
_KEPT = 16  # bytes of a digest that become a token: no two of all people alive share one


def secret_key(path: Path) -> bytes:
    """The key in a file; a new one where there is none, with a word about it."""
    try:
        if not path.exists():
            return _made(path)
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ConfigError(f"The key '{path}' is no file; give the name of one.")
        if os.name != "nt" and mode & 0o077:
            raise ConfigError(
                f"The key '{path}' can be read by others, so it is no secret: chmod 600 it if nobody saw it, or make another."
            )
        key = path.read_bytes().strip()
    except (OSError, ValueError) as problem:  # ValueError: no file can have such a name
        reason = (getattr(problem, "strerror", None) or str(problem)).lower()
        raise ConfigError(f"The key '{path}' cannot be used: {reason}.") from None
    if len(key) < SHORTEST:
        raise ConfigError(
            f"The key '{path}' has {len(key)} characters and could be guessed; it needs {SHORTEST} at least: delete the file and "
            "a new key is made."
        )
    return key


def _made(path: Path) -> bytes:
    key = secrets.token_hex(BYTES)
    # Nobody else can open it, not even for the moment before its permissions would be changed.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(key + "\n")
    warnings.warn(
        f"A new key was made: '{path}'. Keep it to yourself and do not lose it: only with it do the same values get the same "
        "tokens or offsets again.",
        stacklevel=2,
    )
    return key.encode("ascii")


def pseudonyms(values: Iterable[str], key: bytes) -> list[str]:
    """A token for each value (HMAC-SHA256): the same for the same value and key, whatever the table or the column."""
    return [
        f"p_{base64.b32encode(_digest(key, 'pseudonym', one)[:_KEPT]).decode().rstrip('=').lower()}" for one in values
    ]


def offsets(persons: Iterable[str], key: bytes, days: int) -> list[int]:
    """By how many days each person's dates move: from -days to days, all as likely."""
    return [int.from_bytes(_digest(key, "shift", one), "big") % (2 * days + 1) - days for one in persons]


def _digest(key: bytes, purpose: str, value: str) -> bytes:
    """One key serves both purposes: a token tells nothing about an offset."""
    return hmac.new(key, f"shoal {purpose}\0{value}".encode(), hashlib.sha256).digest()
