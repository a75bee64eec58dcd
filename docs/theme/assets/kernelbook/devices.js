// The hardware switch. A reader hides devices; the choice holds for every page and is kept in this
// browser. What is stored are the hidden ones, so that a new device (the reader's own card) shows
// by itself. Loaded in the head: rows are hidden by a style sheet before they are first painted.
window.kernelbookDevices = (() => {
  const KEY = "kernelbook.hidden-devices";
  const WORDS = "kb-switch-words";
  const read = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY) || "[]");
      return Array.isArray(kept) ? kept.filter((key) => typeof key === "string") : [];
    } catch {
      return [];
    }
  };
  let hidden = new Set(read());
  const sheet = document.head.appendChild(document.createElement("style"));

  const paint = () => {
    const rows = [...hidden].map((key) => `.md-content [data-device="${CSS.escape(key)}"]`);
    sheet.textContent = rows.length ? `${rows.join()} { display: none }` : "";
  };

  // Of a chart's drawings the one whose devices are exactly those shown; else the whole chart. None
  // where every device of the chart is hidden.
  const pick = () => {
    for (const box of document.querySelectorAll(".kb-figure__drawings")) {
      const drawings = [...box.querySelectorAll("[data-devices]")];
      if (!drawings.length) continue;
      const wanted = drawings[0].dataset.devices.split(" ").filter((key) => !hidden.has(key));
      const found = drawings.find((drawing) => drawing.dataset.devices === wanted.join(" "));
      const shown = wanted.length ? found || drawings[0] : null;
      for (const drawing of drawings) drawing.hidden = drawing !== shown;
      note(box, shown ? "" : document.getElementById(WORDS)?.dataset.chart);
    }
  };

  // Below a table or chart that shows less than there is: what, and a button for all of it.
  const note = (box, text) => {
    let shown = box.nextElementSibling;
    if (!shown?.matches(".kb-switch-note")) shown = null;
    if (!text) {
      shown?.remove();
      return;
    }
    if (!shown) {
      shown = document.createElement("p");
      shown.className = "kb-switch-note";
      shown.append(document.createElement("span"), document.createElement("button"));
      shown.lastChild.type = "button";
      shown.lastChild.textContent = document.getElementById(WORDS).dataset.all;
      shown.lastChild.addEventListener("click", () => choose([]));
      box.after(shown);
    }
    shown.firstChild.textContent = `${text} `;
  };

  const tell = () => {
    const words = document.getElementById(WORDS);
    for (const table of document.querySelectorAll(".kb-table")) {
      const rows = [...table.querySelectorAll("tr[data-device]")];
      const less = rows.filter((row) => hidden.has(row.dataset.device)).length;
      const box = table.querySelector(".kb-scroll");
      if (box) note(box, less && words ? words.dataset.hidden.replace("{}", less) : "");
    }
  };

  const settle = () => {
    pick();
    tell();
  };

  const choose = (keys) => {
    hidden = new Set(keys);
    try {
      localStorage.setItem(KEY, JSON.stringify([...hidden]));
    } catch {
      // A browser that keeps nothing still switches this page.
    }
    paint();
    settle();
    tick();
  };

  const tick = () => {
    for (const box of document.querySelectorAll(".kb-switch input")) {
      box.checked = !hidden.has(box.value);
    }
    document.querySelector(".kb-switch")?.classList.toggle("kb-switch--some", hidden.size > 0);
  };

  const fill = () => {
    const control = document.querySelector(".kb-switch");
    const list = document.getElementById("kb-device-list");
    if (!control || !list) return;
    const devices = JSON.parse(list.textContent);
    if (devices.length < 2) return;
    const place = control.querySelector(".kb-switch__list");
    for (const device of devices) {
      const row = document.createElement("div");
      const label = row.appendChild(document.createElement("label"));
      const box = label.appendChild(document.createElement("input"));
      box.type = "checkbox";
      box.value = device.key;
      box.addEventListener("change", () => {
        const others = [...hidden].filter((key) => key !== device.key);
        choose(box.checked ? others : [...others, device.key]);
      });
      const name = label.appendChild(document.createElement("span"));
      name.textContent = device.name;
      const about = name.appendChild(document.createElement("small"));
      about.textContent = device.about;
      const only = row.appendChild(document.createElement("button"));
      only.type = "button";
      only.textContent = place.dataset.only;
      only.setAttribute("aria-label", `${place.dataset.only}: ${device.name}`);
      only.addEventListener("click", () =>
        choose([
          ...[...hidden].filter((key) => !devices.some((other) => other.key === key)),
          ...devices.filter((other) => other.key !== device.key).map((other) => other.key),
        ]),
      );
      place.append(row);
    }
    control.querySelector(".kb-switch__all").addEventListener("click", () => choose([]));
    control.hidden = false;
    document.addEventListener("click", (event) => {
      if (!control.contains(event.target)) control.open = false;
    });
    control.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !control.open) return;
      control.open = false;
      control.querySelector("summary").focus();
    });
    tick();
  };

  // Another tab of the site has chosen.
  addEventListener("storage", (event) => {
    if (event.key !== KEY) return;
    hidden = new Set(read());
    paint();
    settle();
    tick();
  });
  document.addEventListener("DOMContentLoaded", fill);
  paint();
  return { settle };
})();
