import { getVersioned, putVersioned, sendJSON } from "./api.js";
import { el } from "./dom.js";
import * as paint from "./paint.js";

// reach is the distance within which a pointer grabs a point, in CSS pixels.
const reach = 14;

// searchFrom is the number of labels from which on there is a field to search them.
const searchFrom = 20;

// step is the interval in milliseconds within which successive changes are undone together, such as those of a drag.
const step = 500;

// outlines are the kinds of polygons, with their names.
const outlines = { zones: "zone", masks: "mask" };

const second = 1e9; // the configuration counts in nanoseconds

// Editor draws zones, lines and masks on a camera's image and saves them.
export class Editor {
  constructor(root, app, camera) {
    this.app = app;
    this.mode = "select";
    this.selected = null; // {kind: "zones", "lines", "masks" or "ground", index, point}
    this.draft = []; // points of the shape that is being drawn
    this.cursor = { x: 0.5, y: 0.5 }; // for the keyboard
    this.canvas = el("canvas", {
      width: 960, height: 540, tabIndex: 0, role: "application",
      "aria-label": "Image to draw on. With the keyboard: Z draws a zone, L a line, M a mask, G the ground, arrow keys move, space sets a point, " +
        "enter finishes, escape stops, control and Z takes the last change back, N takes the next point, delete removes.",
    });
    this.camera = el("select", { "aria-label": "Camera", onchange: () => (location.hash = `#zones/${encodeURIComponent(this.camera.value)}`) });
    this.tools = {
      select: el("button", { onclick: () => this.setMode("select") }, "Select"),
      zones: el("button", { onclick: () => this.setMode("zones") }, "New zone"),
      lines: el("button", { onclick: () => this.setMode("lines") }, "New line"),
      masks: el("button", { onclick: () => this.setMode("masks"), title: "Area in which detections are ignored" }, "New mask"),
      ground: el("button", { onclick: () => this.setMode("ground"), title: "Four corners of a rectangle on the ground give speeds in metres" }, "Ground"),
      length: el("button", { onclick: () => this.setMode("length"), title: "For a camera that points straight down: two points of known distance" }, "Known length"),
    };
    this.finishButton = el("button", { onclick: () => this.finish(), hidden: true });
    this.hint = el("p", { className: "quiet pad", role: "status" });
    this.list = el("ul", { className: "shapes" });
    this.form = el("div", { className: "fields" });
    this.problem = el("p", { className: "problem", role: "alert" });
    this.done = el("p", { className: "done", role: "status" });
    this.readOnly = el("p", { className: "quiet", hidden: true });
    this.yaml = el("pre", { tabIndex: 0, "aria-label": "Configuration" });
    this.saveButton = el("button", { className: "primary", onclick: () => this.save() }, "Save");
    this.undoButton = el("button", { onclick: () => this.undo() }, "Undo");
    this.revertButton = el("button", { onclick: () => this.load() }, "Revert");
    root.replaceChildren(el("div", { className: "editor" },
      el("section", { className: "card", "aria-label": "Image" },
        el("div", { className: "tools" }, this.camera, ...Object.values(this.tools), this.finishButton),
        el("div", { className: "image" }, this.canvas), this.hint),
      el("div", { className: "stack" },
        el("section", { className: "card pad stack" }, el("h2", {}, "Zones, lines and masks"), this.list, this.form, this.problem, this.readOnly,
          el("div", { className: "row" }, this.saveButton, this.undoButton, this.revertButton, this.done)),
        el("section", { className: "card pad stack" },
          el("div", { className: "row" }, el("h2", {}, "For the configuration file"), el("span", { className: "grow" }),
            el("button", { onclick: () => this.copy() }, "Copy")), this.yaml))));
    this.listen();
    this.update(app.status);
    const names = app.status.cameras.map((c) => c.capture.name);
    this.camera.value = names.includes(camera) ? camera : (names[0] ?? "");
    app.feed.show(this.camera.value ? [this.camera.value] : []);
    this.onFrame = (event) => event.detail === this.camera.value && this.schedule();
    app.feed.addEventListener("frame", this.onFrame);
    this.take({});
    this.open();
  }

