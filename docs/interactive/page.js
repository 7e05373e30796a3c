/* The page: its state, what its controls do, and its pictures. */
"use strict";

(() => {
  const OUTLIERS = 3, LARGEST_STEP = 400, FIRST_EPSILON = 0.05;
  const FLOOR = -9; // power of ten down to which distances from J* are drawn
  const $ = (id) => document.getElementById(id);
  const range = (n, low, high) => Array.from({ length: n }, (_, k) => low + (high - low) * k / (n - 1));
  const short = (t) => (t !== 0 && (Math.abs(t) < 1e-3 || Math.abs(t) >= 1e5) ? t.toExponential(1) : t.toPrecision(3));
  const power = (n) => (n >= -2 && n <= 2 ? String(10 ** n) : `1e${n}`);
  const powers = (low, high) => range(high - low + 1, low, high).map((n) => [n, power(n)]);
  const names = INSTANCE.X.map((_, i) =>
    `${i + 1} (${i >= INSTANCE.X.length - OUTLIERS ? "outlier" : INSTANCE.y[i] > 0 ? "known inlier" : "test"})`);

  /** Rows apart from each other and none of them zero: every term of J has something to do. */
  const START = INSTANCE.X.map((x, i) => x.map((t) => INSTANCE.y[i] * t / (1 + x.reduce((s, u) => s + u * u, 0))));

  const state = { p: null, best: null, epsilon: FIRST_EPSILON, rows: [], later: 0 };
  const chosen = () => {
    const i = Number($("sample").value), k = Number($("feature").value);
    return { i, k, other: (k + 1) % INSTANCE.X[0].length };
  };
  const current = () => state.rows[state.rows.length - 1];
  const replaced = (W, i, weights) => W.map((w, n) => (n === i ? w.map((t, k) => weights[k] ?? t) : w));

  // ---- what the controls do ------------------------------------------------------------------------------

  function row(W, before) {
    const at = LLR.smoothed(state.p, W, state.epsilon);
    const bound = LLR.dual(state.p, at.alpha, at.U);
    const dual = before ? Math.max(before.dual, bound) : bound;
    return { W, epsilon: state.epsilon, J: at.objective, smooth: at.value, dual };
  }

  function restart() {
    state.rows = [row(START)];
  }

  function step() {
    if (state.rows.length > LARGEST_STEP) return;
    if ($("shrink").checked) setEpsilon(Math.max(0.7 * state.epsilon, 1e-6));
    const { W } = current(), above = LLR.majoriser(state.p, W, state.epsilon);
    const next = row(above.minimiser(), current());
    next.fell = above.value(W) - above.value(next.W);
    next.smoothFell = above.at.value - next.smooth;
    state.rows.push(next);
  }

  function setEpsilon(value) {
    state.epsilon = value;
    $("epsilon").value = Math.log10(value);
    show("epsilon", value);
  }

  function show(id, value) {
    $(`${id}-value`).textContent = short(value);
    $(id).setAttribute("aria-valuetext", short(value));
  }

  function setPenalties() {
    const lambda1 = 10 ** $("lambda1").value, lambda2 = 10 ** $("lambda2").value;
    show("lambda1", lambda1);
    show("lambda2", lambda2);
    state.p = { ...INSTANCE, lambda1, lambda2 };
    state.best = LLR.solve(state.p);
    restart();
  }

  /** Solutions along one penalty, each started from the one before it. */
  function path(key, low, high) {
    let W0 = null;
    return range(25, low, high).map((exponent) => {
      const p = { ...state.p, [key]: 10 ** exponent };
      W0 = LLR.solve(p, { W0, tol: 1e-9 }).W;
      return [exponent, count(LLR.structure(p, W0))];
    });
  }

  const count = ({ zero, cluster }) =>
    ({ rows: new Set(cluster).size, weights: zero.flat().filter((isZero) => !isZero).length });

  // ---- Algorithm 1 ---------------------------------------------------------------------------------------

  function drawSlice1() {
    const { i, k } = chosen(), { W } = current();
    const above = LLR.majoriser(state.p, W, state.epsilon), lowest = above.minimiser([[i, k]])[i][k];
    const here = W[i][k], reach = Math.max(0.25, 2.2 * Math.abs(lowest - here));
    const x = [Math.min(here, lowest) - reach, Math.max(here, lowest) + reach];
    const at = (t) => replaced(W, i, { [k]: t });
    const curve = (f) => range(161, ...x).map((t) => [t, f(at(t))]);
    const smooth = curve((V) => LLR.smoothed(state.p, V, state.epsilon).value);
    const raw = curve((V) => LLR.smoothed(state.p, V, state.epsilon).objective);
    const lows = [...smooth, ...raw].map(([, t]) => t), low = Math.min(...lows), high = Math.max(...lows);
    const picture = Charts.axes($("slice1"), {
      x, y: [low - 0.08 * (high - low), high + 0.25 * (high - low)],
      xLabel: `weight of feature ${k + 1}, sample ${i + 1}`, yLabel: "J along one weight",
      words: `Majoriser at ${short(here)}, where J epsilon is ${short(above.at.value)}; its minimum is at ${short(lowest)}`,
    });
    picture.line(raw, "raw thin dashed");
    picture.line(smooth, "smooth");
    picture.line(curve(above.value), "majoriser");
    picture.ring(here, above.at.value, "smooth");
    picture.diamond(lowest, above.value(at(lowest)), "majoriser");
  }

  function drawSlice2() {
    const { i, k, other } = chosen(), { W } = current();
    const above = LLR.majoriser(state.p, W, state.epsilon);
    const point = (V) => [V[i][k], V[i][other]];
    const here = point(W), lowest = point(above.minimiser([[i, k], [i, other]])), best = point(state.best.W);
    const span = (n) => [here[n], lowest[n], best[n]];
    const half = 0.75 * Math.max(0.25, ...[0, 1].map((n) => Math.max(...span(n)) - Math.min(...span(n))));
    const window = [0, 1].map((n) => (Math.max(...span(n)) + Math.min(...span(n))) / 2).map((t) => [t - half, t + half]);
    const xs = range(41, ...window[0]), ys = range(41, ...window[1]);
    const picture = Charts.axes($("slice2"), {
      x: window[0], y: window[1], height: 340,
      xLabel: `weight of feature ${k + 1}, sample ${i + 1}`, yLabel: `weight of feature ${other + 1}`,
      words: `Level lines over two weights; current point ${here.map(short).join(", ")}, ` +
        `minimum of the majoriser ${lowest.map(short).join(", ")}, optimum ${best.map(short).join(", ")}`,
    });
    const at = (a, b) => replaced(W, i, { [k]: a, [other]: b });
    const kinds = { smooth: (V) => LLR.smoothed(state.p, V, state.epsilon).value, majoriser: above.value };
    const floor = above.value(at(...lowest)), height = Math.max(above.at.value - floor, 0.02);
    Object.entries(kinds).forEach(([kind, f]) => {
      const values = ys.map((b) => xs.map((a) => f(at(a, b))));
      [-0.5, 0.05, 0.3, 1, 2.5, 6, 14].forEach((t) =>
        picture.segments(Charts.contours(xs, ys, values, floor + t * height), `${kind} thin`));
    });
    picture.line(state.rows.map((r) => point(r.W)), "faint thin");
    picture.cross(...best, "dual");
    picture.ring(...here, "smooth");
    picture.diamond(...lowest, "majoriser");
  }

  function drawGap() {
    const optimum = (state.best.objective + state.best.dual) / 2;
    const height = (t) => Math.max(0, Math.log10(Math.max(t, 1e-300)) - FLOOR);
    const above = state.rows.map((r, t) => [t, height(r.J - optimum)]);
    const below = state.rows.map((r, t) => [t, -height(optimum - r.dual)]);
    const marks = [-6, -3, 0].flatMap((n) => [[n - FLOOR, `+${power(n)}`], [FLOOR - n, `−${power(n)}`]]);
    const last = current();
    const picture = Charts.axes($("gap"), {
      x: [-0.6, Math.max(10, state.rows.length - 1)], y: [FLOOR - 2.5, 2.5 - FLOOR],
      yTicks: [[0, "J*"], ...marks], xLabel: "step", yLabel: "distance from J*",
      words: `After ${state.rows.length - 1} steps J is ${short(last.J - optimum)} above and D ` +
        `${short(optimum - last.dual)} below the optimum ${optimum.toPrecision(6)}`,
    });
    picture.line([[-1, 0], [LARGEST_STEP + 1, 0]], "faint thin");
    picture.line(above, "raw");
    picture.line(below, "dual");
    [["raw", above], ["dual", below]].forEach(([kind, points]) => picture.ring(...points[points.length - 1], kind));
  }

  function fillHistory() {
    const cells = (r, t) => [
      t, short(r.epsilon), r.J.toFixed(6), r.smooth.toFixed(6), r.fell === undefined ? "" : short(r.fell),
      r.fell === undefined ? "" : short(r.smoothFell), r.dual.toFixed(6), short(r.J - r.dual),
    ];
    $("history").replaceChildren(...state.rows.map(cells).slice(-5).map((texts) => {
      const line = document.createElement("tr");
      texts.forEach((text) => { line.insertCell().textContent = text; });
      return line;
    }));
    const last = current(), steps = state.rows.length - 1;
    Object.assign($("said").dataset, { step: steps, J: last.J, smooth: last.smooth, dual: last.dual });
    $("said").innerHTML = `Step ${steps}: J = ${last.J.toFixed(6)}, proved to be at most ` +
      `${short(last.J - last.dual)} above the optimum.` +
      (steps ? ` The majoriser fell by ${short(last.fell)}, J<sub>ε</sub> by ${short(last.smoothFell)}: at least as much.` : "");
  }

  // ---- the optimum ---------------------------------------------------------------------------------------

  function letters(cluster) {
    const shared = [...new Set(cluster)].filter((c) => cluster.filter((t) => t === c).length > 1);
    return cluster.map((c) => (shared.includes(c) ? String.fromCharCode(65 + shared.indexOf(c)) : ""));
  }

  /** The candidate that is farthest from all places taken: where a label can be read. */
  function roomiest(candidates, taken) {
    const room = ([x, y]) => Math.min(...taken.map(([a, b]) => Math.hypot(a - x, b - y)));
    return candidates.reduce((best, next) => (room(next) > room(best) + 1 ? next : best));
  }

  /** The colour of a sample: one for outliers, one for other test samples, one for known inliers. */
  const kind = (i) => (i >= INSTANCE.X.length - OUTLIERS ? "outlier" : INSTANCE.y[i] < 0 ? "raw" : "faint");

  function drawSamples(found) {
    const height = 290, add = Charts.canvas($("samples"), height, `The samples in the plane of features 1 and 2; ` +
      `${found.fused.filter(Boolean).length} of ${found.fused.length} edges are fused`);
    const [xs, ys] = [0, 1].map((k) => INSTANCE.X.map((x) => x[k]));
    const fit = (values, low, high) => (t) =>
      low + (t - Math.min(...values)) / (Math.max(...values) - Math.min(...values)) * (high - low);
    const px = fit(xs, 22, Charts.WIDTH - 34), py = fit(ys, height - 40, 20);
    INSTANCE.edges.forEach(([i, j], e) => add("line", {
      x1: px(xs[i]), y1: py(ys[i]), x2: px(xs[j]), y2: py(ys[j]), class: found.fused[e] ? "edge fused" : "edge",
    }));
    const named = letters(found.cluster), taken = INSTANCE.X.map((x) => [px(x[0]), py(x[1])]);
    INSTANCE.X.forEach((x, i) => {
      const [cx, cy] = taken[i], look = `solid ${kind(i)}`;
      if (kind(i) === "outlier") add("path", { d: `M${cx} ${cy - 9}l8.5 15h-17z`, class: look });
      else if (kind(i) === "raw") add("circle", { cx, cy, r: 6.5, class: look });
      else add("rect", { x: cx - 6, y: cy - 6, width: 12, height: 12, class: look });
      const [tx, ty] = roomiest([[18, -12], [-18, -12], [18, 14], [-18, 14], [0, -18], [0, 20]]
        .map(([dx, dy]) => [cx + dx, cy + dy]), taken);
      taken.push([tx, ty]);
      add("text", { x: tx, y: ty + 4, "text-anchor": "middle", class: "letter" }, `${i + 1}${named[i]}`);
    });
    add("text", { x: Charts.WIDTH / 2, y: height - 6, "text-anchor": "middle" }, "feature 1 →  (feature 2 upwards)");
  }

  function drawWeights(found) {
    const { W } = state.best, size = 22, top = 24, left = 128, width = 74;
    const add = Charts.canvas($("weights"), top + W.length * size + 6, `Weights: ${found.zero.flat().filter(Boolean).length} ` +
      `of ${W.length * W[0].length} are zero; distinct rows: ${new Set(found.cluster).size}`);
    const largest = Math.max(...W.flat().map(Math.abs)), named = letters(found.cluster);
    W[0].forEach((_, k) => {
      const x = left + (k + 0.5) * width;
      add("line", { x1: x, y1: top, x2: x, y2: top + W.length * size, class: "grid" });
      add("text", { x, y: 15, "text-anchor": "middle", class: "tick" }, `feature ${k + 1}`);
    });
    W.forEach((w, i) => {
      const y = top + i * size;
      add("text", { x: left - 8, y: y + 15, "text-anchor": "end", class: "tick" }, `${named[i]} ${names[i]}`);
      w.forEach((t, k) => {
        const middle = left + (k + 0.5) * width, share = Math.abs(t) / largest;
        if (found.zero[i][k]) add("circle", { cx: middle, cy: y + size / 2, r: 2, class: "solid faint" });
        else add("rect", {
          x: t > 0 ? middle : middle - share * width / 2, y: y + 3, width: Math.max(1, share * width / 2), height: size - 6,
          class: `solid ${kind(i)}`,
        });
      });
    });
    add("text", { x: Charts.WIDTH - 4, y: 15, "text-anchor": "end", class: "tick" }, `±${short(largest)}`);
  }

  function drawPath(id, points, low, high, here, label) {
    const picture = Charts.axes($(id), {
      x: [low, high], y: [0, 44], height: 165, xTicks: powers(low, high), yTicks: [0, 14, 28, 42].map((n) => [n, String(n)]),
      xLabel: label, words: `Structure along ${label}, from ${points[0][1].rows} distinct rows and ` +
        `${points[0][1].weights} weights to ${points[points.length - 1][1].rows} and ${points[points.length - 1][1].weights}`,
    });
    picture.line([[here, 0], [here, 99]], "faint thin dashed");
    picture.line(points.map(([t, found]) => [t, found.weights]), "majoriser");
    picture.line(points.map(([t, found]) => [t, found.rows]), "raw");
  }

  // ---- together ------------------------------------------------------------------------------------------

  function drawSteps() {
    drawSlice1();
    drawSlice2();
    drawGap();
    fillHistory();
  }

  function drawOptimum() {
    const found = LLR.structure(state.p, state.best.W), { rows, weights } = count(found), { best } = state;
    Object.assign($("found").dataset, { J: best.objective, dual: best.dual, rows, weights });
    $("found").textContent = `J* = ${best.objective.toFixed(9)}, proved to within ` +
      `${short(Math.max(best.objective - best.dual, 0))}. ${rows} distinct rows, ${weights} weights that are not zero.`;
    drawSamples(found);
    drawWeights(found);
    clearTimeout(state.later); // fifty solves: only once the slider rests
    state.later = setTimeout(drawPaths, 150);
  }

  function drawPaths() {
    drawPath("path1", path("lambda1", -3, 1), -3, 1, Math.log10(state.p.lambda1), "λ1");
    drawPath("path2", path("lambda2", -2, 1), -2, 1, Math.log10(state.p.lambda2), "λ2");
  }

  function connect() {
    const option = (text, value) => new Option(text, value);
    $("sample").append(...names.map(option));
    $("feature").append(...INSTANCE.X[0].map((_, k) => option(k + 1, k)));
    $("sample").value = INSTANCE.X.length - 1;
    $("feature").value = 1; // it vanishes for this sample: J has a kink at the optimum
    ["sample", "feature"].forEach((id) => $(id).addEventListener("change", drawSteps));
    ["lambda1", "lambda2"].forEach((id) => $(id).addEventListener("input", () => {
      setPenalties();
      drawSteps();
      drawOptimum();
    }));
    $("epsilon").addEventListener("input", () => {
      setEpsilon(10 ** $("epsilon").value);
      if (state.rows.length === 1) restart();
      drawSteps();
    });
    const press = (id, work) => $(id).addEventListener("click", () => { work(); drawSteps(); });
    press("step", step);
    press("ten", () => range(10, 1, 10).forEach(step));
    press("again", () => { setEpsilon(FIRST_EPSILON); restart(); });
    document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  }

  connect();
  setEpsilon(FIRST_EPSILON);
  setPenalties();
  if (location.search === "?still") range(2, 1, 2).forEach(step); // the picture for print shows something of a run
  document.querySelector("main").hidden = false;
  drawSteps();
  drawOptimum();
})();
