// Shows the pictures that the server sends, and asks it for what the visitor wants. It computes no number of a counter.
"use strict";

const $ = (selector, under = document) => under.querySelector(selector);
const english = new Intl.NumberFormat("en");
const number = { format: (value) => english.format(value).replace("-", "−") };
const START = `make demo-web PORT=${location.port}`; // where this page looks for it
const EVERY_MS = 200;
const HELD_MS = 1000; // a slider that is being moved is not set back by an older picture
const held = {};
const IDLE_MS = 10_000; // without a click or a key, the page plays itself
const PLAY = { // by the step that the scene is at: how long it lasts, what comes next, and what asks for it
  0: { lasts_ms: 4_000, next: "cut the link", wish: { set: { cut: true } } },
  1: { lasts_ms: 12_000, next: "heal the link", wish: { set: { cut: false } } },
  2: { lasts_ms: 7_000, next: "let it rest", wish: { rest: true } },
};
let picture = null;

// -- what the visitor does ------------------------------------------------------------------------------------------

async function ask(wish) {
  let problem = "";
  try {
    const answer = await fetch("/do", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wish),
    });
    if (!answer.ok) problem = answer.statusText;
  } catch {
    problem = `The demo does not answer: start it again with ${START}.`;
  }
  write($("#problem"), problem);
}

for (const slider of document.querySelectorAll("input[type=range]")) {
  slider.addEventListener("input", () => {
    held[slider.id] = Date.now();
    showSlider(slider, slider.valueAsNumber);
    ask({ set: { [slider.id]: slider.valueAsNumber } });
  });
}

/** What a button does; one that is off keeps the focus and does nothing. */
function on(button, act) {
  button.addEventListener("click", () => picture && button.getAttribute("aria-disabled") !== "true" && act());
}

function turn(button, isOn) {
  button.setAttribute("aria-disabled", String(!isOn));
}

on($("#cut"), () => ask({ set: { cut: !picture.controls.cut } }));
on($("#paused"), () => ask({ set: { paused: !picture.controls.paused } }));
on($("#rest"), () => ask({ rest: true }));
on($("#step"), () => ask({ step: true }));
on($("#again"), () => ask({ begin: true }));

// -- the play: the steps one by one, until a visitor takes over -----------------------------------------------------

const play = { on: false, step: null, since_ms: 0, idle_since: Date.now(), untouched: true };

function start() {
  Object.assign(play, { on: true, step: null, untouched: false });
  if (picture.step === 4) ask({ begin: true });
  else if (picture.controls.paused) ask({ set: { paused: false } });
}

on($("#play"), () => {
  if (play.on) play.on = false;
  else start();
  showPlay();
});

/** Any click or key hands over to the visitor, but those of the play's own button. */
for (const kind of ["click", "keydown", "input"]) {
  document.addEventListener(kind, ({ target, key }) => {
    play.untouched = false;
    if (!$("#play").contains(target) || (key && key !== "Enter" && key !== " ")) play.on = false;
    if (picture) showPlay();
  }, true);
}

/** Goes on with the play by the scene's time, which a slow computer stretches. Returns what comes next, in words. */
function goOn() {
  const { step, now_ms, wait, controls } = picture;
  if (step !== play.step || now_ms < play.since_ms) {
    if (step === 4 && play.step !== null) play.on = false; // the verdict is its end
    Object.assign(play, { step, since_ms: now_ms });
  }
  const act = PLAY[step === 3 && controls.cut ? 1 : step]; // whoever cuts a link at rest waits for ever
  if (!act) return wait;
  const left_ms = act.lasts_ms - (now_ms - play.since_ms);
  if (left_ms > 0) return `Next: ${act.next}, in ${Math.ceil(left_ms / 1000)} s`;
  play.since_ms = now_ms;
  ask(act.wish);
  return `Now: ${act.next}`;
}

function showPlay() {
  const idle_ms = Date.now() - play.idle_since;
  const waits = play.untouched && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (waits && idle_ms >= IDLE_MS) start();
  const next = play.on ? goOn() : picture.wait || (waits ? `Plays by itself in ${Math.ceil((IDLE_MS - idle_ms) / 1000)} s` : "");
  write($("#next"), next);
  document.body.classList.toggle("plays", play.on);
  write($("#play span"), play.on ? "Stop" : "Play");
  $("#play").setAttribute("aria-label", play.on ? "Stop the play" : "Play the five steps");
}

