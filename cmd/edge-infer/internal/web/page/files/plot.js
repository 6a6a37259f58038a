import { milliseconds, quantile } from "./dom.js";

function prepare(canvas) {
  const scale = Math.min(devicePixelRatio, 2);
  const width = Math.round(canvas.clientWidth * scale);
  const height = Math.round(canvas.clientHeight * scale);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const style = getComputedStyle(document.documentElement);
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = '11px system-ui, "Liberation Sans", sans-serif';
  return {
    context, width: canvas.clientWidth, height: canvas.clientHeight,
    ink: style.getPropertyValue("--plot"), quiet: style.getPropertyValue("--quiet"), edge: style.getPropertyValue("--edge"),
  };
}

// ceiling returns a round number at or above the value.
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 0.1)));
  return [1, 2, 5, 10].map((m) => m * power).find((v) => v >= value);
}

// latency plots the latencies of the newest frames as dots, and their median as a line.
export function latency(canvas, values) {
  const recent = values.slice(-300);
  const sorted = [...recent].sort((a, b) => a - b);
  const [p50, p99] = [quantile(sorted, 0.5), quantile(sorted, 0.99)];
  const { context, width, height, ink, quiet, edge } = prepare(canvas);
  const top = ceiling(p99 * 1.15);
  const y = (v) => height - 4 - Math.min(v / top, 1.02) * (height - 20);
  context.strokeStyle = edge;
  context.fillStyle = quiet;
  context.lineWidth = 1;
  for (const share of [0, 0.5, 1]) {
    context.beginPath();
    context.moveTo(0, Math.round(y(top * share)) + 0.5);
    context.lineTo(width, Math.round(y(top * share)) + 0.5);
    context.stroke();
  }
  context.textBaseline = "bottom";
  context.fillText(`${top} ms`, 2, y(top) - 1);
  context.fillText(`${top / 2}`, 2, y(top / 2) - 1);
  if (recent.length > 0) {
    context.fillStyle = ink;
    context.globalAlpha = 0.75;
    recent.forEach((v, i) => {
      context.beginPath();
      context.arc(((i + 300 - recent.length + 0.5) / 300) * width, y(v), 1.6, 0, 7);
      context.fill();
    });
    context.globalAlpha = 1;
    context.strokeStyle = ink;
    context.setLineDash([4, 4]);
    context.beginPath();
    context.moveTo(0, y(p50));
    context.lineTo(width, y(p50));
    context.stroke();
    context.setLineDash([]);
  }
  canvas.setAttribute("aria-label", `Latency of the last ${recent.length} frames: median ${milliseconds(p50)}, p99 ${milliseconds(p99)}`);
  return { p50, p99 };
}

// histogram plots frames by latency; bounds are those of the buckets in milliseconds.
export function histogram(canvas, bounds, counts) {
  const { context, width, height, ink, quiet } = prepare(canvas);
  const most = Math.max(...counts, 1);
  const total = counts.reduce((a, b) => a + b, 0);
  const step = width / counts.length;
  counts.forEach((count, i) => {
    const tall = (count / most) * (height - 34);
    context.fillStyle = ink;
    context.fillRect(i * step + 2, height - 18 - tall, step - 4, Math.max(tall, count > 0 ? 2 : 0));
    context.fillStyle = quiet;
    context.textAlign = "center";
    context.textBaseline = "bottom";
    if (width / counts.length > 24 || i % 2 === 0) context.fillText(i < bounds.length ? `${bounds[i]}` : "more", i * step + step / 2, height - 3);
    if (count > 0 && width / counts.length > 24) {
      const share = (100 * count) / total;
      context.fillText(share < 1 ? "<1%" : `${Math.round(share)}%`, i * step + step / 2, height - 20 - tall);
    }
  });
  canvas.setAttribute("aria-label", "Frames by latency: " + counts.map((c, i) => (c > 0 ? `${c} up to ${bounds[i] ?? "more"} ms` : "")).filter(Boolean).join(", "));
}
