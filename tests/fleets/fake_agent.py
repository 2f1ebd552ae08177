#!/usr/bin/env python3
"""An agent whose devices exist only here: it speaks the protocol of agents
(workloads/PROTOCOL.md) and computes in no time.  What is wrong with which device is the
ground truth that a test gives it, as JSON in a file, its only argument (fleet_sim.py).

Each result is a number: the sum that the case gives, on a wrong device off by 1e-12 of it.
Its digest is that of the number's bits, so equal digests are equal numbers.
"""
import hashlib
import json
import os
import random
import struct
import sys

ELEMENTS, ELEMENT_SIZE = 64, 8


def digest(*parts):
    return hashlib.md5(repr(parts).encode()).hexdigest()


def bits(number):
    return struct.pack(">d", number).hex()


class Agent:
    def __init__(self, truth):
        self.truth = truth
        self.draw = random.Random(f"{truth['seed']} {truth['host']}")
        self.told = None
        self.runs = {}  # of each device and case, so far
        self.out = os.fdopen(os.dup(sys.stdout.fileno()), "w")

    def say(self, event, **members):
        self.out.write(json.dumps({"event": event, **members}) + "\n")

    def hello(self):
        truth = self.truth
        probe = {"v": 1, "backend": "cuda", "worker_build": truth["build"], "checks": True,
                 "passed": True, "nonce": True, "versions": {}, "cause": None, "problems": {},
                 "devices": truth["devices"]}
        self.say("hello", v=1, host=truth["host"], pid=os.getpid(), boot_id="boot", build="sim",
                 pings=True, processes=list(truth.get("foreign", {})),
                 stacks=[{"name": truth["stack"], "worker": "/nowhere", "library_path": None,
                          "probe": probe, "catalogue": truth["catalogue"], "cause": None}])

    def result(self, device, case, control):
        """The number that one iteration gives."""
        truth = self.truth
        right = 1 + int(digest(case["workload"], case["size"], case["seed"])[:6], 16) / 2 ** 24
        right *= 1 + 1e-9 * truth["shifts"].get(case["workload"], 0)
        if "contention" in case:
            right *= 1 + 1e-6 * truth["loaded"].get(case["workload"], 0)
        wrong = truth["wrong"].get(device)
        if wrong is not None and case["variant"] not in wrong.get("variants", [case["variant"]]):
            wrong = None
        past = self.runs.get((device, case["workload"], case["variant"]), 0)
        if control:
            return right + self.draw.random()
        if wrong is not None and past >= wrong.get("from", 0) and self.draw.random() < wrong.get("rate", 1):
            return right * (1 + 1e-12 * (self.draw.randint(1, 1000) if wrong.get("another") else wrong.get("by", 1)))
        if self.draw.random() < truth["varies"]:
            return right * (1 + 1e-9 * self.draw.randint(1, 1000))
        return right

    def run(self, command):
        case, device, name = command["arguments"], command["device"], command["run"]
        entry = next(w for w in self.truth["catalogue"] if w["workload"] == case["workload"])
        variant = next(v for v in entry["variants"] if v["name"] == case["variant"])
        inputs = digest("inputs", case["workload"], case["size"], case["seed"])
        model = self.truth["devices"][0]["model"]
        count = int(case["iterations"])

        def worker(event, **members):
            self.say("worker", run=name, data={"event": event, **members})

        self.say("started", run=name, pid=os.getpid(), process_start=1)
        if self.truth["mute"]:
            return
        circumstances = {"contention": int(case["contention"])} if "contention" in case else {}
        worker("start", v=1, pid=os.getpid(), workload=case["workload"], version=1,
               variant=case["variant"], size=case["size"], dtype=case["dtype"], seed=case["seed"],
               iterations=count, threads=1, backend="cuda", device=device, algorithm="imagined",
               claim=None, input_digest=inputs, libraries=[],
               environment={"backend": "cuda", "model": model, "worker_build": self.truth["build"],
                            **self.truth["environment"]},
               **({"circumstances": circumstances} if circumstances else {}))
        value = self.result(device, case, variant["control"])
        first = None
        for i in range(count):
            value = self.result(device, case, True) if variant["control"] else value
            shown = digest(bits(value))
            first = first or (shown, bits(value))
            worker("iteration", i=i, digest=shown, weight_sum=bits(value), loss=None, ms=0.5,
                   algorithm="imagined")
        key = (device, case["workload"], case["variant"])
        self.runs[key] = self.runs.get(key, 0) + 1
        if command.get("check_seconds"):
            if first[0] == command.get("check_passed") and not variant["control"]:
                worker("check", result="known")
            else:
                shown, weight_sum, i = *first, 0
                worker("checking", seconds=command["check_seconds"])
                worker("check", i=i, result="passed", digest=shown, weight_sum=weight_sum,
                       share=0.5, output="y", index=0, got=1.0, expected=1.0, bound=1e-6)
        worker("end", outcome="completed", cause=None, iterations=count, elements=ELEMENTS,
               bytes_hashed=ELEMENTS * ELEMENT_SIZE * count, device=device, input_digest=inputs)
        self.say("exited", run=name, exit_code=0, signal=None, reason="exited", wall_ms=1.0,
                 max_rss_kb=1000, log="", log_bytes=0)

    def processes(self):
        """Who else uses which device, as the file says now: a list, or why it is not known."""
        with open(sys.argv[1], encoding="utf-8") as file:
            foreign = json.load(file).get("foreign")
        if foreign and foreign != self.told:
            self.told = foreign
            self.say("processes", devices=[{
                "id": device, "foreign": said if isinstance(said, list) else None,
                "cause": None if isinstance(said, list) else said} for device, said in foreign.items()])

    def serve(self):
        self.hello()
        self.out.flush()
        for line in sys.stdin:
            command = json.loads(line)
            if command["command"] == "run":
                self.run(command)
            elif command["command"] == "ping":
                self.say("pong")
                self.processes()
            elif command["command"] == "drain":
                break
            self.out.flush()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        Agent(json.load(file)).serve()
