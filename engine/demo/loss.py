"""Task-aligned assignment (Feng et al., TOOD, ICCV 2021) with BCE on aligned scores and CIoU (Zheng et al., 2021) on the boxes."""

import math

import torch
from torch.nn import functional as F

from network import boxes


def iou(a, b):
    """IoU of corner boxes that broadcast against each other."""
    w = (torch.minimum(a[..., 2], b[..., 2]) - torch.maximum(a[..., 0], b[..., 0])).clamp(min=0)
    h = (torch.minimum(a[..., 3], b[..., 3]) - torch.maximum(a[..., 1], b[..., 1])).clamp(min=0)
    area = lambda t: (t[..., 2] - t[..., 0]).clamp(min=0) * (t[..., 3] - t[..., 1]).clamp(min=0)
    return w * h / (area(a) + area(b) - w * h + 1e-7)


def ciou(a, b):
    overlap = iou(a, b)
    cw = torch.maximum(a[..., 2], b[..., 2]) - torch.minimum(a[..., 0], b[..., 0])
    ch = torch.maximum(a[..., 3], b[..., 3]) - torch.minimum(a[..., 1], b[..., 1])
    distance = ((a[..., 0] + a[..., 2] - b[..., 0] - b[..., 2]) ** 2 + (a[..., 1] + a[..., 3] - b[..., 1] - b[..., 3]) ** 2) / 4
    aw, ah = (a[..., 2] - a[..., 0]).clamp(min=1e-3), (a[..., 3] - a[..., 1]).clamp(min=1e-3)
    bw, bh = (b[..., 2] - b[..., 0]).clamp(min=1e-3), (b[..., 3] - b[..., 1]).clamp(min=1e-3)
    v = 4 / math.pi**2 * (torch.atan(bw / bh) - torch.atan(aw / ah)) ** 2
    with torch.no_grad():
        alpha = v / (v - overlap + 1 + 1e-7)
    return overlap - distance / (cw**2 + ch**2 + 1e-7) - alpha * v


@torch.no_grad()
def assign(scores, found, labels, points, strides, top=10, alpha=0.5, beta=6.0):
    """Gives each part its `top` best aligned cells. Returns per cell: is it taken, by which part, and the aligned score."""
    cls, target = labels[..., 0], labels[..., 1:]
    valid = cls >= 0
    # Only cells whose centre lies in the part's box; a part smaller than a cell owns the cells around its middle.
    middle, half = (target[..., :2] + target[..., 2:]) / 2, (target[..., 2:] - target[..., :2]) / 2
    reach = half[:, :, None] .maximum(strides[None, None, :, :] * 0.75 * (strides[None, None] == 8))
    inside = ((points[None, None] - middle[:, :, None]).abs() < reach).all(-1) & valid[..., None]
    overlap = iou(target[:, :, None], found[:, None]) * inside
    picked = scores.gather(2, cls.clamp(min=0).long()[:, None].expand(-1, scores.shape[1], -1)).transpose(1, 2)
    metric = picked.pow(alpha) * overlap.pow(beta) * inside
    threshold = metric.topk(top, -1).values[..., -1:].clamp(min=1e-12)
    mine = metric >= threshold
    # A cell wanted by several parts goes to the one that it overlaps most.
    best = (overlap + mine.float()).argmax(1)
    taken = mine.any(1)
    only = F.one_hot(best, labels.shape[1]).transpose(1, 2).bool() & taken[:, None] & mine
    metric, overlap = metric * only, overlap * only
    aligned = metric / metric.amax(-1, keepdim=True).clamp(min=1e-9) * overlap.amax(-1, keepdim=True)
    return taken, best, aligned.amax(1)


def loss(sides, logits, labels, points, strides):
    """Box and class loss of a batch."""
    sides, logits = sides.float(), logits.float()
    found = boxes(sides, points, strides)
    taken, best, aligned = assign(logits.detach().sigmoid(), found.detach(), labels, points, strides)
    cls = labels[..., 0].gather(1, best).clamp(min=0).long()
    wanted = F.one_hot(cls, logits.shape[-1]) * (aligned * taken)[..., None]
    total = wanted.sum().clamp(min=1)
    class_loss = F.binary_cross_entropy_with_logits(logits, wanted, reduction="sum") / total
    target = labels[..., 1:].gather(1, best[..., None].expand(-1, -1, 4))[taken]
    box_loss = ((1 - ciou(found[taken], target)) * aligned[taken]).sum() / total
    return box_loss, class_loss
