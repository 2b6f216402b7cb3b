"use strict";
(() => {
  const one = selector => document.querySelector(selector);
  const all = (selector, from) => [...(from || document).querySelectorAll(selector)];
  const table = one("#all");
  if (!table) return;
  document.documentElement.classList.add("js");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const original = new Map(rows.map((row, place) => [row, place]));
  const words = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));
  const cells = new Map(all("#cells a").map(cell => [(cell.querySelector("strong") || cell).textContent, cell]));
  const cellOf = new Map(rows.map(row => [row, cells.get(row.cells[0].textContent)]));
  const input = one(".find input"), output = one(".find output");
  const collator = new Intl.Collator("en", { numeric: true });
  const state = { text: "", state: "", sort: "", by: "" };

  // What is shown, as the address has it: it can be sent, and a reload keeps it.
  const read = () => {
    const told = location.hash.slice(1);
    const asked = new URLSearchParams(told.includes("=") ? told : "");
    if (told && !told.includes("=")) return false; // a place in the page
    for (const key of Object.keys(state)) state[key] = asked.get(key) || "";
    return true;
  };
  const write = () => {
    const told = new URLSearchParams();
    for (const [key, value] of Object.entries(state)) if (value) told.set(key, value);
    const hash = told.toString();
    if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
  };

  const chips = all(".legend li").map(item => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...item.childNodes);
    item.append(button);
    button.addEventListener("click", () => {
      state.state = state.state === item.dataset.state ? "" : item.dataset.state;
      change();
    });
    return [item.dataset.state, button];
  });

  const heads = all("thead th", table).map((head, place) => {
    const name = head.textContent.toLowerCase();
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      state.sort = state.sort === name ? "-" + name : state.sort === "-" + name ? "" : name;
      change();
    });
    return { head, name, place };
  });

  let sorted = "";
  const sort = () => {
    for (const { head, name } of heads)
      head.setAttribute("aria-sort", state.sort === name ? "ascending" : state.sort === "-" + name ? "descending" : "none");
    if (sorted === state.sort) return;
    sorted = state.sort;
    const column = heads.find(({ name }) => name === state.sort.replace(/^-/, ""));
    const back = state.sort.startsWith("-") ? -1 : 1;
    const order = (a, b) => original.get(a) - original.get(b);
    const key = new Map(rows.map(row => [row, column ? row.cells[column.place].textContent : ""]));
    // Nothing comes after something; the states have an order of their own.
    const compare = !column || column.name === "state"
      ? (a, b) => back * order(a, b)
      : (a, b) => (key.get(a) === "") - (key.get(b) === "") || back * collator.compare(key.get(a), key.get(b)) || order(a, b);
    body.append(...[...rows].sort(compare));
  };

  const filter = () => {
    const wanted = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const good = (!state.state || row.dataset.state.split(" ").includes(state.state)) &&
        wanted.every(word => words.get(row).includes(word));
      if (row.hidden === good) row.hidden = !good;
      const cell = cellOf.get(row);
      if (cell) cell.classList.toggle("out", !good);
      shown += good;
    }
    output.textContent = shown === rows.length ? "" : `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} shown`;
    for (const [letter, button] of chips) button.setAttribute("aria-pressed", String(state.state === letter));
  };

  // The map by another kind of place.
  const data = one("#places") ? JSON.parse(one("#places").textContent) : [];
  const map = one("#cells");
  const inOrder = map ? all("a", map) : [];
  const arrangers = [];
  let arranged = data.length ? data[0].kind : "";
  const wellLetters = ["p", "w"];
  const arrange = () => {
    const wanted = data.find(({ kind }) => (kind || "name") === state.by) || data[0];
    if (!wanted) return;
    for (const [kind, button] of arrangers) button.setAttribute("aria-pressed", String(kind === wanted.kind));
    if (arranged === wanted.kind) return;
    arranged = wanted.kind;
    const places = wanted.names.map(() => []);
    wanted.of.forEach((place, number) => places[place].push(inOrder[number]));
    map.className = map.className.replace(/\S+$/, wanted.columns);
    map.replaceChildren(...places.map((these, number) => {
      const place = document.createElement("div"), inside = document.createElement("div");
      place.className = "place";
      these.sort((a, b) => collator.compare(a.title, b.title));
      if (wanted.names[number]) {
        const bad = these.filter(cell => !wellLetters.includes(cell.classList[0])).length;
        const label = document.createElement("p");
        label.textContent = wanted.names[number] + (bad ? " " : "");
        if (bad) label.append(Object.assign(document.createElement("b"), { textContent: bad }));
        place.setAttribute("role", "group");
        place.setAttribute("aria-label", `${wanted.names[number]}: ${these.length} machine${these.length === 1 ? "" : "s"}` + (bad ? `, ${bad} not healthy` : ""));
        place.append(label);
      }
      inside.append(...these);
      place.append(inside);
      return place;
    }));
  };
  if (data.length > 1) {
    const bar = document.createElement("div");
    bar.className = "arrange";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Arrange the map by");
    bar.append("arranged by ");
    for (const { kind } of data) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind || "name";
      button.addEventListener("click", () => { state.by = kind === data[0].kind ? "" : kind || "name"; change(); });
      arrangers.push([kind, button]);
      bar.append(button);
    }
    map.before(bar);
  }

  // One stop of the Tab key; from there the arrow keys go from cell to cell.
  const near = (from, key) => {
    const here = all("a", map), place = here.indexOf(from);
    if (key === "Home") return here[0];
    if (key === "End") return here[here.length - 1];
    if (key === "ArrowRight") return here[place + 1];
    if (key === "ArrowLeft") return here[place - 1];
    const box = from.getBoundingClientRect(), down = key === "ArrowDown";
    let best = null, least = Infinity;
    for (const cell of here) {
      const other = cell.getBoundingClientRect();
      const away = down ? other.top - box.top : box.top - other.top;
      if (away < box.height / 2) continue;
      const far = away * 4 + Math.abs(other.left - box.left);
      if (far < least) [best, least] = [cell, far];
    }
    return best;
  };
  if (map) {
    inOrder.forEach((cell, place) => { cell.tabIndex = place ? -1 : 0; });
    map.addEventListener("keydown", event => {
      if (!/^(Arrow(Up|Down|Left|Right)|Home|End)$/.test(event.key) || event.altKey || event.ctrlKey || event.metaKey) return;
      const from = event.target.closest("a"), next = from && near(from, event.key);
      event.preventDefault();
      if (!next) return;
      from.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }

  const show = () => { sort(); filter(); arrange(); };
  const change = () => { write(); input.value = state.text; show(); };
  input.addEventListener("input", () => { state.text = input.value.trim(); write(); filter(); });
  addEventListener("hashchange", () => { if (read()) { input.value = state.text; show(); } });
  document.addEventListener("click", event => {
    const link = event.target.closest("a[data-find]");
    if (!link) return;
    event.preventDefault();
    Object.assign(state, { text: link.dataset.find, state: "" });
    change();
    one("#machines").scrollIntoView();
    input.focus({ preventScroll: true });
  });
  one(".find").hidden = false;
  read();
  input.value = state.text;
  show();
})();
