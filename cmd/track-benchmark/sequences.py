"""Collects real sequences in the format of the MOTChallenge: python3 sequences.py EDGE-INFER CACHE DIRECTORY.

The boxes are those of public detectors, read from public repositories at fixed commits; nothing of them is part of this project:
- MOT17 (Milan et al., 2016), second halves of the training sequences, boxes of YOLOX as used by StrongSORT (scores of 0.6 and more)
- MOT15: ETH (Ess et al., 2008), TUD (Andriluka et al., 2008), PETS (Ferryman and Shahrokni, 2009) and two of KITTI, annotated by A. Milan and
  others, with the Faster R-CNN boxes that SORT was published with (scores of 0.5 and more)
- KITTI (Geiger et al., 2012), cars and pedestrians, boxes of PointRCNN as used by AB3DMOT; its logits become scores by the logistic function.
  And again with the boxes of RRC as used by DeepFusionMOT. These are for non-commercial research.
- Stanford Drone Dataset (Robicquet et al., 2016), people, bicycles and cars from above, the first 40 seconds of the annotations under 4 MB; there
  are no public boxes, so the annotated ones are disturbed at random. Also for non-commercial research.
- PETS09-S2L1 again as OpenCV's example video vtest.avi: EDGE-INFER detects its people with YOLOX-nano and computes embeddings with an OSNet x0.25
  trained on MSMT17 (Zhou et al., 2019)

Boxes on what the ground truth excludes from evaluation (reflections, vans among cars, areas not annotated) are removed for all trackers. The
sequences of a source are split in alphabetical order: the first, third, fifth ... are for tuning, the others are held out; the pedestrians of
KITTI-13 and KITTI-17 follow KITTI's order. Each is also written at about 10 and 5 fps. Files in CACHE are not downloaded again.
"""

import collections
import hashlib
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import urllib.request
import xml.etree.ElementTree
import zipfile

MIN_SCORE = 0.1
OSNET = "https://github.com/akshaydhame2001/YOLOv8_Tracking_TensorRT/raw/9a5b6fbdf36285fd5b384532f6c2ecd15a675ca2/osnet_x0_25_msmt17.onnx"
HASHES = {
    "osnet_x0_25_msmt17.onnx": "61b2604171ef9d58d21758626f83b35a253c3d7123976523a6e03068c3c95d7b",
    "vtest.avi": "45cddc9490be69345cbdab64ca583be65987e864ca408038e648db99e10516cf",
    "motmetrics-1.4.0-py3-none-any.whl": "cd4d691bd787360f1cd0a2127fe8a14d0646fb2912b344a9498719e132b25738",
}
REPOSITORIES = {  # commit and paths
    "abewley/sort": ("2236dff5019565958b84df7d871d41cc1db58ac7", ["data/train"]),
    "SZU-AdvTech-2024/049-StrongSORT-Make-DeepSORT-Great-Again": ("fab9fa342c03ae09ab2dd6866d97000d904466ad", ["detections"]),
    "jvlmdr/py-motmetrics": ("9a1bac57af38df4a22317a23aa0f4e4eb9673415", ["motmetrics/data/issue126/MOT17"]),
    "crowdbotp/OpenTraj": ("97ec1d5e1b579f26febeaa9083705952deac338a",
                           ["datasets/ETH-Person/data", "datasets/PETS-2009/data/annotations/PETS2009-S2L1.xml", "datasets/SDD"]),
    "xinshuoweng/AB3DMOT": ("61f3bd72574093e367916c757b4747ca445f978c",
                            ["scripts/KITTI/label", "data/KITTI/detection/pointrcnn_Car_val", "data/KITTI/detection/pointrcnn_Pedestrian_val"]),
    "wangxiyang2022/DeepFusionMOT": ("8f4e2d709753d374b0b55b19a631a0a6bf5af470", ["data/detections/2D/rrc/training"]),
}
# The ground truth of PETS09-S2L1 gives people who leave and return another identity. These pairs are the same person in the images;
# PETS09-S2L1-people merges them.
SAME = {19: 1, 13: 2, 11: 3, 12: 4, 9: 5, 10: 6, 14: 8, 15: 8, 18: 8}
MOT15 = {  # fps, frames, width, height, ground truth, frame of the ground truth that is the first of the sequence
    "ETH-Bahnhof": (14, 1000, 640, 480, "datasets/ETH-Person/data/bahnhof_assc_gt.xml", 0),
    "ETH-Sunnyday": (14, 354, 640, 480, "datasets/ETH-Person/data/sunnyday_assc_gt.xml", 100),
    "PETS09-S2L1": (7, 795, 768, 576, "datasets/PETS-2009/data/annotations/PETS2009-S2L1.xml", 0),
    "TUD-Campus": (25, 71, 640, 480, None, 1),
    "TUD-Stadtmitte": (25, 179, 640, 480, None, 1),
}
SDD = ["deathCircle/video2", "deathCircle/video4", "gates/video2", "gates/video4", "gates/video5", "gates/video6", "gates/video7", "gates/video8",
       "hyang/video12", "hyang/video13", "hyang/video14", "hyang/video7", "hyang/video8", "hyang/video9", "little/video0", "nexus/video10",
       "nexus/video3", "nexus/video4", "nexus/video5", "quad/video0", "quad/video1", "quad/video2", "quad/video3"]
