/** The parts of a report's first view, one below the other, and navigation to them. */

import { currentAddress, go } from "../address";

export type PartName = "verdict" | "fault" | "operators" | "graph" | "coverage" | "made";

let wanted: PartName | null = null;

export const partId = (name: PartName) => `part-${name}`;

export function goToPart(name: PartName): void {
  wanted = name;
  if (currentAddress().view === "overview") showWantedPart();
  else go({ view: "overview" });
}

/** Scrolls to the part requested in another view. */
export function showWantedPart(): void {
  if (wanted === null) return;
  document.getElementById(partId(wanted))?.scrollIntoView({ block: "start" });
  wanted = null;
}
