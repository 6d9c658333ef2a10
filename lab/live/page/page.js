// Shows the pictures that the server sends, and asks it for what the visitor wants. It computes no number of a counter.
"use strict";

const $ = (selector, under = document) => under.querySelector(selector);
const number = new Intl.NumberFormat("en");
const still = matchMedia("(prefers-reduced-motion: reduce)");
const ROWS = 14;
const HELD_MS = 1000; // a slider that is being moved is not set back by an older picture
const DESIGNS = ["ours", "atomic", "merge"];
const NAMES = { ours: "this library", atomic: "atomic ADD", merge: "naive merge" };
const held = {};
let picture = null;

// -- what the visitor does ------------------------------------------------------------------------------------------

async function ask(what) {
  let said = "";
  try {
    const answer = await fetch("/do", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what),
    });
    if (!answer.ok) said = (await answer.json()).error;
  } catch {
    said = "The demo does not answer: start it again with make demo-web.";
  }
  write($("#problem"), said);
}

for (const slider of document.querySelectorAll("input[type=range]")) {
  slider.addEventListener("input", () => {
    held[slider.id] = Date.now();
    showSlider(slider, slider.valueAsNumber);
    ask({ set: { [slider.id]: slider.valueAsNumber } });
  });
}
$("#cut").addEventListener("click", () => ask({ set: { cut: !picture?.controls.cut } }));
$("#paused").addEventListener("click", () => ask({ set: { paused: !picture?.controls.paused } }));
for (const name of ["rest", "step", "again"]) {
  $(`#${name}`).addEventListener("click", () => ask({ [name]: true }));
}
for (const box of document.querySelectorAll(".kinds input")) {
  box.addEventListener("change", () => picture && showRequests(picture.requests));
}

// -- what the page shows --------------------------------------------------------------------------------------------

/** Sets a text only when it is another one: a screen reader hears what changed, and nothing is laid out in vain. */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function show(next) {
  picture = next;
  const { controls, truth } = picture;
  for (const slider of document.querySelectorAll("input[type=range]")) {
    if (Date.now() - (held[slider.id] ?? 0) > HELD_MS) showSlider(slider, controls[slider.id]);
  }
  document.body.classList.toggle("cut", controls.cut);
  write($("#cut"), controls.cut ? "Heal the link" : "Cut the link");
  write($("#paused"), controls.paused ? "Go on" : "Pause");
  $("#step").disabled = !controls.paused;
  write($("#truth"), number.format(truth.value));
  write($("#truth-says"), `the sum of ${number.format(truth.count)} changes, each once, as customers made them; ` +
    `delivered again: ${number.format(truth.redelivered)}`);
  write($("#verdict"), picture.verdict);
  picture.regions.forEach(showRegion);
  showRequests(picture.requests);
}

function showSlider(slider, value) {
  slider.value = value;
  const text = number.format(value) + slider.dataset.unit;
  write($(`output[for=${slider.id}]`), text);
  slider.setAttribute("aria-valuetext", text);
}

function showRegion(region, index) {
  const article = $("#regions").children[index] ?? makeRegion(region);
  const { folded, settled, cleaned } = region.done;
  const compactor = {
    running: `Compactor: ${number.format(folded)} folded, ${number.format(settled)} settled, ${number.format(cleaned)} cleaned.`,
    "about to crash": "The compactor crashes at its next write.",
    crashed: "The compactor crashed right after a write.",
  }[region.compactor];
  article.dataset.compactor = region.compactor;
  write($(".state", article), `${compactor} Arriving: ${number.format(region.arriving)} items.`);
  $(".crash", article).disabled = region.compactor !== "running";
  for (const design of DESIGNS) {
    const box = $(`[data-design=${design}]`, article);
    box.dataset.mood = region.counters[design].mood;
    write($(".value", box), number.format(region.counters[design].value));
    write($(".note", box), region.counters[design].note);
  }
  showChart($("figure", article), region, 2 + index * DESIGNS.length);
  region.lanes.forEach((lane, which) => showLane($(".lanes", article).children[which], lane, region.name));
}

function makeRegion(region) {
  const article = $("#region").content.cloneNode(true).firstElementChild;
  write($("h2", article), region.name);
  article.dataset.region = region.name;
  $(".crash", article).setAttribute("aria-label", `Crash the compactor of ${region.name}`);
  $(".crash", article).addEventListener("click", () => ask({ crash: region.name }));
  for (const lane of region.lanes) {
    const section = $("#lane").content.cloneNode(true).firstElementChild;
    const home = lane.region === region.name;
    write($("h3", section), `Lane ${lane.region}${home ? ", at home" : ", as it has arrived here"}`);
    if (!home) write($("[data-place=stray] span", section), "only its home can tell");
    $(".lanes", article).append(section);
  }
  $("#regions").append(article);
  return article;
}

