"""Every algorithm with every model, on visits of people with several rows: the definitions alone judge each release.

`SHOAL_PERSONS=5000 pytest tests/test_persons_grid.py` is the same with 5,000 people and 20,000 visits (half an hour of one core).
"""

from __future__ import annotations

import os

import pytest
from tests.visits import SCHEMA, accepted, policies, visits

import shoal
from shoal.algorithms import names
from shoal.errors import UnsupportedError

PERSONS = int(os.environ.get("SHOAL_PERSONS", "70"))
# Full-domain search relies on good classes staying good when they are merged, which these do not promise.
REFUSED = {"incognito": {"delta_disclosure", "kpqr", "personalized"}}
# Of thousands of people, classes that publish the same values may be good each and not together, where no class nearby mends it.
ALIKE = {("greedy_pk", "delta_disclosure")} if PERSONS > 1_000 else set()


@pytest.fixture(scope="module")
def table():
    frame = visits(PERSONS, 4 * PERSONS, seed=3)
    return frame, shoal.Microdata.from_frame(frame, SCHEMA)


@pytest.mark.parametrize("algorithm", names())
@pytest.mark.parametrize("policy", policies(), ids=lambda policy: policy.models[-1].name)
def test_every_algorithm_releases_what_the_definitions_accept(table, policy, algorithm):
    frame, data = table
    if policy.models[-1].name in REFUSED.get(algorithm, ()):
        with pytest.raises(UnsupportedError, match="relies on good classes staying good"):
            shoal.anonymize(data, policy, algorithm=algorithm, refine=False, seed=1, order="keep")
        return
    if (algorithm, policy.models[-1].name) in ALIKE:
        with pytest.raises(UnsupportedError, match="publish the same values"):
            shoal.anonymize(data, policy, algorithm=algorithm, refine=False, seed=1, order="keep")
        return
    release = shoal.anonymize(data, policy, algorithm=algorithm, refine=False, seed=1, order="keep")
    accepted(frame, release.masked, policy)
    assert release.evidence.persons == PERSONS
    # A table that is one single class would be accepted whatever an algorithm does; these find better ones.
    assert release.evidence.classes > 1 or algorithm not in ("auto", "k_member", "mondrian", "peel", "greedy_pk")
