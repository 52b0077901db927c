"""Golden values of the models: the papers' examples, and small classes worked out by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from tests.models.stand_in import column, histogram, size

from shoal.errors import ConfigError
from shoal.models.alpha_k import AlphaK
from shoal.models.base import Model
from shoal.models.diversity import div, diversity_weights, hom
from shoal.models.extended_p_sensitive import ExtendedPSensitive
from shoal.models.k_anonymity import KAnonymity
from shoal.models.k_e import KE
from shoal.models.kpqr import KPQR
from shoal.models.l_diversity import LDiversity, entropy
from shoal.models.p_alpha_sensitive import PAlphaSensitive
from shoal.models.p_plus_sensitive import PPlusSensitive
from shoal.models.p_sensitive import PSensitive
from shoal.models.personalized import Personalized
from shoal.models.t_closeness import TCloseness
from shoal.models.variance import variance_for
from shoal.policy import Policy

CANCER = {"colon": "cancer", "prostate": "cancer", "breast": "cancer", "cancer": "*", "flu": "*"}
DISEASES = ("HIV", "cancer", "phthisis", "hepatitis", "obesity", "asthma", "flu", "indigestion")
SECRECY = tuple((f"S{i + 1}", DISEASES[2 * i : 2 * i + 2]) for i in range(4))
LUNGS = {
    "flu": "infection", "pneumonia": "infection", "bronchitis": "infection", "edema": "vascular",
    "embolism": "vascular", "gastric ulcer": "stomach", "gastritis": "stomach", "stomach cancer": "stomach",
    "colitis": "colon", "colon cancer": "colon", "infection": "resp", "vascular": "resp", "stomach": "dig",
    "colon": "dig", "resp": "*", "dig": "*",
}  # fmt: skip
PATIENTS = ["gastric ulcer"] + 2 * ["gastritis"] + 2 * ["stomach cancer"] + ["flu"] + 2 * ["bronchitis"] + ["pneumonia"]


def satisfies(model: Model, members, table, **more) -> bool:
    attribute = column(table, **more)
    rule = model.bind(attribute, len(table))
    counts = np.bincount(attribute_codes(rule, attribute, members), minlength=rule.view.width)[None, :]
    return bool(rule.deficit(size(members), counts)[0] == 0)


def attribute_codes(rule, attribute, members):
    """Codes of the class's values in the rule's view, looked up in the table."""
    position = [int(np.flatnonzero(attribute.codes == attribute.labels.index(value))[0]) for value in members]
    return rule.view.of_records(attribute)[position]


def distances(table, classes, distance, **more):
    attribute = column(table, **more)
    rule = TCloseness(0.1, distance=distance).bind(attribute, len(table))
    return [float(rule.distances(histogram(members, attribute.labels))[0]) for members in classes]


def test_two_sensitive_pairs_do_not_exist():
    """Figure 1 of Truta et al. 2007 with three attributes, of which only one class can be made."""
    columns = [column(list(values), name=name) for name, values in (("A", "1122"), ("B", "abab"), ("C", "xyyx"))]
    rules = Policy((PSensitive(2),)).bind(columns, 4)
    assert rules.max_classes == 2
    good = [set(s) for r in (1, 2, 3, 4) for s in combinations(range(4), r) if rules.ok(np.array(s))]
    assert sorted(map(len, good)) == [3, 3, 3, 3, 4]


def test_masked_table_of_000():
    """k = 3 and p = 1; with one other diagnosis p = 2."""
    diagnosis = ["AIDS"] * 3 + ["Diabetes"] * 2 + ["Tuberculosis"] * 2
    income = ["60", "60", "40", "50", "40", "50", "40"]
    labels = np.array([0, 0, 0, 1, 1, 1, 1])

    def strongest(diagnoses):
        columns = [column(diagnoses, name="Diagnosis"), column(income, name="Income")]
        rules = Policy((KAnonymity(3), PSensitive(1))).bind(columns, 7)
        stats = rules.stats(labels, 2)
        k = rules.rules[0].strongest(stats.sizes, stats.counts[0])
        return k, [rule.strongest(stats.sizes, stats.counts[i]) for i, rule in enumerate(rules.rules[1:])]

    assert strongest(diagnosis) == (3, [1, 2])
    assert strongest(["flu", *diagnosis[1:]]) == (3, [2, 2])


def test_masked_table_of_001():
    """k = 2, p = 1, and two of five classes hold one problem only."""
    problem = [
        "breath",
        "chest",
        "tension",
        "tension",
        "obesity",
        "chest",
        "chest",
        "obesity",
        "breath",
        "chest",
        "chest",
    ]
    rules = Policy((KAnonymity(2), PSensitive(2))).bind([column(problem)], 11)
    stats = rules.stats(np.array([0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 4]), 5)
    assert rules.rules[0].strongest(stats.sizes, stats.counts[0]) == 2
    assert rules.rules[1].strongest(stats.sizes, stats.counts[0]) == 1
    assert np.flatnonzero(rules.deficit(stats)).tolist() == [1, 4]


def test_extended_p_sensitive_counts_protected_subtrees():
    table = ["colon", "prostate", "breast", "flu"]
    tree = {"taxonomy": CANCER, "protect": ("cancer",)}
    assert satisfies(PSensitive(3), ["colon", "breast", "prostate"], table)
    assert not satisfies(ExtendedPSensitive(2), ["colon", "breast", "prostate"], table, **tree)
    assert satisfies(ExtendedPSensitive(1), ["colon", "breast", "prostate"], table, **tree)
    assert satisfies(ExtendedPSensitive(2), ["colon", "flu"], table, **tree)
    assert not satisfies(ExtendedPSensitive(3), ["colon", "flu"], table, **tree)
    assert satisfies(ExtendedPSensitive(3), ["colon", "breast", "flu"], table, taxonomy=CANCER)


def test_a_protected_root_leaves_one_subtree():
    attribute = column(["colon", "flu"], taxonomy=CANCER, protect=("*",))
    assert ExtendedPSensitive(1).bind(attribute, 2).infeasible() is None
    assert "ask for p ≤ 1" in str(ExtendedPSensitive(2).bind(attribute, 2).infeasible())


def test_extended_on_mapped_values_is_p_sensitivity_of_the_mapped_table():
    """A mapped table, and p+ as extended p-sensitivity on two levels."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        table = list(rng.choice(DISEASES, size=20))
        two_levels = {value: name for name, values in SECRECY for value in values} | {name: "*" for name, _ in SECRECY}
        attribute = column(
            table, DISEASES, categories=SECRECY, taxonomy=two_levels, protect=tuple(name for name, _ in SECRECY)
        )
        mapped = column([two_levels[value] for value in table], name="mapped")
        members = np.sort(rng.choice(20, size=4, replace=False))
        found = [
            Policy((model,)).bind([on], 20).ok(members)
            for p in (1, 2, 3, 4)
            for model, on in (
                (ExtendedPSensitive(p), attribute),
                (PPlusSensitive(p), attribute),
                (PSensitive(p), mapped),
            )
        ]
        assert found[0::3] == found[1::3] == found[2::3]


