/**
 * The filter of the table, equivalent to the server's (`crates/view/src/filter.rs`). The cases in
 * `filter-cases.json` test both.
 */

import type { FilterError, Row } from "../api";
import { toFloat } from "../numbers";

const TERMS_MAX = 64;
const TEXTS: Record<string, (row: Row) => string> = {
  name: (row) => row.op_name,
  type: (row) => row.op_type,
  cause: (row) => row.cause ?? "",
};
const NUMBERS: Record<string, (row: Row) => number | null> = {
  rel_l2: (row) => toFloat(row.error),
  added: (row) => toFloat(row.added),
  inputs: (row) => toFloat(row.inputs),
  max_abs: (row) => toFloat(row.max_abs),
  headroom: (row) => row.headroom,
  n_nan: (row) => row.n_nan,
  n_inf: (row) => row.n_inf,
  step: (row) => row.step,
  rank: (row) => row.rank,
};
const CHOICES: Record<string, string[]> = {
  status: ["pass", "warn", "fail", "skip"],
  nonfinite: ["any", "nan", "inf", "none"],
  fault: ["yes", "no"],
};
const ORDERS: Record<string, (x: number, limit: number) => boolean> = {
  "<": (x, limit) => x < limit,
  "<=": (x, limit) => x <= limit,
  ":": (x, limit) => x === limit,
  "=": (x, limit) => x === limit,
  ">=": (x, limit) => x >= limit,
  // An error of NaN exceeds every limit.
  ">": (x, limit) => x > limit || Number.isNaN(x),
};

type Condition = (row: Row) => boolean;

class Mistake extends Error {
  constructor(
    message: string,
    readonly suggestion: string | null = null,
  ) {
    super(message);
  }
}

/** A predicate for rows, or the first mistake with its position in characters. */
export function parseFilter(text: string): Condition | FilterError {
  const conditions: Condition[] = [];
  for (const token of tokensOf(text)) {
    const is_negated = token.text.length > 1 && token.text.startsWith("-") && !token.is_quoted;
    const body = is_negated ? token.text.slice(1) : token.text;
    try {
      const holds = token.is_quoted ? hasWord(body) : conditionOf(body);
      conditions.push(is_negated ? (row) => !holds(row) : holds);
      if (conditions.length > TERMS_MAX) throw new Mistake(`more than ${TERMS_MAX} conditions`);
    } catch (mistake) {
      if (!(mistake instanceof Mistake)) throw mistake;
      const { message, suggestion } = mistake;
      return { start: token.start, end: token.end, message, suggestion };
    }
  }
  return (row) => conditions.every((holds) => holds(row));
}

interface Token {
  start: number;
  end: number;
  /** Without quotes. */
  text: string;
  /** Whether it begins with a quote, so that its characters have no special meaning. */
  is_quoted: boolean;
}

/** Unicode's white space, which differs slightly from `\s`. */
const SPACE = /[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let is_open = false;
  let is_inside = false;
  Array.from(text).forEach((letter, at) => {
    if (SPACE.test(letter) && !is_inside) {
      is_open = false;
      return;
    }
    if (!is_open) tokens.push({ start: at, end: at, text: "", is_quoted: letter === '"' });
    is_open = true;
    const token = tokens[tokens.length - 1];
    token.end = at + 1;
    if (letter === '"') is_inside = !is_inside;
    else token.text += letter;
  });
  return tokens;
}

function hasWord(word: string): Condition {
  const part = word.toLowerCase();
  return (row) => row.op_name.toLowerCase().includes(part);
}

function conditionOf(token: string): Condition {
  const at = token.search(/[:~<>=]/);
  // A token without an operator searches names; value names begin with colons too.
  if (at <= 0) return hasWord(token);
  const column = token.slice(0, at);
  const rest = token.slice(at);
  const sign = /^[:~<>=]+/.exec(rest)![0];
  const value = rest.slice(sign.length);
  if (Object.hasOwn(CHOICES, column)) return choiceCondition(column, sign, value);
  if (Object.hasOwn(TEXTS, column)) return textCondition(column, sign, value);
  if (Object.hasOwn(NUMBERS, column)) return numberCondition(column, sign, value);
  const known = [TEXTS, NUMBERS, CHOICES].flatMap((columns) => Object.keys(columns));
  const near = nearest(column, known);
  throw new Mistake(`there is no column \`${column}\``, near === null ? null : near + rest);
}

function choiceCondition(column: string, sign: string, value: string): Condition {
  const words = CHOICES[column];
  if (sign !== ":" || !words.includes(value)) {
    const near = nearest(value, words);
    const message = `\`${column}\` is one of ${words.join(", ")}`;
    throw new Mistake(message, near === null ? null : `${column}:${near}`);
  }
  if (column === "status") return (row) => row.status === value;
  if (column === "fault") return (row) => row.at_fault === (value === "yes");
  return (row) => isNonFinite(row, value);
}

