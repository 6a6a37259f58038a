import { clock, colour, counted, duration, el, milliseconds } from "./dom.js";
import * as paint from "./paint.js";
import * as plot from "./plot.js";
import { describe, track } from "./events.js";

// maxWait is how long an image waits for the detections of its frame, in milliseconds.
const maxWait = 300;

// layouts are the numbers of cameras that are shown at once, by name.
const layouts = { "1": 1, "2 × 2": 4, "3 × 3": 9 };

// overlays are what can be painted over an image, by the name of the switch.
const overlays = { boxes: "Boxes", names: "Names", ids: "IDs", trails: "Trails", zones: "Zones" };

// Live shows cameras with their detections: one with what happens there, or a grid.
export class Live {
  constructor(root, app, camera) {
    this.app = app;
    this.cards = new Map();
    this.dirty = new Set();
    this.first = 0; // index of the first camera that is shown
    this.layout = camera ? "1" : app.setting("layout", null);
    this.wanted = camera;
    this.onFrame = (event) => this.schedule(event.detail);
    this.onHappened = (event) => this.happened(event.detail);
    app.feed.addEventListener("frame", this.onFrame);
    app.feed.addEventListener("happened", this.onHappened);
    this.buildTools();
    this.wall = el("div", { className: "wall" });
    root.replaceChildren(this.tools, this.wall);
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

  buildTools() {
    this.now = el("p", { className: "now" });
    this.choices = Object.keys(layouts).map((name) => el("button", { onclick: () => this.choose(name), "aria-label": `Layout ${name}` }, name));
    this.page = el("span", { className: "quiet number" });
    this.turn = [-1, 1].map((step) => el("button", { onclick: () => this.go(step), "aria-label": step < 0 ? "Previous cameras" : "Next cameras" }, step < 0 ? "‹" : "›"));
    this.several = el("div", { className: "row" }, el("div", { className: "segments", role: "group", "aria-label": "Layout" }, ...this.choices),
      this.turn[0], this.page, this.turn[1]);
    this.switches = Object.entries(overlays).map(([name, text]) => el("button", { onclick: () => this.toggle(name) }, text));
    this.tools = el("div", { className: "toolbar" }, this.now, this.several,
      el("div", { className: "segments", role: "group", "aria-label": "Painted over the image" }, ...this.switches),
      el("button", { onclick: () => this.wall.requestFullscreen() }, "Full screen"));
  }

  // choose changes the number of cameras that are shown, and remembers it in the browser.
  choose(layout) {
    this.layout = layout;
    this.app.remember("layout", layout);
    this.first -= this.first % layouts[layout];
    this.update(this.app.status);
  }

  go(step) {
    this.first += step * layouts[this.layout];
    this.update(this.app.status);
  }

  // toggle paints something or leaves it out, and remembers it in the browser.
  toggle(name) {
    this.app.overlay[name] = !this.app.overlay[name];
    this.app.remember("overlay", this.app.overlay);
    this.showTools();
    for (const card of this.cards.values()) card.paint();
  }

  // update applies a new status.
  update(status) {
    const all = status.cameras.map((c) => c.capture.name);
    if (this.wanted) this.first = Math.max(0, all.indexOf(this.wanted));
    this.wanted = null;
    if (!(this.layout in layouts)) this.layout = all.length > 4 ? "3 × 3" : all.length > 1 ? "2 × 2" : "1";
    const count = layouts[this.layout];
    if (this.first >= all.length) this.first = 0;
    const names = all.slice(this.first, this.first + count);
    const single = count === 1 || all.length === 1;
    const built = JSON.stringify([names, this.layout, single]);
    if (built !== this.built) this.build(names, single);
    this.built = built;
    this.total = all.length;
    this.showTools();
    const several = new Set(status.cameras.map((c) => c.hardware)).size > 1;
    for (const camera of status.cameras) this.cards.get(camera.capture.name)?.update(camera, status, several);
    this.app.feed.show(names, true);
  }

  showTools() {
    const count = layouts[this.layout];
    this.several.hidden = this.total < 2;
    this.choices.forEach((button, i) => button.setAttribute("aria-pressed", Object.keys(layouts)[i] === this.layout));
    for (const part of [this.page, ...this.turn]) part.hidden = this.total <= count;
    this.page.textContent = `${this.first + 1}${count > 1 ? `–${Math.min(this.first + count, this.total)}` : ""} of ${this.total}`;
    this.turn[0].disabled = this.first === 0;
    this.turn[1].disabled = this.first + count >= this.total;
    this.switches.forEach((button, i) => button.setAttribute("aria-pressed", this.app.overlay[Object.keys(overlays)[i]]));
  }

  build(names, single) {
    this.cards.clear();
    this.recent = null;
    if (names.length === 0) {
      this.wall.replaceChildren(el("p", { className: "none" }, "No camera configured."));
      return;
    }
    for (const name of names) this.cards.set(name, new Card(name, this.app, single));
    const grid = el("div", { className: `grid cells${layouts[this.layout]}` }, ...[...this.cards.values()].map((card) => card.element));
    if (!single) {
      this.wall.replaceChildren(grid);
      return;
    }
    const [card] = this.cards.values();
    this.recent = el("ul", { className: "events short" });
    this.wall.replaceChildren(el("div", { className: "live single" }, card.element, el("div", { className: "stack" },
      el("section", { className: "card" }, el("div", { className: "bar" }, el("h2", {}, "There now")), card.present),
      el("section", { className: "card" }, el("div", { className: "bar" }, el("h2", {}, "Latest events"), el("span", { className: "grow" }),
        el("a", { href: `#events/${encodeURIComponent(card.name)}`, "aria-label": "All events" }, "all")), this.recent),
      card.details)));
    if (!this.app.status.stored) return;
    const { recent } = this;
    this.app.events({ limit: 8, camera: card.name }).then(({ events }) => {
      if (recent !== this.recent) return;
      events.reverse().forEach((event) => this.happened({ ...event, type: "new", track: track(event) }));
    }, () => {}); // the page of events says why
  }

  happened(event) {
    if (!this.recent || event.type === "update" || !this.cards.has(event.camera)) return;
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
    const all = new Map();
    let heard = false;
    for (const { capture } of this.app.status.cameras) {
      const { latest } = this.app.feed.camera(capture.name);
      if (!latest || this.app.feed.stale(capture.name)) continue;
      heard = true;
      for (const d of latest.detections) all.set(d.label, (all.get(d.label) ?? 0) + 1);
    }
    const text = all.size > 0 ? [...all].map(([label, count]) => counted(count, label)).join(", ") : heard ? "nothing" : "no images";
    this.now.replaceChildren(el("span", { className: "quiet" }, "Now "), text);
    for (const card of this.cards.values()) card.draw();
  }
}

class Card {
  constructor(name, app, single) {
    this.name = name;
    this.app = app;
    this.canvas = el("canvas", { width: 960, height: 540, role: "img", "aria-label": `Image of camera ${name}` });
    this.cover = el("p", { className: "cover" }, "no image yet");
    this.state = el("span", { className: "pill" }, "connecting");
    this.hardware = el("span", { className: "quiet" });
    this.figures = el("span", { className: "quiet number" });
    this.plot = el("canvas", { className: "plot", role: "img" });
    this.stages = el("tbody");
    this.kind = el("dl");
    this.details = el("details", { className: single ? "card" : "inside", ontoggle: () => this.draw() }, el("summary", {}, "Details"),
      el("div", { className: "pad stack" }, this.kind, el("div", {}, el("p", { className: "quiet" }, "Latency ", this.figures), this.plot),
        el("table", {}, el("thead", {}, el("tr", {}, ...["Stage", "Median", "p99"].map((text, i) => el("th", { scope: "col", className: i > 0 ? "amount" : "" }, text)))),
          this.stages)));
    this.counters = el("div", { className: "chips counters" });
    this.present = el("div", { className: "present chips", "aria-live": "off" });
    this.error = el("p", { className: "problem pad", hidden: true });
    const title = single ? name : el("a", { href: `#live/${encodeURIComponent(name)}` }, name);
    this.element = el("section", { className: "card", "aria-label": `Camera ${name}` },
      el("div", { className: "image" }, this.canvas, this.cover),
      el("div", { className: "bar" }, el("h2", {}, title), this.state, this.hardware, el("span", { className: "grow" }),
        el("button", { onclick: () => this.canvas.requestFullscreen() }, "Enlarge"),
        el("a", { href: `#zones/${encodeURIComponent(name)}` }, "Zones")),
      this.error, ...(single ? [] : [this.present]), this.counters, ...(single ? [] : [this.details]));
    this.rate = { inferred: 0, at: 0, fps: 0 };
  }