def test_categories_stop_the_similarity_attack():
    assert satisfies(PSensitive(2), ["HIV", "cancer"], DISEASES, categories=SECRECY)
    assert not satisfies(PPlusSensitive(2), ["HIV", "cancer"], DISEASES, categories=SECRECY)
    assert satisfies(PPlusSensitive(2), ["HIV", "flu"], DISEASES, categories=SECRECY)


@pytest.mark.parametrize(
    ("members", "scope", "distinct", "weight"),
    [
        (("HIV", "cancer", "HIV", "cancer"), "rows", 2, Fraction(0)),
        (("HIV", "flu", "asthma", "indigestion"), "rows", 4, Fraction(8, 3)),
        (("flu", "indigestion", "flu", "obesity"), "rows", 3, Fraction(11, 3)),
        (("flu", "indigestion", "flu", "obesity"), "distinct", 3, Fraction(8, 3)),
        (DISEASES, "distinct", 8, Fraction(4)),
    ],
)
def test_weights_of_categories(members, scope, distinct, weight):
    """Weights over records and over distinct values."""
    attribute = column(DISEASES, DISEASES, categories=SECRECY)
    rule = PAlphaSensitive(1, 1.0, scope=scope).bind(attribute, 8)
    counts = histogram(members, DISEASES)
    assert float(rule.weights(counts)[0]) == pytest.approx(float(weight))
    for alpha, ok in ((float(weight), True), (float(weight) + 0.01, False)):
        assert satisfies(PAlphaSensitive(distinct, alpha, scope=scope), members, DISEASES, categories=SECRECY) == ok
    assert not satisfies(PAlphaSensitive(distinct + 1, 0.0, scope=scope), members, DISEASES, categories=SECRECY)


