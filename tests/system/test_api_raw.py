"""What is no request gets one problem, or a connection that ends: never what the library says by
itself.  However the bytes are divided."""
import contextlib
import re
import socket

import pytest

from service import LIMIT

pytestmark = pytest.mark.flavour

HOST = b"Host: localhost\r\n"
GET = b"GET /healthz HTTP/1.1\r\n" + HOST
POST = b"POST /v1/jobs HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
LARGE = b"X: " + 17000 * b"a" + b"\r\n"

# What is sent, and the status that it gets; None: it need not get any.
BAD = {
    "no version": (b"GET /healthz\r\n\r\n", 400),
    "a method alone": (b"GET\r\n\r\n", None),
    "no such version": (b"GET /healthz HTTP/9.9\r\n" + HOST + b"\r\n", 505),
    "a version in small letters": (b"GET /healthz http/1.1\r\n" + HOST + b"\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    "a bad length": (POST + b"Content-Length: 1e3\r\n\r\n{}", 400),
    "a negative length": (POST + b"Content-Length: -1\r\n\r\n{}", 400),
    "no length": (POST + b"Content-Length:\r\n\r\n{}", 400),
    "a huge length": (POST + b"Content-Length: 99999999999999999999999\r\n\r\n{}", 413),
    "a blank before the colon": (POST + b"Content-Length : 2\r\n\r\n{}", 400),
    "two lengths": (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    "a length and chunks": (POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "no chunk": (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", None),
    "a chunk's size that ends with LF": (CHUNKED + b"2\n[]\r\n0\r\n\r\n", 400),
    "a second chunk's size that does": (CHUNKED + b"1\r\n[\r\n1\n]\r\n0\r\n\r\n", 400),
    "the last chunk's size that does": (CHUNKED + b"2\r\n[]\r\n0\n\r\n", 400),
    "an extension of a chunk that does": (CHUNKED + b"2;a=b\n[]\r\n0\r\n\r\n", 400),
    "a chunk that does": (CHUNKED + b"2\r\n[]\n0\r\n\r\n", 400),
    "chunks that do": (CHUNKED + b"2\r\n[]\r\n0\r\n\n", 400),
    "a line behind chunks that does": (CHUNKED + b"2\r\n[]\r\n0\r\nX: a\n\r\n", 400),
    "a blank before the colon behind chunks": (CHUNKED + b"2\r\n[]\r\n0\r\nX : a\r\n\r\n", 400),
    "a line behind chunks that goes on": (CHUNKED + b"2\r\n[]\r\n0\r\nX: a\r\n b\r\n\r\n", 400),
    "a CR in an extension": (CHUNKED + b"2;a\rb\r\n[]\r\n0\r\n\r\n", None),
    "two keys": (POST + b"Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 2\r\n\r\n{}", 400),
    "line feeds alone": (b"GET /healthz HTTP/1.1\nHost: localhost\n\n", 400),
    "a line that goes on": (GET + b"X: a\r\n b\r\n\r\n", 400),
    "a NUL": (GET + b"X: a\0b\r\n\r\n", 400),
    "a header without a colon": (GET + b"nothing\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", None),
}
TOO_LARGE = {"a header": GET + LARGE + b"\r\n", "a target": b"GET /" + 17000 * b"a" + b" HTTP/1.1\r\n" + HOST + b"\r\n",
             "headers": GET + 5000 * b"X: y\r\n" + b"\r\n"}


def ask(service, *parts):
    """Everything that comes back."""
    answer = b""
    with socket.create_connection(("127.0.0.1", service.port), LIMIT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):  # it was ended before it had said all
            for part in parts:
                connection.sendall(part)
            connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            while chunk := connection.recv(65536):
                answer += chunk
    return answer


def check(answer, status):
    if answer or status:
        head, _, body = answer.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        names = [line.partition(":")[0].lower() for line in lines[1:]]
        assert lines[0].startswith("HTTP/1.1 ") and len(names) == len(set(names)), head
        assert "Content-Type: application/problem+json" in lines and b"<html" not in body.lower(), answer
        assert f"Content-Length: {len(body)}" in lines, answer
        assert not status or lines[0].split()[1] == str(status), answer


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_request(service, name):
    data, status = BAD[name]
    check(ask(service, data), status)
    for i in range(1, len(data)):
        # Once it has sent enough to be refused, it may see no more than the end.
        check(ask(service, data[:i], data[i:]), None)
    assert service.get("/healthz")["status"] == "ok"


GOOD = CHUNKED + b"1;a=\"b\"\r\n[\r\n00001\r\n]\r\n000\r\nX: a\r\n\r\n"


def statuses(answer):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", answer)]


def test_chunks_as_they_should_be(service):
    """However they come; 422: an array is no job, so the body was read."""
    # The service need not find out that the client left.
    good = GOOD.replace(HOST, HOST + b"Connection: close\r\n")
    for i in range(1, len(good)):
        assert statuses(ask(service, good[:i], good[i:])) == [422], i
    assert statuses(ask(service, *[bytes([byte]) for byte in good])) == [422]


def test_chunks_on_a_connection_that_stays(service):
    with socket.create_connection(("127.0.0.1", service.port), LIMIT) as connection:
        for _ in range(3):
            connection.sendall(GOOD)
            answer = b""
            while not answer.endswith(b"}\n"):
                chunk = connection.recv(65536)
                assert chunk, answer
                answer += chunk
            assert statuses(answer) == [422], answer
    # What comes before the reply to the one before it cannot be looked at, and is refused.
    for good in (GET + b"\r\n", GOOD):
        answer = ask(service, good + GOOD)
        assert statuses(answer)[-1] in (400, 422) and len(statuses(answer)) == 2, answer
        assert statuses(ask(service, good + GOOD.replace(b"]\r\n", b"]\n")))[1:] == [400]


@pytest.mark.parametrize("name", TOO_LARGE)
def test_heads_that_are_too_large(service, name):
    check(ask(service, TOO_LARGE[name]), 431)


def test_what_came_before_is_answered(service):
    good = GET + b"\r\n"
    answer = ask(service, good + good + b"GET /healthz\r\n\r\n" + good)
    assert answer.count(b"HTTP/1.1 200 OK") == 2 and b"<html" not in answer
    assert answer.count(b"HTTP/1.1 400") == answer.count(b"application/problem+json") == 1
