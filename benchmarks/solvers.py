"""The measured solvers: module, environment, loss and fixed options of each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from manyclass.data.sizes import parse_size

# The losses measured everywhere.
SVMS = ("ww", "cs", "hinge", "squared_hinge")


@dataclass(frozen=True)
class Solver:
    """A module that implements the protocol, and its environment (None for the current one).

    `ranks` is the number of mpirun processes, if any.
    """

    name: str
    module: str
    environment: str | None
    loss: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    ranks: int | None = None


def ours(loss: str, threads: int = 2, **settings: Any) -> Solver:
    """Return manyclass with C = 1, seed 0 and no intercept, like LIBLINEAR, and further settings of the estimator."""
    fixed = {"C": 1.0, "fit_intercept": False, "random_state": 0}
    options = {"loss": loss, "n_jobs": threads} | fixed | settings
    plural = "thread" if threads == 1 else "threads"
    by = ", leagues" if settings.get("solver") == "leagues" else ""
    return Solver(f"manyclass {loss}{by}, {threads} {plural}", "benchmarks.ours", None, loss, options)


def estimator(name: str, threads: int = 2, **settings: Any) -> Solver:
    """Return an estimator of manyclass with its defaults and seed 0; other settings become part of the name."""
    options = {"estimator": name, "n_jobs": threads, "random_state": 0} | settings
    chosen = "".join(f", {key}={value:g}" for key, value in settings.items() if not isinstance(value, str))
    kind = "".join(f"({value!r})" for value in settings.values() if isinstance(value, str))
    return Solver(f"{name}{kind}{chosen}, {threads} threads", "benchmarks.ours", None, None, options)


def ours_on_ranks(ranks: int, **settings: Any) -> Solver:
    """Return Weston-Watkins by leagues, on processes of one thread each."""
    options = ours("ww", threads=1, solver="leagues", engine="mpi", **settings).options
    return Solver(f"manyclass ww, leagues, {ranks} ranks", "benchmarks.leagues", None, "ww", options, ranks)


def epochs_of_leagues(leagues: int, ranks: int = 1, threads: int = 1) -> Solver:
    """Return ten passes with this number of leagues, C = 1, without shrinking; see `benchmarks/leagues.py`."""
    options = {"leagues": leagues, "threads": threads}
    name = f"leagues: {leagues}, ranks: {ranks}, threads: {threads}"
    return Solver(name, "benchmarks.leagues", None, "ww", options, ranks)


def converter(memory: str) -> Solver:
    """Return the conversion of LIBSVM text to a store with a given memory budget."""
    return Solver(
        f"manyclass convert, {memory}", "benchmarks.from_disk", None, options={"memory": parse_size(memory)}
    )


def ours_from_disk(loss: str) -> Solver:
    """Return `ours` on the rows of a store, with two threads; see `benchmarks/from_disk.py`."""
    return replace(ours(loss), name=f"manyclass {loss} from disk, 2 threads", module="benchmarks.from_disk")


def by_passes(name: str, loss: str = "hinge", *, same_order: bool = False, **engine: Any) -> Solver:
    """Return one-vs-rest from disk, pass by pass, with a `DiskEngine` of these parameters."""
    options = {"loss": loss, "engine": engine, "same_order": same_order}
    return Solver(name, "benchmarks.from_disk", None, loss, options)


def _liblinear(loss: str, solver: int) -> Solver:
    return Solver(f"LIBLINEAR -s {solver}", "benchmarks.peers.liblinear", "liblinear", loss, {"solver": solver})


LIBLINEAR_CS = _liblinear("cs", 4)
LIBLINEAR_HINGE = _liblinear("hinge", 3)
LIBLINEAR_SQUARED_HINGE = _liblinear("squared_hinge", 1)
LIBLINEAR_LOGISTIC_DUAL = _liblinear("logistic", 7)
LIBLINEAR_LOGISTIC_NEWTON = _liblinear("logistic", 0)
LIBLINEAR_SQUARED_HINGE_NEWTON = _liblinear("squared_hinge", 2)
SKLEARN_ONE_VS_ONE = Solver(
    "scikit-learn OneVsOneClassifier(LinearSVC)",
    "benchmarks.peers.sklearn",
    None,
    "ovo_squared_hinge",
    {"estimator": "one-vs-one"},
)
SKLEARN_GRID_SEARCH = Solver("scikit-learn GridSearchCV(LinearSVC, n_jobs=2)", "benchmarks.peers.sklearn", None)
SKLEARN_MAXENT = Solver("scikit-learn LogisticRegression (lbfgs)", "benchmarks.peers.sklearn", None, "maxent")
MULTICORE_SQUARED_HINGE = Solver(
    "liblinear-multicore -s 1 -m 2",
    "benchmarks.peers.liblinear_multicore",
    "multicore",
    "squared_hinge",
    {"solver": 1, "threads": 2},
)
PECOS = Solver("PECOS XLinearModel, 2 threads", "benchmarks.peers.pecos", "pecos", "squared_hinge", {"threads": 2})
# Both with their defaults.
PECOS_DEFAULTS = replace(
    PECOS, name="PECOS XLinearModel, weights below 0.1 dropped, 2 threads", options={"threads": 2, "threshold": 0.1}
)
NAPKINXC = Solver(
    "napkinXC one-vs-rest, logistic, 2 threads", "benchmarks.peers.napkinxc", "napkinxc", "logistic", {"threads": 2}
)
NAPKINXC_SQUARED_HINGE = Solver(
    "napkinXC one-vs-rest, squared hinge, 2 threads",
    "benchmarks.peers.napkinxc",
    "napkinxc",
    "squared_hinge",
    {"threads": 2, "loss": "l2"},
)

OUR_PREDICTION = Solver("manyclass topk, 2 threads", "benchmarks.ours", None, options={"threads": 2})
PECOS_PREDICTION = Solver("PECOS XLinearModel, 2 threads", "benchmarks.peers.pecos", "pecos", options={"threads": 2})
SKLEARN_PREDICTION = Solver(
    "scikit-learn decision_function and argpartition", "benchmarks.peers.sklearn", None, options={"threads": 1}
)

DECODER = Solver("manyclass BlockStore.read", "benchmarks.from_disk", None)
OUR_READER = Solver("manyclass load_svmlight", "benchmarks.ours", None)
SKLEARN_READER = Solver("scikit-learn load_svmlight_file", "benchmarks.peers.sklearn", None)
