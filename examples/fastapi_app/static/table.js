// The table: only the visible ones of thousands of rows have elements.
//
// Names and labels come from users, so they become text nodes and nothing else.

import { SHOWN } from "./store.js";
import { ago, duration, put } from "./text.js";

/** Rows above and below the visible part that have elements too. */
const MARGIN = 8;

const ORDER = {
  status: (a, b) => compare(a.status, b.status),
  name: (a, b) => compare(a.name, b.name),
  namespace: (a, b) => compare(a.namespace, b.namespace),
  detail: (a, b) => compare(a.detail, b.detail),
  age: (a, b) => b.born - a.born,
  changed: (a, b) => b.at - a.at || b.born - a.born,
};

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

export class Table {
  /** `open(row)` is called when the user selects a row. */
  constructor(root, open) {
    this.root = root;
    this.rows = root.querySelector(".rows");
    this.head = [...root.querySelectorAll("[data-sort]")];
    this.open = open;
    this.sort = "changed";
    this.down = false;
    this.shown = []; // the rows that match the filters, in order
    this.elements = new Map(); // key -> element of a visible row
    this.spare = [];
    for (const header of this.head) header.addEventListener("click", () => this.sortBy(header.dataset.sort));
    this.rows.addEventListener("click", (event) => {
      const row = event.target.closest("button") && event.target.closest(".row");
      if (row) this.open(row.record);
    });
    this.resized();
  }

  resized() {
    this.height = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
    this.rows.style.height = `${this.shown.length * this.height}px`;
  }

  /** Sort by a column; a second call for the same column reverses the order, unless it is given. */
  sortBy(name, down = this.sort === name && !this.down) {
    this.down = down;
    this.sort = name;
    for (const header of this.head) {
      const cell = header.parentElement;
      if (header.dataset.sort === name) cell.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    this.arrange(this.shown);
    this.paint(performance.now());
  }

  /** Set the rows to show. */
  arrange(rows) {
    const order = ORDER[this.sort];
    const sign = this.down ? -1 : 1;
    rows.sort((a, b) => sign * order(a, b) || compare(a.key, b.key));
    this.shown = rows;
    this.rows.style.height = `${rows.length * this.height}px`;
    this.root.setAttribute("aria-rowcount", rows.length + 1);
  }

  /** Update the elements of the visible rows. */
  paint(now) {
    const top = -this.rows.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / this.height) - MARGIN);
    const last = Math.min(this.shown.length, Math.ceil((top + innerHeight) / this.height) + MARGIN);
    const wall = Date.now();
    const unused = new Map(this.elements);
    const fresh = [];
    for (let i = first; i < last; i++) {
      const row = this.shown[i];
      const element = this.elements.get(row.key);
      if (element) {
        unused.delete(row.key);
        this.fill(element, row, i, now, wall);
      } else fresh.push(i);
    }
    for (const [key, element] of unused) {
      this.elements.delete(key);
      element.remove();
      this.spare.push(element);
    }
    for (const i of fresh) {
      const element = this.spare.pop() ?? this.make();
      element.record = null;
      this.fill(element, this.shown[i], i, now, wall);
      this.elements.set(this.shown[i].key, element);
    }
    this.order(first, last);
    this.spare.length = Math.min(this.spare.length, 40);
  }

  /** Put the elements into the visible order, which the Tab key and screen readers follow. */
  order(first, last) {
    let next = this.rows.firstElementChild;
    for (let i = first; i < last; i++) {
      const element = this.elements.get(this.shown[i].key);
      if (element === next) next = next.nextElementSibling;
      else if (element.isConnected && this.rows.moveBefore) this.rows.moveBefore(element, next); // keeps the focus
      else this.rows.insertBefore(element, next);
    }
  }

  make() {
    const element = document.createElement("div");
    element.className = "row";
    element.role = "row";
    element.parts = {};
    for (const name of ["status", "name", "namespace", "detail", "labels", "age", "changed"]) {
      const cell = document.createElement("div");
      cell.className = name;
      cell.role = "cell";
      element.append(cell);
      element.parts[name] = cell;
    }
    element.parts.status = element.parts.status.appendChild(document.createElement("b"));
    element.parts.name = element.parts.name.appendChild(document.createElement("button"));
    element.parts.name.type = "button";
    return element;
  }

  fill(element, row, i, now, wall) {
    const { parts } = element;
    if (element.record !== row) {
      element.record = row;
      put(parts.name, row.name);
      parts.name.title = row.name;
      put(parts.namespace, row.namespace);
      put(parts.detail, row.namespace && innerWidth <= 720 ? `${row.namespace} · ${row.detail}` : row.detail);
      parts.labels.replaceChildren(...row.shortLabels.map(labelElement));
      parts.labels.title = row.labelText;
      put(parts.status, row.status);
      parts.status.dataset.tone = row.tone;
      parts.status.hidden = !row.status;
    }
    put(parts.age, row.born ? duration((wall - row.born) / 1000) : "");
    put(parts.changed, row.at > 0 ? ago((now - row.at) / 1000) : "");
    if (element.index !== i) {
      element.index = i;
      element.style.transform = `translateY(${i * this.height}px)`;
      element.setAttribute("aria-rowindex", i + 2);
    }
    flash(element, row, now);
  }

  /** Set the place and text of every element again after the height of rows has changed. */
  renew() {
    this.resized();
    for (const element of this.elements.values()) element.record = element.index = null;
  }
}

/** Return the element of a label. The spaces between elements separate them in copied text. */
function labelElement(text) {
  const element = document.createElement("span");
  element.textContent = text;
  return element;
}

function flash(element, row, now) {
  if (row.change && now - row.at < SHOWN) {
    element.dataset.change = row.change;
    element.dataset.beat = row.beat;
  } else {
    delete element.dataset.change;
    delete element.dataset.beat;
  }
  element.toggleAttribute("data-gone", row.gone);
}
