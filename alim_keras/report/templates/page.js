"use strict";
// The review of a list of items: each has a picture and candidates, and gets
// one answer. The page keeps answers in the browser's storage; where a server
// stands behind it (data.served) that keeps them.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const AT_ONCE = 40, STRIP = 14, SEARCHED = 8;
const items = new Map(data.items.map((item, place) => [place, item]));
let place = data.start, visible = place, answered = data.answered, busy = false;

function element(tag, fields = {}, ...children) {
  const made = Object.assign(document.createElement(tag), fields);
  made.append(...children);
  return made;
}

// Places on show: all, or those of the items inside the map's lasso.
let list = [...Array(data.total).keys()];

// What a server does, in the page: labels by id, the last one given last; null
// is "cannot tell". Without a label an answer is taken back.
const KEY = `alim_keras answers ${data.run}`;
let labels = new Map(), stored = true;
// Places and what was there before, for undo.
let before = data.before.map((one) => ({ place: one }));

function storage(act) {
  try {
    if (stored) return act();
  } catch (error) {
    stored = false;
    say("This browser keeps no answers: save them before you leave.");
  }
}

function settle() {
  // Another tab may have the same page open.
  labels = new Map(storage(() => JSON.parse(localStorage.getItem(KEY))) || labels);
  for (const item of items.values()) {
    delete item.label;
    if (labels.has(item.id)) item.label = labels.get(item.id);
  }
  answered = [...items.values()].filter((item) => "label" in item).length;
}

// Takes what another tab, or the page before a reload, has stored since.
function recall() {
  const wasFree = !("label" in items.get(place));
  settle();
  const places = new Map(data.items.map((item, one) => [item.id, one]));
  before = [...labels.keys()].filter((id) => places.has(id)).map((id) => ({ place: places.get(id) }));
  if (wasFree && "label" in items.get(place)) place = unanswered(place);
}

function keep(change) {
  const item = items.get(change.place);
  settle();
  labels.delete(item.id);
  if ("label" in change) labels.set(item.id, change.label);
  storage(() => localStorage.setItem(KEY, JSON.stringify([...labels])));
  settle();
  return { ...change, answered, next: unanswered(change.place) };
}

function unanswered(after) {
  const at = list.indexOf(after), others = [...list.slice(at + 1), ...list.slice(0, at + 1)];
  return others.find((one) => !("label" in (items.get(one) || {}))) ?? after;
}

async function ask(address, options) {
  const reply = await fetch(address, options);
  if (!reply.ok) throw new Error(`${reply.status} ${reply.statusText}`);
  return reply.json();
}

function post(change) {
  const headers = { "Content-Type": "application/json" };
  return ask("answer", { method: "POST", headers, body: JSON.stringify(change) });
}

async function load(one) {
  if (!items.has(one)) {
    const from = one - (one % AT_ONCE);
    const part = await ask(`items/${from}`);
    part.forEach((item, n) => items.set(from + n, item));
  }
  return items.get(one);
}

async function change(wish, isUndo = false) {
  if (busy || !wish) return;
  busy = true;
  // The space bar would press a button that was clicked.
  document.activeElement.blur();
  say("");
  try {
    const item = await load(wish.place), old = { place: wish.place };
    if ("label" in item) old.label = item.label;
    const state = await (data.served ? post(wish) : keep(wish));
    if (isUndo) before.pop();
    else before.push(old);
    delete item.label;
    if ("label" in state) item.label = state.label;
    answered = state.answered;
    const next = list.length < data.total ? unanswered(wish.place) : state.next;
    place = isUndo ? wish.place : next;
    if (answered === data.total) say("All items have an answer.");
  } catch (error) {
    say(`The answer is not kept: ${error.message}`);
  }
  await show().catch((error) => say(error.message));
  busy = false;
}

function say(text) {
  $("note").textContent = text;
}

async function show() {
  const shown = place, item = await load(shown);
  if (shown !== place) return;
  // What a key answers is what a person sees.
  visible = shown;
  const picture = $("picture");
  picture.src = item.image || "data:,";
  picture.hidden = !item.image;
  picture.alt = item.id;
  $("name").textContent = `${shown + 1} of ${data.total.toLocaleString("en")}: ${item.id}`;
  $("reason").textContent = item.reason;
  $("choices").replaceChildren(...item.choices.map(([name, share, given], n) => {
    const text = element("span", { textContent: name });
    if (!given) text.append(element("small", { textContent: "not in the set" }));
    const button = element("button", { onclick: () => change({ place: visible, label: name }) },
      element("kbd", { textContent: n + 1 }), text,
      element("span", { textContent: `${Math.round(100 * share)} %` }));
    button.style.setProperty("--share", `${100 * share}%`);
    button.setAttribute("aria-pressed", item.label === name);
    return button;
  }));
  $("unsure").setAttribute("aria-pressed", item.label === null);
  $("other").value = item.label && !item.choices.some((c) => c[0] === item.label) ? item.label : "";
  $("found").replaceChildren();
  aside("votes", "Votes", item.votes.map(([who, name]) => `${who}: ${name}`).join(", "));
  aside("near", "Nearest items, and their settled labels", item.near.length && element("div", {},
    ...item.near.map(([image, label]) => element("figure", {},
      element("img", { src: image, alt: "" }), element("figcaption", { textContent: label })))));
  progress();
  strip(shown);
}

function aside(id, title, content) {
  $(id).replaceChildren();
  if (content) $(id).append(element("div", { className: "side" }, element("b", { textContent: title }), content));
}

function progress() {
  $("bar").max = data.total;
  $("bar").value = answered;
  $("count").textContent = `${answered.toLocaleString("en")} of ${data.total.toLocaleString("en")} answered`;
}

