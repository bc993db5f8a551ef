"""Model files: safetensors with the weights, class names and training settings.

| tensor | type | shape |
|---|---|---|
| `weights` | float32 or float64 | (features, K or pairs of classes), if dense |
| `weights.indptr`, `weights.indices`, `weights.values` | int64, int32, float | CSR of that shape, if sparse |
| the same, in version 2 | int64, int32 or uint16, float16 or int8 | a compressed model |
| `weights.features` | int64 | in version 4: the features with weights, followed by the total number of features |
| `weights.scale` | float32 | one factor per column for int8 values |
| `intercept` | as the weights, float32 if they are narrower | one per column of the weights |
| `classes` | integers, floats or booleans | (K,), ascending, for labels of these types |
| `classes.utf8`, `classes.offsets` | uint8, int64 | concatenated UTF-8 and K + 1 offsets, for string labels |
| `label_counts` | int64 | (K,), number of training rows with each label, if counted |
| `tree.labels`, `tree.branching` | int32, int64 | (K,), (1,), the leaves of a tree over the labels, if it has one |
| `text.*` | | fitted state of `TextFeatures` or `HashedText`, if that is the only step |
| `steps.0.*`, `steps.1.*` ... | | fitted state of any other steps, in version 3 |

The metadata contain `format`, `format_version`, and `settings`, `certificate` and (in version 3) `steps` as JSON.
Equal models produce identical bytes.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Chain
from ..data.bad_file import BadFileError
from ..data.class_names import class_tensors, read_classes
from ..data.json_content import parse_object
from ..data.steps import chain_content, chain_of_text_tensors, read_chain, text_tensors
from ..data.streams import open_atomic, open_destination
from ..data.tensor_file import TensorFile, tensor_file_content
from ..peers import Peers, peers_of
from .from_estimator import model_of
from .known_settings import check_settings
from .label_order import LabelOrder
from .linear import LinearModel
from .shards import INDEX, join_shards, read_index, shard_names, shard_of, write_index
from .weights import FLOATS, NARROW, JoinedWeights, SparseWeights, WideWeights, as_matrix, as_stored

FORMAT = "manyclass"
# Most models are written as version 1. Each later version adds something that older readers would misread.
VERSION, COMPRESSED, WITH_STEPS, WIDE = 1, 2, 3, 4
NEWEST = WIDE
FEATURES = "weights.features"
ALIGNED = ("weights", "weights.values")
WEIGHTS = "weights"  # prefix of the names of weight tensors
CHECKED_AT_ONCE = 1 << 20
NOT_A_MODEL = "not a model file, or one cut short ({})"
AGAIN = "copy or train it again"
SPARSE = {"weights.indptr", "weights.indices", "weights.values"}


class ModelFileError(BadFileError):
    """The file is not a model, or is damaged. The message names the file and the reason."""


# ---- Writing


def save_model(model: Any, path: str | os.PathLike[str], *, engine: Any = "memory") -> None:
    """Save a model. The file appears under its name only when it is complete.

    Parameters
    ----------
    model : LinearModel, estimator, Pipeline, or search
        A model; a fitted estimator of this package; a pipeline that ends with one, which is saved with its other
        steps (see `Chain` for the supported ones); or a search such as `GridSearchCV`, whose best estimator is saved.
        Labels may be integers, floats, booleans or strings.
    path : str or path-like
        File to write. An existing file is replaced, keeping its permissions. If it is a symbolic link, its target is
        replaced.
    engine : "memory", "mpi" or MPIEngine
        With MPI, all processes write the model together. `path` is then a folder that all of them can see, with one
        file per process for its share of the classes.

    Raises
    ------
    TypeError
        If a label, a step, or a value in `settings` or `certificate` cannot be stored.
    OSError
        If the file cannot be written. No partial file is left behind.
    """
    model = model_of(model)
    peers = peers_of(engine)
    if peers.size > 1:
        _save_shards(model, Path(path), peers)
    else:
        _write(model, path, open_destination)


def save_shard(model: LinearModel, path: Path) -> None:
    """Write a model file into a folder of shards, without following links."""
    _write(model, path, open_atomic)


def _write(model: LinearModel, path: str | os.PathLike[str], opened: Callable[..., Any]) -> None:
    tensors = _weight_tensors(model) | class_tensors(model.classes)
    tensors["intercept"] = np.ascontiguousarray(model.intercept)
    if model.label_counts is not None:
        tensors["label_counts"] = np.ascontiguousarray(model.label_counts, np.int64)
    if model.tree is not None:
        tensors["tree.labels"] = np.ascontiguousarray(model.tree.labels)
        tensors["tree.branching"] = np.array([model.tree.branching])
    version = COMPRESSED if tensors.get("weights.values", model.intercept).dtype in NARROW else VERSION
    metadata = {
        "format": FORMAT,
        "settings": _to_json("settings", model.settings),
        "certificate": _to_json("certificate", model.certificate),
    }
    if model.chain:
        model.chain.check_features(model.n_features)
        arrays = text_tensors(model.chain)
        if arrays is None:
            version = WITH_STEPS
            metadata["steps"], arrays = chain_content(model.chain)
        tensors |= arrays
    metadata["format_version"] = str(WIDE if FEATURES in tensors else version)
    with opened(path) as out:
        for piece in tensor_file_content(tensors, metadata, ALIGNED, checked=True):
            out.write(piece)


def _save_shards(model: LinearModel, folder: Path, peers: Peers) -> None:
    if model.pairs:
        raise ValueError("a one-vs-one model cannot be divided by classes; save it from a single process")
    names = shard_names(model, peers.size)
    for step in ("write", "index"):
        failure = None
        try:
            if step == "write":
                folder.mkdir(parents=True, exist_ok=True)
                save_shard(shard_of(model, peers.rank, peers.size), folder / names[peers.rank])
            elif peers.rank == 0:
                write_index(folder, names)
        except OSError as error:
            failure = error
        for rank, other in enumerate(peers.gather(failure)):
            if other is not None:
                raise OSError(other.errno, f"{other.strerror} (rank {rank})", os.fspath(folder)) from failure


def _weight_tensors(model: LinearModel) -> dict[str, np.ndarray]:
    wide: dict[str, np.ndarray] = {}
    weights = as_matrix(model.weights) if isinstance(model.weights, JoinedWeights) else model.weights
    if isinstance(weights, WideWeights):
        wide[FEATURES] = np.append(weights.features, weights.n_features)
        weights = weights.part
    stored = as_stored(weights)
    if isinstance(stored, np.ndarray):
        return {"weights": np.ascontiguousarray(stored)} | wide
    tensors = {
        "weights.indptr": stored.indptr,
        "weights.indices": stored.indices,
        "weights.values": np.ascontiguousarray(stored.values),
    }
    tensors |= wide
    return tensors if stored.scale is None else tensors | {"weights.scale": stored.scale}


def _to_json(name: str, values: dict[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(
            f"{name} holds {value!r} of type {type(value).__name__}, which JSON cannot represent; "
            "use numbers, strings, lists and dicts"
        )

    return json.dumps(values, sort_keys=True, default=plain)


# ---- Reading


def looks_like_model(path: str | os.PathLike[str]) -> bool:
    """Tell from its first bytes whether a file is safetensors, without checking its contents."""
    with open(path, "rb") as stream:
        start = stream.read(9)
    return len(start) == 9 and int.from_bytes(start[:8], "little") < Path(path).stat().st_size and start[8:] == b"{"


def load_model(path: str | os.PathLike[str], *, mmap: bool = True) -> LinearModel:
    """Load a model and check it. No code from the file is executed.

    Parameters
    ----------
    path : str or path-like
        A file or folder of shards written by `save_model`.
    mmap : bool
        Memory-map the weights, so that processes share them. False reads them into private memory.

    Returns
    -------
    LinearModel

    Raises
    ------
    ModelFileError
        If the file is not a model, is truncated or inconsistent, or has an unknown version.
    """
    if Path(path).is_dir():
        with _refused(path, f"{{}}; {AGAIN}"):
            index = read_index(path)
            return join_shards([read_model_file(shard, mmap) for shard in index.shards], index)
    model = read_model_file(path, mmap)
    if isinstance(model.weights, SparseWeights) and model.weights.values.dtype in FLOATS:
        model.weights = model.weights.tocsr()
    return model


def read_certificate(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the certificate of a model without reading its weights; path and errors as for `load_model`."""
    with _refused(path, NOT_A_MODEL):
        if Path(path).is_dir():
            index = read_index(path)
            return read_certificate(index.shards[0]) if index.certificate is None else index.certificate
        file = TensorFile(path)
        _check_format(path, file.metadata)
        return _from_json("certificate", file.metadata)


