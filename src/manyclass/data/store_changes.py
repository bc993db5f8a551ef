"""Create a store, append rows and remove rows. Each change writes a new generation of the manifest."""

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .block_file import read_ids
from .block_store import BlockStore
from .conversion import Conversion
from .manifest import Catalogue, StoreError
from .matrix_rows import MatrixParts, MatrixRows
from .row_parts import RowSource, TextRows
from .sizes import parse_size
from .store_lock import sweep, writing
from .table_rows import TableRows

SHOWN = 5


def create_store(
    path: str | os.PathLike[str], rows: Any, y: Any, *, dtype: DTypeLike, memory: int | str, **options: Any
) -> BlockStore:
    """Create a store; see `BlockStore.create`."""
    source = _source(rows, y, np.dtype(dtype), lambda files: TextRows(files, dtype=dtype))
    return Conversion(source, path, memory=parse_size(memory), **options).run()


def append_rows(path: Path, rows: Any, y: Any, *, memory: int | str, **options: Any) -> None:
    """Append rows; see `BlockStore.append`."""
    store = BlockStore(path)
    source = _source(rows, y, store.dtype, lambda files: more_of(store, files))
    Conversion(source, path, memory=parse_size(memory), append=True, **options).run()


def _source(rows: Any, y: Any, dtype: np.dtype, of_files: Callable[[Any], RowSource]) -> RowSource:
    files = [rows] if isinstance(rows, str | os.PathLike) else rows
    if isinstance(files, list | tuple) and files and all(isinstance(file, str | os.PathLike) for file in files):
        if y is not None:
            raise ValueError("files contain their own labels; pass y only with a matrix")
        return of_files(files)
    if hasattr(rows, "parts"):
        return rows
    if y is not None:
        return MatrixRows(rows, y, dtype=dtype)
    if hasattr(rows, "shape") or not isinstance(rows, Iterable):
        raise ValueError("a matrix needs the labels of its rows: pass y")
    return MatrixParts(rows, dtype=dtype)


def more_of(store: BlockStore, files: Any, *, xmc: bool | None = None, **columns: Any) -> RowSource:
    """Return a row source for files of the kind that a store was created from."""
    reading = store.manifest.reading
    if "text" in reading:
        named = {name: columns.get(name) or reading[f"{name}_column"] for name in ("text", "label")}
        others = {name: columns[name] for name in ("format", "delimiter", "unlabelled") if name in columns}
        return TableRows(files, **named, **reading["text"], **others)
    xmc = reading.get("format") == "xmc" if xmc is None else xmc
    return TextRows(files, xmc=xmc, dtype=store.dtype, index_base=reading.get("index_base", 0))


def remove_rows(path: Path, rows: Iterable[int], blocks: Iterable[int]) -> None:
    """Remove rows and blocks; see `BlockStore.remove`."""
    with writing(path):
        store = BlockStore(path)
        manifest, catalogue = store.manifest, store.catalogue
        whole = _known_blocks(store, blocks)
        going = _rows_by_block(store, rows, whole)
        if not going:
            return
        frequencies, rows_of_code = catalogue.frequencies, catalogue.rows_of_code.copy()
        n_rows, nnz, removed = manifest.rows, manifest.nnz, catalogue.removed
        for number, ids in going.items():
            stored = store.read_with_removed(number)
            block = stored.take(np.flatnonzero(np.isin(stored.ids, ids)))
            frequencies = frequencies.changed(block.indices[block.values != 0], -1)
            rows_of_code -= np.bincount(block.labels, minlength=rows_of_code.size)
            n_rows, nnz = n_rows - block.n_rows, nnz - int(block.indices.size)
            removed = np.union1d(removed, ids)
            if np.isin(stored.ids, removed).all():
                whole.add(number)
                removed = np.setdiff1d(removed, stored.ids)
        if n_rows == 0:
            raise StoreError(f"no row of {path} would be left; delete the folder instead")
        generation = manifest.generation + 1
        changed = Catalogue.of_labels(catalogue.labels, rows_of_code, frequencies=frequencies, removed=removed)
        left = tuple(entry for number, entry in enumerate(manifest.blocks) if number not in whole)
        changed_manifest = replace(
            manifest,
            generation=generation,
            rows=n_rows,
            nnz=nnz,
            blocks=left,
            **changed.write(path, generation),
        )
        changed_manifest.write(path)
        sweep(path, changed_manifest.files)


def _known_blocks(store: BlockStore, blocks: Iterable[int]) -> set[int]:
    wanted = {int(number) for number in blocks}
    unknown = sorted(number for number in wanted if not 0 <= number < store.n_blocks)
    if unknown:
        raise StoreError(f"{store.path} has no block {_some(unknown)}; its blocks are 0 to {store.n_blocks - 1}")
    return wanted


def _rows_by_block(store: BlockStore, rows: Iterable[int], whole: set[int]) -> dict[int, np.ndarray]:
    wanted = np.unique(np.fromiter((int(row) for row in rows), np.int64))
    found: dict[int, np.ndarray] = {}
    for number, entry in enumerate(store.manifest.blocks):
        ids = np.setdiff1d(read_ids(store.path / entry.file), store.catalogue.removed, assume_unique=True)
        here = np.intersect1d(ids, wanted, assume_unique=True)
        wanted = np.setdiff1d(wanted, here, assume_unique=True)
        if number in whole:
            found[number] = ids
        elif here.size:
            found[number] = here
    if wanted.size:
        never = wanted[(wanted < 0) | (wanted >= store.manifest.next_id)]
        if never.size:
            last = store.manifest.next_id - 1
            raise StoreError(f"{store.path} has no row {_some(never.tolist())}; ids are from 0 to {last}")
        raise StoreError(f"row {_some(wanted.tolist())} of {store.path} was already removed")
    return found


def _some(numbers: list[int]) -> str:
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return ", ".join(map(str, numbers[:SHOWN])) + more
