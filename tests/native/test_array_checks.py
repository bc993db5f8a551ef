"""Every array that crosses into native code is checked there: what does not hold is a ValueError, never a crash.

Each entry is a call with good arguments, and for each argument what kind of array it is; the kind tells what is wrong
with it in turn.
"""

import numpy as np
import pytest
from losses import text_like

from manyclass._native import core

N, D, K = 40, 30, 5
X, Y = text_like(N, D, K)
X = X.astype(np.float32)
Y = Y.astype(np.int32)
INDPTR, INDICES, VALUES = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
C = np.ones(N, np.float32)
LABEL_PTR = np.arange(N + 1)
ORDER = np.arange(N)[::-1].copy()
# One variable per row, for a class other than its own.
OTHERS = ((Y + 1) % K).astype(np.int32)
HALF = np.full(N, 0.5, np.float32)
GATHER = [lambda mine: [mine]]


# ---- What is wrong with an array


def changed(array, place, value):
    array = np.array(array)
    array.flat[place] = value
    return array


def of_starts(ptr):
    """For any number of rows, since they may end before the other arrays do."""
    yield from (ptr[:0], -ptr, ptr + 1, ptr * 10**6)
    yield changed(ptr, ptr.size // 2, ptr[-1] + 1)
    yield changed(ptr, ptr.size // 2, -1)


def of_pointers(ptr):
    yield from (ptr[:-1], np.append(ptr, ptr[-1]), *of_starts(ptr))


def of_codes(limit):
    def wrong(codes):
        yield from (codes[:-1], codes[:0], np.append(codes, codes[-1:]))
        for place in (0, -1):
            for value in (limit, -1, np.iinfo(codes.dtype).max, np.iinfo(codes.dtype).min):
                yield changed(codes, place, value)

    return wrong


def of_order(limit):
    def wrong(order):
        for value in (limit, -1, np.iinfo(order.dtype).max, order[-1]):
            yield changed(order, 0, value)

    return wrong


def of_values(values):
    yield from (values[:-1], np.append(values, values[-1:]))
    for value in (np.nan, np.inf, -1.0):
        yield changed(values, 0, value)


def of_length(array):
    yield from (array[:-1], np.append(array, array[-1:]))


def of_room(array):
    yield from (array[:-1], array[:, :-1].copy(), array[:, :0].copy())


def of_number(*numbers):
    return lambda _: iter(numbers)


COUNT = of_number(0, -1)


# ---- Objects to call


def layout(tail=1):
    return core.Layout32(INDPTR, INDICES, VALUES, D, 0.0, tail)


def coupled(loss="ww"):
    return core.Coupled32(layout(0 if loss == "llw" else 1), Y, C, K, loss, 0.5, False)


def maxent():
    return core.MaximumEntropy32(layout(), Y, C, K, "maxent", 0.5, False)


def blocks(loss="hinge", pairs=False):
    return core.BinaryBlocks32(layout(), (LABEL_PTR, Y, C), (K, pairs), D, loss, "dual", False, True)


def max_margin():
    return core.MaxMargin32(layout(), LABEL_PTR, Y, C, K, 0.01, 1.0, -1)


LEAGUE = np.array([0, 0, 1, 1, 1], np.int32)


def leagues():
    found = core.Leagues32(layout(4), Y, C, LEAGUE, 2)
    for league in range(2):
        found.start(league)
    return found


def own_rows():
    return np.concatenate([[0], np.cumsum(np.bincount(Y, minlength=K))]), np.argsort(Y, kind="stable").astype(
        np.int32
    )


def labels(loss="hinge", rows=(INDPTR, INDICES, VALUES)):
    return core.LabelBlocks32((*rows, D), np.ones(N), own_rows(), (0.01, 1.0, 0.0), loss != "hinge", (0, 0), True, 1)


def places():
    return core.FeaturePlaces(np.bincount(INDICES, minlength=D), False)


def rows_in_parts():
    found = core.Layout32()
    found.begin_rows(places(), N, X.nnz)
    found.add_rows(INDPTR, INDICES, VALUES, D, 0.0, places())
    return found


def stream(loss="hinge"):
    found = core.BinaryStream32(places().heads, K, loss, 0)
    found.swap_rows(rows_in_parts(), LABEL_PTR, Y, C)
    return found


def scorer():
    return core.Scorer32(D)


def dense_scorer():
    found = scorer()
    found.add_dense(np.ones((D, K), np.float32), np.zeros(K, np.float32))
    return found


WEIGHTS = X[:K].tocsc()  # K labels by D features: columns of weights by feature
BY_LABEL = X[:K]


def tree_arguments():
    return {
        "indptr": (BY_LABEL.indptr.astype(np.int64), of_pointers),
        "indices": (BY_LABEL.indices.astype(np.int32), of_codes(D)),
        "values": (BY_LABEL.data, of_length),
        "features": (D, of_number(-1, 0, 3)),
    }


def tree():
    arguments = [value for value, _ in tree_arguments().values()]
    return core.LabelTree32(*arguments, np.arange(K, dtype=np.int32), np.zeros(K, np.float32), 2, 1)


def parser():
    found = core.RowParserFloat32(n_features=-1, zero_based=-1, multilabel=-1, allow_nonfinite=False, xmc=False)
    assert found.feed(np.frombuffer(b"1 1:2 3:4\n2 1:1\n", np.uint8)) is None
    assert found.finish() is None
    return found


# ---- The calls

THREADS = (1, COUNT)
FEATURES = (D, of_number(-1, 0, 3))
ROWS = {
    "indptr": (INDPTR, of_starts),
    "indices": (INDICES, lambda codes: (wrong for wrong in of_codes(D)(codes) if wrong.size <= codes.size)),
    "values": (VALUES, lambda values: iter([values[:-1]])),
}
LABELLED = {"labels": (Y, of_codes(K)), "C": (C, of_values)}
SETS = {"label_ptr": (LABEL_PTR, of_pointers), "labels": (Y, of_codes(K)), "C": (C, of_values)}
ALPHA = {"indptr": (LABEL_PTR, of_pointers), "classes": (OTHERS, of_codes(K)), "values": (HALF, of_values)}
ABOVE = (HALF, lambda values: iter([changed(values, 3, 1.01), *of_values(values)]))
SWEEP = {
    "order": (ORDER, of_order(N)),
    "wave": (4, COUNT),
    "full": (True, of_number()),
    "enter": (0.0, of_number()),
    "most_new": (10, of_number(-1)),
    "threads": THREADS,
}
DUEL = {
    "a": (0, of_number(-1, 2)),
    "b": (1, of_number(-1, 2)),
    "sizes": (np.ones((Y < 2).sum(), np.int32), of_codes(4)),
    "classes": (np.zeros((Y < 2).sum(), np.int32), of_codes(3)),
    "values": (HALF[Y < 2], lambda values: iter([changed(values, 3, 1.01), *of_values(values)])),
    "rests": (np.zeros((Y < 2).sum(), np.uint8), lambda rests: iter([rests[:-1], rests + 2])),
}
MEMBERS = np.flatnonzero(Y >= 0)
ONE_LANE = {
    "counts": (np.array([N]), lambda counts: iter([counts[:0], counts + 1, counts - 1, -counts])),
    "rows": (np.arange(N, dtype=np.int32), lambda rows: iter([*of_codes(N)(rows), rows[::-1].copy(), rows * 0])),
    "lanes": (np.ones(N, np.uint16), lambda lanes: iter([*of_length(lanes), lanes << 5, lanes * 3])),
    "values": ABOVE,
}
HEADS = core.Layout32(INDPTR, INDICES, VALUES, D, 0.0, 1).heads
SUMS = {
    "ptr": (np.arange(HEADS + 1), of_pointers),
    "labels": (np.zeros(HEADS, np.int32), of_codes(K)),
    "values": (np.ones(HEADS, np.float32), lambda values: iter([*of_length(values), values * np.nan])),
}
LABEL_BLOCK = {
    "block": (0, of_number(-1, 2)),
    "weight_ptr": (np.arange(5), of_pointers),
    "features": (np.zeros(4, np.int32), of_codes(D)),
    "weights": (np.ones(4, np.float32), lambda values: iter([*of_length(values), values * np.nan])),
    "constants": (np.ones(4, np.float32), lambda values: iter([*of_length(values), values * np.inf])),
    "row_ptr": (np.arange(5), of_pointers),
    "rows": (np.zeros(4, np.int32), of_codes(N)),
    "variables": (HALF[:4], lambda values: iter([changed(values, 3, 1.01), *of_values(values)])),
}

CALLS = {
    "Layout": (
        lambda: core.Layout32,
        {**ROWS, "n_features": FEATURES, "constant": (0.0, of_number()), "tail": (1, of_number())},
    ),
    "Layout.add_rows": (
        lambda: _begun().add_rows,
        {**ROWS, "n_features": FEATURES, "constant": (0.0, of_number()), "places": ("places", of_number())},
    ),
    "Layout.begin_rows": (
        lambda: core.Layout32().begin_rows,
        {"places": ("places", of_number()), "rows": (3, of_number(-1, 2**40)), "entries": (3, of_number(-1))},
    ),
    "FeaturePlaces": (
        lambda: core.FeaturePlaces,
        {
            "rows": (np.arange(4), lambda rows: iter([-rows])),
            "constant": (True, of_number()),
            "tail": (1, of_number(-1)),
        },
    ),
    "Coupled": (
        lambda: lambda labels, C, classes: core.Coupled32(layout(), labels, C, classes, "ww", 0.5, False),
        {**LABELLED, "classes": (K, of_number(-1, 0, K - 1, 2**40))},
    ),
    "Coupled.sweep": (lambda: coupled().sweep, SWEEP),
    "Coupled.alternate": (
        lambda: coupled("llw").alternate,
        {
            "order": SWEEP["order"],
            "chunks": ([0, 3, K], lambda _: iter([[0, 3], [0, K + 1], [1, K], [0, 4, 3, K], [], [-1, K]])),
            "threads": THREADS,
        },
    ),
    "Coupled.settle": (
        lambda: coupled().settle,
        {
            "ptr": (np.array([0, 2, 4]), of_starts),
            "rows": (np.array([3, 1, 7, 5]), of_order(N)),
            "rounds": (2, of_number()),
            "enter": (0.0, of_number()),
            "most_new": (10, of_number(-1)),
        },
    ),
    "Coupled.join": (
        lambda: coupled().join,
        {
            "gather": (GATHER[0], of_number()),
            "bounds": ([0, K], lambda _: iter([[], [0], [0, K - 1], [1, K], [0, K + 1, K], [-1, K]])),
            "rank": (0, of_number(-1, 1)),
        },
    ),
    "Coupled.set_alpha": (lambda: coupled().set_alpha, ALPHA | {"values": ABOVE}),
    "Coupled.set_alpha of a simplex": (
        lambda: coupled("cs").set_alpha,
        ALPHA | {"values": (HALF, lambda values: iter([changed(values, 3, 1.01)]))},
    ),
    "Coupled.set_pass_sums": (
        lambda: coupled().set_pass_sums,
        {
            "sums": (
                np.zeros(12),
                lambda sums: iter([sums[:0], sums[:-1], sums * np.nan, sums - np.inf, sums + 1e300]),
            )
        },
    ),
    "Coupled.certificate": (lambda: coupled().certificate, {"threads": THREADS}),
    "Coupled.refresh": (lambda: coupled().refresh, {"threads": THREADS}),
    "Coupled.weights": (lambda: coupled().weights, {"features": FEATURES, "threads": THREADS}),
    "Coupled.swap_rows": (lambda: lambda labels, C: coupled_stream().swap_rows(rows_in_parts(), labels, C), LABELLED),
    "MaxEnt.sweep": (lambda: maxent().sweep, SWEEP | {"most_new": (10, of_number())}),
    "MaxEnt.set_alpha": (lambda: maxent().set_alpha, ALPHA),
    "MaxEnt.set_variables": (
        lambda: maxent().set_variables,
        {
            "first": (0, of_number(-1, 1)),
            "last": (N, of_number(-1, N + 1, N - 1)),
            "values": (
                np.full(N * 16, -3.0, np.float32),
                lambda values: iter([*of_length(values), *(changed(values, 7, v) for v in (np.nan, 1.0, -40.0))]),
            ),
        },
    ),
    "MaxEnt.weights": (lambda: maxent().weights, {"features": FEATURES, "threads": (1, of_number())}),
    "BinaryBlocks": (
        lambda: (
            lambda label_ptr, labels, C, classes, features: core.BinaryBlocks32(
                layout(), (label_ptr, labels, C), (classes, False), features, "hinge", "dual", False, True
            )
        ),
        {**SETS, "classes": (K, of_number(-1, 0, K - 1)), "features": FEATURES},
    ),
    "BinaryBlocks.set_alpha": (lambda: blocks().set_alpha, ALPHA | {"values": ABOVE}),
    "BinaryBlocks.set_variables": (lambda: lambda *arrays: blocks().set_variables([0], *arrays), ONE_LANE),
    "BinaryBlocks.set_columns": (
        lambda: lambda columns: blocks().set_columns([0], columns),
        {"columns": (np.ones((D, K), np.float32), lambda w: iter([w[:-1], w[:, :-1].copy(), w * np.nan]))},
    ),
    "BinaryBlocks.problems_of": (lambda: blocks().problems_of, {"block": (0, of_number(-1, 1, 2**40))}),
    "BinaryBlocks.weights": (
        lambda: blocks().weights,
        {"features": (D, of_number(-1, 3, D + 1)), "threads": THREADS},
    ),
    "MaxMargin": (
        lambda: lambda label_ptr, labels, C: core.MaxMargin32(layout(), label_ptr, labels, C, K, 0.01, 1.0, -1),
        SETS,
    ),
    "MaxMargin.sweep": (
        lambda: lambda order, wave, most_new, threads: max_margin().sweep(order, wave, True, most_new, 0, threads),
        {name: SWEEP[name] for name in ("order", "wave", "most_new", "threads")},
    ),
    "MaxMargin.set_alpha": (
        lambda: max_margin().set_alpha,
        ALPHA | {"values": (HALF, lambda values: iter([changed(values, 3, 2.1), *of_values(values)]))},
    ),
    "MaxMargin.set_held_sums": (lambda: max_margin().set_held_sums, SUMS),
    "MaxMargin.set_ease": (
        lambda: max_margin().set_ease,
        {"ease": (C, lambda ease: iter([*of_values(ease), ease * 0, ease * 2]))},
    ),
    "MaxMargin.set_pass_sums": (
        lambda: max_margin().set_pass_sums,
        {"sums": (np.zeros(5), lambda sums: iter([*of_length(sums), sums * np.nan]))},
    ),
    "MaxMargin.weights": (lambda: max_margin().weights, {"features": FEATURES, "threads": THREADS}),
    "DualRows": (lambda: core.DualRows32, {**ALPHA, "indptr": (LABEL_PTR, of_starts), "K": (K, of_number(-1, 0, 3))}),
    "Leagues": (
        lambda: lambda labels, C, league, leagues: core.Leagues32(layout(), labels, C, league, leagues),
        {
            **LABELLED,
            "league": (LEAGUE, lambda of: iter([of[:-1], of - 1, of + 1])),
            "leagues": (2, of_number(-1, 0, 1, K + 1)),
        },
    ),
    **{
        f"Leagues.{name}": (lambda name=name: getattr(leagues(), name), {"league": (1, of_number(-1, 2, 2**40))})
        for name in ("start", "leave", "here", "pack", "members")
    },
    "Leagues.play": (
        lambda: lambda matches, threads: leagues().play(matches, True, 0.0, 10, True, 0.0, 0, threads),
        {
            "matches": ([(0, 1)], lambda _: iter([[(0, 2)], [(-1, 0)], [(0, 1), (1, 1)], [(0, 0), (0, 0)]])),
            "threads": THREADS,
        },
    ),
    "Leagues.unpack": (
        lambda: lambda league, parcel: leagues().unpack(league, parcel),
        {
            "league": (1, of_number(-1, 2)),
            "parcel": (
                leagues().pack(1),
                lambda p: iter([*of_length(p), p[:0], p + 255, changed(p, slice(None), 255)]),
            ),
        },
    ),
    "Leagues.set_duel": (lambda: leagues().set_duel, DUEL),
    "Leagues.duel": (lambda: leagues().duel, {"a": (0, of_number(-1, 2)), "b": (0, of_number(-1, 2))}),
    "Leagues.variables": (lambda: leagues().variables, {"a": (0, of_number(-1, 2)), "b": (0, of_number(-1, 2))}),
    "Leagues.certify": (
        lambda: lambda league, own: leagues().certify(league, dual_rows(), own, 1),
        {"league": (0, of_number(-1, 2)), "own": (np.zeros(N), of_length)},
    ),
    "Leagues.refresh": (
        lambda: lambda alpha: leagues().refresh(alpha, 1),
        {"alpha": ("good", lambda _: iter(["fewer", "others"]))},
    ),
    "LabelBlocks": (
        lambda: (
            lambda indptr, indices, values, features, C, own_ptr, own, threads: core.LabelBlocks32(
                (indptr, indices, values, features), C, (own_ptr, own), (0.01, 1.0, 0.0), False, (0, 0), True, threads
            )
        ),
        {
            **ROWS,
            "features": FEATURES,
            "C": (np.ones(N), of_values),
            "own_ptr": (own_rows()[0], of_starts),
            "own": (own_rows()[1], of_codes(N)),
            "threads": THREADS,
        },
    ),
    "LabelBlocks.set_block": (lambda: labels().set_block, LABEL_BLOCK),
    **{
        f"LabelBlocks.{name}": (lambda name=name: getattr(labels(), name), {"block": (0, of_number(-1, 2, 2**40))})
        for name in ("first", "many", "clear", "block")
    },
    "BinaryStream.swap_rows": (
        lambda: (
            lambda *arrays: core.BinaryStream32(places().heads, K, "hinge", 0).swap_rows(rows_in_parts(), *arrays)
        ),
        SETS,
    ),
    "BinaryStream.set_variables": (
        lambda: stream().set_variables,
        {"first": (0, of_number(-1, 1)), "last": (N, of_number(-1, N + 1, 1)), **ONE_LANE},
    ),
    "BinaryStream.set_active": (
        lambda: stream().set_active,
        {
            "first": (0, of_number(-1, 16)),
            "last": (N, of_number(-1, N + 1, 1)),
            "bits": (np.ones(N // 8, np.uint8), of_length),
        },
    ),
    "BinaryStream.visit": (
        lambda: lambda visits, threads: stream().visit(visits, 0, threads, core.Interrupt()),
        {
            "visits": (
                [(0, True, 0.1, 1, 0.0)],
                lambda _: iter([[(1, True, 0.1, 1, 0.0)], [(-1, True, 0.1, 1, 0.0)], [(0, True, 0.1, 1, 0.0)] * 2]),
            ),
            "threads": THREADS,
        },
    ),
    "BinaryStream.weights_of": (lambda: stream().weights_of, {"vector": (0, of_number(-1, 1))}),
    "BinaryStream.variables_of": (
        lambda: stream().variables_of,
        {"first": (0, of_number(-1, N + 1)), "last": (N, of_number(N + 1))},
    ),
    "BinaryStream.active_of": (
        lambda: stream().active_of,
        {"first": (0, of_number(-1, N + 1)), "last": (N, of_number(N + 1))},
    ),
    "BinaryStream.add_to": (
        lambda: lambda heads, classes: stream().add_to(core.ExactWeights32(heads, 0, K, classes), 1),
        {"heads": (places().heads, of_number(-1, 0, places().heads - 1)), "classes": (K, of_number(K - 1, K + 1))},
    ),
    "ExactWeights": (
        lambda: core.ExactWeights32,
        {
            "heads": (3, of_number(-1)),
            "low": (0, of_number(-1, 5)),
            "high": (K, of_number(-1, K + 1)),
            "classes": (K, of_number(-1, 3)),
        },
    ),
    "Scorer": (lambda: core.Scorer32, {"features": (D, of_number(-1))}),
    "Scorer.add_dense": (
        lambda: scorer().add_dense,
        {"W": (np.ones((D, K), np.float32), of_room), "intercept": (np.zeros(K, np.float32), of_length)},
    ),
    "Scorer.add_sparse": (
        lambda: scorer().add_sparse,
        {
            "indptr": (WEIGHTS.indptr.astype(np.int64), of_pointers),
            "indices": (WEIGHTS.indices.astype(np.int32), of_codes(K)),
            "values": (WEIGHTS.data, of_length),
            "intercept": (np.zeros(K, np.float32), lambda b: iter([b[:-1]])),
            "scale": (np.ones(K, np.float32), of_length),
        },
    ),
    "Scorer.predict": (
        lambda: dense_scorer().predict,
        {
            "indptr": (X.indptr, of_starts),
            "indices": (X.indices, lambda codes: (wrong for wrong in of_codes(D)(codes) if wrong.size <= codes.size)),
            "values": (VALUES, lambda values: iter([values[:-1]])),
            "begin": (0, of_number(-1, 1, N + 1)),
            "end": (N, of_number(-1, 1, N + 1)),
            "codes": (np.empty((N, 2), np.int32), of_room),
            "scores": (np.empty((N, 2), np.float32), lambda s: iter([*of_room(s), np.empty((N, K + 1), np.float32)])),
            "threads": THREADS,
        },
    ),
    "cluster_labels": (
        lambda: lambda *arguments: core.cluster_labels(*arguments, 0, 1),
        {
            **tree_arguments(),
            "indptr": (BY_LABEL.indptr.astype(np.int64), of_starts),
            "branching": (2, of_number(-1, 0, 1)),
        },
    ),
    "LabelTree": (
        lambda: core.LabelTree32,
        {
            **tree_arguments(),
            "order": (np.arange(K, dtype=np.int32), lambda order: iter([*of_codes(K)(order), order * 0])),
            "intercept": (np.zeros(K, np.float32), of_length),
            "branching": (2, of_number(-1, 0, 1)),
            "threads": THREADS,
        },
    ),
    "LabelTree.best_labels": (
        lambda: tree().best_labels,
        {
            **ROWS,
            "indptr": (INDPTR, of_pointers),
            "features": (D, of_number(-1, 0, D - 1, D + 1)),
            "beam": (2, COUNT),
            "labels": (np.empty((N, 2), np.int32), of_room),
            "scores": (np.empty((N, 2), np.float32), lambda s: iter([*of_room(s), np.empty((N, K + 1), np.float32)])),
            "threads": THREADS,
        },
    ),
    "ranking_sums": (
        lambda: (
            lambda indptr, indices, best, unknown, weight, sums, first_hit: core.ranking_sums(
                (indptr, indices), best, unknown, weight, 1.0, sums, first_hit, 1
            )
        ),
        {
            "indptr": (LABEL_PTR, of_pointers),
            "indices": (Y, of_codes(K)),
            "best": (np.column_stack([Y, OTHERS]), lambda b: iter([b[:-1], b + K, b - K])),
            "unknown": (np.zeros(N, np.int32), lambda u: iter([u[:-1], u - 1])),
            "weight": (np.ones(K), of_length),
            "sums": (np.zeros((2, 7)), of_room),
            "first_hit": (np.zeros(K, np.int32), lambda h: iter([h[:-1]])),
        },
    ),
    "count_matches": (
        lambda: lambda *arguments: core.count_matches(*arguments, 1),
        {
            "indptr": (LABEL_PTR, of_pointers),
            "indices": (Y, of_codes(K)),
            "found_indptr": (LABEL_PTR, of_pointers),
            "found_indices": (OTHERS, of_codes(K)),
            "right": (np.zeros(K, np.int64), lambda r: iter([r[:-1]])),
        },
    ),
    "index_differences": (
        lambda: core.index_differences,
        {"indptr": (INDPTR, of_starts), "indices": (INDICES, of_length)},
    ),
    "join_planes": (
        lambda: lambda plane, count: core.join_planes([(plane, None), *[(None, None)] * 3], count),
        {"plane": (np.ones(4, np.uint8), of_length), "count": (4, of_number(-1, 3, 2**62))},
    ),
    "parser.take_values": (lambda: parser().take_values, {"room": (np.empty(3, np.float32), of_length)}),
    "parser.take_indices": (lambda: parser().take_indices, {"room": (np.empty(3, np.int64), of_length)}),
    "parser.take_row_ends": (lambda: parser().take_row_ends, {"room": (np.empty(2, np.int64), of_length)}),
    "parser.take_label_ends": (lambda: parser().take_label_ends, {"room": (np.empty(2, np.int64), of_length)}),
    "parser.take_labels": (lambda: parser().take_labels, {"room": (np.empty(2, np.int64), of_length)}),
    "format_rows": (
        lambda: lambda *arguments: core.format_rows(*arguments, 0, True),
        {
            "row_ends": (np.array([2, 3]), lambda e: iter([e[:-1], e + 1, e - 3, e[::-1].copy()])),
            "indices": (np.array([0, 1, 0]), lambda i: iter([i[:-1]])),
            "values": (np.ones(3, np.float32), lambda v: iter([v[:-1]])),
            "label_ends": (np.array([1, 2]), lambda e: iter([e[:-1], e + 1, e - 2, e[::-1].copy()])),
            "labels": (np.array([4, 5]), lambda of: iter([of[:-1]])),
        },
    ),
}


def _begun():
    found = core.Layout32()
    found.begin_rows(places(), N, X.nnz)
    return found


def coupled_stream():
    empty = core.Layout32()
    empty.begin_rows(places(), 0, 0)
    return core.Coupled32(empty, Y[:0], C[:0], K, "ww", 0.5, False)


def dual_rows(which="good"):
    n, k = (N - 1, K) if which == "fewer" else (N, K + 1)
    classes = OTHERS[:n] + (which == "others")
    return core.DualRows32(LABEL_PTR[: n + 1], classes, HALF[:n], k)


def as_given(value):
    """Create native objects when they are needed."""
    if not isinstance(value, str):
        return value
    return places() if value == "places" else dual_rows(value)


@pytest.mark.parametrize("name", CALLS)
def test_what_does_not_hold_is_refused(name):
    call, arguments = CALLS[name]
    good = [as_given(value) for value, _ in arguments.values()]
    call()(*good)
    for place, (argument, (value, wrong)) in enumerate(arguments.items()):
        for number, bad in enumerate(wrong(value)):
            given = [*good]
            given[place] = as_given(bad)
            try:
                call()(*given)
            except ValueError:
                continue
            pytest.fail(f"{name} takes {argument} number {number}: {bad!r}")


def test_indices_that_need_64_bits_do_not_go_into_32():
    wide = core.RowParserFloat32(n_features=-1, zero_based=-1, multilabel=-1, allow_nonfinite=False, xmc=False)
    assert wide.feed(np.frombuffer(b"1 9999999999:2\n", np.uint8)) is None
    with pytest.raises(ValueError, match="64 bits"):
        wide.take_written_indices(np.empty(1, np.int32))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_states_without_a_bound_are_still_numbers(loss):
    rows, lanes = np.arange(N, dtype=np.int32), np.ones(N, np.uint16)
    for value in (np.nan, np.inf, -np.inf) + (() if loss == "logistic" else (-1.0,)):
        with pytest.raises(ValueError, match="values"):
            stream(loss).set_variables(0, N, np.array([N]), rows, lanes, changed(HALF, 5, value))
    stream(loss).set_variables(0, N, np.array([N]), rows, lanes, changed(HALF, 5, 1e6))


def test_a_row_has_no_variables_in_pairs_that_it_is_not_of():
    rows, lanes = np.arange(N, dtype=np.int32), np.ones(N, np.uint16)
    with pytest.raises(ValueError, match="takes no part"):
        blocks(pairs=True).set_variables([0], np.array([N]), rows, lanes, HALF)


def test_a_layout_that_was_taken_has_no_rows():
    taken = layout()
    core.Coupled32(taken, Y, C, K, "ww", 0.5, False)
    with pytest.raises(ValueError, match="labels"):
        core.Coupled32(taken, Y, C, K, "ww", 0.5, False)


def train_labels(solver):
    numbers = iter(range(solver.blocks))
    _, found = solver.train(lambda: next(numbers, -1), True, 0.01, 100, 0, 1, core.Interrupt())
    return np.asarray(found)


def test_labels_can_be_trained_on_a_part_of_longer_arrays():
    before = np.full(7, D + 10**6, np.int32)  # of rows that are not passed, so any values will do
    part = INDPTR + before.size, np.append(before, INDICES), np.append(before.astype(np.float32), VALUES)
    np.testing.assert_array_equal(train_labels(labels(rows=part)), train_labels(labels()))


def test_labels_keep_the_rows_that_they_read_in_place():
    solver = labels(rows=tuple(array.copy() for array in (INDPTR, INDICES, VALUES)))
    np.testing.assert_array_equal(train_labels(solver), train_labels(labels()))
    with pytest.raises(TypeError):
        labels(rows=(INDPTR.astype(np.int32), INDICES, VALUES))  # a converted copy would not outlive the call
