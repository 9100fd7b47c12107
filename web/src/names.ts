/** Operator names for display: short where they repeat, and with invisible characters escaped. */

export interface ShortName {
  /** The part before the last one, with its separator: `layer2.1/`. */
  path: string;
  last: string;
}

export type Measure = (text: string, is_strong: boolean) => number;

export interface FittedName extends ShortName {
  type: string;
}

interface Shortening {
  drops_prefix: boolean;
  drops_type: boolean;
  drops_repeated: boolean;
}

const SHORTENINGS: Shortening[] = [
  { drops_prefix: true, drops_type: true, drops_repeated: true },
  { drops_prefix: true, drops_type: true, drops_repeated: false },
  { drops_prefix: true, drops_type: false, drops_repeated: false },
  { drops_prefix: false, drops_type: false, drops_repeated: false },
];

let common_prefix = "";

/** Sets the scopes that nearly all names begin with; short names go without them. */
export function setCommonPrefix(prefix: string): void {
  common_prefix = prefix;
}

/** `conv_46` of `node_conv_46`, if nearly all names begin with `node_`. */
export function dropPrefix(name: string): string {
  return common_prefix !== "" && name.startsWith(common_prefix)
    ? name.slice(common_prefix.length)
    : name;
}

export function shortName(name: string, type: string): ShortName {
  return shorten(name, type, SHORTENINGS[0]);
}

/**
 * Short names that differ wherever the full names do: clashing names keep more parts. With
 * `has_types` the type is displayed next to each, and distinguishes as well.
 */
export function distinctNames(
  operators: { op_name: string; op_type: string }[],
  has_types = true,
): ShortName[] {
  const names = operators.map((o) => shorten(o.op_name, o.op_type, SHORTENINGS[0]));
  for (const shortening of SHORTENINGS.slice(1)) {
    const readers = new Map<string, Set<string>>();
    const typeOf = (i: number) => (has_types ? operators[i].op_type : "");
    const lookOf = (i: number) => `${names[i].path}${names[i].last}\n${typeOf(i)}`;
    operators.forEach((o, i) => {
      const look = lookOf(i);
      const full = readers.get(look) ?? new Set();
      readers.set(look, full.add(o.op_name));
    });
    const looks = operators.map((_, i) => lookOf(i));
    operators.forEach((o, i) => {
      if (readers.get(looks[i])!.size > 1) names[i] = shorten(o.op_name, o.op_type, shortening);
    });
  }
  return names;
}

/** Shortens the type first, then the middle of the path, and only then the last part. */
export function fitName(
  name: ShortName,
  type: string,
  width: number,
  measure: Measure,
  gap = 6,
): FittedName {
  const last_width = measure(name.last, true);
  const path_width = measure(name.path, false);
  let left = width - last_width - path_width;
  if (left >= measure(type, false) + gap) return { ...name, type };
  if (left >= measure("Mmm…", false) + gap || type === "") {
    if (left >= 0) return { ...name, type: fitEnd(type, left - gap, measure) };
  }
  // The type keeps room for three letters; the path shrinks.
  const kept_type = type ? fitEnd(type, measure("Mmm…", false), measure) : "";
  // A whole path is worth more than three letters of a type, which is also in the tooltip.
  if (path_width + last_width <= width) return { ...name, type: "" };
  left = width - last_width - (kept_type ? measure(kept_type, false) + gap : 0);
  const path = fitPath(name.path, left, measure);
  if (path !== null) return { path, last: name.last, type: kept_type };
  const path_alone = fitPath(name.path, width - last_width, measure);
  if (path_alone !== null) return { path: path_alone, last: name.last, type: "" };
  if (last_width <= width) return { path: "", last: name.last, type: "" };
  return { path: "", last: fitMiddle(name.last, width, measure), type: "" };
}

/** `/a/b/c` names are split at slashes, others at dots. */
export function separatorOf(name: string): string {
  return name.includes("/") ? "/" : ".";
}

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const MARKS: Record<string, string> = {
  "\u200b": "ZWSP",
  "\u200c": "ZWNJ",
  "\u200d": "ZWJ",
  "\u200e": "LRM",
  "\u200f": "RLM",
  "\u2028": "LSEP",
  "\u2029": "PSEP",
  "\u202a": "LRE",
  "\u202b": "RLE",
  "\u202c": "PDF",
  "\u202d": "LRO",
  "\u202e": "RLO",
  "\u2060": "WJ",
  "\u2066": "LRI",
  "\u2067": "RLI",
  "\u2068": "FSI",
  "\u2069": "PDI",
  "\ufeff": "BOM",
};

/** Replaces control characters by pictures and direction marks by words: `␛`, `⟨RLM⟩`. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (c) => {
    const code = c.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "␡";
    return `⟨${MARKS[c] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`}⟩`;
  });
}

function shorten(full: string, type: string, how: Shortening): ShortName {
  const name = how.drops_prefix ? dropPrefix(full) : full;
  const separator = separatorOf(full);
  let parts = name.split(separator).filter(Boolean);
  if (parts.length === 0) return { path: "", last: name === "" ? '""' : visible(name) };
  if (how.drops_type && parts.length > 1 && parts[parts.length - 1] === type) parts.pop();
  if (how.drops_repeated) {
    parts = parts.filter((part, i) => {
      const next = parts[i + 1];
      return next === undefined || !(next === part || next.startsWith(`${part}.`));
    });
  }
  const last = parts.pop()!;
  const path = parts.map((part) => part + separator).join("");
  return { path: visible(path), last: visible(last) };
}

function fitPath(path: string, width: number, measure: Measure): string | null {
  if (path === "") return width >= 0 ? "" : null;
  if (measure(path, false) <= width) return path;
  const separator = path.endsWith("/") ? "/" : ".";
  const parts = path.split(separator).filter(Boolean);
  // `model/…/self_attn/`: as many trailing parts as fit, and the first one if possible.
  for (const has_first of [true, false]) {
    for (let n = parts.length - (has_first ? 2 : 1); n >= 0; n -= 1) {
      const end = parts
        .slice(parts.length - n)
        .map((part) => part + separator)
        .join("");
      const text = `${has_first ? parts[0] + separator : ""}…${separator}${end}`;
      if (measure(text, false) <= width) return text;
    }
  }
  return null;
}

function fitEnd(text: string, width: number, measure: Measure): string {
  if (measure(text, false) <= width) return text;
  for (let n = text.length - 1; n >= 2; n -= 1) {
    const cut = `${text.slice(0, n)}…`;
    if (measure(cut, false) <= width) return cut;
  }
  return "";
}

/** `digits_cnn…ansposed_2`: at most `n` letters, without those in the middle. */
export function cutLetters(text: string, n: number): string {
  const letters = Array.from(text);
  if (letters.length <= n) return text;
  const half = Math.floor((n - 1) / 2);
  return `${letters.slice(0, n - 1 - half).join("")}…${letters.slice(-half).join("")}`;
}

function fitMiddle(text: string, width: number, measure: Measure): string {
  const letters = Array.from(text);
  // Eight characters at each end stay, whatever the width.
  for (let n = Math.floor((letters.length - 1) / 2); n > 8; n -= 1) {
    const cut = `${letters.slice(0, n).join("")}…${letters.slice(-n).join("")}`;
    if (measure(cut, true) <= width) return cut;
  }
  if (letters.length <= 17) return text;
  return `${letters.slice(0, 8).join("")}…${letters.slice(-8).join("")}`;
}
