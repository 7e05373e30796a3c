/* Small SVG charts; colours and line widths are in style.css. */
"use strict";

const Charts = (() => {
  const WIDTH = 400;

  function element(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /** Empty a picture, give it a height and words for those who do not see it, and return a function that adds to it. */
  function canvas(svg, height, words) {
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    svg.setAttribute("aria-label", words);
    return (name, attributes, text) => svg.appendChild(element(name, attributes, text));
  }

  /** Round values that span an interval, about four of them. */
  function ticks(low, high) {
    const raw = (high - low) / 4, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((t) => t * power).find((t) => t >= raw);
    const found = [];
    for (let n = Math.ceil(low / step); n * step <= high + 1e-9 * step; n++) found.push(n * step);
    return found.map((t) => [t, String(Number(t.toPrecision(6)))]);
  }

  /** Axes with ticks [position, label]; the pieces drawn later are clipped to them. */
  function axes(svg, { x, y, xTicks, yTicks, xLabel, yLabel = "", height = 290, words }) {
    const add = canvas(svg, height, words);
    const left = 54, right = 10, top = yLabel ? 24 : 12, bottom = 42;
    const px = (t) => left + (t - x[0]) / (x[1] - x[0]) * (WIDTH - left - right);
    const py = (t) => height - bottom - (t - y[0]) / (y[1] - y[0]) * (height - top - bottom);
    const clip = `clip-${svg.id}`;
    add("clipPath", { id: clip }).append(
      element("rect", { x: left, y: top, width: WIDTH - left - right, height: height - top - bottom }));
    (xTicks || ticks(...x)).forEach(([t, label]) => {
      add("line", { x1: px(t), x2: px(t), y1: py(y[0]), y2: py(y[1]), class: "grid" });
      add("text", { x: px(t), y: height - bottom + 16, "text-anchor": "middle", class: "tick" }, label);
    });
    (yTicks || ticks(...y)).forEach(([t, label]) => {
      add("line", { x1: px(x[0]), x2: px(x[1]), y1: py(t), y2: py(t), class: "grid" });
      add("text", { x: left - 6, y: py(t) + 4, "text-anchor": "end", class: "tick" }, label);
    });
    add("text", { x: (left + WIDTH - right) / 2, y: height - 6, "text-anchor": "middle" }, xLabel);
    if (yLabel) add("text", { x: 6, y: 15 }, yLabel);
    const clipped = (name, attributes) => add(name, { ...attributes, "clip-path": `url(#${clip})` });
    const path = (points) => points.map(([a, b], n) => `${n ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("");
    return {
      line: (points, kind) => clipped("path", { d: path(points), class: `line ${kind}` }),
      segments: (pairs, kind) => clipped("path", { d: pairs.map(path).join(""), class: `line ${kind}` }),
      ring: (a, b, kind) => {  // whole, also where it stands at the edge
        if (x[0] <= a && a <= x[1] && y[0] <= b && b <= y[1])
          add("circle", { cx: px(a), cy: py(b), r: 6, class: `hollow ${kind}` });
      },
      diamond: (a, b, kind) =>
        clipped("path", { d: `M${px(a)} ${py(b) - 8}l7 8l-7 8l-7 -8z`, class: `solid ${kind}` }),
      cross: (a, b, kind) =>
        clipped("path", { d: `M${px(a) - 7} ${py(b)}h14m-7 -7v14`, class: `line ${kind}` }),
    };
  }

  /** Level lines of values on a grid by marching squares, as pairs of points. */
  function contours(xs, ys, values, level) {
    const pairs = [];
    for (let r = 0; r + 1 < ys.length; r++) {
      for (let c = 0; c + 1 < xs.length; c++) {
        const corners = [[r, c], [r, c + 1], [r + 1, c + 1], [r + 1, c]];
        const cut = [];
        corners.forEach(([r0, c0], n) => {
          const [r1, c1] = corners[(n + 1) % 4];
          const from = values[r0][c0] - level, to = values[r1][c1] - level;
          if ((from < 0) === (to < 0)) return;
          const t = from / (from - to);
          cut.push([xs[c0] + t * (xs[c1] - xs[c0]), ys[r0] + t * (ys[r1] - ys[r0])]);
        });
        for (let n = 0; n + 1 < cut.length; n += 2) pairs.push([cut[n], cut[n + 1]]);
      }
    }
    return pairs;
  }

  return { WIDTH, canvas, axes, contours };
})();
