/** Manual pairs, kept by this page until a comparison uses their mapping file. */

import { useLayoutEffect, useState } from "preact/hooks";
import type { GraphBox, Side } from "../api";
import { base } from "../connection";

export interface HandMember {
  side: Side;
  name: string;
  /** The number among executions of the name; null if it runs once. */
  run: number | null;
}

/** A side without members marks the others as unmatched. */
export interface HandPair {
  target: HandMember[];
  golden: HandMember[];
}

const STORED = `opscope-pairs:${base}`;
const listeners = new Set<() => void>();
let pairs: HandPair[] = read();

export function currentPairs(): HandPair[] {
  return pairs;
}

export function usePairs(): HandPair[] {
  const [, repaint] = useState(0);
  useLayoutEffect(() => {
    const listener = () => repaint((n) => n + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return pairs;
}

export function setPairs(next: HandPair[]): void {
  pairs = next;
  try {
    sessionStorage.setItem(STORED, JSON.stringify(pairs));
  } catch {
    // Without storage they last as long as the page.
  }
  for (const listener of listeners) listener();
}

function read(): HandPair[] {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(STORED) ?? "[]");
    return Array.isArray(stored) ? (stored as HandPair[]) : [];
  } catch {
    return [];
  }
}

export function memberOf(box: GraphBox): HandMember | null {
  if (box.kind !== "op" || box.op_name === undefined) return null;
  return { side: box.side, name: box.op_name, run: box.run ?? null };
}

/** The name in the form that mappings compare. */
function mappedName(name: string): string {
  return name.replace(/[/. \\]/g, "_");
}

/** Whether a mapping would treat both as equal; a name without a run means all its executions. */
export function clashes(a: HandMember, b: HandMember): boolean {
  if (a.side !== b.side || mappedName(a.name) !== mappedName(b.name)) return false;
  return a.run === null || b.run === null || a.run === b.run;
}

export function pairOf(all: HandPair[], member: HandMember): HandPair | null {
  return (
    all.find((pair) => [...pair.target, ...pair.golden].some((m) => clashes(m, member))) ?? null
  );
}

/** The pairs plus a new one, which replaces those that share an operator with it. */
export function withPair(all: HandPair[], added: HandPair): HandPair[] {
  const members = [...added.target, ...added.golden];
  const others = all.filter(
    (pair) => ![...pair.target, ...pair.golden].some((m) => members.some((a) => clashes(a, m))),
  );
  return [...others, added];
}

export type Refusal = "nothing" | "twice" | "runs";

/** Why a mapping cannot express a pair, if so. */
export function refusal({ target, golden }: HandPair): Refusal | null {
  if (target.length === 0 && golden.length === 0) return "nothing";
  for (const side of [target, golden]) {
    const names = side.map((m) => mappedName(m.name));
    if (new Set(names).size < names.length) return "twice";
    // An entry has one number for all names of a side; an operator that runs once is execution 0.
    const runs = new Set(side.map((m) => m.run ?? 0));
    if (side.some((m) => m.run !== null) && runs.size > 1) return "runs";
  }
  return null;
}

/** The file that `opscope compare --mapping` reads. */
export function mappingText(all: HandPair[]): string {
  const names = (side: HandMember[]) =>
    side.length === 1 ? side[0].name : side.map((m) => m.name);
  const runOf = (side: HandMember[]) => side.find((m) => m.run !== null)?.run ?? null;
  const operators = all.map(({ target, golden }) => {
    const [target_run, golden_run] = [runOf(target), runOf(golden)];
    return {
      target: names(target),
      golden: names(golden),
      ...(target_run === null ? {} : { target_run }),
      ...(golden_run === null ? {} : { golden_run }),
    };
  });
  return `${JSON.stringify({ operators }, null, 2)}\n`;
}

export const MAPPING_FILE = "mapping.json";

/** The command that repeats the comparison, for a POSIX shell. */
export function compareCommand(target: string, golden: string): string {
  // A path that looks like an option would be parsed as one.
  const [examined, right] = [target, golden].map((p) => (p.startsWith("-") ? `./${p}` : p));
  return ["opscope", "compare", examined, right, "--mapping", MAPPING_FILE, "--view"]
    .map(quoted)
    .join(" ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

export function saveMapping(): void {
  const url = URL.createObjectURL(new Blob([mappingText(pairs)], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = MAPPING_FILE;
  link.click();
  URL.revokeObjectURL(url);
}
