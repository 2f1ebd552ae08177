"""Fixtures: the real service on a free port, with a data folder of its own."""
import pytest

from service import SELFTEST_WORKER, Service


@pytest.fixture
def start_service(tmp_path):
    """A function that starts a service (arguments of Service, without the folder); all are
    stopped at the end, and must exit cleanly."""
    started = []

    def start(worker=SELFTEST_WORKER, options=("--no-survey",), **arguments):
        service = Service(tmp_path / f"service{len(started)}", worker=worker,
                          options=options, **arguments)
        started.append(service)
        return service.start()

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
