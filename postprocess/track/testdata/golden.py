"""Writes golden.json: python3 golden.py, in this directory, with numpy and scipy.

A synthetic street of boxes that cross, hide each other and come back, seen by an imperfect detector, and the numbers that a plain ByteTrack
(eight-dimensional Kalman filter over centre, aspect and height; three matchings; frame counts) gives to the detections.
"""

import json
import pathlib

import numpy as np
from scipy.optimize import linear_sum_assignment

HERE = pathlib.Path(__file__).parent
HIGH, LOW, NEW, KEPT = 0.5, 0.1, 0.6, 30


def overlaps(a, b):
    a, b = np.reshape(a, (-1, 4)), np.reshape(b, (-1, 4))
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = np.prod(np.clip(high - low, 0, None), 2)
    area = [np.prod(v[:, 2:] - v[:, :2], 1) for v in (a, b)]
    return shared / (area[0][:, None] + area[1][None, :] - shared)


class Filter:
    """Constant velocity over centre x, centre y, aspect, height and their speeds a frame."""

    def __init__(self, box):
        z = self.measure(box)
        self.mean = np.r_[z, np.zeros(4)]
        h = z[3]
        self.covariance = np.diag(np.square([h / 10, h / 10, 1e-2, h / 10, h / 16, h / 16, 1e-5, h / 16]))

    @staticmethod
    def measure(box):
        x1, y1, x2, y2 = box
        return np.array([(x1 + x2) / 2, (y1 + y2) / 2, (x2 - x1) / (y2 - y1), y2 - y1])

    def predict(self, lost):
        if lost:
            self.mean[7] = 0
        h = self.mean[3]
        noise = np.diag(np.square([h / 20, h / 20, 1e-2, h / 20, h / 160, h / 160, 1e-5, h / 160]))
        move = np.eye(8) + np.eye(8, k=4)
        self.mean = move @ self.mean
        self.covariance = move @ self.covariance @ move.T + noise

    def update(self, box):
        h = self.mean[3]
        look = np.eye(4, 8)
        spread = look @ self.covariance @ look.T + np.diag(np.square([h / 20, h / 20, 1e-1, h / 20]))
        gain = self.covariance @ look.T @ np.linalg.inv(spread)
        self.mean = self.mean + gain @ (self.measure(box) - look @ self.mean)
        self.covariance = self.covariance - gain @ spread @ gain.T

    def box(self):
        x, y, a, h = self.mean[:4]
        return np.array([x - a * h / 2, y - h / 2, x + a * h / 2, y + h / 2])


class Track:
    def __init__(self, number, detection, frame):
        self.number, self.filter = number, Filter(detection[:4])
        self.state, self.first, self.last = ("active" if frame == 0 else "tentative"), frame, frame


def matched(similarity, limit):
    weights = np.clip(similarity - limit, 0, None)
    rows, columns = linear_sum_assignment(-weights)
    return [(r, c) for r, c in zip(rows, columns) if weights[r, c] > 0]


def byte_track(frames):
    tracks, numbers, out = [], 0, []
    for frame, detections in enumerate(frames):
        detections = np.reshape(detections, (-1, 5))
        scores = detections[:, 4]
        high, low = np.flatnonzero(scores >= HIGH), np.flatnonzero((scores >= LOW) & (scores < HIGH))
        taken, found = set(), []

        def take(chosen, candidates, limit, fused):
            similarity = overlaps([t.filter.box() for t in chosen], detections[candidates, :4])
            if fused:
                similarity = similarity * scores[candidates]
            for r, c in matched(similarity, limit):
                track, at = chosen[r], int(candidates[c])
                track.filter.update(detections[at, :4])
                track.state, track.last = "active", frame
                taken.add(at)
                found.append((track.number, at))
            return [t for t in chosen if t.last != frame]

        pool = [t for t in tracks if t.state != "tentative"]
        for track in tracks:
            track.filter.predict(track.state == "lost")
        rest = take(pool, high, 0.2, True)
        rest = take([t for t in rest if t.state == "active"], low, 0.5, False)
        for track in rest:
            track.state = "lost"
        tentative = [t for t in tracks if t.state == "tentative"]
        for track in take(tentative, np.array([i for i in high if i not in taken], int), 0.3, True):
            tracks.remove(track)
        for at in high:
            if at not in taken and scores[at] >= NEW:
                numbers += 1
                tracks.append(Track(numbers, detections[at], frame))
                if frame == 0:
                    found.append((numbers, int(at)))
        tracks = [t for t in tracks if not (t.state == "lost" and frame - t.last > KEPT)]
        active, lost = [t for t in tracks if t.state == "active"], [t for t in tracks if t.state == "lost"]
        for i, j in zip(*np.nonzero(overlaps([t.filter.box() for t in active], [t.filter.box() for t in lost]) > 0.85)):
            one, other = active[i], lost[j]
            loser = other if one.last - one.first > other.last - other.first else one
            if loser in tracks:
                tracks.remove(loser)
        out.append(sorted(found))
    return out


def street():
    random = np.random.default_rng(11)
    walkers = []
    for n in range(18):
        side = random.choice([-1, 1])
        start = int(random.integers(0, 100)) if n > 5 else 0
        size = random.uniform(50, 110)
        walkers.append((start, np.array([480 - side * 500, random.uniform(220, 400)]), np.array([side * random.uniform(4, 9), random.normal(0, 0.4)]), size))
    frames = []
    for frame in range(150):
        shown = []
        for start, place, speed, size in walkers:
            if frame < start:
                continue
            x, y = place + speed * (frame - start)
            box = np.array([x - size * 0.3, y - size, x + size * 0.3, y])
            if 0 <= x <= 960:
                shown.append(box)
        shown.sort(key=lambda box: -box[3])
        detections = []
        for i, box in enumerate(shown):
            # What stands in front hides: the score falls with the hidden part, and with most of it gone nothing is seen.
            hidden = max([np.prod(np.clip(np.minimum(box[2:], b[2:]) - np.maximum(box[:2], b[:2]), 0, None)) for b in shown[:i]], default=0)
            hidden /= np.prod(box[2:] - box[:2])
            if hidden > 0.6 or random.random() < 0.03:
                continue
            score = np.clip(0.92 - 1.3 * hidden + random.normal(0, 0.04), 0.05, 0.99)
            detections.append([*(box + random.normal(0, 0.02, 4) * np.tile(box[2:] - box[:2], 2)), score])
        if random.random() < 0.3:
            x, y = random.uniform(0, 900), random.uniform(0, 480)
            detections.append([x, y, x + 25, y + 50, random.uniform(0.1, 0.9)])
        random.shuffle(detections)
        frames.append([[round(float(v), 1) for v in row[:4]] + [round(float(row[4]), 3)] for row in detections])
    return frames


frames = street()
rows = [{"detections": frame, "tracks": found} for frame, found in zip(frames, byte_track(frames))]
(HERE / "golden.json").write_text("[\n" + ",\n".join("  " + json.dumps(row) for row in rows) + "\n]\n")
