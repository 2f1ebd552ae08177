"""Starts, asks and stops a reprod of any build.  Answers are kept as they came: status, headers,
bytes."""
import collections
import http.client
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 300  # seconds after which something hangs; nothing takes so long
COMMAND_LIMIT = 60

JSON = {"Content-Type": "application/json"}
running = set()  # daemons that are to be ended, whatever happens

Answer = collections.namedtuple("Answer", "status headers body")
Question = collections.namedtuple("Question", "method path headers body", defaults=({}, None))


class Daemon:
    """One data folder, and the program that serves it while it is started."""

    def __init__(self, build, folder, config):
        self.build, self.folder = pathlib.Path(build), pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = self.folder / "data"
        self.configure(config)
        self.process = self.port = self.connection = None

    def configure(self, config):
        (self.folder / "config.json").write_text(json.dumps(config, indent=1))

    def copy_to(self, build, folder):
        """The same data and configuration, for a program of another build; this one stands."""
        other = Daemon(build, folder, json.loads((self.folder / "config.json").read_text()))
        shutil.copytree(self.data, other.data)
        return other

    def start(self, ready=True, survey=False):
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(
            [self.build / "reprod", "serve", "--config", self.folder / "config.json", "--listen",
             "127.0.0.1:0", "--data", self.data, *([] if survey else ["--no-survey"])],
            stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=self.folder)
        running.add(self)
        line = self.process.stdout.readline()
        if not line.startswith("listening on http://"):
            self.kill()
            raise RuntimeError(f"it does not listen; {self.last_words()}")
        self.port = int(line.rsplit(":", 1)[1])
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        if ready:
            self.wait("devices", lambda: self.ask(Question("GET", "/readyz")).status == 200
                      and self.get("/v1/devices")["items"])
        return self

    def ask(self, question, again=True):
        headers = {"Host": "localhost", **question.headers}
        try:
            self.connection.request(question.method, question.path, question.body, headers)
            answer = self.connection.getresponse()
            if answer.getheader("Content-Type") == "text/event-stream":  # has no end
                self.connection.close()
                return Answer(answer.status, answer.getheaders(), b"")
            return Answer(answer.status, answer.getheaders(), answer.read())
        except (http.client.RemoteDisconnected, ConnectionError):  # kept open for too long
            self.connection.close()
            if not again:
                raise RuntimeError(f"{question}: no answer; {self.last_words()}") from None
            return self.ask(question, again=False)

    def ask_raw(self, data):
        """Everything that comes back for DATA until the daemon hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), LIMIT) as connection:
            connection.sendall(data)
            return b"".join(iter(lambda: connection.recv(1 << 16), b"")).decode(errors="replace")

    def events(self, after, until):
        """What /v1/events sends a listener who comes back after event AFTER, up to what matches
        UNTIL."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        connection.request("GET", "/v1/events", None, {"Last-Event-ID": after})
        answer, text = connection.getresponse(), b""
        while not re.search(until, text):
            text += answer.read1(1 << 16)
        connection.close()
        return text.decode()

    def get(self, path):
        return self.json(Question("GET", path), 200)

    def json(self, question, status):
        answer = self.ask(question)
        if answer.status != status:
            raise RuntimeError(f"{question}: {answer.status} {answer.body.decode()}")
        return json.loads(answer.body)

    def post(self, job, key=None):
        """The job's id."""
        headers = {**JSON, **({"Idempotency-Key": key} if key else {})}
        return self.json(Question("POST", "/v1/jobs", headers, json.dumps(job)), 201)["id"]

    def finish(self, job):
        self.wait(f"job {job}", lambda: self.get(f"/v1/jobs/{job}")["state"]
                  in ("finished", "cancelled"))

    def wait(self, what, condition):
        end = time.monotonic() + LIMIT
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"{what}: not within {LIMIT} s; {self.last_words()}")
            time.sleep(0.02)

    def last_words(self):
        return f"{self.build}/reprod: {(self.folder / 'log').read_text()[-1000:]}"

    def stop(self):
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(LIMIT)
        self.ended()
        if code != 0:
            raise RuntimeError(f"it ended with {code}; {self.last_words()}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.ended()

    def ended(self):
        running.discard(self)
        self.process.stdout.close()
        self.log.close()


def run(*command, **options):
    """(exit status, standard output, standard error) of a program that ends by itself; the status
    is None where it does not."""
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=COMMAND_LIMIT, check=False, **options)
    except subprocess.TimeoutExpired as late:
        done = subprocess.CompletedProcess(command, None, late.stdout or b"", late.stderr or b"")
    return (done.returncode, done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"))
