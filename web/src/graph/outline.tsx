/** The graph as a tree of names: the canvas's equivalent for screen readers. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Graph, GraphBox, Side } from "../api";
import { Glyph } from "../glyph";
import { useKeys } from "../keys";
import { dropPrefix, visible } from "../names";
import { formatCount } from "../numbers";
import type { Page } from "../page";
import { t } from "../texts";
import { boxOf, depthsOf, type Selection } from "./draw";
import { nextOpen } from "./open";

const ROW_HEIGHT = 26;

interface OutlineProps {
  page: Page;
  graph: Graph;
  selection: Selection;
  /** The side whose boxes are listed; without one the target's, and those that only golden has. */
  side: Side | null;
  onPick: (box: GraphBox) => void;
  children?: ComponentChildren;
}

export function Outline({ page, graph, selection, side, onPick, children }: OutlineProps) {
  const [word, setWord] = useState("");
  const [box, setBox] = useState({ top: 0, height: 600 });
  const list = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const search = word.trim().toLowerCase();
  const listed = listedBoxes(graph, side);
  const shown =
    search === ""
      ? listed
      : listed.filter(
          (b) => b.label.toLowerCase().includes(search) || b.op_type.toLowerCase().includes(search),
        );
  const depths = depthsOf(graph);
  const selected = boxOf(graph, selection);
  const selected_at = selected ? shown.indexOf(selected) : -1;
  useEffect(() => {
    const element = list.current!;
    const read = () => setBox({ top: element.scrollTop, height: element.clientHeight });
    read();
    element.addEventListener("scroll", read, { passive: true });
    return () => element.removeEventListener("scroll", read);
  }, []);
  useEffect(() => {
    const element = list.current!;
    const top = selected_at * ROW_HEIGHT;
    const is_seen =
      top >= element.scrollTop && top + ROW_HEIGHT <= element.scrollTop + element.clientHeight;
    if (selected_at >= 0 && !is_seen) element.scrollTop = top - element.clientHeight / 2;
  }, [selected_at, graph]);
  useKeys((key) => {
    if (key !== "/") return false;
    input.current?.focus();
    return true;
  });
  const first = Math.max(0, Math.floor(box.top / ROW_HEIGHT) - 4);
  const last = Math.min(shown.length, first + Math.ceil(box.height / ROW_HEIGHT) + 8);
  return (
    <section class="pane outline" aria-label={t.outline}>
      <div class="filter-line">
        <span class="field">
          <input
            ref={input}
            type="text"
            placeholder={t.find_in_graph}
            aria-label={t.find_in_graph}
            value={word}
            spellcheck={false}
            onInput={(e) => setWord(e.currentTarget.value)}
            onKeyDown={(e) => e.key === "Escape" && (setWord(""), input.current?.blur())}
          />
          <kbd aria-hidden="true">/</kbd>
        </span>
      </div>
      <div class="outline-list" role="tree" aria-label={t.outline} ref={list}>
        <div style={{ height: `${shown.length * ROW_HEIGHT}px` }}>
          {shown.slice(first, last).map((b, i) => (
            <Branch
              key={b.key}
              page={page}
              graph={graph}
              box={b}
              is_choice={side !== null}
              onPick={onPick}
              top={(first + i) * ROW_HEIGHT}
              depth={search === "" ? (depths.get(b.key) ?? 0) : 0}
              is_selected={b === selected}
            />
          ))}
        </div>
      </div>
      {children}
    </section>
  );
}

function listedBoxes(graph: Graph, side: Side | null): GraphBox[] {
  if (!graph.step) return graph.boxes;
  if (side !== null) return graph.boxes.filter((b) => b.side === side);
  return graph.boxes.filter((b) => b.side === "target" || (b.only && b.side === "golden"));
}

interface BranchProps {
  page: Page;
  graph: Graph;
  /** Whether boxes are being chosen for a pair, which Enter confirms. */
  is_choice: boolean;
  onPick: (box: GraphBox) => void;
  box: GraphBox;
  top: number;
  depth: number;
  is_selected: boolean;
}

function Branch({ page, graph, is_choice, onPick, box, top, depth, is_selected }: BranchProps) {
  const is_group = box.kind === "group";
  const act = () => onPick(box);
  const is_disabled = is_group && nextOpen(page, graph, box) === null;
  const sign = box.at_fault && !is_group && box.side === "target" ? "fault" : box.status;
  const alone = box.only ? (t.unpaired[box.reason ?? ""] ?? t[`${box.side}_only`]) : null;
  const kind = is_group ? t.n_ops(box.n) : visible(box.op_type);
  const words = [visible(box.label), kind, alone];
  const name = visible(box.op_name ?? box.path) + (alone ? ` (${alone})` : "");
  return (
    <div
      class={`branch ${is_selected ? "is-selected" : ""}`}
      role="treeitem"
      aria-label={words.filter(Boolean).join(", ")}
      title={is_disabled ? t.report_no_group : name}
      aria-level={depth + 1}
      aria-expanded={is_group ? box.is_open : undefined}
      aria-selected={is_selected}
      aria-disabled={is_disabled || undefined}
      tabIndex={is_selected || is_choice ? 0 : -1}
      onClick={act}
      onKeyDown={(e) => {
        if (e.key !== " " && (is_choice || e.key !== "Enter")) return;
        e.preventDefault();
        act();
      }}
      style={{ transform: `translateY(${top}px)`, paddingLeft: `${8 + depth * 15}px` }}
    >
      <span class="twist" aria-hidden="true">
        {is_group ? (box.is_open ? "▾" : "▸") : ""}
      </span>
      <Glyph sign={sign} />
      <bdi class={is_selected ? "strong" : ""}>{visible(dropPrefix(box.label))}</bdi>{" "}
      <span class="grow" />
      {is_group && <span class="dim">{formatCount(box.n)}</span>}
    </div>
  );
}
