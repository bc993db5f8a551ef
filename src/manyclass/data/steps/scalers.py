"""Storage formats of the steps that scale and weight rows."""

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import MaxAbsScaler, Normalizer

from ..unit_rows import UnitRows
from .formats import StepFormat, StoredStep, finite_vector, whole_number


class OwnUnitRows(StepFormat):
    """Rows scaled to unit length."""

    kind: ClassVar[type] = UnitRows

    def about(self, step: Any) -> str:
        return "rows scaled to length 1"


class RowNorms(StepFormat):
    """Rows scaled by a norm."""

    kind: ClassVar[type] = Normalizer
    left_out: ClassVar[tuple[str, ...]] = ("copy",)  # a model never changes its input


class FeatureScale(StepFormat):
    """Features divided by their largest absolute value."""

    kind: ClassVar[type] = MaxAbsScaler
    left_out: ClassVar[tuple[str, ...]] = ("copy",)

    def learned(self, step: Any) -> dict[str, Any]:
        return super().learned(step) | {"n_samples_seen": int(step.n_samples_seen_)}

    def arrays(self, step: Any) -> dict[str, np.ndarray]:
        return {"scale": np.ascontiguousarray(step.scale_), "max_abs": np.ascontiguousarray(step.max_abs_)}

    def relearn(self, step: Any, stored: StoredStep) -> None:
        scale = finite_vector(stored.arrays, "scale", whole_number("n_features", stored.learned.get("n_features")))
        if (scale <= 0).any():
            raise ValueError("some scales are not positive")
        super().relearn(step, stored)
        step.scale_, step.max_abs_ = scale, finite_vector(stored.arrays, "max_abs", scale.size)
        step.n_samples_seen_ = whole_number("n_samples_seen", stored.learned.get("n_samples_seen"))


class CountWeights(StepFormat):
    """Counts weighted by TF-IDF."""

    kind: ClassVar[type] = TfidfTransformer

    def arrays(self, step: Any) -> dict[str, np.ndarray]:
        return {"idf": np.ascontiguousarray(step.idf_)} if step.use_idf else {}

    def relearn(self, step: Any, stored: StoredStep) -> None:
        n_features = whole_number("n_features", stored.learned.get("n_features"))
        idf = finite_vector(stored.arrays, "idf", n_features) if step.use_idf else None
        step.fit(sp.csr_matrix((1, n_features)))
        if idf is not None:
            step.idf_ = idf
