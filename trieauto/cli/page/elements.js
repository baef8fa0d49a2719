// Elements of the page. Data becomes text nodes, never HTML.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Bytes as text; what is right to left in them stays within. */
function bytesElement(bytes, className) {
  const made = element("bdi", { class: `bytes ${className}` });
  for (const [text, isEscape] of readable(bytes)) {
    made.append(isEscape ? element("span", { class: "escape" }, text) : text);
  }
  if (bytes.length === 0) made.append(element("span", { class: "note" }, "(empty)"));
  return made;
}

const tokenElement = (bytes) => bytesElement(bytes, "token");
const valueElement = (bytes) => bytesElement(bytes, "value");

/** A sentence of texts and of bytes. */
function sentenceElement(parts) {
  return element("p", {}, ...parts.map((part) => (typeof part === "string" ? part : tokenElement(part))));
}

const byId = (id) => document.getElementById(id);