@pytest.mark.parametrize(
    ("frequencies", "information", "values", "limits"),
    [((4, 3, 2, 1), 1.2799, 3.5961, {2: 2 / 3, 3: 4 / 3}), ((5, 1, 1, 1), 1.0735, 2.9257, {2: 5 / 3})],
)
def test_entropy_and_recursive_diversity(frequencies, information, values, limits):
    """Entropies and the c from which recursive diversity holds."""
    members = [name for name, f in zip("abcd", frequencies, strict=True) for _ in range(f)]
    counts = histogram(members, "abcd")
    assert float(entropy(counts)[0]) == pytest.approx(information, abs=5e-5)
    rule = LDiversity(2, variant="entropy").bind(column(members), len(members))
    assert rule.strongest(size(members), counts) == pytest.approx(values, abs=5e-5)
    assert satisfies(LDiversity(values - 1e-4, variant="entropy"), members, members)
    assert not satisfies(LDiversity(values + 1e-4, variant="entropy"), members, members)
    for length, c in limits.items():
        assert not satisfies(LDiversity(length, variant="recursive", c=c), members, members)
        assert satisfies(LDiversity(length, variant="recursive", c=c + 1e-9), members, members)


def test_recursive_diversity_is_not_the_misprinted_formula():
    """With r_1 on the right, 5 < 7 would hold."""
    members = list("aaaaabcd")
    assert not satisfies(LDiversity(2, variant="recursive", c=1.0), members, members)


def test_uniform_classes_reach_their_entropy_exactly():
    for values in range(1, 30):
        for times in (1, 3, 7, 1_000_003):
            counts = np.full((1, values), times)
            rule = LDiversity(values, variant="entropy").bind(column([str(v) for v in range(values)]), values)
            assert rule.deficit(counts.sum(axis=1), counts) == 0


def test_alpha_is_not_p_sensitivity():
    """{a, a, a, b} has two values and a share of 0.75."""
    table = list("aaab")
    assert satisfies(PSensitive(2), table, table)
    assert not satisfies(AlphaK(0.5), table, table)
    assert satisfies(AlphaK(0.75), table, table)
    assert satisfies(AlphaK(0.5, values=["b"]), table, table)


