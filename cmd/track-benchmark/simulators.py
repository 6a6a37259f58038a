"""Writes sequences of two simulators of other people, motpy and Stone Soup, in the format of the MOTChallenge: python3 simulators.py DIRECTORY.

All are held out, and written at 30, 10 and 5 fps. motpy's boxes swing and cross, are missing for up to 24 frames and have no false alarms. Stone
Soup simulates points with random acceleration, births, deaths and clutter; each becomes a box of the size of a person. Its scores say nothing about
the accuracy of a box, and overlapping people are all detected.
"""

import datetime
import pathlib
import random
import sys

import motpy.testing
import numpy as np
from stonesoup.models.measurement.linear import LinearGaussian
from stonesoup.models.transition.linear import CombinedLinearGaussianTransitionModel, ConstantVelocity
from stonesoup.simulator.simple import MultiTargetGroundTruthSimulator, SimpleDetectionSimulator
from stonesoup.types.array import CovarianceMatrix, StateVector
from stonesoup.types.detection import Clutter
from stonesoup.types.state import GaussianState

from sequences import Sequence

FRAMES, RATE = 600, 30


def swinging(objects, seed):
    """A sequence of motpy."""
    random.seed(seed)
    truth, found = [], []
    frames = motpy.testing.data_generator(FRAMES, objects, max_omega=0.02, miss_prob=0.1, disappear_prob=0.005, det_err_sigma=3.0)
    for frame, (real, detected) in enumerate(frames, 1):
        for number, actor in enumerate(real, 1):
            x1, y1, x2, y2 = actor.box
            truth.append((frame, number, x1, y1, x2 - x1, y2 - y1))
        for box in detected:
            if box.box is not None and box.box[0] is not None:
                x1, y1, x2, y2 = box.box
                found.append((frame, box.score, x1, y1, x2 - x1, y2 - y1))
    return Sequence(f"motpy-{objects}-{seed}", "motpy", RATE, FRAMES, (1000, 1000), truth, found)


def walking(seed):
    """A sequence of Stone Soup: people of 50x120 pixels in an image of 1280x720."""
    np.random.seed(seed)
    random.seed(seed)
    start = GaussianState(StateVector([[640], [0], [360], [0]]), CovarianceMatrix(np.diag([350**2, 80**2, 150**2, 30**2])),
                          datetime.datetime(2026, 1, 1))
    people = MultiTargetGroundTruthSimulator(
        transition_model=CombinedLinearGaussianTransitionModel((ConstantVelocity(400), ConstantVelocity(100)), seed=seed), initial_state=start,
        number_steps=FRAMES, timestep=datetime.timedelta(seconds=1 / RATE), birth_rate=0.05, death_probability=0.004, initial_number_targets=8, seed=seed)
    detector = SimpleDetectionSimulator(people, LinearGaussian(4, (0, 2), np.diag([9.0, 16.0]), seed=seed), np.array([[0, 1280], [0, 720]]),
                                        detection_probability=0.9, clutter_rate=1, seed=seed)
    chance = np.random.default_rng(seed)
    truth, found, numbers = [], [], {}
    for frame, (_, detections) in enumerate(detector, 1):
        for path in people.current[1]:
            number = numbers.setdefault(path.id, len(numbers) + 1)
            truth.append((frame, number, float(path.state_vector[0]) - 25, float(path.state_vector[2]) - 60, 50, 120))
        for detection in sorted(detections, key=lambda d: (float(d.state_vector[0]), float(d.state_vector[1]))):
            x, y = float(detection.state_vector[0]), float(detection.state_vector[1])
            width, height = 50 * np.exp(chance.normal(0, 0.04)), 120 * np.exp(chance.normal(0, 0.04))
            score = chance.uniform(0.1, 0.6) if isinstance(detection, Clutter) else chance.uniform(0.3, 1)
            found.append((frame, score, x - width / 2, y - height / 2, width, height))
    return Sequence(f"stonesoup-{seed}", "Stone Soup", RATE, FRAMES, (1280, 720), truth, found)


def main():
    directory = pathlib.Path(sys.argv[1])
    for sequence in (swinging(6, 1), swinging(12, 2), walking(1), walking(2)):
        sequence.held_out = True
        sequence.write(directory)
        for rate in (10, 5):
            sequence.every(RATE // rate, rate).write(directory)


if __name__ == "__main__":
    main()
