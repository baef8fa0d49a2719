// Why a token is allowed here, or is not: sentences, as lists of texts and bytes (which are shown as tokens are).

const MOST_BYTES_NAMED = 12;
const LEAVES = " leaves the set: ";

/** Why bytes that are a token may or may not be taken. */
function whyToken(stepper, bytes) {
  const { constraint } = stepper;
  if (stepper.isTerminated) return ["The answer is over: a stop token was taken."];
  let state = stepper.state;
  for (let place = 0; place < bytes.length; place++) {
    const next = constraint.step(state, bytes[place]);
    if (next < 0) return leavesTheSet(constraint, stepper, bytes, place, state);
    state = next;
  }
  const needed = constraint.distances[state];
  if (needed === UNREACHABLE) {
    return ["Not allowed: the set goes on after ", bytes, ", but no tokens of this vocabulary spell what follows."];
  }
  if (!stepper.isEnoughAfter(state)) return ["Not allowed: ", bytes, ` ${budgetReason(stepper, state, "token")}.`];
  const left = stepper.budget === null ? "" : `; the budget leaves ${count(stepper.remaining - 1)}`;
  const end =
    needed === 0 ? "the answer may end after it" : `it needs at least ${counted(needed, "more token")} to the end`;
  return ["Allowed: ", bytes, ` leads to ${counted(constraint.numValuesFrom(state), "value")}, and ${end}${left}.`];
}

/** Such as "needs 4 more tokens, 3 would be left"; without a noun, where that is clear. */
function budgetReason(stepper, state, noun = "") {
  const left = stepper.remaining - 1;
  if (left < 0) return "is beyond the budget";
  const needed = stepper.constraint.distances[state];
  return `needs ${noun === "" ? `${count(needed)} more` : counted(needed, `more ${noun}`)}, ${count(left)} would be left`;
}

function leavesTheSet(constraint, stepper, bytes, place, state) {
  const edges = constraint.edges(state);
  const sentence = ["Not allowed: ", bytes, LEAVES];
  if (place > 0) sentence.push("after ", bytes.subarray(0, place));
  else if (stepper.steps.length === 0) sentence.push("at the start");
  else sentence.push("here");
  if (edges.length === 0) return [...sentence, " the value is whole, and nothing follows."];
  sentence.push(edges.length === 1 ? " only " : " only these go on: ");
  edges.slice(0, MOST_BYTES_NAMED).forEach(([byte, target], k) => {
    if (k > 0) sentence.push(", ");
    sentence.push(characterOn(constraint, byte, target));
  });
  if (edges.length > MOST_BYTES_NAMED) sentence.push(` and ${counted(edges.length - MOST_BYTES_NAMED, "more byte")}`);
  if (edges.length === 1) sentence.push(" goes on");
  if (constraint.isAccepting(state)) sentence.push("; or the value may end there");
  return [...sentence, "."];
}

/** The whole character that a byte begins, where only one can follow; else the byte. */
function characterOn(constraint, byte, target) {
  const bytes = [byte];
  let state = target;
  while (bytes.length < lengthOfCharacter(byte)) {
    const edges = constraint.edges(state);
    if (edges.length !== 1) break;
    bytes.push(edges[0][0]);
    state = edges[0][1];
  }
  const all = Uint8Array.from(bytes);
  return bytes.length === lengthOfCharacter(byte) && characterAt(all, 0) !== null ? all : Uint8Array.of(byte);
}

/** Why a stop token may or may not be taken. */
function whyStop(stepper) {
  if (stepper.isTerminated) return ["It was taken: the answer is over."];
  if (stepper.mayStop) return ["Allowed: the answer may end here."];
  if (stepper.remaining < 0) return ["Not allowed: more tokens were taken than the budget has."];
  return [`Not allowed: a stop token may only follow a whole value, and the end is ${
    counted(stepper.minTokens, "token")} away at least.`];
}

/** Whether a text that is no token could be written here in several, and in how many. */
function whyText(stepper, bytes) {
  const { constraint, remaining } = stepper;
  const why = whyToken(stepper, bytes);
  if (stepper.isTerminated || why.includes(LEAVES)) return why;
  const state = bytes.reduce((before, byte) => constraint.step(before, byte), stepper.state);
  const [shortest] = shortestSpellings(constraint.pieces, bytes);
  const after = constraint.distances[state];
  if (shortest === undefined || after === UNREACHABLE) return ["The set goes on with it, but no tokens spell it here."];
  const first = constraint.pieces.bytesAt(shortest[0]);
  const needed = shortest.length + after;
  const budget = needed > remaining ? `, but the budget leaves ${count(Math.max(0, remaining))}` : "";
  const sentence = ["The set goes on with it. It takes ", counted(shortest.length, "token"), " at least, such as ", first];
  return [...sentence, ` first, and ${count(after)} more to the end${budget}.`];
}

/** All that there is to say about what a person typed: a token's text, or an id. Lists of sentences. */
function answers(stepper, typed) {
  const found = [];
  const bytes = bytesOfTyped(typed);
  const { ids } = stepper.constraint.tokensOf(bytes);
  const isNumber = /^[0-9]{1,9}$/.test(typed);
  if (ids.length > 0) found.push([bytes, ` is ${namesOf(ids)}. `, ...whyToken(stepper, bytes)]);
  else if (!isNumber) found.push(["No token is exactly ", bytes, ". ", ...whyText(stepper, bytes)]);
  if (isNumber) found.push(answerToId(stepper, Number(typed)));
  return found;
}

function namesOf(ids) {
  const shown = Array.from(ids.subarray(0, 5), String).join(", ");
  return `token ${shown}${ids.length > 5 ? ` and ${ids.length - 5} more` : ""}`;
}

function answerToId(stepper, id) {
  const { constraint } = stepper;
  const { header } = constraint;
  if (id >= header.size) return [`There is no token ${id}: ids go up to ${count(header.size - 1)}.`];
  if (constraint.stopIds.includes(id)) {
    const added = header.names_stop ? "" : ", added behind the others because the tokenizer names none";
    return [`Token ${id} is a stop token${added}. `, ...whyStop(stepper)];
  }
  const bytes = constraint.bytesOf(id);
  if (bytes === null) {
    return [`Not allowed: token ${id} has no bytes of its own (a special token, or an id that is not used), so it can `
      + "spell nothing."];
  }
  return [`Token ${id} is `, bytes, ". ", ...whyToken(stepper, bytes)];
}
