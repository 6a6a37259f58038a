"""Writes tensors of every head that golden.py has not, and what a plain NumPy rendering of the project's own postprocessing makes of them:
python3 heads.py, in this directory.

Each case is NAME.bin, its outputs one after another as little-endian numbers, and an entry of heads.json with its settings and its
detections in source pixels.
"""

import json

import numpy as np
import scales
from golden import HERE, PAD, SCALE, SIZE, SOURCE, corners, objects, suppress

F, I32, I64 = "float32", "int32", "int64"
COCO = [i for i in range(1, 91) if i not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]  # the ids of the 80 classes in use


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def cells(strides):
    """x, y and stride of every cell, as the exports order them; cells that the input fills in part count."""
    all = []
    for stride in strides:
        side = -(-SIZE // stride)
        y, x = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
        all.append(np.stack([x.ravel(), y.ravel(), np.full(side * side, stride)], 1))
    return np.concatenate(all).astype(np.float64)


def noise(random, shape):
    return random.normal(0, 0.05, shape)


def logits(scores):
    p = np.clip(scores, 1e-4, 1 - 1e-4)
    return np.log(p / (1 - p))


# Every network below gives outputs as a list of (name, type, array) and the boxes, in input pixels, with scores for each class of its labels.
# Whether overlapping boxes are suppressed is the last word.


def yolox(random, classes, decoded=False):
    grid = cells([8, 16, 32])
    place, scores = objects(random, len(grid), classes)
    objectness = random.uniform(0.5, 1, (len(grid), 1))
    raw = np.concatenate([place[:, :2] / grid[:, 2:] - grid[:, :2], np.log(place[:, 2:] / grid[:, 2:])], 1).astype(F)
    if decoded:
        raw = place.astype(F)
        boxes = raw.astype(float)
    else:  # demo_postprocess of YOLOX
        boxes = np.concatenate([(raw[:, :2] + grid[:, :2]) * grid[:, 2:], np.exp(raw[:, 2:]) * grid[:, 2:]], 1)
    output = np.concatenate([raw, objectness, scores], 1).astype(F)
    return [("output", F, output)], corners(boxes), output[:, 4:5] * output[:, 5:], True


def yolov6(random, classes):
    place, scores = objects(random, len(cells([8, 16, 32])), classes)
    output = np.concatenate([place, np.ones((len(place), 1)), scores], 1).astype(F)
    return [("outputs", F, output)], corners(output[:, :4].astype(float)), output[:, 5:], True


def nanodet(random, classes, strides=(8, 16, 32, 64), middle=0):
    grid = cells(strides)
    _, scores = objects(random, len(grid), classes)
    bins = random.normal(0, 2, (len(grid), 4, 8))
    output = np.concatenate([scores, bins.reshape(len(grid), 32)], 1).astype(F)
    # get_bboxes of NanoDetPlusHead: the expected distance of each side from the cell's corner; of GFLHead: from its middle
    sides = (softmax(output[:, classes:].astype(float).reshape(-1, 4, 8)) @ np.arange(8)) * grid[:, 2:]
    centre = (grid[:, :2] + middle) * grid[:, 2:]
    boxes = np.clip(np.concatenate([centre - sides[:, :2], centre + sides[:, 2:]], 1), 0, SIZE)
    return [("output", F, output)], boxes, output[:, :classes], True


def yolonas(random, classes):
    place, scores = objects(random, len(cells([8, 16, 32])), classes)
    boxes, scores = corners(place).astype(F), scores.astype(F)
    return [("boxes", F, boxes), ("scores", F, scores)], boxes, scores, True


def ultralytics_rtdetr(random, classes):
    place, scores = objects(random, 50, classes)
    output = np.concatenate([place / SIZE, scores], 1).astype(F)
    return [("output0", F, output)], corners(output[:, :4] * SIZE), output[:, 4:], False


def ultralytics_rtdetr_end2end(random, classes):
    place, scores = objects(random, 50, classes)
    best, which = scores.max(1).astype(F), scores.argmax(1)
    order = np.argsort(-best)
    rows = np.concatenate([place / SIZE, best[:, None], which[:, None]], 1)[order].astype(F)
    return [("output0", F, rows)], corners(rows[:, :4] * SIZE), one_hot(rows[:, 4], which[order], classes), False


def ssd(random, classes):
    place, scores = objects(random, 144, classes)
    background = random.uniform(0, 0.9, (144, 1))  # postProcessSSD_ONNX of jetson-inference passes over it, however likely it is
    boxes, scores = (corners(place) / SIZE).astype(F), np.concatenate([background, scores], 1).astype(F)
    return [("scores", F, scores), ("boxes", F, boxes)], boxes * SIZE, scores[:, 1:], True


def rfdetr(random, classes):
    place, scores = objects(random, 40, 91)
    raw = (logits(scores) + noise(random, scores.shape)).astype(F)
    boxes = (place / SIZE).astype(F)
    chosen = sigmoid(raw.astype(float))
    if classes == 80:  # a box whose best id stands for nothing is none
        chosen = np.where(np.isin(chosen.argmax(1), COCO)[:, None], chosen[:, COCO], 0)
    return [("dets", F, boxes), ("labels", F, raw)], corners(boxes * SIZE), chosen, False


def detr(random, classes):
    place, scores = objects(random, 40, classes)
    raw = np.concatenate([7 * scores, random.uniform(0, 5, (40, 1))], 1).astype(F)  # the last is no object
    boxes = (place / SIZE).astype(F)
    return [("logits", F, raw), ("pred_boxes", F, boxes)], corners(boxes * SIZE), softmax(raw.astype(float))[:, :-1], False


def detr_sigmoid(random, classes):
    place, scores = objects(random, 40, classes)
    raw, boxes = logits(scores).astype(F), (place / SIZE).astype(F)
    return [("logits", F, raw), ("pred_boxes", F, boxes)], corners(boxes * SIZE), sigmoid(raw.astype(float)), False


def best(random, classes, rows):
    place, scores = objects(random, rows, classes)
    boxes, best, which = corners(place).astype(F), scores.max(1).astype(F), scores.argmax(1)
    order = np.argsort(-best)
    return boxes[order], best[order], which[order]


def one_hot(scores, which, classes):
    return np.where(np.arange(classes) == which[:, None], scores[:, None], 0)


def rtdetr(random, classes):
    boxes, scores, which = best(random, classes, 30)
    return [("labels", I64, which), ("boxes", F, boxes), ("scores", F, scores)], boxes, one_hot(scores, which, classes), False


def nms(random, classes, names, type):
    boxes, scores, which = best(random, classes, 30)
    count = 25  # what follows is left over from another image
    arrays = [np.array([[count]]), boxes[None], scores[None], which[None]]
    outputs = [(name, t, a[0]) for name, t, a in zip(names, (I32, F, F, type), arrays)]
    return outputs, boxes[:count], one_hot(scores, which, classes)[:count], False


def tf_detection(random, classes):
    boxes, scores, which = best(random, 90, 30)
    which = np.array(COCO)[which % 80]
    shares = (boxes / SIZE)[:, [1, 0, 3, 2]].astype(F)
    outputs = [
        ("num_detections", F, np.array(28, F)), ("detection_boxes", F, shares), ("detection_scores", F, scores),
        ("detection_classes", F, which.astype(F)),
    ]
    found = one_hot(scores, which, 91)[:28, COCO]
    return outputs, (shares[:28] * SIZE)[:, [1, 0, 3, 2]], found, False


def torchvision(random, classes):
    boxes, scores, which = best(random, 91, 17)
    return [("boxes", F, boxes), ("labels", I64, which), ("scores", F, scores)], boxes, one_hot(scores, which, 91), False


def detections(case, boxes, scores, suppressed, keypoints=None):
    origins = np.arange(len(boxes))
    if case["multi_label"]:
        rows, classes = np.nonzero(scores >= case["confidence"])
        boxes, scores, origins = boxes[rows], scores[rows, classes], rows
    else:
        classes, scores = scores.argmax(1), scores.max(1)
        chosen = scores >= case["confidence"]
        boxes, scores, classes, origins = boxes[chosen], scores[chosen], classes[chosen], origins[chosen]
    kept = suppress(boxes, scores, classes, case["iou"], False) if suppressed else np.argsort(-scores, kind="stable")
    boxes = np.clip((boxes[kept] - np.tile(PAD, 2)) / SCALE, 0, np.tile(SOURCE, 2))
    inside = (boxes[:, 0] < boxes[:, 2]) & (boxes[:, 1] < boxes[:, 3])
    found = [
        {"box": [round(float(v), 4) for v in box], "score": round(float(score), 7), "class": int(c)}
        for box, score, c in zip(boxes[inside], scores[kept][inside], classes[kept][inside])
    ]
    if keypoints is not None:
        for one, points in zip(found, keypoints[origins[kept][inside]]):
            place = np.clip((points[:, :2] - PAD) / SCALE, 0, SOURCE)
            one["keypoints"] = [[round(float(v), 4) for v in point] for point in np.concatenate([place, points[:, 2:]], 1)]
    return found


EFFICIENT = ["num_dets", "det_boxes", "det_scores", "det_classes"]
BATCHED = ["num_detections", "nmsed_boxes", "nmsed_scores", "nmsed_classes"]
CASES = [  # name, layout, labels, network, and what makes the head certain where its shape alone does not
    ("yolox", "yolox", 5, yolox),
    ("yolox-decoded", "yolox", 5, lambda r, c: yolox(r, c, True)),
    ("nanodet", "nanodet", 5, nanodet),
    ("nanodet-m", "nanodet", 3, lambda r, c: nanodet(r, c, (8, 16, 32), 0.5)),
    ("yolo-nas", "yolo-nas", 5, yolonas),
    ("ultralytics-rtdetr", "ultralytics-rtdetr", 5, ultralytics_rtdetr),
    ("ultralytics-rtdetr-end2end", "ultralytics-rtdetr-end2end", 5, ultralytics_rtdetr_end2end),
    ("ssd", "ssd", 5, ssd),
    ("rfdetr", "rfdetr", 91, rfdetr),
    ("rfdetr-coco", "rfdetr", 80, rfdetr),
    ("rfdetr-multi-label", "rfdetr", 91, rfdetr),
    ("detr", "detr", 5, detr),
    ("detr-sigmoid", "detr-sigmoid", 5, detr_sigmoid),
    ("rtdetr", "rtdetr", 5, rtdetr),
    ("efficient-nms", "nms", 5, lambda r, c: nms(r, c, EFFICIENT, I32)),
    ("batched-nms", "nms", 5, lambda r, c: nms(r, c, BATCHED, F)),
    ("tf-detection", "tf-detection", 80, tf_detection),
    ("torchvision", "torchvision", 91, torchvision),
    ("yolov6", "yolov6", 5, yolov6),
    *scales.CASES,
]
BARE = ("torchvision", "paddle-nms", "scrfd-unbatched")  # without a batch
SELECTED = ("yolov5-maps", "yolov7-maps")  # layouts that are never recognised
PRESETS = {"ultralytics-rtdetr-end2end": "ultralytics-rtdetr", "pp-yoloe": "imagenet", "paddle-nms": "imagenet"}


def main():
    written = []
    for seed, (name, layout, labels, network) in enumerate(CASES):
        case = {"name": name, "layout": layout, "labels": labels, "confidence": 0.3, "iou": 0.5, "multi_label": name.endswith("multi-label")}
        if name in PRESETS:
            case["preset"] = PRESETS[name]
        if layout in SELECTED:
            case["selected"] = True
        outputs, boxes, scores, *more = network(np.random.default_rng(100 + seed), labels)
        case["outputs"] = [{"name": n, "type": t, "shape": [*([] if name in BARE else [1]), *np.shape(a)]} for n, t, a in outputs]
        (HERE / (name + ".bin")).write_bytes(b"".join(np.ascontiguousarray(a, t).astype("<" + np.dtype(t).str[1:]).tobytes() for _, t, a in outputs))
        written.append({**case, "detections": detections(case, boxes, np.asarray(scores, float), *more)})
    text = ",\n".join("  " + json.dumps(case) for case in written)
    (HERE / "heads.json").write_text("[\n%s\n]\n" % text)


main()
