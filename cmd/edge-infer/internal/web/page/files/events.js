import { day, el, options, period } from "./dom.js";
import { Detail } from "./detail.js";
import { groups, merged, Timeline } from "./timeline.js";

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

// track returns the number of a stored event's object, the last part of its id.
export const track = (event) => event.id.split("-").pop();

// pageSize is the number of events that are loaded at once.
const pageSize = 200;

// Further pages are loaded until there are that many groups or events.
const [fewGroups, manyEvents] = [12, 1000];

// pause is the shortest time between two loads while events happen, in milliseconds.
const pause = 2000;

// Events shows stored events on a timeline and as groups, newest first. A click shows clip, frame, crop and track.
export class Events {
  constructor(root, app, camera) {
    this.app = app;
    this.events = []; // of the list, newest first
    this.items = new Map(); // of the list, by key
    this.list = el("ul", { className: "tiles" });
    this.empty = el("p", { className: "none", hidden: true });
    this.more = el("button", { hidden: true, onclick: () => this.load(this.next) }, "Older events");
    const select = (name, all) => el("select", { name, onchange: () => this.search() }, el("option", { value: "" }, all));
    this.camera = select("camera", "all cameras");
    this.label = select("label", "all labels");
    this.zone = select("zone", "all zones");
    this.day = el("input", { type: "date", name: "day", onchange: () => this.timeline.showDay(this.day.value) });
    this.timeline = new Timeline(app, () => this.query(), () => this.moved(), (group, at) => this.detail.show(group, at),
      (name, at) => this.detail.play(name, at));
    this.detail = new Detail(() => this.detail.element.close());
    root.replaceChildren(el("div", { className: "stack" },
      el("section", { className: "card", "aria-label": "Timeline" },
        el("div", { className: "tools" }, el("label", {}, "Camera ", this.camera), el("label", {}, "Label ", this.label),
          el("label", {}, "Zone ", this.zone), el("label", {}, "Day ", this.day), el("span", { className: "grow" }), this.timeline.tools),
        this.timeline.element),
      el("section", { "aria-label": "Events" }, this.list, this.empty, el("div", { className: "row centre" }, this.more))), this.detail.element);
    this.onHappened = (event) => event.detail.type !== "update" && this.loadLater();
    app.feed.addEventListener("happened", this.onHappened);
    app.feed.show([]);
    this.update(app.status);
    if (camera) this.camera.value = camera;
    this.search();
  }

  close() {
    this.app.feed.removeEventListener("happened", this.onHappened);
    clearTimeout(this.later);
    this.timeline.close();
    this.closed = true;
  }

  update(status) {
    options(this.camera, status.cameras.map((c) => c.capture.name));
    options(this.label, [...new Set(status.cameras.flatMap((c) => c.labels))].sort());
    options(this.zone, [...new Set(status.cameras.flatMap((c) => (c.analytics.zones ?? []).map((zone) => zone.name)))].sort());
  }

  // query returns the filters without the time.
  query() {
    const all = { camera: this.camera.value, label: this.label.value, zone: this.zone.value };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value));
  }

  search() {
    this.timeline.load();
    this.load();
  }

  // moved is called when the timeline shows another time.
  moved() {
    this.day.value = this.timeline.end ? day(this.timeline.start) : "";
    this.load();
  }

  // loadLater loads the newest events after a pause, unless earlier ones are shown.
  loadLater() {
    this.later ??= setTimeout(() => {
      this.later = undefined;
      if (!document.hidden && !this.timeline.end) this.loadNewest();
    }, pause);
  }

  // loadNewest adds what has happened since the last load.
  async loadNewest() {
    const { loading } = this;
    let page;
    try {
      page = await this.app.events({ ...this.query(), limit: pageSize });
    } catch {
      return; // the next event tries again
    }
    if (this.loading !== loading || this.closed) return; // superseded
    const events = merged(this.events, page.events);
    const gap = page.next && events.length === this.events.length + page.events.length;
    if (gap || events.length > 3 * manyEvents) {
      this.search();
      return;
    }
    this.timeline.add(page.events);
    this.events = events;
    this.show("");
  }

  // load shows the newest events of the time that the timeline shows, or adds those behind a cursor.
  async load(cursor = "") {
    const query = { ...this.query(), limit: pageSize, ...(this.timeline.end ? this.timeline.bounds() : {}) };
    this.loading = query;
    const events = cursor ? [...this.events] : [];
    const before = events.length;
    let page = { next: cursor };
    do {
      try {
        page = await this.app.events(page.next ? { ...query, cursor: page.next } : query);
      } catch (error) {
        page = { events: [], problem: error.message };
      }
      if (this.loading !== query || this.closed) return; // superseded
      events.push(...page.events);
    } while (page.next && events.length - before < manyEvents && groups(events).length < fewGroups);
    this.events = events;
    this.next = page.next;
    this.show(page.problem ?? "");
  }

  show(problem) {
    const all = groups(this.events);
    this.list.replaceChildren(...all.map((group) => this.item(group)));
    const keys = new Set(all.map((group) => group.key));
    for (const key of this.items.keys()) if (!keys.has(key)) this.items.delete(key);
    this.more.hidden = !this.next;
    this.empty.hidden = this.events.length > 0;
    const chosen = this.timeline.end || Object.keys(this.query()).length > 0;
    this.empty.textContent = problem || (chosen ? "No stored event matches." : "No events yet. Tracked objects produce events.");
  }

  // item returns the list item of a group, the same one while nothing changes.
  item(group) {
    const known = this.items.get(group.key);
    const text = JSON.stringify(group.events);
    if (known?.text === text) return known.element;
    const name = group.title;
    const image = group.best ? el("img", { src: group.best.frame, alt: "", loading: "lazy" }) : "no image";
    const zones = [...new Set(group.events.flatMap((event) => event.zones ?? []))];
    const element = el("li", {}, el("button", { className: "tile card", onclick: () => this.detail.show(group) },
      el("span", { className: "thumb" }, image, group.clip ? el("span", { className: "badge" }, "clip") : null),
      el("span", { className: "text" }, el("b", {}, name), el("span", { className: "quiet" }, [group.camera, ...zones].join(", ")),
        el("time", { className: "quiet", dateTime: group.events.at(-1).time }, period(group.start, group.end)))));
    this.items.set(group.key, { element, text });
    return element;
  }
}

