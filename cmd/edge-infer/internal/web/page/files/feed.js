import { request } from "./api.js";
import { quantile } from "./dom.js";
import { canPlay, Player } from "./player.js";

// kept is the number of frames whose detections wait for the image of the same frame.
const kept = 240;

// shortestSilence is the least time without a frame after which an image is stale, in milliseconds.
const shortestSilence = 3000;

// rhythm is the number of frame intervals kept per camera; their median is not affected by a single interruption.
const rhythm = 9;

// trail is the number of positions kept of each tracked object.
const trail = 40;

// boxAge is how long detections are shown over a video whose later images have none, in microseconds.
const boxAge = 2e6;

// videoHeader is the length of what precedes the data of a message with video.
const videoHeader = 20;

// attempts is how often a camera's video may fail before it is shown as images.
const attempts = 3;

// steady is how long a video must play before its earlier failures do not count any more, in milliseconds.
const steady = 60000;

// Pauses before the video is asked for again, in milliseconds: after a lost connection, after one that was refused, and after one that was
// too slow.
const [lostPause, refusedPause, slowPause] = [1000, 15000, 60000];

// tooSlow is the code with which the server ends a WebSocket that does not keep up.
const tooSlow = 1013;

// Feed receives the streams of the server: detections of every camera, and of those that are shown their video, or images where there is
// no video that the browser plays. It reconnects by itself, and disconnects while the page is hidden, to save the device work.
export class Feed extends EventTarget {
  constructor() {
    super();
    this.cameras = new Map(); // by name, see camera
    this.shown = [];
    this.moving = false; // video is wanted
    this.connected = false;
    document.addEventListener("visibilitychange", () => this.restart());
    addEventListener("pagehide", () => this.stop());
    addEventListener("pageshow", (event) => event.persisted && this.restart());
  }

  camera(name) {
    let camera = this.cameras.get(name);
    if (!camera) {
      camera = {
        messages: new Map(), latest: null, latencies: [], ways: new Map(), heard: null, gaps: [],
        image: null, // the newest; null while video is shown
        player: null, // of the video
        seen: null, // when the newest image came on the screen
        still: false, // it is shown as images
        failures: 0, // of its video
      };
      this.cameras.set(name, camera);
    }
    return camera;
  }

  // silence returns the age of the newest image of a camera in milliseconds, null before the first.
  silence(name) {
    const camera = this.camera(name);
    if (camera.heard === null) return null;
    const seen = camera.seen ?? camera.heard;
    return performance.now() - (camera.player ? seen : Math.min(camera.heard, seen)); // video goes on without detections
  }

  // stale reports whether the newest image is old compared with the usual interval of the camera.
  stale(name) {
    const silence = this.silence(name);
    return silence !== null && silence > Math.max(shortestSilence, 4 * quantile([...this.camera(name).gaps].sort((a, b) => a - b), 0.5));
  }

  // show selects the cameras whose images are streamed, as video where moving is set.
  show(names, moving = false) {
    if (names.join("\n") === this.shown.join("\n") && moving === this.moving) return;
    this.shown = names;
    this.moving = moving;
    if (this.source) this.readVideo();
  }

  start() {
    this.openEvents();
    this.readVideo();
  }

