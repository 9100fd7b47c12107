/** The props of every view: run, address and selected operator. */

import type { Address } from "./address";
import type { Info, Operator, Slot } from "./api";
import type { Answer } from "./connection";
import { t } from "./texts";

export interface Page {
  info: Info;
  address: Address;
  /** The operator selected by the address, or else by the verdict. */
  selected: number | null;
  operator: Answer<Operator>;
  /** The selected slot, or the operator's most informative one. */
  slot: Slot | null;
}

export function defaultSlot(info: Info, operator: Operator): Slot | null {
  const { slots } = operator;
  const { verdict } = info;
  if (operator.id === verdict.op && verdict.slot !== null) {
    const named = slots.find((slot) => slot.id === verdict.slot);
    if (named) return named;
  }
  const worst = (candidates: Slot[]) =>
    candidates.find((slot) => slot.status === "fail") ??
    candidates.find((slot) => slot.status === "warn");
  // If a difference enters from outside, that slot is more informative than the output.
  if (operator.cause === "outside") {
    const entry = worst(slots.filter((slot) => slot.id.startsWith("in")));
    if (entry) return entry;
  }
  const outputs = slots.filter((slot) => slot.id.startsWith("out"));
  return worst(outputs) ?? outputs[0] ?? slots[0] ?? null;
}

/** Places of the dump that a list shows together. */
export interface Several {
  steps: boolean;
  ranks: boolean;
}

export function several({ info, address }: Page): Several {
  const are = (numbers: (number | null)[]) => new Set(numbers).size > 1;
  return {
    steps: address.step === null && are(info.places.map((place) => place.step)),
    ranks: address.rank === null && are(info.places.map((place) => place.rank)),
  };
}

/** The step, rank and execution of an operator, as far as a list has several. */
export function executionWords(
  { step, rank, call }: { step: number | null; rank: number | null; call: number | null },
  { steps, ranks }: Several,
): string {
  const words = [
    steps && step !== null && t.step(step),
    ranks && rank !== null && t.rank(rank),
    call !== null && call > 0 && t.execution(call),
  ];
  return words.filter(Boolean).join(" · ");
}

export function causeWord(row: { cause: string | null; entry: string | null }): string | null {
  return row.cause === "outside" ? (row.entry ?? "input") : row.cause;
}
