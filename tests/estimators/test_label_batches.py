"""Labels in batches: the same model as all at once, shards written during training, and weights that DiSMEC drops."""

import os
import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp
from losses import text_like

from manyclass import BlockStore, DiSMEC, OneVsRestSVC, PPDSparse, UnfinishedFitError, load_model
from manyclass.estimators import label_batches
from manyclass.solvers import ElasticNetBlocks, L2Blocks


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(label_batches, "LABELS_A_SHARD", 16)


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("make", [PPDSparse, DiSMEC])
def test_shards_are_the_model(make, small_shards, tmp_path):
    X, y = text_like(300, 120, 70, seed=1)
    names = np.array([f"class {label:02}" for label in y])
    here = make().fit(X, names)
    there = make(shards=tmp_path / "model").fit(X, names)
    assert len(list((tmp_path / "model").glob("shard-*"))) == 5
    np.testing.assert_array_equal(here.decision_function(X), there.decision_function(X))
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X), here.predict(X))
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=1e-12)
    assert there.certificate_.gap <= 0.01 and there.certificate_.exit_reason == "converged"
    assert load_model(tmp_path / "model").certificate["gap"] == there.certificate_.gap


@pytest.mark.parametrize("lost", ["one", "cut", "index"])
def test_what_is_lost_is_trained_again(lost, small_shards, tmp_path):
    X, y = text_like(300, 120, 70, seed=2)
    folder = tmp_path / "model"
    PPDSparse(shards=folder).fit(X, y)
    whole = bytes_of(folder)
    (folder / "shards.json").unlink()
    second = sorted(folder.glob("shard-*"))[1]
    if lost == "one":
        second.unlink()
    elif lost == "cut":
        second.write_bytes(second.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"holds shards of this fit; pass resume=True"):
        PPDSparse(shards=folder).fit(X, y)
    again = PPDSparse(shards=folder, resume=True).fit(X, y)
    assert bytes_of(folder) == whole
    retrained = ~np.isnan(again.label_certificates_["primal"])
    assert retrained.sum() == (0 if lost == "index" else 16)


def test_labels_that_ran_out_of_passes_are_remembered(small_shards, tmp_path):
    X, y = text_like(300, 120, 70, seed=2)
    folder = tmp_path / "model"
    fitted = PPDSparse(shards=folder, C=100.0, tol=1e-4, max_iter=2)
    with pytest.warns(match="stopped after max_iter=2"):
        fitted.fit(X, y)
    whole = bytes_of(folder)
    (folder / "shards.json").unlink()
    with pytest.warns(match="stopped after max_iter=2"):
        fitted.set_params(resume=True).fit(X, y)
    assert fitted.certificate_.exit_reason == "max_iter"
    assert bytes_of(folder) == whole


def test_other_rows_are_another_fit(small_shards, tmp_path):
    X, y = text_like(300, 120, 70, seed=2)
    PPDSparse(shards=tmp_path / "model").fit(X, y)
    before = bytes_of(tmp_path / "model")
    for other in (PPDSparse(tol=0.001), PPDSparse(C=2.0)):
        with pytest.raises(ValueError, match="holds shards of a different fit"):
            other.set_params(shards=tmp_path / "model", resume=True).fit(X, y)
    with pytest.raises(ValueError, match="holds shards of a different fit"):
        PPDSparse(shards=tmp_path / "model", resume=True).fit(2 * X, y)
    with pytest.raises(ValueError, match="holds shards of a different fit"):  # labels with other names
        PPDSparse(shards=tmp_path / "model", resume=True).fit(X, 2 * y)
    assert bytes_of(tmp_path / "model") == before


def test_label_counts_are_in_the_folder(small_shards, tmp_path):
    X, y = text_like(300, 120, 70, seed=2)
    PPDSparse(shards=tmp_path / "model").fit(X, y)
    model = load_model(tmp_path / "model")
    np.testing.assert_array_equal(model.label_counts, np.bincount(y))
    assert model.settings["n_rows"] == 300


def test_out_of_time_the_shards_stay(small_shards, tmp_path):
    X, y = text_like(300, 120, 70, seed=4)
    with pytest.raises(UnfinishedFitError, match=r"holds 0 of 70 labels. Fit again with resume=True"):
        PPDSparse(shards=tmp_path / "model", time_limit=1e-6).fit(X, y)
    done = PPDSparse(shards=tmp_path / "model", resume=True).fit(X, y)
    np.testing.assert_array_equal(done.decision_function(X), PPDSparse().fit(X, y).decision_function(X))


def stopping(monkeypatch, solver, how, *, batch):
    """Stop the fit right after all labels of a batch, counted from 1, are trained."""
    advance, seen = solver.advance, set()

    def disturbed(self, rule):
        seen.add(tuple(self._chosen))
        progress = advance(self, rule)
        if len(seen) == batch and progress.ready:
            how(self)
        return progress

    monkeypatch.setattr(solver, "advance", disturbed)


def press_ctrl_c(solver):
    os.kill(os.getpid(), signal.SIGINT)


def pass_the_deadline(solver):
    solver._interrupt.request()  # as the core does at the deadline
    end = time.perf_counter() + LIMIT
    while time.perf_counter() < end:
        time.sleep(0.01)


LIMIT = 3.0
STOPS = {"interrupted": press_ctrl_c, "time_limit": pass_the_deadline}


