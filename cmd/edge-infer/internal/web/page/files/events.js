import { clock, el } from "./dom.js";

// describe says in words what happened.
export function describe(event) {
  const who = `${event.label} ${event.track}`;
  switch (event.type) {
    case "new": return `${who} appeared`;
    case "end": return `${who} is gone`;
    case "enter": return `${who} entered ${event.zone}`;
    case "leave": return `${who} left ${event.zone} after ${event.dwell_s ?? 0} s`;
    case "loiter": return `${who} stays in ${event.zone}`;
    case "cross": return `${who} crossed ${event.line} ${event.direction === "in" ? "inwards" : "outwards"}`;
    default: return `${who}: ${event.type}`;
  }
}

// Events lists what happened, newest first, with the best view of each object.
export class Events {
  constructor(root, app) {
    this.app = app;
    this.list = el("ul", { className: "events" });
    this.empty = el("p", { className: "none" });
    this.camera = el("select", { onchange: () => this.load() }, el("option", { value: "" }, "all cameras"));
    this.type = el("select", { onchange: () => this.load() }, el("option", { value: "" }, "everything"),
      ...["new", "enter", "leave", "loiter", "cross", "end"].map((type) => el("option", { value: type }, type)));
    this.text = el("input", { type: "search", name: "text", maxLength: 60, placeholder: "label, camera, zone", oninput: () => this.loadLater() });
    root.replaceChildren(el("section", { className: "card", "aria-label": "Events" },
      el("div", { className: "tools" }, el("label", {}, "Camera ", this.camera), el("label", {}, "What ", this.type), el("label", {}, "With ", this.text)),
      this.list, this.empty));
    this.onHappened = (event) => {
      this.meanwhile?.push(event.detail);
      this.add(event.detail, true);
    };
    app.feed.addEventListener("happened", this.onHappened);
    app.feed.show([]);
    this.update(app.status);
    this.load();
  }

  close() {
    this.app.feed.removeEventListener("happened", this.onHappened);
    clearTimeout(this.later);
  }

  // loadLater waits until nothing is typed for a moment.
  loadLater() {
    clearTimeout(this.later);
    this.later = setTimeout(() => this.load(), 250);
  }

  update(status) {
    this.snapshots = status.snapshots;
    const names = status.cameras.map((c) => c.capture.name);
    const known = [...this.camera.options].slice(1).map((o) => o.value);
    if (names.join("\n") !== known.join("\n")) this.camera.replaceChildren(this.camera.options[0], ...names.map((n) => el("option", { value: n }, n)));
  }

  async load() {
    const wanted = { camera: this.camera.value, type: this.type.value, text: this.text.value };
    this.wanted = wanted;
    const meanwhile = this.meanwhile = []; // what happens until the answer is here
    const events = await this.app.events(wanted).finally(() => this.meanwhile === meanwhile && (this.meanwhile = null));
    if (this.wanted !== wanted) return; // something else is by now
    this.list.replaceChildren();
    for (const event of events) this.add(event, false);
    for (const event of meanwhile) if (event.number > (events[0]?.number ?? 0)) this.add(event, true);
    this.empty.hidden = this.list.children.length > 0;
    this.empty.textContent = wanted.camera || wanted.type || wanted.text
      ? "None of the events that are remembered is like that."
      : "Nothing has happened yet. Zones, lines and followed objects give events.";
  }

  // fits is what the server does with a query.
  fits(event) {
    const { camera, type, text } = this.wanted;
    const about = [event.label, event.track, event.camera, event.zone, event.line].join(" ").toLowerCase();
    return event.type !== "update" && (!camera || event.camera === camera) && (!type || event.type === type)
      && text.toLowerCase().split(/\s+/).every((word) => about.includes(word));
  }

  add(event, newest) {
    if (!this.fits(event)) return;
    const thumb = el("span", { className: "thumb" }, event.type);
    if (this.snapshots) {
      const path = `/api/cameras/${encodeURIComponent(event.camera)}/events/${encodeURIComponent(event.object)}/snapshot.jpg`;
      const image = el("img", { src: path, alt: `Best view of ${event.label} ${event.track}`, loading: "lazy", onerror: () => image.replaceWith(event.type) });
      thumb.replaceChildren(image);
    }
    const item = el("li", {}, thumb, el("span", {}, describe(event), el("br"), el("span", { className: "quiet" }, event.camera, `, ${Math.round(event.score * 100)}%`)),
      el("time", { dateTime: event.time, title: event.time }, clock(event.time)));
    if (newest) this.list.prepend(item);
    else this.list.append(item);
    while (this.list.children.length > 300) this.list.lastChild.remove();
    this.empty.hidden = true;
  }
}