  // open restores unsaved changes of the camera.
  async open() {
    const kept = this.app.drafts.get(this.camera.value);
    await this.load();
    if (this.closed || !kept) return;
    this.app.drafts.delete(this.camera.value);
    this.version = kept.version;
    this.config = kept.config;
    this.changed();
  }

  close() {
    if (this.unsaved) this.app.drafts.set(this.camera.value, { config: this.config, version: this.version });
    this.app.feed.removeEventListener("frame", this.onFrame);
    clearTimeout(this.later);
    this.closed = true;
  }

  update(status) {
    const names = status.cameras.map((c) => c.capture.name);
    if (names.join("\n") !== [...this.camera.options].map((o) => o.value).join("\n")) {
      const value = this.camera.value;
      this.camera.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
      if (names.includes(value)) this.camera.value = value;
    }
    this.saveButton.hidden = !status.editable;
    this.readOnly.hidden = status.editable;
    this.readOnly.textContent = status.uneditable ?? "";
  }

  get status() {
    return this.app.status.cameras.find((c) => c.capture.name === this.camera.value);
  }

  // load shows the saved configuration, or the one in force where zones cannot be saved.
  async load() {
    const camera = this.status;
    if (!camera || !this.app.status.editable) {
      this.take(structuredClone(camera?.analytics ?? {}));
      return;
    }
    try {
      const { value, version } = await getVersioned(this.path);
      if (this.closed) return;
      this.version = version;
      this.take(value);
    } catch (error) {
      this.problem.textContent = error.message;
    }
  }

  take(config) {
    this.config = config;
    this.config.zones ??= [];
    this.config.lines ??= [];
    this.config.filter ??= {};
    this.config.filter.masks ??= [];
    this.selected = null;
    this.past = []; // states before this one, as text
    this.saved = this.known = JSON.stringify(config);
    this.setMode("select");
    this.changed();
  }

  get unsaved() { return this.app.status.editable && this.known !== this.saved; }

  undo() {
    if (this.past.length === 0) return;
    this.config = JSON.parse(this.known = this.past.pop());
    this.select(null);
    this.setMode("select");
    this.changed();
  }

  // width and height are the units of the configuration's coordinates: pixels, or 1 for relative coordinates.
  get width() { return this.config.width || 1; }
  get height() { return this.config.height || 1; }
  get decimals() { return this.config.width ? 1 : 4; }

  setMode(mode) {
    this.mode = mode;
    this.draft = [];
    for (const [name, button] of Object.entries(this.tools)) button.setAttribute("aria-pressed", name === mode);
    this.canvas.className = mode === "select" ? "select" : "";
    this.hint.textContent = {
      select: "Drag a point to move it, drag inside a zone or mask to move all of it.",
      zones: "Click the corners in order; click the first one again to finish.",
      lines: "Click the start and the end. Objects that cross in the direction of the arrow count as in.",
      masks: "Click the corners in order; click the first one again to finish. Detections inside a mask are ignored.",
      ground: "Click the four corners of a rectangle on the ground, in order around it, then enter the lengths of its sides.",
      length: "For a camera that points straight down: click both ends of a known length.",
    }[mode];
    this.showFinish();
    this.schedule();
  }