/** What a narrow window folds, and a visitor opens. */
const wide = matchMedia("(min-width: 960px)");
wide.onchange = () => { for (const box of document.querySelectorAll(".folds")) box.open = wide.matches; };
wide.onchange();

// -- what the page shows --------------------------------------------------------------------------------------------

/** Sets a text only when it is another one: a screen reader hears what changed, and nothing is laid out in vain. */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function show(next) {
  picture = next;
  const { controls } = picture;
  for (const slider of document.querySelectorAll("input[type=range]")) {
    if (Date.now() - (held[slider.id] ?? 0) > HELD_MS) showSlider(slider, controls[slider.id]);
  }
  for (const name of ["cut", "paused"]) document.body.classList.toggle(name, controls[name]);
  write($("#cut span"), controls.cut ? "Heal the link" : "Cut the link");
  write($("#paused span"), controls.paused ? "Go on" : "Pause");
  turn($("#step"), controls.paused);
  write($("#truth"), number.format(picture.truth));
  for (const part of ["says", "verdict", "caption"]) write($(`#${part}`), picture[part]);
  showPlay();
  showSteps(picture.step);
  showVerdicts(picture.verdicts);
  showSale(picture.sale);
  picture.cable.forEach(showWay);
  picture.regions.forEach(showRegion);
  showRequests(picture.requests);
}

function showSlider(slider, value) {
  slider.value = value;
  const text = number.format(value) + slider.dataset.unit;
  write($(`output[for=${slider.id}]`), text);
  slider.setAttribute("aria-valuetext", text);
}

function showSteps(now) {
  document.body.dataset.step = now;
  [...$("#steps").children].forEach((step, at) => {
    step.classList.toggle("done", at <= now);
    if (at === now) step.setAttribute("aria-current", "step");
    else step.removeAttribute("aria-current");
  });
}

function showVerdicts(verdicts) {
  const list = $("#verdicts");
  document.body.classList.toggle("rests", verdicts.length > 0);
  if (!verdicts.length) list.replaceChildren();
  verdicts.forEach(({ design, mood, reads, note }, at) => {
    const box = list.children[at] ?? list.appendChild(document.createElement("li"));
    box.dataset.mood = mood;
    for (const [tag, text] of [["strong", reads], ["span", `${picture.designs[design]}: ${note}`]]) {
      write($(tag, box) ?? box.appendChild(document.createElement(tag)), text.replaceAll("-", "−"));
    }
  });
}

/** A hall is as wide as its seats; who was sold a seat that is not there stands beyond its edge. */
function showSale({ seats, says, sellers }) {
  write($("#sale-says"), says);
  write($("#sale-title"), `Seats sold, of ${number.format(seats)}`);
  const most = Math.max(1.6 * seats, ...Object.values(sellers).map(({ sold }) => sold));
  Object.entries(sellers).forEach(([design, { name, sold, mood, note }]) => {
    const box = $(`.sale [data-design=${design}]`) ?? makeSeller(design, name);
    box.dataset.mood = mood;
    write($(".sold", box), number.format(sold));
    write($(".note", box), note);
    $(".hall", box).style.width = `${(100 * seats) / most}%`;
    $(".taken", box).style.width = `${(100 * Math.min(sold, seats)) / seats}%`;
    $(".over", box).style.width = `${(100 * Math.max(0, sold - seats)) / seats}%`;
  });
}

function makeSeller(design, name) {
  const box = $("#seller").content.cloneNode(true).firstElementChild;
  box.dataset.design = design;
  write($(".name", box), name);
  $(".sale").append(box);
  return box;
}

function showWay(way, index) {
  const cable = $("#cable");
  const box = cable.children[index] ?? cable.appendChild($("#way").content.cloneNode(true).firstElementChild);
  const { cut } = picture.controls;
  const back = index === 0; // the first Region is on the left, so what goes there goes left
  box.classList.toggle("back", back);
  const items = way.count === 1 ? "1 item" : `${number.format(way.count)} items`;
  const says = !cut && picture.controls.lag_ms === 0 ? "items cross at once" : `${items} ${cut ? "held up" : "on the way"}`;
  write($("p", box), `${back ? "← " : ""}to ${way.to}: ${says}${back ? "" : " →"}`);
  const track = $(".track", box);
  const old = new Map([...track.children].map((dot) => [dot.dataset.number, dot]));
  way.items.forEach(([id, design, far], at) => {
    const known = old.get(String(id));
    const dot = known ?? track.appendChild(document.createElement("i"));
    old.delete(String(id));
    dot.dataset.number = id;
    dot.dataset.design = design;
    const place = cut ? 47.5 - at * Math.min(0.8, 46 / way.items.length) : 1 + 97 * far;
    dot.style.left = `${back ? 100 - place : place}%`;
  });
  for (const dot of old.values()) dot.remove();
}

