// The keyboard in the table: one stop for the Tab key, arrow keys between the cells.
//
// The pattern is "grid" of the ARIA Authoring Practices. The row with the focus keeps its element
// when it is scrolled out of the window, or the focus would be lost.

import { COLUMNS } from "./table.js";

const NAME = COLUMNS.indexOf("name");

export class Keyboard {
  /** `open(row)` shows an object; `leave()` is called for Escape. */
  constructor(table, { open, leave }) {
    this.table = table;
    this.column = NAME;
    this.index = 0; // of the row with the focus
    this.stop = null; // the element that the Tab key reaches
    this.entered = false; // until then, the Tab key reaches the first row, whichever that is
    const { rows } = table;
    rows.addEventListener("click", (event) => {
      const row = event.target.closest("button") && event.target.closest(".row");
      if (row) open(row.record);
    });
    rows.addEventListener("focusin", (event) => this.enter(event.target));
    rows.addEventListener("keydown", (event) => {
      if (event.altKey || event.metaKey) return;
      const row = event.target.closest(".row");
      if (event.key === "Enter" && event.target.tagName !== "BUTTON") open(row.record);
      else if (event.key === "Escape") leave();
      else if (!this.move(event.key, event.ctrlKey)) return;
      event.preventDefault();
    });
  }

  /** True if the user moves in the table with the keyboard. */
  get inside() {
    return this.table.rows.querySelector(":focus-visible") !== null;
  }

  enter(target) {
    const row = target.closest(".row");
    const column = row?.stops.indexOf(target) ?? -1;
    if (column < 0) return;
    this.entered = true;
    this.column = column;
    this.index = row.index;
    this.table.pinned = row.record.key;
    this.setStop(target);
  }

  /** Move the focus; return false for other keys. */
  move(key, control) {
    const page = Math.max(1, Math.floor(innerHeight / this.table.height) - 3);
    const rows = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }[key] ?? 0;
    const columns = { ArrowRight: 1, ArrowLeft: -1 }[key] ?? 0;
    const end = { Home: -Infinity, End: Infinity }[key] ?? 0;
    if (!rows && !columns && !end) return false;
    const last = this.table.shown.length - 1;
    const down = control ? end : rows;
    const index = Math.min(last, Math.max(0, this.index + down));
    this.go(index, columns || (control ? 0 : end));
    return true;
  }

  /** Focus the cell `across` columns from the current one, in the row at an index. */
  go(index, across) {
    this.reveal(index);
    const { table } = this;
    table.pinned = table.shown[index].key;
    table.paint(performance.now());
    const visible = table.elements.get(table.pinned).stops.filter((stop) => stop.checkVisibility());
    const all = table.elements.get(table.pinned).stops;
    const at = visible.indexOf(all[this.column]);
    const to = Math.min(visible.length - 1, Math.max(0, at + across));
    visible[to].focus({ preventScroll: true });
  }

  /** Scroll so that the row at an index is between the head of the table and the window's end. */
  reveal(index) {
    const { table } = this;
    const y = index * table.height - table.top;
    const head = table.root.querySelector(".head").offsetHeight;
    const room = innerHeight - table.height - 8;
    if (y < head) scrollBy(0, y - head);
    else if (y > room) scrollBy(0, y - room);
  }

  /** Paint the table, with one stop for the Tab key, and with the focus in the same row. */
  paint(now) {
    const { table } = this;
    const inside = table.rows.contains(document.activeElement);
    if (!inside && !document.querySelector("dialog[open]")) table.pinned = null; // it returns the focus
    table.paint(now);
    const element = table.elements.get(table.pinned);
    if (element) this.index = element.index;
    else if (inside && table.shown.length) this.go(Math.min(this.index, table.shown.length - 1), 0); // it was deleted
    if (!this.entered || !this.stop?.isConnected) this.setStop(table.rows.firstElementChild?.stops[NAME] ?? null);
  }

  setStop(stop) {
    if (this.stop === stop) return;
    if (this.stop) this.stop.tabIndex = -1;
    this.stop = stop;
    if (stop) stop.tabIndex = 0;
  }
}
