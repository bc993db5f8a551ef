"""Rows that ranks on a host share."""

import errno
import logging
import os
import pathlib
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

from manyclass.engines import join_rows, share_rows, shared_rows
from manyclass.peers import peers_of

from .fits import digest, files_of_at_most, fit, uneven

LARGE = 8_000_000


def rows_in_common(engine):
    """Share rows; return where they are, what they take of this rank's own memory, and a model trained on them."""
    calls, peers = [], peers_of(engine)

    def read():
        calls.append(peers.rank)
        X, y = uneven()
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        return X, y, sp.csr_matrix((0, 7), dtype=np.float32), np.ones(LARGE)

    before = own_memory()
    X, y, empty, large = share_rows(read, peers)
    arrays = X.data, X.indices, X.indptr, y, large
    assert X.indices.dtype == X.indptr.dtype == np.int64 and empty.shape == (0, 7) and (large == 1).all()
    return {
        "calls": len(calls),
        "own memory": own_memory() - before,
        "places": [place_of(array) for array in arrays],
        "writable": any(array.flags.writeable for array in arrays),
        "model": digest(fit("hinge", engine, X, y)),
    }


def own_memory():
    """Return the private memory of this process in bytes."""
    [line] = [line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if "RssAnon" in line]
    return 1024 * int(line.split()[1])


def place_of(array):
    """Return how the memory of an array is mapped: access rights, device, file and offset."""
    address = array.ctypes.data
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        span, rights, offset, device, inode, *_ = line.split()
        first, last = (int(end, 16) for end in span.split("-"))
        if first <= address < last:
            return [rights, device, inode, int(offset, 16) + address - first]


def parts_in_common(engine):
    """Join the parts of all ranks; return how many were joined here, where they are, and a model."""
    peers = peers_of(engine)
    X, y = uneven()
    own = slice(peers.rank * X.shape[0] // peers.size, (peers.rank + 1) * X.shape[0] // peers.size)
    joined = []

    def join(parts):
        joined.extend(parts)
        return sp.vstack([X for X, _ in parts], "csr"), np.concatenate([y for _, y in parts])

    X, y = join_rows((X[own], y[own]), join, peers)
    return {"joined": len(joined), "place": place_of(X.data), "model": digest(fit("hinge", engine, X, y))}


def parts_on_two_hosts(engine):
    """Pretend that the last rank is on another host."""
    peers = peers_of(engine)
    with patch.object(peers, "hosts", ["here"] * (peers.size - 1) + ["there"]):
        return parts_in_common(engine)


def rows_that_cannot_be_read(engine):
    peers = peers_of(engine)

    def read():
        raise FileNotFoundError(errno.ENOENT, "No such file", f"asked for by {peers.rank}")

    try:
        share_rows(read, peers)
    except FileNotFoundError as error:
        return str(error)


def copied_rows(engine):
    """Forbid large files, then pretend that the last rank is in another container; return models and log messages."""
    messages, peers = [], peers_of(engine)
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logger = logging.getLogger("manyclass")
    logger.addHandler(handler)
    with files_of_at_most(4096):
        X, y = share_rows(uneven, peers)
    models = [digest(fit("hinge", engine, X, y))]
    elsewhere = peers.rank == peers.size - 1
    with patch.object(shared_rows.os, "readlink", (lambda path: "pipe:[1]") if elsewhere else os.readlink):
        X, y = share_rows(uneven, peers)
    models.append(digest(fit("hinge", engine, X, y)))
    logger.removeHandler(handler)
    return models, messages
