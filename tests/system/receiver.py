"""A receiver of webhooks: a process of its own, so that it can be killed.

    receiver.py PORT LOG [PLAN [CERTIFICATE]]

It logs each request, durable, before it answers.  Without a plan it answers 204; `half` fails
the first tries of some events, in turns: with 500, by hanging up, by not answering.  Else the plan
is what it answers: "410", "302 Location: /elsewhere", "429 Retry-After: 30"."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import threading
import time

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes....").decode()
SLOW_S = 3600


def is_signed(headers, body, secret=SECRET):
    """As Standard Webhooks says, from its text and not from reprod's code."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    fresh = abs(time.time() - int(headers["webhook-timestamp"])) < 300
    return fresh and wanted in headers["webhook-signature"].split()


def planned_failure(message, tries):
    """How try number TRIES (0 …) of MESSAGE fails; None: it does not."""
    number = hashlib.sha256(message.encode()).digest()[0]
    if tries >= number % 3:
        return None
    return ("500", "hang up", "500", "hang up", "silence")[(number + tries) % 5]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = self.headers["webhook-id"]
        plan = self.server.plan.read_text().strip() if self.server.plan else ""
        with self.server.lock:
            tries = self.server.tries.get(message, 0)
            self.server.tries[message] = tries + 1
            failure = planned_failure(message, tries) if plan == "half" else plan
            line = {"id": message, "failure": failure or None, "signed": is_signed(self.headers, body),
                    "type": self.headers["Content-Type"], "path": self.path, "body": body.decode()}
            self.server.log.write(json.dumps(line) + "\n")
            self.server.log.flush()
            os.fsync(self.server.log.fileno())
        self.close_connection = True
        if failure == "silence":
            time.sleep(SLOW_S)
        elif failure == "hang up":
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            status, _, header = (failure or "204").partition(" ")
            self.send_response(int(status))
            if header:
                self.send_header(*header.split(": "))
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_message(self, *_):
        pass


def main(port, log, plan=None, certificate=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.lock = threading.Lock()
    server.tries = {}
    path = pathlib.Path(log)
    for line in path.read_text().splitlines() if path.exists() else []:
        message = json.loads(line)["id"]
        server.tries[message] = server.tries.get(message, 0) + 1
    server.log = open(path, "a", encoding="utf-8")
    server.plan = pathlib.Path(plan) if plan else None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


class Receiver:
    """The process, from a test's side; it comes back at the same port."""

    def __init__(self, folder, plan="", certificate=None):
        self.log = folder / "received"
        self.plan = folder / "plan"
        self.plan.write_text(plan)
        self.certificate = certificate
        self.port = 0
        self.process = None
        self.start()

    def start(self):
        command = [sys.executable, __file__, str(self.port), str(self.log), str(self.plan),
                   *([str(self.certificate)] if self.certificate else [])]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    @property
    def url(self):
        return f"http{'s' if self.certificate else ''}://127.0.0.1:{self.port}/hook?token=t"

    def lines(self):
        """A line that was cut off was not answered."""
        text = self.log.read_text() if self.log.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]

    def accepted(self):
        return [line for line in self.lines() if line["failure"] is None]


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
