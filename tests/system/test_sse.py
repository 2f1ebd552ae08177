"""The event stream of the running service."""
import http.client
import json
import socket

import pytest

pytestmark = pytest.mark.flavour


class Listener:
    """One client of /v1/events; next() gives {id, event, data}."""

    def __init__(self, service, last=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        self.connection.request("GET", "/v1/events", headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        assert self.answer.getheader("Content-Type") == "text/event-stream"
        self.last = None

    def next(self):
        fields = {}
        while True:
            line = self.answer.readline().decode()
            assert line, "the stream ended"
            line = line.rstrip("\n")
            if line.startswith(":"):
                fields.setdefault("comment", line[1:].strip())
            elif line:
                name, value = line.split(": ", 1)
                fields[name] = value
            elif fields:
                if "id" in fields:
                    self.last = int(fields["id"])
                return fields

    def event(self):
        """The next that is an event."""
        while "event" not in (fields := self.next()):
            pass
        return int(fields["id"]), fields["event"], json.loads(fields["data"])

    def until_finished(self, job):
        seen = []
        while True:
            seen.append(self.event())
            _, kind, data = seen[-1]
            if kind == "job" and data["id"] == job and data["state"] == "finished":
                return seen

    def close(self):
        self.connection.close()


def run_a_job(service, runs=2):
    return service.post_job(workloads=["selftest_pass"], runs=runs, iterations=2)


def test_a_job_is_told_from_start_to_end(service):
    listener = Listener(service)
    first = listener.next()
    assert first["retry"] == "2000" and "event" not in first
    job = run_a_job(service)
    events = listener.until_finished(job)
    listener.close()
    assert {kind for _, kind, _ in events} >= {"job", "run"}
    ids = [number for number, _, _ in events]
    assert ids == list(range(int(first["id"]) + 1, int(first["id"]) + 1 + len(ids)))


def test_what_was_missed_comes_first(service):
    listener = Listener(service)
    start = int(listener.next()["id"])
    job = run_a_job(service)
    all_events = listener.until_finished(job)
    listener.close()
    middle = all_events[len(all_events) // 2][0]
    again = Listener(service, last=middle)
    assert int(again.next()["id"]) == middle
    assert again.until_finished(job) == [e for e in all_events if e[0] > middle]
    again.close()
    whole = Listener(service, last=start)
    assert whole.until_finished(job) == all_events
    whole.close()


def test_listeners_agree(service):
    """Those that were there all the time and those that join in the middle: no gap, no double."""
    listeners = [Listener(service) for _ in range(5)]
    job = run_a_job(service, runs=10)
    late = [Listener(service) for _ in range(5)]
    joined = [int(each.next()["id"]) for each in late]
    full = [each.until_finished(job) for each in listeners]
    assert all(events == full[0] for events in full)
    for first, each in zip(joined, late):
        if first < full[0][-1][0]:
            assert each.until_finished(job) == [e for e in full[0] if e[0] > first]
    for each in listeners + late:
        each.close()


def test_an_unknown_past_asks_to_read_anew(service):
    listener = Listener(service, last=10**12)
    number, kind, data = listener.event()
    assert (kind, data) == ("reset", {})
    assert number < 10**12
    listener.close()


def test_last_event_id_must_be_a_number(service):
    for value in ("x", "-1", "1x", "99999999999999999999"):
        status, _, problem = service.request("GET", "/v1/events",
                                             headers={"Last-Event-ID": value})
        assert (status, problem["type"]) == (400, "/problems/bad-request")


def test_listeners_are_bounded_and_leave_no_trace(start_service):
    service = start_service()
    sockets = []
    for _ in range(64):
        connection = socket.create_connection(("127.0.0.1", service.port), 30)
        connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        data = b""
        while b"\n\n" not in data:
            data += connection.recv(4096)
        sockets.append(connection)
    status, headers, problem = service.request("GET", "/v1/events")
    assert (status, problem["type"]) == (503, "/problems/busy")
    assert int(headers["Retry-After"]) >= 1
    for connection in sockets:
        connection.close()
    # Writing to them is how the server notices; events are written.
    service.finish_job(run_a_job(service, runs=5))
    service.wait(lambda: "reprod_event_streams 0" in service.get("/metrics")
                 or service.post_job(workloads=["selftest_pass"], runs=1) and False,
                 "the listeners that left are forgotten")
    listener = Listener(service)
    listener.close()


def test_a_listener_that_does_not_read_harms_nobody(service):
    deaf = socket.create_connection(("127.0.0.1", service.port), 30)
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    listener = Listener(service)
    job = run_a_job(service, runs=10)
    assert listener.until_finished(job)
    listener.close()
    deaf.close()


def test_head_is_not_a_listener(service):
    status, headers, body = service.request("HEAD", "/v1/events")
    assert (status, body) == (200, "")
    assert headers["Content-Type"] == "text/event-stream"


def test_streams_end_when_the_service_stops(start_service):
    service = start_service()
    listener = Listener(service)
    listener.next()
    assert service.stop() == 0
    assert listener.answer.readline() == b""
    listener.close()


@pytest.mark.long
def test_a_comment_keeps_the_stream_alive(service):
    listener = Listener(service)
    while "comment" not in listener.next():
        pass
    listener.close()
