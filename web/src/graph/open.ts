/** The graph in the state of its groups that the address asks for. */

import type { Graph, GraphBox } from "../api";
import { embedded, useAnswer, type Answer } from "../connection";
import { openable } from "../embedded/answers";
import type { Page } from "../page";

const PAUSE_MS = 60;

/** Without `open=` the server opens what stands around the selected operator. */
export function useGraph(page: Page): Answer<Graph> {
  const { open } = page.address;
  const parts = [];
  if (open !== null) {
    parts.push(
      `open=${encodeURIComponent(open.map((path) => path.replace(/,/g, "%2C")).join(","))}`,
    );
  }
  if (page.selected !== null) parts.push(`op=${page.selected}`);
  return useAnswer<Graph>(`graph?${parts.join("&")}`, PAUSE_MS);
}

/** The paths that are open after `box` was opened or closed. */
export function toggledGroups(graph: Graph, box: GraphBox): string[] {
  const open = graph.boxes.filter((b) => b.is_open).map((b) => b.path);
  if (!box.is_open) return [...open, box.path];
  // What is inside a closed group closes with it.
  const inside = new Set<string>([box.key]);
  for (const b of graph.boxes) if (b.parent !== null && inside.has(b.parent)) inside.add(b.key);
  return graph.boxes.filter((b) => b.is_open && !inside.has(b.key)).map((b) => b.path);
}

/**
 * The paths that are open after `box` was opened or closed; null if a report has no layout of it. A
 * server lays out anything.
 */
export function nextOpen(page: Page, graph: Graph, box: GraphBox): string[] | null {
  const wanted = toggledGroups(graph, box);
  if (embedded === null || page.selected === null) return wanted;
  return openable(embedded, page.selected, wanted, box.path);
}
