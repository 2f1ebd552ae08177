#!/usr/bin/env python3
"""PTX to C, and the table of what was translated.  The C is for tests only: see README.md.

  translate.py kernels NAME FILE.ptx          the kernels of one file, on standard output
  translate.py modules NAME=FILE.cu.o ...     which fat binary has which kernels
"""
import pathlib
import subprocess
import sys
import tempfile
import zlib

from emit import module_text
from parse import Refused, parse

SECTION = ".nv_fatbin"


def fat_binary(path):
    """What the host code of an object registers."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "section"
        subprocess.run(["objcopy", "-O", "binary", f"--only-section={SECTION}", path, out], check=True)
        return out.read_bytes()


def modules_text(pairs):
    lines = ['#include "tests/ptx/ptx.h"', ""]
    lines += [f"extern const struct ptx_kernel ptx_kernels_{name}[];" for name, _ in pairs]
    lines += ["const struct ptx_module ptx_modules[] = {"]
    for name, path in pairs:
        binary = fat_binary(path)
        lines.append(f'    {{ "{name}", {len(binary)}, {zlib.crc32(binary):#x}u, ptx_kernels_{name} }},')
    return "\n".join([*lines, "    { 0 }", "};", ""])


def main():
    command, *arguments = sys.argv[1:]
    if command == "modules":
        return modules_text([argument.split("=", 1) for argument in arguments])
    name, path = arguments
    try:
        return module_text(parse(pathlib.Path(path).read_text(encoding="latin-1")), name)
    except Refused as refused:
        sys.exit(f"{path}: {refused}")


if __name__ == "__main__":
    sys.stdout.write(main())
