// A list of sorted strings and its trie, with the states that the library's kernels have: numbered in preorder, so that
// the first child of s is s + 1, the next sibling of c is ends[c], and below s are the states s .. ends[s] - 1.

class Trie {
  /**
   * Of K strings: string k is the first shared[k] bytes of the one before it and the next added[k] bytes of labels,
   * which begins with a byte for the root.
   */
  constructor(labels, shared, added) {
    const numStrings = shared.length;
    let longest = 0;
    let numBytes = 0;
    for (let k = 0; k < numStrings; k++) {
      longest = Math.max(longest, shared[k] + added[k]);
      numBytes += shared[k] + added[k];
    }
    this.labels = labels;
    this.longest = longest;
    this.numStates = labels.length;
    this.ends = new Int32Array(labels.length);
    this.terminals = new Int32Array(numStrings); // the state at which each string ends, ascending
    this.data = new Uint8Array(numBytes);
    this.offsets = new Float64Array(numStrings + 1);
    const path = new Int32Array(longest + 1);
    const bytes = new Uint8Array(longest);
    let state = 0;
    let depth = 0;
    for (let k = 0; k < numStrings; k++) {
      if (added[k] > 0) {
        for (let d = shared[k] + 1; d <= depth; d++) this.ends[path[d]] = state + 1;
        depth = shared[k];
        for (let i = 0; i < added[k]; i++) {
          state += 1;
          bytes[depth] = labels[state];
          depth += 1;
          path[depth] = state;
        }
      }
      this.terminals[k] = path[depth];
      this.data.set(bytes.subarray(0, depth), this.offsets[k]);
      this.offsets[k + 1] = this.offsets[k] + depth;
    }
    for (let d = 0; d <= depth; d++) this.ends[path[d]] = state + 1;
    this.before = new Int32Array(labels.length + 1); // how many strings end before each state
    for (const terminal of this.terminals) this.before[terminal + 1] += 1;
    for (let s = 0; s < labels.length; s++) this.before[s + 1] += this.before[s];
  }

  string(k) {
    return this.data.subarray(this.offsets[k], this.offsets[k + 1]);
  }

  /** Whether a string ends at a state. */
  isEnd(state) {
    return this.before[state + 1] > this.before[state];
  }

  /** The strings that end at a state or below it: first, and one past the last. */
  below(state) {
    return [this.before[state], this.before[this.ends[state]]];
  }

  /** The state that a byte leads to, or -1. */
  child(state, byte) {
    for (let c = state + 1; c < this.ends[state]; c = this.ends[c]) {
      if (this.labels[c] === byte) return c;
    }
    return -1;
  }
}

/** The trie of tokens, in which one look tells where a byte leads: all of its edges are in one hash table. */
class TokenTrie extends Trie {
  constructor(labels, shared, added, ids) {
    super(labels, shared, added);
    this.ids = ids; // of each token, in the order of their bytes
    let bits = 4;
    while (1 << bits < 2 * labels.length) bits += 1;
    this.shift = 32 - bits;
    this.mask = (1 << bits) - 1;
    this.keys = new Float64Array(1 << bits); // 256 * node + byte + 1, or 0
    this.children = new Int32Array(1 << bits);
    for (let node = 0; node < labels.length; node++) {
      for (let c = node + 1; c < this.ends[node]; c = this.ends[c]) {
        const place = this.placeOf(node, labels[c]);
        this.keys[place] = 256 * node + labels[c] + 1;
        this.children[place] = c;
      }
    }
  }

  placeOf(node, byte) {
    const key = 256 * node + byte + 1;
    let place = Math.imul(key, 0x9e3779b1) >>> this.shift;
    while (this.keys[place] !== 0 && this.keys[place] !== key) place = (place + 1) & this.mask;
    return place;
  }

  child(node, byte) {
    const place = this.placeOf(node, byte);
    return this.keys[place] === 0 ? -1 : this.children[place];
  }

  /** The node that bytes lead to, or -1. */
  find(bytes) {
    let node = 0;
    for (const byte of bytes) {
      node = this.child(node, byte);
      if (node < 0) return -1;
    }
    return node;
  }

  hasChildren(node) {
    return this.ends[node] > node + 1;
  }

  /** The ids of the tokens that end at a node; several, where they are of the same bytes. */
  idsAt(node) {
    return this.ids.subarray(this.before[node], this.before[node + 1]);
  }

  bytesAt(node) {
    return this.string(this.before[node]);
  }
}
