// Formatted texts.

/** Format seconds as words. */
export function duration(seconds) {
  if (seconds < 1) return "0 s";
  if (seconds < 100) return `${Math.floor(seconds)} s`;
  if (seconds < 6000) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** Format the time since a moment. */
export function ago(seconds) {
  return seconds < 1 ? "just now" : `${duration(seconds)} ago`;
}

/** Format the time since a moment in short form. */
export function brief(seconds) {
  return seconds < 1 ? "now" : duration(seconds);
}

/** Set an element's text if it differs. */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Set an element's text to a number and its unit. */
export function measure(element, value, unit = "") {
  const text = `${value}|${unit}`;
  if (element.measured === text) return;
  element.measured = text;
  const small = document.createElement("small");
  small.textContent = unit;
  element.replaceChildren(value, ...(unit ? [small] : []));
}
