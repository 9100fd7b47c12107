/** The selection and display options, kept in the page's address. */

import { useLayoutEffect, useState } from "preact/hooks";
import { base, is_report } from "./connection";

export const VIEWS = ["overview", "graph", "tensor", "steps", "events", "coverage"] as const;
export type View = (typeof VIEWS)[number];
export type Language = "en" | "zh";
export type Theme = "light" | "dark";
export type SideChoice = "both" | "target" | "golden";

export interface Address {
  view: View;
  op: number | null;
  name: string | null;
  slot: string | null;
  at: number[] | null;
  step: number | null;
  rank: number | null;
  /** The columns of the heat map; null means the page's default. */
  by: "step" | "rank" | null;
  /** The selected event; its operator is `op`. */
  event: number | null;
  /** Null means the page's default. */
  side: SideChoice | null;
  q: string;
  sort: string;
  cols: string[] | null;
  open: string[] | null;
  ax: string[] | null;
  lang: Language | null;
  theme: Theme | null;
}

const listeners = new Set<() => void>();
let current = here();

addEventListener("popstate", () => {
  current = here();
  for (const listener of listeners) listener();
});

/** The address in the browser's address bar. A report, a single file, keeps it after `#`. */
function here(): Address {
  if (!is_report) return parseAddress(location.pathname, location.search);
  return parseFragment(location.hash);
}

/** `#/overview?op=27`, or the same without the slash. */
export function parseFragment(fragment: string): Address {
  const [, path, search] = /^#?\/?([^?]*)\??(.*)$/s.exec(fragment)!;
  return parseAddress(`/report/${path}`, search);
}

/** The full address of a selection, for sharing. */
export function linkTo(address: Address): string {
  const place = is_report ? location.href.split("#")[0] : location.origin;
  return place + formatAddress(address);
}

export function currentAddress(): Address {
  return current;
}

export function useAddress(): Address {
  const [, repaint] = useState(0);
  useLayoutEffect(() => {
    const listener = () => repaint((n) => n + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return current;
}

/**
 * Navigates to `change`. A change of view or filter adds a history entry, others replace it;
 * `adds: false` keeps typing a filter from adding one entry per letter.
 */
export function go(change: Partial<Address>, { adds = true } = {}): void {
  const next = { ...current, ...change };
  if (change.op !== undefined && change.op !== current.op) {
    // Another operator has other slots, axes and elements.
    if (change.slot === undefined) next.slot = null;
    if (change.event === undefined) next.event = null;
    next.name = null;
  }
  if (next.op !== current.op || next.slot !== current.slot) {
    if (change.ax === undefined) next.ax = null;
    if (change.at === undefined) next.at = null;
  }
  const url = formatAddress(next);
  if (url === formatAddress(current)) return;
  const is_step = adds && (next.view !== current.view || next.q !== current.q);
  if (is_step) replaceNow();
  current = next;
  if (is_step) history.pushState(null, "", url);
  else replace_timer ??= setTimeout(replaceNow, 120);
  for (const listener of listeners) listener();
}

// Browsers refuse more than about a hundred history calls in ten seconds; a held `j` makes more.
let replace_timer: ReturnType<typeof setTimeout> | null = null;
function replaceNow(): void {
  if (replace_timer === null) return;
  clearTimeout(replace_timer);
  replace_timer = null;
  history.replaceState(null, "", formatAddress(current));
}

export function parseAddress(path: string, search: string): Address {
  const name = path.split("/")[2] ?? "";
  const query = new URLSearchParams(search);
  const side = query.get("side");
  const by = query.get("by");
  const lang = query.get("lang");
  const theme = query.get("theme");
  return {
    view: (VIEWS as readonly string[]).includes(name) ? (name as View) : "overview",
    op: parseCount(query.get("op")),
    name: query.get("name"),
    slot: /^(in|out)\d+$/.test(query.get("slot") ?? "") ? query.get("slot") : null,
    at: parseIndex(query.get("at")),
    step: parseCount(query.get("step")),
    rank: parseCount(query.get("rank")),
    by: by === "step" || by === "rank" ? by : null,
    event: parseCount(query.get("event")),
    side: side === "target" || side === "golden" || side === "both" ? side : null,
    q: query.get("q") ?? "",
    sort: query.get("sort") ?? "order",
    cols: parseList(query.get("cols")),
    open: parseList(query.get("open")),
    ax: parseAxes(query.get("ax")),
    lang: lang === "zh" || lang === "en" ? lang : null,
    theme: theme === "dark" || theme === "light" ? theme : null,
  };
}

export function formatAddress(address: Address): string {
  const pairs: [string, string][] = [];
  const add = (key: string, value: string | number | null, fallback: string | null = null) => {
    if (value !== null && value !== fallback) pairs.push([key, String(value)]);
  };
  add("op", address.op);
  if (address.op === null) add("name", address.name);
  add("slot", address.slot);
  add("at", address.at ? address.at.join(",") : null);
  add("step", address.step);
  add("rank", address.rank);
  add("by", address.by);
  add("event", address.event);
  add("side", address.side);
  add("q", address.q, "");
  add("sort", address.sort, "order");
  add("cols", address.cols ? address.cols.join(",") : null);
  add("open", address.open ? address.open.map(escapeComma).join(",") : null);
  add("ax", address.ax ? address.ax.join(",") : null);
  add("lang", address.lang);
  add("theme", address.theme);
  const query = pairs.map(([key, value]) => `${key}=${encodeReadably(value)}`).join("&");
  return `${base}${address.view}${query ? `?${query}` : ""}`;
}

/** The filter combined with the chosen step and rank, in the server's syntax. */
export function scopedFilter(address: Address, filter = address.q): string {
  // Leading blanks stay, or the position of a mistake would shift.
  const parts = [filter.trim() === "" ? "" : filter];
  if (address.step !== null) parts.push(`step:${address.step}`);
  if (address.rank !== null) parts.push(`rank:${address.rank}`);
  return parts.filter(Boolean).join(" ");
}

function parseCount(text: string | null): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

function parseIndex(text: string | null): number[] | null {
  return text !== null && /^\d{1,15}(,\d{1,15})*$/.test(text) ? text.split(",").map(Number) : null;
}

function parseAxes(text: string | null): string[] | null {
  return text !== null && /^(r|c|\d+)(,(r|c|\d+))*$/.test(text) ? text.split(",") : null;
}

function parseList(text: string | null): string[] | null {
  if (text === null) return null;
  return text
    .split(",")
    .filter(Boolean)
    .map((part) => part.replace(/%2C/gi, ","));
}

function escapeComma(part: string): string {
  return part.replace(/,/g, "%2C");
}

/** Keeps readable characters (`type:Conv`) unescaped in an address. */
function encodeReadably(value: string): string {
  return encodeURIComponent(value)
    .replace(/%20/g, "+")
    .replace(/%3A/g, ":")
    .replace(/%2C/g, ",")
    .replace(/%2F/g, "/")
    .replace(/%3E/g, ">")
    .replace(/%3C/g, "<")
    .replace(/%3D/g, "=");
}
