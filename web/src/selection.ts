/** Keyboard navigation to the next operator, slot, fault, step or producer. */

import { currentAddress, go, linkTo, scopedFilter, type View } from "./address";
import type { Operators } from "./api";
import { copyText } from "./clipboard";
import { ask } from "./connection";
import type { Page } from "./page";
import { rowSource } from "./rows";

const VIEW_KEYS: Record<string, View> = {
  o: "overview",
  g: "graph",
  t: "tensor",
  s: "steps",
  e: "events",
  c: "coverage",
};
const PREFIX_MS = 1200;
let prefix_at = -Infinity;

/** Returns whether `key` was handled. */
export function selectByKey(page: Page, key: string): boolean {
  if (performance.now() - prefix_at < PREFIX_MS) {
    prefix_at = -Infinity;
    const view = VIEW_KEYS[key];
    if (view && page.info.views.includes(view)) {
      go({ view });
      return true;
    }
  }
  switch (key) {
    case "g":
      prefix_at = performance.now();
      return true;
    case "j":
    case "ArrowDown":
      void selectNeighbour(page, 1);
      return true;
    case "k":
    case "ArrowUp":
      void selectNeighbour(page, -1);
      return true;
    case "n":
      void selectFault(page, 1);
      return true;
    case "p":
      void selectFault(page, -1);
      return true;
    case "[":
      selectSlot(page, -1);
      return true;
    case "]":
      selectSlot(page, 1);
      return true;
    case ",":
      selectPlace(page, "step", -1);
      return true;
    case ".":
      selectPlace(page, "step", 1);
      return true;
    case "{":
      selectPlace(page, "rank", -1);
      return true;
    case "}":
      selectPlace(page, "rank", 1);
      return true;
    case "h":
    case "ArrowLeft":
      return selectEdge(page, "producers");
    case "l":
    case "ArrowRight":
      return selectEdge(page, "consumers");
    case "Enter":
      if (page.selected === null || page.address.view === "tensor") return false;
      go({ view: "tensor", op: page.selected });
      return true;
    case "Escape":
      if (page.address.view === "overview") return false;
      go({ view: "overview" });
      return true;
    case "y":
      void copyLink();
      return true;
    default:
      return false;
  }
}

export function copyLink(): Promise<boolean> {
  // The address bar may lag behind the selection.
  return copyText(linkTo(currentAddress()));
}

/** Faulty operators under the current filter, in execution order. */
export function faultsPath(page: Page): string {
  const filter = `${scopedFilter(page.address)} fault:yes`.trim();
  return `operators?q=${encodeURIComponent(filter)}&sort=order&offset=0&limit=1000`;
}

export async function selectFault(page: Page, direction: 1 | -1): Promise<void> {
  const answer = await ask<Operators>(faultsPath(page)).catch(() => null);
  const ids = (answer?.rows ?? []).map((row) => row.id);
  if (ids.length === 0) return;
  const from = page.selected ?? -1;
  const next =
    direction > 0
      ? (ids.find((id) => id > from) ?? ids[0])
      : (ids.filter((id) => id < from).pop() ?? ids[ids.length - 1]);
  go({ op: next });
}

// Held keys come faster than answers, so the selection is read when an answer arrives.
let moving: Promise<void> = Promise.resolve();

function selectNeighbour(page: Page, direction: 1 | -1): Promise<void> {
  moving = moving.then(async () => {
    const address = currentAddress();
    const source = rowSource(scopedFilter(address), address.sort);
    const from = address.op ?? page.selected;
    const place = from === null ? null : await source.find(from);
    const row = await source.load(place === null ? 0 : place + direction);
    if (row) go({ op: row.id });
  });
  return moving;
}

function selectSlot(page: Page, direction: 1 | -1): void {
  const slots = page.operator.data?.slots ?? [];
  const i = slots.findIndex((slot) => slot.id === page.slot?.id);
  const next = slots[i + direction];
  if (next && page.selected !== null) go({ op: page.selected, slot: next.id });
}

function selectPlace(page: Page, axis: "step" | "rank", direction: 1 | -1): void {
  const known = page.info.places.map((place) => place[axis]).filter((n) => n !== null) as number[];
  const values = [...new Set(known)].sort((a, b) => a - b);
  const current = page.address[axis] ?? page.operator.data?.[axis] ?? values[0];
  const next = values[values.indexOf(current) + direction];
  if (next === undefined) return;
  const other = axis === "step" ? "rank" : "step";
  const place = page.info.places.find(
    (p) => p[axis] === next && (page.address[other] === null || p[other] === page.address[other]),
  );
  go({ [axis]: next, op: place?.first ?? page.address.op });
}

function selectEdge(page: Page, list: "producers" | "consumers"): boolean {
  const next = page.operator.data?.[list][0];
  if (next) go({ op: next.id });
  return true;
}
