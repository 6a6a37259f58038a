import { colour } from "./dom.js";

// fit makes the canvas as large as it is shown, keeping the image's proportions, and returns the scale from source pixels.
export function fit(canvas, width, height) {
  const shown = Math.max(canvas.clientWidth, 160);
  const wanted = Math.round(Math.min(shown * Math.min(devicePixelRatio, 2), 1920));
  const tall = Math.round((wanted * height) / width);
  if (canvas.width !== wanted || canvas.height !== tall) {
    canvas.width = wanted;
    canvas.height = tall;
  }
  return wanted / width;
}

// tags are the rectangles of the texts on a canvas since its image was painted, which later texts keep clear of.
const tags = new WeakMap();

// image paints the camera's image, or a dark background without one.
export function image(context, pixels) {
  const { width, height } = context.canvas;
  tags.set(context.canvas, []);
  if (pixels) {
    context.drawImage(pixels, 0, 0, width, height);
    return;
  }
  context.fillStyle = "#0b0f10";
  context.fillRect(0, 0, width, height);
}

// narrow is the width of an image on the page, in pixels, below which scores are hidden.
const narrow = 520;

const unit = (context) => Math.max(1, context.canvas.width / 640);

const letters = (context) => 12 * Math.min(2, Math.max(0.9, context.canvas.width / 800));

// nearby is the number of lines that a text may be away from its box.
const nearby = 4;

// place returns where a text of a box goes: above it, inside or below, at its left or right side, or some lines further, at the first place
// that is on the canvas and free; else above the box, moved onto the canvas.
function place(canvas, [x1, y1, x2, y2], width, height) {
  const taken = tags.get(canvas) ?? [];
  const onto = (v, most) => Math.max(0, Math.min(v, most));
  [x1, x2] = [onto(x1, canvas.width), onto(x2, canvas.width)];
  [y1, y2] = [onto(y1, canvas.height), onto(y2, canvas.height)];
  let first = null;
  for (let step = 0; step < nearby; step++) {
    for (const top of [y1 - (step + 1) * height, y1 + step * height, y2 + step * height, y2 - (step + 1) * height]) {
      if (top < 0 || top + height > canvas.height) continue;
      for (const side of [x1, x2 - width]) {
        const left = onto(side, canvas.width - width);
        const free = taken.every(([l, t, w, h]) => left + width <= l || l + w <= left || top + height <= t || t + h <= top);
        if (free) return [left, top];
        first ??= [left, top];
      }
    }
  }
  return first ?? [onto(x1, canvas.width - width), onto(y1 - height, canvas.height - height)];
}

// tag writes a text at a box or, without x2 and y2, at a point. A text that is wider than the canvas ends with an ellipsis.
function tag(context, text, x, y, background, x2 = x, y2 = y) {
  const size = letters(context);
  context.font = `600 ${size}px system-ui, "Liberation Sans", sans-serif`;
  const room = context.canvas.width - size * 0.7;
  if (context.measureText(text).width > room) {
    let kept = [...text];
    while (kept.length > 0 && context.measureText(`${kept.join("")}…`).width > room) kept.pop();
    text = `${kept.join("")}…`;
  }
  const width = context.measureText(text).width + size * 0.7;
  const height = size * 1.45;
  const [left, top] = place(context.canvas, [x, y, x2, y2], width, height);
  tags.get(context.canvas)?.push([left, top, width, height]);
  context.fillStyle = background;
  context.fillRect(left, top, width, height);
  context.fillStyle = "#06211e";
  context.textBaseline = "middle";
  context.fillText(text, left + size * 0.35, top + height / 2);
}

// trace adds a path of corners in source pixels.
function trace(context, corners, scale) {
  corners.forEach(([x, y], i) => (i === 0 ? context.moveTo(x * scale, y * scale) : context.lineTo(x * scale, y * scale)));
  context.closePath();
}

// outline paints the border of an oriented box.
function outline(context, corners, scale) {
  context.beginPath();
  trace(context, corners, scale);
  context.stroke();
}