def verify_model(path: str | os.PathLike[str]) -> None:
    """Verify all checksums of a model. `load_model` verifies all except those of the weights.

    Parameters
    ----------
    path : str or path-like
        A file or folder of shards written by `save_model`.

    Raises
    ------
    ModelFileError
        If the model has changed since it was written, or has no checksums.
    """
    load_model(path)  # checks everything else
    files, without = [Path(path)], []
    if Path(path).is_dir():
        index = read_index(path)
        files, without = index.shards, [] if index.has_checksum else [Path(path) / INDEX]
    for file in files:
        opened = TensorFile(file)
        without += [] if opened.has_checksums else [file]
        with _refused(file, f"{{}}; {AGAIN}"):
            opened.verify()
    if without:
        raise ModelFileError(
            f"{without[0]}: it has no checksums (written by an older version of manyclass); load the model and save "
            "it again"
        )


def read_model_file(path: str | os.PathLike[str], mmap: bool = True) -> LinearModel:
    """Read one file, with the weights as an array or `SparseWeights`, as they are stored."""
    metadata, tensors = _read_tensors(path, mmap)
    with _refused(path, f"the model is damaged: {{}}; {AGAIN}"):
        weights = _read_weights(tensors, int(metadata["format_version"]))
        classes = read_classes(tensors)
        settings = _from_json("settings", metadata)
        check_settings(settings)
        pairs = settings.get("pairs", False)
        columns = classes.size * (classes.size - 1) // 2 if pairs else classes.size
        if columns != weights.shape[1]:
            wanted = f"{columns} pairs of {classes.size} classes" if pairs else f"{columns} classes"
            raise ValueError(f"{weights.shape[1]} columns of weights, but {wanted}")
        _check_intercept(tensors["intercept"], weights)
        chain = _read_chain(metadata, tensors)
        chain.check_features(weights.shape[0])
        counts = _read_label_counts(tensors, classes.size)
        tree = _read_tree(tensors, classes.size)
        certificate = _from_json("certificate", metadata)
        if tensors.unused:
            raise ValueError(f"unexpected tensors: {', '.join(sorted(tensors.unused))}")
    return LinearModel(weights, tensors["intercept"], classes, settings, certificate, chain, counts, tree)


