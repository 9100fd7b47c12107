/** Captions of the two sides: the names of the dumps, or their roles if nothing tells them apart. */

import type { Info, PicturedSide } from "./api";
import { cutLetters, visible } from "./names";
import { t } from "./texts";

/** Letters of a caption; longer names lose their middle. */
const LETTERS_MAX = 24;
/** The same next to a chart of the inspector. */
export const LETTERS_FEW = 16;

let names: Partial<Record<PicturedSide, string>> = {};

export function setSides(info: Pick<Info, "target" | "golden" | "reference">): void {
  const { target, golden, reference } = info;
  if (golden === null) {
    names = { target: target.name };
    return;
  }
  const distinct = distinctSides(target, golden);
  names = distinct === null ? {} : { target: distinct[0], golden: distinct[1] };
  // With the name of another side its role says more.
  const is_taken = reference && [target.name, golden.name].includes(reference.name);
  if (reference && !is_taken) names.reference = reference.name;
}

/** The side's caption, as visible text. */
export function sideName(side: PicturedSide, letters = LETTERS_MAX): string {
  const name = names[side];
  return name === undefined ? t[side] : cutLetters(visible(name), letters);
}

interface NamedSide {
  name: string;
  path: string;
}

/**
 * The names of two dumps; with equal names, the ends of their paths from the last folder that
 * differs. `null` for one path shown twice.
 */
export function distinctSides(target: NamedSide, golden: NamedSide): [string, string] | null {
  if (target.name !== golden.name) return [target.name, golden.name];
  const parts = [target, golden].map(({ path }) => path.split("/").filter(Boolean).reverse());
  const at = parts[0].findIndex((part, i) => part !== parts[1][i]);
  if (at < 0 || at >= parts[1].length) return null;
  const [a, b] = parts.map((all) => all.slice(0, at + 1).reverse().join("/"));
  return [a, b];
}
