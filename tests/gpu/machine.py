"""What this machine has: the build, libraries that came with Python packages, the probe."""
import os
import pathlib
import site
import subprocess
import sys

import runs

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARIES = {"cudnn": "libcudnn.so.*", "nccl": "libnccl.so.*", "cublas": "libcublas.so.*"}

# Where a driver lies on machines whose dynamic linker does not know.
DRIVER_FOLDERS = ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/wsl/lib")
MEMORY_EACH = 6 << 30  # bytes of the device's memory for a process at `large`, with load


def wheel_files(pattern):
    """Files of NVIDIA's Python packages, which is where some machines have cuDNN."""
    folders = dict.fromkeys(site.getsitepackages() + [site.getusersitepackages()] + sys.path)
    return sorted(path for folder in folders if folder
                  for path in pathlib.Path(folder).glob(f"nvidia/*/{pattern}"))


def serves_one(device):
    """Its compute mode refuses a second process."""
    return device.get("attributes", {}).get("compute_mode") == "exclusive_process"


def processes_at_a_time(device):
    """Contexts, inputs and references take turns on the device and the cores; each needs memory."""
    if serves_one(device):
        return 1
    cores, memory = os.cpu_count() or 1, device.get("attributes", {}).get("memory_bytes")
    fit = memory // MEMORY_EACH if isinstance(memory, int) else 6
    return max(1, min(12, cores * 3 // 4, fit))


def build(make, seconds):
    """None, or the last lines of what went wrong."""
    command = [*make.split(), "--no-print-directory", f"-j{os.cpu_count()}", "gpu-programs"]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds, env=without_make(os.environ))
    except subprocess.TimeoutExpired:
        return "the build did not end before the deadline"
    if done.returncode != 0:
        return "\n".join(done.stdout.decode(errors="replace").splitlines()[-15:])
    return None


def without_make(environment):
    """Without what an outer make hands down, its variables excepted: the build has its own
    jobs."""
    kept = {name: value for name, value in environment.items()
            if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    _, dashes, variables = environment.get("MAKEFLAGS", "").partition("-- ")
    return {**kept, "MAKEFLAGS": dashes + variables} if variables else kept


def probe(worker, env):
    answer = runs.ask([worker, "--probe"], 60, env)
    said = answer.json()
    if answer.exit_code != 0 or not said:
        return {"devices": [], "cause": f"the probe failed: {answer.errors.strip()}"}
    return said


def with_path(env, folders):
    """ENV with FOLDERS before the LD_LIBRARY_PATH that there is."""
    before = env.get("LD_LIBRARY_PATH", os.environ.get("LD_LIBRARY_PATH", ""))
    return {**env, "LD_LIBRARY_PATH": ":".join([*dict.fromkeys(folders), *([before] if before else [])])}


def probe_with_driver(worker, env):
    """The probe; where it finds no driver, one that lies elsewhere joins ENV."""
    said = probe(worker, env)
    for folder in DRIVER_FOLDERS:
        if said.get("devices") or not (pathlib.Path(folder) / "libcuda.so.1").exists():
            continue
        wider = with_path(env, [folder])
        found = probe(worker, wider)
        if found.get("devices"):
            env.update(wider)
            said = found
    return said


def probe_with_wheels(worker, env):
    """The probe; libraries that the system lacks are looked for in Python packages, and
    their folders join ENV."""
    said = probe_with_driver(worker, env)
    folders = []
    for name in said.get("problems", {}):
        found = wheel_files(f"lib/{LIBRARIES[name]}") if name in LIBRARIES else []
        folders += [str(found[0].parent)] if found else []
    if said.get("devices") and folders:
        env.update(with_path(env, folders))
        said = probe(worker, env)
    return said
