import { duration, el, milliseconds } from "./dom.js";
import * as plot from "./plot.js";

const units = {
  celsius: (v) => `${v.toFixed(1)} °C`,
  watts: (v) => `${v.toFixed(2)} W`,
  ratio: (v) => `${Math.round(v * 100)} %`,
  now: () => "slowed down",
  hertz: (v) => `${Math.round(v / 1e6)} MHz`,
};

// System shows the engine, the cameras, latencies, sensors and messages.
export class System {
  constructor(root, app) {
    this.app = app;
    this.engine = el("dl");
    this.machine = el("dl");
    this.cameras = el("tbody");
    this.queues = el("tbody");
    this.stages = el("tbody");
    this.plot = el("canvas", { className: "plot tall", role: "img" });
    this.readings = el("dl");
    this.sensors = section("Sensors", this.readings);
    this.messages = section("Messages", el("div", { className: "scroll" }, el("table", {},
      head("Queue", ".Offered", ".Delivered", ".Superseded", ".Dropped", ".Waiting"), this.queues)));
    root.replaceChildren(el("div", { className: "stack" },
      el("div", { className: "grid" }, section("Engine", this.engine), el("div", { className: "stack" }, section("Daemon", this.machine), this.sensors)),
      section("Cameras", el("div", { className: "scroll" }, el("table", {},
        head("Camera", "State", "Runs on", "Image", ".Captured", ".Inferred", ".Dropped (newer)", ".(interval)", ".(motion)", ".(deadline)", ".(error)", ".(damaged)", ".Reconnects"), this.cameras))),
      section("Latency by stage in milliseconds", el("div", { className: "scroll" }, el("table", {},
        head("Stage", ".Median", ".p99"), this.stages))),
      section("Frame latency in milliseconds", this.plot),
      this.messages));
    app.feed.show([]);
    this.update(app.status);
  }

  close() {}

  update(status) {
    const e = status.engine;
    fill(this.engine, [
      ["Backend", [e.backend, e.version].filter(Boolean).join(" ")], ["Reason", el("span", {}, ...e.reason.split("; ").flatMap((part, i) => (i > 0 ? [el("br"), part] : [part])))], ["Device", e.device], ["Model", e.model], ["Task", e.task],
      ["Precision", e.precision], ["Accuracy", e.accuracy], ["Input", e.width ? `${e.width} x ${e.height}${e.max_batch > 1 ? `, batch up to ${e.max_batch}` : ""}` : ""],
      ["Inference time", e.backend ? milliseconds(status.inference_ms) : ""], ["In progress", e.progress],
      ["Labels", (e.labels ?? []).slice(0, 100).join(", ")],
    ]);
    fill(this.machine, [
      ["Device", status.device], ["Version", status.version], ["Up for", duration((new Date(status.now) - new Date(status.started)) / 1000)],
      ["Go memory limit", status.runtime.memory_limit], ["Capture threads", status.runtime.capture], ["Broker", status.broker], ["Metrics", el("a", { href: "/metrics" }, "/metrics")],
    ]);
    this.cameras.replaceChildren(...status.cameras.map((c) => row(
      c.capture.name, stateOf(c), [c.hardware, c.model].filter(Boolean).join(", "),
      c.capture.width ? `${c.capture.width} x ${c.capture.height} ${c.capture.format}` : "",
      c.capture.captured, c.pipeline.inferred, c.capture.dropped_newer, c.pipeline.dropped_interval, c.pipeline.dropped_motion, c.pipeline.dropped_deadline + c.pipeline.deadline_missed, c.pipeline.dropped_error, c.capture.damaged, c.capture.reconnects)));
    this.stages.replaceChildren(...(status.stages ?? []).map((s) => row(s.name.replace("_", " "), s.p50_ms, s.p99_ms)));
    const counts = (status.bounds_ms ?? []).concat([0]).map((_, i) => (status.latencies ?? []).reduce((sum, c) => sum + c[i], 0));
    plot.histogram(this.plot, status.bounds_ms ?? [], counts);
    this.queues.replaceChildren(...(status.queues ?? []).map((q) => row(q.name, q.offered, q.delivered, q.superseded, q.dropped, q.queued)));
    this.messages.hidden = (status.queues ?? []).length === 0;
    fill(this.readings, (status.readings ?? []).map((r) => [r.name, (units[r.unit] ?? String)(r.value)]));
    this.sensors.hidden = (status.readings ?? []).length === 0;
  }
}

function section(title, ...content) {
  return el("section", { className: "card" }, el("div", { className: "bar" }, el("h2", {}, title)), el("div", { className: "pad" }, ...content));
}

// stateOf describes a camera's state, its reason and its slowdown.
function stateOf(camera) {
  const { state } = camera.capture;
  const reason = camera.capture.reason || camera.pipeline.error;
  const slowdown = camera.pipeline.slowdown > 1 ? `, slowed down ${camera.pipeline.slowdown} times` : "";
  return (reason ? `${state}: ${reason}` : state) + slowdown;
}

// head creates a table head; a name that starts with a dot marks a numeric column.
function head(...names) {
  return el("thead", {}, el("tr", {}, ...names.map((name) => el("th", { scope: "col", className: name.startsWith(".") ? "amount" : "" }, name.replace(".", "")))));
}

function row(...values) {
  return el("tr", {}, ...values.map((v) => el("td", { className: typeof v === "number" ? "amount" : "" }, typeof v === "number" ? v.toLocaleString("en") : v)));
}

function fill(list, pairs) {
  list.replaceChildren(...pairs.filter(([, value]) => value !== "" && value !== undefined && value !== null).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}
