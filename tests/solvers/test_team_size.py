"""A team shrinks only when its threads wait for each other and a smaller one is faster, and grows back."""

from manyclass.solvers.team_size import TeamSize


def work(team, speed_of, asleep_share, pieces):
    """Let a team do pieces of one unit of work on a machine with these speeds; return the sizes it used."""
    used = []
    for _ in range(pieces):
        used.append(team.threads)
        seconds = 1 / speed_of[team.threads]
        team.learn(1.0, seconds, asleep_share * seconds * team.threads if team.threads > 1 else 0.0)
    return used


def test_a_quiet_machine_keeps_the_full_team():
    assert set(work(TeamSize(4), {4: 3.5, 2: 1.9, 1: 1.0}, 0.05, 50)) == {4}


def test_a_busy_machine_gets_fewer_threads():
    used = work(TeamSize(2), {2: 0.5, 1: 1.0}, 0.5, 60)
    assert used.count(1) > 50


def test_waiting_threads_alone_do_not_shrink_the_team_for_long():
    used = work(TeamSize(2), {2: 1.5, 1: 1.0}, 0.3, 60)
    assert used.count(2) > 50


def test_the_full_team_comes_back_when_cores_are_free_again():
    team = TeamSize(2)
    work(team, {2: 0.5, 1: 1.0}, 0.5, 30)
    assert work(team, {2: 1.9, 1: 1.0}, 0.0, 30)[-10:] == [2] * 10


def test_another_team_is_tried_on_a_small_piece():
    team = TeamSize(2)
    team.learn(1.0, 2.0, 2.0)
    assert (team.threads, team.share < 0.5) == (1, True)
    team.learn(team.share, team.share * 1.0, 0.0)
    assert (team.threads, team.share) == (1, 1.0)
