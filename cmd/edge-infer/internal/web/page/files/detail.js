import { getJSON } from "./api.js";
import { colour, el, period, when } from "./dom.js";

// lead is how long before the chosen time a clip is played from, in seconds.
const lead = 1;

// late is how long after a chosen time a file of a continuous recording may begin, in milliseconds.
const late = 5000;

// Detail is the dialog that shows a group of events: its clip, and of each object the whole frame with its track, and its best view. It
// also plays continuous recordings.
export class Detail {
  constructor(close) {
    this.closeButton = el("button", { autofocus: true, onclick: close }, "Close");
    this.element = el("dialog", { className: "card", onclose: () => this.closed() });
  }

  // closed ends what plays, unless the dialog has been opened again before the browser reported its end.
  closed() {
    if (!this.element.open) this.element.replaceChildren();
  }

  // show opens the dialog at an event of the group and, with a time in milliseconds, at this time of its clip.
  show(group, at) {
    const near = (event) => Math.abs(Date.parse(event.time) - at);
    const order = [...group.events].reverse(); // oldest first
    let chosen = group.best ?? order[0];
    if (at !== undefined) chosen = order.reduce((a, b) => (near(b) < near(a) ? b : a));
    this.element.ariaLabel = "Event";
    this.media = el("div", { className: "media" });
    this.facts = el("div", { className: "stack" });
    this.buttons = new Map(order.map((event) => [event, el("button", { onclick: () => this.choose(event) }, name(event))]));
    const members = el("div", { className: "members row", role: "group", "aria-label": "Objects", hidden: order.length < 2 }, ...this.buttons.values());
    this.element.replaceChildren(
      el("div", { className: "bar" }, el("div", { className: "grow" }, el("h2", {}, group.title),
        el("p", { className: "quiet" }, `${group.camera}, ${period(group.start, group.end)}`)), this.closeButton),
      el("div", { className: "event" }, this.media, el("div", { className: "pad stack" }, this.facts, members)));
    this.choose(chosen, at ?? Date.parse(chosen.time));
    if (!this.element.open) this.element.showModal();
  }

  // play opens the dialog with the continuous recording of a camera from a time in milliseconds on, file after file.
  async play(camera, at) {
    const media = el("div", { className: "media" });
    const time = el("p", { className: "quiet" }, `${camera}, ${when(at)}`);
    const link = el("a", { download: "", hidden: true }, "Download this minute");
    this.media = media;
    this.element.ariaLabel = "Recording";
    this.element.replaceChildren(el("div", { className: "bar" }, el("div", { className: "grow" }, el("h2", {}, "Recording"), time), this.closeButton),
      media, el("div", { className: "pad" }, link));
    if (!this.element.open) this.element.showModal();
    let last; // the file before
    const show = async (from) => {
      const file = await recorded(camera, from).catch(() => null);
      if (this.media !== media || !media.isConnected || (last && file?.id === last)) return; // closed, another one is shown, or it is still recorded
      if (!file) {
        if (!last) media.replaceChildren(el("p", { className: "none" }, "There is no video of this time, or it has been removed to free space."));
        return;
      }
      last = file.id;
      const start = Date.parse(file.start);
      time.textContent = `${camera}, ${when(Math.max(from, start))}`;
      link.href = file.video;
      link.hidden = false;
      const shown = player(file.video, `Recording of ${camera}`, (from - start) / 1000);
      shown.video.addEventListener("ended", () => show(file.end ? Date.parse(file.end) + 1 : start + shown.video.duration * 1000));
      media.replaceChildren(shown.element);
    };
    await show(at);
  }

