"""Prepares the hardware tests: prepare.py FOLDER IMAGES... writes NAME.input, NAME.output and NAME.calibration for each FOLDER/NAME.onnx.

Input and output are float32 of one image as ONNX Runtime computes it on the CPU; the calibration file is what tensorrt.WriteCalibration
writes. Needs onnxruntime, numpy and pillow."""
import glob
import os
import struct
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


directory, images = sys.argv[1], sys.argv[2:]
for path in glob.glob(os.path.join(directory, "*.onnx")):
    if path.endswith(".qdq.onnx"):
        continue
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    base, first = path[: -len(".onnx")], session.get_inputs()[0]
    height, width = first.shape[2:]
    batches = [np.ascontiguousarray(letterbox(p, width, height)) for p in images]
    batches[0].tofile(base + ".input")
    session.run(None, {first.name: batches[0]})[0].astype(np.float32).tofile(base + ".output")
    with open(base + ".calibration", "wb") as f:
        name = first.name.encode()
        f.write(b"EICALIB1" + struct.pack("<III", 1, len(batches), 1) + struct.pack("<I", len(name)) + name + struct.pack("<Q", batches[0].nbytes))
        for b in batches:
            f.write(b.tobytes())
    print(base, first.shape, len(batches), "images")
