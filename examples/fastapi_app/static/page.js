// The page: events of the stream go to the store at once, and to the screen at most once for each
// frame. No code here converts text to HTML.

import { Chips } from "./chips.js";
import { Feed } from "./feed.js";
import { Keyboard } from "./keyboard.js";
import { Listing, matches } from "./listing.js";
import { Overview, trouble } from "./overview.js";
import { Store } from "./store.js";
import { Table } from "./table.js";
import { put } from "./text.js";
import { readView, writeView } from "./view.js";

/** Milliseconds between two passes that filter and sort thousands of rows. */
const ARRANGING = 200;
/** On a slow device, a pass is followed by this many times its length for everything else. */
const SHARE = 10;
/** Milliseconds between two updates of ages. */
const TICK = 500;
/** Milliseconds without input after which a screen reader is told the number of matches. */
const QUIET = 700;

const $ = (id) => document.getElementById(id);
const store = new Store();
const overview = new Overview();
const listing = new Listing(store);
const table = new Table($("table"));
const keyboard = new Keyboard(table, { open: inspect, leave });
const chips = new Chips($("chips"), (status) => choose({ status: filter.status === status ? null : status }));
const headers = [...document.querySelectorAll("[data-sort]")];
const search = $("search");
const view = readView([...$("order").options].map((option) => option.value).concat("namespace", "detail"));
const filter = { of: view.tab, terms: termsOf(view.search), status: view.status, sort: view.sort, down: view.down };
const tabs = new Map();
const hits = new Map(); // resource -> the number of rows that match the search
let arranged = { changes: -1, until: 0, filter: "" };
let due = false;
let later = 0; // timers
let saying = 0;
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
    const { first } = store;
    store.finish(performance.now());
    if (first) listing.update(filter, false); // rows of a new page are no changes, which may be held
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
  const stale = arranged.changes !== store.changes || (listing.waiting.size > 0 && !isHeld());
  if (wanted !== arranged.filter || (stale && now >= arranged.until)) {
    arranged = { changes: store.changes, until: 0, filter: wanted };
    arrange();
    arranged.until = now + Math.max(ARRANGING, (performance.now() - now) * SHARE);
  } else if (stale) {
    clearTimeout(later);
    later = setTimeout(schedule, ARRANGING);
  }
  keyboard.paint(now);
}

function arrange() {
  listing.update(filter, isHeld());
  table.arrange(listing.rows);
  for (const [of, tab] of tabs) {
    countHits(of);
    put(tab.lastElementChild, countText(of));
  }
  chips.show(listing.counts, filter.status);
  const narrowed = isNarrowed();
  $("clear").hidden = !narrowed;
  $("narrow").hidden = (store.synced || informerOf(filter.of)?.error) && !narrowed && !listing.counts.size;
  put($("found"), narrowed ? foundText() : "");
  $("held").hidden = !listing.waiting.size;
  put($("held"), `↑ ${listing.waiting.size.toLocaleString("en")} changed · show the latest`);
  showNone(listing.rows.length === 0, narrowed);
}

const isNarrowed = () => filter.terms.length > 0 || filter.status !== null;

/** Return true while the user reads rows further down, whose order must stay as it is. */
function isHeld() {
  return !store.first && (table.top >= table.height || keyboard.inside);
}

/** Count the rows that match the search, unless neither has changed. */
function countHits(of) {
  const rows = store.table(of);
  const known = hits.get(of);
  if (!filter.terms.length) return; // the tab shows the total
  if (known?.version === rows.version && known.terms === filter.terms) return;
  let found = 0;
  for (const row of rows.values()) if (!row.gone && matches(row, filter.terms)) found += 1;
  hits.set(of, { version: rows.version, terms: filter.terms, found });
}

function foundText() {
  const shown = listing.rows.reduce((sum, row) => sum + !row.gone, 0);
  return `${shown.toLocaleString("en")} of ${store.table(filter.of).total.toLocaleString("en")}`;
}

/** Tell screen readers the number of matches, once the user has stopped typing. */
function say() {
  clearTimeout(saying);
  saying = setTimeout(() => {
    const shown = isNarrowed() ? foundText() : store.table(filter.of).total.toLocaleString("en");
    put($("spoken"), `${shown} ${filter.of}`);
  }, QUIET);
}

/** Return the text beside a tab's name; the number of objects that were never read is unknown. */
function countText(of) {
  if (!informerOf(of)?.synced) return "–";
  const all = store.table(of).total.toLocaleString("en");
  return filter.terms.length ? `${hits.get(of).found.toLocaleString("en")} of ${all}` : all;
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
function showNone(empty, narrowed) {
  $("none").hidden = !empty;
  const read = store.synced && informerOf(filter.of)?.synced !== false;
  put($("none-text"), !read ? "Waiting for the first full state…" : narrowed ? "Nothing matches." : "There is nothing here.");
  const others = [...hits].map(([of, { found }]) => [of, found]).filter(([of, found]) => of !== filter.of && found > 0);
  const wanted = narrowed && filter.terms.length ? JSON.stringify(others) : "";
  $("elsewhere").hidden = !wanted || !others.length;
  if (wanted === elsewhere) return; // keeps the focus
  elsewhere = wanted;
  $("elsewhere").replaceChildren(...(wanted ? others : []).map(([of, found]) => {
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

// -- controls -----------------------------------------------------------------------------------

function choose(change) {
  Object.assign(filter, change);
  if (table.top > 0) scrollBy(0, -table.top - table.root.querySelector(".head").offsetHeight);
  keepView();
  schedule();
  say();
}

/** Sort by a column; a second choice of the same column reverses the order. */
function sortBy(sort, down) {
  Object.assign(filter, { sort, down });
  showSort();
  keepView();
  schedule();
}

function showSort() {
  $("order").value = filter.sort;
  for (const header of headers) {
    const cell = header.parentElement;
    if (header.dataset.sort === filter.sort) cell.ariaSort = filter.down ? "descending" : "ascending";
    else cell.removeAttribute("aria-sort");
  }
}

/** Leave the rows: show the latest ones, and go to the search. */
function leave() {
  search.focus();
  showLatest();
}

function showLatest() {
  if (table.top > 0) scrollBy(0, -table.top - table.root.querySelector(".head").offsetHeight);
  arranged.filter = "";
  schedule();
}

function termsOf(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Write tab, search, status and sort into the address, so that a reload or a link restores them. */
function keepView() {
  const first = tabs.keys().next().value;
  const tab = filter.of === first ? "" : filter.of;
  writeView({ tab, search: search.value, status: filter.status, sort: filter.sort, down: filter.down });
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

$("order").addEventListener("change", (event) => sortBy(event.target.value, false));
for (const header of headers) {
  const { sort } = header.dataset;
  header.addEventListener("click", () => sortBy(sort, filter.sort === sort && !filter.down));
}
$("held").addEventListener("click", () => {
  $("held").blur();
  showLatest();
});

search.addEventListener("input", () => choose({ terms: termsOf(search.value) }));
$("clear").addEventListener("click", () => {
  search.value = "";
  choose({ terms: [], status: null });
  search.focus();
});

search.value = view.search;
if (table.narrow) search.placeholder = "Search";
showSort();

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
  if (row.gone) {
    put($("dialog-body"), `there is no object "${row.name}" any more`); // its row stays for a few seconds
    return;
  }
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
