// The connection: an event stream that is opened again for as long as the page is open.

/** Milliseconds without a word after which the connection counts as lost; there is a pulse a second. */
const SILENCE = 6000;
const FIRST = 500;
const LONGEST = 5000;

export class Feed {
  /** `on` has a function for each event, and `lost(since)`, `open()`. */
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.wait = FIRST;
    this.heard = performance.now();
    this.connect();
    setInterval(() => {
      if (this.source && performance.now() - this.heard > SILENCE) this.lost();
    }, 1000);
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
    this.source.close();
    this.source = null;
    this.on.lost(this.heard);
    setTimeout(() => this.connect(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(this.wait * 2, LONGEST);
  }
}
