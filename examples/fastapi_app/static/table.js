// The table: only the visible ones of thousands of rows have elements.
//
// Names and labels come from users, so they become text nodes and nothing else.

import { SHOWN } from "./store.js";
import { ago, duration, put } from "./text.js";

/** Rows above and below the visible part that have elements too. */
const MARGIN = 8;
/** Labels with the least information come last. */
const DULL = /(managed-by|-hash)$/;
/** Elements that are kept for rows that will be visible. */
const SPARE = 40;

export const COLUMNS = ["status", "name", "namespace", "detail", "labels", "age", "changed"];

export class Table {
  constructor(root) {
    this.root = root;
    this.rows = root.querySelector(".rows");
    this.shown = []; // the rows of the listing, in order
    this.elements = new Map(); // key -> element of a visible row
    this.spare = [];
    this.pinned = null; // the key of a row that keeps its element, because it has the focus
    this.resized();
  }

  resized() {
    this.height = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
    this.narrow = innerWidth <= 720;
    this.stretch();
  }

  stretch() {
    this.rows.style.height = `${this.shown.length * this.height}px`;
  }

  /** Set the rows to show. */
  arrange(rows) {
    if (rows.length !== this.shown.length) {
      this.root.setAttribute("aria-rowcount", rows.length + 1);
      this.shown = rows;
      this.stretch();
    }
    this.shown = rows;
  }

  /** The pixels of the rows that are above the window. */
  get top() {
    return -this.rows.getBoundingClientRect().top;
  }

  /** Update the elements of the visible rows. */
  paint(now) {
    const { top } = this;
    const first = Math.max(0, Math.floor(top / this.height) - MARGIN);
    const last = Math.min(this.shown.length, Math.ceil((top + innerHeight) / this.height) + MARGIN);
    const places = [];
    for (let i = first; i < last; i++) places.push(i);
    const pinned = this.pinned === null ? -1 : this.indexOf(this.pinned);
    if (pinned >= last) places.push(pinned);
    else if (pinned >= 0 && pinned < first) places.unshift(pinned);
    this.assign(places, now);
    this.order(places);
    this.spare.length = Math.min(this.spare.length, SPARE);
  }

  /** Give each place an element; rows that are not visible any more give theirs up. */
  assign(places, now) {
    const wall = Date.now();
    const unused = new Map(this.elements);
    const missing = [];
    for (const i of places) {
      const row = this.shown[i];
      const element = this.elements.get(row.key);
      unused.delete(row.key);
      if (element) this.fill(element, row, i, now, wall);
      else missing.push(i);
    }
    for (const [key, element] of unused) {
      this.elements.delete(key);
      element.remove();
      this.spare.push(element);
    }
    for (const i of missing) {
      const element = this.spare.pop() ?? makeRow();
      element.record = null;
      this.fill(element, this.shown[i], i, now, wall);
      this.elements.set(this.shown[i].key, element);
    }
  }

  /** Put the elements into the visible order, which screen readers follow. */
  order(places) {
    const focused = document.activeElement;
    let next = this.rows.firstElementChild;
    for (const i of places) {
      const element = this.elements.get(this.shown[i].key);
      if (element === next) next = next.nextElementSibling;
      else if (element.isConnected && this.rows.moveBefore) this.rows.moveBefore(element, next); // keeps the focus
      else this.rows.insertBefore(element, next);
    }
    if (focused !== document.activeElement && this.rows.contains(focused)) focused.focus({ preventScroll: true });
  }

  indexOf(key) {
    const guess = this.elements.get(key)?.index;
    if (this.shown[guess]?.key === key) return guess;
    return this.shown.findIndex((row) => row.key === key);
  }

  fill(element, row, i, now, wall) {
    const { parts } = element;
    if (element.record !== row) {
      element.record = row;
      put(parts.name, row.name);
      parts.name.title = row.name;
      put(parts.namespace, row.namespace);
      put(parts.detail, row.namespace && this.narrow ? `${row.namespace} · ${row.detail}` : row.detail);
      fillLabels(parts.labels, row);
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

function makeRow() {
  const element = document.createElement("div");
  element.className = "row";
  element.role = "row";
  element.parts = {};
  element.stops = []; // what the arrow keys go to, by column
  COLUMNS.forEach((name, i) => {
    const cell = document.createElement("div");
    cell.className = name;
    cell.role = "gridcell";
    cell.ariaColIndex = i + 1;
    cell.tabIndex = -1;
    element.append(cell);
    element.stops.push(cell);
    element.parts[name] = cell;
  });
  element.parts.status = element.parts.status.appendChild(document.createElement("b"));
  const button = document.createElement("button");
  button.type = "button";
  button.tabIndex = -1;
  element.parts.name.removeAttribute("tabindex");
  element.parts.name = element.stops[1] = element.parts.name.appendChild(button);
  return element;
}

/** Show the labels without the domains of their names, which the title has. */
function fillLabels(cell, row) {
  if (cell.title === row.labelText) return;
  cell.title = row.labelText;
  const labels = Object.entries(row.labels).sort(([a], [b]) => DULL.test(a) - DULL.test(b));
  cell.replaceChildren(...labels.map(([name, value]) => {
    const element = document.createElement("span"); // copied text has spaces between elements
    element.textContent = `${name.slice(name.indexOf("/") + 1)}=${value}`;
    return element;
  }));
}

function flash(element, row, now) {
  if (row.change && now - row.at < SHOWN) {
    element.dataset.change = row.change;
    element.dataset.beat = row.beat;
  } else if (element.dataset.change) {
    delete element.dataset.change;
    delete element.dataset.beat;
  }
  element.toggleAttribute("data-gone", row.gone);
}
