"""Writes the test networks of this folder: python3 generate.py (needs onnx and numpy). The same versions give the same bytes."""
import os

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = {0: "bolt", 1: "nut", 2: "wood's screw"}


def save(name, nodes, inputs, outputs, initializers=(), metadata=None, opset=13):
    graph = h.make_graph(list(nodes), name, list(inputs), list(outputs), [numpy_helper.from_array(v, k) for k, v in initializers])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8, producer_name="edge-infer")
    for key, value in (metadata or {}).items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    if opset < 20:
        onnx.checker.check_model(model)
    with open(os.path.join(HERE, name + ".onnx"), "wb") as f:
        f.write(model.SerializeToString(deterministic=True))


def picture(name, batch, sides, kind=T.FLOAT, channels=3):
    """Shrinks the picture eightfold by a strided convolution with one tap per channel, so that every output is a pixel of the input."""
    numpy_kind = np.float16 if kind == T.FLOAT16 else np.float32
    weights = np.zeros((channels, channels, 8, 8), numpy_kind)
    for c in range(channels):
        weights[c, c, 3, 5] = 1
    metadata = {"task": "detect", "stride": "8", "names": str(NAMES), "imgsz": "[64, 96]", "batch": "1"}
    height, width = sides
    out = [None if isinstance(s, str) else s // 8 for s in sides]
    save(
        name,
        [h.make_node("Conv", ["images", "w"], ["output0"], kernel_shape=[8, 8], strides=[8, 8])],
        [h.make_tensor_value_info("images", kind, [batch, channels, height, width])],
        [h.make_tensor_value_info("output0", kind, [batch, channels] + [s or "out%d" % i for i, s in enumerate(out)])],
        [("w", weights)],
        metadata,
    )


picture("picture", "batch", (64, 96))
picture("picture_fixed", 2, (64, 96))
picture("picture_free", "batch", ("height", "width"))
picture("picture_half", "batch", (64, 96), T.FLOAT16)
picture("picture_gray", "batch", (64, 96), channels=1)

# Two inputs of different types and ranks, three outputs, free dimensions besides the first one.
save(
    "tensors",
    [
        h.make_node("Cast", ["ids"], ["ids_float"], to=T.FLOAT),
        h.make_node("Mul", ["values", "ids_float"], ["product"]),
        h.make_node("Shape", ["values"], ["size"]),
        h.make_node("Greater", ["values", "zero"], ["positive"]),
    ],
    [
        h.make_tensor_value_info("values", T.FLOAT, ["n", 2, "m"]),
        h.make_tensor_value_info("ids", T.INT64, ["m"]),
    ],
    [
        h.make_tensor_value_info("product", T.FLOAT, ["n", 2, "m"]),
        h.make_tensor_value_info("size", T.INT64, [3]),
        h.make_tensor_value_info("positive", T.BOOL, ["n", 2, "m"]),
    ],
    [("zero", np.float32([0]))],
)

# Eight dimensions and the small integer types.
eight = [1, 2, 1, 2, 1, 2, 1, 2]
save(
    "eight",
    [
        h.make_node("Identity", ["a"], ["a_out"]),
        h.make_node("Identity", ["b"], ["b_out"]),
        h.make_node("Identity", ["c"], ["c_out"]),
        h.make_node("Identity", ["d"], ["d_out"]),
        h.make_node("Identity", ["e"], ["e_out"]),
    ],
    [h.make_tensor_value_info(n, k, eight) for n, k in zip("abcde", (T.INT8, T.UINT8, T.INT32, T.BOOL, T.FLOAT16))],
    [h.make_tensor_value_info(n + "_out", k, eight) for n, k in zip("abcde", (T.INT8, T.UINT8, T.INT32, T.BOOL, T.FLOAT16))],
)

# The number of rows depends on the data.
save(
    "varying",
    [h.make_node("NonZero", ["x"], ["where"])],
    [h.make_tensor_value_info("x", T.FLOAT, [8])],
    [h.make_tensor_value_info("where", T.INT64, [1, "found"])],
)

# Runs for a while: a chain of convolutions on 64 channels whose weights are made from constants, to keep the file small.
chain = [
    h.make_node("ConstantOfShape", ["shape"], ["w"], value=h.make_tensor("v", T.FLOAT, [1], [0.001])),
    h.make_node("ConstantOfShape", ["shape_first"], ["w_first"], value=h.make_tensor("v", T.FLOAT, [1], [0.01])),
    h.make_node("Conv", ["images", "w_first"], ["x0"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
]
for i in range(4):
    chain.append(h.make_node("Conv", ["x%d" % i, "w"], ["y%d" % i], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    chain.append(h.make_node("Relu", ["y%d" % i], ["x%d" % (i + 1)]))
chain.append(h.make_node("GlobalAveragePool", ["x4"], ["output0"]))
save(
    "busy",
    chain,
    [h.make_tensor_value_info("images", T.FLOAT, ["batch", 3, 160, 160])],
    [h.make_tensor_value_info("output0", T.FLOAT, ["batch", 64, 1, 1])],
    [("shape", np.int64([64, 64, 3, 3])), ("shape_first", np.int64([64, 3, 3, 3]))],
)

# An operator that no runtime knows, and an operator set of the future.
save("future", [h.make_node("Relu", ["x"], ["y"])], [h.make_tensor_value_info("x", T.FLOAT, [1])], [h.make_tensor_value_info("y", T.FLOAT, [1])], opset=99)
