"""A kernel of PTX as a function of C (ptx.h), which computes one thread.

A register is a variable of its width that begins poisoned.  Arithmetic is a call (opcodes.py,
arith.h); what is left is here: moves, memory, what threads do together, and jumps.
"""
import re

from opcodes import function, refuse_contractable, signature
from parse import BITS, Label, Refused, split_operands

C_TYPE = {8: "uint8_t", 16: "uint16_t", 32: "uint32_t", 64: "uint64_t"}
SPECIAL = {f"%{name}.{axis}": f"T->{path}[{number}]"
           for name, path in (("tid", "tid"), ("ntid", "block->ntid"), ("ctaid", "block->ctaid"),
                              ("nctaid", "block->nctaid"))
           for number, axis in enumerate("xyz")} | {"%laneid": "T->lane", "%warpid": "T->warp"}
INTEGER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+)U?")
ADDRESS = re.compile(r"\[([%$\w.]+)(?:\+(-?\d+))?\]")
SPACES = ("param", "global", "shared", "local")
SHUFFLES = {"up": "PTX_UP", "down": "PTX_DOWN", "bfly": "PTX_BFLY", "idx": "PTX_IDX"}
ATOMICS = {"add": "uf", "min": "us", "max": "us", "inc": "u", "dec": "u", "and": "b", "or": "b",
           "xor": "b", "exch": "b", "cas": "b"}
POISON = "0xdbdbdbdbdbdbdbdbu"


def c_type(kind):
    return "bool" if kind == "pred" else C_TYPE[BITS[kind]]


def signed(kind):
    return f"int{BITS[kind]}_t" if kind[0] == "s" else c_type(kind)


def aligned(offset, to):
    return (offset + to - 1) // to * to