class _Tensors(dict[str, np.ndarray]):
    """The arrays of a file. Reports missing ones, and knows which have not been read."""

    def __init__(self, arrays: dict[str, np.ndarray]):
        super().__init__(arrays)
        self.unused = set(arrays)

    def __getitem__(self, name: str) -> np.ndarray:
        self.unused.discard(name)
        return super().__getitem__(name)

    def __missing__(self, name: str) -> np.ndarray:
        raise ValueError(f"tensor {name!r} is missing")


def _read_tensors(path: str | os.PathLike[str], mmap: bool) -> tuple[dict[str, str], _Tensors]:
    with _refused(path, NOT_A_MODEL):
        file = TensorFile(path, mmap=mmap)
        _check_format(path, file.metadata)
        # Computing the checksums of the weights takes several times as long as mapping and checking them.
        file.verify(without=WEIGHTS)
        return file.metadata, _Tensors(dict(file))


@contextmanager
def _refused(path: str | os.PathLike[str], message: str) -> Iterator[None]:
    """Turn a ValueError into a ModelFileError that names the file; `{}` in the message stands for the reason."""
    try:
        yield
    except ModelFileError:
        raise
    except ValueError as error:
        reason = str(error).removeprefix(f"{os.fspath(path)}: ")
        raise ModelFileError(f"{path}: {message.format(reason)}") from error


def _check_format(path: str | os.PathLike[str], metadata: dict[str, str]) -> None:
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path}: a safetensors file, but not a model; pass a file written by `save_model`")
    version = metadata.get("format_version", "")
    if not version.isdecimal() or int(version) < 1:
        raise ModelFileError(f"{path}: the format version is {version!r}; the file is damaged")
    if int(version) > NEWEST:
        raise ModelFileError(
            f"{path}: written by a newer version of manyclass: its format is {version}, but this version reads up to "
            f"{NEWEST}; upgrade manyclass"
        )


def _read_weights(tensors: _Tensors, version: int) -> np.ndarray | SparseWeights | WideWeights:
    weights = _read_part(tensors, version)
    if FEATURES not in tensors:
        return weights
    if version < WIDE:
        raise ValueError(f"a list of features, which version {version} of the format does not have")
    features = tensors[FEATURES]
    if features.dtype != np.int64 or features.shape != (weights.shape[0] + 1,):
        wanted = f"{weights.shape[0]} features and their number"
        raise ValueError(f"{FEATURES} is {features.dtype} of shape {features.shape}, not {wanted}")
    if features[0] < 0 or (features[1:] <= features[:-1]).any():
        raise ValueError(f"{FEATURES} does not ascend from 0 on")
    return WideWeights(features[:-1], weights, int(features[-1]))


def _read_part(tensors: _Tensors, version: int) -> np.ndarray | SparseWeights:
    if set(tensors) >= SPARSE and "weights" not in tensors:
        return _read_sparse(tensors, version)
    weights = tensors["weights"]
    if weights.ndim != 2 or weights.dtype not in FLOATS:
        raise ValueError(f"the weights are {weights.dtype} of shape {weights.shape}, not a matrix of floats")
    _check_finite(weights.reshape(-1))
    return weights


