// Keeps the note of where a number came from inside the window and out of scrolling boxes, lets a
// finger open it, and Escape close it. Without this script the note still opens on hover and
// focus, and the number is still a link.
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

  const close = () => {
    for (const open of document.querySelectorAll(".kb-open")) open.classList.remove("kb-open");
  };

  const show = (event) => {
    const number = numberOf(event.target);
    if (!number) return;
    number.classList.remove("kb-closed");
    place(number);
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  addEventListener("scroll", close, { passive: true });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    close();
    for (const number of document.querySelectorAll(".kb-number:hover, .kb-number:focus")) {
      number.classList.add("kb-closed");
    }
  });

  // The first tap opens the note, the second follows the link.
  let finger = false;
  document.addEventListener("pointerdown", (event) => (finger = event.pointerType === "touch"));
  document.addEventListener("click", (event) => {
    const number = numberOf(event.target);
    if (finger && number && !number.classList.contains("kb-open")) {
      event.preventDefault();
      close();
      number.classList.add("kb-open");
      place(number);
    } else if (!number && !(event.target instanceof Element && event.target.closest(".kb-tip"))) {
      close();
    }
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
