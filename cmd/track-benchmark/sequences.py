"""Collects videos of real pedestrians in the format of the MOTChallenge: python3 sequences.py EDGE-INFER CACHE DIRECTORY.

PETS09-S2L1 is OpenCV's example video vtest.avi (University of Reading, PETS 2009; annotated by A. Milan). EDGE-INFER detects its people with
YOLOX-nano and computes embeddings with an OSNet x0.25 trained on MSMT17 (Zhou et al., 2019). TUD-Campus and TUD-Stadtmitte (Andriluka et al.,
2008) come with the Faster R-CNN boxes that SORT was published with and, without images, have no embeddings. Files in CACHE are not downloaded again.
"""

import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request
import xml.etree.ElementTree
import zipfile

MIN_SCORE = 0.1
SORT = "https://github.com/abewley/sort/raw/2236dff5019565958b84df7d871d41cc1db58ac7/data/train/{}/det/det.txt"
OSNET = "https://github.com/akshaydhame2001/YOLOv8_Tracking_TensorRT/raw/9a5b6fbdf36285fd5b384532f6c2ecd15a675ca2/osnet_x0_25_msmt17.onnx"
PETS = "https://github.com/crowdbotp/OpenTraj/raw/97ec1d5e1b579f26febeaa9083705952deac338a/datasets/PETS-2009/data/annotations/PETS2009-S2L1.xml"
# The ground truth of PETS09-S2L1 gives people who leave and return another identity. These pairs are the same person in the images;
# PETS09-S2L1-people merges them.
SAME = {19: 1, 13: 2, 11: 3, 12: 4, 9: 5, 10: 6, 14: 8, 15: 8, 18: 8}
SEQUENCES = {  # fps, frames, width, height
    "PETS09-S2L1": (7, 795, 768, 576),
    "PETS09-S2L1-people": (7, 795, 768, 576),
    "TUD-Campus": (25, 71, 640, 480),
    "TUD-Stadtmitte": (25, 179, 640, 480),
}
CASCADE = """cascade:
  - {{name: person, model: {}, layout: embedding, min_size: 8}}
"""
SCALING = "{resize: stretch, range: [0, 1], mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225]}"
HASHES = {
    "osnet_x0_25_msmt17.onnx": "61b2604171ef9d58d21758626f83b35a253c3d7123976523a6e03068c3c95d7b",
    "PETS2009-S2L1.xml": "4a91380025ef20254e2157fa14f4a705e668b41d77869d330cb1c6e2a53bd9e2",
    "vtest.avi": "45cddc9490be69345cbdab64ca583be65987e864ca408038e648db99e10516cf",
    "motmetrics-1.4.0-py3-none-any.whl": "cd4d691bd787360f1cd0a2127fe8a14d0646fb2912b344a9498719e132b25738",
    "TUD-Campus.txt": "99ab27c988173b6b6fc7b9f1dcc5320e8dc94223cf3cce293682b906c065979e",
    "TUD-Stadtmitte.txt": "945b906548a09b0b5f7a39befe11f96860b0a92dca25d6df813ec73e1246f473",
}


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


def write(directory, name, truth, found):
    """Writes one sequence. A row of truth is frame from 1, identity, left, top, width, height; a row of boxes has a score instead of the identity,
    and the embedding at the end if there is one."""
    rate, frames, width, height = SEQUENCES[name]
    (directory / name / "gt").mkdir(parents=True, exist_ok=True)
    (directory / name / "seqinfo.ini").write_text(
        f"[Sequence]\nname={name}\nframeRate={rate}\nseqLength={frames}\nimWidth={width}\nimHeight={height}\n")
    with (directory / name / "gt" / "gt.txt").open("w") as out:
        for frame, number, *box in truth:
            out.write(f"{frame},{number}," + ",".join(f"{v:.2f}" for v in box) + ",1,1,1\n")
    with (directory / name / "det.txt").open("w") as out:
        embeddings = []
        for frame, score, *box in found:
            embeddings += box[4:]
            out.write(f"{frame},-1," + ",".join(f"{v:.2f}" for v in box[:4]) + f",{score:.4f},1,1\n")
    if embeddings:
        (directory / name / "embeddings.txt").write_text("\n".join(embeddings) + "\n")


def annotated(path):
    """Yields the ground truth of an annotation in Milan's format, which counts frames from 0 and has box centres."""
    for frame in xml.etree.ElementTree.parse(path).getroot().iter("frame"):
        for seen in frame.iter("object"):
            x, y, w, h = (float(seen.find("box").get(key)) for key in ("xc", "yc", "w", "h"))
            yield int(frame.get("number")) + 1, int(seen.get("id")), x - w / 2, y - h / 2, w, h


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
    """Yields the given columns of each row of a MOTChallenge file."""
    for line in text.splitlines():
        values = [float(v) for v in line.split(",")]
        yield int(values[0]), *(values[c] for c in columns)


def main():
    program, cache, directory = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    cache.mkdir(parents=True, exist_ok=True)
    video = cached(cache, "vtest.avi", debian)
    annotation = cached(cache, "PETS2009-S2L1.xml", download(PETS, "PETS2009-S2L1.xml"))
    osnet = cached(cache, "osnet_x0_25_msmt17.onnx", download(OSNET, "osnet_x0_25_msmt17.onnx"))
    subprocess.run([program, "model", "pull", "yolox-nano"], check=True, stdout=subprocess.DEVNULL)
    truth, found = list(annotated(annotation)), list(detected(program, video, osnet))
    write(directory, "PETS09-S2L1", truth, found)
    write(directory, "PETS09-S2L1-people", ((frame, SAME.get(i, i), *box) for frame, i, *box in truth), found)
    with zipfile.ZipFile(cached(cache, "motmetrics-1.4.0-py3-none-any.whl", wheel)) as package:
        for name in ("TUD-Campus", "TUD-Stadtmitte"):
            truth = package.read(f"motmetrics/data/{name}/gt.txt").decode()
            boxes = cached(cache, name + ".txt", download(SORT.format(name), name + ".txt"))
            write(directory, name, ((f, int(i), *box) for f, i, *box in rows(truth, range(1, 6))), rows(boxes.read_text(), (6, 2, 3, 4, 5)))


if __name__ == "__main__":
    main()
