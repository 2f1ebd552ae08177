"""Devices that CUDA does not show to this process: it shows one MIG slice, and beside it no GPU.  NVML lists
all; each is asked for by a process that sees nothing else, as a run on it will, and what is here is what the
driver says there.  Unverified on a GPU: tested with stand-ins for both libraries."""
import ctypes
import itertools
import json
import os
import pathlib
import subprocess
import sys

UUID_SIZE = 96
AT_ONCE, DEADLINE_S = 8, 20


class Nvml:
    """libnvidia-ml.so.1, of which only what lists devices is used."""

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        if self.library.nvmlInit_v2() != 0:
            raise OSError("NVML cannot be used")

    def number(self, name, *arguments):
        """0 where the library lacks the function, or it says nothing."""
        value = ctypes.c_uint()
        known = hasattr(self.library, name)
        return value.value if known and getattr(self.library, name)(*arguments, ctypes.byref(value)) == 0 else 0

    def handle(self, name, *arguments):
        found = ctypes.c_void_p()
        return found if getattr(self.library, name)(*arguments, ctypes.byref(found)) == 0 else None

    def uuid(self, handle):
        text = ctypes.create_string_buffer(UUID_SIZE)
        return text.value.decode("ascii", "replace") \
            if handle and self.library.nvmlDeviceGetUUID(handle, text, UUID_SIZE) == 0 else None

    def is_sliced(self, gpu):
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        return hasattr(self.library, "nvmlDeviceGetMigMode") and self.library.nvmlDeviceGetMigMode(
            gpu, ctypes.byref(current), ctypes.byref(pending)) == 0 and current.value != 0

    def slices(self, gpu):
        return [self.handle("nvmlDeviceGetMigDeviceHandleByIndex", gpu, place)
                for place in range(self.number("nvmlDeviceGetMaxMigDeviceCount", gpu))]


def listed():
    """The ids of all slices, and of the GPUs not in MIG mode; [] where no GPU is in it, or NVML cannot be asked."""
    try:
        nvml = Nvml()
    except (OSError, AttributeError):
        return []
    gpus = [nvml.handle("nvmlDeviceGetHandleByIndex_v2", index)
            for index in range(nvml.number("nvmlDeviceGetCount_v2"))]
    sliced = [gpu is not None and nvml.is_sliced(gpu) for gpu in gpus]
    handles = [handle for gpu, is_sliced in zip(gpus, sliced)
               for handle in (nvml.slices(gpu) if is_sliced else [gpu])]
    return [uuid for uuid in map(nvml.uuid, handles) if uuid] if any(sliced) else []


def listed_in_time():
    """As listed; [] where NVML hangs, as it does where the driver's services do not answer while CUDA does."""
    import threading  # no run does
    found = []
    asking = threading.Thread(target=lambda: found.extend(listed()), daemon=True)  # it may never end
    asking.start()
    asking.join(DEADLINE_S)
    if asking.is_alive():
        print("NVML did not answer within %s seconds: MIG slices that the driver does not show are not known" %
              DEADLINE_S, file=sys.stderr)
        return []
    return found


def allowed(ids, visible):
    """Those that CUDA_VISIBLE_DEVICES, which is VISIBLE, names in full, before a word that names nothing and so
    ends it; None: all."""
    if visible is None:
        return ids
    named = itertools.takewhile(lambda name: name != "nodevfiles" and not name.startswith("-"),
                                visible.lower().split(","))
    names = set(named)
    return [each for each in ids if each.lower() in names]


def ask(wanted):
    """What the driver says of that device alone; None: it does not show it, or not in time."""
    program = pathlib.Path(__file__).with_name("gpus.py")
    try:
        done = subprocess.run([sys.executable, "-S", "-B", str(program)], capture_output=True, timeout=DEADLINE_S,
                              stdin=subprocess.DEVNULL, env={**os.environ, "CUDA_VISIBLE_DEVICES": wanted})
        [device] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        device = {"id": None}
    if (device["id"] or "").lower() == wanted.lower():
        return device
    print("NVML lists %s, and the driver did not show it to a process that asked for nothing else" % wanted,
          file=sys.stderr)
    return None


def hidden(shown, visible):
    """The devices beside those of SHOWN that VISIBLE, which is CUDA_VISIBLE_DEVICES, allows."""
    known = {device["id"].lower() for device in shown}
    wanted = [each for each in allowed(listed_in_time(), visible) if each.lower() not in known]
    if not wanted:
        return []
    import concurrent.futures  # no run does
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
        return [device for device in threads.map(ask, wanted) if device]
