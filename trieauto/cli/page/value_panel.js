// One value and its spellings in tokens, each of which can be walked.

class ValuePanel {
  /** onWalk(token ids) when a spelling is to be walked. */
  constructor(stepper, onWalk) {
    this.stepper = stepper;
    this.onWalk = onWalk;
    this.value = -1;
  }

  pick(value) {
    this.value = value;
    this.show();
  }

  /** Show the value that was picked, if one was; what the budget leaves of it may have changed. */
  show() {
    if (this.value < 0) return;
    const { constraint, budget } = this.stepper;
    const bytes = constraint.bytesOfValue(this.value);
    const found = spellingsOf(constraint, this.value, budget ?? Infinity);
    const shown = [element("h3", {}, valueElement(bytes))];
    if (found.number === 0n) shown.push(element("p", { class: "refused" }, "No tokens of this vocabulary spell it."));
    else {
      shown.push(element("p", {}, `${counted(found.number, "spelling")} in tokens${withinBudget(found, budget)}. The shortest:`));
      const { pieces } = constraint;
      for (const nodes of found.shortest) shown.push(this.spelling(nodes.map((node) => pieces.idsAt(node)[0])));
    }
    if (found.own?.length > 0) shown.push(element("p", {}, "As the tokenizer itself writes it:"), this.spelling(found.own));
    else if (found.own !== null && bytes.length > 0) {
      const why = "it changes the text first, or takes some of it for a special token";
      shown.push(element("p", { class: "note" }, `The tokenizer's own tokens do not spell these bytes: ${why}.`));
    }
    byId("spellings").replaceChildren(...shown);
  }

  spelling(ids) {
    const { constraint, budget } = this.stepper;
    const length = counted(ids.length, "token");
    const walk = element(
      "button",
      { type: "button", "aria-label": `Walk the spelling in ${length}`, onclick: () => this.onWalk(ids) },
      "Walk"
    );
    const note = budget !== null && ids.length > budget ? `${length}: beyond the budget` : length;
    const tokens = ids.map((id) => tokenElement(constraint.bytesOf(id)));
    return element("div", { class: "spelling" }, walk, ...tokens, element("span", { class: "note" }, note));
  }
}

function withinBudget({ numberWithin }, budget) {
  if (budget === null) return "";
  if (numberWithin === null) return "; too long to count those within the budget";
  return `, ${count(numberWithin)} within the budget`;
}
