"""Tiles beside SAHI (PyPI: sahi, onnxruntime, pycocotools): the same network on ONNX Runtime's CPU, the same tiles, in turns, one process at a
time. Says what an image costs either way, and what both find of the labelled parts.

    edge-infer dataset --out small --count 40 --seed 24 --width 4000 --height 3000 --part-size 32
    gzip -dc engine/demo/model.onnx.gz >demo.onnx
    python peer.py --program bin/edge-infer --model demo.onnx --data small
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import cv2
import numpy as np

OVERLAP = 0.2


def network(path, side, threads, confidence, published):
    """The detector as SAHI wants it: letterbox, ONNX Runtime, boxes of one tile. published counts every class of a box, as validate does."""
    import onnxruntime
    from sahi.models.base import DetectionModel
    from sahi.prediction import ObjectPrediction

    class Network(DetectionModel):
        def load_model(self):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            self.model = onnxruntime.InferenceSession(self.model_path, options, providers=["CPUExecutionProvider"])
            self.labels = eval(self.model.get_modelmeta().custom_metadata_map["names"], {})  # Ultralytics' metadata is a Python literal

        def perform_inference(self, image):
            height, width = image.shape[:2]
            self.scale = min(side / width, side / height)
            w, h = round(width * self.scale), round(height * self.scale)
            if (w, h) != (width, height):
                image = cv2.resize(image, (w, h), interpolation=cv2.INTER_LINEAR)
            self.left, self.top = round((side - w) / 2 - 0.1), round((side - h) / 2 - 0.1)
            square = np.full((side, side, 3), 114, np.uint8)
            square[self.top : self.top + h, self.left : self.left + w] = image
            blob = square.transpose(2, 0, 1)[None].astype(np.float32) / 255  # SAHI's images are RGB
            self._original_predictions = self.model.run(None, {"images": blob})[0][0]

        def _create_object_prediction_list_from_original_predictions(self, shift_amount_list=None, full_shape_list=None):
            boxes, scores = self._original_predictions[:4], self._original_predictions[4:]
            if published:
                classes, at = np.nonzero(scores > self.confidence_threshold)
            else:
                best = scores.argmax(0)
                at = np.nonzero(scores.max(0) > self.confidence_threshold)[0]
                classes = best[at]
            x, y, w, h = boxes[:, at]
            corners = np.stack([x - w / 2 - self.left, y - h / 2 - self.top, w, h], 1) / self.scale
            chosen = scores[classes, at]
            keep = cv2.dnn.NMSBoxesBatched(corners.tolist(), chosen.tolist(), classes.tolist(), self.confidence_threshold, 0.7 if published else 0.45)
            shift, full = np.ravel(shift_amount_list).tolist(), np.ravel(full_shape_list).tolist()
            found = []
            for i in np.array(keep, int).ravel()[:300]:
                left, top, width, height = corners[i].tolist()
                found.append(ObjectPrediction(
                    bbox=[left, top, left + width, top + height], category_id=int(classes[i]), score=float(chosen[i]),
                    category_name=self.labels[int(classes[i])], shift_amount=shift, full_shape=full))
            self._object_prediction_list_per_image = [found]

    return Network(model_path=path, confidence_threshold=confidence, device="cpu")


def sahi(options, paths, confidence, published):
    """What SAHI finds in each image: [class, score, x, y, width, height]."""
    from sahi.predict import get_sliced_prediction

    model = network(options.model, options.side, options.threads, confidence, published)
    seen = []
    for path in paths:
        result = get_sliced_prediction(path, model, slice_height=options.tile, slice_width=options.tile, overlap_height_ratio=OVERLAP,
                                       overlap_width_ratio=OVERLAP, verbose=0)
        seen.append([[p.category.id, p.score.value, *p.bbox.to_xywh()] for p in result.object_prediction_list])
    return seen


def ours(options, paths, confidence):
    lists = os.path.join(options.data, ".images")
    with open(lists, "w") as f:
        f.write("\n".join(paths))
    command = [options.program, "infer", "@" + lists, "--model", options.model, "--engine", "onnxruntime=cpu", "--threads", str(options.threads),
               "--tile", str(options.tile), "--overlap", str(OVERLAP), "--confidence", str(confidence), "--json", "--log", "warn"]
    if options.readers:
        command += ["--readers", str(options.readers)]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()
    return [[[d["class"], d["score"], *wide(d["box"])] for d in json.loads(line)["detections"]]
            for line in lines]


def wide(box):
    return box[0], box[1], box[2] - box[0], box[3] - box[1]


def timed(command):
    """Seconds and processor seconds of a child."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return np.array([time.time() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime])


