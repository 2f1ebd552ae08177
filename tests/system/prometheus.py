"""Starts real Prometheus and Alertmanager beside a service, and takes what they tell."""
import http.server
import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request

from service import LIMIT, ROOT

FOLDER = ROOT / "deploy" / "prometheus"
# make get-prometheus unpacks Debian's packages there.
CACHE = pathlib.Path(os.environ.get("PROMETHEUS_CACHE")
                     or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
                     / "reprod" / "prometheus")


def program(*names):
    """The path of the first that there is, installed or in the cache; None."""
    for name in names:
        found = shutil.which(name) or shutil.which(name, path=CACHE / "usr" / "bin")
        if found:
            return found
    return None


PROMETHEUS, PROMTOOL = program("prometheus"), program("promtool")
ALERTMANAGER, AMTOOL = program("prometheus-alertmanager", "alertmanager"), program("amtool")
MANAGER = [ALERTMANAGER]  # how it is started
TEMPLATES = CACHE / "usr" / "share" / "alertmanager"
if ALERTMANAGER and CACHE in pathlib.Path(ALERTMANAGER).parents:
    # Its templates are where Debian has them in a name space of its own alone.
    MANAGER = ["unshare", "--map-root-user", "--mount", "sh", "-c",
               'mount -t tmpfs tmpfs /usr/share && mkdir /usr/share/prometheus && '
               'cp -r "$0" /usr/share/prometheus/alertmanager && exec "$@"', str(TEMPLATES), ALERTMANAGER]
MISSING = "no Prometheus here: make check-prometheus gets it"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait(condition, what, seconds=LIMIT):
    """What CONDITION returns, once that is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")


class Server:
    """A program that listens on a port of our choice.  Another process may take the port first: then it is
    started again, on another one."""

    def __init__(self, folder, command, ready):
        self.log = folder.with_suffix(".log")
        for _ in range(5):
            self.port = free_port()
            with open(self.log, "ab") as log:
                self.process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{self.port}"],
                                                stdout=log, stderr=log)
            if self.wait_until(ready):
                return
        raise AssertionError(self.log.read_text()[-3000:])

    def wait_until(self, path):
        """Whether it is ready, and not over."""
        def ready():
            if self.process.poll() is not None:
                return True
            try:
                self.get(path)
                return True
            except OSError:
                return False
        try:
            wait(ready, f"{self.log.stem} ready")
        except AssertionError:
            self.stop()
            raise
        return self.process.poll() is None

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=LIMIT) as answer:
            return answer.read()

    def stop(self):
        self.process.kill()
        self.process.wait()


class Told:
    """What Alertmanager tells its webhook: [(when it came, alert)]."""

    def __init__(self):
        told = self.alerts = []

        class Webhook(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                told.extend((time.monotonic(), alert) for alert in body["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def find(self, name, status, since=0.0):
        """The first alert NAME that was told as STATUS after SINCE: (when, alert); None."""
        for when, alert in list(self.alerts):
            if when > since and alert["labels"]["alertname"] == name and alert["status"] == status:
                return when, alert
        return None

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Site:
    """Prometheus with our rules, scraping PORT every second, and Alertmanager."""

    def __init__(self, folder, port):
        self.told = Told()
        self.alertmanager = self.prometheus = None
        manager = folder / "alertmanager.yml"
        manager.write_text(json.dumps({
            "route": {"receiver": "us", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s",
                      "repeat_interval": "1h"},
            "receivers": [{"name": "us", "webhook_configs": [{"url": self.told.url, "send_resolved": True}]}]}))
        try:
            self.alertmanager = Server(folder / "alertmanager", [
                *MANAGER, f"--config.file={manager}", f"--storage.path={folder / 'alerts'}",
                "--cluster.listen-address="], "/-/ready")
            config = folder / "prometheus.yml"
            config.write_text(json.dumps({
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(FOLDER / "rules.yml")],
                "scrape_configs": [{"job_name": "reprod",
                                    "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}],
                "alerting": {"alertmanagers": [
                    {"static_configs": [{"targets": [f"127.0.0.1:{self.alertmanager.port}"]}]}]}}))
            self.prometheus = Server(folder / "prometheus", [
                PROMETHEUS, f"--config.file={config}", f"--storage.tsdb.path={folder / 'series'}"], "/-/ready")
        except BaseException:
            self.close()
            raise

    def query(self, expression):
        """[(labels, value)]"""
        path = "/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        result = json.loads(self.prometheus.get(path))["data"]["result"]
        return [(each["metric"], float(each["value"][1])) for each in result]

    def firing(self):
        """The names of the alerts that fire, sorted."""
        return sorted(labels["alertname"] for labels, _ in self.query('ALERTS{alertstate="firing"}'))

    def evaluated(self, times=3):
        """Waits until the rules were evaluated so many times more, on scrapes of now."""
        def last():
            groups = json.loads(self.prometheus.get("/api/v1/rules"))["data"]["groups"]
            return [group["lastEvaluation"] for group in groups]
        for _ in range(times):
            before = last()
            wait(lambda before=before: last() != before, "an evaluation")

    def close(self):
        for server in (self.prometheus, self.alertmanager):
            if server:
                server.stop()
        self.told.close()
