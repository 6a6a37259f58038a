import { getJSON, sendJSON } from "./api.js";
import { el } from "./dom.js";

// Cameras lists the cameras with what can be set while they run, adds and removes cameras, and finds those of the network.
export class Cameras {
  constructor(root, app) {
    this.app = app;
    this.rows = new Map(); // by camera
    this.added = [];
    this.list = el("div", { className: "stack" });
    this.problem = el("p", { className: "problem", role: "alert" });
    this.find = this.buildSearch();
    this.add = this.buildForm();
    root.replaceChildren(el("div", { className: "cameras" }, this.list, el("div", { className: "stack" }, this.problem, this.add, this.find)));
    app.feed.show([]);
    this.update(app.status);
    this.load();
  }

  close() {
    this.closed = true;
  }

  // load asks which cameras were added on this page, and whether others can be.
  async load() {
    const { added, problem } = await getJSON("/api/cameras");
    this.added = added;
    this.problem.textContent = problem ? `Cameras cannot be changed here: ${problem}` : "";
    for (const form of [this.add, this.find]) form.hidden = Boolean(problem);
    this.built = null;
    if (!this.closed) this.update(this.app.status);
  }

  update(status) {
    const names = status.cameras.map((camera) => camera.capture.name);
    const built = JSON.stringify([names, this.added]);
    if (built !== this.built) this.build(names);
    this.built = built;
    for (const camera of status.cameras) this.rows.get(camera.capture.name).update(camera, this.app.connected);
  }

  build(names) {
    for (const name of this.rows.keys()) if (!names.includes(name)) this.rows.delete(name);
    for (const name of names) if (!this.rows.has(name)) this.rows.set(name, new Row(name, this));
    for (const [name, row] of this.rows) row.remove.hidden = !this.added.includes(name);
    this.list.replaceChildren(...names.map((name) => this.rows.get(name).element));
  }

  buildForm() {
    this.fields = {
      name: el("input", { required: true, maxLength: 64, autocomplete: "off" }),
      uri: el("input", { required: true, placeholder: "rtsp://192.0.2.10/stream2", autocomplete: "off", spellcheck: false }),
      user: el("input", { autocomplete: "off" }),
      password: el("input", { type: "password", autocomplete: "new-password" }),
      record: el("input", { placeholder: "the same", autocomplete: "off", spellcheck: false }),
    };
    const texts = {
      name: "Name", uri: "Address of the stream", user: "User name", password: "Password", record: "Address of a larger stream to record",
    };
    this.told = el("p", { role: "status" });
    this.submit = el("button", { className: "primary" }, "Add");
    return el("form", { className: "card", "aria-label": "Add a camera", onsubmit: (event) => this.save(event) }, el("div", { className: "bar" }, el("h2", {}, "Add a camera")),
      el("div", { className: "pad fields" },
        ...Object.entries(texts).map(([key, text]) => el("label", { className: ["uri", "record"].includes(key) ? "wide" : "" }, text, this.fields[key])),
        el("div", { className: "row wide" }, this.submit, this.told)));
  }

  async save(event) {
    event.preventDefault();
    const name = this.fields.name.value.trim();
    const camera = Object.fromEntries(Object.entries(this.fields).map(([key, field]) => [key, field.value]));
    await during(this.submit, this.told, async () => {
      await sendJSON("POST", "/api/cameras", camera);
      for (const field of Object.values(this.fields)) field.value = "";
      await this.load();
      return `${name} is being opened.`;
    });
  }

  buildSearch() {
    const user = el("input", { autocomplete: "off" });
    const password = el("input", { type: "password", autocomplete: "new-password" });
    const addresses = el("input", { placeholder: "all on the local networks", autocomplete: "off", spellcheck: false });
    const told = el("p", { role: "status" });
    const button = el("button", {}, "Search");
    const found = el("ul", { className: "found" });
    const search = async (event) => {
      event.preventDefault();
      found.replaceChildren();
      told.textContent = "";
      await during(button, told, async () => {
        told.className = "quiet";
        told.textContent = "Searching for ONVIF cameras";
        const body = { user: user.value, password: password.value, addresses: addresses.value.split(/[\s,]+/).filter(Boolean) };
        const { cameras } = await sendJSON("POST", "/api/cameras/search", body);
        found.replaceChildren(...cameras.map((camera) => this.foundCamera(camera, body)));
        return `${cameras.length} found.`;
      });
    };
    return el("form", { className: "card", "aria-label": "Find cameras", onsubmit: search }, el("div", { className: "bar" }, el("h2", {}, "Find cameras")),
      el("div", { className: "pad fields" }, el("label", {}, "User name", user), el("label", {}, "Password", password),
        el("label", { className: "wide" }, "Addresses of cameras", addresses), el("div", { className: "row wide" }, button, told)), found);
  }

