"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const one = (selector, root = document) => root.querySelector(selector);
const element = (name, text) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  return made;
};

// Light and dark: the reader's system decides until the switch is used.
const system = matchMedia("(prefers-color-scheme: dark)");
const button = one("#scheme");
let chosen = null;
try { chosen = localStorage.getItem("alim-scheme"); } catch { /* not allowed */ }
const paint = () => {
  if (chosen) document.documentElement.dataset.scheme = chosen;
  const dark = chosen ? chosen === "dark" : system.matches;
  button.textContent = dark ? "Light" : "Dark";
  return dark;
};
button.hidden = false;
button.addEventListener("click", () => {
  chosen = paint() ? "light" : "dark";
  try { localStorage.setItem("alim-scheme", chosen); } catch { /* not kept */ }
  paint();
});
system.addEventListener("change", paint);
paint();

// Tables: a header sorts, "-" (not known) always comes last.
const words = new Intl.Collator(undefined, { numeric: true });
const key = (row, column) => {
  const cell = row.cells[column];
  const text = cell.textContent.trim();
  if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
  return text === "-" ? null : text;
};
const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : words.compare(a, b);
for (const head of all("th[aria-sort]")) {
  one("button", head).addEventListener("click", () => {
    const body = head.closest("table").tBodies[0];
    const first = head.classList.contains("num") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    for (const th of head.parentNode.cells) {
      if (th.hasAttribute("aria-sort")) th.setAttribute("aria-sort", "none");
    }
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => [key(row, head.cellIndex), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return sign * compare(a, b);
    });
    body.append(...rows.map(([, row]) => row));
  });
}

// Filters: every word must occur somewhere in the row.
for (const box of all("input[data-filter]")) {
  const name = box.dataset.filter;
  const rows = [...one(`#table-${name}`).tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = !wanted.every((word) => texts[i].includes(word));
      shown += !row.hidden;
    });
    one(`[data-count="${name}"]`).textContent =
      wanted.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
  });
}

// The window of one example.
const items = JSON.parse(one("#items").textContent);
const dialog = one("#item");
let group = [];
let place = 0;
const show = () => {
  const opener = group[place];
  const item = items[opener.dataset.item];
  one("#item-title").replaceChildren(element("bdi", item.id));
  const pictures = all(`[data-item="${opener.dataset.item}"] img`);
  pictures.sort((a, b) => b.getAttribute("width") - a.getAttribute("width"));
  const box = one(".picture", dialog);
  box.replaceChildren(...pictures.slice(0, 1).map((img) => img.cloneNode()));
  box.hidden = !pictures.length;
  const list = one("dl", dialog);
  list.replaceChildren();
  for (const [term, values] of item.facts) {
    list.append(element("dt", term));
    for (const value of values) {
      const line = element("dd");
      line.append(element("bdi", value));
      list.append(line);
    }
  }
  for (const step of all("[data-step]", dialog)) {
    step.disabled = !group[place + Number(step.dataset.step)];
    // A disabled button would keep the keyboard from the window.
    if (step.disabled && step === document.activeElement) {
      one("[data-close]", dialog).focus();
    }
  }
};
const move = (by) => {
  if (!group[place + by]) return;
  place += by;
  show();
};
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-item]");
  if (!opener) return;
  group = all("[data-item]", opener.closest("ul, tbody"));
  group = group.filter((each) => !each.closest("[hidden]"));
  place = group.indexOf(opener);
  show();
  dialog.showModal();
});
dialog.addEventListener("click", (event) => {
  const target = event.target.closest("button");
  if (target && target.dataset.step) move(Number(target.dataset.step));
  // The dialog itself is hit only beside its content.
  else if (target || event.target === dialog) dialog.close();
});
dialog.addEventListener("keydown", (event) => {
  if (event.key === "ArrowRight") move(1);
  if (event.key === "ArrowLeft") move(-1);
});
dialog.addEventListener("close", () => group[place].focus());
