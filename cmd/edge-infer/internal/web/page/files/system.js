import { duration, el, milliseconds } from "./dom.js";
import { Notifications } from "./notifications.js";
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
    this.notifications = new Notifications(app);
    this.sensors = section("Sensors", this.readings);
    this.messages = section("Messages", el("div", scroll("Table of messages"), el("table", {},
      head("Queue", ".Offered", ".Delivered", ".Superseded", ".Dropped", ".Waiting"), this.queues)));
    root.replaceChildren(el("div", { className: "stack" },
      el("div", { className: "grid" }, section("Engine", this.engine), el("div", { className: "stack" }, section("Daemon", this.machine), this.sensors)),
      section("Notifications", this.notifications.element),
      section("Cameras", el("div", scroll("Table of cameras"), el("table", {},
        head("Camera", "State", "Runs on", "Image", ".Captured", ".Inferred", ".Dropped (newer)", ".(interval)", ".(motion)", ".(deadline)",
          ".(error)", ".(damaged)", ".Reconnects"), this.cameras))),
      section("Latency by stage in milliseconds", el("div", scroll("Table of stages"), el("table", {},
        head("Stage", ".Median", ".p99"), this.stages))),
      section("Frame latency in milliseconds", this.plot),
      this.messages));
    app.feed.show([]);
    this.update(app.status);
  }

  close() {}

  update(status) {
    this.notifications.update(status);
    const e = status.engine;
    fill(this.engine, [
      ["Backend", [e.backend, e.version].filter(Boolean).join(" ")],
      ["Reason", el("span", {}, ...e.reason.split("; ").flatMap((part, i) => (i > 0 ? [el("br"), part] : [part])))],
      ["Device", e.device],
      ["Model", e.model],
      ["Task", e.task],
      ["Precision", e.precision],
      ["Accuracy", e.accuracy],
      ["Updates", updateState(status.update)],
      ["Input", inputShape(e)],
      ["Inference time", e.backend ? milliseconds(status.inference_ms) : ""],
      ["In progress", e.progress],
      ["Labels", (e.labels ?? []).slice(0, 100).join(", ")],
    ]);
    fill(this.machine, [
      ["Device", status.device],
      ["Version", status.version],
      ["Up for", duration((new Date(status.now) - new Date(status.started)) / 1000)],
      ["Go memory limit", status.runtime.memory_limit],
      ["Capture threads", status.runtime.capture],
      ["Broker", status.broker],
      ...(status.webhooks ?? []).map((w) => [`Webhook ${w.name}`, webhookState(w)]),
      ["Verification", verifyState(status.verify)],
      ["Upload", uploadState(status.upload)],
      ["Frames for labelling", samplesState(status.samples)],
      ["Metrics", el("a", { href: "/metrics" }, "/metrics")],
    ]);
    this.cameras.replaceChildren(...status.cameras.map((c) => row(
      c.capture.name, stateOf(c), [c.hardware, c.model].filter(Boolean).join(", "),
      c.capture.width ? `${c.capture.width} x ${c.capture.height} ${c.capture.format}` : "",
      c.capture.captured, c.pipeline.inferred, c.capture.dropped_newer, c.pipeline.dropped_interval, c.pipeline.dropped_motion,
      c.pipeline.dropped_deadline + c.pipeline.deadline_missed, c.pipeline.dropped_error, c.capture.damaged, c.capture.reconnects)));
    this.stages.replaceChildren(...(status.stages ?? []).map((s) => row(s.name.replace("_", " "), s.p50_ms, s.p99_ms)));
    const counts = (status.bounds_ms ?? []).concat([0]).map((_, i) => (status.latencies ?? []).reduce((sum, c) => sum + c[i], 0));
    plot.histogram(this.plot, status.bounds_ms ?? [], counts);
    const hooks = status.webhooks ?? [];
    this.queues.replaceChildren(...(status.queues ?? []).map((q) => row(q.name, q.offered, q.delivered, q.superseded, q.dropped, q.queued)),
      ...hooks.map((w) => row(`webhook ${w.name}`, w.delivered + w.dropped + w.queued, w.delivered, 0, w.dropped, w.queued)));
    this.messages.hidden = this.queues.childElementCount === 0;
    fill(this.readings, (status.readings ?? []).map((r) => [r.name, (units[r.unit] ?? String)(r.value)]));
    this.sensors.hidden = (status.readings ?? []).length === 0;
  }
}

// inputShape describes the images that an engine takes; empty if they are not known.
function inputShape(engine) {
  if (!engine.width) return "";
  const batch = engine.max_batch > 1 ? `, batch up to ${engine.max_batch}` : "";
  return `${engine.width} x ${engine.height}${batch}`;
}

// updateState describes the updates of the model; empty where there are none.
function updateState(update) {
  if (!update) return "";
  const last = update.last;
  const from = `from ${update.source || update.server}`;
  const parts = [update.version ? `version ${update.version} ${from}` : from];
  if (update.phase !== "current") parts.push(`${update.candidate ? `version ${update.candidate}: ` : ""}${update.phase} ${update.doing ?? ""}`.trim());
  for (const error of [update.error, update.server_error]) if (error) parts.push(error);
  if (last?.reason) parts.push(`version ${last.version} was refused: ${last.reason}`);
  return parts.join("; ");
}

function webhookState(hook) {
  if (hook.disabled) return "disabled: its receiver has answered 410 Gone";
  return hook.error || `delivers to ${hook.host}`;
}

// verifyState describes the service that verifies events; empty without one.
function verifyState(v) {
  if (!v) return "";
  const counts = `${v.asked} asked, ${v.confirmed} confirmed, ${v.relabelled} relabelled, ${v.dropped} dropped, ${v.unanswered} unanswered`;
  const times = v.p50_s ? `, p50 ${Math.round(1000 * v.p50_s)} ms, p99 ${Math.round(1000 * v.p99_s)} ms` : "";
  return `${v.error || v.host}: ${counts}${times}`;
}

// samplesState links to the frames that are kept for labelling; empty where none are kept.
function samplesState(samples) {
  if (!samples) return "";
  if (samples.error) return samples.error;
  const text = `${samples.frames.toLocaleString("en")} frames, ${Math.ceil(samples.bytes / 1e6).toLocaleString("en")} MB`;
  return samples.frames ? el("a", { href: "/api/samples.tar" }, text) : text;
}

// uploadState describes the copying of files to a server; empty without a server.
function uploadState(upload) {
  if (!upload) return "";
  if (upload.error) return upload.error;
  return `${upload.uploaded.toLocaleString("en")} files, ${upload.waiting.toLocaleString("en")} waiting`;
}

// scroll returns the properties of what may be wider than the page, for the keyboard as well.
const scroll = (name) => ({ className: "scroll", tabIndex: 0, role: "region", "aria-label": name });

function section(title, ...content) {
  return el("section", { className: "card" }, el("div", { className: "bar" }, el("h2", {}, title)), el("div", { className: "pad" }, ...content));
}

// stateOf describes a camera's state, its reason, its slowdown and a fault of its stream for clips.
function stateOf(camera) {
  const { state } = camera.capture;
  const reason = camera.capture.reason || camera.pipeline.error;
  const slowdown = camera.pipeline.slowdown > 1 ? `, slowed down ${camera.pipeline.slowdown} times` : "";
  const record = camera.capture.record;
  const recorded = record?.reason && record.state !== "running" ? `; stream for clips ${record.state}: ${record.reason}` : "";
  return (reason ? `${state}: ${reason}` : state) + slowdown + recorded;
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
