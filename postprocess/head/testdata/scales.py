"""Networks of heads.py whose outputs are a detector's scales apart, heat maps, or keypoints. Each gives what those of heads.py give, and
keypoints in input pixels with their scores where it has any."""

import numpy as np
from golden import SIZE, corners, objects

F, I32 = "float32", "int32"


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def logits(scores):
    p = np.clip(scores, 1e-4, 1 - 1e-4)
    return np.log(p / (1 - p))


def grid(stride, each=1):
    """x and y of every cell of a scale, in cells."""
    side = SIZE // stride
    y, x = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    return np.repeat(np.stack([x.ravel(), y.ravel()], 1), each, 0).astype(float)


def yolo_maps(random, classes, bins=16, form="rknn"):
    """post_process of rknn_model_zoo's yolov8 and yolov6; form is the order and kind of the outputs."""
    outputs, boxes, scores = [], [], []
    for stride in (8, 16, 32):
        side = SIZE // stride
        _, p = objects(random, side * side, classes)
        p = p.astype(F).astype(float)
        if bins == 1:
            raw = random.uniform(0.5, 3, (side * side, 4)).astype(F)
            sides = raw.astype(float)
        else:
            raw = random.normal(0, 2, (side * side, 4 * bins)).astype(F)
            e = np.exp(raw.astype(float).reshape(-1, 4, bins))
            sides = (e / e.sum(2, keepdims=True)) @ np.arange(bins)
        middle = grid(stride) + 0.5
        boxes.append(np.concatenate([middle - sides[:, :2], middle + sides[:, 2:]], 1) * stride)
        given = p.astype(F) if form == "rknn" else logits(p).astype(F)
        scores.append(p if form == "rknn" else sigmoid(given.astype(float)))
        planes = lambda rows: rows.T.reshape(-1, side, side)
        if form == "rknn":
            total = np.clip(p.sum(1, keepdims=True), 0, 1)
            outputs += [(f"box{stride}", F, planes(raw)), (f"class{stride}", F, planes(given)), (f"sum{stride}", F, planes(total))]
        elif form == "hailo":
            outputs += [(f"conv{stride}", F, raw.reshape(side, side, -1)), (f"class{stride}", F, given.reshape(side, side, -1))]
        else:
            outputs.append((f"map{stride}", F, planes(np.concatenate([raw, given], 1))))
    return outputs, np.concatenate(boxes), np.concatenate(scores), True


ANCHORS = {
    5: [10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119, 116, 90, 156, 198, 373, 326],
    7: [12, 16, 19, 36, 40, 28, 36, 75, 76, 55, 72, 146, 142, 110, 192, 243, 459, 401],
}


def yolov5_maps(random, classes, anchors=5, form="planes"):
    """post_process of rknn_model_zoo's yolov5 and yolov7."""
    outputs, boxes, scores = [], [], []
    for stride, sizes in zip((8, 16, 32), np.reshape(ANCHORS[anchors], (3, 3, 2))):
        side = SIZE // stride
        maps = []
        for size in sizes:
            _, p = objects(random, side * side, classes)
            numbers = np.concatenate([random.uniform(0.2, 0.8, (side * side, 4)), random.uniform(0.5, 1, (side * side, 1)), p], 1)
            given = (numbers if form == "planes" else logits(numbers)).astype(F)
            v = given.astype(float) if form == "planes" else sigmoid(given.astype(float))
            centre, sides = (v[:, :2] * 2 - 0.5 + grid(stride)) * stride, (v[:, 2:4] * 2) ** 2 * size
            boxes.append(corners(np.concatenate([centre, sides], 1)))
            scores.append(v[:, 4:5] * v[:, 5:])
            maps.append(given)
        if form == "planes":
            array = np.concatenate([m.T for m in maps]).reshape(-1, side, side)
        elif form == "interleaved":
            array = np.concatenate(maps, 1).reshape(side, side, -1)
        else:
            array = np.stack(maps).reshape(3, side, side, -1)
        outputs.append((f"map{stride}", F, array))
    return outputs, np.concatenate(boxes), np.concatenate(scores), True


def scrfd(random, classes, keypoints=True):
    """detect of insightface's SCRFD."""
    outputs = {1: [], 4: [], 10: []}
    boxes, scores, points = [], [], []
    for stride in (8, 16, 32):
        corner = grid(stride, 2)
        p = objects(random, len(corner), classes)[1].astype(F)
        sides, offsets = random.uniform(0.5, 3, (len(corner), 4)).astype(F), random.normal(0, 1, (len(corner), 10)).astype(F)
        for array in (p, sides, offsets):
            outputs[array.shape[1]].append((f"out{array.shape[1]}_{stride}", F, array))
        boxes.append(np.concatenate([corner - sides[:, :2], corner + sides[:, 2:]], 1) * stride)
        scores.append(p)
        points.append((corner[:, None] + offsets.reshape(-1, 5, 2)) * stride)
    found = outputs[1] + outputs[4] + (outputs[10] if keypoints else [])
    return found, np.concatenate(boxes), np.concatenate(scores), True, sure(np.concatenate(points)) if keypoints else None


def sure(points):
    return np.concatenate([points, np.ones((*points.shape[:2], 1))], 2)


