"""Fit the estimator of a loss, and measure time and peak memory."""

import logging
import resource
import sys
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from ..estimators import ESTIMATORS, DiSMEC, MulticlassSVC, PPDSparse, estimator_for
from ..estimators.label_batches import LabelBatches
from ..estimators.provenance import Provenance
from .wording import with_options

logger = logging.getLogger("manyclass.cli")


# The command line has the same defaults as the estimators.
USUAL = PPDSparse().get_params() | MulticlassSVC().get_params()


@dataclass(frozen=True)
class Fit:
    """A fitted estimator, and the time and memory of the fit."""

    estimator: Any
    seconds: float
    peak_memory: int  # bytes, of the whole process
    peak_is_of_this_fit: bool  # False if the system cannot reset the peak, so that it may be that of earlier work


def trains_in_batches(loss: str, threshold: float | None) -> bool:
    """Whether the estimator of a loss, or DiSMEC if there is a threshold, can write labels while it trains others."""
    return threshold is not None or issubclass(ESTIMATORS[loss], LabelBatches)


def fit(loss: str, X: Any, y: Any, provenance: Provenance | None = None, *, progress: bool, **parameters: Any) -> Fit:
    """Fit the estimator of a loss, or DiSMEC if there is a `threshold`; the caller reports a fit that stops early."""
    given = {name: value for name, value in parameters.items() if value is not None}
    given["verbose"] = int(progress and sys.stderr.isatty())
    estimator = DiSMEC(**given) if "threshold" in given else estimator_for(loss, **given)
    estimator._provenance = provenance or Provenance()
    forgotten = forget_peak_memory()
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("always", "solver=", DeprecationWarning)
        warnings.showwarning = _log_warning
        estimator.fit(X, y)
    return Fit(estimator, time.perf_counter() - begin, peak_memory(), forgotten)


def _log_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """Log a warning without its location in the code."""
    logger.warning("warning: %s", with_options(str(message)))


def forget_peak_memory() -> bool:
    """Reset the peak memory that the kernel measures; return whether that worked."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def milestones(history: list[dict[str, Any]], measure: str) -> list[dict[str, Any]]:
    """Return the lines of a history where the measure first reaches 1, 0.1, 0.01 and so on, and the last line."""
    chosen = []
    level = 1.0
    for row in history:
        if row[measure] <= level:
            chosen.append(row)
            while row[measure] <= level and level > 1e-12:
                level /= 10
    if history and (not chosen or chosen[-1] is not history[-1]):
        chosen.append(history[-1])
    return chosen
