// The view in the page's address: tab, search, status and sort. Defaults are left out.

const DEFAULT_SORT = "changed";
/** Milliseconds after the last change; browsers limit the number of changes of an address. */
const DELAY = 200;
let timer = 0;

/** Read the view from the address. A sort order that is not known counts as the default. */
export function readView(sorts) {
  const given = new URLSearchParams(location.search);
  const sort = given.get("sort") ?? "";
  const name = sort.replace(/^-/, "");
  const known = sorts.includes(name);
  return {
    tab: given.get("tab") ?? "",
    search: given.get("q") ?? "",
    status: given.get("status"),
    sort: known ? name : DEFAULT_SORT,
    down: known && sort.startsWith("-"),
  };
}

/** Write the view into the address soon, without a new entry in the browser's history. */
export function writeView({ tab, search, status, sort, down }) {
  const wanted = new URLSearchParams();
  if (tab) wanted.set("tab", tab);
  if (search.trim()) wanted.set("q", search);
  if (status !== null) wanted.set("status", status);
  if (sort !== DEFAULT_SORT || down) wanted.set("sort", `${down ? "-" : ""}${sort}`);
  clearTimeout(timer);
  timer = setTimeout(() => {
    const query = wanted.toString();
    history.replaceState(history.state, "", `${location.pathname}${query && "?"}${query}`);
  }, DELAY);
}
