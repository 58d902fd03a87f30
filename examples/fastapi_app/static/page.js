// The page: events of the stream go to the store at once, and to the screen at most once for each
// frame. No code here converts text to HTML.

import { Feed } from "./feed.js";
import { Overview, trouble } from "./overview.js";
import { Store } from "./store.js";
import { Table } from "./table.js";
import { put } from "./text.js";
import { readView, writeView } from "./view.js";

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
const view = readView([...$("order").options].map((option) => option.value).concat("namespace", "detail"));
const filter = { of: view.tab, terms: termsOf(view.search), status: view.status };
const tabs = new Map();
const chips = new Map();
let arranged = { changes: -1, at: -Infinity, filter: "" };
let due = false;
let elsewhere = ""; // the tabs with matches that the empty table names

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
    if (!tabs.has(filter.of)) choose({ of: health.informers[0].of }); // keeps the address's status
    mark();
    showTrouble();
    arranged.filter = ""; // the tabs show which resources were read
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
    if (!matches(row)) continue;
    if (!row.gone && row.status) counts.set(row.status, [(counts.get(row.status)?.[0] ?? 0) + 1, row.tone]);
    if (filter.status === null || row.status === filter.status) rows.push(row);
  }
  table.arrange(rows);
  const hits = new Map([...tabs.keys()].map((of) => [of, count(store.table(of))]));
  for (const [of, tab] of tabs) put(tab.lastElementChild, countText(of, hits.get(of)));
  showChips(counts);
  const narrowed = filter.terms.length > 0 || filter.status !== null;
  $("clear").hidden = !narrowed;
  $("narrow").hidden = (store.synced || informerOf(filter.of)?.error) && !narrowed && !counts.size;
  const shown = rows.filter((row) => !row.gone).length;
  put($("found"), narrowed ? `${shown.toLocaleString("en")} of ${store.table(filter.of).size.toLocaleString("en")}` : "");
  showNone(rows.length === 0, narrowed, hits);
}

/** Return true if the row matches the search; each row is tested once for each search. */
function matches(row) {
  if (row.terms !== filter.terms) {
    row.terms = filter.terms;
    row.matches = filter.terms.every((term) => row.text.includes(term));
  }
  return row.matches;
}

/** Return the numbers of rows that match the search, and of all rows. */
function count(rows) {
  let [found, total] = [0, 0];
  for (const row of rows.values()) {
    if (row.gone) continue;
    total += 1;
    if (matches(row)) found += 1;
  }
  return { found, total };
}

/** Return the text beside a tab's name; the number of objects that were never read is unknown. */
function countText(of, { found, total }) {
  if (!informerOf(of)?.synced) return "–";
  const all = total.toLocaleString("en");
  return filter.terms.length ? `${found.toLocaleString("en")} of ${all}` : all;
}

const informerOf = (of) => overview.health?.informers.find((each) => each.of === of);

/** Show the trouble of each informer at its tab, and the selected one's above the rows. */
function showTrouble() {
  for (const [of, tab] of tabs) {
    const text = trouble(informerOf(of));
    tab.toggleAttribute("data-trouble", text !== "");
    tab.title = text;
  }
  const text = trouble(informerOf(filter.of));
  const alone = overview.health.informers.some((each) => !each.error); // else the notice says so
  $("trouble").hidden = !text || !alone;
  put($("trouble"), text);
}

/** Show the reason of an empty table, and the tabs in which the search has matches. */
function showNone(empty, narrowed, hits) {
  $("none").hidden = !empty;
  const read = store.synced && informerOf(filter.of)?.synced !== false;
  put($("none-text"), !read ? "Waiting for the first full state…" : narrowed ? "Nothing matches." : "There is nothing here.");
  const others = [...hits].filter(([of, { found }]) => of !== filter.of && found > 0);
  const wanted = narrowed && filter.terms.length ? JSON.stringify(others) : "";
  $("elsewhere").hidden = !wanted || !others.length;
  if (wanted === elsewhere) return; // keeps the focus
  elsewhere = wanted;
  $("elsewhere").replaceChildren(...(wanted ? others : []).map(([of, { found }]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = `${found.toLocaleString("en")} in ${of}`;
    button.addEventListener("click", () => {
      select(of);
      tabs.get(of).focus();
    });
    return button;
  }));
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
  keepView();
  schedule();
}

function termsOf(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Write tab, search, status and sort into the address, so that a reload or a link restores them. */
function keepView() {
  const first = tabs.keys().next().value;
  const tab = filter.of === first ? "" : filter.of;
  writeView({ tab, search: search.value, status: filter.status, sort: table.sort, down: table.down });
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
  mark();
}

function select(of) {
  choose({ of, status: null });
  mark();
  if (overview.health) showTrouble();
}

function mark() {
  for (const [of, tab] of tabs) {
    tab.setAttribute("aria-selected", of === filter.of);
    tab.tabIndex = of === filter.of ? 0 : -1;
  }
}

$("tabs").addEventListener("keydown", (event) => {
  const names = [...tabs.keys()];
  const at = names.indexOf(filter.of);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = names.at(to % names.length);
  select(next);
  tabs.get(next).focus();
});

$("order").addEventListener("change", (event) => {
  table.sortBy(event.target.value, false);
  keepView();
});
$("table").addEventListener("click", () => {
  $("order").value = table.sort; // the headers sort too
  keepView();
});

search.addEventListener("input", () => choose({ terms: termsOf(search.value) }));
$("clear").addEventListener("click", () => {
  search.value = "";
  choose({ terms: [], status: null });
  search.focus();
});

search.value = view.search;
table.sortBy(view.sort, view.down);
$("order").value = view.sort;

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
