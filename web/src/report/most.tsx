/** The operators with the largest added error after the verdict's. */

import type { Operators, Row } from "../api";
import { useAnswer } from "../connection";
import { toFloat } from "../numbers";
import type { Page } from "../page";
import { t } from "../texts";
import { PlainTable } from "./plain-table";

const SHOWN_MAX = 5;
const LOOKED_AT = 1000;

export function Most({ page }: { page: Page }) {
  const { verdict, golden } = page.info;
  const asked = golden ? `operators?q=&sort=-added&offset=0&limit=${LOOKED_AT}` : null;
  const answer = useAnswer<Operators>(asked);
  const start = verdict.op;
  const rows = (answer.data?.rows ?? []).filter((row) => adds(row, start)).slice(0, SHOWN_MAX);
  if (rows.length === 0) return null;
  return (
    <section class="card card-most" aria-label={t.adds_most}>
      <header class="card-head">
        <h2>{start === null ? t.adds_most : t.adds_most_after}</h2>
        <span class="grow" />
        <span class="dim only-screen">{t.all_further_down(page.info.n_operators)}</span>
      </header>
      <PlainTable page={page} rows={rows} columns={["error", "added", "inputs", "cause"]} />
    </section>
  );
}

function adds(row: Row, start: number | null): boolean {
  const added = toFloat(row.added);
  return added !== null && !(added <= 0) && (start === null || row.id > start);
}
