"""What holds for every test."""

from __future__ import annotations

from hypothesis import settings

# No test asserts a wall-clock time: hypothesis would, with 200 ms an example.
settings.register_profile("shoal", deadline=None)
settings.load_profile("shoal")
