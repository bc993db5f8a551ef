"""How libraries with sets of labels are called, with stand-ins for their packages."""

import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.protocol import Request, store_problem

X = sp.csr_matrix(np.eye(3, dtype=np.float32))
ONE_EACH = np.array([0, 2, 1])
SETS = sp.csr_matrix(np.array([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0]]))


def peer(monkeypatch, name, **modules):
    """Import the module of a library with a stand-in for its package."""
    for path, content in modules.items():
        module = ModuleType(path.replace("__", "."))
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, f"benchmarks.peers.{name}", raising=False)
    return importlib.import_module(f"benchmarks.peers.{name}")


def request(folder, y, **options):
    store_problem(folder / "rows.npz", X, y)
    return Request("train", str(folder / "reply.json"), str(folder / "rows.npz"), options=options)


class OneVsRest:
    """Records its arguments, and finds fewer labels for the last row."""

    def __init__(self, output, **params):
        self.output, self.params = output, params

    def fit(self, rows, labels):
        self.labels = labels
        Path(self.output).mkdir()
        (Path(self.output) / "weights.bin").write_bytes(b"12345")

    def predict(self, rows, top_k):
        return [[2, 1, 0][:top_k], [1, 0, 2][:top_k], [0]]

    def get_params(self):
        return {"output": self.output}


class BinaryRelevance(OneVsRest):
    """For any number of labels per row."""


@pytest.mark.parametrize(("y", "kind"), [(ONE_EACH, OneVsRest), (SETS, BinaryRelevance)])
def test_napkinxc_trains_rows_with_one_label_or_any_number(y, kind, monkeypatch, tmp_path):
    package = {"napkinxc": {}, "napkinxc__models": {"OVR": OneVsRest, "BR": BinaryRelevance}}
    napkinxc = peer(monkeypatch, "napkinxc", **package)
    model = napkinxc.fit(napkinxc.prepare(request(tmp_path, y, threads=2, loss="l2")))
    assert type(model) is kind and model.params == {"threads": 2, "loss": "l2"}
    assert model.labels.toarray().tolist() == (SETS.toarray() if y is SETS else np.eye(3)[ONE_EACH]).tolist()
    assert napkinxc.best(model, X, 2).tolist() == [[2, 1], [1, 0], [0, -1]]
    napkinxc.save(model, tmp_path)
    assert (tmp_path / "weights.bin").read_bytes() == b"12345"


@pytest.mark.parametrize(("asked", "threshold"), [({}, 1e-30), ({"threshold": 0.1}, 0.1)])
def test_pecos_ranks_labels_by_their_scores(asked, threshold, monkeypatch, tmp_path):
    given = {}

    class XLinearModel:
        @staticmethod
        def train(rows, labels, C, **settings):
            given.update(settings, labels=labels)
            return XLinearModel()

        def predict(self, rows, only_topk, post_processor):
            assert (only_topk, post_processor) == (2, "noop")
            return sp.csr_matrix(np.array([[0.5, 0, 2.0, 0], [-1.0, -3.0, 0, 0], [0, 0, 0, 1.0]]))

    base = {"HierarchicalMLModel": None, "MLModel": SimpleNamespace()}
    names = ("pecos", "pecos__xmc", "pecos__xmc__xlinear")
    modules = {path: {} for path in names} | {"pecos__xmc__base": base}
    pecos = peer(monkeypatch, "pecos", **modules, pecos__xmc__xlinear__model={"XLinearModel": XLinearModel})
    model = pecos.fit(pecos.prepare(request(tmp_path, SETS, threads=2, **asked)))
    assert given["threshold"] == threshold and given["labels"].toarray().tolist() == SETS.toarray().tolist()
    assert pecos.best(model, X, 2).tolist() == [[2, 0], [0, 1], [3, -1]]
