// The rows of the selected tab that match the search, in order. No DOM here.
//
// Several times a second, some of 50,000 rows change. Only these are sorted; each then finds its place
// among the others by binary search.

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

const ORDER = {
  status: (a, b) => compare(a.status, b.status),
  name: (a, b) => compare(a.name, b.name),
  namespace: (a, b) => compare(a.namespace, b.namespace),
  detail: (a, b) => compare(a.detail, b.detail),
  age: (a, b) => b.born - a.born,
  changed: (a, b) => b.at - a.at || b.born - a.born,
};

/** Return true if the row matches the search; each row is tested once for each search. */
export function matches(row, terms) {
  if (row.terms !== terms) {
    row.terms = terms;
    row.matches = !terms.length || terms.every((term) => row.text.includes(term));
  }
  return row.matches;
}

export class Listing {
  constructor(store) {
    this.store = store;
    this.rows = []; // the rows to show, in order
    this.counts = new Map(); // status -> { number, tone }, of the rows that match the search
    this.waiting = new Set(); // keys of changed rows whose new place is not shown while held
    this.sorted = []; // all rows of the tab, in order
    this.table = null;
    this.by = "";
    this.order = compare;
  }

  /**
   * Bring the rows up to date. While `held`, rows show their newest state in the place that they
   * have, and none is added or removed: the user is reading them.
   */
  update({ of, terms, status, sort, down }, held) {
    const table = this.store.table(of);
    const by = `${sort}${down}`;
    const known = this.table === table && this.by === by;
    this.by = by;
    if (!known) this.sort(table, sort, down);
    else if (held) this.refresh();
    else this.merge();
    this.select(terms, status);
  }

  /** Sort all rows of a table. */
  sort(table, name, down) {
    const order = ORDER[name];
    const sign = down ? -1 : 1;
    this.order = (a, b) => sign * order(a, b) || compare(a.key, b.key);
    if (this.table) this.table.moved = null;
    this.table = table;
    table.moved = [];
    this.waiting.clear();
    this.sorted = [...table.values()].sort(this.order);
    for (const row of this.sorted) row.moved = false;
  }

  /** Replace the rows that have changed by their newest state. */
  refresh() {
    const { table } = this;
    for (const row of table.moved) if (!row.gone) this.waiting.add(row.key);
    table.moved = [];
    this.sorted = this.sorted.map((row) => (row.moved ? (table.get(row.key) ?? row) : row));
  }

  /** Bring the rows that have changed to their new places. */
  merge() {
    const { table } = this;
    if (!table.moved.length && !this.waiting.size) return;
    const keys = new Set(table.moved.map((row) => row.key));
    for (const key of this.waiting) keys.add(key);
    const newest = [...keys].map((key) => table.get(key)).filter(Boolean).sort(this.order);
    this.sorted = this.insert(newest, this.sorted.filter((row) => !row.moved));
    for (const row of newest) row.moved = false;
    table.moved = [];
    this.waiting.clear();
  }

  /** Return both lists of sorted rows as one. */
  insert(newest, rows) {
    const parts = [];
    let from = 0;
    for (const row of newest) {
      let [low, high] = [from, rows.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.order(rows[middle], row) < 0) low = middle + 1;
        else high = middle;
      }
      parts.push(rows.slice(from, low), [row]);
      from = low;
    }
    return parts.concat([rows.slice(from)]).flat();
  }

  /** Count the rows by status, and choose the rows to show. */
  select(terms, status) {
    const searched = terms.length > 0;
    const found = [];
    const { statuses } = this.table;
    for (const each of statuses.values()) each.number = 0;
    for (const row of this.sorted) {
      if (searched && !matches(row, terms)) continue;
      if (!row.gone) row.count.number += 1;
      if (status === null || row.status === status) found.push(row);
    }
    this.rows = found;
    this.counts = new Map([...statuses].filter(([name, { number }]) => name && number));
  }
}
