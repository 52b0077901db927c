"""Write the pages that come out of the program itself: `make docs`."""

from __future__ import annotations

from docs.errors_page import PAGE, errors_page


def main() -> None:
    """Everything that would drift if people wrote it by hand."""
    PAGE.write_text(errors_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
