import { clock, colour, duration, el, milliseconds } from "./dom.js";
import * as paint from "./paint.js";
import * as plot from "./plot.js";
import { describe } from "./events.js";

// maxWait is how long an image waits for the detections of its frame, in milliseconds.
const maxWait = 300;

// Live shows every camera's image with its detections.
export class Live {
  constructor(root, app) {
    this.root = root;
    this.app = app;
    this.cards = new Map();
    this.dirty = new Set();
    this.onFrame = (event) => this.schedule(event.detail);
    this.onHappened = (event) => this.happened(event.detail);
    app.feed.addEventListener("frame", this.onFrame);
    app.feed.addEventListener("happened", this.onHappened);
    this.update(app.status);
    this.draw();
    this.plots = setInterval(() => this.draw(), 500);
  }

  close() {
    this.app.feed.removeEventListener("frame", this.onFrame);
    this.app.feed.removeEventListener("happened", this.onHappened);
    clearInterval(this.plots);
    this.closed = true;
  }

  // update applies a new status.
  update(status) {
    const names = status.cameras.map((c) => c.capture.name);
    if (names.join("\n") !== [...this.cards.keys()].join("\n") || this.cards.size === 0) this.build(names);
    const several = new Set(status.cameras.map((c) => c.hardware)).size > 1;
    for (const camera of status.cameras) this.cards.get(camera.capture.name).update(camera, several);
    this.app.feed.show(names);
  }

  build(names) {
    this.cards.clear();
    if (names.length === 0) {
      this.root.replaceChildren(el("p", { className: "none" }, "No camera configured."));
      return;
    }
    const single = names.length === 1;
    for (const name of names) this.cards.set(name, new Card(name, this.app, single));
    const grid = el("div", { className: single ? "" : "grid" }, ...[...this.cards.values()].map((card) => card.element));
    if (!single) {
      this.root.replaceChildren(el("div", { className: "live" }, grid));
      return;
    }
    const [card] = this.cards.values();
    this.recent = el("ul", { className: "events short" });
    this.root.replaceChildren(el("div", { className: "live single" }, grid, el("div", { className: "stack" },
      el("section", { className: "card" }, el("div", { className: "bar" }, el("h2", {}, "Latency"), el("span", { className: "grow" }), card.figures),
        el("div", { className: "pad" }, card.plot)),
      el("section", { className: "card" }, el("div", { className: "bar" }, el("h2", {}, "Objects in the image")), card.present),
      el("section", { className: "card" }, el("div", { className: "bar" }, el("h2", {}, "Latest events"), el("span", { className: "grow" }),
        el("a", { href: "#events" }, "all")), this.recent))));
    this.app.events().then((events) => events.slice(0, 8).reverse().forEach((event) => this.happened(event)));
  }

  happened(event) {
    if (!this.recent || event.type === "update") return;
    this.recent.prepend(el("li", {}, el("span", {}, describe(event)), el("time", { dateTime: event.time }, clock(event.time))));
    while (this.recent.children.length > 8) this.recent.lastChild.remove();
  }

  schedule(name) {
    if (this.dirty.size === 0) requestAnimationFrame(() => this.paint());
    this.dirty.add(name);
  }

  paint() {
    const names = [...this.dirty];
    this.dirty.clear();
    if (this.closed) return;
    for (const name of names) this.cards.get(name)?.paint();
  }

  draw() {
    for (const card of this.cards.values()) card.draw();
  }
}

class Card {
  constructor(name, app, single) {
    this.name = name;
    this.app = app;
    this.canvas = el("canvas", { width: 960, height: 540, role: "img", "aria-label": `Image of camera ${name}` });
    this.state = el("span", { className: "pill" }, "connecting");
    this.hardware = el("span", { className: "quiet" });
    this.figures = el("span", { className: "quiet number" });
    this.plot = el("canvas", { className: "plot", role: "img" });
    this.counters = el("div", { className: "chips" });
    this.present = el("div", { className: "chips", "aria-live": "off" });
    this.error = el("p", { className: "problem pad", hidden: true });
    this.naming = el("button", { onclick: () => app.showNames(!app.names) }, "Names");
    this.element = el("section", { className: "card", "aria-label": `Camera ${name}` },
      el("div", { className: "image" }, this.canvas),
      el("div", { className: "bar" }, el("h2", {}, name), this.state, this.hardware, el("span", { className: "grow" }), single ? null : this.figures,
        el("button", { onclick: () => this.canvas.requestFullscreen() }, "Enlarge"), this.naming,
        el("a", { href: `#zones/${encodeURIComponent(name)}` }, "Zones")),
      this.error, this.counters,
      ...(single ? [] : [el("div", { className: "pad" }, this.plot)]));
    this.rate = { inferred: 0, at: 0, fps: 0 };
  }

