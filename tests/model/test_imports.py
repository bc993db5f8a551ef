"""A model is loaded without what trains one, and the package imports its parts only when they are used."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import manyclass

TRAINING = ("manyclass.engines", "manyclass.estimators", "manyclass.problems", "manyclass.solvers")
LOADED = f"print(*[name for name in sys.modules if name.startswith({TRAINING!r})])"


def loaded_by(*lines):
    """The training modules that a fresh process has loaded after these lines."""
    program = "\n".join(["import sys", *lines, LOADED])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture
def saved(tmp_path):
    model = manyclass.LinearModel(np.eye(3, dtype=np.float32), np.zeros(3, np.float32), np.arange(3))
    manyclass.save_model(model, path := tmp_path / "eye.manyclass")
    return str(path)


@pytest.mark.parametrize("module", ["manyclass.model", "manyclass"])
def test_loading_a_model_and_predicting_loads_nothing_that_trains(module, saved):
    used = [f"import {module}", f"assert {module}.load_model({saved!r}).predict([[0, 2, 1]])[0] == 1"]
    assert loaded_by(*used) == []


def test_the_measurement_sees_the_training_stack():
    assert set(TRAINING) <= set(loaded_by("import manyclass.estimators"))


def test_every_public_name_is_there_in_a_fresh_process():
    names = ", ".join(manyclass.__all__)
    loaded_by(
        "import manyclass",
        "assert set(manyclass.__all__) <= set(dir(manyclass))",
        f"from manyclass import {names}",
        "assert manyclass.engines.DiskEngine is DiskEngine and manyclass.solvers and manyclass.problems",
        "from manyclass import *",
    )


def test_names_that_do_not_exist_are_reported():
    with pytest.raises(AttributeError, match="module 'manyclass' has no attribute 'MulticlassSVM'"):
        manyclass.MulticlassSVM  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'MulticlassSVM'"):
        from manyclass import MulticlassSVM  # noqa: F401


def test_a_pickled_estimator_loads_in_a_process_that_imported_nothing(tmp_path):
    estimator = manyclass.MulticlassSVC(C=3).fit(np.eye(3), [0, 1, 2])
    Path(tmp_path / "svc.pickle").write_bytes(pickle.dumps(estimator))
    loaded_by(
        "import pickle",
        f"svc = pickle.load(open({str(tmp_path / 'svc.pickle')!r}, 'rb'))",
        "assert svc.C == 3 and svc.predict([[0, 0, 1]])[0] == 2",
    )
