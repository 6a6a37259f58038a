import { getJSON } from "./api.js";
import { duration, el } from "./dom.js";
import * as paint from "./paint.js";

// pause is the interval for reloading the current day, in milliseconds.
const pause = 10000;

// History shows a camera's counts of one day and a heat map of object positions.
export class History {
  constructor(root, app, camera) {
    this.app = app;
    this.canvas = el("canvas", { width: 960, height: 540, role: "img" });
    this.camera = el("select", { "aria-label": "Camera", onchange: () => (location.hash = `#history/${encodeURIComponent(this.camera.value)}`) });
    this.day = el("select", { "aria-label": "Day", onchange: () => this.load() });
    this.table = el("tbody");
    this.hours = el("table", { className: "hours" });
    this.zone = el("p", { className: "quiet pad", hidden: true });
    this.problem = el("p", { className: "problem pad", role: "alert", hidden: true });
    this.hint = el("p", { className: "quiet pad" });
    root.replaceChildren(el("div", { className: "history" },
      el("section", { className: "card", "aria-label": "Heat map" },
        el("div", { className: "tools" }, el("label", {}, "Camera ", this.camera), el("label", {}, "Day ", this.day)),
        this.problem, el("div", { className: "image" }, this.canvas), this.hint),
      el("div", { className: "stack" }, el("section", { className: "card", "aria-label": "Counts per hour" }, el("div", { className: "bar" }, el("h2", {}, "Counts per hour")),
        el("div", { className: "pad scroll", tabIndex: 0, role: "region", "aria-label": "Table of counts per hour" }, this.hours), this.zone),
      el("section", { className: "card" }, el("div", { className: "bar" }, el("h2", {}, "Whole day")),
        el("div", { className: "pad" }, el("table", { className: "day" }, this.table))))));
    this.onFrame = () => this.found && !this.withImage && this.paint(this.found); // once there is an image
    app.feed.addEventListener("frame", this.onFrame);
    this.update(app.status);
    const names = app.status.cameras.map((c) => c.capture.name);
    this.camera.value = names.includes(camera) ? camera : (names[0] ?? "");
    app.feed.show(this.camera.value ? [this.camera.value] : []);
    this.load();
    this.timer = setInterval(() => !document.hidden && this.load(), pause);
  }

  close() {
    clearInterval(this.timer);
    this.app.feed.removeEventListener("frame", this.onFrame);
    this.closed = true;
  }

  update(status) {
    const names = status.cameras.map((c) => c.capture.name);
    if (names.join("\n") === [...this.camera.options].map((o) => o.value).join("\n")) return;
    const value = this.camera.value;
    this.camera.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
    if (names.includes(value)) this.camera.value = value;
  }

  async load() {
    if (!this.camera.value) return;
    try {
      const found = await getJSON(`/api/cameras/${encodeURIComponent(this.camera.value)}/history?day=${encodeURIComponent(this.day.value)}`);
      if (this.closed) return;
      this.problem.hidden = true;
      this.show(found);
    } catch (error) {
      this.problem.hidden = false;
      this.problem.textContent = error.message;
    }
  }

  show(found) {
    if (found.days.join() !== [...this.day.options].map((o) => o.value).join()) {
      this.day.replaceChildren(...found.days.map((day) => el("option", { value: day }, day)));
    }
    this.day.value = found.day;
    this.found = found;
    this.paint(found);
    const hours = Array.from({ length: 24 }, (_, hour) => found.hours[hour]);
    this.hours.replaceChildren(...perHour(hours));
    this.zone.textContent = foreignZone(this.app.status.now);
    this.zone.hidden = this.zone.textContent === "";
    this.table.replaceChildren(...rows(hours.filter(Boolean)));
    if (this.table.children.length === 0) this.table.append(el("tr", {}, el("td", { className: "quiet" }, "No counts. Enable tracking, or draw zones or lines.")));
  }

