/**
 * Requests to the server below this page's token, a cache of the answers, and the connection's
 * health. A report has no server and contains its answers.
 */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { embeddedAnswer } from "./embedded/answers";
import { is_report, readContents, type Contents } from "./embedded/contents";

export { is_report } from "./embedded/contents";

/** `/{token}/`: the page's own first path segment; for a report, the prefix of its addresses. */
export const base = is_report ? "#/" : `/${location.pathname.split("/")[1] ?? ""}/`;

export type Health = "fine" | "lost" | "changed";

export class ServerError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const ANSWERS_MAX = 400;
const answers = new Map<string, Promise<unknown>>();
const settled = new Map<string, unknown>();
const watchers = new Set<() => void>();
let health: Health = "fine";

export function currentHealth(): Health {
  return health;
}

/** How many times the server came back; pages keyed by it retry failed requests. */
export let recoveries = 0;

/** How many times the dump on display was replaced by a newer state. */
export let generation = 0;

/**
 * Requests everything again, because the dump has grown; the old content stays until the answers
 * arrive.
 */
export function forgetAnswers(): void {
  answers.clear();
  settled.clear();
  generation += 1;
  for (const watcher of watchers) watcher();
}

/** Checks whether a lost server answers again. */
export function lookAgain(): void {
  request("info").then(
    () => undefined,
    () => undefined,
  );
}

export function useHealth(): Health {
  const [, repaint] = useState(0);
  useLayoutEffect(() => {
    const watcher = () => repaint((n) => n + 1);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
  return health;
}

/** The JSON below `api/`; each address is requested once. */
export function ask<T>(path: string): Promise<T> {
  if (is_report) return remember(path, () => look<T>(path));
  return remember(path, async () => (await request(path)).json() as Promise<T>);
}

export function askBytes(path: string): Promise<ArrayBuffer> {
  if (is_report) return remember(path, () => look<ArrayBuffer>(path));
  return remember(path, async () => (await request(path)).arrayBuffer());
}

let unpacking: Promise<Contents> | null = null;
/** The contents of the report, once unpacked. */
export let embedded: Contents | null = null;

async function look<T>(path: string): Promise<T> {
  unpacking ??= readContents();
  try {
    embedded = await unpacking;
    return embeddedAnswer(embedded, path) as T;
  } catch (error) {
    throw new ServerError(404, (error as Error).message);
  }
}

export interface Answer<T> {
  /** The newest available answer: older data stay until newer arrive. */
  data: T | null;
  error: string | null;
  loading: boolean;
}

/** Requests `path` again whenever it changes, `pause` ms after the last change. */
export function useAnswer<T>(path: string | null, pause = 0): Answer<T> {
  return usePending(path, pause, ask as (path: string) => Promise<T>);
}

export function useBytes(path: string | null, pause = 0): Answer<ArrayBuffer> {
  return usePending(path, pause, askBytes);
}

interface Pending<T> {
  path: string | null;
  generation: number;
  data: T | null;
  error: string | null;
}

function usePending<T>(
  path: string | null,
  pause: number,
  load: (path: string) => Promise<T>,
): Answer<T> {
  const [state, setState] = useState<Pending<T>>({
    path: null,
    generation,
    data: null,
    error: null,
  });
  const asked = generation;
  useEffect(() => {
    if (path === null) return;
    let wanted = true;
    const start = () => {
      load(path).then(
        (data) => wanted && setState({ path, generation: asked, data, error: null }),
        (error: ServerError) =>
          wanted &&
          setState((before) =>
            // Loaded data stay when the server is lost.
            error.status === 0 && before.data !== null
              ? { ...before, path, generation: asked }
              : { path, generation: asked, data: null, error: error.message },
          ),
      );
    };
    const timer = pause > 0 && !settled.has(path) ? setTimeout(start, pause) : start();
    return () => {
      wanted = false;
      if (timer !== undefined) clearTimeout(timer);
    };
  }, [path, asked]);
  if (path === null) return { data: null, error: null, loading: false };
  // While a path is requested again, the older data stay visible.
  if (state.path === path && (state.generation === asked || state.data !== null)) {
    return { data: state.data, error: state.error, loading: false };
  }
  // A cached answer is shown in this very frame, without an intermediate one.
  const known = settled.get(path) as T | undefined;
  if (known !== undefined) return { data: known, error: null, loading: false };
  return { data: state.data, error: null, loading: true };
}

async function request(path: string): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`${base}api/${path}`);
  } catch {
    setHealth("lost");
    throw new ServerError(0, "opscope does not answer");
  }
  if (response.status === 410) setHealth("changed");
  else if (health === "lost") setHealth("fine");
  if (response.ok) return response;
  const body = (await response.json().catch(() => null)) as { error?: string } | null;
  throw new ServerError(response.status, body?.error ?? `the server said ${response.status}`);
}

function remember<T>(path: string, load: () => Promise<T>): Promise<T> {
  const known = answers.get(path);
  if (known) {
    answers.delete(path);
    answers.set(path, known);
    return known as Promise<T>;
  }
  const answer = load();
  answers.set(path, answer);
  // A failed request is dropped from the cache, so that the next use retries it.
  answer.then(
    // An answer about an older state of the dump is dropped.
    (data) => answers.get(path) === answer && settled.set(path, data),
    () => answers.get(path) === answer && answers.delete(path),
  );
  for (const oldest of answers.keys()) {
    if (answers.size <= ANSWERS_MAX) break;
    answers.delete(oldest);
    settled.delete(oldest);
  }
  return answer;
}

function setHealth(next: Health): void {
  if (next === health) return;
  if (health === "lost") recoveries += 1;
  health = next;
  for (const watcher of watchers) watcher();
}
