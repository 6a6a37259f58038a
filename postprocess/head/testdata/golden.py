"""Writes the golden tensors and what a plain NumPy decoder makes of them: python3 golden.py, in this directory.

Each case is NAME.bin, little-endian numbers, and an entry of golden.json with its settings and its detections in source pixels.
"""

import json
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent
SIZE = 64  # network input in pixels, square
SCALE, PAD = np.float32(0.05), np.array([0, 14], np.float32)
SOURCE = (1280, 720)


def corners(centre_size):
    x, y, w, h = centre_size.T
    return np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], 1)


def suppress(boxes, scores, classes, limit, agnostic):
    order = np.lexsort((boxes[:, 0], classes, -scores))
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = []
    while len(order):
        best, order = order[0], order[1:]
        kept.append(best)
        low = np.maximum(boxes[best, :2], boxes[order, :2])
        high = np.minimum(boxes[best, 2:], boxes[order, 2:])
        shared = np.prod(np.clip(high - low, 0, None), 1)
        overlaps = shared / (areas[best] + areas[order] - shared) > limit
        order = order[~(overlaps & (agnostic | (classes[order] == classes[best])))]
    return np.array(kept, int)


def reference(case, output):
    """Boxes, scores and classes of one image, best first."""
    layout, confidence = case["layout"], case["confidence"]
    if layout == "end2end":
        boxes, scores, classes = output[:, :4], output[:, 4], output[:, 5].astype(int)
        chosen = scores >= confidence
        boxes, scores, classes = boxes[chosen], scores[chosen], classes[chosen]
        kept = np.argsort(-scores, kind="stable")
    else:
        if layout == "yolov8":
            boxes, scores = corners(output[:4].T), output[4:].T
        else:
            boxes, scores = corners(output[:, :4]), output[:, 4:5] * output[:, 5:]
        if case["multi_label"]:
            rows, classes = np.nonzero(scores >= confidence)
            boxes, scores = boxes[rows], scores[rows, classes]
        else:
            classes = scores.argmax(1)
            scores = scores.max(1)
            chosen = scores >= confidence
            boxes, scores, classes = boxes[chosen], scores[chosen], classes[chosen]
        kept = suppress(boxes, scores, classes, case["iou"], case["agnostic"])
    boxes = (boxes[kept] - np.tile(PAD, 2)) / SCALE
    boxes = np.clip(boxes, 0, np.tile(SOURCE, 2))
    inside = (boxes[:, 0] < boxes[:, 2]) & (boxes[:, 1] < boxes[:, 3])
    return [
        {"box": [round(float(v), 5) for v in box], "score": round(float(score), 7), "class": int(c)}
        for box, score, c in zip(boxes[inside], scores[kept][inside], classes[kept][inside])
    ]


def objects(random, boxes, classes):
    """Boxes clustered around a few objects, as a network gives them, with background noise in every score."""
    centres = random.uniform(4, SIZE - 4, (9, 2))
    sizes = random.uniform(8, 30, (9, 2))
    labels = random.integers(0, classes, 9)
    which = random.integers(0, 9, boxes)
    place = np.concatenate([centres[which] + random.normal(0, 1.5, (boxes, 2)), sizes[which] * random.uniform(0.8, 1.2, (boxes, 2))], 1)
    scores = random.uniform(0, 0.2, (boxes, classes))
    hit = random.random(boxes) < 0.5
    scores[hit, labels[which[hit]]] = random.uniform(0.1, 0.95, hit.sum())
    scores[hit, (labels[which[hit]] + 1) % classes] = random.uniform(0, 0.6, hit.sum())
    return place, scores


def tensor(layout, random, classes):
    if layout == "end2end":
        place, scores = objects(random, 300, classes)
        order = np.argsort(-scores.max(1))
        rows = np.concatenate([corners(place), scores.max(1)[:, None], scores.argmax(1)[:, None]], 1)[order]
        return rows
    count = (SIZE // 8) ** 2 + (SIZE // 16) ** 2 + (SIZE // 32) ** 2
    if layout == "yolov8":
        place, scores = objects(random, count, classes)
        return np.concatenate([place, scores], 1).T
    place, scores = objects(random, 3 * count, classes)
    return np.concatenate([place, random.uniform(0.3, 1, (3 * count, 1)), scores], 1)


def main():
    base = {"multi_label": False, "agnostic": False, "confidence": 0.25, "iou": 0.45, "type": "float32"}
    cases = [
        {"name": "yolov5", "layout": "yolov5", "classes": 3},
        {"name": "yolov8", "layout": "yolov8", "classes": 6},
        {"name": "yolov8-multi-label", "layout": "yolov8", "classes": 3, "multi_label": True},
        {"name": "yolov8-agnostic", "layout": "yolov8", "classes": 3, "agnostic": True, "iou": 0.6},
        {"name": "yolov8-half", "layout": "yolov8", "classes": 6, "type": "float16"},
        {"name": "yolov5-multi-label", "layout": "yolov5", "classes": 2, "multi_label": True, "confidence": 0.1},
        {"name": "end2end", "layout": "end2end", "classes": 6},
    ]
    written = []
    for seed, case in enumerate(cases):
        case = {**base, **case}
        output = np.ascontiguousarray(tensor(case["layout"], np.random.default_rng(seed), case["classes"]), case["type"])
        (HERE / (case["name"] + ".bin")).write_bytes(output.astype(output.dtype.newbyteorder("<")).tobytes())
        written.append({**case, "shape": [1, *output.shape], "detections": reference(case, output.astype(np.float32))})
    text = ",\n".join("  " + json.dumps(case) for case in written)
    settings = {"size": SIZE, "scale": float(SCALE), "pad": [float(v) for v in PAD], "source": SOURCE}
    (HERE / "golden.json").write_text('{"transform": %s, "cases": [\n%s\n]}\n' % (json.dumps(settings), text))


if __name__ == "__main__":
    main()