  showFinish() {
    this.finishButton.hidden = !outlines[this.mode];
    this.finishButton.textContent = `Finish ${outlines[this.mode] ?? ""}`;
    this.finishButton.disabled = this.draft.length < 3;
  }

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      canvas.focus();
      this.press(this.point(event), this.near(event));
      event.preventDefault();
    });
    canvas.addEventListener("pointermove", (event) => this.move(this.point(event)));
    canvas.addEventListener("pointerup", () => this.drop());
    canvas.addEventListener("pointercancel", () => this.drop());
    canvas.addEventListener("dblclick", () => this.finish());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  // point returns the position of a pointer in relative image coordinates.
  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const clamp = (v) => Math.min(1, Math.max(0, v));
    return { x: clamp((event.clientX - box.left) / box.width), y: clamp((event.clientY - box.top) / box.height) };
  }

  near(event) {
    const box = this.canvas.getBoundingClientRect();
    const far = event.pointerType === "touch" ? reach * 1.6 : reach;
    return (p, q) => Math.hypot((p.x - q.x) * box.width, (p.y - q.y) * box.height) < far;
  }

  toConfig(p) {
    const unit = 10 ** this.decimals;
    return { x: Math.round(p.x * this.width * unit) / unit, y: Math.round(p.y * this.height * unit) / unit };
  }

  toShare(p) {
    return { x: p.x / this.width, y: p.y / this.height };
  }

  // shapes returns all shapes of a kind. A mask is a list of corners.
  shapes(kind) {
    if (kind === "ground") return this.config.ground ? [this.config.ground] : [];
    return kind === "masks" ? this.config.filter.masks : this.config[kind];
  }

  corners(kind, index) {
    const shape = this.shapes(kind)[index];
    return kind === "masks" ? shape : shape.points;
  }

  // points returns the points of a shape as {get, set} in relative image coordinates.
  points(kind, index) {
    const from = kind === "lines" ? this.config.lines[index] : this.corners(kind, index);
    return (kind === "lines" ? ["from", "to"] : [...from.keys()]).map((at) => (
      { get: () => this.toShare(from[at]), set: (p) => (from[at] = this.toConfig(p)) }));
  }

  *handles() {
    for (const kind of ["ground", "lines", "zones", "masks"]) {
      for (let index = 0; index < this.shapes(kind).length; index++) {
        for (const [point, handle] of this.points(kind, index).entries()) yield { kind, index, point, ...handle };
      }
    }
  }

  press(at, near) {
    if (this.mode !== "select") {
      if (outlines[this.mode] && this.draft.length >= 3 && near(at, this.draft[0])) this.finish();
      else this.add(at);
      return;
    }
    const chosen = this.selected;
    const taken = [...this.handles()].filter((h) => near(at, h.get()));
    const handle = taken.find((h) => h.kind === chosen?.kind && h.index === chosen?.index) ?? taken[0];
    if (handle) {
      this.select(handle.kind, handle.index, handle.point);
      this.drag = (to) => handle.set(to);
      return;
    }
    const within = (kind) => this.shapes(kind).findLastIndex((_, i) => this.inside(at, kind, i));
    const kind = within("zones") < 0 ? "masks" : "zones";
    const index = within(kind);
    if (index < 0) {
      this.select(null);
      return;
    }
    this.select(kind, index);
    const start = this.points(kind, index).map((h) => h.get());
    this.drag = (to) => {
      // The shape must stay inside the image.
      const limit = (axis, by) => Math.min(1 - Math.max(...start.map((p) => p[axis])), Math.max(-Math.min(...start.map((p) => p[axis])), by));
      const [dx, dy] = [limit("x", to.x - at.x), limit("y", to.y - at.y)];
      this.points(kind, index).forEach((h, i) => h.set({ x: start[i].x + dx, y: start[i].y + dy }));
    };
  }

  inside(p, kind, index) {
    const points = this.points(kind, index).map((h) => h.get());
    let inside = false;
    for (let i = 0, j = points.length - 1; i < points.length; j = i++) {
      const [a, b] = [points[i], points[j]];
      if (a.y > p.y !== b.y > p.y && p.x < ((b.x - a.x) * (p.y - a.y)) / (b.y - a.y) + a.x) inside = !inside;
    }
    return inside;
  }

  move(to) {
    this.cursor = to;
    if (this.drag) {
      this.drag(to);
      this.moved = true;
    }
    if (this.drag || this.draft.length > 0) this.schedule();
  }

  drop() {
    this.drag = null;
    if (this.moved) this.changed();
    this.moved = false;
  }

  add(at) {
    this.draft.push(at);
    if (this.draft.length === { lines: 2, length: 2, ground: 4 }[this.mode]) this.finish();
    this.showFinish();
    this.schedule();
  }

  finish() {
    // The second press of a double click sets a point on top of the one before.
    const points = this.draft.filter((p, i) => i === 0 || Math.hypot(p.x - this.draft[i - 1].x, p.y - this.draft[i - 1].y) > 0.004).map((p) => this.toConfig(p));
    if (this.mode === "zones" && points.length >= 3) {
      this.config.zones.push({ name: this.freeName("zones", "zone"), points, labels: null, anchor: "", inertia: 0, min_time: 0, loiter: 0 });
    } else if (this.mode === "masks" && points.length >= 3) {
      this.config.filter.masks.push(points);
    } else if (this.mode === "lines" && points.length === 2) {
      this.config.lines.push({ name: this.freeName("lines", "line"), from: points[0], to: points[1], labels: null, anchor: "", direction: "", mode: "" });
    } else if (this.mode === "ground" && points.length === 4) {
      this.config.ground = { points, width: 1, length: 1 };
    } else if (this.mode === "length" && points.length === 2) {
      this.config.ground = { points, width: 0, length: 1 };
    } else {
      return;
    }
    const kind = this.mode === "length" ? "ground" : this.mode;
    this.setMode("select");
    this.select(kind, this.shapes(kind).length - 1);
    this.changed();
  }

  freeName(kind, stem) {
    for (let i = 1; ; i++) if (!this.config[kind].some((s) => s.name === `${stem}${i}`)) return `${stem}${i}`;
  }

  key(event) {
    const step = event.shiftKey ? 0.001 : 0.01;
    const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key];
    if (by) this.nudge(...by);
    else if (event.key === "z" && (event.ctrlKey || event.metaKey)) this.undo();
    else if (event.key === "z") this.setMode("zones");
    else if (event.key === "l") this.setMode("lines");
    else if (event.key === "m") this.setMode("masks");
    else if (event.key === "g") this.setMode("ground");
    else if (event.key === "Escape") this.setMode("select");
    else if (event.key === "Enter") this.finish();
    else if (event.key === " " && this.mode !== "select") this.add({ ...this.cursor });
    else if (event.key === "n") this.next();
    else if (event.key === "Delete" || event.key === "Backspace") this.removePoint();
    else return;
    event.preventDefault();
  }

  nudge(dx, dy) {
    const moved = (p) => ({ x: Math.min(1, Math.max(0, p.x + dx)), y: Math.min(1, Math.max(0, p.y + dy)) });
    if (this.mode !== "select") {
      this.cursor = moved(this.cursor);
      this.keyboard = true;
      this.schedule();
      return;
    }
    if (this.selected?.point === undefined) return;
    const handle = this.points(this.selected.kind, this.selected.index)[this.selected.point];
    handle.set(moved(handle.get()));
    this.changed();
  }

  next() {
    const all = [...this.handles()];
    if (all.length === 0) return;
    const s = this.selected;
    const at = all.findIndex((h) => h.kind === s?.kind && h.index === s?.index && h.point === s?.point);
    const { kind, index, point } = all[(at + 1) % all.length];
    this.select(kind, index, point);
  }

  removePoint() {
    const s = this.selected;
    if (this.mode !== "select" || !s) return;
    if (outlines[s.kind] && s.point !== undefined && this.corners(s.kind, s.index).length > 3) {
      this.corners(s.kind, s.index).splice(s.point, 1);
      this.select(s.kind, s.index);
      this.changed();
    } else {
      this.remove();
    }
  }

  remove() {
    if (this.selected.kind === "ground") this.config.ground = null;
    else this.shapes(this.selected.kind).splice(this.selected.index, 1);
    this.select(null);
    this.changed();
  }

  select(kind, index, point) {
    const before = this.selected;
    this.selected = kind ? { kind, index, point } : null;
    if (before?.kind !== kind || before?.index !== index) this.showForm();
    this.showList();
    this.schedule();
  }

  // changed checks the configuration after a short delay and shows its YAML or the error.
  changed() {
    this.note();
    this.showList();
    this.showForm();
    this.schedule();
    this.checkLater();
  }

  // note records a state for undo and shows whether it is saved.
  note() {
    const now = JSON.stringify(this.config);
    if (now !== this.known) {
      if (performance.now() - (this.changedAt ?? 0) > step || this.past.length === 0) this.past.push(this.known);
      this.changedAt = performance.now();
      this.known = now;
    }
    this.undoButton.disabled = this.past.length === 0;
    this.done.textContent = this.unsaved ? "Unsaved changes." : "";
  }

  checkLater() {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.check(), 250);
  }

  get path() {
    return `/api/cameras/${encodeURIComponent(this.camera.value)}/analytics`;
  }

  async check() {
    if (!this.camera.value) return;
    try {
      const { yaml } = await sendJSON("POST", `${this.path}/check`, this.config);
      this.yaml.textContent = yaml;
      this.problem.textContent = "";
      this.saveButton.disabled = false;
    } catch (error) {
      this.problem.textContent = error.message;
      this.saveButton.disabled = true;
    }
  }

  async save() {
    this.saveButton.disabled = true;
    const sent = this.known;
    try {
      this.version ??= (await getVersioned(this.path)).version;
      this.version = await putVersioned(this.path, this.version, this.config);
      this.problem.textContent = "";
      this.saved = sent;
      this.done.textContent = "Saved.";
      if (this.status) this.status.analytics = structuredClone(this.config); // until the next status says so
    } catch (error) {
      this.problem.textContent = error.message;
    }
    this.saveButton.disabled = false;
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.yaml.textContent);
      this.done.textContent = "Copied.";
    } catch {
      // Without TLS browsers give no clipboard; the text is marked instead.
      getSelection().selectAllChildren(this.yaml);
    }
  }

  showList() {
    const items = [];
    for (const [kind, shade, name, about] of [
      ["zones", paint.zoneColour, (zone) => zone.name || "(no name)", (zone) => `zone, ${zone.points.length} points`],
      ["lines", paint.lineColour, (line) => line.name || "(no name)", () => "line"],
      ["masks", () => paint.maskColour, (_, index) => `Mask ${index + 1}`, (mask) => `detections ignored, ${mask.length} points`],
      ["ground", () => paint.groundColour, () => "Ground", (ground) => (ground.points.length === 4 ? "calibration by a rectangle" : "calibration by a length")],
    ]) {
      this.shapes(kind).forEach((shape, index) => {
        const mark = el("i");
        mark.style.background = shade(index);
        const pressed = this.selected?.kind === kind && this.selected.index === index;
        items.push(el("li", {}, el("button", { "aria-pressed": pressed, onclick: () => this.select(kind, index) }, mark, name(shape, index),
          el("span", { className: "quiet" }, about(shape)))));
      });
    }
    this.list.replaceChildren(...(items.length > 0 ? items : [el("li", { className: "quiet" }, "None yet. Draw one on the image.")]));
  }

  showForm() {
    const s = this.selected;
    const shape = s && this.shapes(s.kind)[s.index];
    const key = s ? `${s.kind}${s.index}` : "";
    if (this.formKey === key && this.form.contains(document.activeElement)) return; // keep what is being typed
    this.formKey = key;
    if (!shape) {
      this.form.replaceChildren();
      return;
    }
    const deletion = (what) => el("div", { className: "wide" }, el("button", { className: "danger", onclick: () => this.remove() }, `Delete ${what}`));
    if (s.kind === "masks") {
      this.form.replaceChildren(deletion("mask"));
      return;
    }
    const metres = (label, field) => el("label", {}, label, el("input", {
      type: "number", min: 0, step: "any", name: field, value: shape[field], oninput: (e) => this.set(shape, field, Number(e.target.value)),
    }));
    if (s.kind === "ground") {
      this.form.replaceChildren(...(shape.points.length === 4 ? [metres("Metres from A to B", "width"), metres("Metres from B to C", "length")] : [metres("Metres from A to B", "length")]),
        deletion("calibration"));
      return;
    }
    const text = (label, field, wide) => el("label", { className: wide ? "wide" : "" }, label,
      el("input", { value: shape[field], name: field, oninput: (e) => this.set(shape, field, e.target.value) }));
    const seconds = (label, field) => el("label", {}, label, el("input", {
      type: "number", min: 0, step: "any", name: field, value: shape[field] / second,
      oninput: (e) => this.set(shape, field, Math.round(Number(e.target.value) * second)),
    }));
    const choice = (label, field, ...values) => el("label", {}, label, el("select", { name: field, onchange: (e) => this.set(shape, field, e.target.value) },
      ...values.map(([value, title]) => el("option", { value, selected: value === shape[field] }, title))));
    const anchors = [["bottom", "bottom centre"], ["centre", "centre"], ["top", "top"], ["feet", "feet (ankles or lowest mask point)"],
      ...(this.status?.keypoints ?? []).map((name) => [name, name.replaceAll("_", " ")])];
    const common = [text("Name", "name", true), this.labelChoice(shape)];
    const own = s.kind === "zones"
      ? [
        choice("Point of the object", "anchor", ["", "default (bottom centre)"], ...anchors, ["box", "any part of the box"],
          ["mask", "any part of the mask"]),
        seconds("Loiters after, seconds", "loiter"), seconds("Enters after, seconds", "min_time"),
      ]
      : [choice("Direction", "direction", ["", "both"], ["in", "in only"], ["out", "out only"]), choice("Point of the object", "anchor", ["", "default (centre)"], ...anchors),
        choice("Crossing", "mode", ["", "exact"], ["loose", "any part of the box"]), el("label", {}, "In direction", el("button", { onclick: () => this.turn(shape) }, "Reverse"))];
    this.form.replaceChildren(...[...common, ...own].filter(Boolean),
      deletion(s.kind === "zones" ? "zone" : "line"));
  }

  // labelChoice returns check boxes of the labels that the camera's network knows, with a search field where they are many; null if it knows
  // none.
  labelChoice(shape) {
    const known = this.status?.labels ?? [];
    if (known.length === 0) return null;
    const boxes = known.map((name) => el("label", { className: "check" }, el("input", {
      type: "checkbox", checked: (shape.labels ?? []).includes(name),
      onchange: (e) => this.set(shape, "labels", e.target.checked ? [...(shape.labels ?? []), name] : shape.labels.filter((l) => l !== name)),
    }), name));
    const search = known.length <= searchFrom ? null : el("input", {
      type: "search", placeholder: "Search labels", "aria-label": "Search labels",
      oninput: () => {
        const text = search.value.trim().toLowerCase();
        boxes.forEach((box, i) => { box.hidden = !known[i].toLowerCase().includes(text) && !(shape.labels ?? []).includes(known[i]); });
      },
    });
    return el("fieldset", {}, el("legend", {}, "Labels that count (none checked: all)"), search, el("div", { className: "checks" }, ...boxes));
  }

  set(shape, field, value) {
    shape[field] = value;
    this.note();
    this.showList();
    this.schedule();
    this.checkLater();
  }

  turn(line) {
    [line.from, line.to] = [line.to, line.from];
    this.changed();
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      if (!this.closed) this.paint();
    });
  }

  paint() {
    const camera = this.app.feed.camera(this.camera.value);
    const size = camera.image ?? camera.latest ?? { width: 16, height: 9 };
    paint.fit(this.canvas, size.width, size.height);
    const context = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    paint.image(context, camera.image?.bitmap);
    paint.shapes(context, this.config, null, this.selected);
    const dot = (p, filled) => {
      context.beginPath();
      context.arc(p.x * width, p.y * height, Math.max(5, width / 150), 0, 7);
      context.fillStyle = filled ? "#ffffff" : "rgba(0, 0, 0, 0.55)";
      context.strokeStyle = "#ffffff";
      context.lineWidth = 2;
      context.fill();
      context.stroke();
    };
    for (const h of this.handles()) {
      const s = this.selected;
      if (s?.kind === h.kind && s.index === h.index) dot(h.get(), s.point === h.point);
    }
    if (this.mode === "select") return;
    context.strokeStyle = "#ffffff";
    context.lineWidth = 2;
    context.setLineDash([6, 5]);
    context.beginPath();
    [...this.draft, this.cursor].forEach((p, i) => (i === 0 ? context.moveTo(p.x * width, p.y * height) : context.lineTo(p.x * width, p.y * height)));
    context.stroke();
    context.setLineDash([]);
    this.draft.forEach((p, i) => dot(p, i === 0));
    if (this.keyboard) dot(this.cursor, false);
  }
}
