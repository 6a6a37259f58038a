import { request } from "./api.js";
import { quantile } from "./dom.js";

// kept is the number of frames whose detections wait for the image of the same frame.
const kept = 240;

// shortestSilence is the least time without a frame after which an image is stale, in milliseconds.
const shortestSilence = 3000;

// rhythm is the number of frame intervals kept per camera; their median is not affected by a single interruption.
const rhythm = 9;

// trail is the number of positions kept of each tracked object.
const trail = 40;

// Feed receives the streams of the server: detections of every camera, images of those that are shown. It reconnects by itself, and
// disconnects while the page is hidden, to save the device work.
export class Feed extends EventTarget {
  constructor() {
    super();
    this.cameras = new Map(); // by name: {messages, latest, image, latencies, ways, heard, gaps}
    this.shown = [];
    this.connected = false;
    document.addEventListener("visibilitychange", () => this.restart());
    addEventListener("pagehide", () => this.stop());
    addEventListener("pageshow", (event) => event.persisted && this.restart());
  }

  camera(name) {
    let camera = this.cameras.get(name);
    if (!camera) {
      camera = { messages: new Map(), latest: null, image: null, latencies: [], ways: new Map(), heard: null, gaps: [] };
      this.cameras.set(name, camera);
    }
    return camera;
  }

  // silence returns the age of the newest image of a camera in milliseconds, null before the first.
  silence(name) {
    const camera = this.camera(name);
    return camera.heard === null ? null : performance.now() - Math.min(camera.heard, camera.image?.at ?? camera.heard);
  }

  // stale reports whether the newest image is old compared with the usual interval of the camera.
  stale(name) {
    const silence = this.silence(name);
    return silence !== null && silence > Math.max(shortestSilence, 4 * quantile([...this.camera(name).gaps].sort((a, b) => a - b), 0.5));
  }

  // show selects the cameras whose images are streamed.
  show(names) {
    if (names.join("\n") === this.shown.join("\n")) return;
    this.shown = names;
    this.readImages();
  }

  start() {
    this.openEvents();
    this.readImages();
  }

  stop() {
    this.source?.close();
    this.source = null;
    this.images?.abort();
    this.images = null;
    clearTimeout(this.again);
  }

  restart() {
    this.stop();
    if (!document.hidden) this.start();
  }

  connection(connected) {
    if (this.connected === connected) return;
    this.connected = connected;
    this.dispatchEvent(new CustomEvent("connection", { detail: connected }));
  }

  openEvents() {
    this.source?.close();
    const source = new EventSource("/api/detections");
    this.source = source;
    source.addEventListener("open", () => this.connection(true));
    source.addEventListener("frame", (event) => this.message(JSON.parse(event.data)));
    source.addEventListener("event", (event) => this.dispatchEvent(new CustomEvent("happened", { detail: JSON.parse(event.data) })));
    source.addEventListener("error", () => {
      this.connection(false);
      // The browser reconnects after a lost connection, but not after an HTTP error.
      if (source.readyState === EventSource.CLOSED && this.source === source) this.again = setTimeout(() => this.openEvents(), 2000);
    });
  }

  message(message) {
    const camera = this.camera(message.camera);
    camera.messages.set(message.seq, message);
    if (camera.messages.size > kept) camera.messages.delete(camera.messages.keys().next().value);
    camera.latest = message;
    const now = performance.now();
    if (camera.heard !== null) camera.gaps = [...camera.gaps.slice(1 - rhythm), now - camera.heard];
    camera.heard = now;
    this.follow(camera.ways, message);
    camera.latencies.push(message.latency_ms);
    if (camera.latencies.length > 600) camera.latencies.splice(0, 300);
    this.dispatchEvent(new CustomEvent("frame", { detail: message.camera }));
  }

  // follow records the positions of each tracked object.
  follow(ways, message) {
    for (const d of message.detections) {
      if (!d.track) continue;
      if (!ways.has(d.track)) ways.set(d.track, []);
      const way = ways.get(d.track);
      way.push({ seq: message.seq, x: (d.box[0] + d.box[2]) / 2, y: (d.box[1] + d.box[3]) / 2 });
      if (way.length > trail) way.shift();
    }
    for (const [track, way] of ways) if (message.seq - way.at(-1).seq > kept || message.seq < way.at(-1).seq) ways.delete(track);
  }

  async readImages() {
    this.images?.abort();
    const control = new AbortController();
    this.images = control;
    while (!control.signal.aborted && this.shown.length > 0) {
      const names = this.shown;
      try {
        const query = names.map((name) => `camera=${encodeURIComponent(name)}`).join("&");
        const response = await request(`/api/images?${query}`, { signal: control.signal });
        if (response.ok) await this.parts(response.body, names, control.signal);
      } catch (error) {
        if (error.name !== "AbortError" && !(error instanceof TypeError)) throw error;
      }
      if (!control.signal.aborted) await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }

  // parts reads a multipart stream. Waiting until each image is decoded makes the server skip images that the browser cannot show in time.
  async parts(body, names, signal) {
    const reader = body.getReader();
    const decoder = new TextDecoder("latin1");
    let buffer = new Uint8Array(0);
    const more = async () => {
      const { done, value } = await reader.read();
      if (done) return false;
      const joined = new Uint8Array(buffer.length + value.length);
      joined.set(buffer);
      joined.set(value, buffer.length);
      buffer = joined;
      return true;
    };
    for (;;) {
      const text = decoder.decode(buffer.subarray(0, 1024));
      const start = text.search(/[^\r\n]/);
      const end = start < 0 ? -1 : text.indexOf("\r\n\r\n", start);
      if (end < 0) {
        if (!(await more())) return;
        continue;
      }
      const head = text.slice(0, end);
      const field = (name) => new RegExp(`^${name}: *(\\S+)`, "im").exec(head)?.[1] ?? "";
      const length = Number(field("content-length"));
      while (buffer.length < end + 4 + length) if (!(await more())) return;
      const jpeg = buffer.slice(end + 4, end + 4 + length);
      buffer = buffer.slice(end + 4 + length);
      const [width, height] = field("x-size").split("x").map(Number);
      const bitmap = await createImageBitmap(new Blob([jpeg], { type: "image/jpeg" }));
      if (signal.aborted) return;
      const name = names[Number(field("x-camera"))];
      const camera = this.camera(name);
      camera.image?.bitmap.close();
      camera.image = { bitmap, width, height, seq: Number(field("x-sequence")), at: performance.now() };
      this.dispatchEvent(new CustomEvent("frame", { detail: name }));
    }
  }
}
