/** The heat map as a table: the cells around the selection, as many as fit. */

import { Name } from "../name";
import { formatCount, formatNumber } from "../numbers";
import { t } from "../texts";
import { scalarText, type ScalarCurve } from "./scalar";
import { columnWords, type RowName } from "./layout";
import { isBad, type StepGrid } from "./grid";

const ROWS_MAX = 50;
const COLUMNS_MAX = 12;

interface StepsTableProps {
  grid: StepGrid;
  names: RowName[];
  selected: number | null;
  first_bad: number | null;
  limit: number | null;
  /** A scalar output, above the operators. */
  scalar: ScalarCurve | null;
  label: string;
  onSelect: (cell: number) => void;
}

export function StepsTable(props: StepsTableProps) {
  const { grid, names, selected, first_bad, limit, scalar, label, onSelect } = props;
  const centre = selected ?? first_bad ?? 0;
  const rows = windowAround(Math.floor(centre / grid.n_columns), grid.n_rows, ROWS_MAX);
  const columns = windowAround(centre % grid.n_columns, grid.n_columns, COLUMNS_MAX);
  const fromTo = grid.by === "step" ? t.steps_from_to : t.ranks_from_to;
  const range = fromTo(
    grid.columns[columns[0]][0],
    grid.columns[columns[columns.length - 1]][1],
  );
  const shown_rows = t.rows_of(rows[0] + 1, rows[rows.length - 1] + 1, grid.n_rows);
  return (
    <div class="as-table steps-table" tabIndex={0} role="group" aria-label={label}>
      <table class="numbers">
        <caption>{t.table_part(shown_rows, range)}</caption>
        <thead>
          <tr>
            <th scope="col">{t.column.operator}</th>
            {columns.map((column) => (
              <th scope="col" key={column}>
                {columnWords(grid, column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {scalar && (
            <tr class="scalar-row">
              <th scope="row">{scalar.name}</th>
              {columns.map((column) => (
                <td key={column} class={scalar.points[column].bad === null ? "" : "bad"}>
                  {scalarText(scalar.points[column])}
                </td>
              ))}
            </tr>
          )}
          {rows.map((row) => (
            <tr key={row}>
              <th scope="row">
                <Name
                  name={grid.rows[row].op_name}
                  type={grid.rows[row].op_type}
                  short={names[row]}
                  width={220}
                />
                {names[row].n_others > 0 && (
                  <span class="dim"> +{formatCount(names[row].n_others)}</span>
                )}
              </th>
              {columns.map((column) => {
                const cell = row * grid.n_columns + column;
                const bad = isBad(grid, cell, limit) ? "bad" : "";
                return (
                  <td
                    key={column}
                    class={`${bad} ${cell === selected ? "is-selected" : ""}`}
                    aria-current={cell === selected}
                    onClick={() => grid.has_run[cell] && onSelect(cell)}
                  >
                    {cellText(grid, cell)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function cellText(grid: StepGrid, cell: number): string {
  const kind = grid.kinds[cell];
  if (kind === "finite") return formatNumber(grid.values[cell]);
  if (kind === "none") return "–";
  const value = grid.values[cell];
  const has_number = value !== null && Number.isFinite(value);
  return has_number ? `${t.cell[kind]}, ${formatNumber(value)}` : t.cell[kind];
}

/** At most `most` positions around `centre`. */
function windowAround(centre: number, n: number, most: number): number[] {
  const shown = Math.min(n, most);
  const first = Math.max(0, Math.min(n - shown, centre - Math.floor(shown / 2)));
  return Array.from({ length: shown }, (_, i) => first + i);
}
