"""make bundle: programs, libraries and licences in one folder, which runs where none of our
packages is installed."""
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

from service import BUILD, LIMIT, ROOT, Service

MAKE = ROOT / "deploy" / "make-bundle"
PROGRAMS = [BUILD / name for name in ("reprod", "reprod-worker", "reprod-worker-cuda",
                                      "reprod-launch", "libreprod-digest.so")]
GLIBC = re.compile(r"(ld-linux-[\w-]+|lib(c|m|pthread|dl|rt|resolv|util|anl|mvec))\.so[.\d]*")


def built():
    """A CUDA worker that CUDA=0 left lying about is none of this build."""
    made = (ROOT / "Makefile").stat().st_mtime
    return [path for path in PROGRAMS if path.exists()
            and (path.name != "reprod-worker-cuda" or path.stat().st_mtime >= made)]


def make(out, programs, *options, **env):
    done = subprocess.run([sys.executable, MAKE, "--version", "9.9", "--out", out, *options, *programs],
                          capture_output=True, text=True, timeout=LIMIT, env={**os.environ, **env})
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """What lies in an empty folder after the archive was unpacked there."""
    out, empty = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("unpacked")
    status, said = make(out, built())
    assert status == 0, said
    [archive] = out.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(empty)
    [folder] = empty.iterdir()
    assert archive.name == f"{folder.name}.tar.gz" and folder.name.startswith("reprod-9.9-linux-")
    return folder


def libraries_outside(maps, inside):
    names = {line.split()[-1] for line in maps.splitlines() if ".so" in line.split()[-1]}
    return {name for name in names if not re.search(inside, name)
            and not GLIBC.fullmatch(os.path.basename(name))}


# A machine that has glibc, and nothing else

def may_isolate():
    return shutil.which("unshare") and subprocess.run(
        unshared() + ["true"], capture_output=True, timeout=LIMIT).returncode == 0


def unshared():
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


