// What the page knows: objects by resource, and what changed when. No DOM here.
//
// A stream begins with `reset`, everything that is cached, and `synced`; after a break it does so
// again. Rows stay meanwhile: what wasn't told again has gone, what is told in the version that
// is known hasn't changed.

/** How long a change is shown, in milliseconds. */
export const SHOWN = 1500;

/** Labels that say least come last. */
const DULL = /(managed-by|-hash)$/;

export class Store {
  constructor() {
    this.tables = new Map(); // resource -> key -> row
    this.round = 0; // of `reset`s
    this.synced = false;
    this.first = true;
    this.changes = 0; // grows with each change, so that views know whether to look again
  }

  table(of) {
    let table = this.tables.get(of);
    if (!table) this.tables.set(of, (table = new Map()));
    return table;
  }

  reset() {
    this.round += 1;
    this.synced = false;
  }

  put(row, now) {
    const table = this.table(row.of);
    const key = `${row.namespace}/${row.name}`;
    const known = table.get(key);
    this.changes += 1;
    if (known && known.uid === row.uid && known.version === row.version && !known.gone) {
      known.round = this.round;
      return;
    }
    row.key = key;
    row.round = this.round;
    row.born = Date.parse(row.created) || 0;
    const labels = Object.entries(row.labels).sort(([a], [b]) => DULL.test(a) - DULL.test(b));
    row.labelText = labels.map(([name, value]) => `${name}=${value}`).join(" ");
    row.shortLabels = row.labelText.replaceAll(/(^| )[^ /=]+\//g, "$1"); // the name without its domain
    row.text = `${row.name} ${row.namespace} ${row.status} ${row.detail} ${row.labelText}`.toLowerCase();
    row.gone = false;
    const again = known && known.uid === row.uid && !known.gone;
    const quiet = this.first; // what is there when the page opens is no news
    row.change = quiet ? "" : again ? "updated" : "added";
    row.at = quiet ? -Infinity : now;
    row.beat = known ? 1 - known.beat : 0;
    table.set(key, row);
  }

  drop(row, now) {
    const known = this.table(row.of).get(`${row.namespace}/${row.name}`);
    if (known && !known.gone && known.uid === row.uid) this.leave(known, now);
  }

  leave(row, now) {
    row.gone = true;
    row.change = "deleted";
    row.at = now;
    this.changes += 1;
  }

  finish(now) {
    this.synced = true;
    this.first = false;
    for (const table of this.tables.values()) {
      for (const row of table.values()) {
        if (row.round !== this.round && !row.gone) this.leave(row, now);
      }
    }
  }

  /** Forget what has been shown as gone for long enough. */
  sweep(now) {
    for (const table of this.tables.values()) {
      for (const row of table.values()) {
        if (row.gone && now - row.at > SHOWN) {
          table.delete(row.key);
          this.changes += 1;
        }
      }
    }
  }
}