  // paint draws the heat map over the newest image: red is where objects stayed longest.
  paint(found) {
    const { image, latest } = this.app.feed.camera(this.camera.value);
    this.withImage = Boolean(image);
    const size = image ?? latest ?? { width: 16, height: 9 };
    paint.fit(this.canvas, size.width, size.height);
    const context = this.canvas.getContext("2d");
    paint.image(context, image?.bitmap);
    const [dx, dy] = [this.canvas.width / found.columns, this.canvas.height / found.rows];
    const most = Math.max(...found.heat);
    found.heat.forEach((seconds, i) => {
      if (seconds === 0) return;
      const share = Math.sqrt(seconds / most); // otherwise one parked object would hide all paths
      context.fillStyle = `hsl(${Math.round(240 * (1 - share))} 100% 50% / ${0.25 + 0.45 * share})`;
      context.fillRect((i % found.columns) * dx, Math.floor(i / found.columns) * dy, dx, dy);
    });
    const text = most > 0 ? `Where objects stood; red is ${most < 60 ? `${most.toFixed(1)} s` : duration(most)}, all objects together` : "No objects";
    this.hint.textContent = text;
    this.canvas.setAttribute("aria-label", text);
  }
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

// perHour returns the parts of a table with a row for each hour between the first and the last one with counts.
function perHour(hours) {
  const known = hours.flatMap((h, hour) => (h ? [hour] : []));
  if (known.length === 0) return [];
  const columns = [];
  const add = (kind, title, field) => {
    for (const name of [...new Set(hours.filter(Boolean).flatMap((h) => Object.keys(h[kind])))].sort()) {
      columns.push({ title: title(name), count: (h) => field(h[kind][name]) ?? 0 });
    }
  };
  add("objects", (label) => label, (count) => count);
  add("zones", (zone) => `into ${zone}`, (zone) => zone?.entered);
  add("lines", (line) => `${line} in`, (line) => line?.in);
  add("lines", (line) => `${line} out`, (line) => line?.out);
  const number = (count) => el("td", { className: count === 0 ? "amount quiet" : "amount" }, count.toLocaleString("en"));
  const times = Array.from({ length: known.at(-1) - known[0] + 1 }, (_, i) => known[0] + i);
  return [
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Hour"), ...columns.map((c) => el("th", { scope: "col", className: "amount" }, c.title)))),
    el("tbody", {}, ...times.map((hour) => el("tr", {}, el("th", { scope: "row" }, `${String(hour).padStart(2, "0")}:00`),
      ...columns.map((c) => number(hours[hour] ? c.count(hours[hour]) : 0))))),
  ];
}

// foreignZone describes the time zone of the device, whose time has an offset, if it is not the browser's.
function foreignZone(now) {
  const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)$/.exec(now) ?? ["", "+", "00", "00"];
  const offset = Number(`${sign}1`) * (60 * Number(hours) + Number(minutes));
  if (offset === -new Date(now).getTimezoneOffset()) return "";
  return `Hours and days are those of the device, UTC${sign}${hours}:${minutes}.`;
}

// rows returns the table of counts of the whole day.
function rows(hours) {
  const named = (kind) => [...new Set(hours.flatMap((h) => Object.keys(h[kind])))].sort();
  const of = (kind, name, field) => sum(hours.map((h) => h[kind][name]?.[field] ?? 0));
  const row = (...values) => el("tr", {}, ...values.map((v) => el("td", {}, v)));
  const lines = named("objects").map((label) => row(label, `${sum(hours.map((h) => h.objects[label] ?? 0))} objects`));
  for (const zone of named("zones")) {
    const visits = of("zones", zone, "visits");
    lines.push(row(zone, `${of("zones", zone, "entered")} entered` + (visits > 0 ? `, stayed ${(of("zones", zone, "dwell_s") / visits).toFixed(1)} s on average` : "")));
  }
  for (const line of named("lines")) lines.push(row(line, `${of("lines", line, "in")} in, ${of("lines", line, "out")} out`));
  const way = (field) => sum(hours.map((h) => h.way[field]));
  if (way("time_s") > 0) lines.push(row("Speed", `${(way("distance_m") / way("time_s")).toFixed(2)} m/s on average of ${way("objects")} objects`));
  return lines;
}
