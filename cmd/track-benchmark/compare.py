"""Runs the trackers of `trackers`, and of `boxmot` if installed, on the sequences written by main.go, and scores all with TrackEval:
python3 compare.py DIRECTORY [--half tuning] [--json FILE].

All trackers get the same boxes, and each runs twice: with the thresholds of this project's defaults, a track being reported on its second detection
and lost tracks kept equally long, and ("own") with the defaults of its package. The scores of a group are those of all its sequences together, as
TrackEval combines them. If the camera moves and its motion is known, the BoT-SORTs get it instead of estimating it from images. `supervision` has
moved its trackers to `trackers`.
"""

import argparse
import collections
import contextlib
import io
import json
import pathlib
import time

import numpy as np
import supervision
import trackeval
import trackers

try:
    import boxmot
    import boxmot.structures
    import torch
except ImportError:
    boxmot = None


OWN = ", own"


def trackers_for(limits, rate):
    """The trackers of `trackers` for a frame rate. They count lost_track_buffer in frames at 30 fps."""
    kept = dict(lost_track_buffer=round(30 * limits["keep"]), frame_rate=rate, minimum_consecutive_frames=2)
    scores = dict(high_conf_det_threshold=limits["high"])
    new = dict(track_activation_threshold=limits["new"])
    return {
        "ByteTrack": trackers.ByteTrackTracker(**kept, **scores, **new),
        "BoT-SORT": trackers.BoTSORTTracker(**kept, **scores, **new),
        "SORT": trackers.SORTTracker(**kept, **new),
        "OC-SORT": trackers.OCSORTTracker(**kept, **scores),
        "C-BIoU": trackers.CBIoUTracker(**kept, **scores, **new),
        "ByteTrack" + OWN: trackers.ByteTrackTracker(frame_rate=rate),
        "BoT-SORT" + OWN: trackers.BoTSORTTracker(frame_rate=rate),
        "SORT" + OWN: trackers.SORTTracker(frame_rate=rate),
        "OC-SORT" + OWN: trackers.OCSORTTracker(frame_rate=rate),
        "C-BIoU" + OWN: trackers.CBIoUTracker(frame_rate=rate),
    }


class BoxMOT:
    """Adapts a tracker of boxmot to the interface of `trackers`. It needs an image of the right size but does not use it."""

    def __init__(self, tracker, size):
        self.tracker, self.image = tracker, np.zeros((*size[::-1], 3), np.uint8)

    def update(self, found, frame=None):
        boxes = np.column_stack([found.xyxy, found.confidence, np.zeros(len(found))]).astype(np.float32)
        if self.tracker.use_embeddings:
            return self.update_with_embeddings(boxes, found.data["embeddings"])
        tracks = np.asarray(self.tracker.update(boxes, self.image), np.float32).reshape(-1, 8)
        return supervision.Detections(xyxy=tracks[:, :4], confidence=tracks[:, 5], tracker_id=tracks[:, 4].astype(int))

    def update_with_embeddings(self, boxes, embeddings):
        """Embeddings need boxmot's own structures."""
        kinds = boxmot.structures
        given = kinds.Detections(geometry=kinds.Boxes(torch.from_numpy(boxes[:, :4].copy())), scores=torch.from_numpy(boxes[:, 4].copy()),
                                 class_ids=torch.zeros(len(boxes), dtype=torch.int64), sample_id="frame", embeddings=torch.from_numpy(embeddings))
        tracks = self.tracker.update(given, self.image)
        return supervision.Detections(xyxy=tracks.geometry.values.numpy(), confidence=tracks.scores.numpy(),
                                      tracker_id=tracks.track_ids.numpy())


