/** The optional columns of the operator table; number, sign and name are always present. */

export interface Column {
  id: string;
  width: number;
  /** The server's sort key; without one the heading is not clickable. */
  sort: string | null;
  /** Whether it is for two sides; null means both cases. */
  for_pair: boolean | null;
  is_left?: boolean;
}

export const COLUMNS: Column[] = [
  { id: "error", width: 156, sort: "error", for_pair: true },
  { id: "added", width: 76, sort: "added", for_pair: true },
  { id: "inputs", width: 82, sort: null, for_pair: true },
  { id: "max_abs", width: 78, sort: "max_abs", for_pair: null },
  { id: "headroom", width: 76, sort: "headroom", for_pair: null },
  { id: "n_inf", width: 58, sort: "n_inf", for_pair: null },
  { id: "n_nan", width: 58, sort: "n_nan", for_pair: null },
  { id: "dtype", width: 72, sort: null, for_pair: null },
  { id: "shape", width: 108, sort: null, for_pair: null },
  { id: "cause", width: 106, sort: null, for_pair: true, is_left: true },
  { id: "note", width: 112, sort: null, for_pair: false, is_left: true },
];

const DEFAULTS = {
  pair: ["error", "added", "cause"],
  pair_wide: ["error", "added", "max_abs", "dtype", "shape", "cause"],
  one: ["max_abs", "headroom", "n_inf", "n_nan", "note"],
  one_wide: ["max_abs", "headroom", "n_inf", "n_nan", "dtype", "shape", "note"],
};

export function shownColumns(
  chosen: string[] | null,
  is_pair: boolean,
  is_wide: boolean,
): string[] {
  if (chosen) return COLUMNS.map((c) => c.id).filter((id) => chosen.includes(id));
  return is_pair
    ? DEFAULTS[is_wide ? "pair_wide" : "pair"]
    : DEFAULTS[is_wide ? "one_wide" : "one"];
}

export function columnsToShow(ids: string[], is_pair: boolean): Column[] {
  return (
    COLUMNS.filter((c) => ids.includes(c.id) && (c.for_pair === null || c.for_pair === is_pair))
      // Without a comparison the size is the main value and gets a bar.
      .map((c) => (!is_pair && c.id === "max_abs" ? { ...c, width: 164 } : c))
  );
}
