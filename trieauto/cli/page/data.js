// The page's data: a header in JSON and arrays of numbers, as page_data.py writes them.

const ARRAY_TYPES = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array };

/** The header and the arrays, by their names, of a text in base64. */
async function readData(base64) {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = await new Response(stream).arrayBuffer();
  const begin = 4 + new DataView(data).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, begin - 4)));
  if (header.format !== 1) throw new Error(`the data has format ${header.format}, and this page reads format 1`);
  const arrays = {};
  let place = begin;
  for (const [name, type, length] of header.arrays) {
    const numBytes = length * ARRAY_TYPES[type].BYTES_PER_ELEMENT;
    arrays[name] = new ARRAY_TYPES[type](data.slice(place, place + numBytes)); // a copy, so that it is aligned
    place += numBytes;
  }
  return { header, arrays };
}