def _read_sparse(tensors: _Tensors, version: int) -> SparseWeights:
    indptr, indices = tensors["weights.indptr"], tensors["weights.indices"]
    values = tensors["weights.values"]
    narrow = values.dtype in NARROW
    index_types = (np.int32, np.uint16) if narrow else (np.int32,)
    if indptr.dtype != np.int64 or indices.dtype not in index_types or not (narrow or values.dtype in FLOATS):
        raise ValueError(f"sparse weights of the types {indptr.dtype}, {indices.dtype} and {values.dtype}")
    if narrow and version < COMPRESSED:
        raise ValueError(f"sparse weights of {values.dtype}, which version {version} of the format does not have")
    if indptr.ndim != 1 or indices.ndim != 1 or values.shape != indices.shape:
        raise ValueError(f"sparse weights of the shapes {indptr.shape}, {indices.shape} and {values.shape}")
    if indptr.size == 0 or indptr[0] != 0 or indptr[-1] != values.size or (np.diff(indptr) < 0).any():
        raise ValueError(f"the row pointers do not divide the {values.size} sparse weights into rows")
    columns = tensors["intercept"].size
    _check_columns(indptr, indices, columns)
    if values.dtype != np.int8:
        _check_finite(values)
    return SparseWeights(indptr, indices, values, columns, _read_scale(tensors, values.dtype, columns))


def _read_scale(tensors: _Tensors, dtype: np.dtype, columns: int) -> np.ndarray | None:
    if dtype != np.int8:
        return None
    scale = tensors["weights.scale"]
    if scale.dtype != np.float32 or scale.shape != (columns,):
        raise ValueError(f"the scale is {scale.dtype} of shape {scale.shape}, but there are {columns} columns")
    if not (np.isfinite(scale) & (scale >= 0)).all():
        raise ValueError("some scales are NaN, infinite or negative")
    return scale


def _check_columns(indptr: np.ndarray, indices: np.ndarray, n_classes: int) -> None:
    for begin in range(0, indices.size, CHECKED_AT_ONCE):
        # Overlap by one, so that each neighbouring pair is compared once.
        part = indices[begin : begin + CHECKED_AT_ONCE + 1]
        if part.min() < 0 or part.max() >= n_classes:
            raise ValueError(f"a sparse weight has a class outside 0..{n_classes - 1}")
        falls = begin + 1 + np.flatnonzero(part[1:] <= part[:-1])
        starts = indptr[np.searchsorted(indptr, falls)]
        if (starts != falls).any():
            raise ValueError("the classes of the sparse weights do not ascend within a feature")


def _check_finite(values: np.ndarray) -> None:
    for begin in range(0, values.size, CHECKED_AT_ONCE):
        if not np.isfinite(values[begin : begin + CHECKED_AT_ONCE]).all():
            raise ValueError("some weights are NaN or infinite")


def _check_intercept(intercept: np.ndarray, weights: np.ndarray | SparseWeights | WideWeights) -> None:
    if intercept.shape != (weights.shape[1],) or intercept.dtype != weights.dtype:
        raise ValueError(
            f"the intercept is {intercept.dtype} of shape {intercept.shape}, "
            f"but the weights are {weights.dtype} with {weights.shape[1]} columns"
        )
    # Minus infinity is allowed: it marks classes that were never trained.
    if not (intercept < np.inf).all():
        raise ValueError("some intercepts are NaN or plus infinity")


def _read_chain(metadata: dict[str, str], tensors: _Tensors) -> Chain:
    if "steps" not in metadata:
        return chain_of_text_tensors(tensors)
    if int(metadata["format_version"]) < WITH_STEPS:
        raise ValueError(f"there are steps, which version {metadata['format_version']} of the format does not have")
    return read_chain(metadata["steps"], tensors)


def _read_label_counts(tensors: _Tensors, n_classes: int) -> np.ndarray | None:
    if "label_counts" not in tensors:
        return None
    counts = tensors["label_counts"]
    if counts.dtype != np.int64 or counts.shape != (n_classes,) or (counts < 0).any():
        raise ValueError(f"the label counts are {counts.dtype} of shape {counts.shape}, not a count for each class")
    return counts


def _read_tree(tensors: _Tensors, n_classes: int) -> LabelOrder | None:
    if not {"tree.labels", "tree.branching"} & set(tensors):
        return None
    labels, branching = tensors["tree.labels"], tensors["tree.branching"]
    if branching.dtype != np.int64 or branching.shape != (1,):
        raise ValueError(f"the branching of the tree is {branching.dtype} of shape {branching.shape}, not a number")
    order = LabelOrder(labels, int(branching[0]))
    order.check(n_classes)
    return order


def _from_json(name: str, metadata: dict[str, str]) -> dict[str, Any]:
    try:
        return parse_object(metadata.get(name, ""))
    except ValueError as error:
        raise ValueError(f"{name} is not a JSON object ({error})") from error
