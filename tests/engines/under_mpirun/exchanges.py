"""How ranks share work and exchange messages."""

import time
from unittest.mock import patch

import numpy as np
from losses import text_like

from manyclass.peers import courier, peers_of
from manyclass.solvers import L2Blocks, l2_blocks

from .fits import digest, fit, uneven


def one_is_late(folder, engine, late):
    """Hold one rank at its first block until the others have taken the rest; return the blocks of each rank."""
    peers, plain, mine = peers_of(engine), L2Blocks._deal, []

    def wait_for(count):
        end = time.monotonic() + 30
        while len(list(folder.iterdir())) < count and time.monotonic() < end:
            time.sleep(0.001)

    def noted(self):
        deal = plain(self)

        def take():
            if peers.rank != late and not mine:
                wait_for(1)  # leave a block for the late rank
            block = deal()
            if block >= 0:
                mine.append(block)
                (folder / str(block)).touch()
                if peers.rank == late:
                    wait_for(self.blocks)
            return block

        return take

    folder.mkdir(exist_ok=True)
    with patch.object(l2_blocks, "SECONDS_AT_ONCE", 60.0), patch.object(L2Blocks, "_deal", noted):
        fitted = fit("ppd_hinge", engine, *text_like(150, 100, 100))
    return peers.gather(mine), digest(fitted)


def numbers_of_all(engine):
    """Share out numbers in several turns without synchronising, leaving some unclaimed; return those of each turn."""
    peers = peers_of(engine)
    found = []
    for count in (0, 1, 1000, 7):
        found.append(list(peers.share_out(count)))
        next(peers.share_out(5), None)
    return [
        sorted(number for of_rank in turn for number in of_rank) for turn in zip(*peers.gather(found), strict=True)
    ]


def a_late_rank(folder, engine):
    """Delay rank 0, which assigns the blocks, and then the last rank."""
    peers = peers_of(engine)
    if peers.size == 1:
        return []
    return [one_is_late(folder.with_name(f"{folder.name}-{late}"), engine, late) for late in (0, peers.size - 1)]


def messages_of_a_different_rank(engine):
    """Return the error that each rank gets if the last one has a different value in its rows."""
    peers = peers_of(engine)
    X, y = uneven()
    if peers.rank == peers.size - 1:
        X.data[0] *= 1.001
    try:
        fit("hinge", engine, X, y)
    except ValueError as error:
        return str(error)


def in_pieces(engine):
    """Gather and send messages of any number of pieces; return whether they arrived intact."""
    peers = peers_of(engine)
    rng = np.random.default_rng(peers.rank)
    with patch.object(courier, "PIECE", 300):
        values = [rng.random(size) for size in (0, 1, 10 * peers.rank, 1000)]
        gathered = peers.gather(values)
        good = all(np.array_equal(one, two) for one, two in zip(gathered[peers.rank], values, strict=True))
        after, before = (peers.rank + 1) % peers.size, (peers.rank - 1) % peers.size
        if peers.size > 1:
            for tag, value in enumerate([*values, *values]):
                peers.send(after, tag % len(values), value.view(np.uint8))
            for tag in [3, 2, 1, 0, 0, 1, 2, 3]:
                good &= np.array_equal(peers.receive(before, tag).view(np.float64), gathered[before][tag])
        peers.gather(None)  # no rank may return to large pieces while another still sends small ones
        model = digest(fit("ww", engine, *uneven(), solver="leagues", leagues=7))
        peers.gather(None)
    return good, model
