"""Prepares the hardware tests: prepare.py DIRECTORY IMAGE writes NAME.input and NAME.output for each DIRECTORY/NAME.onnx.

They are float32 of one image as ONNX Runtime computes it on the CPU. Needs onnxruntime, numpy and pillow."""
import glob
import os
import sys

import numpy as np
import onnxruntime
from PIL import Image


def letterbox(path, width, height):
    image = Image.open(path).convert("RGB")
    scale = min(width / image.width, height / image.height)
    inner = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    canvas = Image.new("RGB", (width, height), (114, 114, 114))
    canvas.paste(image.resize(inner, Image.BILINEAR), ((width - inner[0]) // 2, (height - inner[1]) // 2))
    return np.asarray(canvas, np.float32).transpose(2, 0, 1)[None] / 255


directory, image = sys.argv[1:]
for path in glob.glob(os.path.join(directory, "*.onnx")):
    if path.endswith(".qdq.onnx"):
        continue
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    base, first = path[: -len(".onnx")], session.get_inputs()[0]
    height, width = first.shape[2:]
    tensor = np.ascontiguousarray(letterbox(image, width, height))
    tensor.tofile(base + ".input")
    session.run(None, {first.name: tensor})[0].astype(np.float32).tofile(base + ".output")
    print(base, first.shape)
