// The set and the tokens put together: which tokens are legal in a state, where they lead, how far it is to the end.

const UNREACHABLE = 2 ** 31 - 1; // the distance of a state from which no tokens lead to the end
const SPACE = 0x20;
const MOST_REMEMBERED = 8_000_000; // numbers of tokens, 32 MB

class Constraint {
  constructor({ header, arrays }) {
    const strings = (name) => [`${name}_labels`, `${name}_shared`, `${name}_added`].map((key) => arrays[key]);
    this.header = header;
    this.arrays = arrays;
    this.values = new Trie(...strings("values"));
    this.pieces = new TokenTrie(...strings("pieces"), arrays.pieces_ids); // tokens that are legal somewhere
    this.others = null; // and those that are not, read when somebody asks
    this.stopIds = header.stop_ids;
    this.start = header.start;
    this.hasSpaceStart = this.start === this.values.numStates; // before the trie, for a space; else it is the root
    this.isSpaceOptional = header.prefix_space === "optional";
    this.distances = Int32Array.from(arrays.distances, (distance) => (distance === 0 ? UNREACHABLE : distance - 1));
    this.fewestOf = new Map(); // by state, of the last ones that were asked for
    this.numRemembered = 0;
    this.stringsOfValue = null;
  }

  // Bytes

  isAccepting(state) {
    return state === this.start ? this.header.start_accepts : this.values.isEnd(state);
  }

  /** The bytes that lead on from a state and where, ascending: [byte, state] each. */
  edges(state) {
    const edges = [];
    if (state === this.values.numStates) edges.push([SPACE, 0]);
    if (state < this.values.numStates || this.isSpaceOptional) {
      const root = state < this.values.numStates ? state : 0;
      for (let c = root + 1; c < this.values.ends[root]; c = this.values.ends[c]) edges.push([this.values.labels[c], c]);
    }
    return edges.sort((one, other) => one[0] - other[0]);
  }

  /** The state that a byte leads to, or -1. */
  step(state, byte) {
    if (state < this.values.numStates) return this.values.child(state, byte);
    return byte === SPACE ? 0 : this.isSpaceOptional ? this.values.child(0, byte) : -1;
  }

  // Tokens

  /** Call visit(node of the token trie, state) for each token that the set goes on with, wherever that leads. */
  forEachToken(state, visit) {
    if (state < this.values.numStates) {
      this.descend(state, 0, visit);
      return;
    }
    const space = this.pieces.child(0, SPACE);
    if (space >= 0) {
      if (this.pieces.isEnd(space)) visit(space, 0);
      this.descend(0, space, visit);
    }
    if (this.isSpaceOptional) this.descend(0, 0, visit);
  }

  descend(state, node, visit) {
    const { labels, ends } = this.values;
    if (!this.pieces.hasChildren(node)) return;
    for (let c = state + 1; c < ends[state]; c = ends[c]) {
      const child = this.pieces.child(node, labels[c]);
      if (child < 0) continue;
      if (this.pieces.isEnd(child)) visit(child, c);
      this.descend(c, child, visit);
    }
  }

  /** The tokens that are legal in a state without a budget, in the order of their bytes: {node, state} each. */
  legalTokens(state) {
    const legal = [];
    this.forEachToken(state, (node, after) => {
      if (this.distances[after] < UNREACHABLE) legal.push({ node, state: after });
    });
    return legal.sort((one, other) => one.node - other.node);
  }

  /** The tokens with these bytes, in any place: their ids, and their node if they are legal somewhere (else -1). */
  tokensOf(bytes) {
    const node = this.pieces.find(bytes);
    if (node > 0 && this.pieces.isEnd(node)) return { node, ids: this.pieces.idsAt(node) };
    const others = this.otherTokens();
    const end = others.find(bytes);
    return { node: -1, ids: end > 0 && others.isEnd(end) ? others.idsAt(end) : [] };
  }

  /** The bytes of a token id; null if it has none. */
  bytesOf(id) {
    for (const trie of [this.pieces, this.otherTokens()]) {
      const k = trie.ids.indexOf(id);
      if (k >= 0) return trie.string(k);
    }
    return null;
  }

  otherTokens() {
    const { others_labels, others_shared, others_added, others_ids } = this.arrays;
    this.others ??= new TokenTrie(others_labels, others_shared, others_added, others_ids);
    return this.others;
  }

