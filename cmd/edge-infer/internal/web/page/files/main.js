import { getJSON } from "./api.js";
import { Cameras } from "./cameras.js";
import { Editor } from "./editor.js";
import { Events } from "./events.js";
import { Feed } from "./feed.js";
import { History } from "./history.js";
import { Live } from "./live.js";
import { System } from "./system.js";

const pages = { live: Live, zones: Editor, events: Events, history: History, cameras: Cameras, system: System };

// answerTime is the timeout for a status request in milliseconds.
const answerTime = 5000;

// pause is the interval between two status requests in milliseconds.
const pause = 2000;

class App {
  constructor() {
    this.feed = new Feed();
    this.drawn = {}; // by camera: the last painted boxes, in source and in canvas pixels
    this.status = null;
    this.drafts = new Map(); // by camera: unsaved shapes
    this.overlay = { boxes: true, names: true, ids: true, trails: true, zones: true, ...this.setting("overlay", {}) }; // on live images
    this.pill = document.getElementById("connection");
    this.feed.addEventListener("connection", () => this.showConnection());
    addEventListener("hashchange", () => this.route());
    addEventListener("beforeunload", (event) => {
      if (this.view?.unsaved || this.drafts.size > 0) event.preventDefault(); // the browser asks
    });
  }

  async start() {
    await this.poll();
    this.feed.start();
    this.route();
  }

  // poll refreshes the status while the page is open.
  async poll() {
    await this.refresh();
    setTimeout(() => (document.hidden ? this.wait() : this.poll()), pause);
    if (!this.view && this.status) this.route();
  }

  async refresh() {
    try {
      this.status = await getJSON("/api/status", { signal: AbortSignal.timeout(answerTime) });
      document.getElementById("device").textContent = this.status.device || "edge-infer";
      document.title = this.status.device ? `${this.status.device}: edge-infer` : "edge-infer";
      document.getElementById("logout").hidden = !this.status.login;
      this.reachable = true;
      this.view?.update(this.status);
    } catch (error) {
      if (!(error instanceof TypeError) && error.name !== "TimeoutError") throw error;
      this.reachable = false;
    } finally {
      this.showConnection();
    }
  }

  wait() {
    document.addEventListener("visibilitychange", () => this.poll(), { once: true });
  }

  // setting returns what the browser remembers under a name.
  setting(name, otherwise) {
    try {
      return JSON.parse(localStorage.getItem(name)) ?? otherwise;
    } catch {
      return otherwise;
    }
  }

  remember(name, value) {
    localStorage.setItem(name, JSON.stringify(value));
  }

  get connected() {
    return this.feed.connected && this.reachable;
  }

  showConnection() {
    this.pill.className = this.connected ? "pill good" : "pill";
    const text = this.connected ? "live" : "connecting";
    if (this.pill.textContent !== text) this.pill.textContent = text;
  }

  // events returns a page of stored events that match the query, newest first.
  events(query) {
    return getJSON(`/api/events?${new URLSearchParams(query)}`);
  }

  // spans returns the stretches of time that are recorded continuously, newest first.
  async spans(query) {
    return (await getJSON(`/api/recordings/spans?${new URLSearchParams(query)}`)).spans;
  }

  route() {
    if (!this.status) return;
    const [name, argument] = location.hash.slice(1).split("/");
    const page = pages[name] ? name : "live";
    for (const link of document.querySelectorAll("nav a")) {
      if (link.hash === `#${page}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    this.view?.close();
    this.view = new pages[page](document.getElementById("view"), this, argument && decodeURIComponent(argument));
  }
}

window.edgeInfer = new App();
window.edgeInfer.start();
