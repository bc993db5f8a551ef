"""Draw docs/images/matchdays.svg: eight leagues on two ranks, from one matchday to the next."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from manyclass.solvers.schedule import hosts, matchday, matchdays, places, positions

LEAGUES, RANKS = 8, 2
BANDS = ("#dcebf7", "#fbe6d4")  # background of the matches of ranks 0 and 1
TRAVELS = ("#1f6fb2", "#b5541c")  # leagues that leave ranks 0 and 1
STAYS = "#a8a8a8"
DAY, BOX = 2.2, (1.2, 0.52)  # the distance of positions is 1


def position(league: int, day: int) -> int:
    return int(places(LEAGUES, day % matchdays(LEAGUES))[league])


def rank(league: int, day: int) -> int:
    return int(hosts(LEAGUES, day % matchdays(LEAGUES), RANKS)[league])


def draw_ranks(axes: Axes, left: float, right: float) -> None:
    """Draw the positions of each rank as a band behind its matches."""
    for worker in range(RANKS):
        rows = sorted({position(league, 0) for league in range(LEAGUES) if rank(league, 0) == worker})
        bottom, top = -rows[-1] - 0.5, -rows[0] + 0.5
        axes.fill_between([left, right], bottom, top, color=BANDS[worker], lw=0)
        axes.text(left - 1.75, (bottom + top) / 2, f"rank {worker}", ha="center", va="center", rotation=90)
        for p in rows:
            axes.text(left - 0.15, -p, f"position {p}", ha="right", va="center", size=9, color="#555555")


def draw_moves(axes: Axes, day: int) -> None:
    """Draw arrows from the leagues of a day to where they are on the next; those that change ranks travel."""
    for league in range(LEAGUES):
        begin = DAY * day + BOX[0] / 2, -position(league, day)
        end = DAY * (day + 1) - BOX[0] / 2, -position(league, day + 1)
        travels = rank(league, day) != rank(league, day + 1)
        axes.add_patch(
            FancyArrowPatch(
                begin,
                end,
                arrowstyle="-|>",
                mutation_scale=13 if travels else 8,
                lw=2.2 if travels else 0.9,
                color=TRAVELS[rank(league, day)] if travels else STAYS,
                shrinkA=1,
                shrinkB=1,
                zorder=3 if travels else 1,
            )
        )


def draw_matches(axes: Axes, day: int, alpha: float) -> None:
    """Draw the matches of a day; leagues that travel after it have the colour of their arrows."""
    for match in matchday(LEAGUES, day % matchdays(LEAGUES)):
        x, y = DAY * day, -match.position
        corner = x - BOX[0] / 2, y - BOX[1] / 2
        shape = f"round,pad=0,rounding_size={BOX[1] / 2}"
        axes.add_patch(
            FancyBboxPatch(corner, *BOX, boxstyle=shape, fc="white", ec="#555555", lw=0.9, alpha=alpha, zorder=2)
        )
        for league, aside in ((match.first, -0.3), (match.second, 0.3)):
            travels = alpha == 1 and rank(league, day) != rank(league, day + 1)
            style = {"color": TRAVELS[rank(league, day)], "weight": "bold"} if travels else {"alpha": alpha}
            axes.text(x + aside, y, str(league), ha="center", va="center_baseline", zorder=4, **style)
        axes.text(x, y, "–", ha="center", va="center_baseline", color="#999999", alpha=alpha, zorder=4)


def main(target: Path) -> None:
    """Draw the picture and write it to a file."""
    # Reproducible bytes, and text instead of outlines.
    plt.rcParams |= {"svg.hashsalt": "matchdays", "svg.fonttype": "none", "font.size": 12}
    days = matchdays(LEAGUES)
    left, right = -0.45 * DAY, (days + 0.45) * DAY
    figure, axes = plt.subplots(figsize=(12, 3.5))
    draw_ranks(axes, left, right)
    for day in range(days):
        draw_moves(axes, day)
        draw_matches(axes, day, alpha=1)
        axes.text(DAY * day, 0.62, f"day {day}", ha="center", va="bottom", size=10)
    draw_matches(axes, days, alpha=0.35)
    axes.text(DAY * days, 0.62, "day 0 of the\nnext pass", ha="center", va="bottom", size=10, color="#777777")
    axes.set(xlim=(left - 2.1, right), ylim=(-positions(LEAGUES) + 0.45, 1.35), aspect="equal")
    axes.axis("off")
    target.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if target.suffix == ".svg" else None
    figure.savefig(target, bbox_inches="tight", pad_inches=0.05, dpi=110, metadata=metadata)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "images" / "matchdays.svg")
