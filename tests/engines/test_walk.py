"""The road in counts gives what the road in memory gives: rows, evidence, losses and manifest, to the last digit."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.tables import random_table

import shoal
from shoal.declaration import SAMPLE
from shoal.engines.memory import MemoryEngine, whole_classes
from shoal.engines.walk import LargeRelease, Settings, walk
from shoal.errors import ConfigError, InfeasibleError, InputError, ShoalError, UnsupportedError
from shoal.microdata import Microdata
from shoal.policy import Policy

K = Policy((shoal.KAnonymity(3),))
P = shoal.KAnonymity(3) & shoal.PSensitive(2)
T = shoal.KAnonymity(2) & shoal.TCloseness(0.4)
PLAIN: dict[str, Any] = {"algorithm": "mondrian", "refine": False}


def large(data: Microdata, policy: Policy, batch: int = 77, **settings: Any) -> LargeRelease:
    return walk(MemoryEngine(data.frame.to_arrow(), batch=batch), data.schema, policy, Settings(**settings))


def staged(release: LargeRelease) -> pl.DataFrame:
    assert isinstance(release.engine, MemoryEngine)
    return release.engine.staged


@pytest.mark.parametrize("policy", [K, P, T], ids=["k", "p", "t"])
@pytest.mark.parametrize("blocks", [1, 40, 10_000])
def test_mondrian_is_the_same_to_the_last_byte(policy: Policy, blocks: int) -> None:
    data = random_table(4, 300, sensitive=2)
    found = large(data, policy, blocks=blocks, **PLAIN)
    wanted = shoal.anonymize(data, policy, **PLAIN)
    assert staged(found).equals(wanted.masked)
    assert found.evidence == wanted.evidence
    assert found.measures == wanted.measures
    assert found.manifest == wanted.manifest
    assert found.secret["measures"] == wanted.secret["measures"]
    assert found.secret["published_as_it_is"] == wanted.secret["published_as_it_is"]


@pytest.mark.parametrize(
    "settings",
    [
        {"intervals": "columns"},
        {"intervals": "midpoint"},
        {"recode": "microaggregate", "blocks": 10_000},
        {"recode": "suppress"},
        {"objective": "il"},
        {"options": {"split": "median", "categories": "hierarchy"}},
    ],
    ids=str,
)
def test_every_way_to_publish(settings: dict[str, Any]) -> None:
    data = random_table(2, 200)
    found = large(data, P, **{"blocks": 60, **PLAIN, **settings})
    options = settings.get("options", {})
    wanted = shoal.anonymize(
        data, P, **{**PLAIN, **{k: v for k, v in settings.items() if k not in ("options", "blocks")}}, **options
    )
    assert staged(found).equals(wanted.masked)
    assert found.evidence == wanted.evidence


@pytest.mark.parametrize("algorithm", ["k_member", "greedy_pk", "mdav"])
def test_other_algorithms_solve_blocks_whatever_the_order_of_the_records(algorithm: str) -> None:
    data = random_table(5, 240)
    settings = {"algorithm": algorithm, "refine": False, "blocks": 80}
    one = large(data, P, **settings)
    turned = Microdata.from_frame(data.frame[np.random.default_rng(1).permutation(data.n)], data.schema)
    other = large(turned, P, batch=13, **settings)
    assert staged(one).equals(staged(other))
    assert one.evidence.passed and len(one.tree.parts) > 2
    assert one.measures == other.measures


def test_refined_blocks_lose_less_and_do_not_depend_on_order() -> None:
    data = random_table(6, 300)
    one = large(data, K, algorithm="auto", refine=True, blocks=100)
    turned = Microdata.from_frame(data.frame.reverse(), data.schema)
    assert staged(one).equals(staged(large(turned, K, algorithm="auto", refine=True, blocks=100)))
    assert one.measures.ncp < large(data, K, blocks=100, **PLAIN).measures.ncp


def test_nothing_collected_grows_with_the_records() -> None:
    sizes = []
    for n in (2_000, 20_000):
        data = random_table(8, n)
        engine = large(data, P, blocks=n // 8, **PLAIN).engine
        assert isinstance(engine, MemoryEngine)
        assert {what for what, _ in engine.collected} == {"value_counts", "repeats", "sample", "weigh"}
        assert all(rows <= 2 * SAMPLE for what, rows in engine.collected if what == "sample")
        sizes.append(max(rows for what, rows in engine.collected if what != "sample"))
    assert sizes[1] < 1.5 * sizes[0] and sizes[1] < 2_000


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"policy": shoal.KAnonymity(3) & shoal.PSensitive(40)}, InfeasibleError, "distinct values of 'illness'"),
        ({"policy": Policy((shoal.KAnonymity(1000),))}, InfeasibleError, "1000"),
        ({"settings": {"algorithm": "nonsense"}}, ConfigError, "no such algorithm"),
        ({"settings": {"algorithm": "incognito"}}, UnsupportedError, "whole table at once"),
        ({"settings": {"suppress": 0.1}}, UnsupportedError, "in memory only"),
        ({"settings": {"order": "keep"}}, UnsupportedError, "order of the source"),
        ({"settings": {"missing": "error"}}, InputError, "missing values; fill them"),
        ({"settings": {"blocks": 0}}, ConfigError, "blocks = 0"),
        ({"settings": {"options": {"mode": "relaxed"}}}, UnsupportedError, "relaxed"),
        ({"frame": lambda frame: frame.clear()}, InputError, "The table has no records"),
        ({"frame": lambda frame: frame.with_columns(job=pl.lit("pilot"))}, InputError, "does not know"),
        ({"frame": lambda frame: frame.with_columns(age=pl.lit(None, pl.Int64))}, InputError, "no values at all"),
    ],
)
def test_what_cannot_be_is_refused_before_any_record_is_walked_over(
    change: dict[str, Any], error: type[ShoalError], says: str
) -> None:
    data = random_table(0, 100)
    frame = change.get("frame", lambda frame: frame)(data.frame)
    engine = MemoryEngine(frame.to_arrow())
    engine.encode = None  # type: ignore[assignment, method-assign]
    with pytest.raises(error, match=says):
        walk(engine, data.schema, change.get("policy", K), Settings(**change.get("settings", {})))


def test_the_local_errors_are_the_same_sentences() -> None:
    data = random_table(0, 100)
    for frame, policy in (
        (data.frame.with_columns(job=pl.lit("pilot")), K),
        (data.frame, shoal.KAnonymity(3) & shoal.PSensitive(40)),
        (data.frame.clear(), K),
    ):
        said = []
        for run in (
            lambda frame=frame, policy=policy: shoal.anonymize(frame, policy, schema=data.schema, **PLAIN),
            lambda frame=frame, policy=policy: walk(
                MemoryEngine(frame.to_arrow()), data.schema, policy, Settings(**PLAIN)
            ),
        ):
            with pytest.raises(ShoalError) as found:
                run()
            said.append(str(found.value))
        assert said[0] == said[1]


def test_people_with_several_rows_are_refused() -> None:
    frame = pl.DataFrame({"who": [1, 1, 2, 2], "age": [3, 3, 4, 4]})
    schema = shoal.Schema({"who": shoal.Attribute(role="person"), "age": shoal.Attribute(role="quasi")})
    with pytest.raises(UnsupportedError, match="people with several rows"):
        walk(MemoryEngine(frame.to_arrow()), schema, K)


def test_a_dangerous_column_is_refused_as_in_memory() -> None:
    frame = pl.DataFrame({"age": [30, 31] * 30, "contact": [f"p{i}@example.org" for i in range(60)]})
    schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "contact": shoal.Attribute(role="other")})
    said = []
    for run in (
        lambda: shoal.anonymize(frame, K, schema=schema),
        lambda: walk(MemoryEngine(frame.to_arrow()), schema, K),
    ):
        with pytest.raises(InputError) as found:
            run()
        said.append(str(found.value))
    assert said[0] == said[1] and "e-mail" in said[0]


def test_a_block_that_cannot_be_cut_is_named_and_never_widened_in_silence() -> None:
    frame = pl.DataFrame({"age": list(range(100)), "ill": ["flu"] * 98 + ["cold", "ulcer"]})
    schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "ill": shoal.Attribute(role="sensitive")})
    policy = shoal.KAnonymity(2) & shoal.PSensitive(3)
    settings = Settings(algorithm="k_member", refine=False, blocks=20)
    with pytest.raises(UnsupportedError, match="A block of 100 records cannot be cut"):
        walk(MemoryEngine(frame.to_arrow()), schema, policy, settings)
    assert walk(MemoryEngine(frame.to_arrow()), schema, policy, Settings(blocks=20, **PLAIN)).evidence.classes == 1


def test_writing_is_parquet_whole_and_with_both_halves(tmp_path: Any) -> None:
    data = random_table(1, 120)
    release = large(data, K, **PLAIN)
    with pytest.raises(UnsupportedError, match=r"written as \.parquet"):
        release.write(tmp_path / "masked.xlsx")
    path = release.write(tmp_path / "masked.parquet")
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "masked.parquet",
        "masked.parquet.manifest.json",
        "masked.parquet.secret.json",
    ]
    assert (tmp_path / "masked.parquet.secret.json").stat().st_mode & 0o077 == 0
    assert shoal.verify(pl.read_parquet(path), K, data.schema).passed


def test_frames_end_where_a_class_does() -> None:
    rows = pl.DataFrame({"c0": [0, 0, 0, 0, 1, 1, 2], "s0": list(range(7))})
    for batch in range(1, 8):
        frames = list(whole_classes(rows.iter_slices(batch), ["c0"]))
        assert pl.concat(frames).equals(rows)
        seen = [set(frame["c0"].to_list()) for frame in frames]
        assert all(not one & other for i, one in enumerate(seen) for other in seen[i + 1 :])


def test_blocks_are_as_large_as_they_fit() -> None:
    data = random_table(3, 300)
    wide, narrow = large(data, P, **PLAIN), large(data, P, room=40_000, **PLAIN)
    assert len(wide.tree.parts) == 1
    assert max(leaf.part.weight for leaf in narrow.tree.parts) <= 40_000 // 130
    assert staged(wide).equals(staged(narrow))