def boxmots(limits, rate, size, embeddings):
    """The trackers of boxmot that need no network, if it is installed. If the sequence has embeddings, its BoT-SORT also runs with the embeddings
    of every box in every frame: once as published, where embeddings only decide between overlapping boxes, and once without that limit and with
    a track buffer of max_lost_age."""
    if boxmot is None:
        return {}
    kept = round(limits["keep"] * rate)
    whole = dict(min_hits=2, det_thresh=limits["high"], max_age=kept)
    byte = boxmot.ByteTrack(min_conf=limits["low"], track_thresh=limits["high"], track_buffer=kept, frame_rate=30)
    byte.det_thresh = limits["new"]  # it starts tracks at this score

    def bot(buffer=kept, embeddings=False, **more):
        return BoxMOT(boxmot.BotSort(track_high_thresh=limits["high"], track_low_thresh=limits["low"], new_track_thresh=limits["new"],
                                     track_buffer=buffer, frame_rate=30, use_embeddings=embeddings, use_cmc=False, **more), size)

    found = {
        "boxmot ByteTrack": BoxMOT(byte, size),
        "boxmot BoT-SORT": bot(),
        "boxmot OC-SORT": BoxMOT(boxmot.OcSort(min_conf=limits["low"], use_byte=True, **whole), size),
        "boxmot ByteTrack" + OWN: BoxMOT(boxmot.ByteTrack(frame_rate=rate), size),
        "boxmot BoT-SORT" + OWN: BoxMOT(boxmot.BotSort(frame_rate=rate, use_embeddings=False, use_cmc=False), size),
        "boxmot OC-SORT" + OWN: BoxMOT(boxmot.OcSort(), size),
    }
    if embeddings:
        found["boxmot BoT-SORT with embeddings"] = bot(embeddings=True)
        found["boxmot BoT-SORT with embeddings, anywhere"] = bot(round(limits["max_lost_age"] * rate), True, proximity_thresh=1.0)
    return found


class GivenMotion:
    """Replaces BoT-SORT's camera motion estimation."""

    def __init__(self, motions):
        self.motions = iter(motions)

    def estimate(self, frame, mask_boxes=None):
        return next(self.motions)

    apply = estimate


def read_embeddings(directory, boxes):
    """The embeddings of a sequence's boxes, one per row, or None. A box without one gets a random embedding."""
    numbers = np.fromfile(directory / "embeddings.f16", "<f2").astype(np.float32)
    if len(numbers) == 0:
        return None
    embeddings = numbers.reshape(boxes, -1)
    unknown = ~embeddings.any(1)
    embeddings[unknown] = np.random.default_rng(1).normal(size=(unknown.sum(), embeddings.shape[1]))
    return embeddings


def detections(directory, frames):
    """The boxes of each frame, with embeddings if there are any."""
    rows = np.loadtxt(directory / "det.txt", delimiter=",", ndmin=2)
    embeddings = read_embeddings(directory, len(rows))
    for frame in range(1, frames + 1):
        now = rows[:, 0] == frame
        found = rows[now]
        left, top, width, height = found[:, 2:6].T
        yield supervision.Detections(xyxy=np.stack([left, top, left + width, top + height], 1), confidence=found[:, 6],
                                     data={} if embeddings is None else {"embeddings": embeddings[now]})


def follow(tracker, video, directory, path):
    """Writes the tracks of a sequence and returns the microseconds per frame."""
    image = None
    compensating = getattr(tracker, "tracker", tracker)
    if video["moving"] and hasattr(compensating, "cmc"):
        compensating.cmc = GivenMotion(np.loadtxt(directory / "camera.txt").reshape(-1, 2, 3))
        image = np.zeros((1, 1, 3), np.uint8)  # not used
    spent = 0.0
    with path.open("w") as out:
        for frame, found in enumerate(detections(directory, video["frames"]), 1):
            began = time.perf_counter()
            if image is None:
                tracked = tracker.update(found)
            else:
                tracked = tracker.update(found, frame=image)
            spent += time.perf_counter() - began
            for (x1, y1, x2, y2), score, number in zip(tracked.xyxy, tracked.confidence, tracked.tracker_id):
                if number >= 0:
                    out.write(f"{frame},{number + 1},{x1:.2f},{y1:.2f},{x2 - x1:.2f},{y2 - y1:.2f},{score:.4f},1,1\n")
    return 1e6 * spent / video["frames"]


METRICS = {"HOTA": trackeval.metrics.HOTA(), "CLEAR": trackeval.metrics.CLEAR(dict(PRINT_CONFIG=False)),
           "Identity": trackeval.metrics.Identity(dict(PRINT_CONFIG=False))}


