"""`--prepare FILE`: the clusters of three_layer kept in a file and used again, so that a sweep over k, p and t clusters once.

Rahimi et al. 2015 argue so for their algorithm: weights and clusters are made once for a whole range of k. The file says of which
table and with which settings it was made, and is refused for others. It tells who is like whom in the original: it is the owner's
alone.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from shoal.errors import ConfigError, InputError, shown
from shoal.version import VERSION

if TYPE_CHECKING:
    from shoal.algorithms.three_layer import Preparation
    from shoal.configuration import Configuration
    from shoal.microdata import Microdata
    from shoal.progress import Progress

ARRAYS = ("weights", "order", "part", "cluster", "group")


def prepared(
    path: Path,
    configuration: Configuration,
    data: Microdata,
    progress: Progress,
    algorithm: str | None,
    seed: int | None,
) -> dict[str, Any]:
    """The option `preparation`: out of the file if there is one, else made and kept in it."""
    from shoal.algorithms.options import require_options
    from shoal.algorithms.three_layer import prepare
    from shoal.policy import Policy

    method = configuration.config.method
    name = algorithm or method.algorithm
    if name != "three_layer":
        raise ConfigError(
            f"--prepare keeps the clusters of three_layer, and the algorithm is '{name}'; leave it out, or add -a three_layer."
        )
    if configuration.config.release.recode == "suppress":
        raise ConfigError('--prepare: with recode = "suppress" values have other distances; leave one of the two out.')
    require_options(name, method.options)
    started = method.seed if seed is None else seed
    if path.exists():
        return {"preparation": _read(path, data, method.options, started, progress)}
    if not path.parent.is_dir():
        raise InputError(f"The folder '{path.parent}' does not exist; make it first.")
    asked = {
        key: method.options[key]
        for key in ("weighting", "label", "kmin", "kmax", "m1", "criterion", "scaling")
        if key in method.options
    }
    k = method.options.get("k_pre") or data.rules(Policy.from_config(configuration.config.policy)).k
    ready = prepare(data, k=k, seed=started, progress=progress, **asked)
    _write(path, data, ready, started)
    return {"preparation": ready}


def _write(path: Path, data: Microdata, ready: Preparation, seed: int) -> None:
    from shoal.io.atomic import atomic_path

    key = secrets.token_bytes(16)
    about = {
        "version": VERSION,
        "seed": seed,
        "made_with": dict(ready.made_with),
        "key": key.hex(),
        "table": _table(data, key),
    }
    with atomic_path(path) as temporary:
        temporary.chmod(0o600)
        with temporary.open("wb") as handle:
            np.savez_compressed(
                handle,
                about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
                weights=ready.weights,
                order=np.array(ready.order, dtype=np.int64),
                part=ready.part,
                cluster=ready.cluster,
                group=ready.group,
            )


def _table(data: Microdata, key: bytes) -> str:
    """Binds a file to the encoded table: the names, codes and domains of what is clustered, and what is secret."""
    digest = hashlib.sha256(json.dumps([list(data.quasi), [domain.size for domain in data.domains]]).encode())
    digest.update(np.ascontiguousarray(data.codes).tobytes())
    for column in data.sensitive:
        digest.update(column.name.encode() + np.ascontiguousarray(column.codes).tobytes())
    return hmac.new(key, digest.digest(), hashlib.sha256).hexdigest()


def _read(path: Path, data: Microdata, options: dict[str, Any], seed: int, progress: Progress) -> Preparation:
    from shoal.algorithms.three_layer import Preparation, Scaling, everything, scales

    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as found:
            about = json.loads(found["about"].tobytes())
            arrays = {name: found[name] for name in ARRAYS}
        made_with, key = dict(about["made_with"]), bytes.fromhex(about["key"])
        told = (about["version"], about["seed"], about["table"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as problem:
        raise InputError(
            f"'{path}' is no file that --prepare has kept ({type(problem).__name__}); choose another name."
        ) from None
    if told[0] != VERSION:
        raise InputError(f"'{path}' was kept by another version of Shoal; choose another name, or delete it.")
    if told[2] != _table(data, key):
        raise InputError(f"'{path}' was kept for another table, or for other columns of it; choose another name.")
    if told[1] != seed:
        raise ConfigError(
            f"'{path}' was kept with seed = {shown(told[1])}; choose another name, or add --seed {shown(told[1])}."
        )
    for name, value in made_with.items():
        if name in options and options[name] != value:
            raise ConfigError(
                f"'{path}' was kept with {name} = {shown(value)}, and the configuration says "
                f"{shown(options[name])}; choose another name."
            )
    if made_with.get("scaling") not in get_args(Scaling) or not _fits(arrays, data):
        raise InputError(
            f"'{path}' is no file that --prepare has kept (it does not fit the table); choose another name."
        )
    weights, order, part, cluster, group = (arrays[name] for name in ARRAYS)
    found = everything(data, scales(data, weights, made_with["scaling"]), progress)
    return Preparation(weights, tuple(order.tolist()), part, cluster, group, found, made_with)


def _fits(arrays: dict[str, np.ndarray[Any, Any]], data: Microdata) -> bool:
    """Whether these can be weights and clusters of the table at all: what merges them relies on it."""
    weights, order, part, cluster, group = (arrays[name] for name in ARRAYS)
    d = len(data.domains)
    numbers = (order, part, cluster, group)
    if weights.shape != (d,) or weights.dtype != np.float64 or any(one.dtype != np.int64 for one in numbers):
        return False
    if order.shape != (d,) or any(one.shape != (data.n,) for one in numbers[1:]):
        return False
    inside = part != 22
    return bool(
        ((weights >= 0) & (weights <= 1)).all()
        and sorted(order.tolist()) == list(range(d))
        and np.isin(part, (1, 21, 22)).all()
        and (cluster[inside] >= 0).all()
        and (group >= -1).all()
    )
