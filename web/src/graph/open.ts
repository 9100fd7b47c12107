/** The graph with the open groups of the address. */

import { go, type SideChoice } from "../address";
import type { Graph, GraphBox } from "../api";
import { embedded, is_report, useAnswer, type Answer } from "../connection";
import { openable } from "../embedded/answers";
import type { Page } from "../page";

const PAUSE_MS = 60;

/** Without `open=` the server opens the groups around the selected operator. */
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

/**
 * The side on display; a single dump has one. A report has layouts of the target only, and a narrow
 * page has room for one side at first.
 */
export function sideShown(page: Page, is_narrow: boolean): SideChoice {
  if (page.info.golden === null || is_report) return "target";
  return page.address.side ?? defaultSide(is_narrow);
}

export function defaultSide(is_narrow: boolean): SideChoice {
  return is_narrow ? "target" : "both";
}

/** The open paths after `box` is toggled, on both sides. */
export function toggledGroups(graph: Graph, box: GraphBox): string[] {
  const open = new Set(graph.boxes.filter((b) => b.is_open).map((b) => b.path));
  if (!box.is_open) return [...open, box.path];
  // Closing a group closes its descendants.
  return [...open].filter((path) => path !== box.path && !path.startsWith(`${box.path}/`));
}

/** The boxes of the other side that match `box`. */
export function partnersOf(graph: Graph, box: GraphBox | null): GraphBox[] {
  if (!box || !graph.step) return [];
  const others = graph.boxes.filter((b) => b.side !== box.side);
  if (box.kind === "group") return others.filter((b) => b.kind === "group" && b.path === box.path);
  const id = box.id ?? box.inside ?? null;
  return id === null ? [] : others.filter((b) => b.id === id || b.inside === id);
}

/**
 * The open paths after `box` is toggled; null if a report has no such layout. A server computes any
 * layout.
 */
export function nextOpen(page: Page, graph: Graph, box: GraphBox): string[] | null {
  const wanted = toggledGroups(graph, box);
  if (embedded === null || page.selected === null) return wanted;
  return openable(embedded, page.selected, wanted, box.path);
}

/** Opens or closes a group, if possible. */
export function toggle(page: Page, graph: Graph, group: GraphBox): void {
  const open = nextOpen(page, graph, group);
  if (open !== null) go({ open, op: page.selected });
}