def score(directory, videos, names):
    """TrackEval's results of each tracker on each sequence."""
    evaluator = trackeval.Evaluator(dict(PRINT_RESULTS=False, PRINT_CONFIG=False, TIME_PROGRESS=False, OUTPUT_SUMMARY=False,
                                         OUTPUT_DETAILED=False, PLOT_CURVES=False, OUTPUT_EMPTY_CLASSES=False))
    dataset = trackeval.datasets.MotChallenge2DBox(dict(
        GT_FOLDER=str(directory / "videos"), TRACKERS_FOLDER=str(directory / "trackers"), TRACKERS_TO_EVAL=names, SKIP_SPLIT_FOL=True,
        SEQ_INFO={video["name"]: video["frames"] for video in videos}, DO_PREPROC=False, PRINT_CONFIG=False))
    with contextlib.redirect_stdout(io.StringIO()):
        results, _ = evaluator.evaluate([dataset], list(METRICS.values()))
    return {name: {video["name"]: results["MotChallenge2DBox"][name][video["name"]]["pedestrian"] for video in videos} for name in names}


def combined(results, videos):
    """HOTA, IDF1, MOTA and identity switches of a tracker on several sequences together."""
    all = {name: metric.combine_sequences({video["name"]: results[video["name"]][name] for video in videos}) for name, metric in METRICS.items()}
    return dict(HOTA=float(np.mean(all["HOTA"]["HOTA"])), IDF1=float(all["Identity"]["IDF1"]), MOTA=float(all["CLEAR"]["MOTA"]),
                IDSW=int(all["CLEAR"]["IDSW"]))


def printed(means, names, measure):
    """Prints a table of a measure; the best value of a row is bold."""
    print(f"\n| {measure} | " + " | ".join(names) + " |\n|---" + "|---" * len(names) + "|")
    for group, of in means.items():
        values = [of[name][measure] if name in of else None for name in names]
        known = [v for v in values if v is not None]
        best = min(known) if measure == "IDSW" else max(known)
        show = "{:.0f}" if measure == "IDSW" else "{:.3f}"
        print(f"| {group} | " + " | ".join("" if v is None else f"**{show.format(v)}**" if v == best else show.format(v) for v in values) + " |")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("directory", type=pathlib.Path)
    arguments.add_argument("--half", default="held out", help="of the real sequences: tuning or held out")
    arguments.add_argument("--json", type=pathlib.Path)
    arguments = arguments.parse_args()
    limits = json.loads((arguments.directory / "videos.json").read_text())
    videos = [video for video in limits["sequences"] if video["half"] in ("", arguments.half)]
    spent = collections.defaultdict(list)
    for video in videos:
        video["names"] = list(video["microseconds"])
        for name, took in video["microseconds"].items():
            spent[name].append(took)
        embeddings = (arguments.directory / "videos" / video["name"] / "embeddings.f16").stat().st_size > 0
        followers = trackers_for(limits, video["rate"]) | boxmots(limits, video["rate"], video["size"], embeddings)
        for name, tracker in followers.items():
            path = arguments.directory / "trackers" / name / "data" / (video["name"] + ".txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            spent[name].append(follow(tracker, video, arguments.directory / "videos" / video["name"], path))
            video["names"].append(name)

    means = {}
    for group in dict.fromkeys(video["scene"] for video in videos):
        of = [video for video in videos if video["scene"] == group]
        results = score(arguments.directory, of, of[0]["names"])
        means[group] = {name: combined(results[name], of) for name in of[0]["names"]}
    for measure in ("HOTA", "IDF1", "MOTA", "IDSW"):
        printed(means, list(spent), measure)
    print("\n| us per frame | " + " | ".join(spent) + " |\n|---" + "|---" * len(spent) + "|")
    print("| mean | " + " | ".join(f"{np.mean(took):.0f}" for took in spent.values()) + " |")
    if arguments.json:
        arguments.json.write_text(json.dumps(dict(groups=means, microseconds={n: float(np.mean(t)) for n, t in spent.items()}), indent=1))


if __name__ == "__main__":
    main()
