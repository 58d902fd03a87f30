// The data of the page: objects by resource, and the time of each change. No DOM here.
//
// A stream begins with `reset`, all cached objects, and `synced`, also after a reconnect. The rows
// stay meanwhile. At `synced`, a row that was not sent again is removed. A row that was sent in the
// known version has not changed.

/** Milliseconds for which a change is highlighted. */
export const SHOWN = 1500;

/** Labels with the least information come last. */
const DULL = /(managed-by|-hash)$/;

export class Store {
  constructor() {
    this.tables = new Map(); // resource -> key -> row
    this.round = 0; // the number of `reset`s
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
    // The name without its domain.
    row.shortLabels = labels.map(([name, value]) => `${name.slice(name.indexOf("/") + 1)}=${value}`);
    row.text = `${row.name} ${row.namespace} ${row.status} ${row.detail} ${row.labelText}`.toLowerCase();
    row.gone = false;
    const again = known && known.uid === row.uid && !known.gone;
    const quiet = this.first; // the objects of a new page are no changes
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

  /** Remove rows that were shown as deleted for long enough. */
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
