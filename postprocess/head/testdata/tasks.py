"""Writes tensors of the heads that give more than boxes, and what their projects' own postprocessing makes of them: python3 tasks.py, in
this directory, with torch, ultralytics, rfdetr and pycocotools installed.

Each case is NAME.bin, its outputs one after another as little-endian numbers, and an entry of tasks.json with its settings and its
detections in source pixels.
"""

import json
import math

import numpy as np
import pycocotools.mask
import torch
import torch.nn.functional as F
from golden import HERE, PAD, SCALE, SIZE, SOURCE, objects
from rfdetr.models.postprocess import PostProcess
from ultralytics.utils import nms, ops

SHAPE = (SOURCE[1], SOURCE[0])
PROTOTYPES = 8


def columns(random, classes, extra):
    count = (SIZE // 8) ** 2 + (SIZE // 16) ** 2 + (SIZE // 32) ** 2
    place, scores = objects(random, count, classes)
    return np.concatenate([place, scores, extra(random, place)], 1).T.astype("float32")


def points(number):
    def extra(random, place):
        k = place[:, None, :2] + random.normal(0, 6, (len(place), 5, 2))
        return np.concatenate([k, random.random((len(place), 5, 1))], 2)[..., :number].reshape(len(place), -1)

    return extra


def weights(random, place):
    return random.normal(0, 1, (len(place), PROTOTYPES))


def angle(random, place):
    return random.uniform(-math.pi / 4, 3 * math.pi / 4, (len(place), 1))


def prototypes(random):
    """Waves of a few lengths, as smooth as those of a trained network."""
    y, x = np.mgrid[0 : SIZE // 4, 0 : SIZE // 4] / (SIZE // 4)
    turns = random.uniform(-2, 2, (PROTOTYPES, 3))
    return np.stack([np.sin(2 * math.pi * (a * x + b * y + c)) for a, b, c in turns]).astype("float32")


def masks(protos, coefficients):
    """process_mask_native with the letterbox cut off exactly: for its sake that interpolates twice, which at 80 pixels a cell shows."""
    logits = torch.einsum("nc,chw->nhw", coefficients, protos)
    y, x = torch.meshgrid(torch.arange(SHAPE[0]) + 0.5, torch.arange(SHAPE[1]) + 0.5, indexing="ij")
    grid = torch.stack([(x * float(SCALE) + PAD[0]) / SIZE, (y * float(SCALE) + PAD[1]) / SIZE], 2) * 2 - 1
    grid = grid[None].float().expand(len(logits), -1, -1, -1)
    full = F.grid_sample(logits[:, None], grid, mode="bilinear", padding_mode="border", align_corners=False)
    return full[:, 0].gt(0).byte()


def detections(case, output, protos):
    task, ended = case["layout"].removesuffix("-end2end"), case["layout"].endswith("-end2end")
    found = nms.non_max_suppression(
        torch.from_numpy(output)[None], case["confidence"], case["iou"], nc=case["labels"], rotated=task == "obb", end2end=ended
    )[0]
    boxes = ops.scale_boxes((SIZE, SIZE), found[:, :4].clone(), SHAPE, xywh=task == "obb")
    all = [{"box": box.tolist(), "score": float(row[4]), "class": int(row[5])} for box, row in zip(boxes, found)]
    if task == "pose":
        keypoints = found[:, 6:].reshape(len(found), 5, -1)
        for one, own in zip(all, ops.scale_coords((SIZE, SIZE), keypoints.clone(), SHAPE)):
            one["keypoints"] = own.tolist()
    if task == "segment":
        for one, mask in zip(all, ops.crop_mask(masks(torch.from_numpy(protos), found[:, 6:]), boxes)):
            one["mask"] = pycocotools.mask.encode(np.asfortranarray(mask.numpy()))["counts"].decode()
    if task == "obb":
        for one, row in zip(all, found):
            one["angle"] = float(row[-1])
    # What lies in the letterbox bars alone is nothing: Ultralytics gives it as a box without a side.
    x1, y1, x2, y2 = (boxes if task != "obb" else torch.tensor([[0, 0, 1, 1]]).expand(len(found), 4)).T
    return [one for one, inside in zip(all, (x1 < x2) & (y1 < y2)) if inside]


def rows(case, output):
    """What the same network gives with nms=True: 40 rows, those without a box all zero."""
    found = nms.non_max_suppression(
        torch.from_numpy(output)[None], case["confidence"], case["iou"], nc=case["labels"], rotated=case["layout"].startswith("obb")
    )[0].numpy()[:40]
    return np.concatenate([found, np.zeros((40 - len(found), found.shape[1]), "float32")])


def queries(random, count=30, classes=91, grid=(18, 16)):
    """What RF-DETR gives of a stretched image: boxes as shares, logits, and masks of objects that are blobs, some in two parts, some empty
    and some over the border."""
    boxes = np.concatenate([random.uniform(0.1, 0.9, (count, 2)), random.uniform(0.05, 0.5, (count, 2))], 1)
    logits = random.normal(-6, 1, (count, classes))
    logits[np.arange(count), random.integers(1, classes, count)] = random.uniform(-3, 3, count)
    y, x = np.mgrid[0 : grid[0], 0 : grid[1]]
    blobs = [np.hypot(x - random.uniform(-2, grid[1] + 2), y - random.uniform(-2, grid[0] + 2)) for _ in range(2 * count)]
    sizes = random.uniform(-1, 6, 2 * count)[:, None, None]
    masks = (sizes - blobs + random.normal(0, 0.2, (2 * count, *grid))).reshape(count, 2, *grid).max(1)
    return [a.astype("float32") for a in (boxes, logits, masks)]


def rfdetr(case, outputs):
    """One class a box: of a box with two classes the package gives a row each, of which the lower is left out."""
    boxes, logits, masks = (torch.from_numpy(a)[None] for a in outputs)
    best = logits == logits.max(-1, keepdim=True).values
    raw = {"pred_logits": logits.where(best, torch.tensor(-99.0)), "pred_boxes": boxes, "pred_masks": masks}
    found = PostProcess(num_select=boxes.shape[1])(raw, torch.tensor([SHAPE]), score_threshold=case["confidence"])[0]
    rows = zip(found["boxes"], found["scores"], found["labels"], found["masks"])
    return [
        {"box": b.tolist(), "score": float(s), "class": int(c), "mask": pycocotools.mask.encode(np.asfortranarray(m[0].byte().numpy()))["counts"].decode()}
        for b, s, c, m in rows
    ]


def rounded(value):
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return round(value, 5) if isinstance(value, float) else value


def main():
    written = []
    cases = [("pose", 2, points(3)), ("pose-flat", 1, points(2)), ("segment", 4, weights), ("obb", 5, angle)]
    cases += [(name + "-end2end", classes, extra) for name, classes, extra in cases if name != "pose-flat"]
    for name, classes, extra in cases:
        random = np.random.default_rng(len(name.removesuffix("-end2end")))
        case = {"name": name, "layout": name.replace("-flat", ""), "labels": classes, "confidence": 0.3, "iou": 0.5}
        output, protos = columns(random, classes, extra), prototypes(random)
        if name.endswith("-end2end"):
            output = rows(case, output)
        outputs = [output, protos] if name.startswith("segment") else [output]
        if name.startswith("pose"):
            case["keypoints"] = [5, 2 if "flat" in name else 3]
        case["shapes"] = [[1, *np.shape(o)] for o in outputs]
        (HERE / (name + ".bin")).write_bytes(b"".join(np.ascontiguousarray(o, "<f4").tobytes() for o in outputs))
        found = [{k: rounded(v) for k, v in one.items()} for one in detections(case, output, protos)]
        written.append({**case, "detections": found})
    case = {"name": "rfdetr-segment", "layout": "rfdetr-segment", "labels": 91, "confidence": 0.3, "iou": 0.5, "outputs": ["dets", "labels", "masks"]}
    outputs = queries(np.random.default_rng(14))
    case["shapes"] = [[1, *np.shape(o)] for o in outputs]
    (HERE / "rfdetr-segment.bin").write_bytes(b"".join(o.astype("<f4").tobytes() for o in outputs))
    written.append({**case, "detections": [{k: rounded(v) for k, v in one.items()} for one in rfdetr(case, outputs)]})
    text = ",\n".join("  " + json.dumps(case) for case in written)
    (HERE / "tasks.json").write_text("[\n%s\n]\n" % text)


main()