SDD_FRAMES = 1200
KITTI_LENGTHS = [154, 447, 233, 144, 314, 297, 270, 800, 390, 803, 294, 373, 78, 340, 106, 376, 209, 145, 339, 1059, 837]
EXCLUDED_CLASSES = {2, 7, 8, 12}  # of MOT17: person on a vehicle, static person, distractor, reflection
CASCADE = """cascade:
  - {{name: person, model: {}, layout: embedding, min_size: 8}}
"""
SCALING = "{resize: stretch, range: [0, 1], mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225]}"


class Sequence:
    """A sequence: rows of truth are frame from 1, identity, left, top, width, height; rows of boxes have a score instead of the identity, and the
    embedding at the end if there is one; rows of excluded are boxes of a frame that are not evaluated."""

    def __init__(self, name, group, rate, frames, size, truth, boxes, excluded=()):
        self.name, self.group, self.rate, self.frames, self.size = name, group, rate, frames, size
        self.truth = list(truth)
        self.boxes = without_excluded(self.truth, boxes, excluded)
        self.held_out = None  # not split

    def every(self, step, rate):
        """The sequence with every step-th frame."""
        kept = lambda rows: [((row[0] - 1) // step + 1, *row[1:]) for row in rows if (row[0] - 1) % step == 0]
        fewer = Sequence(f"{self.name}-{rate}fps", f"{self.group} at {rate} fps", self.rate / step, (self.frames - 1) // step + 1, self.size,
                         kept(self.truth), kept(self.boxes))
        fewer.held_out = self.held_out
        return fewer

    def write(self, directory):
        directory /= self.name
        (directory / "gt").mkdir(parents=True, exist_ok=True)
        (directory / "seqinfo.ini").write_text(
            f"[Sequence]\nname={self.name}\ngroup={self.group}\n" + ("" if self.held_out is None else f"heldOut={int(self.held_out)}\n") +
            f"frameRate={self.rate}\n"
            f"seqLength={self.frames}\nimWidth={self.size[0]}\nimHeight={self.size[1]}\n")
        with (directory / "gt" / "gt.txt").open("w") as out:
            for frame, number, *box in self.truth:
                out.write(f"{frame},{number}," + ",".join(f"{v:.2f}" for v in box) + ",1,1,1\n")
        with (directory / "det.txt").open("w") as out:
            embeddings = []
            for frame, score, *box in self.boxes:
                embeddings += box[4:]
                out.write(f"{frame},-1," + ",".join(f"{v:.2f}" for v in box[:4]) + f",{score:.4f},1,1\n")
        if embeddings:
            (directory / "embeddings.txt").write_text("\n".join(embeddings) + "\n")


def shares(a, b):
    """The intersection of two boxes over their union, and over the first."""
    width = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    height = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0, 0
    both = width * height
    return both / (a[2] * a[3] + b[2] * b[3] - both), both / (a[2] * a[3])


def without_excluded(truth, boxes, excluded):
    """The boxes of a pixel and more that are not mostly on an excluded one, unless an annotated object fits better. An excluded box without an
    identity is an area."""
    objects, others = collections.defaultdict(list), collections.defaultdict(list)
    for frame, _, *box in truth:
        objects[frame].append(box)
    for frame, number, *box in excluded:
        others[frame].append((number, box))
    kept = []
    for row in boxes:
        box = row[2:6]
        if min(box[2:]) < 1:
            continue  # not every tracker takes an empty box
        on = max((shares(box, other)[number < 0] for number, other in others[row[0]]), default=0)
        if on <= 0.5 or max((shares(box, other)[0] for other in objects[row[0]]), default=0) >= min(on, 0.5):
            kept.append(row)
    return kept


def cached(cache, name, fetch):
    """Returns the cached file; if it is missing, fetch writes it into a directory."""
    path = cache / name
    if not path.exists():
        print("sequences: downloading", name, file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            fetch(pathlib.Path(work))
            next(pathlib.Path(work).rglob(name)).rename(path)
    if hashlib.sha256(path.read_bytes()).hexdigest() != HASHES[name]:
        sys.exit(f"sequences: {path} has another hash than the file used for the published figures; remove it")
    return path


def repository(cache, name):
    """Returns the directory with the files of a repository at its fixed commit."""
    commit, paths = REPOSITORIES[name]
    path = cache / f"{name.replace('/', '+')}@{commit[:12]}"
    if not path.exists():
        print("sequences: downloading", name, file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            git = ["git", "-C", work]
            subprocess.run([*git, "init", "-q"], check=True)
            subprocess.run([*git, "remote", "add", "origin", f"https://github.com/{name}"], check=True)
            subprocess.run([*git, "fetch", "-q", "--depth=1", "--filter=blob:none", "origin", commit], check=True)
            subprocess.run([*git, "-c", "advice.detachedHead=false", "checkout", "-q", commit, "--", *paths], check=True)
            files = path.with_suffix(".new")
            files.mkdir(exist_ok=True)
            for source in paths:
                (files / source).parent.mkdir(parents=True, exist_ok=True)
                (pathlib.Path(work) / source).rename(files / source)
            files.rename(path)
    return path


def download(url, name):
    """Returns a fetch function for cached."""
    return lambda work: urllib.request.urlretrieve(url, work / name)


def debian(work):
    """Downloads vtest.avi, for cached."""
    subprocess.run(["apt-get", "download", "-qq", "opencv-doc"], cwd=work, check=True)
    subprocess.run(["dpkg-deb", "-x", next(work.glob("*.deb")), work], check=True)


def wheel(work):
    """Downloads motmetrics, which contains the ground truth of two sequences."""
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "motmetrics==1.4.0"],
                   cwd=work, check=True)


def annotated(path, first):
    """Yields the ground truth of an annotation in Milan's format, which has box centres."""
    for frame in xml.etree.ElementTree.parse(path).getroot().iter("frame"):
        for seen in frame.iter("object"):
            x, y, w, h = (float(seen.find("box").get(key)) for key in ("xc", "yc", "w", "h"))
            yield int(frame.get("number")) + 1 - first, int(seen.get("id")), x - w / 2, y - h / 2, w, h


def detected(program, video, osnet):
    """Yields the people detected in a video, with their embeddings."""
    osnet.with_suffix(".preprocess.yaml").write_text(SCALING)
    settings = osnet.with_suffix(".yaml")
    settings.write_text(CASCADE.format(osnet.resolve()))
    ran = subprocess.run([program, "infer", "--model", "yolox-nano", "--confidence", str(MIN_SCORE), "--classes", "person", "--config", settings, "--json", video],
                         check=True, stdout=subprocess.PIPE, text=True)
    for line in map(json.loads, ran.stdout.splitlines()):
        for d in line["detections"]:
            x1, y1, x2, y2 = d["box"]
            yield line["frame"] + 1, d["score"], x1, y1, x2 - x1, y2 - y1, d.get("embedding", "")


def rows(text, columns):
    """Yields the frame and the given columns of each row of a MOTChallenge file."""
    for line in text.splitlines():
        values = [float(v) for v in line.split(",")]
        yield int(values[0]), *(values[c] for c in columns)


def mot17(cache):
    """The second halves of MOT17's training sequences."""
    truths = repository(cache, "jvlmdr/py-motmetrics") / "motmetrics/data/issue126/MOT17/train"
    boxes = repository(cache, "SZU-AdvTech-2024/049-StrongSORT-Make-DeepSORT-Great-Again") / "detections"
    for path in sorted(boxes.glob("*.txt")):
        folder = truths / path.stem
        info = dict(line.split("=", 1) for line in (folder / "seqinfo.ini").read_text().splitlines() if "=" in line)
        last = int(info["seqLength"])
        first = last // 2 + 2  # of the boxes
        truth, excluded = [], []
        for frame, number, counts, kind, *box in rows((folder / "gt" / "gt.txt").read_text(), (1, 6, 7, 2, 3, 4, 5)):
            if frame < first:
                continue
            if kind == 1 and counts == 1:
                truth.append((frame - first + 1, int(number), *box))
            elif kind in EXCLUDED_CLASSES:
                excluded.append((frame - first + 1, int(number), *box))
        found = [(frame - first + 1, *rest) for frame, *rest in rows(path.read_text(), (6, 2, 3, 4, 5))]
        yield Sequence(path.stem[:8], "MOT17", float(info["frameRate"]), last - first + 1, (int(info["imWidth"]), int(info["imHeight"])),
                       truth, found, excluded)


def mot15(cache):
    """The sequences of MOT15 whose ground truth is public."""
    package = zipfile.ZipFile(cached(cache, "motmetrics-1.4.0-py3-none-any.whl", wheel))
    for name, (rate, frames, width, height, annotation, first) in MOT15.items():
        if annotation:
            truth = annotated(repository(cache, "crowdbotp/OpenTraj") / annotation, first)
        else:
            truth = ((f, int(i), *box) for f, i, *box in rows(package.read(f"motmetrics/data/{name}/gt.txt").decode(), range(1, 6)))
        yield Sequence(name, "MOT15", rate, frames, (width, height), truth, sorted_boxes(cache, name))


def sorted_boxes(cache, name):
    """The boxes that SORT was published with."""
    path = repository(cache, "abewley/sort") / "data/train" / name / "det/det.txt"
    return rows(path.read_text(), (6, 2, 3, 4, 5))


def kitti_labels(cache, number, kind, alike):
    """The ground truth of a class, and what is not evaluated: objects of a similar class, and areas."""
    truth, excluded = [], []
    for line in (repository(cache, "xinshuoweng/AB3DMOT") / f"scripts/KITTI/label/{number:04}.txt").read_text().splitlines():
        frame, identity, what, *values = line.split()
        x1, y1, x2, y2 = (float(v) for v in values[3:7])
        row = int(frame) + 1, int(identity), x1, y1, x2 - x1, y2 - y1
        if what == kind:
            truth.append(row)
        elif what in (alike, "DontCare"):
            excluded.append(row)
    return truth, excluded


def kitti(cache, kind, group, alike):
    """KITTI's sequences that show objects of a class, with the boxes of PointRCNN and of RRC."""
    detectors = {
        "": (repository(cache, "xinshuoweng/AB3DMOT") / f"data/KITTI/detection/pointrcnn_{kind}_val", (6, 2, 3, 4, 5),
             lambda logit: 1 / (1 + math.exp(-logit))),
        "-rrc": (repository(cache, "wangxiyang2022/DeepFusionMOT") / f"data/detections/2D/rrc/training/{kind}", (5, 1, 2, 3, 4), float),
    }
    for detector, (boxes, columns, probability) in detectors.items():
        for number, frames in enumerate(KITTI_LENGTHS):
            truth, excluded = kitti_labels(cache, number, kind, alike)
            found = [(frame + 1, probability(score), x1, y1, x2 - x1, y2 - y1)
                     for frame, score, x1, y1, x2, y2 in rows((boxes / f"{number:04}.txt").read_text(), columns)]
            yield Sequence(f"KITTI-{number:02}-{kind.lower()}{detector}", group + detector.upper().replace("-", ", "), 10, frames, (1242, 375), truth,
                           [row for row in found if row[1] >= MIN_SCORE], excluded)


def jpeg_size(path):
    """The width and height of a JPEG file."""
    data = path.read_bytes()
    place = 2
    while data[place + 1] not in (0xC0, 0xC1, 0xC2):
        place += 2 + int.from_bytes(data[place + 2:place + 4])
    return int.from_bytes(data[place + 7:place + 9]), int.from_bytes(data[place + 5:place + 7])


def disturbed(truth, hidden, size, frames, seed):
    """Boxes that a mediocre detector might find: inexact, sometimes missing for several frames, mostly missing where hidden, with false alarms."""
    chance = random.Random(seed)
    missing = set()
    for frame, number, left, top, width, height in truth:
        if chance.random() < (0.3 if number in missing else 0.03):
            missing ^= {number}
        if number in missing or (frame, number) in hidden and chance.random() < 0.8:
            continue
        error = [chance.gauss(0, 0.03 * side) for side in (width, height)]
        sides = [side * math.exp(chance.gauss(0, 0.05)) for side in (width, height)]
        yield (frame, min(max(chance.gauss(0.65, 0.18), 0.05), 0.99), left + error[0] + (width - sides[0]) / 2, top + error[1] + (height - sides[1]) / 2,
               *sides)
    for frame in range(1, frames + 1):
        if chance.random() < 0.3 and truth:
            _, _, _, _, width, height = chance.choice(truth)
            yield frame, chance.uniform(0.1, 0.5), chance.uniform(0, size[0] - width), chance.uniform(0, size[1] - height), width, height


def drones(cache):
    """Sequences of the Stanford Drone Dataset with disturbed boxes."""
    source = repository(cache, "crowdbotp/OpenTraj") / "datasets/SDD"
    for name in SDD:
        truth, hidden = [], set()
        for line in (source / name / "annotations.txt").read_text().splitlines():
            number, x1, y1, x2, y2, frame, lost, occluded, *_ = line.split()
            row = int(frame) + 1, int(number) + 1
            if int(frame) >= SDD_FRAMES or lost == "1" or x1 == x2 or y1 == y2:
                continue
            truth.append((*row, float(x1), float(y1), float(x2) - float(x1), float(y2) - float(y1)))
            if occluded == "1":
                hidden.add(row)
        truth.sort()
        size = jpeg_size(source / name / "reference.jpg")
        frames = max(row[0] for row in truth)
        found = sorted(row for row in disturbed(truth, hidden, size, frames, name) if row[1] >= MIN_SCORE)
        yield Sequence("SDD-" + name.replace("/video", "-"), "SDD", 30, frames, size, truth, found)


def pets(cache, program):
    """PETS09-S2L1 with boxes and embeddings of this project, with the annotated identities and with those of people."""
    video = cached(cache, "vtest.avi", debian)
    osnet = cached(cache, "osnet_x0_25_msmt17.onnx", download(OSNET, "osnet_x0_25_msmt17.onnx"))
    subprocess.run([program, "model", "pull", "yolox-nano"], check=True, stdout=subprocess.DEVNULL)
    rate, frames, width, height, annotation, first = MOT15["PETS09-S2L1"]
    truth = list(annotated(repository(cache, "crowdbotp/OpenTraj") / annotation, first))
    found = list(detected(program, video, osnet))
    yield Sequence("vtest", "vtest.avi", rate, frames, (width, height), truth, found)
    people = ((frame, SAME.get(i, i), *box) for frame, i, *box in truth)
    yield Sequence("vtest-people", "vtest.avi, by person", rate, frames, (width, height), people, found)


def main():
    program, cache, directory = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    cache.mkdir(parents=True, exist_ok=True)
    sources = [list(mot17(cache)), list(mot15(cache)), list(kitti(cache, "Car", "KITTI cars", "Van")),
               list(kitti(cache, "Pedestrian", "KITTI pedestrians", "Person")), list(drones(cache))]
    for source in sources:
        for place, sequence in enumerate(source):
            sequence.held_out = place % len(KITTI_LENGTHS) % 2 == 1 if sequence.name.startswith("KITTI") else place % 2 == 1
    for number in (13, 17):
        truth, excluded = kitti_labels(cache, number, "Pedestrian", "Person")
        twin = sources[3][number]
        sequence = Sequence(f"KITTI-{number}", "MOT15", 10, twin.frames, twin.size, truth, sorted_boxes(cache, f"KITTI-{number}"), excluded)
        sequence.held_out = twin.held_out
        sources[1].append(sequence)
    for sequence in (s for source in sources for s in source if s.truth):
        sequence.write(directory)
        for rate in (10, 5):
            step = round(sequence.rate / rate)
            if step > 1:
                sequence.every(step, rate).write(directory)
    if program != "-":
        for sequence in pets(cache, program):
            sequence.write(directory)


if __name__ == "__main__":
    main()