function showChart(figure, region, from) {
  const lines = { truth: 1, ours: from, atomic: from + 1, merge: from + 2 };
  const { samples } = picture;
  const values = [picture.truth.value, ...samples.flatMap((sample) => Object.values(lines).map((column) => sample[column]))];
  const least = Math.min(...values);
  const most = Math.max(least + 10, ...values);
  for (const [name, column] of Object.entries(lines)) {
    const points = samples.map((sample, x) =>
      `${(600 * (x + 240 - samples.length) / 239).toFixed(1)} ${(120 - 110 * (sample[column] - least) / (most - least)).toFixed(1)}`);
    $(`path.${name}`, figure).setAttribute("d", points.length > 1 ? `M${points.join("L")}` : "");
  }
  write($(".most", figure), number.format(most));
  write($(".least", figure), number.format(least));
  const said = DESIGNS.map((design) => `${NAMES[design]} ${region.counters[design].value}`);
  $("svg", figure).setAttribute("aria-label", `In ${region.name} now: truth ${picture.truth.value}, ${said.join(", ")}`);
}

function showLane(section, lane) {
  const changes = lane.count === 1 ? "1 change" : `${number.format(lane.count)} changes`;
  write($(".checkpoint", section), lane.version
    ? `checkpoint: ${changes} make ${number.format(lane.total)}, version ${lane.version}` : "no checkpoint yet");
  const old = new Map([...section.querySelectorAll("[data-place] li")].map((block) => [block.dataset.name, block]));
  const was = new Map([...old].map(([name, block]) => [name, { place: block.parentNode, box: block.getBoundingClientRect() }]));
  const places = Object.entries(lane.places).map(([place, { count, blocks }]) =>
    [place, count, blocks.map(([name, change]) => [name, signed(change)])]);
  places.push(["segments", lane.segments, lane.newest.map(([version, count, total]) =>
    [`segment ${version}`, `${count === 1 ? "1 change" : `${count} changes`}: ${signed(total)}`])]);
  for (const [place, count, blocks] of places) {
    const row = $(`[data-place=${place}]`, section);
    write($("i", row), number.format(count) + (count > blocks.length ? ` (last ${blocks.length})` : ""));
    const list = $("ul", row);
    blocks.forEach(([name, text], at) => {
      const block = old.get(name) ?? makeBlock(name);
      old.delete(name);
      write(block, text);
      if (list.children[at] !== block) list.insertBefore(block, list.children[at] ?? null);
    });
  }
  for (const block of old.values()) block.remove();
  if (was.size && !still.matches) section.querySelectorAll("[data-place] li").forEach((block) => move(block, was.get(block.dataset.name)));
}

function makeBlock(name) {
  const block = document.createElement("li");
  block.dataset.name = name;
  return block;
}

/** A block that came to another place is seen to go there; a new one to appear. */
function move(block, was) {
  if (!was) {
    block.animate([{ opacity: 0, transform: "scale(.6)" }, {}], 250);
  } else if (was.place !== block.parentNode) {
    const box = block.getBoundingClientRect();
    block.animate([{ transform: `translate(${was.box.x - box.x}px, ${was.box.y - box.y}px)` }, {}], { duration: 500, easing: "ease-out" });
  }
}

function signed(change) {
  return change < 0 ? `−${number.format(-change)}` : `+${number.format(change)}`;
}

function showRequests(requests) {
  const kinds = [...document.querySelectorAll(".kinds input:checked")].map((box) => box.value);
  const shown = requests.filter((row) => kinds.includes(row.kind)).slice(0, ROWS);
  const body = $("#rows");
  while (body.rows.length < shown.length) {
    const row = body.insertRow();
    for (const name of ["at", "where", "who", "asked", "came"]) row.insertCell().className = name;
  }
  while (body.rows.length > shown.length) body.deleteRow(-1);
  shown.forEach((row, at) => {
    const texts = [(row.at_ms / 1000).toFixed(2), row.region, row.who, row.asked, row.came];
    texts.forEach((text, cell) => write(body.rows[at].cells[cell], text));
  });
}

// -- the server -----------------------------------------------------------------------------------------------------

const pictures = new EventSource("/pictures");
pictures.addEventListener("message", (event) => show(JSON.parse(event.data)));
pictures.addEventListener("open", () => write($("#problem"), ""));
pictures.addEventListener("error", () => write($("#problem"), "The demo has ended. Start it again with make demo-web; this page goes on by itself."));
