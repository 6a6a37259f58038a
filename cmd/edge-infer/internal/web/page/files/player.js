// An image is shown that many seconds after it has arrived: jitter does not show, and the detections of the next image that has some have
// arrived, so that boxes stay in step. Further behind than the delay and slack the video plays faster, and behind jump it is skipped to.
const [leastDelay, mostDelay] = [0.3, 2];
const slack = 0.5;
const jump = 4;

// kept is how much video stays in memory behind the image on the screen, in seconds.
const kept = 10;

// backlog is the number of fragments that may wait for the browser.
const backlog = 600;

// stuck is the time in milliseconds without a new image on the screen after which the player fails, if many have arrived meanwhile.
const stuck = 8000;
const many = 20;

const Source = window.ManagedMediaSource ?? window.MediaSource;

// canPlay reports whether the browser plays video of a codec and says which image is on the screen.
export function canPlay(codec) {
  const shows = Source && "requestVideoFrameCallback" in HTMLVideoElement.prototype;
  return Boolean(shows) && codec !== "" && Source.isTypeSupported(`video/mp4; codecs="${codec}"`);
}

// Player plays fragments of MP4 as they arrive, close to the newest one. It dispatches "frame" when another image is on the screen, and
// "failed", after which it is of no use.
export class Player extends EventTarget {
  constructor(codec) {
    super();
    this.waiting = []; // fragments
    this.times = []; // of images: {shown, captured}, oldest first
    this.captured = null; // when the image on the screen was received, in microseconds of the device's clock
    this.moved = performance.now(); // when the last image came on the screen
    this.arrived = 0; // fragments since then
    this.begun = performance.now();
    this.delay = leastDelay;
    this.newest = null; // when the newest image was received, and the newest one with detections
    this.detection = null;
    this.video = document.createElement("video");
    this.video.muted = true;
    this.video.playsInline = true;
    this.video.disableRemotePlayback = true;
    this.video.addEventListener("error", () => this.fail());
    this.source = new Source();
    this.source.addEventListener("sourceopen", () => this.open(codec), { once: true });
    this.address = URL.createObjectURL(this.source);
    this.video.src = this.address;
    this.follow();
  }

  open(codec) {
    URL.revokeObjectURL(this.address);
    if (this.closed) return;
    try {
      this.buffer = this.source.addSourceBuffer(`video/mp4; codecs="${codec}"`);
    } catch {
      this.fail(); // the browser has too many decoders open
      return;
    }
    this.buffer.addEventListener("updateend", () => this.advance());
    this.buffer.addEventListener("error", () => this.fail());
    this.advance();
  }

  // follow notes which image is on the screen.
  follow() {
    this.video.requestVideoFrameCallback((now, { mediaTime, width, height }) => {
      if (this.closed) return;
      this.follow();
      this.moved = performance.now();
      this.arrived = 0;
      let at = this.times.findIndex(({ shown }) => shown > mediaTime + 0.001) - 1;
      if (at < -1) at = this.times.length - 1;
      if (at < 0) return;
      this.captured = this.times[at].captured;
      this.times.splice(0, at);
      this.width = width;
      this.height = height;
      this.dispatchEvent(new Event("frame"));
    });
  }

  // append adds the initialization segment, or a fragment with one image: when it is shown, in seconds, and when it was received.
  append(data, shown, captured) {
    if (this.closed) return;
    if (shown >= 0) {
      this.newest = Math.max(this.newest, captured);
      let at = this.times.length; // images with references to later ones arrive after these
      while (at > 0 && this.times[at - 1].shown > shown) at--;
      this.times.splice(at, 0, { shown, captured });
      if (this.times.length > backlog) this.times.shift();
    }
    this.waiting.push(data);
    this.arrived++;
    if (this.waiting.length > backlog || (this.arrived > many && performance.now() - this.moved > stuck)) this.fail();
    else this.advance();
  }

  // detected adapts the delay to how long detections take: captured is when their image was received.
  detected(captured) {
    const before = this.detection;
    this.detection = captured;
    if (!before || !this.newest || captured <= before) return;
    const needed = Math.min(Math.max((this.newest - before) / 1e6 + 0.1, leastDelay), mostDelay);
    this.delay = needed > this.delay ? needed : this.delay + 0.02 * (needed - this.delay);
  }

  // advance gives the browser what waits, removes what has been seen and keeps close to the newest image.
  advance() {
    const { buffer, video } = this;
    if (this.closed || !buffer || buffer.updating) return;
    try {
      this.keepUp();
      const start = buffer.buffered.length > 0 ? buffer.buffered.start(0) : 0;
      if (video.currentTime - start > 2 * kept) {
        buffer.remove(0, video.currentTime - kept);
        return;
      }
      if (this.waiting.length > 0) buffer.appendBuffer(this.joined());
    } catch {
      this.fail(); // no memory, or the video is not what was announced
    }
  }

  // joined returns all that waits.
  joined() {
    const parts = this.waiting;
    this.waiting = [];
    if (parts.length === 1) return parts[0];
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  keepUp() {
    const { video } = this;
    const { buffered } = this.buffer;
    if (buffered.length === 0) return;
    const last = buffered.length - 1;
    const [start, end] = [buffered.start(last), buffered.end(last)];
    const behind = end - video.currentTime;
    if (behind > jump || video.currentTime < start) video.currentTime = Math.max(start, end - this.delay); // after a gap, or at the start
    const rate = video.playbackRate;
    if (behind > this.delay + slack) video.playbackRate = 1.15;
    else if (behind < this.delay / 2) video.playbackRate = 0.9;
    else if ((rate > 1 && behind <= this.delay) || (rate < 1 && behind >= this.delay)) video.playbackRate = 1;
    if (video.paused) video.play().catch(() => {}); // it is tried again with the next fragment
  }

  fail() {
    if (this.closed) return;
    this.close();
    this.dispatchEvent(new Event("failed"));
  }

  close() {
    this.closed = true;
    this.waiting = [];
    this.video.pause();
    this.video.removeAttribute("src");
    this.video.load();
  }
}
