/**
 * Server-sent events: how much of the dump has been read, and that it has grown. While a model
 * runs, the page shows operators as they are written.
 */

import { useLayoutEffect, useState } from "preact/hooks";
import { base, forgetAnswers, lookAgain } from "./connection";

export interface News {
  /** How many times the dump was replaced by a newer state. */
  generation: number;
  state: "whole" | "reading" | "running" | "failed" | "removed";
  n_done: number;
  n: number;
  message: string | null;
  /** How far the run is while it writes the dump. */
  run?: RunProgress | null;
}

export interface RunProgress {
  title: string;
  n_steps: number;
  step: number | null;
  seconds_left: number | null;
}

let latest: News | null = null;
const watchers = new Set<() => void>();

export function useNews(): News | null {
  const [, repaint] = useState(0);
  useLayoutEffect(() => {
    const watcher = () => repaint((n) => n + 1);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
  return latest;
}

/** Listens as long as the page is open; the browser reconnects by itself. */
export function listen(): void {
  const source = new EventSource(`${base}api/news`);
  source.onmessage = (event: MessageEvent<string>) => {
    const news = JSON.parse(event.data) as News;
    // Answers may predate the first event, unless the dump was never replaced.
    const is_newer = news.generation !== (latest?.generation ?? 0);
    latest = news;
    if (is_newer) forgetAnswers();
    for (const watcher of watchers) watcher();
  };
  // A request determines whether the server is gone, or only this connection.
  source.onerror = () => lookAgain();
}
