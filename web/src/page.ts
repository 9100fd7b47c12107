/** What every view is given: the run, the address and the operator that is selected. */

import type { Address } from "./address";
import type { Info, Operator, Slot } from "./api";
import type { Answer } from "./connection";

export interface Page {
  info: Info;
  address: Address;
  /** The operator that is selected, by the address or else by the verdict. */
  selected: number | null;
  operator: Answer<Operator>;
  /** The slot that is selected, or the one that tells most of the operator. */
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
  // Where a difference enters from outside, the slot where it enters tells more than the output.
  if (operator.cause === "outside") {
    const entry = worst(slots.filter((slot) => slot.id.startsWith("in")));
    if (entry) return entry;
  }
  const outputs = slots.filter((slot) => slot.id.startsWith("out"));
  return worst(outputs) ?? outputs[0] ?? slots[0] ?? null;
}

export function causeWord(row: { cause: string | null; entry: string | null }): string | null {
  return row.cause === "outside" ? (row.entry ?? "input") : row.cause;
}