// area tints the mask of an object. A polygon is a flat list of x and y.
function area(context, polygons, scale) {
  context.beginPath();
  for (const polygon of polygons) {
    for (let i = 0; i < polygon.length; i += 2) {
      const [x, y] = [polygon[i] * scale, polygon[i + 1] * scale];
      if (i === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    }
    context.closePath();
  }
  const alpha = context.globalAlpha;
  context.globalAlpha = 0.4 * alpha;
  context.fillStyle = context.strokeStyle;
  context.fill();
  context.globalAlpha = alpha;
}

// limbs are the connections of the 17 COCO keypoints.
const limbs = [
  [0, 1], [0, 2], [1, 3], [2, 4], [1, 2], [3, 5], [4, 6], [5, 6], [5, 7], [7, 9], [6, 8], [8, 10], [5, 11], [6, 12], [11, 12], [11, 13],
  [13, 15], [12, 14], [14, 16],
];
const visible = 0.5; // the lowest score of a point that is painted

// person is the list of COCO keypoint names.
const person = "nose left_eye right_eye left_ear right_ear left_shoulder right_shoulder left_elbow right_elbow left_wrist right_wrist " +
  "left_hip right_hip left_knee right_knee left_ankle right_ankle";
const roomy = 8; // height of an object, in lines of text, from which its keypoints are named

// points paints the keypoints of an object, and the limbs if they are those of COCO.
function points(context, keypoints, scale, line, names) {
  if (names?.join(" ") === person) {
    context.beginPath();
    for (const [a, b] of limbs.map((limb) => limb.map((i) => keypoints[i]))) {
      if (a[2] < visible || b[2] < visible) continue;
      context.moveTo(a[0] * scale, a[1] * scale);
      context.lineTo(b[0] * scale, b[1] * scale);
    }
    context.stroke();
  }
  context.fillStyle = context.strokeStyle;
  for (const [x, y, score] of keypoints) {
    if (score < visible) continue;
    context.beginPath();
    context.arc(x * scale, y * scale, 1.5 * line, 0, 2 * Math.PI);
    context.fill();
  }
}

// pointNames paints the names of keypoints, except for COCO persons and small objects.
function pointNames(context, d, scale, line, names) {
  if (!names || names.join(" ") === person || (d.box[3] - d.box[1]) * scale < roomy * letters(context)) return;
  d.keypoints.forEach(([x, y, score], i) => {
    if (score >= visible) tag(context, names[i], x * scale + 2 * line, y * scale + letters(context) / 2, colour(d.class));
  });
}

// boxes paints detections and the predicted boxes of lost tracks, with or without their names and the IDs of their tracks, and returns the
// painted boxes in canvas pixels.
export function boxes(context, message, scale, { names, ids }) {
  const painted = [];
  const texts = []; // they are written over all boxes
  const line = Math.round(2 * unit(context));
  const paint = (d, lost, speed = -1) => {
    const [x1, y1, x2, y2] = d.box.map((v) => v * scale);
    context.lineWidth = line;
    context.strokeStyle = colour(d.class);
    context.setLineDash(lost ? [line * 3, line * 2] : []);
    context.globalAlpha = lost ? 0.7 : 1;
    if (d.mask) area(context, d.mask.polygons, scale);
    if (d.corners) outline(context, d.corners, scale);
    else context.strokeRect(x1, y1, x2 - x1, y2 - y1);
    context.setLineDash([]);
    const called = message.keypoint_names?.[d.label];
    if (d.keypoints) points(context, d.keypoints, scale, line, called);
    const score = context.canvas.clientWidth < narrow ? "" : `${Math.round(d.score * 100)}%`;
    const pace = speed >= 0 ? `${speed.toFixed(1)} m/s` : "";
    const text = [names ? d.label : "", ids && d.track ? d.track : "", names ? score : "", names ? pace : ""].filter(Boolean).join(" ");
    if (d.keypoints && names) texts.push(() => pointNames(context, d, scale, line, called));
    const edge = line / 2;
    if (!lost && text) texts.push(() => tag(context, text, x1 - edge, y1 - edge, colour(d.class), x2 + edge, y2 + edge));
    context.globalAlpha = 1;
    painted.push({ label: d.label, class: d.class, track: d.track ?? 0, lost, source: d.box, canvas: [x1, y1, x2, y2], colour: colour(d.class) });
  };
  for (const d of message.lost) paint(d, true);
  message.detections.forEach((d, i) => paint(d, false, message.speeds?.[i]));
  texts.forEach((write) => write());
  return painted;
}

// ramp returns the colour of a depth between 0 (least) and 1 (largest), as in saved images.
const ramp = (share) => `oklch(${0.25 + 0.65 * share} 0.12 ${300 - 200 * share})`;

// denseMap tints a segmentation or depth map and lists its classes, largest share first, or its depths.
export function denseMap(context, message) {
  if (!message.map) return;
  const { width, height } = context.canvas;
  const grid = message.map;
  const cells = Uint8Array.from(atob(grid.cells), (c) => c.charCodeAt(0));
  const none = message.depth ? 0 : 255;
  context.globalAlpha = 0.5;
  for (let y = 0; y < grid.height; y++) {
    const [top, bottom] = [y, y + 1].map((v) => Math.round((v * height) / grid.height));
    for (let x = 0, end; x < grid.width; x = end) {
      const value = cells[y * grid.width + x];
      for (end = x + 1; end < grid.width && cells[y * grid.width + end] === value; end++);
      if (value === none) continue;
      const [left, right] = [x, end].map((v) => Math.round((v * width) / grid.width));
      context.fillStyle = message.depth ? ramp((value - 1) / 254) : colour(value);
      context.fillRect(left, top, right - left, bottom - top);
    }
  }
  context.globalAlpha = 1;
  const lines = message.depth ? depths(message.depth) : message.semantic.classes.slice(0, 8).map(
    (c) => [`${c.label} ${(100 * c.share).toFixed(1)}%`, colour(c.class)]);
  lines.forEach(([text, ground], i) => tag(context, text, 0, (i + 1) * 1.5 * letters(context), ground));
}

// depths lists the least, median and largest depth with their colours.
function depths({ min, median, max, unit: measure }) {
  if (median === null) return [];
  const share = (v) => (max > min ? (v - min) / (max - min) : 0);
  return [min, median, max].map((v) => [`${v} ${measure}`, ramp(Math.max(0.45, share(v)))]);
}

// reading returns the main class or the median depth of a zone.
function reading(message, name) {
  const classes = message?.semantic?.zones?.[name]?.classes;
  if (classes) return classes.length > 0 ? `${classes[0].label} ${(100 * classes[0].share).toFixed(1)}%` : "nothing";
  const depth = message?.depth?.zones?.[name];
  return depth && depth.median !== null ? `${depth.median} ${message.depth.unit}` : undefined;
}

// trails paints the path of each tracked object up to the frame of the message.
export function trails(context, message, ways, scale) {
  context.lineWidth = Math.round(1.5 * unit(context));
  for (const d of [...message.detections, ...message.lost]) {
    const way = ways.get(d.track)?.filter((p) => p.seq <= message.seq) ?? [];
    for (let i = 1; i < way.length; i++) {
      context.strokeStyle = colour(d.class);
      context.globalAlpha = (0.8 * i) / way.length;
      context.beginPath();
      context.moveTo(way[i - 1].x * scale, way[i - 1].y * scale);
      context.lineTo(way[i].x * scale, way[i].y * scale);
      context.stroke();
    }
  }
  context.globalAlpha = 1;
}

// shapes paints the zones and lines of a configuration with their counts; the editor, which has no message, sees masks and calibration too.
export function shapes(context, analytics, message, selected = null) {
  const { width, height } = context.canvas;
  const sx = width / (analytics.width || 1);
  const sy = height / (analytics.height || 1);
  const line = 2 * unit(context);
  (analytics.zones ?? []).forEach((zone, i) => {
    const points = zone.points.map((p) => [p.x * sx, p.y * sy]);
    if (points.length === 0) return;
    context.beginPath();
    points.forEach(([x, y], k) => (k === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    context.closePath();
    context.fillStyle = zoneColour(i);
    context.globalAlpha = selected?.kind === "zones" && selected.index === i ? 0.28 : 0.14;
    context.fill();
    context.globalAlpha = 0.9;
    context.strokeStyle = zoneColour(i);
    context.lineWidth = line;
    context.stroke();
    context.globalAlpha = 1;
    const lowest = points.reduce((a, b) => (b[1] > a[1] || (b[1] === a[1] && b[0] < a[0]) ? b : a));
    const count = message?.zones?.find((z) => z.name === zone.name);
    const said = count?.occupied ?? reading(message, zone.name);
    tag(context, said === undefined ? zone.name || "zone" : `${zone.name}: ${said}`, lowest[0], lowest[1], zoneColour(i));
  });
  if (message === null) {
    (analytics.filter?.masks ?? []).forEach((mask, i) => {
      const chosen = selected?.kind === "masks" && selected.index === i;
      cover(context, mask.map((p) => [p.x * sx, p.y * sy]), line, chosen);
    });
  }
  if (message === null && analytics.ground) plane(context, analytics.ground.points.map((p) => [p.x * sx, p.y * sy]), selected?.kind === "ground");
  (analytics.lines ?? []).forEach((l, i) => {
    const [x1, y1, x2, y2] = [l.from.x * sx, l.from.y * sy, l.to.x * sx, l.to.y * sy];
    context.strokeStyle = lineColour(i);
    context.lineWidth = selected?.kind === "lines" && selected.index === i ? line * 2 : line * 1.3;
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
    arrow(context, (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1, lineColour(i));
    const count = message?.lines?.find((c) => c.name === l.name);
    const [tx, ty] = y1 < y2 ? [x1, y1] : [x2, y2];
    tag(context, count ? `${l.name}: in ${count.in}, out ${count.out}` : l.name || "line", tx + line * 2, ty + 24 * unit(context), lineColour(i));
  });
}

// cover darkens a mask.
function cover(context, corners, line, chosen) {
  context.beginPath();
  trace(context, corners, 1);
  context.fillStyle = "#000000";
  context.globalAlpha = chosen ? 0.65 : 0.5;
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = maskColour;
  context.lineWidth = line;
  context.stroke();
}

// plane paints the ground calibration: its corners and the first side, from which headings are measured.
function plane(context, points, selected) {
  const line = 2 * unit(context);
  context.strokeStyle = context.fillStyle = groundColour;
  context.lineWidth = selected ? line * 1.6 : line;
  context.setLineDash([line * 4, line * 2]);
  context.beginPath();
  points.forEach(([x, y], i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
  if (points.length > 2) context.closePath();
  context.stroke();
  context.setLineDash([]);
  points.forEach(([x, y], i) => tag(context, String.fromCharCode(65 + i), x, y, groundColour));
}

export const maskColour = "#94a3b8";
export const groundColour = "#e2e8f0";

// Zones and lines have colours that no class has.
const zoneColours = ["#38bdf8", "#93c5fd", "#67e8f9"];
const lineColours = ["#facc15", "#fde68a"];

export const zoneColour = (i) => zoneColours[i % zoneColours.length];
export const lineColour = (i) => lineColours[i % lineColours.length];

// arrow shows the "in" direction: to the right, seen from the line's first point to its second.
function arrow(context, x, y, dx, dy, fill) {
  const length = Math.hypot(dx, dy);
  if (length === 0) return;
  const [ux, uy] = [-dy / length, dx / length];
  const size = 9 * unit(context);
  context.fillStyle = fill;
  context.beginPath();
  context.moveTo(x + ux * size * 1.8, y + uy * size * 1.8);
  context.lineTo(x + (dx / length) * size * 0.7, y + (dy / length) * size * 0.7);
  context.lineTo(x - (dx / length) * size * 0.7, y - (dy / length) * size * 0.7);
  context.closePath();
  context.fill();
}
