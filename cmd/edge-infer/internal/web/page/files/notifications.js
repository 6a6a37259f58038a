import { getJSON, sendJSON } from "./api.js";
import { el } from "./dom.js";

// The script of the service worker. The policy allows this one only.
const worker = window.trustedTypes ? trustedTypes.createPolicy("edge-infer", { createScriptURL: () => "/sw.js" }).createScriptURL("") : "/sw.js";

// Notifications has this browser notified of new objects while the page is closed.
export class Notifications {
  constructor(app) {
    this.app = app;
    this.camera = el("select", { id: "notify-camera" });
    this.label = el("select", { id: "notify-label" });
    this.button = el("button", { type: "button", disabled: true, onclick: () => this.toggle() }, "Notify this browser");
    this.text = el("p", { role: "status" });
    this.form = el("div", { className: "bar" }, el("label", { for: "notify-camera" }, "Camera"), this.camera,
      el("label", { for: "notify-label" }, "Label"), this.label, this.button);
    this.element = el("div", {}, this.form, this.text);
    this.begin();
  }

  // begin finds out whether this browser can be notified, and whether it is.
  async begin() {
    try {
      const reason = await this.prepare();
      this.text.textContent = reason;
      this.form.hidden = reason !== "";
    } catch (error) {
      this.text.textContent = error.message;
      this.form.hidden = true;
    }
    if (!this.form.hidden) this.show();
  }

  async prepare() {
    if (!isSecureContext) return "Browsers take notifications from pages over HTTPS only: set web.certificate and web.key.";
    if (!("serviceWorker" in navigator) || !("PushManager" in window)) return "This browser takes no notifications. On an iPhone, add the page to the home screen first.";
    const { key, problem } = await getJSON("/api/notifications");
    if (problem) return problem;
    this.key = key;
    this.registration = await navigator.serviceWorker.register(worker);
    this.subscription = await this.registration.pushManager.getSubscription();
    return "";
  }

  show() {
    this.button.disabled = false;
    this.button.textContent = this.subscription ? "Stop notifying this browser" : "Notify this browser";
    this.button.setAttribute("aria-pressed", Boolean(this.subscription));
    this.camera.disabled = this.label.disabled = Boolean(this.subscription);
  }

  update(status) {
    options(this.camera, "all cameras", status.cameras.map((c) => c.capture.name));
    options(this.label, "anything", status.engine.labels ?? []);
  }

  async toggle() {
    this.button.disabled = true;
    this.text.textContent = "";
    try {
      await (this.subscription ? this.stop() : this.start());
    } catch (error) {
      this.text.textContent = error.name === "NotAllowedError" ? "The browser does not allow notifications: change that in its settings for this page." : error.message;
    }
    this.show();
  }

  async start() {
    const subscription = await this.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: this.key });
    const { endpoint, keys } = subscription.toJSON();
    try {
      await sendJSON("POST", "/api/notifications", {
        endpoint, ...keys, cameras: this.camera.value ? [this.camera.value] : [], labels: this.label.value ? [this.label.value] : [],
      });
    } catch (error) {
      await subscription.unsubscribe();
      throw error;
    }
    this.subscription = subscription;
    this.text.textContent = "This browser is notified of new objects, also while the page is closed.";
  }

  async stop() {
    await sendJSON("DELETE", "/api/notifications", { endpoint: this.subscription.endpoint });
    await this.subscription.unsubscribe();
    this.subscription = null;
  }
}

// options fills a selection: none for all, then the values.
function options(select, all, values) {
  if (select.length === values.length + 1 && values.every((value, i) => select.options[i + 1].value === value)) return;
  const before = select.value;
  select.replaceChildren(el("option", { value: "" }, all), ...values.map((value) => el("option", { value }, value)));
  select.value = values.includes(before) ? before : "";
}
