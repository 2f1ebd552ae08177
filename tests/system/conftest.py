"""Fixtures: the real service on a free port, with a data folder of its own; workers of an
agent."""
import os

import pytest

from agent import Agent, write_script
from service import SELFTEST_WORKER, Service


# Files of everyday tests that take longest.  A file's tests run one after the other.
LONGEST = ["agent", "cudasim", "integrity", "screening", "compared", "selftests", "agent_ends", "page", "schedules", "changes",
           "frameworks_page", "live", "faults", "drift_devices", "durability", "campaign", "gate", "metrics", "health",
           "cudnn_calls"]


def rank(item):
    name = item.path.stem[len("test_"):]
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


@pytest.hookimpl(trylast=True)  # after those that were deselected are gone
def pytest_collection_modifyitems(items):
    """What takes longest begins first: at the end, everybody else would wait for it."""
    items.sort(key=rank)
    first = [item for item in items if item.get_closest_marker("first")]
    rest = [item for item in items if not item.get_closest_marker("first")]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    room = max(len(items) // workers // 4, 2)  # what xdist gives each of them to begin with
    items[:] = []
    for worker in range(workers):
        mine = first[worker::workers]
        items += mine + rest[:max(room - len(mine), 0)]
        del rest[:max(room - len(mine), 0)]
    items += rest


@pytest.fixture
def start_service(tmp_path):
    """A function that starts a service (arguments of Service, without the folder); all are
    stopped at the end, and must exit cleanly."""
    started = []

    def start(worker=SELFTEST_WORKER, options=("--no-survey",), ready=True, **arguments):
        service = Service(tmp_path / f"service{len(started)}", worker=worker,
                          options=options, **arguments)
        started.append(service)
        return service.start(ready)

    yield start
    for service in started:
        if service.process is not None:
            assert service.stop() == 0, service.log.read_text()[-3000:]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """One service with the self-test workloads for a whole file of tests."""
    shared = Service(tmp_path_factory.mktemp("service"), worker=SELFTEST_WORKER,
                     options=["--no-survey"])
    shared.start()
    yield shared
    assert shared.stop() == 0, shared.log.read_text()[-3000:]


@pytest.fixture
def script(tmp_path):
    """A function that writes a worker for an agent (arguments of write_script, without the
    path)."""
    def make(*arguments, name="worker", **options):
        return write_script(tmp_path / name, *arguments, **options)
    return make


@pytest.fixture
def run_one(script):
    """A function that runs one script as the only run of an agent; returns until_exit, all
    is gone."""
    def run(body, **command):
        with Agent(("s", script(body))) as agent:
            agent.hello()
            agent.run(**command)
            result = agent.until_exit()
            agent.wait_gone()
            assert agent.close() == 0
            return result
    return run
