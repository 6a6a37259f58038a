"""The letterbox of 1080p to 640 in PyTorch, with separate kernels for resize, border, scale and transpose. Prints the median time per image in
microseconds, replayed as a CUDA graph over more images than fit the cache."""

import statistics

import torch
from torch.nn import functional as F

ROTATION, LAUNCHES, REPLAYS = 16, 96, 20
RESIZED = (360, 640)


def letterbox(image, out):
    resized = F.interpolate(image.permute(0, 3, 1, 2), size=RESIZED, mode="bilinear", align_corners=False)
    bordered = F.pad(resized, (0, 0, 140, 140), value=114)
    scaled = bordered * (1 / 255)
    out.copy_(scaled.flip(1))  # BGR to RGB, into planes


def main():
    # PyTorch cannot resize bytes on a GPU: the conversion to 16 bits is not counted.
    images = [torch.randint(0, 255, (1, 1080, 1920, 3), device="cuda").half() for _ in range(ROTATION)]
    outputs = [torch.empty((1, 3, 640, 640), device="cuda", dtype=torch.half) for _ in range(ROTATION)]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(3):
            letterbox(images[i], outputs[i])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(LAUNCHES):
            letterbox(images[i % ROTATION], outputs[i % ROTATION])
    times = []
    for i in range(REPLAYS + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end) * 1000 / LAUNCHES)
    print(f"{statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
