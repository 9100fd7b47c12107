/** The operators for one filter and order, fetched page by page on demand. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { scopedFilter, type Address } from "./address";
import type { FilterError, Operators, Row } from "./api";
import { ask, generation, recoveries } from "./connection";
import { distinctNames, type ShortName } from "./names";

export const PAGE_ROWS = 200;

interface LoadedPage {
  rows: Row[];
  names: ShortName[];
  version: number;
}

export class RowSource {
  matching: number | null = null;
  total = 0;
  error: FilterError | null = null;
  failure: string | null = null;
  private readonly pages = new Map<number, LoadedPage>();
  private readonly failed = new Set<number>();
  /** The wanted state of the dump; older pages are shown until newer ones arrive. */
  private version = 0;
  private readonly watchers = new Set<() => void>();

  constructor(
    readonly filter: string,
    readonly sort: string,
  ) {
    void this.loadPage(0);
  }

  /** The row at `place` if present; otherwise requests its page. */
  row(place: number): Row | undefined {
    const page = Math.floor(place / PAGE_ROWS);
    const known = this.pages.get(page);
    // Rendering does not retry a failed page; the check of the server does.
    const is_wanted = known?.version !== this.version;
    if (is_wanted && !this.failed.has(page)) void this.loadPage(page);
    return known?.rows[place % PAGE_ROWS];
  }

  name(place: number): ShortName | undefined {
    return this.pages.get(Math.floor(place / PAGE_ROWS))?.names[place % PAGE_ROWS];
  }

  async load(place: number): Promise<Row | undefined> {
    if (place < 0 || (this.matching !== null && place >= this.matching)) return undefined;
    await this.loadPage(Math.floor(place / PAGE_ROWS));
    return this.row(place);
  }

  /** The position of an operator in this filter and order. */
  async find(id: number): Promise<number | null> {
    for (const [page, { rows }] of this.pages) {
      const i = rows.findIndex((row) => row.id === id);
      if (i >= 0) return page * PAGE_ROWS + i;
    }
    const answer = await ask<Operators>(`${this.path(0, 1)}&find=${id}`).catch(() => null);
    return answer?.find ?? null;
  }

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => void this.watchers.delete(watcher);
  }

  /** Reloads the visible rows. */
  renew(): void {
    this.version += 1;
    this.failed.clear();
    void this.loadPage(0);
  }

  private path(offset: number, limit: number): string {
    const filter = encodeURIComponent(this.filter);
    return `operators?q=${filter}&sort=${this.sort}&offset=${offset}&limit=${limit}`;
  }

  private async loadPage(page: number): Promise<void> {
    const { version } = this;
    const is_here = () => (this.pages.get(page)?.version ?? -1) >= version;
    if (is_here()) return;
    try {
      const answer = await ask<Operators>(this.path(page * PAGE_ROWS, PAGE_ROWS));
      // A newer answer may have come first. A pending one is not awaited: while a dump grows
      // quickly there always is one.
      if (is_here()) return;
      this.matching = answer.matching;
      this.total = answer.total;
      this.error = answer.error;
      this.failure = null;
      const names = distinctNames(answer.rows);
      this.pages.set(page, { rows: answer.rows, names, version });
    } catch (error) {
      if (version !== this.version) return;
      this.failure = (error as Error).message;
      this.failed.add(page);
    }
    for (const watcher of this.watchers) watcher();
  }
}

const sources: RowSource[] = [];
let seen_recoveries = 0;
let seen_generation = 0;

/** The source for a filter and order; the last few are cached, so that going back is instant. */
export function rowSource(filter: string, sort: string): RowSource {
  if (seen_recoveries !== recoveries) {
    seen_recoveries = recoveries;
    const sound = sources.filter((s) => s.failure === null);
    sources.splice(0, sources.length, ...sound);
  }
  if (seen_generation !== generation) {
    seen_generation = generation;
    for (const known of sources) known.renew();
  }
  let source = sources.find((s) => s.filter === filter && s.sort === sort);
  if (!source) {
    source = new RowSource(filter, sort);
    sources.unshift(source);
    sources.length = Math.min(sources.length, 6);
  }
  return source;
}

export function useRows(filter: string, sort: string): RowSource {
  const [, repaint] = useState(0);
  const source = rowSource(filter, sort);
  useLayoutEffect(() => source.watch(() => repaint((n) => n + 1)), [source]);
  return source;
}

/** The rows in force: those of the last valid filter. */
export function useGoodFilter(address: Address) {
  const asked = useRows(scopedFilter(address), address.sort);
  const last_good = useRef("");
  if (asked.error === null && asked.matching !== null) last_good.current = address.q;
  const filter = asked.error ? last_good.current : address.q;
  const source = useRows(scopedFilter(address, filter), address.sort);
  return { source, filter, wrong: asked.error };
}