  // update applies a new status. The device of the network is shown where it differs between cameras.
  update(camera, several) {
    this.naming.setAttribute("aria-pressed", this.app.names);
    this.analytics = camera.analytics;
    this.capture = camera.capture;
    const now = performance.now();
    const inferred = camera.pipeline.inferred;
    if (this.rate.at > 0) {
      this.measured = true;
      this.rate.fps = Math.max(0, (1000 * (inferred - this.rate.inferred)) / (now - this.rate.at));
    }
    Object.assign(this.rate, { inferred, at: now });
    this.showState();
    this.hardware.hidden = !several;
    this.hardware.textContent = camera.hardware;
    this.error.textContent = camera.capture.reason ? trouble(camera.capture) : (camera.pipeline.error ?? "");
    this.error.hidden = this.error.textContent === "";
  }

  // showState shows the state of the camera, and the age of the image when it is stale.
  showState() {
    const connected = this.app.connected || this.app.feed.silence(this.name) === null;
    const stale = this.app.feed.stale(this.name);
    const state = connected ? (this.capture?.state ?? "connecting") : "no connection";
    const running = state === "running";
    let text = running && this.measured ? `${this.rate.fps.toFixed(1)} fps` : state;
    if (stale) {
      const age = `last image ${duration(this.app.feed.silence(this.name) / 1000)} ago`;
      text = running ? age : `${state}, ${age}`;
    }
    for (const part of [this.element, this.present]) part.classList.toggle("stale", stale);
    this.state.textContent = text;
    this.state.className = `pill ${state === "failed" || !connected ? "bad" : running && !stale ? "good" : ""}`;
  }

  // paint shows the newest image with the detections of the same frame, which may arrive later.
  paint() {
    const camera = this.app.feed.camera(this.name);
    const image = camera.image;
    let message = camera.latest;
    if (image) {
      message = camera.messages.get(image.seq);
      if (!message && image !== this.waiting) {
        this.waiting = image;
        this.waitingSince = performance.now();
      }
      if (!message && performance.now() - this.waitingSince < maxWait) return;
      message ??= camera.latest;
    }
    const width = image?.width ?? message?.width;
    const height = image?.height ?? message?.height;
    if (!width || !height) return;
    if (image && this.shown === image && this.shownMessage === message && this.shownNames === this.app.names) return;
    this.shown = image;
    this.shownNames = this.app.names;
    this.shownMessage = message;
    const scale = paint.fit(this.canvas, width, height);
    const context = this.canvas.getContext("2d");
    paint.image(context, image?.bitmap);
    if (message) paint.denseMap(context, message);
    if (this.analytics) paint.shapes(context, this.analytics, message);
    if (message) paint.trails(context, message, camera.ways, scale);
    const painted = message ? paint.boxes(context, message, scale, this.app.names) : [];
    this.app.drawn[this.name] = { seq: message?.seq, image: image?.seq, scale, boxes: painted };
    this.message = message;
  }

  draw() {
    this.showState();
    const camera = this.app.feed.camera(this.name);
    const { p50, p99 } = plot.latency(this.plot, camera.latencies);
    this.figures.textContent = camera.latencies.length === 0 ? "" : `${milliseconds(p50)}, p99 ${milliseconds(p99)}`;
    const message = camera.latest;
    if (!message) return;
    this.counters.replaceChildren(
      ...message.zones.map((z, i) => chip(paint.zoneColour(i), z.name, `${z.occupied}`, `${z.entered} entered`)),
      ...message.lines.map((l, i) => chip(paint.lineColour(i), l.name, `${l.in}`, "in", `${l.out}`, "out")));
    const counts = new Map();
    for (const d of message.detections) counts.set(d.class, { label: d.label, count: (counts.get(d.class)?.count ?? 0) + 1 });
    const chips = [...counts].sort(([a], [b]) => a - b).map(([number, c]) => chip(colour(number), c.label, `${c.count}`));
    this.present.replaceChildren(...(chips.length > 0 ? chips : [el("span", { className: "quiet" }, "nothing")]));
  }
}

// trouble describes why a camera delivers no images and when it is retried.
function trouble(capture) {
  const next = capture.next_try ? ` Tried ${capture.tries} times, next attempt at ${clock(capture.next_try)}.` : "";
  return capture.reason + next;
}

function chip(background, name, ...values) {
  const mark = el("i");
  mark.style.background = background;
  return el("span", { className: "chip" }, mark, name, ...values.map((v) => (/^\d/.test(v) && !v.includes(" ") ? el("b", {}, v) : el("span", { className: "quiet" }, v))));
}
