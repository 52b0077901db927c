"""Models that bound the share of each value, on 2,000 random tables: NumPy, compiled loops and the naive twin agree."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.stand_in import RICH, VALUES, column, rich
from tests.reference import models as twins

from shoal.kernels.rules import class_deficit, class_ok
from shoal.models import MODELS
from shoal.models.forms import Kind, Shares
from shoal.models.shares import SharesRule
from shoal.policy import FlatRules, Policy

TABLES = 2000


def bounds_shares(model):
    forms = model.bind(rich([0, 1, 2, 3, 4, 5]) if model.per_attribute else None, 6).forms()
    return forms is not None and any(form.kind == Kind.SHARES for form in forms)


MODELS_OF_SHARES = [model for kind in MODELS.values() for model in kind.examples() if bounds_shares(model)]


def random_table(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 40))
    codes = random.choice(6, n, p=random.dirichlet(np.full(6, random.choice([0.3, 1.0, 5.0]))))
    codes[random.random(n) < random.choice([0.0, 0.2])] = -1
    members = np.sort(random.choice(n, int(random.integers(1, n + 1)), replace=False))
    return codes, members


@pytest.mark.parametrize("model", MODELS_OF_SHARES, ids=str)
def test_twins_agree_on_many_tables(model):
    parameters = {key: value for key, value in model.parameters().items() if key != "attribute"}
    twin, answers = getattr(twins, model.name), []
    for seed in range(TABLES):
        codes, members = random_table(seed)
        rules = Policy((model,)).bind([rich(codes)], len(codes))
        stats = rules.stats_of(members)
        deficit = float(rules.deficit(stats)[0])
        table = [None if code < 0 else VALUES[code] for code in codes]
        good = twin([table[i] for i in members], table, RICH, **parameters)
        assert (deficit == 0) == good, (seed, deficit)
        if seed % 10 == 0:
            row, flat = stats.counts[0][0].astype(np.int32), rules.flat()
            assert class_deficit(flat, len(members), row) == pytest.approx(deficit, abs=1e-9)
            assert class_ok(flat, len(members), row) == good
        answers.append(good)
    assert 0.05 < np.mean(answers) < 0.95


class AnyShares(SharesRule):
    def strongest(self, sizes, counts):
        return float("nan")


def test_a_value_that_has_to_occur_is_missed_whatever_its_bound():
    """e^-δ of a large δ is nothing, and a class without the value fails all the same: one record is missing."""
    form = Shares(np.array([1e-15, 0.0]), np.array([np.inf, 0.5]), of_known=True, everywhere=True)
    rule = AnyShares(MODELS["alpha_k"](0.5), column(["10", "20"]), 2, form)
    counts = np.array([[0, 1], [1, 1], [1, 0], [0, 0]])
    found = rule.deficit(counts.sum(axis=1), counts)
    assert found == pytest.approx([1.5, 0, 0, 1])
    flat = FlatRules(*(np.array(part) for part in ([5], [0], [2], [0, 2], form.ints(), [0, 4], form.floats())), 1, None)
    assert [class_deficit(flat, row.sum(), row.astype(np.int32)) for row in counts] == pytest.approx(found.tolist())
    assert rule.exposed(np.array([4, 4]), np.array([[0, 2], [0, 2]]), np.array([[0, 4], [1, 4]])).tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize("model", MODELS_OF_SHARES, ids=str)
def test_no_good_class_is_smaller_than_the_least_size(model):
    """Every class of small tables, so that a bound that excludes too much shows."""
    for seed in range(60):
        random = np.random.default_rng(seed)
        codes = random.choice(6, 9, p=random.dirichlet(np.full(6, 0.7)))
        rules = Policy((model,)).bind([rich(codes)], 9)
        least, most = rules.k, rules.max_classes
        good = [mask for mask in range(1, 2**9) if rules.ok(np.flatnonzero([mask >> i & 1 for i in range(9)]))]
        assert all(mask.bit_count() >= least for mask in good)
        assert not good or most >= 1