  // Values

  /** The number of the value that a string of the trie stands for; two do where a space before it is optional. */
  valueOf(string) {
    return this.arrays.value_of_string === undefined ? string : this.arrays.value_of_string[string];
  }

  /** The strings that may still be written from a state: first, and one past the last. */
  stringsFrom(state) {
    return this.values.below(state === this.values.numStates ? 0 : state);
  }

  /** A value without the space that may stand before it. */
  bytesOfValue(value) {
    if (this.arrays.value_of_string === undefined) return this.values.string(value);
    if (this.stringsOfValue === null) {
      this.stringsOfValue = new Int32Array(this.header.num_values).fill(-1);
      this.arrays.value_of_string.forEach((of, string) => {
        const other = this.stringsOfValue[of];
        const isShorter = other < 0 || this.values.string(string).length < this.values.string(other).length;
        if (isShorter) this.stringsOfValue[of] = string;
      });
    }
    return this.values.string(this.stringsOfValue[value]);
  }

  /** All that may be written for a value: it, a space and it, or either. */
  stringsFor(value) {
    const plain = this.bytesOfValue(value);
    const spaced = Uint8Array.of(SPACE, ...plain);
    return { none: [plain], optional: [plain, spaced], required: [spaced] }[this.header.prefix_space];
  }

  /** The fewest tokens from a state to the end of each string that may still be written. O(states below · tokens). */
  fewestTokens(state) {
    if (this.fewestOf.has(state)) return this.fewestOf.get(state);
    const isBefore = state === this.values.numStates;
    const base = isBefore ? 0 : state;
    const steps = new Int32Array(this.values.ends[base] - base).fill(UNREACHABLE);
    const reach = (after, taken) => (steps[after - base] = Math.min(steps[after - base], taken));
    if (isBefore) this.forEachToken(state, (_, after) => reach(after, 1));
    else steps[0] = 0;
    for (let s = base; s < this.values.ends[base]; s++) {
      const taken = steps[s - base] + 1;
      if (taken <= UNREACHABLE) this.forEachToken(s, (_, after) => reach(after, taken));
    }
    if (isBefore && this.header.start_accepts) steps[0] = 0; // the empty value ends at the root, without its space
    const [first, last] = this.stringsFrom(state);
    const fewest = Int32Array.from(this.values.terminals.subarray(first, last), (terminal) => steps[terminal - base]);
    this.remember(state, fewest);
    return fewest;
  }

  remember(state, fewest) {
    this.fewestOf.set(state, fewest);
    this.numRemembered += fewest.length;
    for (const [oldest, numbers] of this.fewestOf) {
      if (this.numRemembered <= MOST_REMEMBERED || oldest === state) break;
      this.fewestOf.delete(oldest);
      this.numRemembered -= numbers.length;
    }
  }

  /** The first values, in the order of their bytes, that can be finished from a state within so many tokens. */
  someValuesFrom(state, number, most = UNREACHABLE - 1) {
    const [first, last] = this.stringsFrom(state);
    const isAny = this.header.has_every_byte && most === UNREACHABLE - 1;
    const fewest = isAny ? null : this.fewestTokens(state);
    const values = new Set();
    for (let k = first; k < last && values.size < number; k++) {
      if (isAny || fewest[k - first] <= most) values.add(this.valueOf(k));
    }
    return values;
  }

  /** How many there are. O(1) without a budget, if every byte is a token and no value stands there twice. */
  numValuesFrom(state, most = UNREACHABLE - 1) {
    if (this.arrays.value_of_string !== undefined) return this.someValuesFrom(state, Infinity, most).size;
    const [first, last] = this.stringsFrom(state);
    if (this.header.has_every_byte && most === UNREACHABLE - 1) return last - first;
    return this.fewestTokens(state).reduce((sum, tokens) => sum + (tokens <= most ? 1 : 0), 0);
  }

  /** One of the values that can still be written. */
  someValueFrom(state) {
    return this.someValuesFrom(state, 1).values().next().value;
  }

  /** The value that is whole in a state that accepts. */
  valueEndingAt(state) {
    return this.valueOf(state === this.start ? 0 : this.values.before[state]);
  }
}
