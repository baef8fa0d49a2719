// Finding a value by a part of it.

const MOST_FOUND = 50; // shown

class Search {
  /** onPick(value) when one is picked. */
  constructor(constraint, onPick) {
    this.constraint = constraint;
    this.onPick = onPick;
    this.texts = null; // of all values, in small letters; made when first needed
    this.found = [];
    this.chosen = -1;
    this.input = byId("find");
    this.list = byId("found");
    this.input.addEventListener("input", () => this.search());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
  }

  textOf(value) {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.constraint.bytesOfValue(value)).toLowerCase();
  }

  search() {
    const wanted = this.input.value.toLowerCase();
    this.texts ??= Array.from({ length: this.constraint.header.num_values }, (_, value) => this.textOf(value));
    const [equal, beginning, within] = [[], [], []];
    if (wanted !== "") {
      this.texts.forEach((text, value) => {
        const place = text.indexOf(wanted);
        if (place >= 0) (text.length === wanted.length ? equal : place === 0 ? beginning : within).push(value);
      });
    }
    const all = [...equal, ...beginning, ...within];
    if (wanted !== "" && all.length === 0) byId("spellings").replaceChildren(); // of the value picked before
    this.found = all.slice(0, MOST_FOUND);
    this.chosen = -1;
    const shown = all.length > MOST_FOUND ? `, of which ${MOST_FOUND} are shown` : "";
    byId("found-count").textContent =
      wanted === "" ? "" : all.length === 0 ? "no value has it" : `${counted(all.length, "value")}${shown}`;
    this.draw();
  }

  draw() {
    this.list.replaceChildren(
      ...this.found.map((value, index) =>
        element(
          "li",
          {
            role: "option",
            id: `found-${index}`,
            "aria-selected": String(index === this.chosen),
            onclick: () => this.pick(index),
          },
          bytesElement(this.constraint.bytesOfValue(value), "")
        )
      )
    );
    this.input.setAttribute("aria-expanded", String(this.found.length > 0));
    if (this.chosen < 0) this.input.removeAttribute("aria-activedescendant");
    else {
      this.input.setAttribute("aria-activedescendant", `found-${this.chosen}`);
      byId(`found-${this.chosen}`).scrollIntoView({ block: "nearest" });
    }
  }

  pick(index) {
    const value = this.found[index];
    this.found = [];
    this.chosen = -1;
    byId("found-count").textContent = "";
    this.draw();
    this.onPick(value);
  }

  onKey(event) {
    const { length } = this.found;
    if (event.key === "ArrowDown" && length > 0) this.chosen = (this.chosen + 1) % length;
    else if (event.key === "ArrowUp" && length > 0) this.chosen = (Math.max(this.chosen, 0) + length - 1) % length;
    else if (event.key === "Enter" && length > 0) {
      event.preventDefault();
      this.pick(Math.max(this.chosen, 0));
      return;
    } else return;
    event.preventDefault();
    this.draw();
  }
}
