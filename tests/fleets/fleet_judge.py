"""What a service says of fleets, and whether it is true: Answers are read once over HTTP, and failures()
compares those of a fleet with its truth.  A failure is a text; none means that all is so."""
import contextlib
import json
import re
import socket
import sqlite3
import subprocess
import sys

import fleet_listen as listen
from fleet_truths import CONTROL, CONTROLS, DEVICES, WRONG

DISSENTS = "device dissents from its equals"
METRIC = re.compile(r'^reprod_device_dissents\{device="([^"]+)"\} (\d+)$', re.M)
EVENTS_PATIENCE_S = 60


class Listener:
    """Hears the stream of a service from its first event on, until all of DEVICES were screened (fleet_listen.py)."""

    def __init__(self, service, devices):
        """It asks at once: the listener may begin when much has happened."""
        self.database, self.anew = service.data / "reprod.db", False
        with socket.create_connection(("127.0.0.1", service.port), EVENTS_PATIENCE_S) as connection:
            connection.settimeout(None)
            connection.sendall(listen.request(b"0"))
            self.process = subprocess.Popen(
                [sys.executable, "-S", listen.__file__, str(service.port), str(devices), str(connection.fileno())],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[connection.fileno()])

    def events(self):
        """[(kind, data)], and why these are not all, or None."""
        try:
            heard, said = self.process.communicate(timeout=EVENTS_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.stop()
            return [], "not all devices were screened, it says"
        kind, found = None, []
        for line in heard.decode().splitlines():
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: ") and kind == "reset":
                return self.stored(), None
            elif line.startswith("data: ") and kind in ("dissent", "device_screened", "cell"):
                found.append((kind, json.loads(line[6:])))
        return found, None if self.process.returncode == 0 else said.decode()[-300:]

    def stored(self):
        """Who was left too far behind is told to read all again: the events as the stream would have told them."""
        self.anew = True
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as db:
            return [(kind, json.loads(data)) for kind, data in db.execute("SELECT kind, data FROM event ORDER BY id")]

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Answers:
    """Of one service with some fleets, after its first survey."""

    def __init__(self, service, listener):
        self.events, self.broken = listener.events()
        self.anew = listener.anew
        self.cells, number = [], 1
        while True:
            status, _, cell = service.request("GET", f"/v1/cells/{number}")
            if status != 200:
                break
            self.cells.append(cell)
            number += 1
        self.devices = {device["id"]: device for device in service.items("/v1/devices")}
        self.findings = service.items("/v1/findings")
        metrics = service.get("/metrics")
        self.metric = {device: int(cells) for device, cells in METRIC.findall(metrics)}
        self.dissenting = int(re.search(r"^reprod_devices_dissenting (\d+)$", metrics, re.M)[1])
        self.pages = {device: service.get(f"/v1/devices/{device}") for device, shown in self.devices.items()
                      if shown["dissents"]}
        self.views = {cell["environment"]: service.get(f"/v1/matrix?view=devices&environment={cell['environment']}")
                      for cell in self.cells}
        self.texts = {cell["id"]: service.get(f"/v1/cells/{cell['id']}.txt") for cell in self.cells if cell["dissent"]}

        self.told_to_vary = {}
        for cell in self.cells:
            if cell["variant"] != CONTROL and any(kind == "cell" and data["verdict"] == "varies" and
                                                  data.get("cell", data.get("id")) == cell["id"] for kind, data in self.events):
                self.told_to_vary[cell["id"]] = self.first_device(service, cell["id"])

    def first_device(self, service, cell):
        """The device whose run had a cell said to vary, and whether all runs that it had by then were of it alone."""
        told = [change for change in service.items(f"/v1/cells/{cell}/history") if change["verdict"] == "varies"]
        runs = service.items(f"/v1/runs?cell={cell}")
        devices = {run["device"] for run in runs if run["id"] in [change["run"] for change in told]}
        others = min((run["finished_at"] for run in runs if run["device"] not in devices), default="~")
        before = sum(run["finished_at"] <= others for run in runs if run["device"] in devices)
        return devices, len(devices) == 1 and before >= max(change["runs"] for change in told)

    def cells_of(self, truth):
        """Those that a device of the fleet was measured in."""
        return [cell for cell in self.cells if {d["device"] for d in cell["devices"]} & set(truth.devices)]


class Failures(list):
    def expect(self, what, seen, expected):
        if seen != expected:
            self.append(f"{what}: {seen!r}, expected {expected!r}")


def judge_control(cell, failed):
    if cell["seed"] in (1, "1"):  # not that of a challenge, which is one run
        failed.expect("the control", cell["verdict"], "varies")
    failed.expect("named in the control", cell["dissent"], None)


def judge_camps(cell, truth, wrong, failed):
    """What is in the cell of each device, where they disagree."""
    for device in cell["devices"]:
        name = device["device"]
        named = name in wrong and truth.what in WRONG
        if truth.what in WRONG:
            failed.expect(f"state of {name}", device["state"], "dissents" if named else "agrees")
            failed.expect(f"class of {name}", (device["digests"][0]["class"] == "A") if device["self_consistent"] else False,
                          not named)
        failed.expect(f"since when {name} is named", device["named_at"] is not None, named)
        failed.expect(f"whether {name} agrees with itself", device["self_consistent"], not (name in wrong and truth.another))


def judge_cell(cell, truth, failed):
    wrong = truth.wrong_in(cell["variant"])
    name = f"cell {cell['variant']}"
    if cell["seed"] not in (1, "1"):
        # One run of one device, which has no equals there: it may differ with itself.
        alone = truth.another and {d["device"] for d in cell["devices"]} <= wrong
        failed.expect(f"{name}, challenged", (cell["verdict"] == "varies" and not alone, cell["dissent"]), (False, None))
        return
    failed.expect(f"{name}: its devices", {d["device"] for d in cell["devices"]}, set(truth.devices))
    dissent = cell["dissent"]
    if not wrong:
        failed.expect(f"{name}: its verdict", (cell["verdict"], dissent), ("reproducible", None))
        return
    failed.expect(f"{name}: its verdict", (cell["verdict"], cell["agreement"]), ("devices_disagree", "disagree"))
    if not dissent:
        return
    named = sorted(d["device"] for d in dissent["dissenters"])
    failed.expect(f"{name}: the named", named, sorted(wrong) if truth.what in WRONG else [])
    judge_camps(cell, truth, wrong, failed)
    majority = dissent["majority"]
    if truth.what in CONTROLS:
        failed.expect(f"{name}: its majority", majority, None)
    elif majority:
        failed.expect(f"{name}: the other seven", (majority["devices"], majority["of_devices"], majority["verdict"]),
                      (DEVICES - 1, DEVICES, "reproducible"))
    else:
        failed.append(f"{name}: no majority")


def judge_places(answers, truth, failed):
    """Wherever else devices are named, just the wrong one is, and in just its cells."""
    named, cells = truth.named(), answers.cells_of(truth)
    places = {(device, cell["id"]) for cell in cells for device in named
              if cell["seed"] in (1, "1") and device in truth.wrong_in(cell["variant"])}
    ids = {cell["id"] for cell in cells}
    for device in truth.devices:
        shown = answers.devices.get(device)
        if not shown:
            failed.append(f"{device} is not listed")
            continue
        failed.expect(f"{device} in /v1/devices", shown["dissents"], named.get(device, 0))
        failed.expect(f"{device} in /metrics", answers.metric.get(device, 0), named.get(device, 0))
        state = "dissents" if device in named else "inconclusive" if truth.wrong and truth.what in CONTROLS else "passed"
        failed.expect(f"the screening of {device}", shown["screening"] and shown["screening"]["state"], state)
        told = [data["outcome"] for kind, data in answers.events if kind == "device_screened" and data["device"] == device]
        failed.expect(f"screened events of {device}", told, [state])
        page = answers.pages.get(device, {"dissents_in": []})
        failed.expect(f"/v1/devices/{device}", {(device, where["cell"]) for where in page["dissents_in"]},
                      {place for place in places if place[0] == device})
    found = sorted((f["device"], f["cell"], f["finding"]) for f in answers.findings
                   if f.get("device") in truth.devices or f["cell"] in ids)
    failed.expect("/v1/findings", found, sorted((*place, DISSENTS) for place in places))
    told = [(data["device"], data["cell"], data["state"]) for kind, data in answers.events
            if kind == "dissent" and (data["device"] in truth.devices or data["cell"] in ids)]
    failed.expect("dissent events", sorted(told), sorted((*place, "named") for place in places))
    for _, number in places:
        for device in named:
            failed.expect(f"/v1/cells/{number}.txt names {device}", device in answers.texts.get(number, ""), True)


def judge_view(answers, truth, failed):
    """Devices next to each other: the letter of the wrong one alone is marked."""
    for environment in {cell["environment"] for cell in answers.cells_of(truth)}:
        view = answers.views[environment]
        for row in (row for group in view["groups"] for row in group["rows"] if row["variant"] != CONTROL):
            wrong = truth.wrong_in(row["variant"])
            for column, entry in zip(view["columns"], row["cells"]):
                if truth.what in WRONG and row.get("seed") in (1, "1"):
                    verdict = "devices_disagree" if column["id"] in wrong else "reproducible"
                    failed.expect(f"{column['id']} in view=devices", entry["verdict"], verdict)
                    failed.expect(f"the mark of {column['id']}", "\N{NOT EQUAL TO}" in (entry["mark"] or ""), column["id"] in wrong)
                failed.expect(f"{column['id']} in view=devices varies", entry["verdict"] == "varies", False)


def judge_history(answers, truth, failed):
    """No look in between called a disagreement "varies".  Before a second device is measured there is none:
    of one alone that differs with itself, it is said to vary there."""
    ordered = {cell["id"] for cell in answers.cells_of(truth) if cell["variant"] != CONTROL and cell["seed"] in (1, "1")}
    for kind, data in answers.events:
        number = data.get("cell", data.get("id"))
        if kind == "cell" and number in ordered and data["verdict"] == "varies":
            devices, alone = answers.told_to_vary[number]
            failed.expect(f"cell {number} was said to vary, and whether it had no other device",
                          (truth.another and devices <= set(truth.wrong), alone), (True, True))


def failures(answers, truth):
    failed = Failures()
    cells = answers.cells_of(truth)
    failed.expect("environments", len({cell["environment"] for cell in cells}), 1)
    variants = [cell["variant"] for cell in cells if cell["seed"] in (1, "1")]
    failed.expect("its cells", sorted(variants), ["ordered", "patched", CONTROL])
    for cell in cells:
        if cell["variant"] == CONTROL:
            judge_control(cell, failed)
        else:
            judge_cell(cell, truth, failed)
    judge_places(answers, truth, failed)
    judge_view(answers, truth, failed)
    judge_history(answers, truth, failed)
    return failed


def joint_failures(answers, truths):
    """Of all fleets of a service together."""
    failed = Failures()
    named = {device: cells for truth in truths for device, cells in truth.named().items()}
    failed.expect("the event stream", answers.broken, None)
    failed.expect("reprod_devices_dissenting", answers.dissenting, len(named))
    failed.expect("devices in /metrics", answers.metric, named)
    failed.expect("devices", set(answers.devices), {device for truth in truths for device in truth.devices})
    failed.expect("named by an event", {d["device"] for kind, d in answers.events if kind == "dissent"}, set(named))
    failed.expect("named by a finding", {f["device"] for f in answers.findings if f["finding"] == DISSENTS}, set(named))
    return failed
