"""The GPUs that this process may use, as NVIDIA's driver says them: libcuda.so.1 itself, so that the answer
is the same for every framework, and is none of a framework's.  Ids are those of reprod-worker-cuda."""
import contextlib
import ctypes
import importlib.metadata
import json
import re

NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
STUB_LIBRARY = 34
MAJOR, MINOR, PROCESSORS = 75, 76, 16  # CU_DEVICE_ATTRIBUTE_...


class NoGpus(Exception):
    """There is none to be used, and why."""


class Driver:
    """libcuda.so.1.  CUDA_VISIBLE_DEVICES is read when the first of a process begins to use it."""

    def __init__(self, visible):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise NoGpus("no NVIDIA driver: libcuda.so.1 was not found") from None
        status = self.library.cuInit(0)
        if status == STUB_LIBRARY:
            raise NoGpus("no NVIDIA driver: libcuda.so.1 is the toolkit's stub")
        if status == NO_DEVICE:
            raise NoGpus("the NVIDIA driver shows no GPU; CUDA_VISIBLE_DEVICES=%s"
                         % ("is not set" if visible is None else visible[:128]))
        if status != 0:
            raise NoGpus("the GPUs cannot be listed: cuInit says %d" % status)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise NoGpus("the GPUs cannot be listed: %s says %d" % (name, status))

    def number(self, name, *arguments):
        value = ctypes.c_int()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value

    def uuid(self, device):
        """Of a MIG slice its own, where the driver knows that function."""
        data = ctypes.create_string_buffer(16)
        known = hasattr(self.library, "cuDeviceGetUuid_v2")
        self.call("cuDeviceGetUuid_v2" if known else "cuDeviceGetUuid", data, device)
        text = data.raw.hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def device(self, index):
        device = self.number("cuDeviceGet", index)
        name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t()
        self.call("cuDeviceGetName", name, 256, device)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        model = name.value.decode("utf-8", "replace")
        attributes = {"compute_capability": "%d.%d" % (
            self.number("cuDeviceGetAttribute", MAJOR, device),
            self.number("cuDeviceGetAttribute", MINOR, device)),
            "sm_count": self.number("cuDeviceGetAttribute", PROCESSORS, device)}
        _, slice_, profile = model.partition(" MIG ")
        if slice_:
            attributes["mig_profile"] = profile
        return {"id": ("MIG-" if slice_ else "GPU-") + self.uuid(device), "model": model,
                "attributes": {**attributes, "memory_bytes": memory.value}}


def visible(variable):
    """[{"id", "model", "attributes"}] of at least one.  NoGpus: there is none.  VARIABLE: what
    CUDA_VISIBLE_DEVICES is, for the reason."""
    driver = Driver(variable)
    return [driver.device(index) for index in range(driver.number("cuDeviceGetCount"))]


def versions():
    """Of the driver, of the newest CUDA that it serves, and of the libraries of NVIDIA's that lie
    beside the framework."""
    facts = {}
    with contextlib.suppress(OSError), open("/proc/driver/nvidia/version") as file:
        found = re.search(r"\s(\d+\.[\d.]+)\s", file.readline())
        facts["driver"] = found and found[1]
    with contextlib.suppress(OSError, AttributeError):
        version = ctypes.c_int()
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) == 0:
            facts["cuda_driver"] = cuda_version(version.value)
    packages = {"%s %s" % (found.metadata["Name"], found.version)
                for found in importlib.metadata.distributions()
                if (found.metadata["Name"] or "").lower().startswith(("nvidia-", "jax-cuda"))}
    facts["cuda_packages"] = ", ".join(sorted(packages))
    return {name: fact for name, fact in facts.items() if fact}


def cuda_version(number):
    """CUDA writes 13.1 as 13010."""
    return "%d.%d" % (number // 1000, number % 1000 // 10)


if __name__ == "__main__":  # asked by gpu_slices.py
    try:
        print(json.dumps(visible(None)))
    except NoGpus as error:
        print(json.dumps([{"id": None, "cause": str(error)}]))
