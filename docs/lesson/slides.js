// Arrow, page and space keys turn the slides; everything else is scrolling.
addEventListener("keydown", (event) => {
  const turn = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 }[event.key];
  if (!turn || event.ctrlKey || event.altKey || event.metaKey) return;
  const all = [...document.querySelectorAll("section")];
  const here = all.findIndex((slide) => slide.getBoundingClientRect().bottom > innerHeight / 2);
  all[Math.min(all.length - 1, Math.max(0, here + turn))].scrollIntoView();
  event.preventDefault();
});
