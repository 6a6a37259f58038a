"""Writes the test networks of this directory: python3 generate.py (needs onnx and numpy). The same versions give the same bytes."""
import os

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = {0: "bolt", 1: "nut", 2: "wood's screw"}


def save(name, nodes, inputs, outputs, initializers=(), metadata=None, opset=13, check=True):
    graph = h.make_graph(list(nodes), name, list(inputs), list(outputs), [numpy_helper.from_array(v, k) for k, v in initializers])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8, producer_name="edge-infer")
    for key, value in (metadata or {}).items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    if opset < 20 and check:
        onnx.checker.check_model(model)
    with open(os.path.join(HERE, name + ".onnx"), "wb") as f:
        f.write(model.SerializeToString(deterministic=True))


def image(name, batch, sides, kind=T.FLOAT, channels=3):
    """Shrinks the image eightfold by a strided convolution with one tap per channel, so that every output is a pixel of the input."""
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


image("image", "batch", (64, 96))
image("image_fixed", 2, (64, 96))
image("image_free", "batch", ("height", "width"))
image("image_half", "batch", (64, 96), T.FLOAT16)
image("image_gray", "batch", (64, 96), channels=1)
image("image_half_free", "batch", ("height", "width"), T.FLOAT16)


# Inputs of absurd sizes.
image("huge_batch", 1 << 31, (64, 96))
image("huge_sides", 1, (1 << 14, 1 << 14))


