// The page: what is shown of the stepper, and what the reader does with it.

class App {
  constructor(constraint) {
    this.constraint = constraint;
    this.stepper = new Stepper(constraint, constraint.header.max_tokens);
    this.rows = []; // tokens {node, state, isAllowed}, and stops {stopId, isAllowed}
    this.budget = new BudgetPanel(this.stepper, () => this.update());
    this.values = new ValuePanel(this.stepper, (ids) => this.walk(ids));
    this.list = new TokenList(byId("tokens"), {
      makeRow: (index) => this.makeRow(index),
      onChoose: (index) => this.showChosen(index),
      onTake: (index) => this.take(index),
    });
    this.search = new Search(constraint, (value) => this.values.pick(value));
    this.listen();
    this.showAbout();
    this.update();
  }

  listen() {
    byId("back").addEventListener("click", () => this.goBackTo(this.stepper.steps.length - 1));
    byId("reset").addEventListener("click", () => this.goBackTo(0));
    byId("order").addEventListener("change", () => this.update());
    byId("ask").addEventListener("input", () => this.showAnswers());
    byId("budget-form").addEventListener("submit", (event) => event.preventDefault());
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target.matches("input:not([type=checkbox], [type=range]), select");
    if (event.key === "Escape" && event.target !== byId("tokens")) byId("tokens").focus();
    else if (isTyping) return;
    else if (event.key === "Backspace") this.goBackTo(this.stepper.steps.length - 1);
    else if (event.key === "/") byId("find").focus();
    else if (event.key === "?") byId("ask").focus();
    else return;
    event.preventDefault();
  }

  showAbout() {
    const { header } = this.constraint;
    const facts = [
      `${counted(header.num_values, "value")} of ${header.values_file} in the tokens of ${header.tokenizer}`,
      `fewest tokens of any: ${count(header.min_tokens)}`,
      `enough for all: ${count(header.enough_tokens)}`,
      ...(header.prefix_space === "none" ? [] : [`a space before them: ${header.prefix_space}`]),
      ...(header.num_unreachable === 0 ? [] : [`${counted(header.num_unreachable, "value")} cannot be spelled`]),
    ];
    byId("about").textContent = facts.join(" · ");
    document.title = `${header.values_file} · trieauto`;
  }

  // Steps

  take(index) {
    const row = this.rows[index];
    if (row.stopId === undefined ? this.stepper.take(row) : this.stepper.takeStop(row.stopId)) this.update();
  }

  goBackTo(numSteps) {
    if (numSteps < 0) return;
    this.stepper.goBackTo(numSteps);
    this.update();
  }

  /** Take the tokens of a spelling; where the budget forbids one, stop before it and choose it, so that it says why. */
  walk(ids) {
    const isWhole = this.stepper.replay(ids);
    this.update();
    if (!isWhole) {
      const next = ids[this.stepper.steps.length];
      const isNext = ({ node }) => node !== undefined && this.constraint.pieces.idsAt(node).includes(next);
      this.list.choose(this.rows.findIndex(isNext));
    }
    byId("tokens").focus({ preventScroll: true });
  }

  /** Show everything anew, for another state or another budget. */
  update() {
    const tokens = this.stepper.tokens();
    const stops = this.stepper.mayStop && !this.stepper.isTerminated ? this.constraint.stopIds : [];
    this.rows = [...stops.map((stopId) => ({ stopId, isAllowed: true })), ...this.inOrder(tokens)];
    this.showPath();
    this.showState(tokens);
    this.budget.show();
    this.showCount(tokens, stops.length);
    this.list.show(this.rows.length);
    this.showAnswers();
    this.values.show();
  }

  inOrder(tokens) {
    const order = byId("order").value;
    const { distances } = this.constraint;
    const numStrings = ({ state }) => {
      const [first, last] = this.constraint.stringsFrom(state);
      return last - first;
    };
    if (order === "values") tokens.sort((one, other) => numStrings(other) - numStrings(one) || one.node - other.node);
    if (order === "tokens") {
      tokens.sort((one, other) => distances[one.state] - distances[other.state] || one.node - other.node);
    }
    return tokens;
  }

  showPath() {
    const { steps } = this.stepper;
    const path = steps.map(({ id, bytes, isStop }, k) => {
      const shown = isStop ? "stop" : bytesElement(bytes, "");
      return element("li", {}, element("button", {
        type: "button", class: isStop ? "token stop" : "token", title: `token ${id}: ${hexadecimals(bytes)}`,
        "aria-label": `Go back to after token ${k + 1}, ${isStop ? "stop" : readableText(bytes)}`,
        onclick: () => this.goBackTo(k + 1),
      }, shown)); // prettier-ignore
    });
    if (path.length === 0) path.push(element("li", { class: "nothing" }, "nothing yet"));
    path.push(element("li", { class: "cursor", "aria-hidden": "true" }));
    byId("path").replaceChildren(...path);
    byId("back").disabled = byId("reset").disabled = steps.length === 0;
  }

