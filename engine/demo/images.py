"""Datasets written by `edge-infer dataset`: reading, letterboxing and augmentation on the training device."""

import json
import os
from concurrent.futures import ProcessPoolExecutor

import cv2
import numpy as np
import torch
from torch.nn import functional as F

PAD = 114


def letterbox(image, size):
    """Scales a BGR image to fit, centred on a grey square; returns RGB, scale, left and top pad. This is how the daemon serves it."""
    height, width = image.shape[:2]
    scale = min(size / width, size / height)
    w, h = round(width * scale), round(height * scale)
    if (w, h) != (width, height):
        image = cv2.resize(image, (w, h), interpolation=cv2.INTER_LINEAR)
    left, top = round((size - w) / 2 - 0.1), round((size - h) / 2 - 0.1)
    square = np.full((size, size, 3), PAD, np.uint8)
    square[top:top + h, left:left + w] = image[:, :, ::-1]
    return square, scale, left, top


def index(directory):
    """The images of a dataset: [(path, [[class, x1, y1, x2, y2], ...])] in source pixels, in file order."""
    with open(os.path.join(directory, "annotations.json")) as f:
        coco = json.load(f)
    parts = {image["id"]: [] for image in coco["images"]}
    for a in coco["annotations"]:
        x, y, w, h = a["bbox"]
        parts[a["image_id"]].append([a["category_id"], x, y, x + w, y + h])
    return [(os.path.join(directory, "images", image["file_name"]), parts[image["id"]]) for image in coco["images"]]


def read(job):
    path, parts, size = job
    cv2.setNumThreads(1)
    image = cv2.imread(path)
    if image is None:
        raise SystemExit(f"{path}: not a readable image")
    square, scale, left, top = letterbox(image, size)
    labels = np.array(parts, np.float32).reshape(-1, 5)
    labels[:, 1:] = labels[:, 1:] * scale + np.array([left, top, left, top], np.float32)
    return square.transpose(2, 0, 1), labels


def load(directories, size, device):
    """All images [N, 3, S, S] uint8 and labels [N, M, 5] (class -1 is none), letterboxed, in the device's memory."""
    jobs = [(path, parts, size) for d in directories for path, parts in index(d)]
    most = max(1, max(len(parts) for _, parts, _ in jobs))
    images = torch.empty((len(jobs), 3, size, size), dtype=torch.uint8, device=device)
    labels = torch.zeros((len(jobs), most, 5))
    labels[..., 0] = -1
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for i, (image, parts) in enumerate(pool.map(read, jobs, chunksize=32)):
            images[i] = torch.from_numpy(np.ascontiguousarray(image)).to(device)
            labels[i, :len(parts)] = torch.from_numpy(parts)
    return images, labels.to(device)


def augment(images, labels, strength, generator):
    """One of the eight flips and quarter turns per image, a smaller copy placed anywhere, and changes of colour and noise.

    Nothing is cropped, so boxes stay exact. images uint8 [B, 3, S, S]; returns float RGB / 255 and new labels.
    """
    count, _, size, _ = images.shape
    device = images.device
    rand = lambda *shape: torch.rand(*shape, device=device, generator=generator)
    x = images.float()
    swap, flip_x, flip_y = rand(count) < 0.5, rand(count) < 0.5, rand(count) < 0.5
    x = torch.where(swap[:, None, None, None], x.transpose(2, 3), x)
    x = torch.where(flip_x[:, None, None, None], x.flip(3), x)
    x = torch.where(flip_y[:, None, None, None], x.flip(2), x)
    cls, x1, y1, x2, y2 = labels.unbind(-1)
    s = swap[:, None]
    x1, y1, x2, y2 = torch.where(s, y1, x1), torch.where(s, x1, y1), torch.where(s, y2, x2), torch.where(s, x2, y2)
    f = flip_x[:, None]
    x1, x2 = torch.where(f, size - x2, x1), torch.where(f, size - x1, x2)
    f = flip_y[:, None]
    y1, y2 = torch.where(f, size - y2, y1), torch.where(f, size - y1, y2)
    # A third of the images shrink: scale in [0.7, 1), corner anywhere inside.
    shrunk = rand(count) < 0.33 * strength
    scale = torch.where(shrunk, 0.7 + 0.3 * rand(count), torch.ones(count, device=device))
    dx, dy = (1 - scale) * size * rand(count), (1 - scale) * size * rand(count)
    at = torch.nonzero(shrunk).flatten()
    if len(at):
        k = scale[at]
        theta = torch.zeros((len(at), 2, 3), device=device)
        theta[:, 0, 0] = theta[:, 1, 1] = 1 / k
        theta[:, 0, 2] = (size - 2 * dx[at]) / (k * size) - 1
        theta[:, 1, 2] = (size - 2 * dy[at]) / (k * size) - 1
        grid = F.affine_grid(theta, (len(at), 3, size, size), align_corners=False)
        x[at] = F.grid_sample(x[at] - PAD, grid, mode="bilinear", padding_mode="zeros", align_corners=False) + PAD
    k, dx, dy = scale[:, None], dx[:, None], dy[:, None]
    labels = torch.stack([cls, x1 * k + dx, y1 * k + dy, x2 * k + dx, y2 * k + dy], -1)
    x = x / 255
    gain = 1 + strength * (0.5 * rand(count, 1, 1, 1) - 0.25) + strength * (0.16 * rand(count, 3, 1, 1) - 0.08)
    gamma = torch.exp(strength * 0.4 * (rand(count, 1, 1, 1) - 0.5))
    x = (x * gain).clamp_(1e-4, 1).pow_(gamma)
    grey = (rand(count, 1, 1, 1) < 0.05 * strength).float()
    x = x * (1 - grey) + x.mean(1, keepdim=True) * grey
    noise = strength * 0.03 * rand(count, 1, 1, 1) ** 2
    x = x + noise * torch.randn(x.shape, device=device, generator=generator)
    return x.clamp_(0, 1), labels
