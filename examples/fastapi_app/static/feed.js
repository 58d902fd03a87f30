// The connection: an event stream that is reopened while the page is visible.
//
// With HTTP/1.1, a browser opens at most six connections to a host, and each open page takes one for
// its stream. Hidden pages close their streams; otherwise a seventh tab could not load.

/** Milliseconds without data after which the connection counts as lost; the server sends every second. */
const IDLE_TIMEOUT = 6000;
const FIRST = 500;
const LONGEST = 5000;
/** Milliseconds for which a hidden page keeps its stream, since users often return from another tab at once. */
const LINGER = 3000;

export class Feed {
  /** `on` has a function for each event, and the functions `lost(since)` and `open()`. */
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.wait = FIRST;
    this.receivedAt = performance.now();
    this.source = null;
    this.again = this.leaving = 0; // timers
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.leaving = setTimeout(() => this.rest(), LINGER);
      else this.resume();
    });
    addEventListener("pagehide", () => this.rest());
    addEventListener("pageshow", () => this.resume()); // from the back/forward cache too
    addEventListener("online", () => this.resume());
    setInterval(() => {
      if (this.source && performance.now() - this.receivedAt > IDLE_TIMEOUT) this.lost();
    }, 1000);
    this.resume();
  }

  /** Open the connection if the page is visible. */
  resume() {
    clearTimeout(this.leaving);
    if (this.source || document.hidden) return;
    clearTimeout(this.again);
    this.connect();
  }

  /** Close the connection until the page is visible again. */
  rest() {
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
  }

  connect() {
    this.receivedAt = performance.now();
    const source = (this.source = new EventSource(this.url));
    for (const name of ["reset", "added", "updated", "deleted", "synced", "health", "failed"]) {
      source.addEventListener(name, (event) => {
        if (this.source !== source) return;
        this.receivedAt = performance.now();
        if (name === "reset") {
          this.wait = FIRST;
          this.on.open();
        }
        this.on[name]?.(JSON.parse(event.data));
      });
    }
    source.onerror = () => {
      if (this.source === source) this.lost();
    };
  }

  lost() {
    this.rest();
    this.on.lost(this.receivedAt);
    if (document.hidden) return;
    this.again = setTimeout(() => this.connect(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(this.wait * 2, LONGEST);
  }
}
