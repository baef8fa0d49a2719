// The list of tokens: any number of rows, of which only those in sight are elements. Its focus stays on the list, and
// aria-activedescendant names the chosen row.

const ROWS_AROUND = 8; // made above and below what is in sight

class TokenList {
  /**
   * onChoose(index) when another row is chosen, onTake(index) when it is to be taken; makeRow(index) gives a row's
   * {cells, label, isAllowed}.
   */
  constructor(list, { makeRow, onChoose, onTake }) {
    this.list = list;
    this.makeRow = makeRow;
    this.onChoose = onChoose;
    this.onTake = onTake;
    this.numRows = 0;
    this.chosen = -1;
    this.filler = element("div", { class: "filler", role: "presentation" });
    list.addEventListener("scroll", () => this.draw());
    list.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.measure()).observe(list);
  }

  /** Show other rows, the first of them chosen unless one is named. */
  show(numRows, chosen = 0) {
    this.numRows = numRows;
    this.chosen = numRows === 0 ? -1 : Math.min(chosen, numRows - 1);
    this.list.scrollTop = 0;
    this.measure();
    this.scrollToChosen();
    this.draw();
    this.onChoose(this.chosen);
  }

  measure() {
    const probe = element("div", { class: "row" });
    this.list.append(probe);
    this.rowHeight = probe.offsetHeight;
    probe.remove();
    this.filler.style.height = `${this.numRows * this.rowHeight}px`;
    this.draw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.list;
    const first = Math.max(0, Math.floor(scrollTop / this.rowHeight) - ROWS_AROUND);
    const last = Math.min(this.numRows, Math.ceil((scrollTop + clientHeight) / this.rowHeight) + ROWS_AROUND);
    const rows = [];
    for (let index = first; index < last; index++) rows.push(this.rowElement(index));
    // The chosen row is there even when it is out of sight: a screen reader may ask for it.
    if (this.chosen >= 0 && (this.chosen < first || this.chosen >= last)) rows.push(this.rowElement(this.chosen));
    this.list.replaceChildren(this.filler, ...rows);
    if (this.chosen < 0) this.list.removeAttribute("aria-activedescendant");
    else this.list.setAttribute("aria-activedescendant", `row-${this.chosen}`);
  }

  rowElement(index) {
    const { cells, label, isAllowed } = this.makeRow(index);
    const row = element("div", {
      class: "row", role: "option", id: `row-${index}`, "aria-label": label, "aria-posinset": index + 1,
      "aria-setsize": this.numRows, "aria-selected": String(index === this.chosen), "aria-disabled": String(!isAllowed),
      onclick: () => this.choose(index), ondblclick: () => this.onTake(index),
    }, ...cells); // prettier-ignore
    row.style.top = `${index * this.rowHeight}px`;
    return row;
  }

  choose(index) {
    const chosen = Math.max(0, Math.min(index, this.numRows - 1));
    if (this.numRows === 0 || chosen === this.chosen) return;
    this.chosen = chosen;
    this.scrollToChosen();
    this.draw();
    this.onChoose(chosen);
  }

  scrollToChosen() {
    const top = this.chosen * this.rowHeight;
    const { scrollTop, clientHeight } = this.list;
    if (top < scrollTop) this.list.scrollTop = top;
    else if (top + this.rowHeight > scrollTop + clientHeight) this.list.scrollTop = top + this.rowHeight - clientHeight;
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / this.rowHeight) - 1);
    const targets = {
      ArrowDown: this.chosen + 1, ArrowUp: this.chosen - 1, PageDown: this.chosen + page, PageUp: this.chosen - page,
      Home: 0, End: this.numRows - 1,
    }; // prettier-ignore
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in targets) this.choose(targets[event.key]);
    else if (event.key === "Enter" && this.chosen >= 0) this.onTake(this.chosen);
    else return;
    event.preventDefault();
  }
}
