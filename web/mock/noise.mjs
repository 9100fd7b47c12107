/** Numbers that look like noise and are the same in every run. */

export function seeded(seed) {
  let state = (seed * 2654435761 + 1013904223) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x ^= x + Math.imul(x ^ (x >>> 7), 61 | x);
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}

/** Between -1 and 1, from a place alone, so that any slice of a tensor is cheap. */
export function at(seed, ...index) {
  let x = Math.imul(seed + 1, 0x9e3779b1);
  for (const i of index) x = Math.imul(x ^ (i + 0x7f4a7c15), 0x85ebca6b) ^ (x >>> 13);
  x ^= x >>> 16;
  x = Math.imul(x, 0xc2b2ae35);
  x ^= x >>> 15;
  return ((x >>> 0) / 4294967296) * 2 - 1;
}