function isNonFinite(row: Row, what: string): boolean {
  const has_nan = (row.n_nan ?? 0) > 0;
  const has_inf = (row.n_inf ?? 0) > 0;
  if (what === "nan") return has_nan;
  if (what === "inf") return has_inf;
  // Unknown values are not finite.
  return what === "any" ? has_nan || has_inf : row.n_nan === 0 && row.n_inf === 0;
}

function textCondition(column: string, sign: string, value: string): Condition {
  if (sign !== ":" && sign !== "~") {
    const message = `\`${column}\` is text: use \`:\` for all of it, \`~\` for a part`;
    throw new Mistake(message, `${column}~${value}`);
  }
  // An unfinished condition while the user types.
  if (value === "") throw new Mistake(`\`${column}${sign}\` needs a text after it`);
  const pattern = value.toLowerCase();
  const textOf = TEXTS[column];
  if (sign === "~") return (row) => textOf(row).toLowerCase().includes(pattern);
  const letters = Array.from(pattern);
  return (row) => isLike(Array.from(textOf(row).toLowerCase()), letters);
}

function numberCondition(column: string, sign: string, value: string): Condition {
  if (!Object.hasOwn(ORDERS, sign)) {
    const message = `\`${column}\` is a number: use <, <=, =, >= or >`;
    throw new Mistake(message, `${column}>${value}`);
  }
  const holds = ORDERS[sign];
  const given = numberOf(value);
  if (given === null || Number.isNaN(given)) throw new Mistake(`\`${value}\` is not a number`);
  if (column === "headroom" && given <= 0) {
    throw new Mistake(`headroom must be more than 0, found \`${given}\``);
  }
  // The table shows a factor, but the value is a power of two.
  const limit = column === "headroom" ? Math.log2(given) : given;
  return (row) => {
    const x = NUMBERS[column](row);
    return x !== null && holds(x, limit);
  };
}

function numberOf(text: string): number | null {
  const power = text.indexOf("^");
  if (power < 0) return plainNumberOf(text);
  const base = plainNumberOf(text.slice(0, power));
  const exponent = plainNumberOf(text.slice(power + 1));
  return base === null || exponent === null ? null : base ** exponent;
}

function plainNumberOf(text: string): number | null {
  if (/^[+-]?(inf|infinity)$/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : null;
}

/** Whether a text matches a pattern, where `*` matches anything and `?` one letter. */
function isLike(text: string[], pattern: string[]): boolean {
  let at = 0;
  let in_pattern = 0;
  // The last star, and the position in the text to retry from.
  let star = -1;
  let behind = 0;
  while (at < text.length) {
    const letter = pattern[in_pattern];
    if (letter === "*") {
      star = in_pattern;
      behind = at;
      in_pattern += 1;
    } else if (letter !== undefined && (letter === "?" || letter === text[at])) {
      at += 1;
      in_pattern += 1;
    } else if (star >= 0) {
      behind += 1;
      at = behind;
      in_pattern = star + 1;
    } else return false;
  }
  return pattern.slice(in_pattern).every((letter) => letter === "*");
}

/** A word far from all others is not a misspelling. */
function nearest(word: string, words: string[]): string | null {
  let best: string | null = null;
  let likeness = 0;
  for (const known of words) {
    const alike = jaroWinkler(word, known);
    if (alike >= likeness) [best, likeness] = [known, alike];
  }
  return likeness > 0.6 ? best : null;
}

/** The Jaro-Winkler similarity of two words, from 0 to 1. */
function jaroWinkler(first: string, second: string): number {
  const [a, b] = [Array.from(first), Array.from(second)];
  if (a.length === 0 || b.length === 0) return a.length === b.length ? 1 : 0;
  const range = Math.max(0, Math.floor(Math.max(a.length, b.length) / 2) - 1);
  const is_taken = b.map(() => false);
  const matching = a.filter((letter, i) => {
    const end = Math.min(b.length, i + range + 1);
    for (let j = Math.max(0, i - range); j < end; j += 1) {
      if (b[j] !== letter || is_taken[j]) continue;
      is_taken[j] = true;
      return true;
    }
    return false;
  });
  const n = matching.length;
  if (n === 0) return 0;
  const taken = b.filter((_, j) => is_taken[j]);
  const n_moved = Math.floor(matching.filter((letter, i) => letter !== taken[i]).length / 2);
  const jaro = (n / a.length + n / b.length + (n - n_moved) / n) / 3;
  if (jaro <= 0.7) return jaro;
  const common = a.slice(0, 4).findIndex((letter, i) => letter !== b[i]);
  const n_common = common < 0 ? Math.min(4, a.length) : common;
  return jaro + 0.1 * n_common * (1 - jaro);
}
