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
    this.empty = el("p", { className: "none" }, "Nothing has happened yet. Zones, lines and followed objects give events.");
    this.camera = el("select", { onchange: () => this.load() }, el("option", { value: "" }, "all cameras"));
    this.type = el("select", { onchange: () => this.load() }, el("option", { value: "" }, "everything"),
      ...["new", "enter", "leave", "loiter", "cross", "end"].map((type) => el("option", { value: type }, type)));
    root.replaceChildren(el("section", { className: "card", "aria-label": "Events" },
      el("div", { className: "tools" }, el("label", {}, "Camera ", this.camera), el("label", {}, "What ", this.type)),
      this.list, this.empty));
    this.onHappened = (event) => this.add(event.detail, true);
    app.feed.addEventListener("happened", this.onHappened);
    app.feed.show([]);
    this.update(app.status);
    this.load();
  }

  close() {
    this.app.feed.removeEventListener("happened", this.onHappened);
  }

  update(status) {
    this.snapshots = status.snapshots;
    const names = status.cameras.map((c) => c.capture.name);
    const known = [...this.camera.options].slice(1).map((o) => o.value);
    if (names.join("\n") !== known.join("\n")) this.camera.replaceChildren(this.camera.options[0], ...names.map((n) => el("option", { value: n }, n)));
  }

  async load() {
    const events = await this.app.events(this.camera.value);
    this.list.replaceChildren();
    for (const event of events) this.add(event, false);
    this.empty.hidden = this.list.children.length > 0;
  }

  add(event, newest) {
    if (event.type === "update" || (this.type.value && event.type !== this.type.value)) return;
    if (this.camera.value && event.camera !== this.camera.value) return;
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
