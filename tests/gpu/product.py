"""The service as a user has it: started from a folder of programs, spoken to over HTTP."""
import http.client
import json
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time

POLL = 0.25  # seconds
START_LIMIT, STOP_LIMIT, CANCEL_LIMIT, BACKUP_LIMIT = 60, 20, 15, 60
ENDED = ("finished", "cancelled")


class Refused(Exception):
    """What the service, or its start, answered instead of what was wanted."""


class Product:
    """One data folder and, while started, the process that serves it."""

    def __init__(self, program, folder, config):
        self.program, self.folder = pathlib.Path(program), pathlib.Path(folder)
        self.data, self.log = self.folder / "data", self.folder / "service.log"
        self.config = self.folder / "config.json"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.configure(config)
        self.process, self.port = None, None

    def configure(self, config):
        """Holds from its next start."""
        self.config.write_text(json.dumps(config, indent=1) + "\n")

    def start(self):
        command = [str(self.program), "serve", "--config", str(self.config), "--listen",
                   "127.0.0.1:0", "--data", str(self.data), "--no-survey"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True,
                                            stdout=subprocess.PIPE, stderr=log)
        try:
            self.port = self.read_port()
            self.wait(lambda: self.request("GET", "/readyz")[0] == 200, START_LIMIT,
                      "the service is not ready")
        except BaseException:
            self.stop()
            raise

    def read_port(self):
        """Of the first line that it prints; the others are read and dropped."""
        lines = queue.Queue()

        def read(stream):
            for line in stream:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, args=(self.process.stdout,), daemon=True).start()
        try:
            line = lines.get(timeout=START_LIMIT)
        except queue.Empty:
            raise Refused(f"{self.program} serve: says nothing") from None
        if not line.startswith("listening on http://"):
            raise Refused(f"{self.program} serve: {line.strip() or self.log_tail(500)}")
        return int(line.rsplit(":", 1)[1])

    def log_tail(self, size):
        try:
            with open(self.log, "rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - size))
                return log.read().decode(errors="replace").strip()
        except OSError:
            return ""

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """Its exit status; None if it never ran."""
        if self.process is None:
            return None
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.process = None
        return code

    # HTTP

    def request(self, method, path, body=None):
        """(status, parsed JSON or text)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body=None if body is None else json.dumps(body),
                               headers={"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            raw = answer.read().decode()
            kind = answer.getheader("Content-Type", "")
            return answer.status, json.loads(raw) if "json" in kind and raw else raw
        except (OSError, http.client.HTTPException) as error:
            raise Refused(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()

    def get(self, path):
        status, body = self.request("GET", path)
        if status != 200:
            raise Refused(f"GET {path}: {status} {detail(body)}")
        return body

    def items(self, path):
        """Every item of a list, over all its pages."""
        joint = "&" if "?" in path else "?"
        page = self.get(f"{path}{joint}limit=100")
        found = list(page["items"])
        while page["next"]:
            page = self.get(f"{path}{joint}limit=100&cursor={page['next']}")
            found += page["items"]
        return found

    def wait(self, condition, seconds, what):
        end = time.monotonic() + seconds
        while not condition():
            if not self.alive():
                raise Refused(f"the service ended: {self.log_tail(500)}")
            if time.monotonic() >= end:
                raise Refused(f"{what}, after {seconds} s")
            time.sleep(POLL)

    # Jobs

    def post_job(self, request):
        status, body = self.request("POST", "/v1/jobs", request)
        if status != 201:
            raise Refused(f"POST /v1/jobs: {status} {detail(body)}")
        return body["id"]

    def finish_job(self, job, until):
        """The job once it has ended, by itself or cancelled at UNTIL."""
        said = self.get(f"/v1/jobs/{job}")
        while said["state"] not in ENDED and time.monotonic() < until:
            time.sleep(min(POLL, max(0, until - time.monotonic())))
            said = self.get(f"/v1/jobs/{job}")
        if said["state"] not in ENDED:
            self.request("DELETE", f"/v1/jobs/{job}")
            self.wait(lambda: self.get(f"/v1/jobs/{job}")["state"] in ENDED, CANCEL_LIMIT,
                      "a cancelled job has runs left")
            said = self.get(f"/v1/jobs/{job}")
        return said

    def backup(self, path):
        done = subprocess.run([str(self.program), "backup", "--data", str(self.data), str(path)],
                              capture_output=True, text=True, timeout=BACKUP_LIMIT)
        if done.returncode:
            raise Refused(f"backup: {(done.stderr or done.stdout).strip()}")


def detail(body):
    return body.get("detail", body) if isinstance(body, dict) else body[:200]
