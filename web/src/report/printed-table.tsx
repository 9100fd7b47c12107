/** The table in print, with all rows, because paper does not scroll. */

import type { Contents } from "../embedded/contents";
import { operatorsAnswer } from "../embedded/operators";
import { shownColumns } from "../overview/columns";
import type { Page } from "../page";
import { t } from "../texts";
import { PlainTable } from "./plain-table";

const PRINTED_MAX = 1000;

interface PrintedTableProps {
  page: Page;
  contents: Contents;
  filter: string;
}

export function PrintedTable({ page, contents, filter }: PrintedTableProps) {
  const { info, address } = page;
  // Browsers do not wait while printing, so the rows are looked up synchronously.
  const query = new URLSearchParams({ q: filter, sort: address.sort, limit: String(PRINTED_MAX) });
  const answer = operatorsAnswer(contents.rows, info.n_operators, query);
  const columns = shownColumns(address.cols, info.golden !== null, false);
  return (
    <>
      <PlainTable page={page} rows={answer.rows} columns={columns} />
      {answer.matching > answer.rows.length && (
        <p class="empty">{t.of(answer.rows.length, answer.matching)}</p>
      )}
    </>
  );
}
