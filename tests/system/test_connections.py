"""Clients that keep silent, leave, or take nothing: others are served, and their places come back."""
import contextlib
import resource
import socket

import pytest

from service import LIMIT

pytestmark = pytest.mark.flavour

HOST = b"Host: localhost\r\n"
STREAM = b"GET /v1/events HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST /v1/jobs HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
BEGUN = {"nothing": b"", "a part of a line": b"GET /healthz HT", "a part of a head": b"GET /healthz HTTP/1.1\r\nHo",
         "a part of a body": POST + b"Content-Length: 100\r\n\r\n{", "a part of a chunk":
         POST + b"Transfer-Encoding: chunked\r\n\r\n10\r\n{", "all": b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"}


@pytest.fixture(autouse=True)
def descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def metric(service, name):
    [line] = [line for line in service.get("/metrics").splitlines() if line.startswith(f"reprod_{name} ")]
    return int(line.split()[1])


def connect(service, stack, data, count, receive=None):
    """COUNT clients that say DATA."""
    found = []
    for _ in range(count):
        connection = stack.enter_context(socket.socket())
        if receive:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        connection.settimeout(LIMIT)
        connection.connect(("127.0.0.1", service.port))
        connection.sendall(data)
        found.append(connection)
    return found


@pytest.mark.parametrize("how", ["close", "no more"])
@pytest.mark.parametrize("begun", BEGUN)
def test_clients_that_leave_in_the_middle_leave_their_places(start_service, begun, how):
    """At once: nobody had to make room for others, and no deadline passed."""
    service = start_service()
    with contextlib.ExitStack() as stack:
        for connection in connect(service, stack, BEGUN[begun], 300):
            connection.close() if how == "close" else connection.shutdown(socket.SHUT_WR)
        service.wait(lambda: metric(service, "http_connections") == 1, "the places")
        assert metric(service, "http_connections_overdue_total") == 0
        assert metric(service, "http_connections_ended_total") == 0


def test_listeners_that_leave(start_service):
    """Also one that says that it sends no more, to which heartbeats could be sent for ever."""
    service = start_service()
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            listeners = connect(service, stack, STREAM, 30)
            for connection in listeners:
                assert connection.recv(15) == b"HTTP/1.1 200 OK"
            assert metric(service, "event_streams") == 30
            for connection in listeners[:15]:
                connection.shutdown(socket.SHUT_WR)
            service.wait(lambda: metric(service, "event_streams") == 15, "the half")
            for connection in listeners[15:]:
                connection.close()
            service.wait(lambda: metric(service, "event_streams") == 0, "the rest")


def test_so_many_listeners(start_service):
    """However many come at a time."""
    service = start_service()
    with contextlib.ExitStack() as stack:
        answers = [connection.recv(12) for connection in connect(service, stack, STREAM, 200)]
        assert answers.count(b"HTTP/1.1 200") == 64 == metric(service, "event_streams")
        assert answers.count(b"HTTP/1.1 503") == 200 - 64


def test_clients_that_take_no_reply_make_room(start_service):
    service = start_service(config={"connection_limit": 16})
    many = 40 * (b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n")
    with contextlib.ExitStack() as stack:
        connect(service, stack, many, 200, receive=4096)
        for _ in range(20):
            assert service.get("/healthz")["status"] == "ok"
        assert metric(service, "http_connections_ended_total") > 0
        assert metric(service, "http_connections_overdue_total") == 0


@pytest.mark.parametrize("begun", BEGUN)
def test_new_clients_beside_a_thousand(start_service, begun):
    """Each is served while all the others stay as they are."""
    service = start_service()
    with contextlib.ExitStack() as stack:
        connect(service, stack, BEGUN[begun], 1000)
        for _ in range(50):
            assert service.get("/healthz")["status"] == "ok"
            assert service.get("/v1/jobs")["items"] == []
        assert metric(service, "http_connections_overdue_total") == 0