function showRegion(region, index) {
  const article = $("#regions").children[index] ?? makeRegion(region);
  article.dataset.compactor = region.compactor;
  write($(".state", article), region.state);
  turn($(".crash", article), region.compactor === "running");
  write($(".received", article), region.received);
  for (const [design, { value, mood, note }] of Object.entries(region.counters)) {
    const box = $(`[data-design=${design}]`, article);
    box.dataset.mood = mood;
    write($(".value", box), number.format(value));
    write($(".note", box), note);
  }
  showChart($("figure", article), region);
  showBars($(".bars", article), region.chart);
}

function showBars(bars, changes) {
  const most = Math.max(1, ...changes.map(Math.abs));
  changes.forEach((change, at) => {
    const bar = bars.children[at] ?? bars.appendChild(document.createElement("i"));
    bar.style.height = `${(100 * Math.abs(change)) / most}%`;
    bar.title = number.format(change);
  });
}

function makeRegion(region) {
  const article = $("#region").content.cloneNode(true).firstElementChild;
  write($("h2", article), region.name);
  article.dataset.region = region.name;
  $(".crash", article).setAttribute("aria-label", `Crash the compactor of ${region.name}`);
  on($(".crash", article), () => ask({ crash: region.name }));
  for (const [design, name] of Object.entries(picture.designs)) {
    const box = $(".counters", article).appendChild(document.createElement("div"));
    box.dataset.design = design;
    for (const [kind, className] of [["dt", ""], ["dd", "value"], ["dd", "note"]]) {
      box.appendChild(document.createElement(kind)).className = className;
    }
    write($("dt", box), name);
  }
  for (const [line, name] of Object.entries(picture.lines)) {
    $("figure svg", article).appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path")).setAttribute("class", line);
    const key = $("figcaption", article).appendChild(document.createElement("span"));
    key.className = `key ${line}`;
    key.textContent = name;
  }
  $("#regions").append(article);
  return article;
}

function showChart(figure, region) {
  const { samples } = region;
  const values = picture.regions.flatMap((each) => each.samples).flat(); // one scale for both Regions
  const least = Math.min(0, ...values);
  const most = Math.max(least + 10, ...values);
  Object.keys(picture.lines).forEach((name, line) => {
    const path = samples.map((sample, x) => {
      const height = 122 - 114 * (sample[line] - least) / (most - least);
      return `${(600 * x / Math.max(119, samples.length - 1)).toFixed(1)} ${height.toFixed(1)}`;
    });
    $(`path.${name}`, figure).setAttribute("d", path.length > 1 ? `M${path.join("L")}` : "");
  });
  write($(".most", figure), number.format(most));
  write($(".least", figure), number.format(least));
  const read = Object.entries(picture.designs).map(([design, name]) => `${name} ${region.counters[design].value}`);
  $("svg", figure).setAttribute("aria-label", `In ${region.name} now: the truth ${picture.truth}, ${read.join(", ")}`);
}

function showRequests(requests) {
  const body = $("#rows");
  while (body.rows.length < requests.length) {
    const row = body.insertRow();
    for (const name of ["at", "where", "who", "asked", "came"]) row.insertCell().className = name;
  }
  while (body.rows.length > requests.length) body.deleteRow(-1);
  requests.forEach((texts, at) => {
    body.rows[at].classList.toggle("again", texts.at(-1).startsWith("there already"));
    texts.forEach((text, cell) => {
      write(body.rows[at].cells[cell], text);
      body.rows[at].cells[cell].title = text;
    });
  });
}

// -- the server -----------------------------------------------------------------------------------------------------

let isLost = false;

async function watch() {
  if (!document.hidden) await look(); // the scene's time passes only while somebody asks for its picture
  setTimeout(watch, EVERY_MS);
}

document.addEventListener("visibilitychange", () => { play.idle_since = Date.now(); });

async function look() {
  try {
    show(await (await fetch("/picture")).json());
    if (isLost) write($("#problem"), "");
    isLost = false;
  } catch {
    isLost = true;
    write($("#problem"), `The demo has ended. Start it again with ${START}; this page goes on by itself.`);
  }
}

watch();
