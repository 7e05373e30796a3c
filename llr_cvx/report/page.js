const table = document.getElementById("rows"), body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
heads.forEach((head, k) => {
  const value = row => row.cells[k].textContent;
  const compare = head.classList.contains("n") ? (a, b) => value(a) - value(b) : (a, b) => value(a).localeCompare(value(b));
  head.innerHTML = `<button type="button">${head.innerHTML}</button>`;
  head.firstChild.addEventListener("click", () => {
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    body.append(...[...body.rows].sort((a, b) => sign * compare(a, b)));
  });
});
const field = document.getElementById("filter");
field.closest("p").hidden = body.rows.length <= 5;
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/);
  for (const part of [...body.rows, ...document.querySelectorAll("article")]) {
    part.hidden = !words.every(word => part.textContent.toLowerCase().includes(word));
  }
  const count = body.querySelectorAll("tr:not([hidden])").length;
  document.getElementById("shown").textContent = field.value.trim() && `${count} of ${body.rows.length} rows`;
});
