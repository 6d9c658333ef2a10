"use strict";
// The markup says what is shown: data-of names a field, data-as its form, data-rows a list of rows.
const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const chosen = () => decodeURIComponent(location.hash.slice(1));
const every = () => one("[name=every]:checked").value;
const AS = {
  number: (value) => value.toLocaleString(),
  signed: (value) => (value > 0 ? "+" : "") + value.toLocaleString(),
  time: (value) => new Date(value).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" }),
};
const most = one("#most").textContent;
let about, names, steps, until, plot, turn = Promise.resolve();

function fill(root, said) {
  for (const node of all("[data-of]", root)) {
    const value = said?.[node.dataset.of] ?? null;
    node.textContent = value === null ? "–" : AS[node.dataset.as]?.(value) ?? value;
  }
  for (const node of all("[data-href]", root)) node.href = "#" + encodeURIComponent(said?.[node.dataset.href]);
  for (const node of all("[data-grow]", root)) node.style.flexGrow = Number(said[node.dataset.grow]);
  for (const node of all("[data-empty]", root)) node.hidden = said?.[node.dataset.empty].length !== 0;
  for (const template of all("template", root)) {
    const rows = said?.[template.dataset.rows] ?? [];
    template.parentNode.replaceChildren(template, ...rows.map((row) => fill(template.content.cloneNode(true), row)));
  }
  return root;
}

// A value may have more digits than a double holds.
const exactly = (_, value, { source }) => (Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(source) : value);

// One read after the other; nothing is read of a counter that was left.
function read(part, view, asked, use) {
  const from = location.hash, isLeft = () => part.id !== "list" && from !== location.hash;
  const cost = one(".cost", part), problem = one(".problem", part);
  cost.textContent = `Reading, at most ${most}.`;
  turn = turn.then(async () => {
    if (isLeft()) return;
    const answer = await fetch(`${view}?${new URLSearchParams(asked())}`);
    const said = JSON.parse(await answer.text(), exactly);
    if (isLeft()) return;
    cost.textContent = `It took ${answer.headers.get("Cost")}.`;
    problem.textContent = said.detail;
    if (answer.ok) use(said);
  }).catch((error) => (problem.textContent = `The console does not answer: start it again. (${error.message})`));
}

function list(after) {
  const prefix = one("#prefix").value.trim(), before = after ? names : [];
  read(one("#list"), "counters", () => ({ prefix, ...after }), (said) => {
    names = [...before, ...said.values].sort((a, b) => (a.counter < b.counter ? -1 : 1));
    fill(one("#list"), { names, prefix });
    one("#more").hidden = !said.next;
    one("#more").onclick = () => list({ after: said.next });
    mark();
  });
}

function mark() {
  for (const link of all("#list li a")) link.ariaCurrent = String(link.hash === location.hash);
}

function back(from, number) {
  const at = new Date(from);
  if (every() === "hour") at.setHours(at.getHours() - number);
  else if (every() === "month") at.setMonth(at.getMonth() - number, 1);
  else at.setDate(at.getDate() - number * (every() === "week" ? 7 : 1));
  return at;
}

const STEPS = { hour: 48, day: 30, week: 26, month: 24 };
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const ASKED = {
  series: () => ({
    every: every(), zone, since: back((until ?? Date.now()) - 1, STEPS[every()] - 1).toISOString(),
    ...(until && { until: until.toISOString() }),
  }),
  changes: () => ({ count: about.count }),
  periods: () => ({ counter: about.base, every: about.every, anchor: about.anchor, begins: about.begins ?? "", zone }),
};
const USE = {
  counters(said) {
    about = said;
    for (const part of all("[data-when]")) part.hidden = !said[part.dataset.when];
    return { ...said, parts: Object.entries(said.by_region).map(([region, value]) => ({ region, value })) };
  },
  standing(said) {
    const sides = [["up", "ceiling"], ["down", "floor"]].filter(([, name]) => said[name] !== null).map(([side, name]) => {
      const [left, here, moving, held] = ["available", "here", "moving", "held"].map((of) => said[of][side]);
      const used = side === "up" ? Number(said[name]) - Number(left) - Number(held) : 0;
      return { name, bound: said[name], left, here, moving, held, used: Math.max(0, used) };
    });
    return { sides };
  },
  series(said) {
    const time = every() === "hour" ? { hour: "2-digit", minute: "2-digit" } : {};
    const form = { month: "short", [every() === "month" ? "year" : "day"]: "numeric", ...time };
    steps = said.steps.map((step) => ({ ...step, label: new Date(step.start).toLocaleString(undefined, form) }));
    one("#later").disabled = !until;
    draw();
    return { steps, changed: steps.filter((step) => step.count) };
  },
  holds: ({ holds }) => ({ holds: holds.map((hold) => ({ ...hold, state: hold.over ? "over: whoever is short gets it" : "" })) }),
  changes(said) {
    const newest = new Date(said.entries[0]?.at);
    if (newest < back(Date.now(), STEPS[every()])) until = back(newest, -1);
    return said;
  },
  periods: (said) => ({
    periods: said.periods.reverse().map((row) => ({ ...row, bound: row.ceiling ?? row.floor, left: row.available?.up ?? row.available?.down })),
  }),
  lag: ({ lanes }) => ({ lanes: lanes.map((lane) => ({ ...lane, due: lane.error ?? lane.damage ?? lane.to_do.join(", ") })) }),
};

