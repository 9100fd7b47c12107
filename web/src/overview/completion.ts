/** Completions of the filter: columns first, then the values of those that have few. */

export interface Completion {
  /** The part of the text that a completion replaces. */
  start: number;
  end: number;
  words: string[];
}

const KEYS = ["type:", "name~", "status:", "nonfinite:", "fault:", "step:", "rank:"];
const PAIR_KEYS = ["rel_l2>", "added>", "inputs>", "cause:"];
const SIZE_KEYS = ["max_abs>", "headroom<2^", "n_nan>", "n_inf>"];
const VALUES: Record<string, string[]> = {
  status: ["fail", "warn", "pass", "skip"],
  cause: ["own", "outside", "inherited", "gradual", "unknown"],
  fault: ["yes", "no"],
  nonfinite: ["any", "nan", "inf", "none"],
};

export function completionAt(text: string, caret: number, is_pair: boolean): Completion | null {
  const start = text.slice(0, caret).search(/\S*$/);
  const word = text.slice(start, caret);
  const prefix = word.startsWith("-") ? "-" : "";
  const typed = word.slice(prefix.length).toLowerCase();
  if (typed === "" || /["\s]/.test(typed)) return null;
  const [key, value] = typed.split(":");
  const candidates =
    value === undefined
      ? [...KEYS, ...(is_pair ? PAIR_KEYS : []), ...SIZE_KEYS]
      : (VALUES[key] ?? []).map((known) => `${key}:${known}`);
  const words = candidates
    .filter((candidate) => candidate.startsWith(typed) && candidate !== typed)
    .map((candidate) => prefix + candidate);
  return words.length > 0 ? { start, end: caret, words } : null;
}

/** The text with `word` inserted; a finished condition is followed by a blank. */
export function completed(text: string, completion: Completion, word: string): string {
  const is_finished = /:\w+$/.test(word);
  const rest = text.slice(completion.end);
  const gap = is_finished && !rest.startsWith(" ") ? " " : "";
  return text.slice(0, completion.start) + word + gap + rest;
}