@pytest.mark.parametrize("make, solver", [(PPDSparse, ElasticNetBlocks), (DiSMEC, L2Blocks)])
@pytest.mark.parametrize("reason", STOPS)
@pytest.mark.parametrize("max_iter", [1000, 1])
@pytest.mark.filterwarnings("ignore:stopped")
def test_a_batch_that_is_complete_at_the_stop_is_kept(make, solver, reason, max_iter, small_shards, tmp_path):
    X, y = text_like(300, 120, 70, seed=4)
    parameters = {"C": 10.0, "tol": 1e-4, "max_iter": max_iter, "n_jobs": 1}
    with pytest.MonkeyPatch.context() as patched, pytest.raises(UnfinishedFitError) as stopped:
        stopping(patched, solver, STOPS[reason], batch=2)
        make(shards=tmp_path / "model", time_limit=LIMIT, **parameters).fit(X, y)
    assert (stopped.value.exit_reason, stopped.value.done, stopped.value.labels) == (reason, 32, 70)
    assert "model is" not in str(stopped.value)
    make(shards=tmp_path / "model", resume=True, **parameters).fit(X, y)
    make(shards=tmp_path / "whole", **parameters).fit(X, y)
    assert bytes_of(tmp_path / "model") == bytes_of(tmp_path / "whole")


@pytest.mark.parametrize("make, solver", [(PPDSparse, ElasticNetBlocks), (DiSMEC, L2Blocks)])
@pytest.mark.parametrize("reason", STOPS)
def test_a_stop_after_the_last_batch_has_no_effect(make, solver, reason, small_shards, tmp_path, monkeypatch):
    X, y = text_like(300, 120, 70, seed=4)
    stopping(monkeypatch, solver, STOPS[reason], batch=5)
    fitted = make(shards=tmp_path / "model", time_limit=LIMIT, n_jobs=1).fit(X, y)
    assert fitted.certificate_.exit_reason == "converged"
    assert load_model(tmp_path / "model").n_classes == 70


@pytest.mark.parametrize("make, solver", [(PPDSparse, ElasticNetBlocks), (DiSMEC, L2Blocks)])
def test_a_stop_in_the_only_batch_when_all_labels_were_begun(make, solver, tmp_path, monkeypatch):
    """Even if the unfinished labels happen to meet the rule: resuming would give another model."""

    def cut_short(one):
        press_ctrl_c(one)
        one._results = {block: result._replace(done=False, cut=True) for block, result in one._results.items()}

    X, y = text_like(300, 120, 70, seed=4)
    stopping(monkeypatch, solver, cut_short, batch=1)
    with pytest.raises(UnfinishedFitError, match=r"^interrupted before all .* holds 0 of 70 labels") as stopped:
        make(shards=tmp_path / "model", n_jobs=1).fit(X, y)
    assert (stopped.value.exit_reason, stopped.value.done) == ("interrupted", 0)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"checkpoint": "somewhere"}, "without a checkpoint"),
        ({"warm_start": True}, "needs all dual variables"),
        ({"engine": "joblib"}, "cannot write shards"),
    ],
)
def test_options_that_shards_do_not_allow(parameters, message, tmp_path):
    X, y = text_like()
    with pytest.raises(ValueError, match=message):
        PPDSparse(shards=tmp_path / "model", **parameters).fit(X, y)


@pytest.mark.parametrize("memory", ["1GB", "3kB"])
def test_dismec_drops_small_weights_of_one_vs_rest(memory):
    X, y = text_like(300, 120, 70, seed=5)
    Y = sp.csr_matrix((np.ones(300), (np.arange(300), y)), shape=(300, 70))
    whole, dropped = OneVsRestSVC().fit(X, Y), DiSMEC(threshold=0.1, memory=memory).fit(X, Y)
    kept = np.where(np.abs(whole.coef_) < 0.1, 0, whole.coef_)
    np.testing.assert_array_equal(dropped.coef_, kept)
    np.testing.assert_array_equal(dropped.intercept_, whole.intercept_)
    assert 0.1 < dropped.dropped_ < 0.9
    assert dropped.dropped_ == pytest.approx(1 - np.count_nonzero(kept) / np.count_nonzero(whole.coef_))
    assert dropped.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-12)


@pytest.mark.parametrize("make", [PPDSparse, DiSMEC])
def test_stores_are_refused(make, tmp_path):
    X, y = text_like()
    store = BlockStore.create(tmp_path / "store", X, y)
    with pytest.raises(ValueError, match="cannot train from a store"):
        make().fit(store)


@pytest.mark.parametrize(
    "make, folders", [(PPDSparse, r"checkpoint=\.\.\. or shards=\.\.\."), (DiSMEC, r"shards=\.\.\.")]
)
def test_resuming_needs_a_folder(make, folders):
    X, y = text_like()
    with pytest.raises(ValueError, match=f"resume from; pass {folders}$"):
        make(resume=True).fit(X, y)


def test_options_that_dismec_does_not_allow():
    X, y = text_like()
    for parameters in ({"warm_start": True}, {"checkpoint": "x"}, {"engine": "joblib"}):
        with pytest.raises(ValueError, match="keeps no state of finished labels"):
            DiSMEC(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="a size is a number of bytes"):
        DiSMEC(memory="much").fit(X, y)