function draw() {
  const color = (name) => getComputedStyle(document.body).getPropertyValue(name);
  const short = new Intl.NumberFormat(undefined, { notation: "compact" }), points = { show: false };
  const axis = { stroke: color("--soft"), grid: { show: false }, ticks: { show: false }, font: "12px system-ui" };
  const amounts = { ...axis, size: 54, values: (_, splits) => splits.map((value) => short.format(value)) };
  const shown = (field, as) => ({ points, scale: field, value: (...at) => as(steps[at[3] ?? steps.length - 1][field]) });
  plot?.destroy();
  plot = new uPlot({
    width: one("#plot").clientWidth, height: 280, cursor: { drag: { x: false }, points },
    scales: {
      x: { time: false, range: () => [-0.6, steps.length - 0.4] },
      change: { range: (_, low, high) => [Math.min(0, low) * 1.1, Math.max(0, high) * 1.1 || +(low === 0)] },
    },
    axes: [
      { ...axis, space: every() === "hour" ? 110 : 64, incrs: [1, 2, 4, 7, 12, 24], values: (_, at) => at.map((i) => steps[i]?.label) },
      { ...amounts, scale: "change", grid: { stroke: color("--line"), width: 1 } },
      { ...amounts, scale: "value", side: 1 },
    ],
    series: [
      { ...shown("label", String), scale: "x", label: "From" },
      { ...shown("change", AS.signed), label: "Change", fill: color("--ours"), paths: uPlot.paths.bars({ size: [0.7, 40] }) },
      { ...shown("value", AS.number), label: "Value at its end", stroke: color("--sum"), width: 2 },
    ],
  }, [steps.map((_, i) => i), ...["change", "value"].map((name) => steps.map((step) => Number(step[name])))], one("#plot"));
}

function load(part) {
  const view = part.dataset.view;
  read(part, view, () => ({ counter: chosen(), ...ASKED[view]?.() }), (said) => fill(part, USE[view]?.(said) ?? said));
}

function again() {
  load(one("#value"));
  turn = turn.then(() => {
    // what there is beside the value, its answer says; where the chart looks, the last changes say
    for (const view of about ? ["standing", "changes", "series", "holds", "periods", "lag"] : []) {
      const part = one(`#counter [data-view=${view}]`);
      if (!part.hidden && part.open !== false) load(part);
    }
  });
}

function look(to) {
  until = to < Date.now() ? to : undefined;
  load(one("#chart"));
}

function show() {
  const counter = chosen();
  document.title = one("#counter h1").textContent = counter || "Counters";
  one("#none").hidden = counter !== "";
  one("#counter").hidden = counter === "";
  document.body.className = counter && "chosen";
  mark();
  until = about = undefined;
  plot = plot?.destroy();
  for (const part of all("#counter > [data-view]")) {
    fill(part);
    part.removeAttribute("open");
    one(".cost", part).textContent = `At most ${most}.`;
  }
  if (counter) again();
}

for (const part of all("details[data-view]")) part.ontoggle = () => part.open && load(part);
one("#list form").onsubmit = (event) => (event.preventDefault(), list());
one("#again").onclick = again;
one("#chart form").onchange = () => load(one("#chart"));
one("#earlier").onclick = () => look(new Date(steps[0].start));
one("#later").onclick = () => look(back(steps.at(-1).end, -STEPS[every()]));
matchMedia("(prefers-color-scheme: dark)").onchange = onresize = () => plot && draw();
onhashchange = show;
list();
show();
