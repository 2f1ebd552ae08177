"""Real Prometheus and Alertmanager, with the rules of deploy/prometheus, on the real service."""
import contextlib
import time

import pytest

from prometheus import ALERTMANAGER, MISSING, PROMETHEUS, Site, free_port, wait
from test_metrics import Tiny

pytestmark = [pytest.mark.long, pytest.mark.skipif(not (PROMETHEUS and ALERTMANAGER), reason=MISSING)]


# What a machine may fire that takes a minute to start a service.
SLOW = {"ReprodDown", "ReprodNotReady"}


@pytest.fixture
def watched(tmp_path):
    host = Tiny(tmp_path)
    for _ in range(5):
        host.service.options = ["--no-survey", "--listen", f"127.0.0.1:{free_port()}"]
        try:
            host.start()
            break
        except AssertionError:
            continue
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: host.service.process and host.service.stop())
        host.site = Site(tmp_path, host.service.port)
        stack.callback(host.site.close)
        wait(lambda: host.site.query('up{job="reprod"} == 1'), "a scrape")
        yield host


def firing(host):
    return set(host.site.firing()) - SLOW


def restart(host, version, start):
    """With another version of the framework, whose sums begin with START."""
    assert host.service.stop() == 0
    host.begin_with(start)
    host.install(version)
    host.start()


def measured(host, name=None, status="firing"):
    """Measures, and returns alert NAME as the webhook was told it since; it may come before the last run ended."""
    since = time.monotonic()
    host.measure()
    if not name:
        return None
    ended = time.monotonic()
    when, alert = wait(lambda: host.site.told.find(name, status, since), f"{name} {status} at the webhook")
    print(f"\n{name} {status} at the webhook {when - since:.1f} s after the job was posted, {when - ended:.1f} s after it ended")
    return alert


def test_planted_digests_alert_until_they_are_cured(watched):
    host, service = watched, watched.service
    instance = f"127.0.0.1:{service.port}"
    measured(host)
    wait(lambda: host.site.query('reprod_cells{verdict="reproducible"} == 1'), "its figures")
    host.site.evaluated()
    assert firing(host) == set() and host.site.told.alerts == [], "a healthy service"

    # The same environment gives other bits.
    host.begin_with("1e-9")
    alert = measured(host, "ReprodCaseRegressed")
    cell = service.items("/v1/runs?variant=deterministic")[0]["cell"]
    [environment] = service.get("/v1/environments")["items"]
    assert alert["labels"] == {
        "alertname": "ReprodCaseRegressed", "severity": "critical", "job": "reprod", "instance": instance,
        "cell": str(cell), "workload": "tiny_total", "variant": "deterministic", "size": "small", "dtype": "float32",
        "seed": "1", "environment": environment["id"], "verdict": "varies"}
    assert alert["annotations"]["summary"] == "tiny_total deterministic no longer gives the bits it gave: varies"
    assert f"http://{instance}/?evidence={cell}" in alert["annotations"]["description"]

    # Away it is not cured, nor back again.
    since = time.monotonic()
    service.kill()
    wait(lambda: host.site.query('up{job="reprod"} == 0'), "that it is missed")
    host.site.evaluated()
    assert firing(host) == {"ReprodCaseRegressed"}
    host.start()
    wait(lambda: host.site.query('up{job="reprod"} == 1'), "that it is back")
    host.site.evaluated()
    assert firing(host) == {"ReprodCaseRegressed"}
    assert not host.site.told.find("ReprodCaseRegressed", "resolved", since)
    restart(host, "2.0", "0.0")
    resolved = measured(host, "ReprodCaseRegressed", "resolved")
    assert resolved["labels"] == alert["labels"]

    # A version with other bits; the one before has them again.
    restart(host, "3.0", "1e-9")
    alert = measured(host, "ReprodBitsChanged")
    [name] = [each["name"] for each in service.get("/v1/hosts")["items"]]
    assert alert["labels"] == {"alertname": "ReprodBitsChanged", "severity": "warning", "job": "reprod",
                               "instance": instance, "host": name, "kind": "bits_changed"}
    [(case, _)] = host.site.query("reprod_drift_case_info")
    assert (case["workload"], case["variant"], case["kind"]) == ("tiny_total", "deterministic", "bits_changed")
    restart(host, "2.0", "0.0")
    measured(host, "ReprodBitsChanged", "resolved")
    host.site.evaluated()
    assert firing(host) == set()
    told = {alert["labels"]["alertname"] for _, alert in host.site.told.alerts}
    assert told - SLOW == {"ReprodCaseRegressed", "ReprodBitsChanged"}
