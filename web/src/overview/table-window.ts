/** The table's visible rows, shared with the trace without an intermediate render. */

export interface TableWindow {
  first: number;
  last: number;
  total: number;
  /** Only then do positions in the table correspond to positions in the trace. */
  is_in_order: boolean;
}

type Watcher = (window: TableWindow) => void;

const watchers = new Set<Watcher>();
let current: TableWindow = { first: 0, last: 0, total: 0, is_in_order: true };
let scroller: ((share: number) => void) | null = null;

export function tableWindow(): TableWindow {
  return current;
}

export function setTableWindow(next: TableWindow): void {
  current = next;
  for (const watcher of watchers) watcher(next);
}

export function watchTableWindow(watcher: Watcher): () => void {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}

/** The table reports its scroll position here; the trace requests one. */
export function setTableScroller(scroll: ((share: number) => void) | null): void {
  scroller = scroll;
}

/** Scrolls the row at `share` (0 to 1) of all rows to the middle of the table. */
export function scrollTable(share: number): void {
  scroller?.(share);
}