def yunet(random, classes):
    """postProcess of OpenCV's FaceDetectorYN."""
    outputs = {"cls": [], "obj": [], "bbox": [], "kps": []}
    boxes, scores, points = [], [], []
    for stride in (8, 16, 32):
        corner = grid(stride)
        p, objectness = objects(random, len(corner), classes)[1].astype(F), random.uniform(0.5, 1, (len(corner), 1)).astype(F)
        place, offsets = random.normal(0, 0.5, (len(corner), 4)).astype(F), random.normal(0, 1, (len(corner), 10)).astype(F)
        for name, array in zip(outputs, (p, objectness, place, offsets)):
            outputs[name].append((f"{name}_{stride}", F, array))
        centre, sides = (corner + place[:, :2]) * stride, np.exp(place[:, 2:].astype(float)) * stride
        boxes.append(corners(np.concatenate([centre, sides], 1)))
        scores.append(np.sqrt(p.astype(float) * objectness))
        points.append((corner[:, None] + offsets.reshape(-1, 5, 2)) * stride)
    return sum(outputs.values(), []), np.concatenate(boxes), np.concatenate(scores), True, sure(np.concatenate(points))


def pp_yoloe(random, classes):
    """PaddleDetection's PPYOLOEHead without its suppression."""
    place, scores = objects(random, 84, classes)
    boxes, scores = corners(place).astype(F), scores.astype(F)
    return [("tmp_16", F, boxes), ("concat_14.tmp_0", F, scores.T)], boxes, scores, True


def paddle_nms(random, classes):
    """PaddleDetection's bbox and bbox_num."""
    place, scores = objects(random, 30, classes)
    boxes, score, which = corners(place).astype(F), scores.max(1).astype(F), scores.argmax(1)
    rows = np.concatenate([which[:, None], score[:, None], boxes], 1).astype(F)
    rows[7, 0] = -1
    count = 25  # what follows is left over
    found = np.where(np.arange(classes) == which[:, None], score[:, None], 0)
    found[7] = 0
    return [("multiclass_nms3_0.tmp_0", F, rows), ("multiclass_nms3_0.tmp_2", I32, np.array([count]))], boxes[:count], found[:count], False


def centernet(random, classes, raw=False):
    """ctdet_decode of CenterNet."""
    side = SIZE // 4
    heat = random.uniform(0, 0.9, (classes, side, side))
    given = (logits(heat) if raw else heat).astype(F)
    heat = sigmoid(given.astype(float)) if raw else given.astype(float)
    around = np.pad(given, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    highest = np.max([around[:, y : y + side, x : x + side] for y in range(3) for x in range(3)], 0)
    heat = np.where(highest == given, heat, 0)
    wh, reg = random.uniform(1, 8, (2, side, side)).astype(F), random.uniform(0, 1, (2, side, side)).astype(F)
    centre = grid(4) + reg.reshape(2, -1).T
    sides = wh.reshape(2, -1).T
    boxes = np.concatenate([centre - sides / 2, centre + sides / 2], 1) * 4
    outputs = [("hm", F, given), ("wh", F, wh), ("reg", F, reg)]
    # Every class of a cell is a box of its own.
    scores = heat.reshape(classes, -1)
    return outputs, np.tile(boxes, (classes, 1)), np.concatenate([np.eye(classes)[c] * s[:, None] for c, s in enumerate(scores)]), False


def movenet(random, classes):
    """A person of MoveNet; its box holds the keypoints from a score of 0.2 on."""
    given = random.uniform(0.1, 0.9, (1, 17, 3)).astype(F)
    y, x, score = given[0].T.astype(float)
    seen = score >= 0.2
    box = np.array([[x[seen].min(), y[seen].min(), x[seen].max(), y[seen].max()]]) * SIZE
    return [("output_0", F, given)], box, np.array([[score.mean()]]), False, np.stack([x * SIZE, y * SIZE, score], 1)[None]


def movenet_multipose(random, classes):
    """People of MoveNet MultiPose."""
    given = random.uniform(0.1, 0.9, (6, 56)).astype(F)
    low, high = np.minimum(given[:, 51:53], given[:, 53:55]), np.maximum(given[:, 51:53], given[:, 53:55])
    given[:, 51:53], given[:, 53:55] = low, high
    boxes = given[:, [52, 51, 54, 53]].astype(float) * SIZE
    points = given[:, :51].reshape(6, 17, 3)[:, :, [1, 0, 2]] * np.array([SIZE, SIZE, 1])
    return [("output_0", F, given)], boxes, given[:, 55:].astype(float), False, points


def maps(network, *arguments):
    return lambda random, classes: network(random, classes, *arguments)


CASES = [  # as in heads.py
    ("yolo-maps", "yolo-maps", 5, yolo_maps),
    ("yolo-maps-multi-label", "yolo-maps", 5, yolo_maps),
    ("yolo-maps-yolov6", "yolo-maps", 5, maps(yolo_maps, 1)),
    ("yolo-maps-17", "yolo-maps", 5, maps(yolo_maps, 17)),
    ("yolo-maps-hailo", "yolo-maps", 5, maps(yolo_maps, 16, "hailo")),
    ("yolo-maps-joined", "yolo-maps", 5, maps(yolo_maps, 16, "joined")),
    ("yolov5-maps", "yolov5-maps", 5, yolov5_maps),
    ("yolov5-maps-multi-label", "yolov5-maps", 5, yolov5_maps),
    ("yolov5-maps-interleaved", "yolov5-maps", 5, maps(yolov5_maps, 5, "interleaved")),
    ("yolov7-maps", "yolov7-maps", 5, maps(yolov5_maps, 7, "anchors")),
    ("scrfd", "scrfd", 1, scrfd),
    ("scrfd-boxes", "scrfd", 1, maps(scrfd, False)),
    ("scrfd-unbatched", "scrfd", 1, scrfd),
    ("yunet", "yunet", 1, yunet),
    ("pp-yoloe", "pp-yoloe", 5, pp_yoloe),
    ("paddle-nms", "paddle-nms", 5, paddle_nms),
    ("centernet", "centernet", 3, centernet),
    ("centernet-logits", "centernet", 3, maps(centernet, True)),
    ("movenet", "movenet", 1, movenet),
    ("movenet-multipose", "movenet-multipose", 1, movenet_multipose),
]
