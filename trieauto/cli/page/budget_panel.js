// The budget: a box to have one, a number and a slider, and what it leaves of the set.

class BudgetPanel {
  /** onChange() when the stepper has another budget. */
  constructor(stepper, onChange) {
    this.stepper = stepper;
    this.onChange = onChange;
    this.box = byId("budget-on");
    this.number = byId("budget-number");
    this.slider = byId("budget");
    const { header, values } = stepper.constraint;
    const longest = values.longest + (header.prefix_space === "none" ? 0 : 1);
    // More than a token a byte forbids nothing; long before that there is little to see.
    const most = Math.min(longest, Math.max(2 * header.enough_tokens, header.enough_tokens + 8));
    this.slider.max = Math.max(1, most, header.max_tokens ?? 0);
    this.slider.value = this.number.value = header.max_tokens ?? header.enough_tokens;
    this.box.checked = header.max_tokens !== null;
    this.box.addEventListener("change", () => this.change());
    this.slider.addEventListener("input", () => this.follow(this.slider, this.number));
    this.number.addEventListener("input", () => this.follow(this.number, this.slider));
  }

  follow(changed, other) {
    other.value = changed.value;
    this.box.checked = true;
    this.change();
  }

  change() {
    const number = this.number.valueAsNumber;
    this.stepper.budget = this.box.checked && Number.isInteger(number) && number >= 0 ? number : null;
    this.onChange();
  }

  show() {
    const { budget, constraint, remaining } = this.stepper;
    const { num_values, min_tokens, enough_tokens } = constraint.header;
    const least = min_tokens > 0 ? `no value has a spelling in fewer than ${counted(min_tokens, "token")}, and ` : "";
    const limits = `${least}${counted(enough_tokens, "token")} ${enough_tokens === 1 ? "is" : "are"} enough for any value`;
    let text;
    if (budget === null) text = `${this.box.checked ? "That is no budget; none is set" : "No budget"}: ${limits}.`;
    else if (budget < min_tokens) text = `Refused: ${limits}.`;
    else {
      const fit = count(constraint.numValuesFrom(constraint.start, budget));
      text = `${counted(Math.max(0, remaining), "token")} left. Of ${counted(num_values, "value")}, ${fit} fit in ${counted(budget, "token")}: ${limits}.`;
    }
    byId("budget-text").textContent = text;
    byId("budget-text").classList.toggle("refused", budget !== null && budget < min_tokens);
  }
}
