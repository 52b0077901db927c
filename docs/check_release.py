"""Check a published table with nothing but Python: the smallest class (k), and the fewest values of each secret in a class.

python check_release.py masked.csv --quasi age,zip,job --sensitive diagnosis -k 5 -p 3

CSV, TSV and JSON lines, also packed with gzip. A class is all records whose quasi-identifiers are written alike. Secrets are
compared without case, spaces and what cannot be seen; spellings of missing are none. Exit code 1: k or p does not hold.
"""

import argparse
import csv
import gzip
import json
import sys
import unicodedata

MISSING = {"", "na", "n/a", "n.a.", "nan", "null", "nil", "missing", "unknown", "?", "*", "**", "-", "--", "—", "∅"}


def records(path):
    unpack = gzip.open if path.endswith(".gz") else open
    with unpack(path, "rt", encoding="utf-8-sig", newline="") as file:
        if ".jsonl" in path or ".ndjson" in path:
            for row in (json.loads(line, parse_int=str, parse_float=str) for line in file if line.strip()):
                yield {name: "" if cell is None else str(cell) for name, cell in row.items()}
            return
        header = file.readline()
        cut = max("\t|;,", key=header.count)
        names = [name.strip() for name in next(csv.reader([header], delimiter=cut))]
        for row in filter(None, csv.reader(file, delimiter=cut, strict=True)):
            yield dict(zip(names, row, strict=True))


def value(cell):
    plain = unicodedata.normalize("NFKC", cell).casefold()
    return " ".join("".join(c for c in plain if c.isspace() or unicodedata.category(c) not in ("Cf", "Cc")).split())


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("file")
    for name in ("--quasi", "--sensitive", "--other"):
        options.add_argument(name, default=[], type=lambda text: text.split(","), help="columns: age,zip")
    options.add_argument("-k", type=int, default=1)
    options.add_argument("-p", type=int, default=1)
    asked, classes = options.parse_args(), {}
    for row in records(asked.file):
        if strange := set(row) - {*asked.quasi, *asked.sensitive, *asked.other}:
            sys.exit(f"nobody said what these columns are: {', '.join(sorted(strange))}")
        found = classes.setdefault(tuple(row[name] for name in asked.quasi), [0, *(set() for _ in asked.sensitive)])
        found[0] += 1
        for values, name in zip(found[1:], asked.sensitive, strict=True):
            values.update({value(row[name])} - MISSING)
    smallest = min(found[0] for found in classes.values())
    fewest = {name: min(len(found[i]) for found in classes.values()) for i, name in enumerate(asked.sensitive, 1)}
    print(json.dumps({"classes": len(classes), "k": smallest, "distinct": fewest}))
    sys.exit(0 if smallest >= asked.k and all(count >= asked.p for count in fewest.values()) else 1)


if __name__ == "__main__":
    main()
