// mermaid asks for the size of every label, and for each the document's stand-in that mermaidx brings
// looks through all style rules, reading every selector anew: nine tenths of the time of a diagram.
// Here a selector is read once, and the style sheet is found without walking the whole drawing.
(() => {
  const kept = (make) => {
    const made = new Map();
    return (text) => {
      if (!made.has(text)) made.set(text, make(text));
      return made.get(text);
    };
  };

  const chainOf = kept(__parseComplex);
  const chainsOf = kept((selector) =>
    __splitTopLevel(selector.trim(), (character) => character === ",")
      .map(([part]) => chainOf(part.trim()))
      .filter((chain) => chain.length > 0),
  );
  __parseComplex = chainOf;
  __matches = (element, selector) =>
    chainsOf(selector).some((chain) => __matchesChain(element, chain, chain.length - 1));

  // A tag, ids and classes; whatever else a selector says is left to mermaidx.
  const PLAIN = /^([a-z][\w-]*|\*)?((?:[.#][\w-]+)*)$/i;
  const plainOf = kept((compound) => {
    const match = PLAIN.exec(compound);
    if (!match) return null;
    const tag = match[1] && match[1] !== "*" ? match[1].toLowerCase() : "";
    return { tag, names: match[2].match(/[.#][\w-]+/g) || [] };
  });
  const any = __matchesCompound;
  __matchesCompound = (element, compound) => {
    const plain = plainOf(compound);
    if (!plain) return any(element, compound);
    if (plain.tag && (element.tagName || "").toLowerCase() !== plain.tag) return false;
    return plain.names.every((name) =>
      name[0] === "#"
        ? element.getAttribute("id") === name.slice(1)
        : element.classList.contains(name.slice(1)),
    );
  };

  const first = (node, tag) => {
    for (const child of node.childNodes) {
      if (child.nodeType !== 1) continue;
      const found = (child.tagName || "").toLowerCase() === tag ? child : first(child, tag);
      if (found) return found;
    }
    return null;
  };
  const query = __querySelector;
  __querySelector = (root, selector) =>
    selector === "style" ? first(root, "style") : query(root, selector);
})();