  choose(event, at = Date.parse(event.time)) {
    this.chosen = event;
    for (const [other, button] of this.buttons) button.setAttribute("aria-pressed", other === event);
    this.buttons.get(event).scrollIntoView({ block: "nearest" });
    const lines = (event.lines ?? []).map((crossing) => `crossed ${crossing.line} ${crossing.direction === "in" ? "inwards" : "outwards"}`);
    const attributes = Object.entries(event.attributes ?? {}).map(([key, attribute]) => `${key} ${attribute.value}`);
    const stay = event.end ? `${((Date.parse(event.end) - Date.parse(event.time)) / 1000).toFixed(1)} s` : "still there";
    const facts = {
      Object: name(event), Score: `${Math.round(event.score * 100)}%`, From: when(event.time), Stay: stay, Zones: (event.zones ?? []).join(", "),
      Lines: lines.join(", "), Attributes: attributes.join(", "),
      Verified: { true: "yes", false: "no answer" }[event.verified],
    };
    this.facts.replaceChildren(
      el("dl", {}, ...Object.entries(facts).filter(([, value]) => value).flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)])),
      ...(event.crop ? [el("img", { className: "crop", src: event.crop, alt: `Best view of ${name(event)}` })] : []),
      ...(event.clip ? [el("a", { href: event.clip, download: "" }, "Download the clip")] : []));
    const none = el("p", { className: "none" }, "No image is kept of this event.");
    this.media.replaceChildren(...(event.clip ? [clip(event, at)] : []), ...(event.frame ? [frame(event)] : []),
      ...(event.clip || event.frame ? [] : [none]));
    if (!event.clip) this.addRecording(event, at - 1000 * lead, none);
  }

  // addRecording adds the video of an event without a clip if its camera is recorded continuously. It replaces none if that is shown.
  async addRecording(event, at, none) {
    const { media } = this;
    const file = await recorded(event.camera, at).catch(() => null);
    if (!file || !media.isConnected || this.media !== media || this.chosen !== event) return;
    none.remove();
    media.prepend(player(file.video, `Recording of ${name(event)}`, (at - Date.parse(file.start)) / 1000).element);
  }
}

const name = (event) => `${event.label} ${event.id.split("-").pop()}`;

// clip returns the video of an event at a time in milliseconds.
const clip = (event, at) => player(event.clip, `Clip of ${name(event)}`, (at - Date.parse(event.clip_start)) / 1000 - lead).element;

// player returns a video that begins at a time in seconds, and the element that shows it.
function player(src, label, seconds) {
  const problem = el("p", { className: "quiet pad", hidden: true }, "This browser cannot play the video. It can be downloaded.");
  const video = el("video", { src, controls: true, muted: true, autoplay: true, playsInline: true, preload: "metadata", "aria-label": label });
  video.addEventListener("loadedmetadata", () => {
    if (seconds > 0) video.currentTime = seconds;
  });
  video.addEventListener("error", () => {
    video.hidden = true;
    problem.hidden = false;
  });
  return { element: el("div", {}, video, problem), video };
}

// recorded returns the file of a camera's continuous recording that shows a time in milliseconds or begins soon after it; null for none.
async function recorded(camera, at) {
  const time = (after) => new Date(at + after).toISOString();
  const { recordings } = await getJSON(`/api/recordings?${new URLSearchParams({ camera, after: time(0), before: time(late), limit: 20 })}`);
  return recordings.at(-1) ?? null;
}

// frame returns the whole frame of an event, with the object's box and its track.
function frame(event) {
  const canvas = el("canvas", { role: "img", "aria-label": `Whole frame of ${name(event)}` });
  const image = el("img", { src: event.frame, alt: "" });
  image.addEventListener("load", () => {
    canvas.width = Math.max(image.naturalWidth, 640);
    canvas.height = (canvas.width * image.naturalHeight) / image.naturalWidth;
    const context = canvas.getContext("2d");
    const scale = canvas.width / event.width;
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    context.strokeStyle = colour(0);
    context.lineWidth = Math.max(2, canvas.width / 400);
    const [x1, y1, x2, y2] = event.box.map((v) => v * scale);
    context.strokeRect(x1, y1, x2 - x1, y2 - y1);
    context.setLineDash([context.lineWidth * 3, context.lineWidth * 2]);
    context.beginPath();
    (event.path ?? []).forEach(([x, y], i) => (i === 0 ? context.moveTo(x * scale, y * scale) : context.lineTo(x * scale, y * scale)));
    context.stroke();
  }, { once: true });
  return canvas;
}
