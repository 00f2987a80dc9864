(() => {
  const here = document.querySelector("nav [aria-current]"), strip = here && here.closest("ul");
  if (strip) strip.scrollLeft = here.offsetLeft - strip.offsetLeft - (strip.clientWidth - here.offsetWidth) / 2;
  const box = document.getElementById("filter");
  if (!box) return;
  const form = box.closest("form"), told = document.getElementById("told");
  const rows = [...document.querySelectorAll(".rows li")], groups = [...document.querySelectorAll(".group")];
  const show = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = [...form.querySelectorAll("input[type=checkbox]:checked")].map((each) => each.value);
    let seen = 0;
    for (const row of rows) {
      const text = row.dataset.text, effects = row.dataset.effects.split(" ");
      const fits = words.every((word) => text.includes(word)) && (!wanted.length || wanted.some((one) => effects.includes(one)));
      row.hidden = !fits;
      seen += fits;
    }
    for (const group of groups) group.hidden = !group.querySelector(".rows li:not([hidden])");
    told.textContent = words.length || wanted.length ? `${seen} of ${rows.length} tools` : "";
    document.getElementById("none").hidden = seen > 0;
  };
  form.hidden = false;
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
