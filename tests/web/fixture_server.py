"""Serves web/ and made-up answers, with the headers the daemon sends.

    python3 tests/web/fixture_server.py --scenario survey --port 8000
"""

import argparse
import hashlib
import json
import mimetypes
import pathlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import fixture_data

WEB = pathlib.Path(__file__).resolve().parents[2] / "web"
POLICY = "default-src 'self'"


class Handler(BaseHTTPRequestHandler):
    """One request to a fixture."""

    protocol_version = "HTTP/1.1"

    @property
    def fixture(self):
        return self.server.fixture

    def log_message(self, *_):
        pass

    def do_GET(self):
        url = urlsplit(self.path)
        self.fixture.requests[url.path] = self.fixture.requests.get(url.path, 0) + 1
        if not self.fixture.answering:
            self.close_connection = True
        elif url.path == "/v1/events":
            self.stream()
        elif (WEB / (url.path[1:] or "index.html")).is_file():
            self.static(url.path[1:] or "index.html")
        else:
            status, body = self.fixture.answer(url.path, parse_qs(url.query))
            kind = "application/json" if status == 200 else "application/problem+json"
            self.reply(status, kind, json.dumps(body).encode())

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.fixture.posted.append((self.path, self.headers["Content-Type"], body))
        self.fixture.keys.append(self.headers["Idempotency-Key"])
        if not self.fixture.answering:
            self.close_connection = True
            return None
        if self.fixture.problem and self.path.startswith(self.fixture.problem[0]):
            status, answer = self.fixture.answer(self.path, {})
            return self.reply(status, "application/problem+json", json.dumps(answer).encode())
        job = fixture_data.job(99, "queued", done=0, request=body)
        self.fixture.state["jobs"].insert(0, job)
        return self.reply(201, "application/json", json.dumps(job).encode())

    def static(self, name):
        path = WEB / name
        if path.parent != WEB or not path.is_file():
            return self.reply(404, "text/plain", b"no such file")
        kind = mimetypes.guess_type(name)[0].replace("application/javascript", "text/javascript")
        self.reply(200, kind, path.read_bytes())

    def reply(self, status, kind, body):
        tag = f'"{hashlib.md5(body).hexdigest()}"'
        if status == 200 and self.headers.get("If-None-Match") == tag:
            status, body = 304, b""
            self.fixture.not_modified += 1
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", len(body))
        self.send_header("ETag", tag)
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def stream(self):
        if not self.fixture.streams_allowed:
            return self.reply(503, "application/problem+json", b'{"title":"no streams"}')
        self.close_connection = True
        while self.fixture.streams_mute and self.fixture.streams_allowed:
            time.sleep(0.1)
        # Before the page can know of the stream: whatever happens from then on is sent.
        sent = len(self.fixture.events)
        self.fixture.count_stream(1)
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b"retry: 1000\n\n")
            self.follow(sent)
        except OSError:
            pass
        finally:
            self.fixture.count_stream(-1)

    def follow(self, sent):
        while self.fixture.streams_allowed:
            with self.fixture.changed:
                self.fixture.changed.wait(0.5)
                fresh = self.fixture.events[sent:]
            self.wfile.write(b":\n\n")
            for kind, data in fresh:
                sent += 1
                self.wfile.write(f"id: {sent}\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode())


class Fixture:
    """A server whose answers a test changes while it runs.  `state` holds the answers;
    `requests` counts GETs by path."""

    def __init__(self, scenario="filled", port=0):
        self.state = fixture_data.SCENARIOS[scenario]()
        self.requests, self.not_modified = {}, 0
        self.queries = []  # of views and drift
        self.posted = []  # (path, content type, body)
        self.keys = []  # Idempotency-Key of each
        self.events, self.changed = [], threading.Condition()
        self.streams_allowed = self.answering = True
        self.streams_open = 0
        self.streams_mute = False  # accept, and never say a word
        self.problem = None  # (path, status, detail)
        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.fixture = self
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.drop_streams()
        self.server.shutdown()
        self.server.server_close()

    def count_stream(self, change):
        with self.changed:
            self.streams_open += change

    def emit(self, kind, data):
        with self.changed:
            self.events.append((kind, data))
            self.changed.notify_all()

    def drop_streams(self):
        """Ends every stream and refuses new ones with 503."""
        with self.changed:
            self.streams_allowed = False
            self.changed.notify_all()

    def cell_devices(self, query):
        """A page of the devices of a cell in the state that is asked for."""
        cell, items = self.state["cell_devices"]
        items = [each for each in items if query.get("state", [each["state"]]) == [each["state"]]]
        first, limit = (int(query.get(key, [default])[0]) for key, default in [("cursor", 0), ("limit", 100)])
        more = len(items) > first + limit
        return dict(cell, items=items[first:first + limit], next=str(first + limit) if more else None)

    def answer(self, path, query):
        """(status, body) of a GET."""
        if self.problem and path.startswith(self.problem[0]):
            _, status, detail = self.problem
            return status, {"type": "about:blank", "title": "It did not work", "status": status, "detail": detail}
        if path == "/readyz":
            return 200, {"status": "ready", "version": "0", "conditions": self.state.get("conditions", [])}
        if path == "/v1/peers":
            return 200, {"items": self.state.get("peers", []), "next": None}
        if path == "/v1/background":
            return 200, self.state.get("background", {"budget_percent": 0, "target_percent": 1, "target_days": 30,
                                                      "every_seconds": 300, "items": []})
        if path == "/v1/schedules":
            return 200, {"items": self.state.get("schedules", []), "next": None}
        if path == "/v1/matrix" and query.get("view", [""])[0] in ("environments", "devices"):
            self.queries.append(query)
            pages = self.state["classes" if query["view"] == ["environments"] else "device_classes"]
            pages = pages if isinstance(pages, list) else [pages]
            return 200, pages[int(query.get("cursor", [0])[0])]
        if path == "/v1/drift":
            self.queries.append(query)
            return 200, {"host": None, "since": None, "more": 0, "items": [self.state["drift"]]}
        if path.startswith("/v1/cells/") and path.endswith("/devices") and "cell_devices" in self.state:
            return 200, self.cell_devices(query)
        if path.startswith("/v1/cells/") and "cell_devices" in self.state:
            return 200, dict(self.state["cell_devices"][0], spread=self.state.get("spread"),
                             witness=self.state.get("witness"))
        if path == "/v1/operations":
            self.queries.append(query)
            answers = self.state.get("operations", {})
            items = [each for each in answers.get(query.get("table", [""])[0], [])
                     if query.get("framework", [each["framework"]]) == [each["framework"]]]
            return 200, {"items": items, "environments_left_out": 0, "next": None}
        if path == "/v1/matrix":
            chosen = query.get("environment", [None])[0]
            body = dict(self.state["matrix"], table=query.get("table", ["documents-2020"])[0])
            known = [each for each in self.state["environments"] if each["id"] == chosen]
            return 200, dict(body, environment=known[0]) if known else body
        name = unquote(path.removeprefix("/v1/"))
        if name in ("changes", "devices"):
            self.state.setdefault(name, [])
        if name in self.state:
            first, limit = (int(query.get(key, [default])[0]) for key, default in [("cursor", 0), ("limit", 100)])
            rest = self.state[name][first:]
            return 200, {"items": rest[:limit], "next": str(first + limit) if rest[limit:] else None}
        items = [each for each in self.state.get("workloads", []) if name == f"workloads/{each['workload']}"]
        if items:
            return 200, {"workload": items[0]["workload"], "items": items}
        return 404, {"type": "about:blank", "title": "Not found", "status": 404, "detail": path}


def play_survey(fixture):
    """Moves the running job on, and fills a row now and then."""
    running = next(job for job in fixture.state["jobs"] if job["state"] == "running")
    progress = running["progress"]
    while progress["runs_done"] < progress["runs_total"]:
        time.sleep(0.3)
        progress["runs_done"] += 1
        progress["eta_seconds"] = (progress["runs_total"] - progress["runs_done"]) * 0.3
        measured = progress["runs_done"] * 5 // progress["runs_total"]
        fixture.state["matrix"] = fixture_data.matrix(measured=fixture_data.MEASURED[:measured])
        fixture.emit("job", {"id": running["id"], "state": "running", **progress})
        fixture.emit("cell", {"id": 7})
    running["state"], running["finished_at"] = "finished", fixture_data.NOW
    fixture.emit("job", {"id": running["id"], "state": "finished", **progress})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", choices=fixture_data.SCENARIOS, default="filled")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    fixture = Fixture(options.scenario, options.port)
    print(fixture.url, flush=True)
    if options.scenario == "survey":
        play_survey(fixture)
    threading.Event().wait()


if __name__ == "__main__":
    main()
