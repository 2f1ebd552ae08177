"""Variants that repeat, and whether their digest compares as it must with another's."""
import pytest

from service import BUILD

pytestmark = pytest.mark.flavour


def test_a_checkpoint_that_lacks_a_part_is_seen_to_differ(start_service):
    service = start_service(worker=BUILD / "reprod-worker")
    service.finish_job(service.post_job(workloads=["checkpoint_resume"], runs=2, iterations=2))
    shown = {each["variant"]: each["relation"] for each in service.get("/v1/matrix")["variants"]}
    assert shown.pop("unordered") is None and shown.pop("ordered") is None
    case = {"size": "small", "dtype": "float32", "seed": "1"}
    assert shown.pop("resumed") == {"variant": "ordered", "expected": "equal", "seen": "equal",
                                    "case": case}
    assert len(shown) == 6
    for name, relation in shown.items():
        assert relation == {"variant": "ordered", "expected": "different", "seen": "different",
                            "case": case}, name
    text = service.get("/v1/matrix.txt")
    assert text.count("differs from ordered, as it must") == 6
    assert text.count("equals ordered, as it must") == 1


def test_what_was_not_measured_is_not_claimed(start_service):
    service = start_service(worker=BUILD / "reprod-worker")
    service.finish_job(service.post_job(workloads=["checkpoint_resume"], variants=["no_rng"],
                                        runs=2, iterations=2))
    (shown,) = service.get("/v1/matrix")["variants"]
    assert shown["relation"] == {"variant": "ordered", "expected": "different", "seen": None,
                                 "case": None}
    assert "must differ from ordered: not known yet" in service.get("/v1/matrix.txt")
