#!/usr/bin/env python3
"""Hears the event stream of a service from its first event on, until so many devices were screened, and then prints
all that it heard: fleet_listen.py PORT DEVICES FD, where FD is a connection that asked for it.  A process of its own
that does nothing else, since a service goes on without whoever is slow; one that was left behind comes back as a
browser does, with the last id that it has."""
import re
import socket
import sys

PATIENCE_S = 60
SCREENED = b"event: device_screened\n"
ID = re.compile(rb"^id: (\d+)$", re.M)


def request(last):
    return b"GET /v1/events HTTP/1.0\r\nHost: 127.0.0.1\r\nLast-Event-ID: " + last + b"\r\n\r\n"


def asked_again(port, last):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.sendall(request(last))
    return connection


def main():
    port, devices = int(sys.argv[1]), int(sys.argv[2])
    heard, last, screened, first = [], b"0", 0, socket.socket(fileno=int(sys.argv[3]))
    while screened < devices:
        with first or asked_again(port, last) as connection:
            first = None
            connection.settimeout(PATIENCE_S)
            rest = b""
            while screened < devices:
                data = connection.recv(1 << 20)
                if not data:
                    break
                whole, _, rest = (rest + data).rpartition(b"\n\n")  # events; the begun one
                heard.append(whole + b"\n\n")
                screened += whole.count(SCREENED)
                last = ([last] + ID.findall(whole))[-1]
                if b"event: reset\n" in whole:
                    screened = devices  # it will not hear of all
    sys.stdout.buffer.write(b"".join(heard))


if __name__ == "__main__":
    main()
