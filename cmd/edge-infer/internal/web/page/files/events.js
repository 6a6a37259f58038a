import { clock, el } from "./dom.js";

// describe returns the text of an event.
export function describe(event) {
  const who = `${event.label} ${event.track}`;
  switch (event.type) {
    case "new": return `${who} appeared`;
    case "end": return `${who} left the image`;
    case "enter": return `${who} entered ${event.zone}`;
    case "leave": return `${who} left ${event.zone} after ${event.dwell_s ?? 0} s`;
    case "loiter": return `${who} is loitering in ${event.zone}`;
    case "cross": return `${who} crossed ${event.line} ${event.direction === "in" ? "inwards" : "outwards"}`;
    default: return `${who}: ${event.type}`;
  }
}

// Events lists events, newest first, with the best snapshot of each object.
export class Events {
  constructor(root, app) {
    this.app = app;
    this.list = el("ul", { className: "events" });
    this.empty = el("p", { className: "none" });
    this.camera = el("select", { onchange: () => this.load() }, el("option", { value: "" }, "all cameras"));
    this.type = el("select", { onchange: () => this.load() }, el("option", { value: "" }, "all types"),
      ...["new", "enter", "leave", "loiter", "cross", "end"].map((type) => el("option", { value: type }, type)));
    this.text = el("input", { type: "search", name: "text", maxLength: 60, placeholder: "label, camera, zone", oninput: () => this.loadLater() });
    root.replaceChildren(el("section", { className: "card", "aria-label": "Events" },
      el("div", { className: "tools" }, el("label", {}, "Camera ", this.camera), el("label", {}, "Type ", this.type), el("label", {}, "Search ", this.text)),
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

  // loadLater loads after a short pause in typing.
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
    const meanwhile = this.meanwhile = []; // events received before the response
    const events = await this.app.events(wanted).finally(() => this.meanwhile === meanwhile && (this.meanwhile = null));
    if (this.wanted !== wanted) return; // the query has changed
    this.list.replaceChildren();
    for (const event of events) this.add(event, false);
    for (const event of meanwhile) if (event.number > (events[0]?.number ?? 0)) this.add(event, true);
    this.empty.hidden = this.list.children.length > 0;
    this.empty.textContent = wanted.camera || wanted.type || wanted.text
      ? "No stored event matches."
      : "No events yet. Tracked objects, zones and lines produce events.";
  }

  // fits applies the query to one event, as the server does.
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
      const image = el("img", { src: path, alt: `Best snapshot of ${event.label} ${event.track}`, loading: "lazy", onerror: () => image.replaceWith(event.type) });
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