async function strip(shown) {
  const at = list.indexOf(shown), first = Math.max(0, Math.min(at - 1, list.length - STRIP));
  const part = list.slice(first, at + STRIP + 1);
  await load(part.at(-1));
  if (shown !== place) return;
  const buttons = [];
  for (const one of part) {
    const item = await load(one);
    const button = element("button", { title: item.id, onclick: () => go(one) });
    if (item.image) button.append(element("img", { src: item.thumb || item.image, alt: "" }));
    button.append("label" in item ? (item.label ?? "cannot tell") : item.choices[0][0]);
    button.classList.toggle("answered", "label" in item);
    if (one === shown) button.setAttribute("aria-current", "true");
    buttons.push(button);
  }
  if (shown !== place) return;
  $("strip").replaceChildren(...buttons);
  const next = items.get(list[at + 1]);
  if (next && next.image) new Image().src = next.image;
}

function go(one) {
  place = one;
  say("");
  return show();
}

function search() {
  const typed = $("other").value.trim().toLowerCase();
  const starts = [], holds = [];
  for (const name of typed ? data.classes : []) {
    const at = name.toLowerCase().indexOf(typed);
    if (at === 0) (name.length === typed.length ? starts.unshift(name) : starts.push(name));
    else if (at > 0) holds.push(name);
  }
  $("found").replaceChildren(...[...starts, ...holds].slice(0, SEARCHED).map((name) =>
    element("button", { textContent: name, onclick: () => change({ place: visible, label: name }) })));
}

function cell(text) {
  return `"${text.replaceAll('"', '""')}"`;
}

function csv() {
  const rows = [...labels].filter(([, label]) => label !== null);
  return ["id,label", ...rows.map((row) => row.map(cell).join(","))].join("\n") + "\n";
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("review").hidden) return;
  const typing = event.target.id === "other";
  if (typing && event.key === "Enter") $("found").firstChild?.click();
  if (typing && ["Enter", "Escape"].includes(event.key)) event.target.blur();
  const isPressed = event.target.closest("button, a") && event.key === " ";
  if (typing || isPressed) return;
  const buttons = $("choices").children;
  if (event.key === "0") $("other").focus();
  else if (event.key >= "1" && event.key <= "9") buttons[event.key - 1]?.click();
  else if (event.key === " ") $("unsure").click();
  else if (event.key === "u") $("undo").click();
  else if (event.key === "ArrowRight") go(list[list.indexOf(place) + 1] ?? place);
  else if (event.key === "ArrowLeft") go(list[list.indexOf(place) - 1] ?? place);
  else return;
  event.preventDefault();
}

const SVG = "http://www.w3.org/2000/svg";
// Columns of metrics.csv that share a plot.
const CURVES = [["loss", "cls_loss", "cont_loss", "mix_loss"], ["covering_rate", "holdout_covering_rate", "outside"],
  ["lambda"], ["pseudo_label_accuracy", "test_accuracy"]];

function plot(names) {
  const known = names.filter((name) => data.history[name]?.some((value) => value !== null));
  const values = known.flatMap((name) => data.history[name]).filter((value) => value !== null);
  const low = Math.min(...values), high = Math.max(...values);
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 300 150");
  const legend = known.map((name, n) => {
    const column = data.history[name], line = document.createElementNS(SVG, "polyline");
    const x = (epoch) => (300 * epoch) / Math.max(column.length - 1, 1);
    const points = column.map((value, epoch) => [x(epoch), 145 - (140 * (value - low)) / (high - low || 1)]);
    line.setAttribute("points", points.filter((_, epoch) => column[epoch] !== null).join(" "));
    line.setAttribute("class", `colour${n}`);
    drawing.append(line);
    const last = column.findLast((value) => value !== null);
    return element("span", { className: `colour${n}`, textContent: `${name.replaceAll("_", " ")} ${last.toPrecision(3)}` });
  });
  const range = `${low.toPrecision(3)} to ${high.toPrecision(3)} in ${data.history[known[0]]?.length} epochs; at last: `;
  return known.length ? [element("figure", {}, drawing, element("figcaption", {}, range, ...legend))] : [];
}

function open(id) {
  const sections = [...document.querySelectorAll("main > section")];
  if (!sections.some((section) => section.id === id)) id = sections[0].id;
  for (const section of sections) section.hidden = section.id !== id;
  const tabs = document.querySelector("header nav");
  tabs.hidden = false;
  tabs.replaceChildren(...sections.map((section) => {
    const tab = element("button", { textContent: section.dataset.title, onclick: () => { location.hash = `/${section.id}`; } });
    if (section.id === id) tab.setAttribute("aria-current", "page");
    return tab;
  }));
  if (id === "map") paint();
}

{% include 'map.js' %}
window.addEventListener("hashchange", () => open(location.hash.slice(2)));
open(location.hash.slice(2));
$("plots")?.append(...CURVES.flatMap(plot));
if (data.total) {
  $("done").hidden = false;
  if (!data.served) {
    recall();
    window.addEventListener("storage", ({ key }) => {
      if (![KEY, null].includes(key)) return;
      recall();
      show();
    });
    $("save").onclick = (event) => {
      event.currentTarget.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    };
  }
  // Enlarged further, a small picture is harder to make out.
  $("picture").onload = (event) => event.target.style.setProperty("--most", `${48 * event.target.naturalWidth}px`);
  $("unsure").onclick = () => change({ place: visible, label: null });
  $("undo").onclick = () => change(before.at(-1), true);
  $("other").oninput = search;
  document.addEventListener("keydown", pressed);
  show();
}
