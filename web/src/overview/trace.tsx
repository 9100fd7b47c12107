/** The trace: all operators from left to right, with their error on a log scale. */

import { useEffect, useRef, useState } from "preact/hooks";
import { go } from "../address";
import type { Operators, Trace } from "../api";
import { useCanvas } from "../canvas";
import { ask, useAnswer } from "../connection";
import { plainName } from "../name";
import { formatCount, formatLimit, formatNumber } from "../numbers";
import type { Page } from "../page";
import { t } from "../texts";
import { scrollTable, tableWindow, watchTableWindow } from "./table-window";
import { drawTrace, isOnAxis, LEFT, RIGHT, traceAxis, traceLimit } from "./trace-draw";

const COLUMNS_MAX = 1312;

export function TraceChart({ page, filter }: { page: Page; filter: string }) {
  const answer = useAnswer<Trace>(`trace?columns=${COLUMNS_MAX}&q=${encodeURIComponent(filter)}`);
  const trace = answer.data;
  const box = useRef<HTMLElement>(null);
  const canvas = useCanvas(
    (context, width, height, colours) => {
      if (trace) drawTrace(context, width, height, colours, trace, page);
    },
    [trace, page.selected],
  );
  const pointer = useTracePointer(trace, box);
  return (
    <section class="trace" ref={box} aria-label={t.trace}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={trace ? traceWords(page, trace) : t.loading}
        onPointerDown={pointer.down}
        onPointerMove={pointer.move}
        onPointerLeave={pointer.leave}
        onWheel={pointer.wheel}
      />
      <Legend page={page} trace={trace} />
      <WindowTint />
      {trace && pointer.column !== null && (
        <HoverWords
          trace={trace}
          column={pointer.column}
          box={box.current!}
          is_pair={page.info.golden !== null}
        />
      )}
      {answer.error && <p class="trouble">{answer.error}</p>}
    </section>
  );
}

function Legend({ page, trace }: { page: Page; trace: Trace | null }) {
  const { info } = page;
  if (!trace) return null;
  const has_nan = trace.nan.includes("1");
  const limit = traceLimit(page, trace);
  const flag = trace.faults.find(([, id]) => id === info.verdict.op);
  // The legend makes room for the culprit's flag.
  const is_right = flag !== undefined && flag[0] < trace.columns * 0.45;
  return (
    <p class={`legend ${is_right ? "at-right" : ""}`} aria-hidden="true">
      <span>{info.golden ? t.trace_error(info.metric.name) : t.trace_size}</span>
      {info.golden && /[fw]/.test(trace.status) && (
        <span>
          <i class="key k-pale" />
          {t.trace_inherited}
        </span>
      )}
      {info.golden && trace.faults.length > 0 && (
        <span>
          <i class="key k-solid" />
          {t.trace_added}
        </span>
      )}
      {!info.golden && limit !== null && isOnAxis(limit, traceAxis(page, trace)) && (
        <span>
          <i class="key k-dashed" />
          {t.trace_end(info.verdict.dtype ?? "dtype", formatLimit(limit))}
        </span>
      )}
      {has_nan && (
        <span>
          <i class="key k-lattice" />
          {t.trace_nan}
        </span>
      )}
    </p>
  );
}

/** The part of the trace visible in the table. */
function WindowTint() {
  const tint = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = () => {
      const { first, last, total, is_in_order } = tableWindow();
      const element = tint.current;
      // The table may report once more during unmounting.
      if (!element) return;
      const is_shown = is_in_order && total > 0 && last - first < total;
      element.style.display = is_shown ? "" : "none";
      if (!is_shown) return;
      const whole = `(100% - ${LEFT + RIGHT}px)`;
      element.style.left = `calc(${LEFT}px + ${whole} * ${first / total})`;
      element.style.width = `calc(${whole} * ${Math.min(1, (last - first) / total)})`;
    };
    place();
    return watchTableWindow(place);
  }, []);
  return <div class="window" ref={tint} aria-hidden="true" />;
}

