// Shows the pictures that the server sends, and asks it for what the visitor wants. It computes no number of a counter.
"use strict";

const $ = (selector, under = document) => under.querySelector(selector);
const english = new Intl.NumberFormat("en");
const number = { format: (value) => english.format(value).replace("-", "−") };
const still = matchMedia("(prefers-reduced-motion: reduce)");
const wide = matchMedia("(min-width: 861px)");
const ROWS = 14;
const START = `make demo-web PORT=${location.port}`; // where this page looks for it
const HELD_MS = 1000; // a slider that is being moved is not set back by an older picture
const held = {};
let picture = null;
let asked = false; // whether the story of the address was asked for

// -- what the visitor does ------------------------------------------------------------------------------------------

async function ask(what) {
  let said = "";
  try {
    const answer = await fetch("/do", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(what),
    });
    if (!answer.ok) said = (await answer.json()).error;
  } catch {
    said = `The demo does not answer: start it again with ${START}.`;
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
on($("#again"), () => ask({ begin: { story: picture.story.name, seed: picture.story.seed } }));
on($("#tell"), () => ask({ tell: !picture.story.by_itself }));
on($("#next"), () => ask({ go: picture.story.steps[picture.story.at + 1] }));
$("#more").addEventListener("click", () => {
  const open = $(".controls").classList.toggle("open");
  $("#more").setAttribute("aria-expanded", String(open));
});
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
  followAddress();
  const { controls, head, story } = picture;
  for (const slider of document.querySelectorAll("input[type=range]")) {
    if (Date.now() - (held[slider.id] ?? 0) > HELD_MS) showSlider(slider, controls[slider.id]);
  }
  document.body.classList.toggle("cut", controls.cut);
  document.body.dataset.story = story.name;
  write($("#cut"), controls.cut ? "Heal the link" : "Cut the link");
  write($("#paused"), controls.paused ? "Go on" : "Pause");
  turn($("#step"), controls.paused);
  showStory(story);
  write($("#head-label"), head.label);
  write($("#truth"), number.format(head.value));
  write($("#truth-says"), head.says);
  write($("#verdict"), picture.verdict);
  picture.cable.forEach(showWay);
  picture.regions.forEach(showRegion);
  showRequests(picture.requests);
}

// -- the story and the address --------------------------------------------------------------------------------------

/** The first picture: ask for the story of the address. Later ones: the address names what is shown, to be shared. */
function followAddress() {
  const { name, seed } = picture.story;
  const address = new URLSearchParams(location.search);
  const wanted = { story: address.get("story") ?? name, seed: Number(address.get("seed") ?? seed) };
  const isShown = wanted.story === name && wanted.seed === seed;
  if (!asked && !isShown) {
    ask({ begin: { ...wanted, seed: Number.isFinite(wanted.seed) ? wanted.seed : address.get("seed") } });
  } else if (!isShown || !address.has("story") || !address.has("seed")) {
    history.replaceState(null, "", `?${new URLSearchParams({ story: name, seed })}`);
  }
  asked = true;
}

function showStory(story) {
  const list = $("#steps");
  if (list.dataset.story !== story.name) {
    list.dataset.story = story.name;
    list.replaceChildren(...story.steps.map((name) => {
      const item = document.createElement("li");
      const button = item.appendChild(document.createElement("button"));
      button.type = "button";
      button.textContent = name;
      on(button, () => ask({ go: name }));
      return item;
    }));
    $("#stories").replaceChildren(...picture.stories.map(([name, title]) => {
      const link = document.createElement("a");
      link.textContent = title;
      if (name === story.name) link.setAttribute("aria-current", "page");
      return link;
    }));
    $("#regions").replaceChildren();
  }
  picture.stories.forEach(([name], at) => { // the seed may be another one: a second tab asked for it
    const address = `?${new URLSearchParams({ story: name, seed: story.seed })}`;
    const link = $("#stories").children[at];
    if (link.getAttribute("href") !== address) link.href = address;
  });
  [...list.children].forEach((item, at) => {
    const button = item.firstElementChild;
    if (at === story.at) button.setAttribute("aria-current", "step"); else button.removeAttribute("aria-current");
  });
  write($("#caption"), story.caption);
  write($("#tell"), story.by_itself ? "Stop here" : story.over ? "Tell it again" : "Go on by itself");
  turn($("#next"), story.at + 1 < story.steps.length);
}

// -- the cable ------------------------------------------------------------------------------------------------------