  showState(tokens) {
    const { stepper, constraint } = this;
    const state = [];
    if (stepper.steps.length > 1) state.push(bytesElement(stepper.bytes(), ""), element("br"));
    state.push(`${counted(stepper.steps.length, "token")} taken. `);
    const value = stepper.value(tokens);
    if (value >= 0) state.push("The value is ", valueElement(constraint.bytesOfValue(value)), ". ");
    else state.push(`${counted(constraint.numValuesFrom(stepper.state), "value")} possible${this.withinBudget()}. `);
    const add = (className, text) => state.push(element("strong", { class: className }, text));
    if (!stepper.isWithinBudget) add("refused", "The budget is too small to finish from here.");
    else if (stepper.isTerminated) add("good", "Ended by a stop token.");
    else if (stepper.isComplete(tokens)) add("good", "Complete: no stop token is needed.");
    else if (stepper.mayStop) add("good", "It may stop here, or go on.");
    else state.push(`The end is ${counted(stepper.minTokens, "token")} away at least.`);
    byId("state").replaceChildren(...state);
  }

  withinBudget() {
    const { stepper, constraint } = this;
    if (stepper.budget === null) return "";
    return `, ${count(constraint.numValuesFrom(stepper.state, stepper.remaining))} of them within the budget`;
  }

  showCount(tokens, numStops) {
    const forbidden = tokens.filter((token) => !token.isAllowed).length;
    const parts = [`${counted(tokens.length - forbidden, "token")} allowed`];
    if (numStops > 0) parts.push(`${counted(numStops, "stop token")} too`);
    if (forbidden > 0) parts.push(`${count(forbidden)} that the set goes on with are forbidden by the budget`);
    byId("next-count").textContent = parts.join(", ");
  }

  // Rows

  makeRow(index) {
    const row = this.rows[index];
    if (row.stopId !== undefined) {
      return rowOf("stop", "", String(row.stopId), "the end of the answer", "", `stop, token ${row.stopId}`, true);
    }
    const { constraint, stepper } = this;
    const bytes = constraint.pieces.bytesAt(row.node);
    const ids = Array.from(constraint.pieces.idsAt(row.node), String).join(", ");
    const number = constraint.numValuesFrom(row.state);
    const leads =
      number === 1
        ? element("span", {}, valueElement(constraint.bytesOfValue(constraint.someValueFrom(row.state))))
        : counted(number, "value");
    const needed = constraint.distances[row.state];
    const then = !row.isAllowed
      ? budgetReason(stepper, row.state)
      : needed === 0 ? "may stop" : `at least ${count(needed)} more`; // prettier-ignore
    const label = `${readableText(bytes)}, token ${ids}, leads to ${counted(number, "value")}, ${then}`;
    return rowOf(tokenElement(bytes), hexadecimals(bytes), ids, leads, then, label, row.isAllowed);
  }

  showChosen(index) {
    const place = byId("chosen");
    if (index < 0) {
      place.replaceChildren(element("p", { class: "note" }, "Nothing more can be taken."));
      return;
    }
    const row = this.rows[index];
    const { constraint, stepper } = this;
    if (row.stopId !== undefined) {
      place.replaceChildren(sentenceElement(whyStop(stepper)), facts([["id", String(row.stopId)]]));
      return;
    }
    const bytes = constraint.pieces.bytesAt(row.node);
    const known = [
      ["bytes", hexadecimals(bytes)],
      ["ids", Array.from(constraint.pieces.idsAt(row.node), String).join(", ")],
      ["text then", bytesElement(Uint8Array.of(...stepper.bytes(), ...bytes), "")],
      ...this.examples(row),
    ];
    place.replaceChildren(
      sentenceElement(whyToken(stepper, bytes)),
      facts(known),
      element("p", {}, element("button", { type: "button", disabled: !row.isAllowed, onclick: () => {
        this.take(index);
        byId("tokens").focus({ preventScroll: true });
      } }, "Take it")) // prettier-ignore
    );
  }

  /** How many values may still follow, within the budget, too, and the first of them. */
  examples({ state, isAllowed }) {
    const { constraint, stepper } = this;
    const number = constraint.numValuesFrom(state);
    const most = isAllowed && stepper.budget !== null ? stepper.remaining - 1 : UNREACHABLE - 1;
    const examples = element("span");
    for (const value of constraint.someValuesFrom(state, 5, most)) {
      examples.append(examples.hasChildNodes() ? ", " : "", bytesElement(constraint.bytesOfValue(value), ""));
    }
    const known = [["values then", count(number)]];
    const within = most < UNREACHABLE - 1 ? constraint.numValuesFrom(state, most) : number;
    if (within < number) known.push(["in the budget", count(within)]);
    if (within > 5) examples.append(" …");
    return [...known, [within > 5 ? "such as" : "namely", examples]];
  }

  showAnswers() {
    const typed = byId("ask").value;
    byId("answer").replaceChildren(...(typed === "" ? [] : answers(this.stepper, typed).map(sentenceElement)));
  }
}

function rowOf(token, hex, ids, leads, then, label, isAllowed) {
  const cell = (className, content) => element("span", { class: className }, content);
  const shown = token === "stop" ? element("span", { class: "token stop" }, "stop") : token;
  const cells = [element("span", {}, shown), cell("hex", hex), cell("ids", ids), cell("leads", leads), cell("then", then)];
  return { cells, label, isAllowed };
}

/** A list of names and what they are. */
function facts(pairs) {
  return element("dl", {}, ...pairs.flatMap(([name, what]) => [element("dt", {}, name), element("dd", {}, what)]));
}

let app = null;

async function begin() {
  try {
    app = new App(new Constraint(await readData(byId("data").textContent)));
    byId("main").hidden = false;
    app.update(); // again, now that rows have a height
    byId("tokens").focus({ preventScroll: true });
  } catch (error) {
    byId("problem").textContent = `This page cannot be shown: ${error.message}`;
    byId("problem").hidden = false;
    throw error;
  }
}

begin();
