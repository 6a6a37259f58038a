"""The demo detector: an anchor-free one-stage network of RepVGG-style blocks, small enough for one CPU core.

In training every block has a 3x3, a 1x1 and, where shapes allow, an identity branch, each with its own BatchNorm; fuse() folds them into the
single 3x3 convolution that is exported. Idea of the blocks: Ding et al., RepVGG, CVPR 2021. Head without anchors and objectness: Tian et
al., FCOS, ICCV 2019; the output layout is that of YOLOv8.
"""

import torch
from torch import nn
from torch.nn import functional as F

LABELS = ["bolt", "nut", "washer", "gear", "bearing", "spring"]
STRIDES = (8, 16, 32)


class Conv(nn.Module):
    """Convolution, BatchNorm, ReLU."""

    def __init__(self, cin, cout, kernel=3, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(cout, eps=1e-3, momentum=0.03)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))

    def fuse(self):
        weight, bias = fold(self.conv.weight, self.norm)
        return plain(self.conv, weight, bias)


class Rep(nn.Module):
    """Parallel 3x3, 1x1 and identity branches; one 3x3 convolution after fuse()."""

    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(cout, eps=1e-3, momentum=0.03)
        self.point = nn.Conv2d(cin, cout, 1, stride, bias=False)
        self.point_norm = nn.BatchNorm2d(cout, eps=1e-3, momentum=0.03)
        self.skip = nn.BatchNorm2d(cin, eps=1e-3, momentum=0.03) if cin == cout and stride == 1 else None

    def forward(self, x):
        y = self.norm(self.conv(x)) + self.point_norm(self.point(x))
        return F.relu(y + self.skip(x) if self.skip is not None else y)

    def fuse(self):
        weight, bias = fold(self.conv.weight, self.norm)
        w, b = fold(F.pad(self.point.weight, [1, 1, 1, 1]), self.point_norm)
        weight, bias = weight + w, bias + b
        if self.skip is not None:
            one = torch.zeros_like(self.conv.weight)
            for i in range(one.shape[0]):
                one[i, i, 1, 1] = 1
            w, b = fold(one, self.skip)
            weight, bias = weight + w, bias + b
        return plain(self.conv, weight, bias)


def fold(weight, norm):
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    return weight * scale[:, None, None, None], norm.bias - norm.running_mean * scale


def plain(conv, weight, bias):
    fused = nn.Conv2d(conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding)
    fused.weight.data, fused.bias.data = weight.detach(), bias.detach()
    return nn.Sequential(fused, nn.ReLU())


