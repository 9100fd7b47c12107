/** The steps of one operator. */

import type { Operator, Steps } from "../api";
import { useAnswer } from "../connection";
import { stepGrid, type StepGrid } from "./grid";

const HISTORY_COLUMNS = 2000;

/** The operator's own row, with every step; null until loaded, or without an operator. */
export function useOwnSteps(
  operator: Operator | null,
  rank: number | null,
): [StepGrid, number] | null {
  const answer = useAnswer<Steps>(operator && ownPath(operator, rank));
  if (!operator || !answer.data || answer.loading) return null;
  const row = answer.data.rows.findIndex(
    (r) => r.op_name === operator.op_name && r.op_type === operator.op_type,
  );
  return row < 0 ? null : [stepGrid(answer.data), row];
}

function ownPath(operator: Operator, rank: number | null): string {
  // A pattern: `?` replaces the quote, which cannot be escaped, and matches any letter.
  const named = `name:"${operator.op_name.replace(/"/g, "?")}"`;
  const of_rank = rank === null ? "" : `&rank=${rank}`;
  return `steps?rows=64&columns=${HISTORY_COLUMNS}&q=${encodeURIComponent(named)}${of_rank}`;
}
