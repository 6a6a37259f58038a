"""Measures an ONNX file on a dataset written by `edge-infer dataset`: mAP by metrics.py, by pycocotools where installed, and CPU latency."""

import argparse
import ast
import gzip
import json
import os
import time

import cv2
import numpy as np
import onnxruntime

import metrics
import images


def session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        model = f.read()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def detect(model, path, size, confidence=0.001):
    image = cv2.imread(path)
    square, scale, left, top = images.letterbox(image, size)
    tensor = np.ascontiguousarray(square.transpose(2, 0, 1)[None], np.float32) / 255
    output = model.run(None, {"images": tensor})[0][0]
    return metrics.decode(output, scale, left, top, image.shape[1], image.shape[0], confidence)


def with_pycocotools(directory, found):
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    truth = COCO(os.path.join(directory, "annotations.json"))
    rows = [{"image_id": i + 1, "category_id": int(c), "bbox": [x1, y1, x2 - x1, y2 - y1], "score": s}
            for i, boxes in enumerate(found) for x1, y1, x2, y2, s, c in boxes.tolist()]
    check = COCOeval(truth, truth.loadRes(rows), "bbox")
    check.evaluate()
    check.accumulate()
    check.summarize()


def latency(path, size, threads, runs=200):
    model, tensor = session(path, threads), np.random.rand(1, 3, size, size).astype(np.float32)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        model.run(None, {"images": tensor})
        times.append(1e3 * (time.perf_counter() - start))
    return np.percentile(times[20:], [50, 99])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=os.path.join(os.path.dirname(__file__), "model.onnx.gz"))
    parser.add_argument("--data", required=True)
    parser.add_argument("--pycocotools", action="store_true")
    parser.add_argument("--predictions", help="write the detections as a COCO result file")
    options = parser.parse_args()
    model = session(options.model, 1)
    metadata = model.get_modelmeta().custom_metadata_map
    labels, size = ast.literal_eval(metadata["names"]), ast.literal_eval(metadata["imgsz"])[0]
    jobs = images.index(options.data)
    found = [detect(model, path, size) for path, _ in jobs]
    truth = [np.array(parts, float).reshape(-1, 5) for _, parts in jobs]
    table = metrics.average_precision(found, truth, len(labels))
    for c, label in labels.items():
        print(f"{label:8} AP50 {table[c, 0]:.4f} AP50-95 {table[c].mean():.4f}")
    print(f"all      mAP50 {np.nanmean(table[:, 0]):.4f} mAP50-95 {np.nanmean(table):.4f} on {len(jobs)} images")
    for threads in (1, 2):
        half, worst = latency(options.model, size, threads)
        print(f"{threads} thread{'s' * (threads > 1)}: p50 {half:.2f} ms, p99 {worst:.2f} ms an image")
    if options.predictions:
        with open(options.predictions, "w") as f:
            json.dump([{"image_id": i + 1, "category_id": int(c), "bbox": [x1, y1, x2 - x1, y2 - y1], "score": s}
                       for i, boxes in enumerate(found) for x1, y1, x2, y2, s, c in boxes.tolist()], f)
    if options.pycocotools:
        with_pycocotools(options.data, found)


if __name__ == "__main__":
    main()
