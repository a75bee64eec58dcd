// Keeps the note of where a number came from inside the window, out of scrolling boxes and beside
// its number, lets a finger open it, and Escape close it. Without this script the note still opens
// on hover and focus, and the number is still a link.
(() => {
  const narrow = matchMedia("(max-width: 44.9375em)");
  const numberOf = (target) =>
    target instanceof Element && !target.closest(".kb-tip") ? target.closest(".kb-number") : null;

  const place = (number) => {
    const tip = number.querySelector(".kb-tip");
    if (!tip) return;
    tip.removeAttribute("style");
    if (narrow.matches) return;
    const box = number.getBoundingClientRect();
    tip.style.position = "fixed";
    tip.style.display = "block";
    const size = tip.getBoundingClientRect();
    tip.style.display = "";
    const left = Math.min(box.left, document.documentElement.clientWidth - size.width - 12);
    const below = box.bottom + 4;
    const top = below + size.height > innerHeight ? box.top - size.height - 4 : below;
    tip.style.left = `${Math.max(12, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  };

  // One note at a time: that of the number pointed at last, be it by pointer, key or finger.
  const SHOWN = ".kb-number:hover, .kb-number:focus, .kb-number.kb-open";
  const end = (number) => {
    number.classList.remove("kb-open");
    number.classList.add("kb-closed");
  };
  const close = (except) => {
    for (const number of document.querySelectorAll(SHOWN)) if (number !== except) end(number);
  };

  const show = (event) => {
    const number = numberOf(event.target);
    if (!number) return;
    close(number);
    number.classList.remove("kb-closed");
    place(number);
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);

  // A note goes with its number, also where a box scrolls; it ends where that leaves the window.
  const follow = () => {
    for (const number of document.querySelectorAll(SHOWN)) {
      const box = number.getBoundingClientRect();
      if (box.bottom > 0 && box.top < innerHeight) place(number);
      else end(number);
    }
  };
  addEventListener("scroll", follow, { capture: true, passive: true });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });

  // The first tap opens the note, the second follows the link. What a finger came down on is what
  // counts: until the click, the note may have opened below the finger.
  let tapped = null;
  document.addEventListener("pointerdown", (event) => {
    const number = event.pointerType === "touch" ? event.target.closest?.(".kb-number") : null;
    tapped = number?.classList.contains("kb-open") ? null : number;
  });
  document.addEventListener("pointercancel", () => (tapped = null));
  document.addEventListener("click", (event) => {
    if (tapped) {
      event.preventDefault();
      close(tapped);
      tapped.classList.remove("kb-closed");
      tapped.classList.add("kb-open");
      place(tapped);
    } else if (!(event.target instanceof Element && event.target.closest(".kb-number"))) {
      close();
    }
    tapped = null;
  });

  // What Material leaves unnamed or out of the keyboard's reach.
  addEventListener("load", () => {
    const search = document.querySelector(".md-search[role=dialog]");
    const input = document.querySelector(".md-search__input");
    if (search && input) search.setAttribute("aria-label", input.getAttribute("aria-label") || "");
    for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .jp-Notebook pre, .jp-Notebook figure")) {
      box.setAttribute("tabindex", "0");
    }
  });
})();
