"""Trains the demo detector on datasets written by `edge-infer dataset` and writes model.onnx. README.md beside this file has the commands."""

import argparse
import copy
import math
import os
import time

import numpy as np
import onnx
import torch

import metrics
import images
from loss import loss
from network import LABELS, STRIDES, Export, Network, anchors

VERSION = "1.0.0"


def schedule(progress, warmup=0.03):
    """Share of the peak learning rate: linear rise, then half a cosine down to 1 %."""
    if progress < warmup:
        return progress / warmup
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * (progress - warmup) / (1 - warmup)))


def train(network, data, labels, options, device, log):
    generator = torch.Generator(device=device).manual_seed(options.seed)
    points, strides = anchors(options.size, device)
    average = copy.deepcopy(network).eval()
    slow, fast = ([v for v in n.state_dict().values() if v.dtype.is_floating_point] for n in (average, network))
    decayed = [p for p in network.parameters() if p.ndim > 1]
    rest = [p for p in network.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.03}, {"params": rest, "weight_decay": 0.0}],
                                  lr=options.rate, fused=device.type == "cuda")
    steps_per_epoch = max(1, len(data) // options.batch)
    total, step, started = options.epochs * steps_per_epoch, 0, time.time()
    network.train()
    for epoch in range(options.epochs):
        order, sums = torch.randperm(len(data), device=device, generator=generator), torch.zeros(2, device=device)
        for i in range(steps_per_epoch):
            progress = step / total
            if options.minutes:
                progress = max(progress, (time.time() - started) / (60 * options.minutes))
            if progress >= 1:
                break
            for group in optimizer.param_groups:
                group["lr"] = options.rate * schedule(progress)
            pick = order[i * options.batch:(i + 1) * options.batch]
            # The last tenth sees images nearly as they are.
            strength = 1.0 if progress < 0.9 else 0.2
            x, y = images.augment(data[pick], labels[pick], strength, generator)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                sides, logits = network(x.to(memory_format=torch.channels_last))
            box, cls = loss(sides, logits, y, points, strides)
            optimizer.zero_grad(set_to_none=True)
            (7.5 * box + 0.5 * cls).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
            optimizer.step()
            step += 1
            with torch.no_grad():
                keep = min(0.9995, (1 + step) / (10 + step))
                torch._foreach_lerp_(slow, fast, 1 - keep)
            sums += torch.stack([box.detach(), cls.detach()])
        box, cls = (sums / max(1, i + 1)).tolist()
        log(f"epoch {epoch + 1} step {step} progress {progress:.3f} box {box:.4f} class {cls:.4f} seconds {time.time() - started:.0f}")
        if progress >= 1:
            break
    return average


@torch.no_grad()
def measure(network, directory, options, device):
    """AP table of the network on a dataset, through the exported form."""
    jobs = images.index(directory)
    model = Export(copy.deepcopy(network).cpu().float().fuse(), options.size).to(device).eval()
    found, truth = [], []
    data, _ = images.load([directory], options.size, device)
    for i in range(0, len(jobs), 64):
        output = model(data[i:i + 64].float() / 255).cpu().numpy()
        for k, (path, parts) in enumerate(jobs[i:i + 64]):
            width, height = image_size(path)
            scale = min(options.size / width, options.size / height)
            left = round((options.size - round(width * scale)) / 2 - 0.1)
            top = round((options.size - round(height * scale)) / 2 - 0.1)
            found.append(metrics.decode(output[k], scale, left, top, width, height))
            truth.append(np.array(parts, float).reshape(-1, 5))
    return metrics.average_precision(found, truth, len(LABELS))


def image_size(path):
    from PIL import Image

    with Image.open(path) as image:
        return image.size


def export(network, path, size):
    """Writes the folded network as ONNX with the metadata that Ultralytics exports carry."""
    model = Export(copy.deepcopy(network).cpu().float().fuse(), size).eval()
    # What FP16 can hold packs to two thirds of the size, and costs 0.0003 of mAP50-95.
    for parameter in model.parameters():
        parameter.data = parameter.data.half().float()
    torch.onnx.export(model, torch.zeros(1, 3, size, size), path, opset_version=13, input_names=["images"], output_names=["output0"],
                      dynamic_axes={"images": {0: "batch"}, "output0": {0: "batch"}}, dynamo=False)
    graph = onnx.load(path)
    graph.producer_name, graph.producer_version, graph.doc_string = "edge-infer", VERSION, ""
    for node in graph.graph.node:
        node.doc_string = ""
    # The exporter leaves the output's shape open, though only the batch varies.
    for dim, value in zip(graph.graph.output[0].type.tensor_type.shape.dim[1:], (4 + len(LABELS), sum(model.cells))):
        dim.dim_value = value
    for key, value in {
        "description": "edge-infer demo detector", "author": "The edge-infer authors", "license": "Apache-2.0", "version": VERSION,
        "task": "detect", "stride": str(max(STRIDES)), "batch": "1", "imgsz": str([size, size]), "names": str(dict(enumerate(LABELS))),
    }.items():
        entry = graph.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.checker.check_model(graph, full_check=True)
    onnx.save(graph, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", required=True, help="training datasets")
    parser.add_argument("--val", help="dataset to measure on at the end")
    parser.add_argument("--out", default="out", help="directory for model.onnx, checkpoint.pt and log.txt")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=0, help="stop after this time; the learning rate then follows the clock")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--size", type=int, default=416)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--start", help="checkpoint to go on from")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    device = torch.device(options.device)
    torch.manual_seed(options.seed)
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    with open(os.path.join(options.out, "log.txt"), "w") as file:

        def log(line):
            print(line, flush=True)
            print(line, file=file, flush=True)

        data, labels = images.load(options.data, options.size, device)
        network = Network()
        if options.start:
            network.load_state_dict(torch.load(options.start, map_location="cpu", weights_only=True))
        network = network.to(device).to(memory_format=torch.channels_last)
        log(f"images {len(data)} parameters {sum(p.numel() for p in network.parameters())} device {device}")
        average = train(network, data, labels, options, device, log)
        torch.save({k: v.cpu() for k, v in average.state_dict().items()}, os.path.join(options.out, "checkpoint.pt"))
        export(average, os.path.join(options.out, "model.onnx"), options.size)
        if options.val:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
            table = measure(average, options.val, options, device)
            for label, row in zip(LABELS, table):
                log(f"{label}: AP50 {row[0]:.4f} AP50-95 {row.mean():.4f}")
            log(f"mAP50 {np.nanmean(table[:, 0]):.4f} mAP50-95 {np.nanmean(table):.4f}")


if __name__ == "__main__":
    main()
