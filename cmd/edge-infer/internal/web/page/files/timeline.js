import { counted, el, period } from "./dom.js";

const minute = 60000;
const hour = 60 * minute;

// Events of a camera that are no further apart than gap are shown as one group, which is about as long as longest at most. Both are in milliseconds.
const gap = 30000;
const longest = 2 * minute;

// most is the number of events that are loaded for a timeline at most, in pages.
const most = 3000;
const pageSize = 1000;

// spans are what a timeline can show, in hours.
const spans = [24, 6, 1];

// groups returns groups of events of one camera that follow each other, those that ended last first. The events are newest first.
export function groups(events) {
  const all = [];
  const open = new Map(); // by camera: the group that later events may belong to
  for (const event of [...events].reverse()) {
    const start = Date.parse(event.time);
    const end = event.end ? Date.parse(event.end) : start;
    let group = open.get(event.camera);
    if (!group || start - group.end > gap || start - group.start > longest) {
      group = { camera: event.camera, key: `${event.camera}/${event.id}`, start, end, events: [] };
      open.set(event.camera, group);
      all.push(group);
    }
    group.events.unshift(event);
    group.end = Math.max(group.end, end);
  }
  for (const group of all) complete(group);
  return all.sort((a, b) => b.end - a.end);
}

function complete(group) {
  const counts = new Map();
  for (const event of group.events) counts.set(event.label, (counts.get(event.label) ?? 0) + 1);
  group.title = [...counts].sort(([, a], [, b]) => b - a).map(([label, count]) => counted(count, label)).join(", ");
  const framed = group.events.filter((event) => event.frame);
  group.best = framed.length > 0 ? framed.reduce((a, b) => (b.score > a.score ? b : a)) : null;
  group.clip = group.events.some((event) => event.clip);
}

// merged returns events with newer versions of some, and with newer ones; all are newest first.
export function merged(events, newest) {
  const key = (event) => `${event.camera}/${event.id}`;
  const known = new Set(newest.map(key));
  return [...newest, ...events.filter((event) => !known.has(key(event)))];
}

// Timeline shows when events happened and what is recorded, with a row for each camera. It covers the last hours while end is null.
export class Timeline {
  // query returns the filters, moved is called when another time is shown, open with a group and a time in milliseconds, and play with a
  // camera and a time of its continuous recording.
  constructor(app, query, moved, open, play) {
    this.app = app;
    this.query = query;
    this.moved = moved;
    this.open = open;
    this.play = play;
    this.end = null;
    this.events = [];
    this.spans = []; // of continuous recordings
    this.problem = "";
    this.span = app.setting("span", 24);
    if (!spans.includes(this.span)) this.span = 24;
    this.element = el("div", { className: "timeline" });
    this.title = el("span", { className: "quiet number" });
    this.choices = spans.map((hours) => el("button", { onclick: () => this.choose(hours),title: `${hours} ${hours === 1 ? "hour" : "hours"}` }, `${hours} h`));
    this.later = el("button", { onclick: () => this.go(1), "aria-label": "Later" }, "›");
    this.nowButton = el("button", { onclick: () => this.show(null) }, "Now");
    this.tools = el("div", { className: "row" }, this.title, el("button", { onclick: () => this.go(-1), "aria-label": "Earlier" }, "‹"), this.later, this.nowButton,
      el("div", { className: "segments", role: "group", "aria-label": "Length of the timeline" }, ...this.choices));
  }

  close() {
    this.closed = true;
  }

  // start and until are the bounds in milliseconds.
  get until() {
    return this.end ?? Date.now();
  }

  get start() {
    return this.until - this.span * hour;
  }

  bounds() {
    return { after: new Date(this.start).toISOString(), before: new Date(this.until).toISOString() };
  }

  choose(hours) {
    const middle = this.until - (this.span * hour) / 2;
    this.span = hours;
    this.app.remember("span", hours);
    this.show(this.end && middle + (hours * hour) / 2);
  }

  go(step) {
    this.show(this.until + step * this.span * hour);
  }

  // show moves the end to a time in milliseconds, or to now with null or a time in the future.
  show(end) {
    this.end = end && end < Date.now() ? end : null;
    this.moved();
    this.load();
  }