class Emitter:
    """Writes one kernel."""

    def __init__(self, kernel, name):
        self.kernel, self.name = kernel, name
        self.used, self.flags = set(), set()
        self.where = ""
        self.parameters = {name: i for i, name in enumerate(kernel.parameters)}
        self.shared, self.shared_bytes, self.dynamic = {}, 0, set()
        self.local, self.local_bytes = {}, 0
        self._place_shared()
        for each, variable in kernel.local.items():
            self.local[each] = aligned(self.local_bytes, variable.align)
            self.local_bytes = self.local[each] + variable.size
        self.lines = [self._line(each) for each in kernel.body]

    def _place_shared(self):
        """Those that the kernel names, one behind the other; what a launch adds comes last."""
        named = {name for each in self.kernel.body if not isinstance(each, Label)
                 for operand in each.operands for name in re.findall(r"[%$\w.]+", operand)}
        for name, variable in self.kernel.shared.items():
            if name not in named:
                continue
            if variable.size == 0:
                self.dynamic.add(name)
                continue
            self.shared[name] = aligned(self.shared_bytes, variable.align)
            self.shared_bytes = self.shared[name] + variable.size

    def refuse(self, what):
        raise Refused(f"kernel {self.kernel.name}, {self.where}: {what}")

    # Operands

    def register(self, name):
        """The variable of a register."""
        if name not in self.kernel.registers:
            self.refuse(f"'{name}' is no register")
        self.used.add(name)
        return "r_" + name.replace("%", "").replace("$", "_")

    def value(self, text, kind):
        """An operand as a C expression of the bits that KIND has."""
        if text in SPECIAL:
            return SPECIAL[text]
        if text in self.kernel.registers:
            return self.register(text)
        if re.fullmatch(r"0[fF][0-9A-Fa-f]{8}", text):
            return f"0x{text[2:]}u"
        if re.fullmatch(r"0[dD][0-9A-Fa-f]{16}", text):
            return f"0x{text[2:]}u"
        if INTEGER.fullmatch(text):
            number = int(text.rstrip("U"), 0) & (1 << BITS[kind]) - 1
            return f"({c_type(kind)}){number:#x}u"
        return self.symbol(text)

    def symbol(self, text):
        """The address of a variable, in its space."""
        if text in self.shared:
            return f"(uint32_t){self.shared[text]}u"
        if text in self.dynamic:
            return f"(uint32_t){aligned(self.shared_bytes, 16)}u"
        if text in self.local:
            return f"(local + {self.local[text]}u)"
        if text in self.parameters:
            return f"(uint64_t)(uintptr_t)T->block->args[{self.parameters[text]}]"
        return self.refuse(f"unknown operand '{text}'")

    def assign(self, destination, expression, kind=None):
        """Loads and conversions extend to a register that is wider than their type."""
        if destination == "_":
            return f"(void)({expression});"
        wide = c_type(self.kernel.registers.get(destination, "b32"))
        if kind and kind[0] == "s" and wide != c_type(kind):
            expression = f"(int64_t)({signed(kind)})({expression})"
        return f"{self.register(destination)} = ({wide})({expression});"

    def address(self, text, space):
        """(expression, offset) of what stands in brackets."""
        found = ADDRESS.fullmatch(text.replace(" ", ""))
        if not found:
            self.refuse(f"unknown address '{text}'")
        base, offset = found.group(1), int(found.group(2) or 0)
        kind = "b32" if space == "shared" else "b64"
        value = self.value(base, kind)
        bits = 32 if space == "shared" else 64
        return f"({C_TYPE[bits]})({value} + (uint64_t){offset}ll)"

    # Statements

    def _line(self, each):
        if isinstance(each, Label):
            return f"{self._label(each.name)}:;"
        self.where = each.where
        code = self.instruction(each.opcode, each.operands)
        if not each.predicate:
            return code
        register = self.register(each.predicate.lstrip("!"))
        return f"if ({'!' if each.predicate[0] == '!' else ''}{register}) {{ {code} }}"

    @staticmethod
    def _label(name):
        return "l_" + name.replace("$", "")

    def instruction(self, opcode, operands):
        try:
            refuse_contractable(opcode)
        except Refused as refused:
            self.refuse(refused)
        types = signature(opcode)
        if types:
            if len(types) != len(operands) or "|" in operands[0]:
                self.refuse(f"unknown operands of {opcode}: {', '.join(operands)}")
            values = [self.value(text, kind) for text, kind in zip(operands[1:], types[1:])]
            return self.assign(operands[0], f"{function(opcode)}({', '.join(values)})")
        handler = getattr(self, "emit_" + opcode.split(".")[0], None)
        code = handler and handler(opcode.split(".")[1:], operands)
        return code or self.refuse(f"unknown opcode {opcode}")

    def emit_mov(self, parts, operands):
        if len(parts) != 1 or parts[0] not in BITS:
            return None
        to, what = operands
        bits = BITS[parts[0]]
        if to[0] == "{":
            pieces = split_operands(to[1:-1])
            width = bits // len(pieces)
            whole = self.value(what, parts[0])
            return " ".join(self.assign(piece, f"{whole} >> {width * i}") for i, piece in enumerate(pieces))
        if what[0] == "{":
            pieces = split_operands(what[1:-1])
            width = bits // len(pieces)
            return self.assign(to, " | ".join(
                f"({C_TYPE[bits]})({C_TYPE[width]}){self.value(piece, f'b{width}')} << {width * i}"
                for i, piece in enumerate(pieces)))
        return self.assign(to, self.value(what, parts[0]))

    def emit_cvta(self, parts, operands):
        """Between an address of a space and a generic one.  All but shared memory have their own already."""
        if parts[-1] != "u64" or parts[:-1] not in ([], *([each] for each in SPACES),
                                                   *(["to", each] for each in SPACES)):
            return None
        value = self.value(operands[1], "b64")
        if "shared" not in parts:
            return self.assign(operands[0], value)
        sign = "-" if parts[0] == "to" else "+"
        return self.assign(operands[0], f"{value} {sign} (uint64_t)(uintptr_t)T->block->shared")

    def emit_cvt(self, parts, operands):
        """Of integers; the others are in the table."""
        if len(parts) != 2 or not all(re.fullmatch(r"[su](8|16|32|64)", each) for each in parts):
            return None
        to, source = parts
        return self.assign(operands[0], f"({signed(to)})({signed(source)}){self.value(operands[1], source)}", to)

    def _access(self, parts):
        """(space, type, number of elements), or None."""
        space, count, volatile = "generic", 1, False
        for part in parts[:-1]:
            if part in SPACES:
                space = part
            elif part in ("v2", "v4"):
                count = int(part[1])
            elif part == "volatile":
                volatile = True
            elif part not in ("nc", "relaxed", "gpu", "cta", "ca", "cg", "cs"):
                return None
        if parts[-1] not in BITS or parts[-1] == "pred":
            return None
        return space, parts[-1], count, volatile

    def _pointer(self, space, address, size, what):
        """Checks the access and gives the pointer."""
        if space == "param":
            return f"(char *)(uintptr_t){address}"
        where = f'"{self.where}"'
        return f"ptx_{space}(T, {address}, {size}, {what}, {where})"

    def _reach(self, access, operand, what):
        """What comes before the access, with its checked pointer in `at`."""
        space, kind, count, volatile = access
        pointer = self._pointer(space, self.address(operand, space), BITS[kind] // 8 * count, what)
        if volatile:
            self.flags.add("PTX_SPINS")
        return f"{'ptx_turn(T, true); ' if volatile else ''}{{ {'const ' if what == 'PTX_READ' else ''}char *at = {pointer}; "

    def emit_ld(self, parts, operands):
        access = self._access(parts)
        if not access:
            return None
        _, kind, count, _ = access
        to = split_operands(operands[0][1:-1]) if count > 1 else [operands[0]]
        size = BITS[kind] // 8
        return (self._reach(access, operands[1], "PTX_READ") + " ".join(
            self.assign(each, f"ptx_read{8 * size}(at + {i * size})", kind) for i, each in enumerate(to)) + " }")

    def emit_st(self, parts, operands):
        access = self._access(parts)
        if not access or access[0] == "param":
            return None
        _, kind, count, _ = access
        what = split_operands(operands[1][1:-1]) if count > 1 else [operands[1]]
        size = BITS[kind] // 8
        return (self._reach(access, operands[0], "PTX_WRITE") + " ".join(
            f"ptx_write{8 * size}(at + {i * size}, ({C_TYPE[8 * size]}){self.value(each, kind)});"
            for i, each in enumerate(what)) + " }")

    def emit_atom(self, parts, operands):
        """atom{.order}{.scope}{.space}.operation.type"""
        *modifiers, operation, kind = parts
        space = next((each for each in modifiers if each in ("global", "shared")), "generic")
        rest = [each for each in modifiers if each not in ("global", "shared", "relaxed", "gpu", "cta")]
        if rest or operation not in ATOMICS or kind not in BITS or kind[0] not in ATOMICS[operation] \
                or BITS[kind] < 32:
            return None
        size = BITS[kind] // 8
        self.flags.add("PTX_TURNS")
        if operation in ("cas", "exch"):
            self.flags.add("PTX_SPINS")
        pointer = self._pointer(space, self.address(operands[1], space), size, "PTX_ATOMIC")
        flush = "_flushed" if kind == "f32" and space == "global" else ""
        values = ", ".join(self.value(each, kind) for each in operands[2:])
        spins = "true" if operation in ("cas", "exch") else "false"
        return f"ptx_turn(T, {spins}); " + self.assign(
            operands[0], f"atom_{operation}_{kind}{flush}({pointer}, {values})")

    def emit_red(self, parts, operands):
        return self.emit_atom(parts, ("_", *operands))

    def emit_bar(self, parts, operands):
        if parts == ["sync"] and operands == ("0",):
            self.flags.add("PTX_MEETS")
            return f'ptx_barrier(T, "{self.where}");'
        if parts == ["warp", "sync"]:
            self.flags.add("PTX_MEETS")
            return f'ptx_warp(T, "bar.warp.sync", {self.value(operands[0], "b32")}, 0, "{self.where}");'
        return None

    def emit_barrier(self, parts, operands):
        return self.emit_bar(["sync"], operands) if parts == ["sync"] else None

    def emit_membar(self, parts, operands):
        return "ptx_turn(T, false);" if parts in (["gl"], ["cta"]) and not operands else None

    def emit_fence(self, parts, operands):
        return "ptx_turn(T, false);" if parts[-1] in ("gpu", "cta", "sys") and not operands else None

    def emit_shfl(self, parts, operands):
        if len(parts) != 3 or parts[0] != "sync" or parts[1] not in SHUFFLES or parts[2] != "b32":
            return None
        self.flags.add("PTX_MEETS")
        to, _, inside = operands[0].partition("|")
        value, lane, bounds, mask = (self.value(each, "b32") for each in operands[1:])
        code = (f"{{ bool inside; uint32_t got = ptx_shuffle(T, {SHUFFLES[parts[1]]}, {value}, {lane}, "
                f'{bounds}, {mask}, &inside, "{self.where}"); {self.assign(to, "got")} ')
        return code + (self.assign(inside, "inside") if inside else "(void)inside;") + " }"

    def emit_vote(self, parts, operands):
        kinds = {"all": "pred", "any": "pred", "uni": "pred", "ballot": "b32"}
        if len(parts) != 3 or parts[0] != "sync" or kinds.get(parts[1]) != parts[2]:
            return None
        self.flags.add("PTX_MEETS")
        negated = operands[1].startswith("!")
        value = ("!" if negated else "") + self.value(operands[1].lstrip("!"), "pred")
        return self.assign(operands[0], f'ptx_vote_{parts[1]}(T, {value}, {self.value(operands[2], "b32")}, '
                                        f'"{self.where}")')

    def emit_bra(self, parts, operands):
        return f"goto {self._label(operands[0])};" if parts in ([], ["uni"]) else None

    def emit_ret(self, parts, operands):
        return "return;" if not parts and not operands else None

    emit_exit = emit_ret

    # The whole

    def text(self):
        lines = [f"static void {self.name}(struct ptx_thread *T)", "{"]
        if self.local_bytes:
            lines += [f"    _Alignas(16) char depot[{self.local_bytes}];",
                      "    memset(depot, 0xdb, sizeof depot);",
                      "    const uint64_t local = (uint64_t)(uintptr_t)depot;",
                      "    T->local = depot;", "    T->local_bytes = sizeof depot;"]
        by_type = {}
        for name in sorted(self.used):
            by_type.setdefault(c_type(self.kernel.registers[name]), []).append(self.register(name))
        for kind, names in by_type.items():
            first = "false" if kind == "bool" else f"({kind}){POISON}"
            for start in range(0, len(names), 8):
                lines.append(f"    {kind} " + ", ".join(f"{each} = {first}" for each in names[start:start + 8]) + ";")
        return "\n".join([*lines, *(f"    {line}" for line in self.lines), "    return;", "}"])

    def entry(self):
        """The line of the table of kernels (struct ptx_kernel)."""
        sizes = ", ".join(str(each) for each in self.kernel.parameters.values()) or "0"
        dynamic = aligned(self.shared_bytes, 16) if self.dynamic else self.shared_bytes
        return (f'    {{ "{self.kernel.name}", {self.name}, {len(self.parameters)}, (const int[]){{ {sizes} }}, '
                f"{dynamic}, {self.kernel.threads_max}, {' | '.join(sorted(self.flags)) or '0'} }},")


def module_text(module, name):
    """The C file of a module; its table of kernels is ptx_kernels_NAME."""
    emitters = [Emitter(kernel, f"kernel_{i}") for i, kernel in enumerate(module.kernels)]
    return "\n".join(['#include "tests/ptx/ptx.h"', *(each.text() for each in emitters),
                      f"const struct ptx_kernel ptx_kernels_{name}[] = {{", *(each.entry() for each in emitters),
                      "    { 0 }", "};", ""])
