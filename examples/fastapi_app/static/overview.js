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

const ended = (each) => each.state === "failed" || each.state === "stopped";

/** Return a sentence about the trouble of one informer, or "" while all is well. */
export function trouble(each) {
  if (!each?.error) return "";
  const what = each.synced ? "These rows may be old" : `The ${each.of} can't be read`;
  return `${what}: ${each.error}`;
}

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
    const bytes = health.informers.reduce((sum, each) => sum + each.memory, 0);
    $("objects").title = `${(bytes / 1e6).toFixed(1)} MB in the caches`;
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
    const { informers } = health;
    const age = (each) => (each.fresh === null ? Infinity : each.fresh + since);
    const current = informers.filter((each) => each.synced && !each.error && !ended(each) && age(each) <= OLD).length;
    const total = informers.length;
    measure($("fresh"), current === total ? `All ${total}` : `${current} of ${total}`, "current");
    const oldest = Math.max(...informers.map((each) => (each.synced ? age(each) : 0)));
    $("fresh").className = `big ${oldest > STALE ? "bad" : current < total ? "wait" : ""}`;
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
    dot.className = ended(each) ? "bad" : each.error || !each.synced ? "wait" : "good";
    put(name, each.of);
    put(state, each.status ? `error ${each.status}` : each.state);
    put(age, each.fresh === null ? "not yet" : brief(each.fresh + since));
  }

  problem({ problem, problems }, since) {
    if (!problem) return;
    const times = problems === 1 ? "once" : `${problems} times`;
    put($("said-when"), `${problem.phase.replaceAll("_", " ")} of ${problem.informer}, ${ago(problem.ago + since)}`);
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
    const dead = informers.find(ended);
    if (dead) return ["bad", "Failed", `The informer of ${dead.of} has ended: ${dead.error ?? dead.state}`];
    const failing = informers.find((each) => each.error);
    const well = informers.filter((each) => !each.error).length;
    if (failing && well) return ["wait", `${well} of ${informers.length} live`, ""]; // shown at the tab
    if (failing) {
      const what = failing.synced ? "What you see may be old" : "Nothing was read yet";
      return ["wait", failing.answered ? "Trying again" : "API server away", `${what}: ${failing.of}: ${failing.error}`];
    }
    if (!informers.every((each) => each.synced)) return ["wait", "Syncing", ""];
    return ["good", "Live", ""];
  }
}
