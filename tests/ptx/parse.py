"""PTX as nvcc writes it, read into kernels: the grammar of the PTX ISA, as far as nvcc uses it.

nvcc writes one statement a line; a statement that begins with what is not known here is refused.
"""
import dataclasses
import pathlib
import re


class Refused(Exception):
    """What this translator does not take, and where it stands."""


@dataclasses.dataclass(frozen=True)
class Instruction:
    opcode: str
    operands: tuple
    predicate: str  # "%p1", "!%p1", or "" where it is always executed
    where: str  # "cumsum.cu:98", of the source


@dataclasses.dataclass(frozen=True)
class Label:
    name: str


@dataclasses.dataclass
class Variable:
    align: int
    size: int  # in bytes; 0: as many as the launch says


@dataclasses.dataclass
class Kernel:
    name: str
    parameters: dict = dataclasses.field(default_factory=dict)  # name: size in bytes, in order
    registers: dict = dataclasses.field(default_factory=dict)  # name: type
    shared: dict = dataclasses.field(default_factory=dict)  # name: Variable; those of the module too
    local: dict = dataclasses.field(default_factory=dict)
    body: list = dataclasses.field(default_factory=list)
    threads_max: int = 1024


@dataclasses.dataclass
class Module:
    target: str = ""
    compiler: str = ""  # "release 13.0, V13.0.88"
    kernels: list = dataclasses.field(default_factory=list)


BITS = {"pred": 1, **{f"{kind}{bits}": bits for kind in "busf" for bits in (8, 16, 32, 64)}}
NAME = r"[%$\w.]+"
VARIABLE = re.compile(rf"(?:\.extern )?\.(shared|local) (?:\.align (\d+) )?\.(\w+) ({NAME})(?:\[(\d*)\])?")
REGISTER = re.compile(rf"\.reg \.(\w+) (%?\w+)(?:<(\d+)>)?")
PARAMETER = re.compile(rf"\.param (?:\.align \d+ )?\.(\w+) (?:\.ptr (?:\.(?!align)[a-z]+ )?(?:\.align \d+ )?)?"
                       rf"({NAME})(?:\[(\d+)\])?")
ENTRY = re.compile(rf"(?:\.(?:visible|weak) )?\.entry ({NAME})")
LOC = re.compile(r"\.loc (\d+) (\d+) ")
FILE = re.compile(r'\.file (\d+) "([^"]*)"')
INSTRUCTION = re.compile(r"(?:@(!?%\w+) )?([a-z][\w.:]*)(?: (.*))?")
SAYS_NOTHING = (".version", ".address_size", ".pragma", ".minnctapersm", ".reqntid")


def split_operands(text):
    """"%r1, [%rd2+4], {%f1, %f2}" at the commas that are in no brackets."""
    found, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return tuple(found + [last] if last else found)


def statements(text):
    """Each line or brace of the kernels without comments and with single spaces; several lines where
    one statement has them."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    text = text.split(".section")[0]  # debug information, at the end
    pending = ""
    for line in text.splitlines():
        line = " ".join(f"{pending} {line}".split())
        pending = ""
        opening, _, rest = line.partition(" ")
        if not line:
            continue
        if ".entry" in line and line.count("(") > line.count(")"):
            pending = line
        elif line[0] == "{" and len(line) > 1:  # inline assembly: a scope on one line
            body = line[1:].strip()
            yield "{"
            yield from (each.strip() for each in body.rstrip("}").split(";"))
            yield from ["}"] if body.endswith("}") else []
        elif line[-1] in ";:{})" or opening in (".loc", ".file") or opening.startswith(
                (".version", ".target", ".address_size", ".maxntid", ".minnctapersm", ".reqntid")):
            yield line
        else:
            pending = line


class Parser:
    def __init__(self, text):
        self.module = Module()
        release = re.search(r"Cuda compilation tools, (.*)", text)
        self.module.compiler = release.group(1).strip() if release else ""
        self.files, self.where = self._files(text), ""
        self.kernel, self.depth = None, 0
        self.shared = {}  # of the module
        self.scopes, self.scope_count = [], 0  # of inline assembly: its own names of registers
        for statement in statements(text):
            self._statement(statement.rstrip(";").rstrip())

    @staticmethod
    def _files(text):
        return {number: pathlib.PurePath(path).name for number, path in FILE.findall(
            re.sub(r"\.file\s+", ".file ", text).replace("\t", " "))}

    def _refuse(self, what):
        raise Refused(f"kernel {self.kernel.name}: {what}" if self.kernel else what)

    def _statement(self, line):
        if line == "{":
            self.depth += 1
            self.scopes.append({})
        elif line == "}":
            self.depth -= 1
            self.scopes.pop()
            self.kernel = self.kernel if self.depth else None
        elif line.startswith(".loc "):
            number, at = LOC.match(line).groups()
            self.where = f"{self.files.get(number, '?')}:{at}"
        elif line.startswith(".target "):
            self.module.target = line.split()[1].rstrip(",")
        elif line.startswith(".maxntid"):
            sizes = [int(each) for each in re.findall(r"\d+", line)]
            self.kernel.threads_max = sizes[0] * (sizes[1] if len(sizes) > 1 else 1) * (
                sizes[2] if len(sizes) > 2 else 1)
        elif not line or line.startswith(SAYS_NOTHING) or line.startswith(".file"):
            pass
        elif ".entry " in line:
            self._entry(line)
        elif VARIABLE.match(line):
            self._variable(*VARIABLE.match(line).groups())
        elif self.kernel and self.depth:
            self._in_kernel(line)
        else:
            self._refuse(f"unknown statement '{line[:80]}'")

    def _entry(self, line):
        self.kernel = Kernel(ENTRY.match(line).group(1))
        self.kernel.shared.update(self.shared)
        for kind, name, count in PARAMETER.findall(line):
            self.kernel.parameters[name] = int(count or 1) * BITS[kind] // 8
        self.module.kernels.append(self.kernel)

    def _variable(self, space, align, kind, name, count):
        size = BITS[kind] // 8
        variable = Variable(int(align or size), 0 if count == "" else size * int(count or 1))
        if self.kernel:
            getattr(self.kernel, space)[name] = variable
        elif space == "shared":
            self.shared[name] = variable
        else:
            self._refuse(f"local memory outside of kernels: {name}")

    def _in_kernel(self, line):
        kernel = self.kernel
        register = REGISTER.fullmatch(line)
        if register:
            kind, name, count = register.groups()
            if self.depth > 1:
                self.scope_count += 1
                self.scopes[-1][name] = name = f"{name}_{self.scope_count}"
            for each in [f"{name}{i}" for i in range(int(count))] if count else [name]:
                if kernel.registers.setdefault(each, kind) != kind:
                    self._refuse(f"register {each} has two types")
            return
        if line.endswith(":"):
            kernel.body.append(Label(line[:-1]))
            return
        for scope in self.scopes[1:]:
            line = re.sub(NAME, lambda name, scope=scope: scope.get(name.group(), name.group()), line)
        found = INSTRUCTION.fullmatch(line)
        if not found:
            self._refuse(f"unknown statement '{line[:80]}'")
        predicate, opcode, operands = found.groups()
        kernel.body.append(Instruction(opcode, split_operands(operands or ""), predicate or "", self.where))


def parse(text):
    return Parser(text).module