def install_glibc(root):
    """The C library and the dynamic linker, where this system has them."""
    said = subprocess.run(["ldd", BUILD / "reprod"], capture_output=True, text=True, timeout=LIMIT).stdout
    paths = [word for word in said.split() if word.startswith("/")]
    for path in map(pathlib.Path, paths):
        if GLIBC.fullmatch(path.name):
            target = root / str(path)[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


class Elsewhere(Service):
    """The service of a bundle in a root folder that also has glibc, and nothing else."""

    def __init__(self, root, bundle):
        self.root, self.bundle = root, bundle
        super().__init__(root / "service", options=["--no-survey"], env={"TMPDIR": "/service"})

    def command(self):
        inside = [f"/{path.relative_to(self.root)}" for path in (self.bundle, self.config, self.data)]
        mounts = "".join(f"mkdir -p {self.root}/{name} && mount --rbind /{name} {self.root}/{name} && "
                         for name in ("proc", "dev"))
        return [*unshared(), "sh", "-c", mounts + 'PATH=$PATH:/usr/sbin:/sbin; exec chroot "$@"', "sh", str(self.root),
                inside[0] + "/reprod", "serve", "--config", inside[1], "--listen", "127.0.0.1:0",
                "--data", inside[2], *self.options]


@pytest.mark.long
@pytest.mark.skipif(not may_isolate(), reason="may not hide the system's libraries here")
def test_it_serves_and_computes_where_only_glibc_is_installed(unpacked, tmp_path):
    install_glibc(tmp_path)
    bundle = tmp_path / "opt" / "reprod"
    shutil.copytree(unpacked, bundle, symlinks=True)
    service = Elsewhere(tmp_path, bundle).start()
    try:
        assert service.get("/healthz")
        job = service.post_job(workloads=["reduce_sum"], variants=["ordered"], runs=2, iterations=2)
        assert service.finish_job(job)["progress"]["runs_failed"] == 0
        for run in service.items(f"/v1/runs?job={job}"):
            assert run["outcome"] == "completed"
        maps = pathlib.Path(f"/proc/{service.process.pid}/maps").read_text()
        assert "libmicrohttpd" in maps
        assert libraries_outside(maps, r"/opt/reprod/lib/[^/]+$") == set()
        [cpu, *_] = service.get("/v1/stacks")["items"]
        assert cpu["worker"] == "/opt/reprod/reprod-worker"
    finally:
        assert service.stop() == 0, service.log.read_text()[-2000:]


# What is in it

def test_the_folder_is_complete(unpacked):
    status = subprocess.run([unpacked / "check-host"], capture_output=True, text=True, timeout=LIMIT)
    assert (status.returncode, status.stderr) == (0, "")
    for line in (unpacked / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ", 1)
        assert hashlib.sha256((unpacked / name).read_bytes()).hexdigest() == digest, name
    licences = {path.parent.name for path in unpacked.glob("licences/*/copyright")}
    assert len(licences) >= 6 and any("microhttpd" in name for name in licences)
    assert (unpacked / "python" / "libreprod-digest.so").exists()
    assert (unpacked / "python" / "reprod_probe.py").exists()
    for path in unpacked.rglob("*"):
        assert not path.is_symlink() or path.exists(), path


def test_through_a_link_and_against_foreign_libraries(unpacked, tmp_path):
    """LD_LIBRARY_PATH of whoever calls cannot put another library in the place of one that came
    along."""
    (tmp_path / "libuv.so.1").write_text("no library")
    (tmp_path / "reprod").symlink_to(unpacked / "reprod")
    done = subprocess.run([tmp_path / "reprod", "version"], capture_output=True, text=True, timeout=LIMIT,
                          env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode == 0 and "reprod" in done.stdout, done.stderr


def test_a_host_that_is_too_old_is_told_so(unpacked, tmp_path):
    shutil.copy(unpacked / "check-host", tmp_path)
    needs = dict(line.split() for line in (unpacked / "NEEDS").read_text().splitlines())
    assert set(needs) - {"driver"} == {"machine", "glibc"} and needs["glibc"].startswith("2.")
    assert ("driver" in needs) == (unpacked / "reprod-worker-cuda").exists()
    for name, value, words in (("glibc", "99.1", "99.1 or newer is needed"),
                               ("machine", "pdp11", "the bundle is for pdp11")):
        (tmp_path / "NEEDS").write_text("".join(f"{key} {text}\n" for key, text in
                                                {**needs, name: value}.items()))
        done = subprocess.run([tmp_path / "check-host"], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 1 and words in done.stderr, done.stderr


OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (root@host)"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Sun Jul 27 07:24:13 UTC 2026"


@pytest.mark.parametrize("line", [OPEN, CLOSED], ids=["open", "closed"])
@pytest.mark.parametrize("needed, here, refused", [("580.65.06", "575.57.08", True), ("580.65.06", "580.65.06", False),
                                                   ("580.65.06", "590.10", False), (None, "450.10", False),
                                                   ("580.65.06", None, False)])
def test_an_old_driver_is_told(line, needed, here, refused, tmp_path):
    """No driver is no fault: a CPU is measured."""
    shutil.copy(ROOT / "deploy" / "check-host", tmp_path)
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    (tmp_path / "NEEDS").write_text(f"machine {platform.machine()}\nglibc {glibc}\n"
                                    + (f"driver {needed}\n" if needed else ""))
    if here:
        (tmp_path / "version").write_text(line.format(here) + "\nGCC version:  gcc version 12.2.0\n")
    done = subprocess.run([tmp_path / "check-host"], capture_output=True, text=True, timeout=LIMIT,
                          env={**os.environ, "DRIVER_VERSION_FILE": str(tmp_path / "version")})
    assert done.returncode == refused, done.stderr
    assert (f"driver {here} is here; reprod-worker-cuda needs {needed}" in done.stderr) == refused


# Making it

@pytest.fixture
def program(tmp_path):
    """A program that needs a library which no package owns: (the program, the library)."""
    (tmp_path / "own.c").write_text("int own(void) { return 0; }")
    (tmp_path / "main.c").write_text("int own(void); int main(void) { return own(); }")
    library = tmp_path / "libown.so.1"
    for command in (["-shared", "-fPIC", "-Wl,-soname,libown.so.1", "-o", library, tmp_path / "own.c"],
                    ["-o", tmp_path / "main", tmp_path / "main.c", library,
                     f"-Wl,--disable-new-dtags,-rpath,$ORIGIN/lib:{tmp_path}"]):
        subprocess.run(["gcc", *command], check=True, timeout=LIMIT)
    return tmp_path / "main", library


def test_a_library_without_a_licence_is_refused(program, tmp_path):
    status, said = make(tmp_path / "out", [program[0]])
    assert status == 1 and "libown.so.1: its licence is not found" in said
    assert list((tmp_path / "out").iterdir()) == []


def test_the_same_sources_give_the_same_archive(program, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "libown.so.1").write_text("do what you like")
    archives = []
    for out in (tmp_path / "one", tmp_path / "two"):
        status, said = make(out, [program[0]], "--licences", tmp_path / "texts", SOURCE_DATE_EPOCH="1")
        assert status == 0, said
        archives.append(next(out.glob("*.tar.gz")).read_bytes())
    assert archives[0] == archives[1]
    [text] = (tmp_path / "one").glob("*/licences/libown.so.1/copyright")
    assert text.read_text() == "do what you like"


def test_a_program_that_looks_elsewhere_is_refused(program, tmp_path):
    """It would run here, and nowhere else."""
    subprocess.run(["gcc", "-o", program[0], tmp_path / "main.c", program[1],
                    f"-Wl,-rpath,{tmp_path}"], check=True, timeout=LIMIT)
    status, said = make(tmp_path / "out", [program[0]])
    assert status == 1 and "it was linked without the folder of the bundle's libraries" in said