def cost(options, part):
    """Seconds and processor seconds an image: what more images take, so that the start does not count."""
    few, many = (timed([sys.executable, __file__, "--part", part, "--count", str(n), *options.same]) for n in (1, 1 + options.count))
    return (many - few) / options.count


def matched(found, truth):
    """How many parts are found, by IoU of a half and class, and how many detections are none."""
    hits, rest = 0, 0
    for image, parts in zip(found, truth):
        open_parts = list(parts)
        for f in sorted(image, key=lambda f: -f[1]):
            best = max(open_parts, key=lambda p: iou(f[2:], p[1:]) if p[0] == f[0] else 0, default=None)
            if best is not None and best[0] == f[0] and iou(f[2:], best[1:]) >= 0.5:
                open_parts.remove(best)
                hits += 1
            else:
                rest += 1
    return hits, rest


def iou(a, b):
    w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    if w <= 0 or h <= 0:
        return 0
    return w * h / (a[2] * a[3] + b[2] * b[3] - w * h)


def precision(found, images, annotations):
    """pycocotools' mAP50 and mAP50-95."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    truth = COCO(annotations)
    rows = [{"image_id": image["id"], "category_id": f[0], "bbox": f[2:], "score": f[1]} for image, image in zip(images, found) for f in image]
    e = COCOeval(truth, truth.loadRes(rows), "bbox")
    e.evaluate(), e.accumulate(), e.summarize()
    return e.stats[1], e.stats[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--side", type=int, default=416, help="of the network's input")
    parser.add_argument("--tile", type=int, default=416)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--readers", type=int, default=1, help="of edge-infer; 0 is one a core")
    parser.add_argument("--count", type=int, default=4, help="images that are timed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--part", choices=("sahi", "ours"), help="run this alone, for timing")
    options = parser.parse_args()
    options.same = [word for name in ("program", "model", "data", "side", "tile", "threads", "readers")
                    for word in ("--" + name, str(getattr(options, name)))]
    annotations = os.path.join(options.data, "annotations.json")
    with open(annotations) as f:
        coco = json.load(f)
    paths = [os.path.join(options.data, "images", image["file_name"]) for image in coco["images"]]
    if options.part:
        (sahi(options, paths[:options.count], 0.25, False) if options.part == "sahi" else ours(options, paths[:options.count], 0.25))
        return
    rounds = []
    for i in range(options.rounds):
        order = ("ours", "sahi") if i % 2 == 0 else ("sahi", "ours")
        taken = {part: cost(options, part) for part in order}
        rounds.append((*taken["ours"], *taken["sahi"]))
        print("seconds, processor seconds an image: edge-infer %.3f %.3f, SAHI %.3f %.3f" % rounds[-1], flush=True)
    wall, processor = (sorted(r[2 + k] / r[k] for r in rounds) for k in (0, 1))
    print("SAHI over edge-infer: seconds %.2f (%.2f to %.2f), processor seconds %.2f (%.2f to %.2f)" %
          (statistics.median(wall), wall[0], wall[-1], statistics.median(processor), processor[0], processor[-1]))
    truth = [[[a["category_id"], *a["bbox"]] for a in coco["annotations"] if a["image_id"] == image["id"]] for image in coco["images"]]
    parts = sum(len(t) for t in truth)
    for name, found in (("edge-infer", ours(options, paths, 0.25)), ("SAHI", sahi(options, paths, 0.25, False))):
        print("%s at 0.25: %d of %d parts found, %d detections that are none" % (name, *matched(found, truth)[:1], parts, matched(found, truth)[1]))
    print("SAHI from 0.001 on, pycocotools: mAP50 %.3f, mAP50-95 %.3f" % precision(sahi(options, paths, 0.001, True), coco["images"], annotations))


if __name__ == "__main__":
    main()
