// The page: events of the stream go to the store at once, and to the screen at most once for each
// frame. No code here converts text to HTML.

import { Feed } from "./feed.js";
import { Overview } from "./overview.js";
import { Store } from "./store.js";
import { Table } from "./table.js";
import { put } from "./text.js";

/** Milliseconds between two passes that filter and sort thousands of rows. */
const ARRANGING = 200;
/** Milliseconds between two updates of ages. */
const TICK = 500;
const TONES = ["good", "wait", "bad", "done", ""];

const $ = (id) => document.getElementById(id);
const store = new Store();
const overview = new Overview();
const table = new Table($("table"), inspect);
const search = $("search");
const filter = { of: "", terms: [], status: null };
const tabs = new Map();
const chips = new Map();
let arranged = { changes: -1, at: -Infinity, filter: "" };
let due = false;

// -- events of the stream -----------------------------------------------------------------------

new Feed("events", {
  open() {
    overview.lostAt = null;
    remember();
  },
  lost(since) {
    overview.lostAt ??= since;
    overview.show(performance.now());
  },
  reset: () => store.reset(),
  added: changed,
  updated: changed,
  deleted(row) {
    store.drop(row, performance.now());
    schedule();
  },
  synced() {
    store.finish(performance.now());
    schedule();
  },
  health(health) {
    overview.receive(health, performance.now());
    for (const { of } of health.informers) if (!tabs.has(of)) addTab(of);
    schedule();
  },
  failed: (what) => console.warn("an object could not be shown", what.namespace, what.name, what.error),
});

/** Load the last minute, for a new page or one that was hidden for a while. */
async function remember() {
  try {
    const answer = await fetch("history");
    overview.recall(await answer.json());
  } catch (error) {
    console.info("the charts show what the page has seen itself:", error.message);
  }
}

function changed(row) {
  store.put(row, performance.now());
  schedule();
}

// -- drawing ------------------------------------------------------------------------------------

function schedule() {
  if (!due) {
    due = true;
    requestAnimationFrame(draw);
  }
}

function draw() {
  due = false;
  const now = performance.now();
  const wanted = JSON.stringify(filter);
  const stale = arranged.changes !== store.changes;
  if (wanted !== arranged.filter || (stale && now - arranged.at >= ARRANGING)) {
    arranged = { changes: store.changes, at: now, filter: wanted };
    arrange();
  } else if (stale) setTimeout(schedule, ARRANGING);
  table.paint(now);
}

function arrange() {
  const rows = [];
  const counts = new Map();
  for (const row of store.table(filter.of).values()) {
    if (!row.gone && row.status) counts.set(row.status, [(counts.get(row.status)?.[0] ?? 0) + 1, row.tone]);
    if (filter.status !== null && row.status !== filter.status) continue;
    if (filter.terms.every((term) => row.text.includes(term))) rows.push(row);
  }
  table.arrange(rows);
  for (const [of, tab] of tabs) put(tab.lastElementChild, count(store.table(of)).toLocaleString("en"));
  showChips(counts);
  const none = $("none");
  none.hidden = rows.length > 0;
  const narrowed = filter.terms.length || filter.status !== null;
  put(none, !store.synced ? "Waiting for the first full state…" : narrowed ? "Nothing matches." : "There is nothing here.");
}

function count(rows) {
  let total = 0;
  for (const row of rows.values()) total += row.gone ? 0 : 1;
  return total;
}

function showChips(counts) {
  const box = $("chips");
  if (filter.status !== null && !counts.has(filter.status)) counts.set(filter.status, [0, ""]);
  const order = [...counts.keys()].sort((a, b) => {
    const [tone, other] = [TONES.indexOf(counts.get(a)[1]), TONES.indexOf(counts.get(b)[1])];
    return tone - other || (a < b ? -1 : 1);
  });
  for (const [status, chip] of chips) {
    if (counts.has(status)) continue;
    chip.remove();
    chips.delete(status);
  }
  order.forEach((status, i) => {
    const chip = chips.get(status) ?? addChip(status);
    const [total, tone] = counts.get(status);
    if (chip.dataset.tone !== tone) chip.dataset.tone = tone;
    put(chip.lastElementChild, total.toLocaleString("en"));
    chip.setAttribute("aria-pressed", status === filter.status);
    if (box.children[i] !== chip) box.insertBefore(chip, box.children[i] ?? null);
  });
  box.toggleAttribute("data-chosen", filter.status !== null);
}

function addChip(status) {
  const chip = document.createElement("button");
  const number = document.createElement("span");
  chip.type = "button";
  chip.append(status, number);
  chip.addEventListener("click", () => choose({ status: filter.status === status ? null : status }));
  chips.set(status, chip);
  return chip;
}

// -- controls -----------------------------------------------------------------------------------

function choose(change) {
  Object.assign(filter, change);
  schedule();
}

function addTab(of) {
  const tab = document.createElement("button");
  tab.type = "button";
  tab.role = "tab";
  tab.setAttribute("aria-controls", "table");
  tab.append(of, document.createElement("span"));
  tab.addEventListener("click", () => select(of));
  tabs.set(of, tab);
  $("tabs").append(tab);
  if (tabs.size === 1) select(of);
  else mark();
}

function select(of) {
  choose({ of, status: null });
  mark();
}

function mark() {
  for (const [of, tab] of tabs) {
    tab.setAttribute("aria-selected", of === filter.of);
    tab.tabIndex = of === filter.of ? 0 : -1;
  }
}

$("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const names = [...tabs.keys()];
  const next = names.at((names.indexOf(filter.of) + step) % names.length);
  select(next);
  tabs.get(next).focus();
});

$("order").addEventListener("change", (event) => table.sortBy(event.target.value, false));
$("table").addEventListener("click", () => ($("order").value = table.sort)); // the headers sort too

search.addEventListener("input", () => {
  choose({ terms: search.value.toLowerCase().split(/\s+/).filter(Boolean) });
});

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== search && !$("dialog").open) {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "Escape" && event.target === search) {
    search.value = "";
    search.dispatchEvent(new Event("input"));
    search.blur();
  }
});

async function inspect(row) {
  const dialog = $("dialog");
  put($("dialog-title"), `${row.of} ${row.key.replace(/^\//, "")}`);
  put($("dialog-body"), "…");
  dialog.showModal();
  const path = [row.of, row.namespace, row.name].filter(Boolean).map(encodeURIComponent).join("/");
  try {
    const answer = await fetch(`api/${path}`);
    const body = await answer.json();
    put($("dialog-body"), answer.ok ? JSON.stringify(body, null, 2) : String(body.detail));
  } catch (error) {
    put($("dialog-body"), `It could not be read: ${error.message}`);
  }
}

$("dialog-close").addEventListener("click", () => $("dialog").close());
$("dialog").addEventListener("click", (event) => {
  if (event.target === $("dialog")) $("dialog").close(); // a click beside the dialog
});

$("outage").addEventListener("click", async (event) => {
  const button = event.currentTarget;
  button.disabled = true;
  await fetch("embedded/outage", { method: "POST", headers: { "X-Requested-With": "page" } });
  setTimeout(() => (button.disabled = false), 6000);
});

addEventListener("scroll", schedule, { passive: true });
addEventListener("resize", () => {
  table.renew();
  schedule();
});
setInterval(() => {
  const now = performance.now();
  store.sweep(now);
  overview.show(now);
  schedule();
}, TICK);
