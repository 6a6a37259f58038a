"""Writes tasks.json: python3 tasks.py, in this directory, with numpy, pycocotools, torch and ultralytics installed.

It holds random masks, poses and oriented boxes and the average precision that pycocotools makes of them; for oriented boxes with the
probabilistic IoU of Ultralytics in place of its own.
"""

import contextlib
import io
import json
import pathlib

import numpy as np
import pycocotools.mask
import torch
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from ultralytics.utils.metrics import batch_probiou

HERE = pathlib.Path(__file__).parent
SIDE = 96


def blob(x, y, w, h):
    rows, columns = np.mgrid[0:SIDE, 0:SIDE] + 0.5
    return np.asfortranarray((((columns - x) / w) ** 2 + ((rows - y) / h) ** 2 < 1).astype(np.uint8))


def shape(task, random):
    x, y = random.uniform(25, 70, 2)
    w, h = random.uniform(8, 22, 2)
    if task == "pose":
        return np.array([x, y, w, h]), np.stack([random.uniform(x - w, x + w, 17), random.uniform(y - h, y + h, 17)], 1)
    return np.array([x, y, w, h]), random.uniform(-0.7, 2.3)


def entry(task, place, more, random, truth):
    x, y, w, h = place
    one = {"bbox": [x - w, y - h, 2 * w, 2 * h]}
    if task == "segment":
        mask = pycocotools.mask.encode(blob(*place))
        one |= {"segmentation": {"size": mask["size"], "counts": mask["counts"].decode()}, "area": float(pycocotools.mask.area(mask))}
    if task == "pose":
        seen = (random.random(17) < 0.8) * 2 * (random.random() < 0.9) if truth else np.ones(17)
        one |= {"keypoints": np.column_stack([more, seen]).ravel().round(4).tolist(), "area": 4 * w * h * 0.6}
        if truth:
            one["num_keypoints"] = int((seen > 0).sum())
    if task == "obb":
        one |= {"oriented": [x, y, 2 * w, 2 * h, more], "area": 4 * w * h}
    one["bbox"] = [round(float(v), 4) for v in one["bbox"]]
    return one


def images(task):
    random = np.random.default_rng(len(task))
    truths, found = [], []
    for image in range(12):
        for _ in range(random.integers(0, 6)):
            place, more = shape(task, random)
            label = int(random.integers(1, 3))
            crowd = int(task == "segment" and random.random() < 0.1)
            about = {"image_id": image, "category_id": label, "iscrowd": crowd, "id": len(truths) + 1}
            truths.append(about | entry(task, place, more, random, True))
            for _ in range(random.integers(0, 4)):
                near = more + random.normal(0, 1.5 if task == "pose" else 0.1, np.shape(more))
                about = {"image_id": image, "category_id": label, "score": round(float(random.beta(4, 2)), 3)}
                found.append(about | entry(task, place + random.normal(0, 1.5, 4), near, random, False))
        place, more = shape(task, random)
        found.append({"image_id": image, "category_id": 1, "score": round(float(random.beta(2, 4)), 3)} | entry(task, place, more, random, False))
    return truths, found


class Oriented(COCOeval):
    def computeIoU(self, image, category):
        truths, found = self._gts[image, category], self._dts[image, category]
        if not truths or not found:
            return []
        found = sorted(found, key=lambda d: -d["score"])
        return batch_probiou(torch.tensor([d["oriented"] for d in found]), torch.tensor([t["oriented"] for t in truths])).numpy()


def measured(task):
    truths, found = images(task)
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        images = [{"id": i, "width": SIDE, "height": SIDE, "file_name": f"{i}.png"} for i in range(12)]
        coco.dataset = {"images": images, "annotations": truths, "categories": [{"id": i, "name": str(i)} for i in (1, 2)]}
        coco.createIndex()
        results = COCO()
        results.dataset = dict(coco.dataset, annotations=[dict(d, id=i + 1, iscrowd=0) for i, d in enumerate(found)])
        results.createIndex()
        kind = {"segment": "segm", "pose": "keypoints", "obb": "bbox"}[task]
        run = (Oriented if task == "obb" else COCOeval)(coco, results, kind)
        run.evaluate()
        run.accumulate()
        run.summarize()
    return {"task": task, "map": float(run.stats[0]), "map50": float(run.stats[1]), "truths": truths, "found": found}


text = ",\n".join(json.dumps(measured(task)) for task in ("segment", "pose", "obb"))
(HERE / "tasks.json").write_text("[\n%s\n]\n" % text)
