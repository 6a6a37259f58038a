"""Writes wbf.json: random boxes of several networks and what the package ensemble-boxes makes of them.

    pip install ensemble-boxes==1.0.9 numpy && python reference.py > wbf.json
"""

import json
import sys

import numpy as np
from ensemble_boxes import weighted_boxes_fusion

random = np.random.default_rng(17)


def network(objects):
    """Some of the objects, moved a little, and some that nobody else sees."""
    boxes, scores, labels = [], [], []
    for box, label in objects:
        if random.random() < 0.8:
            boxes.append(np.clip(box + random.normal(0, 0.01, 4), 0, 1))
            scores.append(random.uniform(0.05, 1))
            labels.append(label if random.random() < 0.9 else int(random.integers(3)))
    for _ in range(random.integers(4)):
        corner, side = random.uniform(0, 0.8, 2), random.uniform(0.02, 0.2, 2)
        boxes.append(np.concatenate([corner, corner + side]))
        scores.append(random.uniform(0.05, 1))
        labels.append(int(random.integers(3)))
    keep = [i for i, b in enumerate(boxes) if b[2] > b[0] and b[3] > b[1]]
    return [boxes[i].astype(np.float32) for i in keep], [np.float32(scores[i]) for i in keep], [labels[i] for i in keep]


def case(number):
    objects = []
    for _ in range(random.integers(1, 12)):
        corner, side = random.uniform(0, 0.8, 2), random.uniform(0.05, 0.2, 2)
        objects.append((np.concatenate([corner, corner + side]), int(random.integers(3))))
    networks = [network(objects) for _ in range(random.integers(1, 5))]
    weights = [float(np.float32(random.uniform(0.2, 3))) for _ in networks]
    iou, skip = float(np.float32(random.uniform(0.4, 0.7))), float(np.float32(random.choice([0, 0.2])))
    kind = ["avg", "max"][number % 2]
    boxes, scores, labels = weighted_boxes_fusion(
        *(list(part) for part in zip(*networks)), weights=weights, iou_thr=iou, skip_box_thr=skip, conf_type=kind)

    def rows(boxes, scores, labels):
        return [[*map(float, b), float(s), int(c)] for b, s, c in zip(boxes, scores, labels)]

    return {"networks": [rows(*n) for n in networks], "weights": weights, "iou": iou, "skip": skip, "score": kind,
            "fused": rows(boxes, scores, labels)}


json.dump([case(n) for n in range(24)], sys.stdout, separators=(",", ":"))
