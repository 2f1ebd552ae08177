"""Writes ONNX models of one node, without the package onnx: protocol buffers by hand, as
https://github.com/onnx/onnx/blob/main/onnx/onnx.proto numbers their fields."""
import struct

FLOAT, INT64 = 1, 7
IR_VERSION, OPSET = 8, 17


def varint(value):
    value &= (1 << 64) - 1
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes(data + bytearray([value]))


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    """AttributeProto: the type follows from the value."""
    head = block(1, name)
    if isinstance(value, float):
        return head + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, int):
        return head + number(3, value) + number(20, 2)
    if isinstance(value, str):
        return head + block(4, value) + number(20, 3)
    return head + b"".join(number(8, item) for item in value) + number(20, 7)


def tensor_type(dtype, shape):
    dims = b"".join(block(1, number(1, extent)) for extent in shape)
    return block(1, number(1, dtype) + block(2, dims))


def value_info(name, dtype, shape):
    return block(1, name) + block(2, tensor_type(dtype, shape))


def constant(name, values):
    """TensorProto of a vector: int64, or float32 where a value is one."""
    floats = any(isinstance(value, float) for value in values)
    data = struct.pack("<%d%s" % (len(values), "f" if floats else "q"), *values)
    return (number(1, len(values)) + number(2, FLOAT if floats else INT64) + block(8, name)
            + block(9, data))


def model(kind, inputs, outputs=1, constants=None, attributes=None):
    """The bytes of a model of one node.  INPUTS: [(name, dtype, shape)], in the order of the
    node's; CONSTANTS: {name: values} of those that are no inputs of the model, None: left out."""
    constants = constants or {}
    known = {name: None for name, _, _ in inputs}
    names = list(known) + [name if values is not None else "" for name, values in constants.items()]
    node = b"".join(block(1, name) for name in names)
    node += b"".join(block(2, "y%d" % index) for index in range(outputs))
    node += block(3, "node") + block(4, kind)
    node += b"".join(block(5, attribute(*item)) for item in (attributes or {}).items())
    graph = block(1, node) + block(2, "graph")
    graph += b"".join(block(5, constant(name, values)) for name, values in constants.items()
                      if values is not None)
    graph += b"".join(block(11, value_info(*item)) for item in inputs)
    # Without extents: the runtime infers them.
    graph += b"".join(block(12, block(1, "y%d" % index) + block(2, block(1, number(1, FLOAT))))
                      for index in range(outputs))
    return number(1, IR_VERSION) + block(8, number(2, OPSET)) + block(7, graph)