  // showDay shows a day as in 2026-11-25 in the browser's time zone; an empty one is now.
  showDay(text) {
    if (text === "") {
      this.show(null);
      return;
    }
    this.span = 24;
    const [year, month, date] = text.split("-").map(Number);
    this.end = new Date(year, month - 1, date + 1).getTime(); // of today: in the future
    this.moved();
    this.load();
  }

  async load() {
    const loading = { ...this.query(), ...this.bounds(), limit: pageSize };
    this.loading = loading;
    const events = [];
    let problem = "";
    try {
      for (let cursor = ""; events.length < most;) {
        const page = await this.app.events(cursor ? { ...loading, cursor } : loading);
        if (this.loading !== loading || this.closed) return; // superseded
        events.push(...page.events);
        cursor = page.next ?? "";
        if (!cursor) break;
        if (events.length >= most) problem = `Only the newest ${most.toLocaleString("en")} events are on the timeline.`;
      }
    } catch {
      problem = ""; // the list says why
    }
    const { camera } = this.query();
    const spans = await this.app.spans({ ...(camera ? { camera } : {}), ...this.bounds() }).catch(() => []); // the list says why
    if (this.loading !== loading || this.closed) return;
    this.events = events;
    this.spans = spans;
    this.problem = problem;
    this.paint();
  }

  // add shows newer events that match as well.
  add(newest) {
    this.events = merged(this.events, newest).slice(0, most);
    this.paint();
  }

  paint() {
    const all = groups(this.events);
    const [start, until] = [this.start, this.until];
    const share = (time) => (100 * (Math.min(Math.max(time, start), until) - start)) / (until - start);
    this.title.textContent = this.end ? period(start, until) : "";
    this.later.disabled = this.nowButton.disabled = this.end === null;
    this.choices.forEach((button, i) => button.setAttribute("aria-pressed", spans[i] === this.span));
    const chosen = this.query().camera;
    const names = this.app.status.cameras.map((c) => c.capture.name).filter((name) => !chosen || name === chosen);
    const rows = names.map((name) => {
      const marks = all.filter((group) => group.camera === name).map((group) => {
        const mark = el("button", { className: "mark", title: `${period(group.start, group.end)}: ${group.title}`, "aria-label": `${period(group.start, group.end)}: ${group.title}` });
        mark.style.left = `min(${share(group.start)}%, 100% - 5px)`;
        mark.style.width = `${share(group.end) - share(group.start)}%`;
        mark.onclick = (event) => this.open(group, event.detail > 0 ? this.timeAt(event) : group.start);
        return mark;
      });
      const bands = this.spans.filter((span) => span.camera === name).map((span) => this.band(span, share));
      return el("div", { className: "row-of" }, el("span", { className: "name" }, name),
        el("div", { className: "track", role: "group", "aria-label": `Events and video of ${name}` }, ...bands, ...marks));
    });
    this.element.replaceChildren(...rows, el("div", { className: "row-of" }, el("span", { className: "name" }), this.axis(start, until, share)),
      ...(this.problem ? [el("p", { className: "quiet" }, this.problem)] : []));
  }

  // band returns the button of a stretch of continuous recording.
  band(span, share) {
    const [start, end] = [Date.parse(span.start), span.end ? Date.parse(span.end) : Date.now()];
    const text = `Video, ${period(start, end)}`;
    const band = el("button", { className: "band", title: text, "aria-label": text });
    band.style.left = `min(${share(start)}%, 100% - 2px)`;
    band.style.width = `${share(end) - share(start)}%`;
    band.onclick = (event) => this.play(span.camera, event.detail > 0 ? this.timeAt(event) : Math.max(start, this.start));
    return band;
  }

  // timeAt returns the time at which a row was pressed.
  timeAt(event) {
    const { left, width } = event.currentTarget.parentElement.getBoundingClientRect();
    return this.start + ((event.clientX - left) / width) * this.span * hour;
  }

  // axis returns the hours of the browser's time zone.
  axis(start, until, share) {
    const step = { 24: 3 * hour, 6: hour, 1: 10 * minute }[this.span];
    const zone = new Date(start).getTimezoneOffset() * minute;
    const ticks = [];
    for (let time = Math.ceil((start - zone) / step) * step + zone; time <= until; time += step) {
      const tick = el("span", {}, new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false }));
      tick.style.left = `${share(time)}%`;
      if (share(time) > 2 && share(time) < 98) ticks.push(tick);
    }
    return el("div", { className: "axis", "aria-hidden": "true" }, ...ticks);
  }
}
