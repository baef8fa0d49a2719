// One sequence's way through the set, as the library's Matcher: the tokens so far, the budget, what is legal now.

class Stepper {
  constructor(constraint, budget) {
    this.constraint = constraint;
    this.budget = budget; // of the whole answer, in tokens; null for none
    this.steps = []; // {id, bytes, state: before it, isStop}
    this.state = constraint.start;
  }

  /** How many tokens are left; Infinity without a budget, negative if more were taken before it was lowered. */
  get remaining() {
    return this.budget === null ? Infinity : this.budget - this.steps.length;
  }

  get isTerminated() {
    return this.steps.at(-1)?.isStop ?? false;
  }

  get minTokens() {
    return this.isTerminated ? 0 : this.constraint.distances[this.state];
  }

  /** Whether the budget is enough for what was taken and for the way to the end. */
  get isWithinBudget() {
    const needed = this.isTerminated ? -1 : this.minTokens; // a stop token needs none of its own
    return needed <= this.remaining;
  }

  get mayStop() {
    return this.isTerminated || (this.constraint.isAccepting(this.state) && this.remaining >= 0);
  }

  /** Whether the budget allows a token that leads to a state: law 6. */
  isEnoughAfter(state) {
    return this.constraint.distances[state] <= this.remaining - 1;
  }

  /** The tokens that are legal here but for the budget, in the order of their bytes: {node, state, isAllowed} each. */
  tokens() {
    if (this.isTerminated) return [];
    return this.constraint
      .legalTokens(this.state)
      .map((token) => ({ ...token, isAllowed: this.isEnoughAfter(token.state) }));
  }

  /** Whether nothing could follow, the budget considered, so that the answer is whole without a stop token. */
  isComplete(tokens) {
    return this.mayStop && !this.isTerminated && !tokens.some((token) => token.isAllowed);
  }

  /** The value, by its number, once no other is possible or once it is settled; -1 before. */
  value(tokens) {
    const { constraint } = this;
    if (this.isTerminated) return constraint.valueEndingAt(this.steps.at(-1).state);
    if (this.isComplete(tokens)) return constraint.valueEndingAt(this.state);
    return constraint.numValuesFrom(this.state) === 1 ? constraint.someValueFrom(this.state) : -1;
  }

  /** Take a token that ``tokens`` gave; whether it was allowed. */
  take({ node, state, isAllowed }, id = this.constraint.pieces.idsAt(node)[0]) {
    if (!isAllowed) return false;
    this.steps.push({ id, bytes: this.constraint.pieces.bytesAt(node), state: this.state, isStop: false });
    this.state = state;
    return true;
  }

  takeStop(id) {
    if (!this.mayStop || this.isTerminated) return false;
    this.steps.push({ id, bytes: new Uint8Array(0), state: this.state, isStop: true });
    return true;
  }

  /** Take tokens by their ids from the beginning on, as far as they are allowed; whether all were. */
  replay(ids) {
    this.goBackTo(0);
    return ids.every((id) => {
      const token = this.tokens().find(({ node }) => this.constraint.pieces.idsAt(node).includes(id));
      return token !== undefined && this.take(token, id);
    });
  }

  goBackTo(numSteps) {
    if (numSteps < this.steps.length) this.state = this.steps[numSteps].state;
    this.steps.length = Math.min(numSteps, this.steps.length);
  }

  /** All bytes so far. */
  bytes() {
    return Uint8Array.from(this.steps.flatMap(({ bytes }) => Array.from(bytes)));
  }
}
