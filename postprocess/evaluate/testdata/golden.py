"""Writes accuracy.json: python3 golden.py, in this directory, with numpy and pycocotools installed.

It holds random boxes and their average precision by pycocotools. All coordinates are multiples of a quarter, so that no reader rounds them.
"""

import contextlib
import io
import json
import pathlib

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

HERE = pathlib.Path(__file__).parent


def quarter(values):
    return (np.round(np.asarray(values) * 4) / 4).tolist()


def corner_box(random):
    x, y = random.uniform(0, 180, 2)
    w, h = random.uniform(10, 60, 2)
    return np.array([x, y, x + w, y + h])


def accuracy():
    random = np.random.default_rng(3)
    images = []
    for _ in range(20):
        truths, detections = [], []
        for _ in range(random.integers(0, 9)):
            box, label = corner_box(random), int(random.integers(0, 4))
            truths.append([*quarter(box), label, int(random.random() < 0.08)])
            for _ in range(random.integers(0, 4)):
                shown = label if random.random() < 0.9 else int(random.integers(0, 5))
                score = round(float(random.beta(4, 2)), 2)
                detections.append([*quarter(box + random.normal(0, 2.5, 4)), shown, score])
        for _ in range(random.integers(0, 4)):
            detections.append([*quarter(corner_box(random)), int(random.integers(0, 5)), round(float(random.beta(2, 4)), 2)])
        images.append({"truths": truths, "detections": detections})

    images = [{"id": i, "width": 256, "height": 256, "file_name": f"{i}.png"} for i in range(len(images))]
    annotations, results = [], []
    for i, image in enumerate(images):
        for x1, y1, x2, y2, label, crowd in image["truths"]:
            box = [x1, y1, x2 - x1, y2 - y1]
            annotations.append(
                {"id": len(annotations) + 1, "image_id": i, "category_id": label, "bbox": box, "area": box[2] * box[3], "iscrowd": crowd}
            )
        for x1, y1, x2, y2, label, score in image["detections"]:
            results.append({"image_id": i, "category_id": label, "bbox": [x1, y1, x2 - x1, y2 - y1], "score": score})
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {"images": images, "annotations": annotations, "categories": [{"id": i, "name": str(i)} for i in range(5)]}
        coco.createIndex()
        run = COCOeval(coco, coco.loadRes(results), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    precision = run.eval["precision"][:, :, :, 0, 2]
    classes = []
    for label in range(precision.shape[2]):
        of = precision[:, :, label]
        if of.max() > -1:
            classes.append({"class": label, "ap50": float(of[0].mean()), "ap": float(of.mean())})
    result = {"map50": float(run.stats[1]), "map": float(run.stats[0]), "classes": classes}
    return {"result": result, "images": images}


content = accuracy()
lines = ",\n".join("  " + json.dumps(row) for row in content["images"])
(HERE / "accuracy.json").write_text('{"result": %s, "images": [\n%s\n]}\n' % (json.dumps(content["result"]), lines))
