"""Fits whose models must be the same for any number of ranks."""

import hashlib
import pathlib
import resource
import tempfile
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
from losses import make, text_like

from manyclass import save_model
from manyclass.estimators import label_batches
from manyclass.peers import peers_of


def uneven(n=150, d=100, K=20):
    """Rows with a third of them in the first class."""
    X, y = text_like(n, d, K, seed=2, nnz=12)
    return X, np.where(np.arange(n) % 3 == 2, 0, y)


def digest(fitted):
    """Hash the model file, which includes the certificate."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model")
        save_model(fitted.model_, path)
        return hashlib.blake2b(path.read_bytes()).hexdigest()


def fit(loss, engine, X, y, **parameters):
    return make(loss, engine=engine, **({"n_jobs": 1, "tol": 0.05} | parameters)).fit(X, y)


@contextmanager
def files_of_at_most(size):
    """Limit the size of files: as on a full disk, writing fails in the middle of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def all_fits(engine):
    """Return the digests of models by name."""
    X, y = uneven()
    found = {}
    for count in (1, 7, 8):
        found[f"ww by {count} leagues"] = fit("ww", engine, X, y, solver="leagues", leagues=count)
    five = {"solver": "leagues", "leagues": 5}
    found["ww by leagues, kkt"] = fit(
        "ww", engine, X, y, **five, stop="kkt", tol=0.1, dtype="float64", fit_intercept=False
    )
    again = fit("ww", engine, X, y, **five, warm_start=True)
    found["ww by leagues, warm start"] = again.set_params(C=2.0).fit(X, y)
    for K in (2, 3):
        few = text_like(60, 30, K)
        found[f"ww by leagues, {K} classes"] = fit("ww", engine, *few, solver="leagues")
        for loss in ("cs", "hinge", "ovo_hinge"):
            found[f"{loss}, {K} classes"] = fit(loss, engine, *few)
    for loss in ("ww", "cs", "llw", "maxent", "hinge", "squared_hinge", "ovo_hinge", "ppd_hinge"):
        found[loss] = fit(loss, engine, X, y)
    found["newton"] = fit("squared_hinge", engine, X, y, solver="newton")
    for loss in ("squared_hinge", "ppd_hinge", "ppd_squared_hinge"):
        found[f"{loss}, sets of labels"] = fit(loss, engine, X, [{label, label % 7} for label in y])
    again = fit("hinge", engine, X, y, warm_start=True, n_jobs=2)
    found["hinge, warm start"] = again.set_params(C=2.0).fit(X, y)
    return {name: digest(fitted) for name, fitted in found.items()}


def shards_in_common(folder, engine):
    """Train shards, lose one and train it again; then let a rank use another folder, and return the error."""
    peers = peers_of(engine)
    found = []
    with patch.object(label_batches, "LABELS_A_SHARD", 32):
        for resume in (False, True):
            found.append(digest(fit("ppd_hinge", engine, *text_like(150, 100, 100), shards=folder, resume=resume)))
            peers.gather(None)
            if peers.rank == 0:
                sorted(folder.glob("shard-*"))[1].unlink()
            peers.gather(None)
        here = folder if peers.rank < peers.size - 1 else folder / "other"
        try:
            fit("ppd_hinge", engine, *text_like(150, 100, 100), shards=here, resume=True)
        except ValueError as error:
            found.append(str(error))
    return found
