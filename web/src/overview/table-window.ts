/** The rows of the table that are in view, shared with the trace without a render in between. */

export interface TableWindow {
  first: number;
  last: number;
  total: number;
  /** Only then do places in the table mean places in the trace. */
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

/** The table says here how it is scrolled; the trace asks it to. */
export function setTableScroller(scroll: ((share: number) => void) | null): void {
  scroller = scroll;
}

/** Brings the row at `share` (0 to 1) of all rows to the middle of the table. */
export function scrollTable(share: number): void {
  scroller?.(share);
}
