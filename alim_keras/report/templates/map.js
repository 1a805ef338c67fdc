// The map: all items as points, which a lasso picks; it zooms and moves.
const map = data.map, canvas = $("canvas"), pen = canvas?.getContext("2d"), MAP = 4095;
const RED = (share) => `hsl(${210 - 2.1 * share} 70% 50%)`, FAINT = "#8886";
const hue = (label) => `hsl(${(label * 137.5) % 360} 65% 50%)`;

// Where draw() put each row, x and y in pixels of the page; and the rows by
// colour, as to change the pen's takes longer than to draw.
const points = new Float32Array(2 * (map?.ids.length ?? 0)), rowsOf = new Map();
const WHOLE = { scale: 1, x: 0, y: 0 }, CLOSEST = 200;
let view = WHOLE, isDue = false;

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

function paint() {
  const [found, legend] = colours();
  rowsOf.clear();
  // Those without a vote lie below the others.
  rowsOf.set(FAINT, []);
  found.forEach((colour, row) => {
    if (!rowsOf.has(colour)) rowsOf.set(colour, []);
    rowsOf.get(colour).push(row);
  });
  $("legend").replaceChildren(...legend.map(([colour, text]) => {
    const sign = element("i");
    sign.style.background = colour;
    return element("span", {}, sign, text);
  }));
  draw();
}

function draw() {
  const dots = devicePixelRatio, { clientWidth: wide, clientHeight: high } = canvas;
  const size = (map.ids.length > 5000 ? 2 : 5) * Math.min(3, Math.sqrt(view.scale));
  isDue = false;
  [canvas.width, canvas.height] = [wide * dots, high * dots];
  pen.scale(dots, dots);
  for (const [colour, rows] of rowsOf) {
    pen.fillStyle = colour;
    for (const row of rows) {
      const [a, b] = map.places[row];
      const x = view.x + view.scale * (6 + (wide - 12) * (a / MAP));
      const y = view.y + view.scale * (6 + (high - 12) * (b / MAP));
      points[2 * row] = x;
      points[2 * row + 1] = y;
      if (x > -size && y > -size && x < wide + size && y < high + size) pen.fillRect(x - size / 2, y - size / 2, size, size);
    }
  }
  pen.strokeStyle = getComputedStyle(canvas).color;
}

// Shows another part of the map, with the next frame.
function look(change) {
  view = { ...view, ...change };
  if (!isDue) requestAnimationFrame(draw);
  isDue = true;
}

function zoom(wish, x, y) {
  const scale = Math.min(Math.max(view.scale * wish, 1), CLOSEST), by = scale / view.scale;
  look(scale === 1 ? WHOLE : { scale, x: x + by * (view.x - x), y: y + by * (view.y - y) });
}

function hover({ offsetX: x, offsetY: y }) {
  let best = 12, near;
  for (let row = 0; row < map.ids.length; row++) {
    const far = Math.abs(points[2 * row] - x) + Math.abs(points[2 * row + 1] - y);
    if (far < best) [best, near] = [far, row];
  }
  if (near === undefined) return;
  const given = map.sets[near].map((label) => data.classes[label]).join(", ");
  $("under").textContent = `${map.ids[near]}: settled ${data.classes[map.labels[near]]}; given ${given}; suspicion ${map.suspicion[near]} %`;
}

function pick(lasso) {
  const within = (row) => pen.isPointInPath(lasso, points[2 * row] * devicePixelRatio, points[2 * row + 1] * devicePixelRatio);
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
  // Where each finger or the mouse is, while it is down.
  const down = new Map();
  let lasso = null;
  const ways = [["label", "settled label"], ["suspicion", "suspicion"], ...map.people.map((name, n) => [n, `votes of ${name}`])];
  $("colour").append(...ways.map(([value, textContent]) => element("option", { value, textContent })));
  $("colour").onchange = paint;
  window.addEventListener("resize", () => $("map").hidden || draw());
  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, [event.offsetX, event.offsetY]);
    draw();
    lasso = null;
    if (event.shiftKey || down.size > 1) return;
    lasso = new Path2D();
    lasso.moveTo(event.offsetX, event.offsetY);
  };
  canvas.onpointermove = (event) => {
    const { offsetX: x, offsetY: y, pointerId } = event, [oldX, oldY] = down.get(pointerId) ?? [];
    if (oldX === undefined) return hover(event);
    down.set(pointerId, [x, y]);
    const other = [...down].find(([id]) => id !== pointerId)?.[1];
    if (lasso) {
      lasso.lineTo(x, y);
      pen.stroke(lasso);
    } else if (other) {
      const far = (a, b) => Math.hypot(a - other[0], b - other[1]) || 1;
      zoom(far(x, y) / far(oldX, oldY), (x + other[0]) / 2, (y + other[1]) / 2);
      look({ x: view.x + (x - oldX) / 2, y: view.y + (y - oldY) / 2 });
    } else {
      look({ x: view.x + x - oldX, y: view.y + y - oldY });
    }
  };
  canvas.onpointerup = canvas.onpointercancel = (event) => {
    down.delete(event.pointerId);
    if (!lasso) return;
    lasso.closePath();
    pen.stroke(lasso);
    pick(lasso);
    lasso = null;
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    // A pinch on a touchpad comes as small steps with ctrl.
    const step = event.deltaY * (event.deltaMode ? 20 : 1) * (event.ctrlKey ? 5 : 1);
    if (!lasso) zoom(Math.exp(-0.002 * step), event.offsetX, event.offsetY);
  }, { passive: false });
  canvas.ondblclick = () => look(WHOLE);
  if (data.total) $("all").onclick = () => only([...Array(data.total).keys()]);
}
