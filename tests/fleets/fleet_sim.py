"""Fleets of devices that do not exist, for a real service: hosts for its configuration,
whose agents are fake_agent.py, and what is true of their devices.

    fleet = Fleet(folder, hosts=2, devices=4, wrong={"GPU-03": {}})
    service = Service(folder, config=fleet.config())

WRONG says of a device what is wrong with it: "rate", the share of its runs that are (1);
"from", the run in which it begins (0); "another", whether each wrong run has another digest; "by",
which digest it is else; "variants", in which it is (all).
VARIES: the share of all runs that are not as the others, on any device.
SHIFTS: {workload: number}, by which its bits are others than with another number; LOADED:
likewise under contention.  MUTE: runs begin and never end.
"""
import json
import pathlib
import sys

AGENT = pathlib.Path(__file__).with_name("fake_agent.py")
SEED = 1


def catalogue(workload="imagined", controlled=True, ordered=("ordered",)):
    """A workload with ORDERED variants, and a control."""
    subject = {"subject": "model", "subject_name": None}
    variants = [{"name": name, "summary": "in order", "models": "", "algorithm": "imagined",
                 "claim": None, "control": False, **subject} for name in ordered]
    if controlled:
        variants.append({"name": "unordered", "summary": "in no order", "models": "",
                         "algorithm": "imagined", "claim": None, "control": True, "kind": "race",
                         **subject})
    return {"workload": workload, "version": 1, "backend": "cuda", "title": "imagined", "summary": "imagined",
            "variants": variants, "sizes": [{"name": "small", "description": "64"}],
            "dtypes": ["float64"], "weight_sum": "sum", "loss": None,
            "no_control": None if controlled else "nothing can vary", "references": []}


class Fleet:
    def __init__(self, folder, hosts=2, devices=4, wrong=None, varies=0, workloads=None, seed=SEED,
                 stack="sim", environment=None, attributes=None, shifts=None, loaded=None, mute=False,
                 build="sim-1"):
        self.folder = pathlib.Path(folder)
        self.names = [f"host-{h}" for h in range(hosts)]
        self.devices = {name: [f"GPU-{h * devices + d:02}" for d in range(devices)]
                        for h, name in enumerate(self.names)}
        self.truth = {"seed": seed, "build": build, "stack": stack, "wrong": wrong or {},
                      "varies": varies, "catalogue": workloads or [catalogue()],
                      "environment": environment or {"driver": "1.0"},
                      "shifts": shifts or {}, "loaded": loaded or {}, "mute": mute}
        self.attributes = attributes or {}
        self.hosts = {}  # what is other on one host: {"host-1": {"build": "sim-2"}}

    def host(self, name):
        """The entry of a host in a configuration."""
        devices = [{"id": d, "model": "imagined GPU", "attributes": {
            "serial": f"SN{d[4:]}", "pci_bus_id": f"00:{d[4:]}.0", "vbios": "96.00",
            "ecc_mode": "on", **self.attributes.get(d, {})}} for d in self.devices[name]]
        path = self.folder / f"{name}.truth.json"
        whole = path.with_suffix(".new")
        whole.write_text(json.dumps({**self.truth, **self.hosts.get(name, {}), "host": name, "devices": devices}))
        whole.replace(path)  # an agent that reads it gets all
        return {"name": name, "launch": [sys.executable, str(AGENT), str(path)]}

    def config(self, **settings):
        return {"hosts": [self.host(name) for name in self.names], **settings}