def image_last(name, sides, kind):
    """The same pixels of an image whose channels come last, as numbers."""
    out = [s if isinstance(s, str) else s // 8 for s in sides]
    save(
        name,
        [
            h.make_node("Cast", ["images"], ["numbers"], to=T.FLOAT),
            h.make_node("Slice", ["numbers", "starts", "ends", "axes", "steps"], ["output0"]),
        ],
        [h.make_tensor_value_info("images", kind, ["batch", *sides, 3])],
        [h.make_tensor_value_info("output0", T.FLOAT, ["batch", *["out" + s if isinstance(s, str) else s for s in out], 3])],
        [("starts", np.int64([3, 5])), ("ends", np.int64([1 << 40, 1 << 40])), ("axes", np.int64([1, 2])), ("steps", np.int64([8, 8]))],
    )


image_last("image_last", (64, 96), T.UINT8)
image_last("image_last_free", ("height", "width"), T.FLOAT)

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

# Float16 outputs whose sizes are open: by the batch, by the data, and of a rank that the file does not tell.
save(
    "varying_half",
    [
        h.make_node("NonZero", ["x"], ["where"]),
        h.make_node("Cast", ["where"], ["where_half"], to=T.FLOAT16),
        h.make_node("Cast", ["x"], ["unranked"], to=T.FLOAT16),
        h.make_node("Identity", ["x"], ["same"]),
    ],
    [h.make_tensor_value_info("x", T.FLOAT, ["n"])],
    [
        h.make_tensor_value_info("where_half", T.FLOAT16, [1, "found"]),
        h.make_tensor_value_info("unranked", T.FLOAT16, None),
        h.make_tensor_value_info("same", T.FLOAT, ["n"]),
    ],
    check=False,
)

# Scalars in and out, of all kinds.
save(
    "scalars",
    [
        h.make_node("ReduceMax", ["values"], ["most"], keepdims=0),
        h.make_node("Mul", ["most", "factor"], ["product"]),
        h.make_node("Cast", ["product"], ["product_half"], to=T.FLOAT16),
        h.make_node("Size", ["values"], ["size"]),
        h.make_node("Greater", ["product", "factor"], ["over"]),
        h.make_node("Neg", ["product"], ["unranked"]),
    ],
    [h.make_tensor_value_info("values", T.FLOAT, ["n"]), h.make_tensor_value_info("factor", T.FLOAT, [])],
    [
        h.make_tensor_value_info("product", T.FLOAT, []),
        h.make_tensor_value_info("product_half", T.FLOAT16, []),
        h.make_tensor_value_info("size", T.INT64, []),
        h.make_tensor_value_info("over", T.BOOL, []),
        h.make_tensor_value_info("unranked", T.FLOAT, None),
    ],
    check=False,
)
scalar_outputs = [("product", T.FLOAT), ("size", T.INT64)]
save(
    "scalar",
    [h.make_node("ReduceMax", ["values"], ["product"], keepdims=0), h.make_node("Size", ["values"], ["size"])],
    [h.make_tensor_value_info("values", T.FLOAT, ["n"])],
    [h.make_tensor_value_info(n, k, []) for n, k in scalar_outputs],
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

# As large as YOLOv8n: 640x640 to [batch, 84, 8400], 8.4 GFLOP, SiLU after every convolution. All weights of a convolution are equal.
nodes, shapes = [], []


def convolution(x, channels_in, channels_out, kernel, stride):
    k = len(shapes)
    shapes.append(("shape%d" % k, np.int64([channels_out, channels_in, kernel, kernel])))
    weight = h.make_tensor("v", T.FLOAT, [1], [1.6 / (channels_in * kernel * kernel)])
    nodes.append(h.make_node("ConstantOfShape", ["shape%d" % k], ["w%d" % k], value=weight))
    pads = [kernel // 2] * 4
    nodes.append(h.make_node("Conv", [x, "w%d" % k], ["c%d" % k], kernel_shape=[kernel, kernel], strides=[stride, stride], pads=pads))
    nodes.append(h.make_node("Sigmoid", ["c%d" % k], ["s%d" % k]))
    nodes.append(h.make_node("Mul", ["c%d" % k, "s%d" % k], ["x%d" % k]))
    return "x%d" % k


def head(x, channels, count):
    nodes.append(h.make_node("Reshape", [convolution(x, channels, 84, 1, 1), "rows"], ["head%d" % count]))
    return "head%d" % count


x = convolution("images", 3, 16, 3, 2)
x = convolution(x, 16, 32, 3, 2)
for _ in range(4):
    x = convolution(x, 32, 32, 3, 1)
x = convolution(x, 32, 64, 3, 2)
for _ in range(6):
    x = convolution(x, 64, 64, 3, 1)
heads = [head(x, 64, 6400)]
x = convolution(x, 64, 128, 3, 2)
for _ in range(6):
    x = convolution(x, 128, 128, 3, 1)
heads.append(head(x, 128, 1600))
heads.append(head(convolution(x, 128, 128, 3, 2), 128, 400))
nodes.append(h.make_node("Concat", heads, ["all"], axis=2))
# Boxes in the middle, and scores from 0 to 1 that are low as on an image with nothing on it.
low, scale = np.full((1, 84, 1), -1e6, np.float32), np.ones((1, 84, 1), np.float32)
low[:, :4], scale[:, :4] = 0, 320
nodes += [
    h.make_node("Add", ["all", "low"], ["lowered"]),
    h.make_node("Sigmoid", ["lowered"], ["shares"]),
    h.make_node("Mul", ["shares", "scale"], ["output0"]),
]
save(
    "detector",
    nodes,
    [h.make_tensor_value_info("images", T.FLOAT, ["batch", 3, 640, 640])],
    [h.make_tensor_value_info("output0", T.FLOAT, ["batch", 84, 8400])],
    shapes + [("rows", np.int64([0, 84, -1])), ("low", low), ("scale", scale)],
    {"task": "detect", "stride": "32", "imgsz": "[640, 640]"},
)

# What a runtime refuses: an operator set of the future, an operator of a stranger, names that are no names.
save("future", [h.make_node("Relu", ["x"], ["y"])], [h.make_tensor_value_info("x", T.FLOAT, [1])], [h.make_tensor_value_info("y", T.FLOAT, [1])], opset=99)
one = ([h.make_tensor_value_info("x", T.FLOAT, [1])], [h.make_tensor_value_info("y", T.FLOAT, [1])])
save("stranger", [h.make_node("Teleport", ["x"], ["y"], domain="com.example")], *one, opset=20)
save("unnamed", [h.make_node("Relu", ["x"], ["y"])], *one, metadata={"names": "{0: 'bolt', 1: nut}"})
