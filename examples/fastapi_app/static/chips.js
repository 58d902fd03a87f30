// The buttons above the table: one for each status, with the number of rows. A click narrows the rows.

import { put } from "./text.js";

const TONES = ["good", "wait", "bad", "done", ""];

export class Chips {
  /** `toggle(status)` is called for a click. */
  constructor(box, toggle) {
    this.box = box;
    this.toggle = toggle;
    this.chips = new Map();
  }

  /** Show a map of statuses to `{ number, tone }`, and the chosen status, which may have no rows. */
  show(counts, chosen) {
    if (chosen !== null && !counts.has(chosen)) counts.set(chosen, { number: 0, tone: "" });
    for (const [status, chip] of this.chips) {
      if (counts.has(status)) continue;
      chip.remove();
      this.chips.delete(status);
    }
    inOrder(counts).forEach((status, i) => {
      const chip = this.chips.get(status) ?? this.add(status);
      const { number, tone } = counts.get(status);
      if (chip.dataset.tone !== tone) chip.dataset.tone = tone;
      put(chip.lastElementChild, number.toLocaleString("en"));
      chip.setAttribute("aria-pressed", status === chosen);
      if (this.box.children[i] !== chip) this.box.insertBefore(chip, this.box.children[i] ?? null);
    });
    this.box.toggleAttribute("data-chosen", chosen !== null);
  }

  add(status) {
    const chip = document.createElement("button");
    chip.type = "button";
    chip.append(status, document.createElement("span"));
    chip.addEventListener("click", () => this.toggle(status));
    this.chips.set(status, chip);
    return chip;
  }
}

/** Return the statuses by tone, then by name. */
function inOrder(counts) {
  return [...counts.keys()].sort((a, b) => {
    const difference = TONES.indexOf(counts.get(a).tone) - TONES.indexOf(counts.get(b).tone);
    return difference || (a < b ? -1 : 1);
  });
}