class Pyramid(nn.Module):
    """SPPF of YOLOv5: three chained max poolings see a wide surrounding."""

    def __init__(self, channels):
        super().__init__()
        self.narrow = Conv(channels, channels // 2, 1)
        self.wide = Conv(channels * 2, channels, 1)

    def forward(self, x):
        x = self.narrow(x)
        a = F.max_pool2d(x, 5, 1, 2)
        b = F.max_pool2d(a, 5, 1, 2)
        return self.wide(torch.cat([x, a, b, F.max_pool2d(b, 5, 1, 2)], 1))


class Head(nn.Module):
    """Distances to the box's sides in strides, and class logits, of one level."""

    def __init__(self, channels, stride):
        super().__init__()
        self.box = Rep(channels, channels)
        self.cls = Rep(channels, channels)
        self.sides = nn.Conv2d(channels, 4, 1)
        self.logits = nn.Conv2d(channels, len(LABELS), 1)
        nn.init.constant_(self.sides.bias, 2.0)
        nn.init.constant_(self.logits.bias, -4.6)

    def forward(self, x):
        return self.sides(self.box(x)), self.logits(self.cls(x))


class Network(nn.Module):
    """Training form: forward() gives raw sides [B, N, 4] and logits [B, N, 6] over the three levels."""

    def __init__(self, widths=(16, 24, 32, 64, 80), neck=(32, 48, 48), depths=(1, 2, 1)):
        super().__init__()
        w = widths
        self.stem = nn.Sequential(Conv(3, w[0], 3, 2), Rep(w[0], w[1], 2))
        self.p3 = nn.Sequential(Rep(w[1], w[2], 2), *[Rep(w[2], w[2]) for _ in range(depths[0])])
        self.p4 = nn.Sequential(Rep(w[2], w[3], 2), *[Rep(w[3], w[3]) for _ in range(depths[1])])
        self.p5 = nn.Sequential(Rep(w[3], w[4], 2), *[Rep(w[4], w[4]) for _ in range(depths[2])], Pyramid(w[4]))
        n3, n4, n5 = neck
        self.lateral5 = Conv(w[4], n5, 1)
        self.lateral4 = Conv(w[3] + n5, n4, 1)
        self.top4 = Rep(n4, n4)
        self.lateral3 = Conv(w[2] + n4, n3, 1)
        self.top3 = Rep(n3, n3)
        self.down3 = Rep(n3, n4, 2)
        self.low4 = Conv(n4 + n4, n4, 1)
        self.down4 = Rep(n4, n5, 2)
        self.low5 = Conv(n5 + n5, n5, 1)
        self.out5 = Rep(n5, n5)
        self.heads = nn.ModuleList(Head(c, s) for c, s in zip(neck, STRIDES))

    def levels(self, x):
        c3 = self.p3(self.stem(x))
        c4 = self.p4(c3)
        t5 = self.lateral5(self.p5(c4))
        t4 = self.top4(self.lateral4(torch.cat([c4, F.interpolate(t5, scale_factor=2.0)], 1)))
        t3 = self.top3(self.lateral3(torch.cat([c3, F.interpolate(t4, scale_factor=2.0)], 1)))
        t4 = self.low4(torch.cat([t4, self.down3(t3)], 1))
        t5 = self.out5(self.low5(torch.cat([t5, self.down4(t4)], 1)))
        return [head(t) for head, t in zip(self.heads, (t3, t4, t5))]

    def forward(self, x):
        sides, logits = zip(*self.levels(x))
        flat = lambda maps: torch.cat([m.flatten(2) for m in maps], 2).transpose(1, 2)
        return flat(sides), flat(logits)

    def fuse(self):
        """Folds every block into a plain convolution, in place."""
        for module in list(self.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, (Conv, Rep)):
                    setattr(module, name, child.fuse())
        return self


def anchors(size, device="cpu"):
    """Cell centres in input pixels [N, 2] and strides [N, 1]."""
    points, strides = [], []
    for s in STRIDES:
        at = (torch.arange(size // s, device=device) + 0.5) * s
        y, x = torch.meshgrid(at, at, indexing="ij")
        points.append(torch.stack([x, y], -1).view(-1, 2))
        strides.append(torch.full((points[-1].shape[0], 1), float(s), device=device))
    return torch.cat(points), torch.cat(strides)


def boxes(sides, points, strides):
    """Corner boxes in input pixels from distances in strides."""
    return torch.cat([points - sides[..., :2] * strides, points + sides[..., 2:] * strides], -1)


class Export(nn.Module):
    """What is written to ONNX: images in, [B, 4 + classes, N] out: centre, size in input pixels and class scores.

    Cell centres and strides are constants and every shape but the batch is fixed, so that the graph has only the usual operators.
    """

    def __init__(self, network, size):
        super().__init__()
        self.network = network
        self.cells = [(size // s) ** 2 for s in STRIDES]
        points, strides = anchors(size)
        self.register_buffer("points", points.T[None].contiguous())
        self.register_buffer("strides", strides.T[None].contiguous())

    def forward(self, images):
        sides, logits = zip(*self.network.levels(images))
        cells = lambda maps, n: torch.cat([m.reshape(-1, n, count) for m, count in zip(maps, self.cells)], 2)
        near, far = cells(sides, 4).split(2, 1)
        centre = self.points + (far - near) * (self.strides * 0.5)
        extent = (far + near) * self.strides
        return torch.cat([centre, extent, cells(logits, len(LABELS)).sigmoid()], 1)
