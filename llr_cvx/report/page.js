"use strict";
const table = document.getElementById("rows"), body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
const key = (row, k) => {
  const text = row.cells[k].textContent, number = Number(text.replace("−", "-"));
  return text.trim() === "" || Number.isNaN(number) ? text.toLowerCase() : number;
};
const before = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
heads.forEach((head, k) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  head.replaceChildren(button);
  button.addEventListener("click", () => {
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const rows = [...body.rows].map(row => [key(row, k), row]).sort((a, b) => sign * before(a[0], b[0]));
    body.append(...rows.map(pair => pair[1]));
  });
});
const field = document.getElementById("filter"), shown = document.getElementById("shown");
field.closest("p").hidden = body.rows.length <= 5;
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const part of [...body.rows, ...document.querySelectorAll("article")]) {
    part.hidden = !words.every(word => part.textContent.toLowerCase().includes(word));
  }
  const count = [...body.rows].filter(row => !row.hidden).length;
  shown.textContent = words.length ? `${count} of ${body.rows.length} rows` : "";
});
