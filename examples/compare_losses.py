"""Compare time, gap, memory and test error of four losses on a synthetic text problem."""

import time

from manyclass import MulticlassSVC, OneVsRestSVC
from manyclass.data import make_text_like

CLASSIFIERS = [
    MulticlassSVC("ww"),
    MulticlassSVC("cs"),
    OneVsRestSVC("hinge"),
    OneVsRestSVC("squared_hinge"),
]


def main() -> None:
    X, y, X_test, y_test = make_text_like("bench-1k", seed=0)
    print(f"{X.shape[0]} rows, {X.shape[1]} features, {y.max() + 1} classes")
    print(f"{'loss':14}{'seconds':>9}{'passes':>8}{'gap':>9}{'error':>8}{'density':>9}{'dual MB':>9}")
    for svm in CLASSIFIERS:
        begin = time.perf_counter()
        svm.fit(X, y)
        seconds = time.perf_counter() - begin
        error = 1 - svm.score(X_test, y_test)
        dual = svm.memory_["dual_variables"] / 1e6
        print(
            f"{svm.loss:14}{seconds:9.2f}{svm.n_iter_[0]:8}{svm.certificate_.gap:9.1e}"
            f"{error:8.1%}{svm.model_.density:9.1%}{dual:9.1f}"
        )


if __name__ == "__main__":
    main()
