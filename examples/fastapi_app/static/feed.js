// The connection: an event stream that is opened again for as long as somebody looks at the page.
//
// A browser has six connections to a host, HTTP/1.1 being what it is, and each open page takes one
// for its stream. Pages that nobody looks at let theirs go: the seventh tab would stay white.

/** Milliseconds without a word after which the connection counts as lost; there is a pulse a second. */
const SILENCE = 6000;
const FIRST = 500;
const LONGEST = 5000;
/** Milliseconds for which a page that was hidden keeps its stream: people look at another tab, and come back. */
const LINGER = 3000;

export class Feed {
  /** `on` has a function for each event, and `lost(since)`, `open()`. */
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.wait = FIRST;
    this.heard = performance.now();
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
      if (this.source && performance.now() - this.heard > SILENCE) this.lost();
    }, 1000);
    this.resume();
  }

  /** Have a connection now, unless nobody looks. */
  resume() {
    clearTimeout(this.leaving);
    if (this.source || document.hidden) return;
    clearTimeout(this.again);
    this.connect();
  }

  /** Let the connection go, until somebody looks. */
  rest() {
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
  }

  connect() {
    this.heard = performance.now();
    const source = (this.source = new EventSource(this.url));
    for (const name of ["reset", "added", "updated", "deleted", "synced", "health", "failed"]) {
      source.addEventListener(name, (event) => {
        if (this.source !== source) return;
        this.heard = performance.now();
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
    this.on.lost(this.heard);
    if (document.hidden) return;
    this.again = setTimeout(() => this.connect(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(this.wait * 2, LONGEST);
  }
}