function showWay(way, index) {
  const cable = $("#cable");
  const box = cable.children[index] ?? cable.appendChild($("#way").content.cloneNode(true).firstElementChild);
  const { cut } = picture.controls;
  const back = index === 0; // the first Region is on the left, so what goes there goes left
  box.classList.toggle("back", back);
  const items = way.count === 1 ? "1 item" : `${number.format(way.count)} items`;
  write($("p", box), `${back ? "← " : ""}to ${way.to}: ${items} ${cut ? "held up" : "on the way"}${back ? "" : " →"}`);
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

// -- the Regions ----------------------------------------------------------------------------------------------------

function showSlider(slider, value) {
  slider.value = value;
  const text = number.format(value) + slider.dataset.unit;
  write($(`output[for=${slider.id}]`), text);
  slider.setAttribute("aria-valuetext", text);
}

function showRegion(region, index) {
  const article = $("#regions").children[index] ?? makeRegion(region);
  article.dataset.compactor = region.crash ?? "";
  write($(".state", article), region.state);
  $(".crash", article).hidden = region.crash === null;
  turn($(".crash", article), region.crash === "running");
  $(".know", article).hidden = region.know === null;
  if (region.know) write($(".know", article), `can know ${number.format(region.know.value)}: ${region.know.says}`);
  for (const [design, { value, mood, note, why }] of Object.entries(region.counters)) {
    const box = $(`[data-design=${design}]`, article);
    box.dataset.mood = mood;
    write($(".value", box), number.format(value));
    write($(".note", box), note);
    write($(".why", box), why.join("\n"));
  }
  showChart($("figure", article), region);
  region.lanes.forEach((lane, which) => showLane(article.querySelectorAll(".lane")[which], lane, region.name));
}

function makeRegion(region) {
  const article = $("#region").content.cloneNode(true).firstElementChild;
  write($("h2", article), region.name);
  write($(".whose", article), region.name);
  article.dataset.region = region.name;
  $(".crash", article).setAttribute("aria-label", `Crash the compactor of ${region.name}`);
  on($(".crash", article), () => ask({ crash: region.name }));
  for (const [design, name] of Object.entries(picture.designs)) {
    const box = $(".counters", article).appendChild(document.createElement("div"));
    box.dataset.design = design;
    for (const [kind, className] of [["dt", ""], ["dd", "value"], ["dd", "note"], ["dd", "why"]]) {
      box.appendChild(document.createElement(kind)).className = className;
    }
    write($("dt", box), name);
  }
  const caption = $("figcaption", article);
  for (const [line, name] of Object.entries(picture.lines)) {
    $("svg", article).appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path")).setAttribute("class", line);
    const key = caption.appendChild(document.createElement("span"));
    key.className = `key ${line}`;
    key.textContent = name;
  }
  const lanes = $(".lanes", article);
  lanes.open = wide.matches;
  lanes.hidden = !region.lanes.length;
  for (const lane of region.lanes) {
    const section = $("#lane").content.cloneNode(true).firstElementChild;
    const home = lane.region === region.name;
    write($("h3", section), `Lane ${lane.region}${home ? ", at home" : ", as it has arrived here"}`);
    if (!home) write($("[data-place=stray] span", section), "only its home can tell");
    lanes.append(section);
  }
  $("#regions").append(article);
  return article;
}

function showChart(figure, region) {
  const { samples } = picture;
  const drawn = ({ columns }) =>
    Object.keys(picture.lines).map((name) => [name, samples.map((sample) => sample[columns[name]] ?? 0)]);
  const lines = drawn(region);
  const values = picture.regions.flatMap((each) => drawn(each).flatMap(([, points]) => points)); // one scale for both
  const least = values.length ? Math.min(...values) : 0;
  const most = Math.max(least + 10, ...values);
  for (const [name, points] of lines) {
    const path = points.map((value, x) =>
      `${(600 * x / Math.max(119, points.length - 1)).toFixed(1)} ${(122 - 114 * (value - least) / (most - least)).toFixed(1)}`);
    $(`path.${name}`, figure).setAttribute("d", path.length > 1 ? `M${path.join("L")}` : "");
  }
  write($(".most", figure), number.format(most));
  write($(".least", figure), number.format(least));
  const said = Object.entries(picture.designs).map(([design, name]) => `${name} ${region.counters[design].value}`);
  $("svg", figure).setAttribute("aria-label", `In ${region.name} now: ${picture.head.label} ${picture.head.value}, ${said.join(", ")}`);
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
    write($("i", row), number.format(count) + (count > blocks.length ? `, last\u00a0${blocks.length}` : ""));
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
  return `${change < 0 ? "" : "+"}${number.format(change)}`;
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
    body.rows[at].classList.toggle("again", row.came.startsWith("there already"));
    const texts = [(row.at_ms / 1000).toFixed(2), row.region, row.who, row.asked, row.came];
    texts.forEach((text, cell) => write(body.rows[at].cells[cell], text));
  });
}

// -- the server -----------------------------------------------------------------------------------------------------

const pictures = new EventSource("/pictures");
pictures.addEventListener("message", (event) => show(JSON.parse(event.data)));
pictures.addEventListener("open", () => write($("#problem"), ""));
pictures.addEventListener("error", () => write($("#problem"), `The demo has ended. Start it again with ${START}; this page goes on by itself.`));
