"""Starts, talks to and kills the real service, for the system tests."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REPROD_BUILD", ROOT / "build"))
SIMULATOR = BUILD / "tests" / "reprod-worker-cudasim"
IMITATIONS = BUILD / "tests" / "imitations"  # of cudnn, cublas and nccl, each in a folder of its own
SELFTEST_WORKER = BUILD / "tests" / "reprod-worker-selftest"
LIMIT = 300  # seconds after which a test gives up; nothing takes so long


class Service:
    """One data folder and, while started, the process that serves it."""

    def __init__(self, folder, worker=None, options=(), config=None, env=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = self.folder / "data"
        self.config = self.folder / "config.json"
        self.env = {**os.environ, **(env or {})}
        settings = dict(config or {})
        if worker:
            settings["stacks"] = [{"name": "cpu", "worker": str(worker)}]
        settings.setdefault("grace_ms", 300)
        self.config.write_text(json.dumps(settings))
        self.options = list(options)
        self.process = None
        self.port = None
        self.refused = None  # exit code of a start that ended before it listened
        self.log = self.folder / "log"

    def command(self):
        return [str(BUILD / "reprod"), "serve", "--config", str(self.config), "--listen",
                "127.0.0.1:0", "--data", str(self.data), *self.options]

    def start(self, ready=True):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=log,
                                            text=True, env=self.env, bufsize=1)
        try:
            line = self.process.stdout.readline()
            self.refused = self.process.wait(LIMIT) if not line else None
            assert line.startswith("listening on http://"), (line, self.log.read_text()[-2000:])
            self.port = int(line.rsplit(":", 1)[1])
            if ready:
                self.wait(lambda: self.request("GET", "/readyz")[0] == 200, "ready")
        except BaseException:  # whoever gets no service has none to stop
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process = None
            raise
        return self

    def request(self, method, path, body=None, headers=None, timeout=LIMIT):
        """(status, headers, parsed JSON or text)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            raw = answer.read()
        finally:
            connection.close()
        kind = answer.getheader("Content-Type", "")
        empty = method == "HEAD" or answer.status in (204, 304)
        assert raw or empty or "json" not in kind, (method, path, answer.status, answer.getheaders())
        return answer.status, dict(answer.getheaders()), \
            json.loads(raw) if "json" in kind and raw else raw.decode()

    def get(self, path):
        status, _, body = self.request("GET", path)
        assert status == 200, (path, status, body)
        return body

    def post_job(self, **request):
        status, _, body = self.request("POST", "/v1/jobs", request)
        assert status == 201, (status, body)
        return body["id"]

    def finish_job(self, job, seconds=LIMIT):
        self.wait(lambda: self.get(f"/v1/jobs/{job}")["state"] in ("finished", "cancelled"),
                  f"job {job}", seconds)
        return self.get(f"/v1/jobs/{job}")

    def items(self, path):
        """Every item of a list, over all its pages."""
        joint = "&" if "?" in path else "?"
        page = self.get(f"{path}{joint}limit=100")
        found = list(page["items"])
        while page["next"]:
            page = self.get(f"{path}{joint}limit=100&cursor={page['next']}")
            found += page["items"]
        return found

    def wait(self, condition, what, seconds=LIMIT):
        deadline = time.monotonic() + seconds
        pause = 0.01
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(pause)
            pause = min(1.1 * pause, 0.05)
        raise AssertionError(f"{what}: not within {seconds} s\n" + self.log.read_text()[-3000:])

    def stop(self, number=signal.SIGTERM, seconds=LIMIT):
        """Graceful; returns the exit code."""
        if self.process is None:
            return None
        self.process.send_signal(number)
        code = self.process.wait(seconds)
        self.process.stdout.close()
        self.process = None
        return code

    def stop_at_once(self):
        """What runs is cancelled and not waited for; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.wait(lambda: "a second signal cancels" in self.log.read_text(), "a stop that waits for runs")
        return self.stop()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process = None

    def fsck(self):
        """(exit code, output)"""
        done = subprocess.run([str(BUILD / "reprod"), "fsck", "--data", str(self.data)],
                              capture_output=True, text=True, timeout=LIMIT)
        return done.returncode, done.stdout + done.stderr
