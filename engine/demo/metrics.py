"""Mean average precision as COCO defines it: IoU 0.50 to 0.95, 101 recall points, at most 100 boxes an image."""

import numpy as np

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)


def overlaps(a, b):
    w = np.minimum(a[:, None, 2], b[None, :, 2]) - np.maximum(a[:, None, 0], b[None, :, 0])
    h = np.minimum(a[:, None, 3], b[None, :, 3]) - np.maximum(a[:, None, 1], b[None, :, 1])
    both = np.clip(w, 0, None) * np.clip(h, 0, None)
    area = lambda t: (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])
    return both / np.maximum(area(a)[:, None] + area(b)[None] - both, 1e-12)


def suppress(corner, score, cls, limit=0.7, most=100):
    """Class-aware greedy NMS; returns kept indices, best first."""
    order = np.argsort(-score, kind="stable")[:1000]
    apart = corner[order] + cls[order, None] * 1e5
    hits = overlaps(apart, apart) > limit
    alive, kept = np.ones(len(order), bool), []
    for i in range(len(order)):
        if alive[i]:
            kept.append(order[i])
            if len(kept) == most:
                break
            alive &= ~hits[i]
    return np.array(kept, int)


def decode(output, scale, left, top, width, height, confidence=0.001):
    """Detections [n, 6] (x1, y1, x2, y2 in source pixels, score, class) of one image's output [4 + classes, N]."""
    score, cls = output[4:].max(0), output[4:].argmax(0)
    keep = score > confidence
    centre, extent = output[:2, keep].T, output[2:4, keep].T
    corner = np.concatenate([centre - extent / 2, centre + extent / 2], 1)
    corner = (corner - np.array([left, top, left, top])) / scale
    corner = np.clip(corner, 0, [width, height, width, height])
    score, cls = score[keep], cls[keep]
    kept = suppress(corner, score, cls)
    return np.concatenate([corner[kept], score[kept, None], cls[kept, None]], 1)


def average_precision(found, truth, classes):
    """AP [classes, thresholds] of lists, one entry per image: found [n, 6], truth [m, 5] (class, x1, y1, x2, y2)."""
    table = np.full((classes, len(THRESHOLDS)), np.nan)
    for c in range(classes):
        scores, hits, positives = [], [], 0
        for boxes, parts in zip(found, truth):
            d, t = boxes[boxes[:, 5] == c], parts[parts[:, 0] == c][:, 1:]
            d = d[np.argsort(-d[:, 4], kind="stable")]
            positives += len(t)
            scores.append(d[:, 4])
            hit = np.zeros((len(THRESHOLDS), len(d)), bool)
            if len(t) and len(d):
                iou = overlaps(d, t)
                for k, threshold in enumerate(THRESHOLDS):
                    free = np.ones(len(t), bool)
                    for i in range(len(d)):
                        j = np.where(free, iou[i], -1)
                        best = int(np.argmax(j))
                        if j[best] >= threshold:
                            free[best], hit[k, i] = False, True
            hits.append(hit)
        if not positives:
            continue
        order = np.argsort(-np.concatenate(scores), kind="stable")
        right = np.concatenate(hits, 1)[:, order]
        for k in range(len(THRESHOLDS)):
            true = np.cumsum(right[k])
            recall, precision = true / positives, true / np.arange(1, len(true) + 1)
            precision = np.maximum.accumulate(precision[::-1])[::-1]
            at = np.searchsorted(recall, RECALLS, side="left")
            table[c, k] = np.mean(np.where(at < len(true), precision[np.minimum(at, len(true) - 1)], 0)) if len(true) else 0
    return table
