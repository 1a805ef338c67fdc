// The map: all items as points, which a lasso picks.
const map = data.map, canvas = $("canvas"), pen = canvas?.getContext("2d"), MAP = 4095;
const RED = (share) => `hsl(${210 - 2.1 * share} 70% 50%)`, FAINT = "#8886";
const hue = (label) => `hsl(${(label * 137.5) % 360} 65% 50%)`;

// Where draw() put each row, in pixels of the page.
let points = [];

// The colour of each row, and what the colours mean.
function colours() {
  const way = $("colour").value;
  if (way === "suspicion") return [map.suspicion.map(RED), [0, 50, 100].map((n) => [RED(n), `${n} %`])];
  if (way === "label") {
    const counts = new Map();
    for (const label of map.labels) counts.set(label, (counts.get(label) || 0) + 1);
    const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 12);
    return [map.labels.map(hue), most.map(([label]) => [hue(label), data.classes[label]])];
  }
  const found = map.ids.map(() => FAINT), [rows, people, classes] = map.votes;
  rows.forEach((row, n) => { if (people[n] === +way) found[row] = RED(classes[n] === map.labels[row] ? 0 : 100); });
  return [found, [[RED(0), "the settled label"], [RED(100), "another"], [FAINT, "no vote"]]];
}

function draw() {
  const scale = devicePixelRatio, [found, legend] = colours(), size = map.ids.length > 5000 ? 2 : 5;
  const { clientWidth: wide, clientHeight: high } = canvas;
  [canvas.width, canvas.height] = [wide * scale, high * scale];
  points = map.places.map(([x, y]) => [6 + (wide - 12) * (x / MAP), 6 + (high - 12) * (y / MAP)]);
  pen.scale(scale, scale);
  found.forEach((colour, row) => {
    const [x, y] = points[row];
    pen.fillStyle = colour;
    pen.fillRect(x - size / 2, y - size / 2, size, size);
  });
  pen.strokeStyle = getComputedStyle(canvas).color;
  $("legend").replaceChildren(...legend.map(([colour, text]) => {
    const sign = element("i");
    sign.style.background = colour;
    return element("span", {}, sign, text);
  }));
}

function hover({ offsetX: x, offsetY: y }) {
  let best = 12, near;
  points.forEach(([a, b], row) => {
    const far = Math.abs(a - x) + Math.abs(b - y);
    if (far < best) [best, near] = [far, row];
  });
  if (near === undefined) return;
  const given = map.sets[near].map((label) => data.classes[label]).join(", ");
  $("under").textContent = `${map.ids[near]}: settled ${data.classes[map.labels[near]]}; given ${given}; suspicion ${map.suspicion[near]} %`;
}

function pick(lasso) {
  const within = (row) => pen.isPointInPath(lasso, points[row][0] * devicePixelRatio, points[row][1] * devicePixelRatio);
  const rows = new Set([...map.ids.keys()].filter(within));
  const inside = map.listed.flatMap((row, one) => (one < data.total && rows.has(row) ? [one] : []));
  const count = (number) => number.toLocaleString("en");
  $("under").textContent = `${count(rows.size)} items, ${count(inside.length)} of them listed for review. `;
  if (inside.length) $("under").append(element("button", { textContent: "Review them", onclick: () => only(inside) }));
}

function only(places) {
  list = places;
  $("all").hidden = list.length === data.total;
  $("all").textContent = `${list.length} items of the map: show all`;
  location.hash = "/review";
  go(list[0]);
}

if (map) {
  let lasso = null;
  const ways = [["label", "settled label"], ["suspicion", "suspicion"], ...map.people.map((name, n) => [n, `votes of ${name}`])];
  $("colour").append(...ways.map(([value, textContent]) => element("option", { value, textContent })));
  $("colour").onchange = draw;
  window.addEventListener("resize", () => $("map").hidden || draw());
  canvas.onpointerdown = (event) => {
    draw();
    canvas.setPointerCapture(event.pointerId);
    lasso = new Path2D();
    lasso.moveTo(event.offsetX, event.offsetY);
  };
  canvas.onpointermove = (event) => {
    if (!lasso) return hover(event);
    lasso.lineTo(event.offsetX, event.offsetY);
    pen.stroke(lasso);
  };
  canvas.onpointerup = () => {
    lasso.closePath();
    pen.stroke(lasso);
    pick(lasso);
    lasso = null;
  };
  if (data.total) $("all").onclick = () => only([...Array(data.total).keys()]);
}
