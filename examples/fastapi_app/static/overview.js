// The cards, the state in the corner and the notice: the status of the informers.

import { Series, bars, line } from "./charts.js";
import { ago, brief, duration, measure, put } from "./text.js";

const KINDS = ["updated", "added", "deleted"];
/** Seconds: bookmarks come about once a minute. */
const OLD = 75;
const STALE = 180;
/** Seconds without an event that one sample can't represent. */
const GAP = 5;

const $ = (id) => document.getElementById(id);

export class Overview {
  constructor() {
    this.health = null;
    this.at = 0; // the time of the latest status
    this.lostAt = null; // the time since which the service is not connected
    this.objects = new Series();
    this.rates = new Series();
    this.items = new Map();
  }

  /** Show the status of the service, which arrives once a second. */
  receive(health, now) {
    if (this.health) this.sample(this.health, health, (now - this.at) / 1000);
    this.health = health;
    this.at = now;
    put($("where"), `${health.embedded ? "embedded cluster" : "cluster"} · ${health.server.replace(/^https?:../, "")}`);
    $("where").title = health.server;
    $("outage").hidden = !health.embedded;
    const pages = health.clients === 1 ? "1 page" : `${health.clients} pages`;
    const informers = health.informers.length === 1 ? "1 informer" : `${health.informers.length} informers`;
    put($("clients"), `${informers} · ${pages}`);
    measure($("objects"), health.informers.reduce((sum, each) => sum + each.objects, 0).toLocaleString("en"));
    this.show(now);
  }

  /** Show the last minute from the service's history, which is empty after its start. */
  recall(samples) {
    if (!samples.length) return;
    this.rates.replace(samples);
    this.objects.replace(samples.map((each) => each.objects));
    this.draw();
  }

  draw() {
    line($("objects-chart"), this.objects.samples);
    bars($("rate-chart"), this.rates.samples, KINDS);
  }

  sample(before, after, seconds) {
    if (seconds < 0.2 || seconds > GAP) return; // the stream has just reconnected
    const counts = new Map(before.informers.map((each) => [each.of, each.changes]));
    const rate = { added: 0, updated: 0, deleted: 0 };
    for (const { of, changes: now } of after.informers) {
      const then = counts.get(of) ?? now;
      for (const kind of KINDS) rate[kind] += Math.max(0, now[kind] - then[kind]) / seconds;
    }
    this.rates.push(rate);
    this.objects.push(after.informers.reduce((sum, each) => sum + each.objects, 0));
    this.draw();
    const recent = this.rates.samples.slice(-3).map((each) => each.added + each.updated + each.deleted);
    const mean = recent.reduce((sum, each) => sum + each, 0) / recent.length;
    measure($("rate"), mean < 10 ? mean.toFixed(1) : Math.round(mean).toLocaleString("en"));
  }

  /** Update the texts that depend on time. */
  show(now) {
    const { health } = this;
    const since = health ? (now - this.at) / 1000 : 0;
    if (health) {
      this.freshness(health, since);
      this.problem(health, since);
    }
    const [tone, word, notice] = this.verdict(health, since);
    const state = $("state");
    state.dataset.tone = tone;
    put(state.lastElementChild, word);
    $("notice").hidden = !notice;
    $("notice").dataset.tone = tone;
    if (notice) put($("notice"), notice);
  }

  freshness(health, since) {
    const ages = health.informers.map((each) => each.fresh);
    const oldest = ages.includes(null) ? null : Math.max(...ages) + since;
    const big = $("fresh");
    if (oldest === null) measure(big, "–");
    else if (oldest < 1) measure(big, "now");
    else {
      const [value, unit] = duration(oldest).split(" ");
      measure(big, value, `${unit} ago`);
    }
    big.className = `big ${oldest > STALE ? "bad" : oldest > OLD ? "wait" : ""}`;
    for (const each of health.informers) this.informer(each, since);
  }

  informer(each, since) {
    let item = this.items.get(each.of);
    if (!item) {
      item = document.createElement("li");
      item.append(...["i", "b", "span", "span"].map((name) => document.createElement(name)));
      this.items.set(each.of, item);
      $("informers").append(item);
    }
    const [dot, name, state, age] = item.children;
    const ended = each.state === "failed" || each.state === "stopped";
    dot.className = ended ? "bad" : each.error || !each.synced ? "wait" : "good";
    put(name, each.of);
    put(state, each.state);
    put(age, each.fresh === null ? "not yet" : brief(each.fresh + since));
  }

  problem({ problem, problems }, since) {
    if (!problem) return;
    const times = problems === 1 ? "once" : `${problems} times`;
    put($("said-when"), `${problem.phase} of ${problem.informer}, ${ago(problem.ago + since)}`);
    put($("said"), `${problem.message} (something went wrong ${times} so far)`);
  }

  /** Return the overall state: a tone, a word, and a sentence if something is wrong. */
  verdict(health, since) {
    if (this.lostAt !== null) {
      const age = duration(since);
      const known = health ? `What you see was so ${age} ago.` : "";
      return ["bad", "Reconnecting", `This page has lost its service, and tries again. ${known}`];
    }
    if (!health) return ["wait", "Connecting", ""];
    const { informers } = health;
    const ended = informers.find((each) => each.state === "failed" || each.state === "stopped");
    if (ended) return ["bad", "Failed", `The informer of ${ended.of} has ended: ${ended.error ?? ended.state}`];
    const failing = informers.find((each) => each.error);
    if (failing) {
      const what = failing.synced ? "What you see may be old" : "Nothing was read yet";
      return ["wait", failing.answered ? "Trying again" : "API server away", `${what}: ${failing.of}: ${failing.error}`];
    }
    if (!informers.every((each) => each.synced)) return ["wait", "Syncing", ""];
    return ["good", "Live", ""];
  }
}
