/** The graph in the state of its groups that the address asks for. */

import { go, type SideChoice } from "../address";
import type { Graph, GraphBox } from "../api";
import { embedded, is_report, useAnswer, type Answer } from "../connection";
import { openable } from "../embedded/answers";
import type { Page } from "../page";

const PAUSE_MS = 60;

/** Without `open=` the server opens what stands around the selected operator. */
export function useGraph(page: Page, side: SideChoice = "target"): Answer<Graph> {
  const { open } = page.address;
  const parts = side === "target" ? [] : [`side=${side}`];
  if (open !== null) {
    parts.push(
      `open=${encodeURIComponent(open.map((path) => path.replace(/,/g, "%2C")).join(","))}`,
    );
  }
  if (page.selected !== null) parts.push(`op=${page.selected}`);
  return useAnswer<Graph>(`graph?${parts.join("&")}`, PAUSE_MS);
}

/** The side that is shown: of one dump its own. A report has layouts of the target alone. */
export function sideShown(page: Page): SideChoice {
  return page.info.golden === null || is_report ? "target" : page.address.side;
}

/** The paths that are open after `box` was opened or closed, on both sides. */
export function toggledGroups(graph: Graph, box: GraphBox): string[] {
  const open = new Set(graph.boxes.filter((b) => b.is_open).map((b) => b.path));
  if (!box.is_open) return [...open, box.path];
  // What is inside a closed group closes with it.
  return [...open].filter((path) => path !== box.path && !path.startsWith(`${box.path}/`));
}

/** The boxes of the other side that belong to `box`. */
export function partnersOf(graph: Graph, box: GraphBox | null): GraphBox[] {
  if (!box || !graph.step) return [];
  const others = graph.boxes.filter((b) => b.side !== box.side);
  if (box.kind === "group") return others.filter((b) => b.kind === "group" && b.path === box.path);
  const id = box.id ?? box.inside ?? null;
  return id === null ? [] : others.filter((b) => b.id === id || b.inside === id);
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

/** Opens or closes a group, where that can be done. */
export function toggle(page: Page, graph: Graph, group: GraphBox): void {
  const open = nextOpen(page, graph, group);
  if (open !== null) go({ open, op: page.selected });
}