  // foundCamera is an entry of the list of found cameras; its button fills in the form.
  foundCamera(camera, login) {
    const use = el("button", {
      type: "button", hidden: !camera.uri, "aria-label": `Use ${camera.title || camera.address}`, onclick: () => {
        const values = { name: camera.name, uri: camera.uri, record: camera.record ?? "", user: login.user, password: login.password };
        for (const [key, value] of Object.entries(values)) this.fields[key].value = value;
        this.fields.name.focus();
      },
    }, "Use");
    return el("li", {}, el("div", {}, el("b", {}, camera.title || "Camera"), el("p", { className: "quiet" }, camera.address),
      el("p", { className: camera.reason ? "problem" : "quiet" }, camera.reason ?? camera.streams)), use);
  }
}

// Row is a camera with its settings. Each is sent when it is changed.
class Row {
  constructor(name, page) {
    this.name = name;
    this.page = page;
    this.state = el("span", { className: "pill" });
    this.told = el("p", { role: "status" });
    this.reason = el("p", { className: "problem" });
    this.detect = el("button", { onclick: () => this.set("detect", this.settings.detect ? "OFF" : "ON") });
    this.threshold = this.field({ type: "number", min: 0, max: 1, step: "any" }, "threshold");
    this.interval = this.field({ type: "number", min: 1, max: 1000, step: 1 }, "interval");
    this.labels = this.field({ placeholder: "all", spellcheck: false }, "labels", (text) => text.trim() || "*");
    this.reset = el("button", { onclick: () => this.withdraw() }, "Reset");
    this.remove = el("button", { className: "danger", hidden: true, onclick: () => this.drop() }, "Remove");
    this.reset.ariaLabel = `Reset the settings of ${name}`;
    this.remove.ariaLabel = `Remove ${name}`;
    this.element = el("section", { className: "card", "aria-label": `Camera ${name}` },
      el("div", { className: "bar" }, el("h2", {}, el("a", { href: `#live/${encodeURIComponent(name)}` }, name)), this.state, el("span", { className: "grow" }),
        this.detect, this.reset, this.remove),
      el("div", { className: "pad fields" }, this.reason, el("label", {}, "Confidence threshold", this.threshold),
        el("label", {}, "Every n-th frame", this.interval), el("label", { className: "wide" }, "Labels, separated by commas", this.labels), this.told));
  }

  field(properties, setting, form = (text) => text) {
    return el("input", { autocomplete: "off", ...properties, onchange: (event) => this.set(setting, form(event.target.value)) });
  }

  update(camera, connected) {
    const { state } = camera.capture;
    this.settings = camera.settings;
    this.state.textContent = !connected ? "no connection" : state === "running" && !this.settings.detect ? "paused" : state;
    this.state.className = `pill ${!connected || state === "failed" ? "bad" : state === "running" && this.settings.detect ? "good" : ""}`;
    this.reason.textContent = camera.capture.reason ?? "";
    this.reason.hidden = !camera.capture.reason;
    this.detect.textContent = this.settings.detect ? "Pause" : "Resume";
    this.detect.ariaLabel = `${this.detect.textContent} detection of ${this.name}`;
    this.show(this.threshold, String(Number(this.settings.threshold.toFixed(4))));
    this.show(this.interval, String(this.settings.interval));
    this.show(this.labels, this.settings.labels.join(", "));
  }

  // show puts a value into a field, unless somebody is editing it.
  show(input, value) {
    if (document.activeElement !== input) input.value = value;
  }

  async set(setting, value) {
    await this.send(async () => {
      await this.put(setting, value);
      return "Saved.";
    });
  }

  put(setting, value) {
    return sendJSON("PUT", `/api/cameras/${encodeURIComponent(this.name)}/settings/${setting}`, { value });
  }

  async withdraw() {
    await this.send(async () => {
      for (const setting of ["detect", "threshold", "interval", "labels"]) await this.put(setting, "");
      return "As configured.";
    });
  }

  async drop() {
    if (!confirm(`Remove camera ${this.name}?`)) return;
    await this.send(async () => {
      await sendJSON("DELETE", `/api/cameras/${encodeURIComponent(this.name)}`);
      await this.page.load();
      return "Is being removed.";
    });
  }

  // send shows what the camera works with once the work is done.
  async send(work) {
    await during(this.reset, this.told, work);
    await this.page.app.refresh();
  }
}

// during disables a button while work lasts, and tells its outcome: the text that it returns or its error.
async function during(button, told, work) {
  button.disabled = true;
  try {
    told.textContent = await work();
    told.className = "done";
  } catch (error) {
    told.textContent = error.message;
    told.className = "problem";
  } finally {
    button.disabled = false;
  }
}
