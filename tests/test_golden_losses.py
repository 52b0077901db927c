"""The running example (docs/papers.md#the-running-example), out of the public interface: unit costs, IL, generalizations, DM, AVG, NCP."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from tests.tables import rt7

import shoal
from shoal.measures.loss import measure
from shoal.recode import generalize
from shoal.states import class_states

PA = [[0, 1], [2, 3], [4, 5, 6]]
PB = [[0, 1, 4, 6], [2, 3, 5]]
PC = [[0, 1, 4], [2, 3, 5, 6]]


def partition(classes: list[list[int]]) -> shoal.Partition:
    return shoal.Partition.of_classes(classes, 7)


def exactly(value: Fraction | float) -> object:
    return pytest.approx(float(value), abs=1e-12)


def test_g1_unit_costs() -> None:
    data = rt7()
    space = data.space("il")
    units = space.unit(class_states(data, partition(PA), space))
    assert units.tolist() == [exactly(Fraction(21, 10)), exactly(Fraction(5, 3)), exactly(Fraction(19, 10))]


@pytest.mark.parametrize(("classes", "il"), [(PA, Fraction(397, 30)), (PB, Fraction(67, 5)), (PC, Fraction(389, 30))])
def test_g2_information_loss(classes: list[list[int]], il: Fraction) -> None:
    assert measure(rt7(), partition(classes)).il == exactly(il)


def test_g3_generalizations() -> None:
    data = rt7()
    found = partition(PA)
    masked = pl.DataFrame(generalize(data, found, class_states(data, found, data.space("il"))))
    assert masked.rows()[0] == ("[25, 40]", "41***", "*")
    assert masked.rows()[2] == ("[35, 55]", "*****", "Male")
    assert masked.rows()[4] == ("[33, 42]", "41***", "*")


@pytest.mark.parametrize(
    ("classes", "dm", "avg"), [(PA, 17, Fraction(7, 6)), (PB, 25, Fraction(7, 4)), (PC, 25, Fraction(7, 4))]
)
def test_g5_discernibility_and_average(classes: list[list[int]], dm: int, avg: Fraction) -> None:
    found = measure(rt7(), partition(classes), k=2)
    assert found.dm == dm
    assert found.avg == exactly(avg)


@pytest.mark.parametrize(
    ("classes", "ncp"), [(PA, Fraction(166, 315)), (PB, Fraction(73, 126)), (PC, Fraction(34, 63))]
)
def test_g6_ncp_by_distinct_values(classes: list[list[int]], ncp: Fraction) -> None:
    assert measure(rt7(), partition(classes)).ncp_distinct == exactly(ncp)


def test_g7_ncp_by_leaves() -> None:
    assert measure(rt7(), partition(PC)).ncp == exactly(Fraction(79, 126))


def test_g37_discernibility_with_suppression() -> None:
    frame = pl.DataFrame({"a": [1] * 4 + [2] * 4 + [3, 4]})
    data = shoal.Microdata.from_frame(frame, {"a": {"role": "quasi"}})
    labels = np.array([0] * 4 + [1] * 4 + [-1, -1])
    assert measure(data, shoal.Partition(labels)).dm == 52


def test_minimal_distortion_counts_changed_cells() -> None:
    assert measure(rt7(), partition(PA)).changed == 19
