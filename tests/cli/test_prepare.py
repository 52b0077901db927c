"""`--prepare FILE`: one clustering for many k, and a file that is refused wherever it does not belong."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from shoal.algorithms import three_layer
from shoal.cli.app import app
from shoal.datasets import hospital
from shoal.errors import ConfigError, InputError

CONFIG = """
[source]
path = "patients.csv"

[attributes]
age = {{ role = "quasi" }}
sex = {{ role = "quasi" }}
diagnosis = {{ role = "sensitive" }}

[policy]
k = {k}

[policy.p_sensitive]
p = 2

[method]
algorithm = "{algorithm}"
refine = false
seed = 3

[method.options]
{options}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    hospital(400, seed=1).select("age", "sex", "diagnosis").write_csv(tmp_path / "patients.csv")
    configure(tmp_path)
    return tmp_path


def configure(place: Path, k: int = 4, options: str = "kmax = 12\nk_pre = 8", algorithm: str = "three_layer") -> None:
    (place / "shoal.toml").write_text(CONFIG.format(k=k, options=options, algorithm=algorithm))


def release(place: Path, name: str, *more: str) -> Path:
    output = place / name
    command = ["anonymize", "-c", str(place / "shoal.toml"), "-o", str(output), "--quiet", *more]
    CliRunner().invoke(app, command, catch_exceptions=False, standalone_mode=False)
    return output


def test_one_clustering_serves_many_k_and_changes_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = place / "clusters.npz"
    plain = {}
    for k in (4, 6):
        configure(place, k)
        plain[k] = release(place, f"plain{k}.csv").read_bytes()
    configure(place, 4)
    assert release(place, "first.csv", "--prepare", str(kept)).read_bytes() == plain[4]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("it clusters again")

    monkeypatch.setattr(three_layer, "prepare", never)
    for k in (4, 6):
        configure(place, k)
        assert release(place, f"again{k}.csv", "--prepare", str(kept)).read_bytes() == plain[k]
    # Without k_pre in the configuration the file's own holds.
    configure(place, 6, "kmax = 12")
    assert release(place, "last.csv", "--prepare", str(kept)).read_bytes() == plain[6]


def test_the_release_can_be_made_again_without_the_file(place: Path) -> None:
    kept = place / "clusters.npz"
    masked = release(place, "masked.csv", "--prepare", str(kept))
    secret = json.loads((place / "masked.csv.secret.json").read_text())
    options = {"k_pre": 8, "weighting": "chi_squared", "kmin": 3, "kmax": 12, "criterion": "bic", "scaling": "range"}
    assert secret["settings"]["options"] == options
    kept.unlink()
    command = [
        "verify",
        str(masked),
        "-c",
        str(place / "shoal.toml"),
        "--secret",
        str(place / "masked.csv.secret.json"),
    ]
    done = CliRunner().invoke(app, [*command, "--manifest"])
    assert done.exit_code == 0, done.output


def other_table(place: Path) -> None:
    hospital(400, seed=2).select("age", "sex", "diagnosis").write_csv(place / "patients.csv")


def other_secret(place: Path) -> None:
    text = (place / "patients.csv").read_text().splitlines()
    first, second = (i for i in range(1, 3))
    swapped = [",".join([*text[i].split(",")[:2], text[j].split(",")[2]]) for i, j in ((first, -1), (second, second))]
    (place / "patients.csv").write_text("\n".join([text[0], *swapped, *text[3:]]) + "\n")


@pytest.mark.parametrize(
    ("change", "more", "why"),
    [
        (other_table, (), "was kept for another table"),
        (other_secret, (), "was kept for another table"),
        (lambda place: configure(place, 4, "kmax = 30"), (), "was kept with kmax = 12, and the configuration says 30"),
        (lambda place: configure(place, 4, "k_pre = 5"), (), "was kept with k_pre = 8, and the configuration says 5"),
        (lambda place: None, ("--seed", "4"), "was kept with seed = 3"),
        (lambda place: configure(place, algorithm="mondrian", options=""), (), "the algorithm is 'mondrian'"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    place: Path, change: Callable[[Path], None], more: tuple[str, ...], why: str
) -> None:
    kept = place / "clusters.npz"
    release(place, "first.csv", "--prepare", str(kept))
    before = kept.read_bytes()
    change(place)
    with pytest.raises((ConfigError, InputError), match=why):
        release(place, "second.csv", "--prepare", str(kept), *more)
    assert not (place / "second.csv").exists()
    assert kept.read_bytes() == before


def rewritten(kept: Path, **changes: Any) -> None:
    with np.load(kept) as found:
        arrays = {name: found[name] for name in found.files}
    arrays |= changes
    with kept.open("wb") as handle:
        np.savez_compressed(handle, **{name: value for name, value in arrays.items() if value is not None})


def forged(name: str, n: int) -> dict[str, Any]:
    part = np.ones(n, dtype=np.int64)
    return {
        "another length": {"part": part[:-1]},
        "numbers that are none": {"cluster": part.astype(np.float64)},
        "no such part": {"part": part * 7},
        "clusters below nothing": {"part": part, "cluster": -part},
        "weights beyond one": {"weights": np.array([0.0, 9.0])},
        "an attribute twice": {"order": np.zeros(2, dtype=np.int64)},
        "code": {"part": np.array([print] * n, dtype=object)},
        "nothing said": {"about": np.zeros(0, dtype=np.uint8)},
        "a part missing": {"group": None},
    }[name]


FORGED = (
    "another length", "numbers that are none", "no such part", "clusters below nothing", "weights beyond one", "an attribute twice",
    "code", "nothing said", "a part missing",
)  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_are_refused(place: Path, name: str) -> None:
    kept = place / "clusters.npz"
    release(place, "first.csv", "--prepare", str(kept))
    rewritten(kept, **forged(name, 400))
    with pytest.raises(InputError, match="is no file that --prepare has kept"):
        release(place, "second.csv", "--prepare", str(kept))
    assert not (place / "second.csv").exists()


@pytest.mark.parametrize("scaling", [None, "wide", ["spread"]])
def test_forged_settings_are_refused(place: Path, scaling: object) -> None:
    kept = place / "clusters.npz"
    release(place, "first.csv", "--prepare", str(kept))
    with np.load(kept) as found:
        about = json.loads(found["about"].tobytes())
    about["made_with"]["scaling"] = scaling
    rewritten(kept, about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8))
    with pytest.raises(InputError, match="is no file that --prepare has kept"):
        release(place, "second.csv", "--prepare", str(kept))


def test_clusters_scaled_by_spread_are_kept_as_such(place: Path) -> None:
    options = 'kmax = 12\nk_pre = 8\nscaling = "spread"'
    configure(place, 4, options)
    plain = release(place, "plain.csv").read_bytes()
    kept = place / "clusters.npz"
    for name in ("first.csv", "again.csv"):
        assert release(place, name, "--prepare", str(kept)).read_bytes() == plain


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"age,sex\n1,F\n"])
def test_other_files_are_refused_and_left_alone(place: Path, content: bytes) -> None:
    (place / "kept").write_bytes(content)
    with pytest.raises(InputError, match="is no file that --prepare has kept"):
        release(place, "masked.csv", "--prepare", str(place / "kept"))
    assert (place / "kept").read_bytes() == content


def test_a_folder_that_is_not_there(place: Path) -> None:
    with pytest.raises(InputError, match="does not exist; make it first"):
        release(place, "masked.csv", "--prepare", str(place / "no" / "kept"))
