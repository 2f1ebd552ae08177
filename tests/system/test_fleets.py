"""The short form of make fleets, and whether it notices what is not true."""
import dataclasses
import sys

import pytest

from service import ROOT

sys.path.insert(0, str(ROOT / "tests" / "fleets"))
sys.path.insert(0, str(ROOT / "tests" / "reliability"))
import fleet_campaign as campaign  # noqa: E402
import fleet_judge as judge  # noqa: E402
import fleet_kinds as kinds  # noqa: E402
import fleet_truths as truths  # noqa: E402

FLEETS = {"fake agents": 17, "external workloads": 8, "simulated devices": 8}


def lies(truth):
    """What is not true of a fleet, in some ways."""
    healthy = [device for device in truth.devices if device not in truth.wrong]
    if truth.what in truths.WRONG:
        yield dataclasses.replace(truth, what="nothing wrong", wrong={})
        yield dataclasses.replace(truth, wrong={healthy[0]: set(truths.VARIANTS)})
        [(wrong, variants)] = truth.wrong.items()
        yield dataclasses.replace(truth, wrong={wrong: set(truths.VARIANTS[:1] if len(variants) == 2 else truths.VARIANTS)})
        yield dataclasses.replace(truth, another=not truth.another)
    elif not truth.wrong:
        yield dataclasses.replace(truth, what=truths.WRONG[0], wrong={healthy[0]: {"ordered"}})


def noticed_everywhere(failed):
    """A device that is not named, or named and healthy, is noticed in each place that it is looked for."""
    return all(any(place in text for text in failed) for place in (
        "the named", "in /v1/devices", "in /metrics", "screening of", "screened events", "/v1/devices/", "/v1/findings",
        "dissent events", "in view=devices"))


@pytest.mark.long
@pytest.mark.parametrize("kind", FLEETS)
def test_one_wrong_device_of_eight_is_named_in_seeded_fleets(kind, tmp_path):
    if kind == "simulated devices" and not kinds.SIMULATED.exists():
        pytest.skip("this flavour has no simulator")
    fleets = truths.fleets(1, FLEETS[kind], kinds.KINDS[kind][1])
    answers, found, _ = campaign.measure(kind, fleets, tmp_path)
    assert {number: failed for number, failed in found.items() if failed} == {}
    for fleet in fleets:
        for lie in lies(fleet):
            assert judge.failures(answers, lie), (fleet, lie)
        if fleet.what in truths.WRONG:
            healthy = next(device for device in fleet.devices if device not in fleet.wrong)
            failed = judge.failures(answers, dataclasses.replace(fleet, another=False, wrong={healthy: set(truths.VARIANTS)}))
            assert noticed_everywhere(failed), failed
    assert judge.joint_failures(answers, fleets[1:])


def test_fleets_are_drawn_from_their_seed():
    assert truths.fleets(1, 30, "GPU-") == truths.fleets(1, 30, "GPU-") != truths.fleets(2, 30, "GPU-")
    drawn = truths.fleets(1, 60, "GPU-")
    assert {fleet.what for fleet in drawn} == {*truths.WRONG, *truths.CONTROLS}
    for fleet in drawn:
        assert len(set(fleet.devices)) == truths.DEVICES
        assert len(fleet.wrong) == (1 if fleet.what in truths.WRONG else 4 if "half" in fleet.what else 0)
    assert len({device for fleet in drawn for device in fleet.devices}) == truths.DEVICES * len(drawn)