  stop() {
    this.source?.close();
    this.source = null;
    this.images?.abort();
    this.images = null;
    this.closeVideo();
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
    camera.player?.detected(message.captured_us);
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

  // at returns the detections of an image of the video. For an image without its own, boxes are between those of the image before and the
  // one after it, if these are there already.
  at(name, captured) {
    let [before, after] = [null, null];
    for (const message of this.camera(name).messages.values()) {
      const age = captured - message.captured_us;
      if (age >= 0 && age < boxAge && (!before || message.captured_us >= before.captured_us)) before = message;
      if (age < 0 && -age < boxAge && (!after || message.captured_us < after.captured_us)) after = message;
    }
    if (!before || !after || before.captured_us === captured) return before;
    const share = (captured - before.captured_us) / (after.captured_us - before.captured_us);
    const later = new Map([...after.lost, ...after.detections].filter((d) => d.track).map((d) => [d.track, d]));
    return { ...before, share, detections: before.detections.map((d) => between(d, later.get(d.track), share)) };
  }

  closeVideo() {
    clearTimeout(this.videoAgain);
    if (this.socket) closeSocket(this.socket);
    this.socket = null;
    for (const camera of this.cameras.values()) {
      camera.player?.close();
      camera.player = null;
    }
  }

  // readVideo asks for the video of the cameras that are shown, except for those that have none for this browser, and for images of the
  // others.
  readVideo() {
    this.closeVideo();
    for (const name of this.shown) this.camera(name).still = !this.moving || this.camera(name).failures >= attempts;
    this.readImages();
    const names = this.shown.filter((name) => !this.camera(name).still);
    if (names.length === 0) return;
    const address = new URL(`/api/video?${new URLSearchParams(names.map((name) => ["camera", name]))}`, location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new WebSocket(address);
    let heard = false;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      heard = true;
      if (typeof data === "string") this.describeVideo(names, JSON.parse(data));
      else this.addVideo(names, data);
    };
    socket.onclose = ({ code }) => {
      const refused = !heard || code === tooSlow;
      this.closeVideo();
      if (refused) this.useImages(names);
      this.videoAgain = setTimeout(() => this.readVideo(), code === tooSlow ? slowPause : heard ? lostPause : refusedPause);
    };
    this.socket = socket;
  }

  // describeVideo begins with another video of a camera.
  describeVideo(names, { camera: index, codec }) {
    const name = names[index];
    const camera = this.camera(name);
    camera.player?.close();
    camera.player = null;
    if (!canPlay(codec)) {
      if (codec !== "") camera.failures = attempts;
      this.useImages([name]);
      if (codec !== "") this.readVideo(); // without this camera
      return;
    }
    const player = new Player(codec);
    camera.player = player;
    player.addEventListener("frame", () => {
      camera.seen = performance.now();
      if (camera.seen - player.begun > steady) camera.failures = 0;
      camera.image?.bitmap.close();
      camera.image = null;
      if (camera.still) {
        camera.still = false;
        this.readImages();
      }
      this.dispatchEvent(new CustomEvent("frame", { detail: name }));
    });
    player.addEventListener("failed", () => {
      camera.failures++;
      this.readVideo();
    });
  }

  addVideo(names, data) {
    const view = new DataView(data);
    const name = names[view.getUint32(0)];
    this.camera(name).player?.append(new Uint8Array(data, videoHeader), view.getFloat64(4), view.getFloat64(12));
  }

  useImages(names) {
    if (names.every((name) => this.camera(name).still)) return;
    for (const name of names) this.camera(name).still = true;
    this.readImages();
  }

  async readImages() {
    this.images?.abort();
    const control = new AbortController();
    this.images = control;
    for (;;) {
      const names = this.shown.filter((name) => this.camera(name).still);
      if (control.signal.aborted || names.length === 0) return;
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
      camera.seen = performance.now();
      camera.image = { bitmap, width, height, seq: Number(field("x-sequence")) };
      this.dispatchEvent(new CustomEvent("frame", { detail: name }));
    }
  }
}

// between returns a detection at a share of its way to a later one of its track. Shapes other than boxes stay where they are.
function between(d, later, share) {
  if (!later || d.mask || d.corners || d.keypoints) return d;
  return { ...d, box: d.box.map((v, i) => v + share * (later.box[i] - v)) };
}

// closeSocket closes a WebSocket that is not needed any more, once it is open: browsers warn of one that is closed before.
function closeSocket(socket) {
  socket.onmessage = null;
  socket.onclose = null;
  if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
  else socket.close();
}