@pytest.mark.parametrize("total", [10, 1_000, 1_000_000, 30_000_000])
def test_a_share_of_exactly_alpha_is_allowed_in_classes_of_any_size(total):
    rule = AlphaK(0.3).bind(column(list("abcd")), 4)
    counts = np.array([[3, 3, 3, 1]]) * (total // 10)
    assert rule.deficit(np.array([total]), counts) == 0
    assert rule.deficit(np.array([total]), counts + np.array([[1, 0, 0, -1]])) > 0


def test_range_of_numbers():
    table = ["10", "20", "30", "60"]
    numbers = {"labels": table, "numbers": np.array([10.0, 20.0, 30.0, 60.0])}
    assert satisfies(KE(20), ["10", "30"], table, **numbers)
    assert not satisfies(KE(20.5), ["10", "30"], table, **numbers)
    assert not satisfies(KE(20, count="distinct", k=3), ["10", "30", "30"], table, **numbers)
    assert satisfies(KE(20, count="rows", k=3), ["10", "30", "30"], table, **numbers)
    assert not satisfies(KE(20, count="rows", k=4), ["10", "30", "30"], table, **numbers)
    assert KE(51).bind(column(table, **numbers), 4).infeasible().endswith("ask for e ≤ 50")
    assert KE(20).bind(column(table, **numbers), 4).max_classes() == 2
    assert KE(45).bind(column(table, **numbers), 4).max_classes() == 1


def test_ordered_distance():
    """Salaries in order."""
    table = [f"{k}k" for k in range(3, 12)]
    classes = [["3k", "4k", "5k"], ["6k", "8k", "11k"], ["3k", "5k", "9k"], ["4k", "7k", "10k"], ["7k", "9k", "10k"]]
    found = distances(table, classes, "ordered", labels=table, ordered=True)
    assert found == pytest.approx([3 / 8, 1 / 6, 1 / 6, 1 / 12, 17 / 72], abs=1e-12)
    assert distances(table, classes, None, labels=table, ordered=True) == found


def test_hierarchical_distance():
    """Diseases in a taxonomy."""
    classes = [
        ["gastric ulcer", "gastritis", "stomach cancer"],
        ["gastric ulcer", "stomach cancer", "pneumonia"],
        ["gastritis", "flu", "bronchitis"],
        ["gastritis", "bronchitis", "stomach cancer"],
    ]
    found = distances(PATIENTS, classes, "hierarchical", taxonomy=LUNGS)
    assert found == pytest.approx([4 / 9, 7 / 27, 8 / 27, 5 / 27], abs=1e-12)
    assert distances(PATIENTS, classes, None, taxonomy=LUNGS) == found


def test_equal_distance():
    """Equal distances."""
    assert distances(DISEASES, [["HIV", "cancer"]], "equal") == pytest.approx([0.75], abs=1e-12)
    assert distances("abc", ["ab"], None) == pytest.approx([1 / 3], abs=1e-12)


def test_variances_of_002():
    """The reference variances of the three experiments of Domingo-Ferrer et al. 2008."""
    even = [str(v) for v in range(1, 11) for _ in range(108)]
    skewed = [str(v) for v in range(1, 10) for _ in range(10)] + ["10"] * 990
    labels = [str(v) for v in range(1, 11)]
    numbers = {"labels": labels, "numbers": np.arange(1.0, 11.0)}
    rule = KPQR(4, 0.2, 0.5).bind(column(even, **numbers), 1080)
    assert rule.rare.all()
    assert rule.references == pytest.approx({"all": 33 / 4, "rare": 33 / 4})
    rule = KPQR(4, 0.2, 0.5).bind(column(skewed, **numbers), 1080)
    assert rule.rare.tolist() == [True] * 9 + [False]
    assert rule.references == pytest.approx({"all": 355 / 144, "rare": 20 / 3})


def test_variance_of_other_kinds():
    assert float(variance("numbers", ["1", "4", "10"])) == pytest.approx(14)
    assert float(variance("nominal", list("aabc"))) == pytest.approx(0.3125)


def variance(kind, values):
    attribute = column(values, sorted(set(values), key=lambda v: (len(v), v)))
    if kind == "numbers":
        attribute = column(values, attribute.labels, numbers=np.array([float(v) for v in attribute.labels]))
    return variance_for(KPQR(1, 0, 0), attribute).of(histogram(values, attribute.labels))[0]


def test_kpqr_is_not_union_closed():
    """{1, 10} and a hundred times {10}."""
    table = ["1", "10"] + ["10"] * 100 + ["5"] * 300
    numbers = {"labels": ["1", "5", "10"], "numbers": np.array([1.0, 5.0, 10.0])}
    model = KPQR(2, 0.1, 0.5)
    assert satisfies(model, ["1", "10"], table, **numbers)
    assert satisfies(model, ["10"] * 100, table, **numbers)
    assert not satisfies(model, ["1"] + ["10"] * 101, table, **numbers)


def test_kpqr_scopes_and_references():
    table = ["1"] * 2 + ["5"] * 40 + ["6"] * 40 + ["10"] * 2
    numbers = {"labels": ["1", "5", "6", "10"], "numbers": np.array([1.0, 5.0, 6.0, 10.0])}
    assert satisfies(KPQR(2, 0.1, 0.5), ["5", "6"], table, **numbers)
    assert not satisfies(KPQR(2, 0.1, 0.5, scope="literal"), ["5", "6"], table, **numbers)
    assert satisfies(KPQR(2, 0.1, 0.9), ["1", "6", "6"], table, **numbers)
    assert not satisfies(KPQR(2, 0.1, 0.9, reference="rare"), ["1", "6", "6"], table, **numbers)
    assert not satisfies(KPQR(2, 0.1, 0.0), ["1", "1"], table, **numbers)


def test_a_value_of_exactly_the_share_q_is_not_rare():
    rule = KPQR(2, 0.1, 0.0).bind(column(["a"] + ["b"] * 9), 10)
    assert not rule.rare.any()
    assert KPQR(2, 0.11, 0.0).bind(column(["a"] + ["b"] * 9), 10).rare.tolist() == [True, False]


def test_guarding_nodes():
    """A guard "stomach" gives 1/2 and "flu" 1/4."""
    members = ["flu", "gastritis", "gastric ulcer", "pneumonia"]
    for guards, breach in ((["", "stomach", None, ""], 0.5), (["flu", "", "", ""], 0.25)):
        attribute = column(members, taxonomy=LUNGS, beside={"wish": np.array(guards, dtype=object)})
        rules = Policy((Personalized(breach, guard="wish"),)).bind([attribute], 4)
        assert rules.ok(np.arange(4))
        stats = rules.stats_of(np.arange(4))
        assert rules.rules[0].strongest(stats.sizes, stats.counts[0]) == pytest.approx(breach)
        assert not Policy((Personalized(breach - 0.01, guard="wish"),)).bind([attribute], 4).ok(np.arange(4))
    assert satisfies(Personalized(0.5, guard={"gastritis": "stomach"}), members, members, taxonomy=LUNGS)
    assert not satisfies(Personalized(0.49, guard={"gastritis": "stomach"}), members, members, taxonomy=LUNGS)
    assert satisfies(Personalized(0.25, guard={"flu": "flu"}), members, members, taxonomy=LUNGS)
    assert satisfies(Personalized(0.25, guard=0), members, members, taxonomy=LUNGS)
    assert not satisfies(Personalized(0.49, guard=1), members, members, taxonomy=LUNGS)


def test_a_generalized_value_lies_below_a_guard_in_part():
    """infection has three leaves, one of them flu: (1 + 1/3) / 2."""
    members = ["flu", "infection"]
    rules = Policy((Personalized(0.5, guard={"flu": "flu"}),)).bind([column(members, taxonomy=LUNGS)], 2)
    stats = rules.stats_of(np.arange(2))
    assert rules.rules[0].strongest(stats.sizes, stats.counts[0]) == pytest.approx(2 / 3)
    # Of people with several values, nobody knows whether two parts are of one person; of whole values it is known.
    codes = np.array([0, 1], dtype=np.int32)
    assert rules.rules[0].of_people(codes, codes) is None
    whole = Policy((Personalized(0.5, guard={"flu": "flu"}),)).bind([column(["flu", "edema"], taxonomy=LUNGS)], 2)
    assert whole.rules[0].of_people(codes, codes) is not None


def test_a_guard_beside_the_value_is_refused():
    with pytest.raises(ConfigError, match="guard 'colon' of 'illness' is not above the value 'flu'"):
        Personalized(0.5, guard={"flu": "colon"}).bind(column(["flu"], taxonomy=LUNGS), 1)


def test_div_and_hom():
    """Hom of a class, and Div of three records."""
    counts = [np.array([[1, 1, 0]]), np.array([[2, 0]])]
    half = np.array([0.5, 0.5])
    assert hom(counts, 3, half).tolist() == [1.5]
    assert div(counts, np.array([[2, 0], [0, 1], [2, 1]]), 3, half).T.tolist() == [[0.5, 1.0, 1.5]]
    assert div(counts[:1], np.array([[2], [0]]), 3).tolist() == [[1.0], [0.0]]  # one attribute weighs all


def test_div_is_what_a_record_takes_from_hom_weighted_by_what_is_missing():
    rng = np.random.default_rng(8)
    for _ in range(50):
        counts = [rng.integers(0, 2, size=(4, 5)), rng.integers(0, 2, size=(4, 3))]
        codes = np.stack([rng.integers(-1, 5, size=6), rng.integers(-1, 3, size=6)], axis=1)
        weights = diversity_weights([5, 3], "inverse_cardinality")
        assert weights == pytest.approx([3 / 8, 5 / 8])
        found = div(counts, codes, 2, weights)
        for i, record in enumerate(codes):
            for c in range(4):
                expected = 0.0
                for j, code in enumerate(record):
                    before = set(np.flatnonzero(counts[j][c]))
                    after = before | ({code} if code >= 0 else set())
                    y, more = min(len(before), 2), min(len(after), 2)
                    expected += (more - y) * (2 - y) * weights[j]
                assert found[i, c] == pytest.approx(expected)
    empty = [np.zeros((1, 5), dtype=int), np.zeros((1, 3), dtype=int)]
    assert div(empty, np.array([[0, 0]]), 2).tolist() == [[2.0]]
