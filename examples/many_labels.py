"""Train sparse classifiers for 5,000 labels into a folder of shards, then predict the best labels of new rows."""

import tempfile
from pathlib import Path

from manyclass import PPDSparse, load_model
from manyclass.data import make_text_like
from manyclass.model import LabelTree


def main() -> None:
    X, y, X_test, y_test = make_text_like(n=20_000, n_test=2_000, d=50_000, K=5_000, nnz=40, seed=0)
    print(f"{X.shape[0]} rows, {X.shape[1]} features, {y.max() + 1} labels")

    with tempfile.TemporaryDirectory() as folder:
        shards = Path(folder) / "labels.manyclass"
        fitted = PPDSparse(lam=0.01, C=1.0, shards=shards).fit(X, y)
        found = fitted.label_certificates_
        gaps = 1 - found["dual"] / found["primal"]
        print(f"largest gap of any label {gaps.max():.4f}, {found['support'].mean():.0f} support rows per label")

        model = load_model(shards)  # memory-mapped: only the parts that are used are read
        files = sum(file.stat().st_size for file in shards.iterdir())
        print(f"{model.density:.3%} of the weights are not zero, {files / 1e6:.1f} MB in {shards.name}")
        codes = model.topk(X_test, 5)[0]
        best, five = (codes[:, 0] == y_test).mean(), (codes == y_test[:, None]).any(axis=1).mean()
        print(f"the label of a test row is the best one in {best:.1%}, among the best five in {five:.1%} of cases")

        small = model.compress("int8", prune=0.01)
        same = (small.topk(X_test, 5)[0] == codes).mean()
        print(f"{same:.1%} of the best five keep their places with 8 bits per weight")
        tree = LabelTree.build(model)
        print(f"a tree finds {tree.recall(X_test, 5, beam=20):.1%} of the best five without scoring all labels")


if __name__ == "__main__":
    main()
