// How bytes are shown: text as it is, and what cannot be seen, or could be mistaken, as escapes of another look.

/** Characters that have no shape of their own, or change how others are shown: controls, marks of direction, ... */
const UNSEEN = /[\p{C}\p{Z}]/u;
const COMBINING = /\p{M}/u;
const NAMES = new Map([[0x09, "\\t"], [0x0a, "\\n"], [0x0d, "\\r"], [0x20, "␣"]]);
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** How many bytes a character takes that begins with this byte; 0 if none does. */
function lengthOfCharacter(byte) {
  return byte < 0x80 ? 1 : byte < 0xc2 ? 0 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : byte < 0xf5 ? 4 : 0;
}

/** The character that begins at a place and its length; null where the bytes are no UTF-8. */
function characterAt(bytes, place) {
  const length = lengthOfCharacter(bytes[place]);
  if (length === 0 || place + length > bytes.length) return null;
  try {
    return { text: UTF8.decode(bytes.subarray(place, place + length)), length };
  } catch {
    return null;
  }
}

function hexadecimal(byte) {
  return byte.toString(16).padStart(2, "0");
}

/** Bytes in pieces of [text, whether it is an escape]. */
function readable(bytes) {
  const parts = [];
  const add = (text, isEscape) => {
    const last = parts.at(-1);
    if (last !== undefined && last[1] === isEscape) last[0] += text;
    else parts.push([text, isEscape]);
  };
  for (let place = 0; place < bytes.length; ) {
    const character = characterAt(bytes, place);
    if (character === null) {
      add(`\\x${hexadecimal(bytes[place])}`, true);
      place += 1;
      continue;
    }
    const code = character.text.codePointAt(0);
    const hasNoBase = COMBINING.test(character.text) && (parts.length === 0 || parts.at(-1)[1]);
    if (NAMES.has(code)) add(NAMES.get(code), true);
    else if (code < 0x80 && UNSEEN.test(character.text)) add(`\\x${hexadecimal(code)}`, true);
    else if (UNSEEN.test(character.text) || hasNoBase) add(`\\u{${code.toString(16)}}`, true);
    else add(character.text, false);
    place += character.length;
  }
  return parts;
}

/** The same as one string, for screen readers and titles. */
function readableText(bytes) {
  return readable(bytes).map(([text]) => text).join("").replaceAll("␣", " ");
}

function hexadecimals(bytes) {
  return Array.from(bytes, hexadecimal).join(" ");
}

/** The bytes that a person typed; \n, \t, \r, \\, \xNN and \u{N} are what they are in the page. */
function bytesOfTyped(typed) {
  const bytes = [];
  const encoder = new TextEncoder();
  const simple = { n: 0x0a, t: 0x09, r: 0x0d, "\\": 0x5c };
  const pattern = /\\(?:x([0-9a-fA-F]{2})|u\{([0-9a-fA-F]{1,6})\}|([ntr\\]))|[^]/gu;
  for (const [whole, byte, code, name] of typed.matchAll(pattern)) {
    if (byte !== undefined) bytes.push(parseInt(byte, 16));
    else if (name !== undefined) bytes.push(simple[name]);
    else if (code !== undefined && parseInt(code, 16) <= 0x10ffff) {
      bytes.push(...encoder.encode(String.fromCodePoint(parseInt(code, 16))));
    } else bytes.push(...encoder.encode(whole));
  }
  return Uint8Array.from(bytes);
}

const count = (number) => number.toLocaleString("en");
const counted = (number, noun) => `${count(number)} ${noun}${number == 1 ? "" : "s"}`;
