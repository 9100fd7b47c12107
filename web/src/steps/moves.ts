/** Moves the selection between cells and ranks. */

import { useEffect } from "preact/hooks";
import { go } from "../address";
import type { ColumnAxis, Steps } from "../api";
import { ask } from "../connection";
import { useKeys } from "../keys";
import type { Page } from "../page";
import { selectFault } from "../selection";
import { cellOf, neighbourOf, stepGrid, type StepGrid } from "./grid";
import { shownMost } from "./layout";

/** Width and height of the pane of the heat map. */
export type PaneSize = [number, number];

export function selectCell(grid: StepGrid, cell: number): void {
  const [first, last] = grid.columns[cell % grid.n_columns];
  go({ op: grid.ids[cell], [grid.by]: first === last ? first : null });
}

/** The columns of the heat map: steps if there are several, unless the address selects ranks. */
export function columnAxis(page: Page): ColumnAxis {
  const steps = new Set(page.info.places.map(({ step }) => step));
  return page.address.by ?? (steps.size > 1 || !hasRanks(page) ? "step" : "rank");
}

/** Whether there are several ranks. */
export function hasRanks(page: Page): boolean {
  return new Set(page.info.places.map(({ rank }) => rank)).size > 1;
}

/** Switches the columns to steps or ranks; the selection keeps its step and rank. */
export function selectAxis(by: ColumnAxis): void {
  go({ by });
}

/** Selects the same operator and step on another rank. */
export async function selectRank(
  page: Page,
  rank: number | null,
  size: PaneSize | null,
): Promise<void> {
  const operator = page.operator.data;
  if (size === null || !operator) return go({ rank });
  const there = { ...page, address: { ...page.address, rank } };
  const answer = await ask<Steps>(stepsPath(there, size)).catch(() => null);
  const grid = answer && stepGrid(answer);
  // Its id is from the previous rank, so it is found by name and step.
  const cell = grid && cellOf(grid, -1, { ...operator, id: -1 });
  const has_run = grid !== null && cell !== null && grid.has_run[cell];
  go(has_run ? { rank, op: grid.ids[cell] } : { rank });
}

export function stepsPath(page: Page, size: PaneSize): string {
  const { rows } = shownMost(...size);
  return `steps?rows=${rows}&${columnsQuery(page, size)}`;
}

/** The scalar outputs over the same columns; the server chooses a default. */
export function scalarsPath(page: Page, size: PaneSize, chosen: number | null): string {
  const scalar = chosen === null ? "" : `&scalar=${chosen}`;
  return `scalars?${columnsQuery(page, size)}${scalar}`;
}

/** The axis along the columns is not filtered; the choice on the other axis is. */
function columnsQuery(page: Page, size: PaneSize): string {
  const { columns } = shownMost(...size);
  const by = columnAxis(page);
  const other = by === "step" ? "rank" : "step";
  const chosen = page.address[other];
  const filter = encodeURIComponent(page.address.q);
  const axis = by === "step" ? "" : `&by=${by}`;
  return `columns=${columns}&q=${filter}${axis}${chosen === null ? "" : `&${other}=${chosen}`}`;
}

/** The view shows every step, or every rank, so the selected one does not narrow it. */
export function unscoped(page: Page): Page {
  return { ...page, address: { ...page.address, [columnAxis(page)]: null } };
}

/**
 * Keeps step and rank in the address in sync with the operator; alone, they select the operator
 * there.
 */
export function useMatchingPlace(page: Page, grid: StepGrid): void {
  const { address, selected } = page;
  const operator = page.operator.data;
  useEffect(() => {
    if (!operator || operator.id !== selected) return;
    const step = address.step === null ? operator.step : address.step;
    const rank = address.rank === null ? operator.rank : address.rank;
    if (step === operator.step && rank === operator.rank) return;
    if (address.op !== null) {
      return go({
        step: address.step === null ? null : operator.step,
        rank: address.rank === null ? null : operator.rank,
      });
    }
    const cell = cellOf(grid, -1, { ...operator, id: -1, step, rank });
    if (cell !== null && grid.has_run[cell]) go({ op: grid.ids[cell] });
  }, [address.step, address.rank, address.op, operator, grid]);
}

export function useStepKeys(
  page: Page,
  grid: StepGrid,
  from: number | null,
  size: PaneSize | null,
): void {
  useKeys((key) => {
    if (grid.by === "rank" && (key === "{" || key === "}")) {
      const next = from === null ? null : neighbourOf(grid, from, 0, key === "}" ? 1 : -1);
      if (next !== null) selectCell(grid, next);
      return true;
    }
    if (key === "{" || key === "}") {
      const known = page.info.places.map((place) => place.rank).filter((r) => r !== null);
      const ranks = [...new Set(known)].sort((a, b) => a - b);
      const now = page.address.rank ?? page.operator.data?.rank ?? ranks[0];
      const next = ranks[ranks.indexOf(now) + (key === "}" ? 1 : -1)];
      if (next !== undefined) void selectRank(page, next, size);
      return true;
    }
    if (key === "n" || key === "p") {
      void selectFault(unscoped(page), key === "n" ? 1 : -1);
      return true;
    }
    const move = MOVES[key];
    if (!move) return false;
    const next = from === null ? null : neighbourOf(grid, from, ...move);
    if (next !== null) selectCell(grid, next);
    return true;
  });
}

/** Rows and columns to move by. */
const MOVES: Record<string, [number, number]> = {
  ArrowUp: [-1, 0],
  k: [-1, 0],
  ArrowDown: [1, 0],
  j: [1, 0],
  ArrowLeft: [0, -1],
  ",": [0, -1],
  ArrowRight: [0, 1],
  ".": [0, 1],
};
