/** The largest magnitude of the selected operator's outputs over the steps of the dump. */

import { go } from "../address";
import { dtypeEnd } from "../dtypes";
import { formatLimit } from "../numbers";
import type { Page } from "../page";
import { isBad } from "../steps/grid";
import { HistoryChart } from "../steps/history";
import { useOwnSteps } from "../steps/own";
import { t } from "../texts";

export function OperatorHistory({ page }: { page: Page }) {
  const has_steps = page.info.views.includes("steps");
  const operator = page.operator.data;
  const own = useOwnSteps(has_steps ? operator : null, operator?.rank ?? null);
  if (!operator || !own) return null;
  const [grid, row] = own;
  if (grid.n_columns < 2) return null;
  const cells = Array.from({ length: grid.n_columns }, (_, i) => row * grid.n_columns + i);
  const points = cells.map((cell, i) => ({
    steps: grid.columns[i],
    value: grid.values[cell],
    kind: grid.kinds[cell],
  }));
  const { step } = operator;
  const selected = grid.columns.findIndex(
    ([first, last]) => step !== null && first <= step && step <= last,
  );
  const first_bad = cells.findIndex((cell) => isBad(grid, cell, null));
  const end = dtypeEnd(operator.dtype);
  const title = t.this_output(grid.columns[0][0], grid.columns[grid.n_columns - 1][1]);
  const select = (i: number) => {
    if (!grid.has_run[cells[i]]) return;
    const [first, last] = grid.columns[i];
    const op = grid.ids[cells[i]];
    // In a table of one step, selects the chosen step.
    go(page.address.step === null ? { op } : { op, step: first === last ? first : null });
  };
  return (
    <section class="part operator-history">
      <h3>
        <span>{title}</span>
        <span>{t.log_scale}</span>
      </h3>
      <HistoryChart
        points={points}
        label={title}
        edge={
          end === null
            ? null
            : { at: end, words: t.trace_end(operator.dtype!, formatLimit(end)) }
        }
        selected={selected < 0 ? null : selected}
        first_bad={first_bad < 0 ? null : first_bad}
        onSelect={select}
      />
    </section>
  );
}
