"""How a fleet (truths.py) becomes hosts of a service's configuration, in three kinds: fake agents; commands
of the configuration; simulated devices.  The agents of the last two are the real ones, and each of
their runs is a process."""
import json
import sys

from fleet_sim import AGENT, catalogue
from service import BUILD
from fleet_truths import VARIANTS

SIMULATED = BUILD / "tests" / "reprod-worker-cudasim-fleets"
COMMAND = BUILD / "tests" / "fleet-command"
# A worker that only says which devices there are.
LISTS = """#!/bin/sh
case "$1" in
--probe) cat %s.probe;;
--catalogue) cat %s.catalogue;;
esac
"""


def attributes(device):
    return {"serial": f"SN{device}", "pci_bus_id": f"00:{int(device.split('-')[-1].split(':')[-1]) % 8:02x}.0", "vbios": "96.00"}


def model(truth):
    """Fleets differ in the model of their devices, or in their driver."""
    return f"imagined GPU {truth.number}" if truth.number % 2 else "imagined GPU"


def fake(folder, truth, name, devices):
    wrong = {device: {"variants": sorted(variants), "another": truth.another, "by": truth.by}
             for device, variants in truth.wrong.items()}
    path = folder / f"{name}.json"
    path.write_text(json.dumps({
        "seed": truth.number, "build": "sim-1", "stack": "sim", "wrong": wrong, "varies": 0, "mute": False,
        "shifts": {}, "loaded": {}, "catalogue": [catalogue(ordered=VARIANTS)], "host": name,
        "environment": {"driver": f"{truth.number}.0"},
        "devices": [{"id": d, "model": model(truth), "attributes": attributes(d)} for d in devices]}))
    return [sys.executable, str(AGENT), str(path)]


def agent(folder, name, settings):
    """The real one, with SETTINGS."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(settings))
    return [str(BUILD / "reprod"), "agent", "--config", str(path)]


def external(folder, truth, name, devices):
    lists, wrong = folder / name, folder / f"fleet-{truth.number}.wrong"
    wrong.write_text(f"fleet {truth.number} is\n" + "".join(
        f"{device} {variant} {'another' if truth.another else 'same'}\n"
        for device, variants in truth.wrong.items() for variant in sorted(variants)))
    lists.with_suffix(".probe").write_text(json.dumps({
        "v": 1, "backend": "cuda", "worker_build": "lists", "versions": {}, "cause": None,
        "devices": [{"id": d, "model": model(truth), "attributes": attributes(d)} for d in devices]}) + "\n")
    lists.with_suffix(".catalogue").write_text(json.dumps({**catalogue("nothing"), "survey": False}) + "\n")
    lists.write_text(LISTS % (lists, lists))
    lists.chmod(0o755)
    return agent(folder, name, {
        "stacks": [{"name": "lists", "worker": str(lists)}],
        "workloads": [{"name": "fleet_sums", "command": [str(COMMAND), str(wrong)], "directory": str(folder),
                       "subject": "framework", "subject_name": "own", "backend": "cuda", "survey": True,
                       "variants": [{"name": "unordered", "control": True}, *({"name": v} for v in VARIANTS)]}]})


def simulated(folder, truth, name, devices):
    numbers = {device: int(device.split(":")[1]) for device in devices}
    wrong = [f"{number}/{variant}_kernel/{'another' if truth.another else 'same'}"
             for device, number in numbers.items() for variant in sorted(truth.wrong.get(device, ()))]
    return agent(folder, name, {"stacks": [{"name": "sim", "worker": str(SIMULATED), "env": {
        "REPROD_CUDASIM_SEED": str(truth.number + 1), "REPROD_CUDASIM_DEVICES": str(len(devices)),
        "REPROD_CUDASIM_FIRST": str(min(numbers.values())), "REPROD_CUDASIM_NAME": f"simulated GPU {truth.number}",
        "REPROD_CUDASIM_WRONG": ",".join(wrong)}}]})


# What makes the launch command of a host, and how its devices' ids begin.
KINDS = {"fake agents": (fake, "GPU-"), "external workloads": (external, "GPU-"), "simulated devices": (simulated, "sim:")}


def hosts(kind, folder, truths):
    make, _ = KINDS[kind]
    return [{"name": name, "launch": make(folder, truth, name, devices)}
            for truth in truths for name, devices in truth.hosts.items()]
