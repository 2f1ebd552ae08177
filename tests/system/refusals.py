"""Requests that are refused: the form of the problems that they get, and requests byte by byte."""
import socket

from service import LIMIT

LOCAL = b"Host: localhost\r\n"


def refused(service, method, path, status, kind, body=None, headers=None):
    """The problem, after checking its form."""
    got, answer, problem = service.request(method, path, body, headers)
    assert got == status, problem
    assert answer["Content-Type"] == "application/problem+json"
    assert problem["type"] == f"/problems/{kind}", problem
    assert problem["status"] == status and problem["title"] and problem["detail"]
    if status == 503:
        assert int(answer["Retry-After"]) >= 1
    known = service.get(problem["type"])
    assert (known["status"], known["title"]) == (status, problem["title"])
    return problem


def raw(service, data, patience=LIMIT):
    """Everything that comes back for DATA until the server hangs up."""
    with socket.create_connection(("127.0.0.1", service.port), patience) as connection:
        connection.settimeout(patience)
        try:
            connection.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = b""
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except ConnectionResetError:
            pass
    return answer


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else None
