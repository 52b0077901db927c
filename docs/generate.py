"""Write the pages and files that come out of the program itself: `make docs`."""

from __future__ import annotations

import json
from pathlib import Path

from docs.errors_page import PAGE, errors_page

from shoal.policy import json_schema

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Everything that would drift if people wrote it by hand."""
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    (ROOT / "src" / "shoal" / "shoal.schema.json").write_text(schema, encoding="utf-8")
    PAGE.write_text(errors_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
