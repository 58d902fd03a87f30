// The data of the page: objects by resource, and the time of each change. No DOM here.
//
// A stream begins with `reset`, all cached objects, and `synced`, also after a reconnect. The rows
// stay meanwhile. At `synced`, a row that was not sent again is removed. A row that was sent in the
// known version has not changed.

/** Milliseconds for which a change is highlighted. */
export const SHOWN = 1500;

/** The rows of one resource. */
class Rows extends Map {
  constructor() {
    super();
    this.version = 0; // grows with each change, so that views know whether to look again
    this.gone = new Set(); // deleted rows that are still shown
    this.statuses = new Map(); // status -> { number, tone }, which a listing counts
    this.moved = null; // changed rows for the listing that shows them, else null
  }

  /** Note a change of a row; its place in a sorted list may be another one now. */
  note(row) {
    this.version += 1;
    row.moved = true;
    this.moved?.push(row);
  }

  /** Return the count of a status, with its latest tone. */
  count(status, tone) {
    let count = this.statuses.get(status);
    if (!count) this.statuses.set(status, (count = { number: 0, tone }));
    count.tone = tone;
    return count;
  }

  /** The number of objects that exist. */
  get total() {
    return this.size - this.gone.size;
  }
}

export class Store {
  constructor() {
    this.tables = new Map(); // resource -> key -> row
    this.round = 0; // the number of `reset`s
    this.synced = false;
    this.first = true;
    this.changes = 0; // grows with each change of any resource
  }

  table(of) {
    let table = this.tables.get(of);
    if (!table) this.tables.set(of, (table = new Rows()));
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
    row.labelText = Object.entries(row.labels).map(([name, value]) => `${name}=${value}`).join(" ");
    row.text = `${row.name} ${row.namespace} ${row.status} ${row.detail} ${row.labelText}`.toLowerCase();
    row.count = table.count(row.status, row.tone);
    row.gone = false;
    const again = known && known.uid === row.uid && !known.gone;
    const quiet = this.first; // the objects of a new page are no changes
    row.change = quiet ? "" : again ? "updated" : "added";
    row.at = quiet ? -Infinity : now;
    row.beat = known ? 1 - known.beat : 0;
    row.terms = null; // the search that was matched last
    if (known) {
      known.moved = true;
      table.gone.delete(known);
    }
    table.set(key, row);
    table.note(row);
  }

  drop(row, now) {
    const table = this.table(row.of);
    const known = table.get(`${row.namespace}/${row.name}`);
    if (known && !known.gone && known.uid === row.uid) this.leave(table, known, now);
  }

  leave(table, row, now) {
    row.gone = true;
    row.change = "deleted";
    row.at = now;
    this.changes += 1;
    table.gone.add(row);
    table.note(row);
  }

  finish(now) {
    this.synced = true;
    this.first = false;
    for (const table of this.tables.values()) {
      for (const row of table.values()) {
        if (row.round !== this.round && !row.gone) this.leave(table, row, now);
      }
    }
  }

  /** Remove rows that were shown as deleted for long enough. */
  sweep(now) {
    for (const table of this.tables.values()) {
      for (const row of table.gone) {
        if (now - row.at <= SHOWN) continue;
        table.gone.delete(row);
        table.delete(row.key);
        table.note(row);
        this.changes += 1;
      }
    }
  }
}
