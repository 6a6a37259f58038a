"""Writes a network with the layers of YOLOv8n at 640x640 and random weights, for measurements: yolov8n.py OUT.onnx (needs onnx and numpy).

The structure is the published one (backbone of C2f stages, SPPF, path aggregation neck, decoupled head with distribution focal loss); nothing
is trained, so its boxes mean nothing. The same versions of the packages give the same bytes."""
import sys

import numpy as np
from onnx import TensorProto as T
from onnx import checker, helper as h, numpy_helper, save

SIDE, CLASSES, BINS = 640, 80, 16
random = np.random.default_rng(8)
nodes, weights, serial = [], [], 0


def name(kind):
    global serial
    serial += 1
    return "%s_%d" % (kind, serial)


def op(kind, inputs, outputs=1, **attributes):
    out = [name(kind) for _ in range(outputs)]
    nodes.append(h.make_node(kind, inputs, out, name="/" + out[0], **attributes))
    return out[0] if outputs == 1 else out


def constant(values):
    weights.append(numpy_helper.from_array(values, name("w")))
    return weights[-1].name


def conv(x, c_in, c_out, k=1, s=1, activate=True, gain=1.8):
    # The variance for which SiLU preserves the signal's magnitude.
    w = random.normal(0, (gain / (c_in * k * k)) ** 0.5, (c_out, c_in, k, k)).astype(np.float32)
    b = random.normal(0, 0.05, c_out).astype(np.float32)
    x = op("Conv", [x, constant(w), constant(b)], kernel_shape=[k, k], strides=[s, s], pads=[k // 2] * 4)
    return op("Mul", [x, op("Sigmoid", [x])]) if activate else x


def concat(inputs, axis=1):
    return op("Concat", inputs, axis=axis)


def c2f(x, c_in, c_out, repeats, shortcut):
    c = c_out // 2
    x = conv(x, c_in, c_out)
    parts = op("Split", [x, constant(np.int64([c, c]))], 2, axis=1)
    y = parts[1]
    for _ in range(repeats):
        z = conv(conv(y, c, c, 3), c, c, 3)
        y = op("Add", [y, z]) if shortcut else z
        parts = parts + [y]
    return conv(concat(parts), (2 + repeats) * c, c_out)


def sppf(x, c):
    x = conv(x, c, c // 2)
    pools = [x]
    for _ in range(3):
        pools.append(op("MaxPool", [pools[-1]], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    return conv(concat(pools), 2 * c, c)


def upsample(x):
    return op("Resize", [x, "", constant(np.float32([1, 1, 2, 2]))], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def head(x, c_in, cells):
    boxes = conv(conv(conv(x, c_in, 64, 3), 64, 64, 3), 64, 4 * BINS, activate=False)
    scores = conv(conv(conv(x, c_in, CLASSES, 3), CLASSES, CLASSES, 3), CLASSES, CLASSES, activate=False)
    # A bias for about a hundred boxes over 0.25.
    scores = op("Add", [scores, constant(np.float32([-1.26]))])
    flat = op("Reshape", [concat([boxes, scores]), constant(np.int64([0, 4 * BINS + CLASSES, cells]))])
    return flat


x = conv("images", 3, 16, 3, 2)
x = conv(x, 16, 32, 3, 2)
x = c2f(x, 32, 32, 1, True)
x = conv(x, 32, 64, 3, 2)
p3 = c2f(x, 64, 64, 2, True)
x = conv(p3, 64, 128, 3, 2)
p4 = c2f(x, 128, 128, 2, True)
x = conv(p4, 128, 256, 3, 2)
x = c2f(x, 256, 256, 1, True)
p5 = sppf(x, 256)
n4 = c2f(concat([upsample(p5), p4]), 384, 128, 1, False)
n3 = c2f(concat([upsample(n4), p3]), 192, 64, 1, False)
m4 = c2f(concat([conv(n3, 64, 64, 3, 2), n4]), 192, 128, 1, False)
m5 = c2f(concat([conv(m4, 128, 128, 3, 2), p5]), 384, 256, 1, False)

cells = [(SIDE // s) ** 2 for s in (8, 16, 32)]
flat = concat([head(n3, 64, cells[0]), head(m4, 128, cells[1]), head(m5, 256, cells[2])], axis=2)
total = sum(cells)
boxes, scores = op("Split", [flat, constant(np.int64([4 * BINS, CLASSES]))], 2, axis=1)
bins = op("Transpose", [op("Reshape", [boxes, constant(np.int64([0, 4, BINS, total]))])], perm=[0, 2, 1, 3])
bins = op("Softmax", [bins], axis=1)
weights.append(numpy_helper.from_array(np.arange(BINS, dtype=np.float32).reshape(1, BINS, 1, 1), "bins"))
distances = op("Conv", [bins, "bins"], kernel_shape=[1, 1])
distances = op("Reshape", [distances, constant(np.int64([0, 4, total]))])
near, far = op("Split", [distances, constant(np.int64([2, 2]))], 2, axis=1)
anchors, strides = [], []
for s in (8, 16, 32):
    n = SIDE // s
    grid = np.stack(np.meshgrid(np.arange(n) + 0.5, np.arange(n) + 0.5), 0).reshape(2, -1)
    anchors.append(grid)
    strides.append(np.full((1, n * n), s))
anchor = constant(np.concatenate(anchors, 1).astype(np.float32)[None])
stride = constant(np.concatenate(strides, 1).astype(np.float32)[None])
low, high = op("Sub", [anchor, near]), op("Add", [anchor, far])
centre = op("Div", [op("Add", [low, high]), constant(np.float32([2]))])
box = op("Mul", [concat([centre, op("Sub", [high, low])]), stride])
nodes.append(h.make_node("Concat", [box, op("Sigmoid", [scores])], ["output0"], axis=1, name="/output0"))

graph = h.make_graph(
    nodes,
    "yolov8n-shaped",
    [h.make_tensor_value_info("images", T.FLOAT, ["batch", 3, SIDE, SIDE])],
    [h.make_tensor_value_info("output0", T.FLOAT, ["batch", 4 + CLASSES, total])],
    weights,
)
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8, producer_name="edge-infer")
checker.check_model(model)
save(model, sys.argv[1])