interface HoverWordsProps {
  trace: Trace;
  column: number;
  box: HTMLElement;
  is_pair: boolean;
}

function HoverWords({ trace, column, box, is_pair }: HoverWordsProps) {
  const id = trace.first[column];
  const [words, setWords] = useState<{ id: number; text: string } | null>(null);
  useEffect(() => {
    let wanted = true;
    ask<Operators & { op_type: string; op_name: string; inputs: number }>(`operator/${id}`).then(
      (operator) => {
        if (!wanted) return;
        const parts = [`#${formatCount(id)} ${plainName(operator)}`];
        if (is_pair) parts.push(`${t.in_label} ${formatNumber(operator.inputs)}`);
        parts.push(`${t.out_label} ${formatNumber(trace.value[column])}`);
        if (trace.added) parts.push(`${t.added_label} ${formatNumber(trace.added[column])}`);
        setWords({ id, text: parts.join(" · ") });
      },
      () => undefined,
    );
    return () => {
      wanted = false;
    };
  }, [id]);
  if (words?.id !== id) return null;
  const width = box.clientWidth;
  const x = LEFT + ((width - LEFT - RIGHT) * (column + 0.5)) / trace.columns;
  const style = x > width / 2 ? { right: `${width - x}px` } : { left: `${x}px` };
  return (
    <p class="hover" style={style} aria-hidden="true">
      <bdi>{words.text}</bdi>
    </p>
  );
}

function useTracePointer(trace: Trace | null, box: { current: HTMLElement | null }) {
  const [column, setColumn] = useState<number | null>(null);
  const start = useRef<number | null>(null);
  const shareAt = (event: PointerEvent) => {
    const { left, width } = box.current!.getBoundingClientRect();
    return Math.min(0.999999, Math.max(0, (event.clientX - left - LEFT) / (width - LEFT - RIGHT)));
  };
  return {
    column,
    down: (event: PointerEvent) => {
      if (!trace || trace.columns === 0) return;
      const canvas = event.currentTarget as HTMLElement;
      canvas.setPointerCapture(event.pointerId);
      start.current = event.clientX;
      let drags = false;
      const move = (e: PointerEvent) => {
        drags ||= Math.abs(e.clientX - (start.current ?? 0)) > 4;
        if (drags) scrollTable(shareAt(e));
      };
      const up = (e: PointerEvent) => {
        canvas.removeEventListener("pointermove", move);
        if (!drags) go({ op: trace.first[nearestColumn(trace, shareAt(e))] });
      };
      canvas.addEventListener("pointermove", move);
      canvas.addEventListener("pointerup", up, { once: true });
    },
    move: (event: PointerEvent) => {
      if (trace && trace.columns > 0) setColumn(Math.floor(shareAt(event) * trace.columns));
    },
    leave: () => setColumn(null),
    wheel: (event: WheelEvent) => {
      const { first, last, total } = tableWindow();
      const is_page_wheel = (event.currentTarget as HTMLElement).closest(".report") !== null;
      if (total === 0 || is_page_wheel) return;
      const middle = (first + last) / 2 + Math.sign(event.deltaY) * Math.max(3, (last - first) / 4);
      scrollTable(middle / total);
    },
  };
}

/** The column under the pointer, or a faulty one within two columns of it. */
function nearestColumn(trace: Trace, share: number): number {
  const column = Math.floor(share * trace.columns);
  if (trace.columns < 400) return column;
  const fault = trace.faults.find(([at]) => Math.abs(at - column) <= 2);
  return fault ? fault[0] : column;
}

function traceWords(page: Page, trace: Trace): string {
  const { verdict, counts } = page.info;
  const fault = trace.faults.length > 0 && verdict.op !== null ? plainName(verdict) : null;
  return `${t.trace_words(trace.n, counts.fail, fault)} ${t.trace_hint}`;
}
