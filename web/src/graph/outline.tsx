/** The graph as a tree of names: the equal of the canvas for those who do not see it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { go } from "../address";
import type { Graph, GraphBox } from "../api";
import { Glyph } from "../glyph";
import { useKeys } from "../keys";
import { visible } from "../names";
import { formatCount } from "../numbers";
import type { Page } from "../page";
import { t } from "../texts";
import { boxOf, toggle } from "./canvas";
import { depthsOf } from "./draw";
import { nextOpen } from "./open";
import { selectionOf } from "./pane";

const ROW_HEIGHT = 26;

export function Outline({ page, graph }: { page: Page; graph: Graph }) {
  const [word, setWord] = useState("");
  const [box, setBox] = useState({ top: 0, height: 600 });
  const list = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const search = word.trim().toLowerCase();
  const shown =
    search === ""
      ? graph.boxes
      : graph.boxes.filter(
          (b) => b.label.toLowerCase().includes(search) || b.op_type.toLowerCase().includes(search),
        );
  const depths = depthsOf(graph);
  const selected = boxOf(graph, selectionOf(page));
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
              top={(first + i) * ROW_HEIGHT}
              depth={search === "" ? (depths.get(b.key) ?? 0) : 0}
              is_selected={b === selected}
            />
          ))}
        </div>
      </div>
    </section>
  );
}

interface BranchProps {
  page: Page;
  graph: Graph;
  box: GraphBox;
  top: number;
  depth: number;
  is_selected: boolean;
}

function Branch({ page, graph, box, top, depth, is_selected }: BranchProps) {
  const is_group = box.kind === "group";
  const act = () => {
    if (is_group) toggle(page, graph, box);
    else if (box.id !== null) go({ op: box.id });
  };
  const is_disabled = is_group && nextOpen(page, graph, box) === null;
  const sign = box.at_fault && !is_group ? "fault" : box.status;
  return (
    <div
      class={`branch ${is_selected ? "is-selected" : ""}`}
      role="treeitem"
      aria-level={depth + 1}
      aria-expanded={is_group ? box.is_open : undefined}
      aria-selected={is_selected}
      aria-disabled={is_disabled || undefined}
      title={is_disabled ? t.report_no_group : undefined}
      tabIndex={is_selected ? 0 : -1}
      onClick={act}
      onKeyDown={(e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), act())}
      style={{ transform: `translateY(${top}px)`, paddingLeft: `${8 + depth * 15}px` }}
    >
      <span class="twist" aria-hidden="true">
        {is_group ? (box.is_open ? "▾" : "▸") : ""}
      </span>
      <Glyph sign={sign} />
      <bdi class={is_selected ? "strong" : ""}>{visible(box.label)}</bdi>
      <span class="grow" />
      {is_group && <span class="dim">{formatCount(box.n)}</span>}
    </div>
  );
}
