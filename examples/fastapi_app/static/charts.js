// Charts of the last minute as SVG paths: sixty samples, one for each second.

const SAMPLES = 60;
const HEIGHT = 24;

/** Keeps the newest samples. */
export class Series {
  constructor() {
    this.samples = [];
  }

  push(sample) {
    this.samples.push(sample);
    if (this.samples.length > SAMPLES) this.samples.shift();
  }

  /** Replace the samples by the service's history. */
  replace(samples) {
    this.samples = samples.slice(-SAMPLES);
  }
}

/** Draw a line with an area below. The axis doesn't begin at zero, so that changes are visible. */
export function line(svg, values) {
  if (!values.length) return;
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = Math.max(high - low, Math.ceil(high * 0.04), 4);
  const y = (value) => (HEIGHT - 3 - ((value - low) / room) * (HEIGHT - 6)).toFixed(2);
  const from = SAMPLES - values.length;
  const last = values.length - 1;
  const points = values.map((value, i) => `${(((from + i) / (SAMPLES - 1)) * 60).toFixed(2)} ${y(value)}`);
  const path = `M${points.join("L")}`;
  svg.querySelector(".line").setAttribute("d", last ? path : "");
  const start = ((from / (SAMPLES - 1)) * 60).toFixed(2);
  svg.querySelector(".area").setAttribute("d", last ? `${path}L60 ${HEIGHT}L${start} ${HEIGHT}Z` : "");
}

/** Draw stacked bars; each sample is an object with a number for each name. */
export function bars(svg, samples, names) {
  const sums = samples.map((sample) => names.reduce((sum, name) => sum + sample[name], 0));
  const top = Math.max(5, ...sums);
  const from = SAMPLES - samples.length;
  const paths = Object.fromEntries(names.map((name) => [name, ""]));
  samples.forEach((sample, i) => {
    let base = HEIGHT;
    for (const name of names) {
      const height = (sample[name] / top) * HEIGHT;
      if (!height) continue;
      base -= height;
      paths[name] += `M${from + i} ${base.toFixed(2)}h.76v${height.toFixed(2)}h-.76z`;
    }
  });
  for (const name of names) svg.querySelector(`.${name}`).setAttribute("d", paths[name]);
}
