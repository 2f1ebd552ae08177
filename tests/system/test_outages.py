"""The short form of make outages: everybody is killed, and all becomes consistent by itself."""
import pathlib
import random
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / name) for name in ("outages", "reliability")]
import outage_campaign as campaign  # noqa: E402
from outage_victims import OF_SLURM, WEIGHTS  # noqa: E402


@pytest.mark.long
def test_everybody_is_killed(tmp_path):
    found = campaign.Chapter(tmp_path / "world", 1, 0, 10).run()
    assert sum(found["kills"].values()) == 10 and found["kills"]["service"] and found["runs"]


def test_kills_are_drawn_from_their_seed():
    def drawn(seed, with_slurm=True):
        return campaign.plan(random.Random(seed), 50, with_slurm)
    assert drawn(1) == drawn(1) != drawn(2)
    assert {kind for kill in drawn(1) for kind in kill.kinds} == set(WEIGHTS)
    assert not {kind for kill in drawn(1, with_slurm=False) for kind in kill.kinds} & set(OF_SLURM)