  // update applies a new status. The device of the network is shown where it differs between cameras.
  update(camera, status, several) {
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
    if (!this.details.open) return;
    this.stages.replaceChildren(...(status.stages ?? []).map((s) => el("tr", {}, el("td", {}, s.name.replace("_", " ")),
      ...[s.p50_ms, s.p99_ms].map((v) => el("td", { className: "amount" }, milliseconds(v))))));
    const size = this.capture.width ? `${this.capture.width} x ${this.capture.height}` : "";
    const shown = this.app.feed.camera(this.name).player ? "the camera's video" : "images";
    const facts = { Image: size, Shown: shown, "Frames per second": this.measured ? this.rate.fps.toFixed(1) : "", Device: camera.hardware };
    this.kind.replaceChildren(...Object.entries(facts).filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
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
    this.cover.textContent = running ? "no image yet" : `no image: ${state}`;
  }

  // paint shows the newest image with the detections of the same frame, which may arrive later.
  paint() {
    const camera = this.app.feed.camera(this.name);
    if (camera.player?.captured) {
      this.paintVideo(camera);
      return;
    }
    const { image } = camera;
    let message = camera.latest;
    if (image) {
      message = camera.messages.get(image.seq);
      if (!message && image !== this.waiting) {
        this.waiting = image;
        this.waitingSince = performance.now();
      }
      if (!message && performance.now() - this.waitingSince < maxWait) return;
      message ??= camera.latest;
    } else if (this.painted) return; // the last one stays until there is another
    const width = image?.width ?? message?.width;
    const height = image?.height ?? message?.height;
    if (width && height) this.show(image?.bitmap, width, height, message, camera, { image: image?.seq });
  }

  // paintVideo shows the image of the video that is on the screen, with its detections or those of the last one before.
  paintVideo(camera) {
    const { player } = camera;
    const message = this.app.feed.at(this.name, player.captured);
    const width = message?.width ?? player.width;
    const height = message?.height ?? player.height;
    this.show(player.video, width, height, message, camera, { captured: player.captured, of: message?.captured_us, share: message?.share });
  }

  show(pixels, width, height, message, camera, facts) {
    const key = JSON.stringify([facts, message?.seq, message?.share, this.app.overlay, this.canvas.clientWidth]);
    if (pixels && key === this.painted) return;
    this.painted = pixels ? key : undefined;
    this.cover.hidden = Boolean(pixels);
    const { overlay } = this.app;
    const scale = paint.fit(this.canvas, width, height);
    const context = this.canvas.getContext("2d");
    paint.image(context, pixels);
    if (message) paint.denseMap(context, message);
    if (this.analytics && overlay.zones) paint.shapes(context, this.analytics, message);
    if (message && overlay.trails) paint.trails(context, message, camera.ways, scale);
    const painted = message && overlay.boxes ? paint.boxes(context, message, scale, overlay) : [];
    this.app.drawn[this.name] = { seq: message?.seq, ...facts, scale, boxes: painted };
  }

  draw() {
    this.showState();
    const camera = this.app.feed.camera(this.name);
    if (this.details.open) {
      const { p50, p99 } = plot.latency(this.plot, camera.latencies);
      this.figures.textContent = camera.latencies.length === 0 ? "" : `${milliseconds(p50)}, p99 ${milliseconds(p99)}`;
    }
    const message = camera.latest;
    if (!message) return;
    this.counters.replaceChildren(
      ...message.zones.map((z, i) => chip(paint.zoneColour(i), z.name, `${z.occupied}`, `${z.entered} entered`)),
      ...message.lines.map((l, i) => chip(paint.lineColour(i), l.name, `${l.in}`, "in", `${l.out}`, "out")));
    const counts = new Map();
    for (const d of message.detections) counts.set(d.class, { label: d.label, count: (counts.get(d.class)?.count ?? 0) + 1 });
    const chips = [...counts].sort(([a], [b]) => a - b).map(([number, { label, count }]) => {
      const [amount, ...words] = counted(count, label).split(" ");
      return el("span", { className: "chip" }, mark(colour(number)), el("b", {}, amount), words.join(" "));
    });
    this.present.replaceChildren(...(chips.length > 0 ? chips : [el("span", { className: "quiet" }, "nothing")]));
  }
}

// trouble describes why a camera delivers no images and when it is retried.
function trouble(capture) {
  const next = capture.next_try ? `. Tried ${capture.tries} times, next attempt at ${clock(capture.next_try)}.` : "";
  return capture.reason + next;
}

function mark(background) {
  const element = el("i");
  element.style.background = background;
  return element;
}

function chip(background, name, ...values) {
  return el("span", { className: "chip" }, mark(background), name,
    ...values.map((v) => (/^\d/.test(v) && !v.includes(" ") ? el("b", {}, v) : el("span", { className: "quiet" }, v))));
}
