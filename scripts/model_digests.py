"""Train every loss with every solver and engine that supports it, and print a digest of each model.

A refactoring must not change a single bit: write the digests before it and compare them after it, on the same machine
and with the same builds of the core.

    python scripts/model_digests.py --out before.csv
    python scripts/model_digests.py --compare before.csv

Only the public interface is used, so the same copy of this script runs before and after. `model` is the start of the
SHA-256 of the tensors and the certificate, `file` that of the whole model file, which also holds the settings. If
only `file` differs, the settings have changed but the numbers have not. Combinations that the library refuses are
left out; one that is missing, or new, counts as a difference.
"""

import argparse
import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from safetensors import safe_open

from manyclass import BlockStore, DiskEngine, save_model
from manyclass.estimators import estimator_for
from manyclass.problems import PROBLEMS

SOLVERS = ("auto", "dual", "newton", "leagues")
FROM_DISK = ("pegasos", "streamsvm")  # methods of `DiskEngine` other than the dual
KEY = ("loss", "solver", "engine", "workers", "variant")
DIGESTS = ("model", "file")
RANKS = 2


class Variant(NamedTuple):
    """The type and labels of the training rows, and whether there is an intercept."""

    name: str
    dtype: str
    fit_intercept: bool
    label_sets: bool


VARIANTS = (
    Variant("float32 with intercept", "float32", True, False),
    Variant("float64 without intercept", "float64", False, False),
    Variant("float32 label sets", "float32", True, True),
)


def rows_for(loss: str, variant: Variant) -> tuple[sp.csr_matrix, Any]:
    """Draw sparse rows of unit length, with frequent and rare features; fewer classes for losses on pairs."""
    n, d, K, nnz = 400, 600, 30 if loss.startswith("ovo_") else 150, 40
    rng = np.random.default_rng(7)
    y = np.append(np.arange(K), rng.integers(0, K, n - K))
    common = np.minimum((d * rng.power(0.4, (n, nnz))).astype(int), d - 1)
    columns = np.column_stack([common, y % d]).ravel()
    values = rng.uniform(0.5, 1.5, columns.size)
    X = sp.csr_matrix((values, (np.repeat(np.arange(n), nnz + 1), columns)), (n, d))
    X = sp.csr_matrix(sp.diags(1 / np.sqrt(X.multiply(X).sum(axis=1)).A1) @ X).astype(variant.dtype)
    X.sort_indices()
    if not variant.label_sets:
        return X, y
    labels = np.column_stack([y, y % 7]).ravel()
    sets = sp.csr_matrix((np.ones(labels.size), (np.repeat(np.arange(n), 2), labels)), (n, K))
    sets.data[:] = 1
    return X, sets


def digests_of(fitted: Any) -> dict[str, str]:
    """Hash the tensors and the certificate of a model, and its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        save_model(fitted, path)
        numbers = hashlib.sha256()
        with safe_open(path, "numpy") as file:
            for name in sorted(file.keys()):
                tensor = file.get_tensor(name)
                numbers.update(f"{name} {tensor.dtype} {tensor.shape} ".encode())
                numbers.update(tensor.tobytes())
            certificate = json.loads(file.metadata()["certificate"])
        numbers.update(json.dumps(certificate, sort_keys=True).encode())
        return {"model": numbers.hexdigest()[:16], "file": hashlib.sha256(path.read_bytes()).hexdigest()[:16]}


def fits(engine: str, workers: int, folder: Path) -> Iterator[dict[str, str]]:
    """Train everything that an engine supports; `workers` are threads, joblib workers or MPI ranks."""
    for loss in PROBLEMS:
        for variant in VARIANTS:
            X, y = rows_for(loss, variant)
            arguments = (X, y)
            if engine == "disk":
                arguments = (_store(folder / f"{loss} {variant.name}", X, y, variant.dtype),)
            for solver in (*SOLVERS, *FROM_DISK) if engine == "disk" else SOLVERS:
                method = solver in FROM_DISK
                estimator = estimator_for(
                    loss,
                    C=1.0,
                    max_iter=100,
                    dtype=variant.dtype,
                    fit_intercept=variant.fit_intercept,
                    solver="auto" if method else solver,
                    engine=DiskEngine(method=solver) if method else engine,
                    n_jobs=1 if engine == "mpi" else workers,
                )
                try:
                    fitted = estimator.fit(*arguments)
                except ValueError:
                    continue
                key = dict(zip(KEY, (loss, solver, engine, str(workers), variant.name), strict=True))
                yield key | digests_of(fitted)


def _store(path: Path, X: sp.csr_matrix, y: Any, dtype: str) -> BlockStore:
    return BlockStore(path) if path.exists() else BlockStore.create(path, X, y, dtype=np.dtype(dtype), blocks=3)


def fits_of_ranks() -> list[dict[str, str]]:
    """Run this script under mpirun and return its table."""
    mpirun = Path(sys.executable).with_name("mpirun")
    command = [mpirun if mpirun.exists() else shutil.which("mpirun") or "mpirun", "--oversubscribe", "-n", str(RANKS)]
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table.csv")
        subprocess.run([*command, sys.executable, __file__, "--rank", table], env=environment, check=True)
        return read(table)


def write(table: list[dict[str, str]], path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, (*KEY, *DIGESTS), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def differences(before: list[dict[str, str]], after: list[dict[str, str]]) -> list[str]:
    """Name each line that differs, is missing, or is new."""
    old, new = ({tuple(line[name] for name in KEY): line for line in table} for table in (before, after))
    found = []
    for key in old | new:
        if key not in new or key not in old:
            found.append(f"{', '.join(key)}: {'new' if key in new else 'missing'}")
        elif old[key] != new[key]:
            what = "model" if old[key]["model"] != new[key]["model"] else "settings only"
            found.append(f"{', '.join(key)}: {what}")
    return found


def all_fits() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        for engine in ("memory", "disk", "joblib"):
            for workers in (1, 2):
                yield from fits(engine, workers, Path(folder))
    yield from fits_of_ranks()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table as CSV")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="exit with 1 if a line differs from this table")
    parser.add_argument("--rank", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # some fits stop early; their bits are compared all the same
    if given.rank:
        table = list(fits("mpi", RANKS, given.rank.parent))
        if os.environ["OMPI_COMM_WORLD_RANK"] == "0":
            write(table, given.rank)
        return

    table = []
    for line in all_fits():
        table.append(line)
        print(*(f"{line[name]:<{width}}" for name, width in zip(KEY, (18, 8, 7, 2, 26), strict=True)), line["model"])
    if given.out:
        write(table, given.out)
    if given.compare:
        found = differences(read(given.compare), table)
        print(*found, f"{len(table)} models, {len(found)} differences", sep="\n")
        sys.exit(bool(found))


if __name__ == "__main__":
    main()
