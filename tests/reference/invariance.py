"""m-invariant publication straight from docs/evolving-data.md#m-invariance-step-by-step, in plain Python, for numbers as quasi-identifiers.

Where the page leaves a choice: buckets by their sorted signature, values in order; of all new rows and places that lack them, those
first that have the least ncp (in ticks of 2^-40): of the class, where the bucket has one, else of a class with the nearest row
of the bucket; then by signature, value and number. A round takes the rows nearest to the first row of its most frequent value; a
cut gives the smaller half to the left, by code and then by number. Which blocks the new rows are cut into is somebody else's
search; here it is asserted that they are eligible.
Rows are numbers; counterfeits are -1, -2, … in the order they are made, each a copy of a real row.
"""

from __future__ import annotations

TICKS = 2**40


class Publisher:
    """One release: `points` and `values` of the rows 0, 1, …, and the ranges of the quasi-identifiers."""

    def __init__(self, points: list[tuple[float, ...]], values: list[str], ranges: list[float], m: int) -> None:
        self.points, self.values, self.ranges, self.m = points, values, ranges, m
        self.table, self.domain = list(values), sorted(set(values))
        self.fakes: list[tuple[str, int]] = []

    def publish(
        self, signature_of: dict[int, frozenset[str]], shown: dict[int, str], domain: list[str], blocks: list[list[int]]
    ) -> list[list[tuple[int, str]]]:
        """Classes as lists of (row, value); `blocks` are those of the new rows.

        `signature_of` has the signature of every row that was published before and `shown` the value it had; a value
        outside its signature hides in its block of m of the other values of the domain, or is not shown.
        """
        self.domain = sorted(domain)
        buckets: dict[tuple[str, ...], dict[str, list[int]]] = {}
        for row in sorted(signature_of):
            key = tuple(sorted(signature_of[row]))
            if self.values[row] not in key:
                others = [v for v in sorted(domain) if v not in key]
                hiding = [others[i : i + self.m] for i in range(0, len(others), self.m)]
                if len(hiding) > 1 and len(hiding[-1]) < self.m:
                    hiding[-2:] = [hiding[-2] + hiding[-1]]
                if len(others) >= self.m:
                    key = next(tuple(block) for block in hiding if self.values[row] in block)
                else:
                    self.values[row] = shown[row]
            buckets.setdefault(key, {v: [] for v in key})[self.values[row]].append(row)
        new = [row for row in range(len(self.points)) if row not in signature_of]
        self._balance(buckets, new)
        self._assign(buckets, new, blocks, first=not signature_of)
        found = []
        for key in sorted(buckets):
            for part in self._split([sorted(rows) for rows in buckets[key].values()]):
                if any(row >= 0 for row in part):
                    found.append([(row, self.value(row)) for row in part])
        return found

    def value(self, row: int) -> str:
        return self.values[row] if row >= 0 else self.fakes[-row - 1][0]

    def point(self, row: int) -> tuple[float, ...]:
        return self.points[row if row >= 0 else self.fakes[-row - 1][1]]

    def fake(self, value: str, like: int) -> int:
        self.fakes.append((value, like if like >= 0 else self.fakes[-like - 1][1]))
        return -len(self.fakes)

    def loss(self, rows: list[int]) -> float:
        """ncp of one row in a class of these."""
        points = [self.point(row) for row in rows]
        spans = [max(p[a] for p in points) - min(p[a] for p in points) for a in range(len(self.ranges))]
        return sum(span / width for span, width in zip(spans, self.ranges, strict=True))

    def gap(self, row: int, others: list[int]) -> int:
        return min(round(self.loss([row, other]) * TICKS) for other in others)

    def _balance(self, buckets: dict[tuple[str, ...], dict[str, list[int]]], new: list[int]) -> None:
        offers, lacking = [], {}
        for key, bucket in buckets.items():
            most = max(len(rows) for rows in bucket.values())
            there = [row for rows in bucket.values() for row in rows]
            for value, rows in bucket.items():
                lacking[key, value] = most - len(rows)
                for row in new:
                    if len(rows) < most and self.values[row] == value:
                        loss = round(self.loss([*there, row]) * TICKS) if most == 1 else self.gap(row, there)
                        offers.append((loss, key, value, row))
        for _, key, value, row in sorted(offers):
            if row in new and lacking[key, value]:
                buckets[key][value].append(row)
                lacking[key, value] -= 1
                new.remove(row)
        for key in sorted(buckets):
            for rows in buckets[key].values():
                rows.sort()
            most = max(len(rows) for rows in buckets[key].values())
            fullest = next(rows for rows in buckets[key].values() if len(rows) == most)
            for value, rows in buckets[key].items():
                while len(rows) < most:
                    rows.append(self.fake(value, fullest[len(rows)]))

    def _assign(
        self,
        buckets: dict[tuple[str, ...], dict[str, list[int]]],
        new: list[int],
        blocks: list[list[int]],
        *,
        first: bool,
    ) -> None:
        stock = self._by_value(new)
        if new and self.m * max(map(len, stock.values())) > len(new):
            if first:
                raise ValueError("infeasible")
            self._fill_up(stock, buckets)
        assert sorted(row for block in blocks for row in block) == sorted(
            row for rows in stock.values() for row in rows
        )
        for block in blocks:
            self._rounds(buckets, self._by_value(block))

    def _by_value(self, rows: list[int]) -> dict[str, list[int]]:
        stock: dict[str, list[int]] = {}
        for row in rows:
            stock.setdefault(self.value(row), []).append(row)
        return stock

    def _rounds(self, buckets: dict[tuple[str, ...], dict[str, list[int]]], stock: dict[str, list[int]]) -> None:
        assert self.m * max(map(len, stock.values())) <= sum(map(len, stock.values())), "not eligible"
        while stock:
            order = sorted(stock, key=lambda v: (-len(stock[v]), v))
            beta, alpha = self._round([len(stock[v]) for v in order])
            chosen = order[:beta]
            anchor = stock[chosen[0]][0]
            bucket = buckets.setdefault(tuple(sorted(chosen)), {v: [] for v in sorted(chosen)})
            for value in chosen:
                near = sorted(stock[value], key=lambda row: (self.gap(row, [anchor]), row))[:alpha]
                bucket[value] += near
                stock[value] = [row for row in stock[value] if row not in near]
                if not stock[value]:
                    del stock[value]

    def _round(self, counts: list[int]) -> tuple[int, int]:
        """The smallest β ≥ m, then the largest α, by trying all of them."""
        for beta in range(self.m, len(counts) + 1):
            for alpha in range(counts[beta - 1], 0, -1):
                rest = [count - alpha for count in counts[:beta]] + counts[beta:]
                if self.m * max(rest) <= sum(rest):
                    return beta, alpha
        raise ValueError("no round")

    def _fill_up(self, stock: dict[str, list[int]], buckets: dict[tuple[str, ...], dict[str, list[int]]]) -> None:
        total = sum(map(len, stock.values()))
        most = max(map(len, stock.values()))
        top = min(v for v in stock if len(stock[v]) == most)
        known = self.domain
        score = {v: (-sum(top in key and v in key for key in buckets), -self.table.count(v), v) for v in known}
        lacking = self.m * most - total
        for value in sorted(known, key=lambda v: score[v]):
            for i in range(min(lacking, most - len(stock.get(value, [])))):
                stock.setdefault(value, []).append(self.fake(value, stock[top][i]))
                lacking -= 1
        if lacking:
            raise ValueError("too few values")

    def _split(self, lines: list[list[int]]) -> list[list[int]]:
        if len(lines[0]) == 1:
            return [[line[0] for line in lines]]
        half = len(lines[0]) // 2
        choices = []
        for a in range(len(self.ranges)):
            ordered = [sorted(line, key=lambda row: (self.point(row)[a], row)) for line in lines]
            left, right = [line[:half] for line in ordered], [line[half:] for line in ordered]
            cost = 0
            for part in (left, right):
                rows = [row for line in part for row in line]
                cost += round(self.loss(rows) * len(rows) * TICKS)
            choices.append((cost, a, left, right))
        _, _, left, right = min(choices, key=lambda choice: choice[:2])
        return self._split([sorted(x) for x in left]) + self._split([sorted(x) for x in right])
