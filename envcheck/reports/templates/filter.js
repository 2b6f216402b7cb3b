(() => {
  "use strict";
  const table = document.querySelector("#machines table");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const input = document.createElement("input");
  input.type = "search";
  input.placeholder = "name, code, product …";
  input.setAttribute("aria-label", "Filter the machines by words");
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
    }
  });
  document.querySelector("#machines-h").after(input);
})();
