// The ways to write one value in tokens: how many there are, the shortest, and the tokenizer's own.

const MOST_STEPS = 4_000_000; // of counting within a budget
const MOST_SHORTEST = 5;

/** For each place in a string, the tokens that begin there: [end, node of the token trie]. */
function tokensWithin(pieces, bytes) {
  return Array.from(bytes, (_, begin) => {
    const found = [];
    let node = 0;
    for (let place = begin; place < bytes.length && pieces.hasChildren(node); place++) {
      node = pieces.child(node, bytes[place]);
      if (node < 0) break;
      if (pieces.isEnd(node)) found.push([place + 1, node]);
    }
    return found;
  });
}

/** How many sequences of token ids spell a string: exact, a BigInt. */
function countSpellings(pieces, bytes) {
  const tokens = tokensWithin(pieces, bytes);
  const ways = Array(bytes.length + 1).fill(0n);
  ways[bytes.length] = 1n;
  for (let begin = bytes.length - 1; begin >= 0; begin--) {
    for (const [end, node] of tokens[begin]) ways[begin] += BigInt(pieces.idsAt(node).length) * ways[end];
  }
  return ways[0];
}

/** How many of them have so many tokens at most; null if counting would take too long. */
function countSpellingsWithin(pieces, bytes, most) {
  if (most >= bytes.length) return countSpellings(pieces, bytes);
  const tokens = tokensWithin(pieces, bytes);
  if (tokens.reduce((sum, found) => sum + found.length, 0) * most > MOST_STEPS) return null;
  let ways = Array(bytes.length + 1).fill(0n); // with exactly so many tokens from each place on
  ways[bytes.length] = 1n;
  let total = ways[0];
  for (let step = 0; step < most; step++) {
    const next = Array(bytes.length + 1).fill(0n);
    tokens.forEach((found, begin) => {
      for (const [end, node] of found) next[begin] += BigInt(pieces.idsAt(node).length) * ways[end];
    });
    ways = next;
    total += ways[0];
  }
  return total;
}

/** The spellings of the fewest tokens, a handful at most: lists of nodes; none if there is no spelling at all. */
function shortestSpellings(pieces, bytes) {
  const tokens = tokensWithin(pieces, bytes);
  const fewest = Array(bytes.length + 1).fill(Infinity);
  fewest[bytes.length] = 0;
  for (let begin = bytes.length - 1; begin >= 0; begin--) {
    for (const [end] of tokens[begin]) fewest[begin] = Math.min(fewest[begin], fewest[end] + 1);
  }
  if (fewest[0] === Infinity) return [];
  let open = [{ place: 0, nodes: [] }];
  for (let step = 0; step < fewest[0]; step++) {
    const longer = [];
    for (const { place, nodes } of open) {
      for (const [end, node] of tokens[place].toReversed()) {
        if (fewest[end] === fewest[place] - 1) longer.push({ place: end, nodes: [...nodes, node] });
      }
    }
    open = longer.slice(0, MOST_SHORTEST);
  }
  return open.map(({ nodes }) => nodes);
}

/** What there is to know of a value's spellings; ``most``: a budget, or Infinity. */
function spellingsOf(constraint, value, most) {
  const { pieces } = constraint;
  const strings = constraint.stringsFor(value);
  const shortest = strings.flatMap((bytes) => shortestSpellings(pieces, bytes));
  const fewest = Math.min(...shortest.map((nodes) => nodes.length));
  const parts = strings.map((bytes) => countSpellingsWithin(pieces, bytes, most));
  return {
    number: strings.reduce((sum, bytes) => sum + countSpellings(pieces, bytes), 0n),
    numberWithin: parts.includes(null) ? null : parts.reduce((sum, number) => sum + number, 0n),
    fewest,
    shortest: shortest.filter((nodes) => nodes.length === fewest).slice(0, MOST_SHORTEST),
    own: ownSpelling(constraint, value),
  };
}

/** The ids that the tokenizer itself writes a value in; none if it writes other bytes, null if that is not known. */
function ownSpelling(constraint, value) {
  const { own_counts: counts, own_ids: ids } = constraint.arrays;
  if (counts === undefined) return null;
  if (constraint.ownPlaces === undefined) {
    constraint.ownPlaces = new Float64Array(counts.length + 1);
    counts.forEach((number, k) => (constraint.ownPlaces[k + 1] = constraint.ownPlaces[k] + number));
  }
  return Array.from(ids.subarray(constraint.ownPlaces[value], constraint.ownPlaces[value + 1]));
}
