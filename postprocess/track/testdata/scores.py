"""Writes scores.json: python3 scores.py, in this directory, with numpy and trackeval installed.

It holds random boxes with identities and their MOTA, IDF1 and HOTA by TrackEval. All coordinates are multiples of a quarter, so that no reader
rounds them.
"""

import json
import pathlib

import numpy as np
from trackeval.metrics import CLEAR, HOTA, Identity

HERE = pathlib.Path(__file__).parent


def quarter(values):
    return (np.round(np.asarray(values) * 4) / 4).tolist()


def corner_box(random):
    x, y = random.uniform(0, 180, 2)
    w, h = random.uniform(10, 60, 2)
    return np.array([x, y, x + w, y + h])


def tracking():
    random = np.random.default_rng(4)
    frames, objects, names, fresh = [], {}, {}, 100
    for frame in range(60):
        if frame % 6 == 0:
            objects[frame] = (corner_box(random), random.uniform(-3, 3, 2))
        for key in [key for key in objects if random.random() < 0.02]:
            del objects[key]
        truths, tracks = [], []
        for key, (box, speed) in objects.items():
            box = box + np.tile(speed, 2)
            objects[key] = (box, speed)
            truths.append([*quarter(box), key])
            if key not in names or random.random() < 0.04:
                fresh += 1
                names[key] = fresh
            if random.random() < 0.85:
                tracks.append([*quarter(box + random.normal(0, 3, 4)), names[key]])
        if len(objects) > 1 and random.random() < 0.08:
            one, other = random.choice(list(objects), 2, replace=False)
            names[one], names[other] = names.get(other, fresh + 1), names.get(one, fresh + 2)
            fresh += 2
            tracks = []
        if random.random() < 0.2:
            fresh += 1
            tracks.append([*quarter(corner_box(random)), fresh])
        frames.append({"truths": truths, "tracks": tracks})

    ids = [sorted({row[4] for frame in frames for row in frame[side]}) for side in ("truths", "tracks")]
    data = {
        "num_timesteps": len(frames),
        "num_gt_ids": len(ids[0]),
        "num_tracker_ids": len(ids[1]),
        "num_gt_dets": sum(len(frame["truths"]) for frame in frames),
        "num_tracker_dets": sum(len(frame["tracks"]) for frame in frames),
        "gt_ids": [],
        "tracker_ids": [],
        "similarity_scores": [],
    }
    for frame in frames:
        a = np.array([row[:4] for row in frame["truths"]], float).reshape(-1, 4)
        b = np.array([row[:4] for row in frame["tracks"]], float).reshape(-1, 4)
        low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
        shared = np.prod(np.clip(high - low, 0, None), 2)
        area = [np.prod(v[:, 2:] - v[:, :2], 1) for v in (a, b)]
        data["similarity_scores"].append(shared / (area[0][:, None] + area[1][None, :] - shared))
        for side, key, known in (("truths", "gt_ids", ids[0]), ("tracks", "tracker_ids", ids[1])):
            data[key].append(np.array([known.index(row[4]) for row in frame[side]], int))
    quiet = {"PRINT_CONFIG": False}
    clear, identity, hota = CLEAR(quiet).eval_sequence(data), Identity(quiet).eval_sequence(data), HOTA().eval_sequence(data)
    result = {
        "mota": float(clear["MOTA"]),
        "id_switches": int(clear["IDSW"]),
        "missed": int(clear["CLR_FN"]),
        "false_alarms": int(clear["CLR_FP"]),
        "idf1": float(identity["IDF1"]),
        "hota": float(np.mean(hota["HOTA"])),
        "deta": float(np.mean(hota["DetA"])),
        "assa": float(np.mean(hota["AssA"])),
    }
    return {"result": result, "frames": frames}


content = tracking()
lines = ",\n".join("  " + json.dumps(row) for row in content["frames"])
(HERE / "scores.json").write_text('{"result": %s, "frames": [\n%s\n]}\n' % (json.dumps(content["result"]), lines))
