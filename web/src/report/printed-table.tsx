/** The table as it is printed: paper does not scroll, so that all rows are there. */

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
  // A browser waits for nothing once it prints, so the rows are looked up without a promise.
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
