/** Draws the marks between both sides, one per row. */

import type { Graph, StepMark } from "../api";
import { font, textWidth } from "../canvas";
import type { Colours, Token } from "../colours";
import { formatNumber } from "../numbers";
import { slotLabel, t } from "../texts";

const PILL_HEIGHT = 18;
/** Half the length of the dotted line through a mark. */
const REACH = 42;

interface MarkLook {
  fill: Token;
  outline: Token;
  text: Token;
}

const LOOKS: Record<StepMark["status"], MarkLook> = {
  fail: { fill: "failbg", outline: "failpale", text: "fail" },
  warn: { fill: "warnbg", outline: "warnpale", text: "warn" },
  pass: { fill: "surface", outline: "line2", text: "pass" },
  skip: { fill: "surface", outline: "line2", text: "text3" },
};
const FAULT: MarkLook = { fill: "fail", outline: "fail", text: "onfail" };

export function drawSpine(
  context: CanvasRenderingContext2D,
  colours: Colours,
  graph: Graph,
  seen: { top: number; bottom: number },
): void {
  if (!graph.step) return;
  const { spine, marks } = graph.step;
  for (const mark of marks) {
    if (mark.y < seen.top - 40 || mark.y > seen.bottom + 40) continue;
    drawMark(context, colours, mark, spine);
  }
}

/** The words of a mark: the pill, and the text below it. */
export function markWords(mark: StepMark): { pill: string | null; below: string | null } {
  const fused = mark.n[0] === mark.n[1] ? null : t.fused(mark.n[0], mark.n[1]);
  // An error that is not an output's names its slot.
  const place = mark.slot === null ? null : slotLabel(mark.slot);
  switch (mark.kind) {
    case "agrees":
      return fused ? { pill: fused, below: null } : { pill: "=", below: null };
    case "differs":
      return { pill: mark.value === null ? "≠" : formatNumber(mark.value), below: both(place, fused) };
    case "not_compared":
      return { pill: "–", below: fused };
    case "no_partner":
      return { pill: null, below: t.no_partner };
    case "target_only":
    case "golden_only":
      return { pill: null, below: t.unpaired[mark.reason ?? ""] ?? t[mark.kind] };
  }
}

function both(place: string | null, fused: string | null): string | null {
  return place !== null && fused !== null ? `${place}, ${fused}` : (place ?? fused);
}

function drawMark(
  context: CanvasRenderingContext2D,
  colours: Colours,
  mark: StepMark,
  x: number,
): void {
  const look = mark.at_fault ? FAULT : LOOKS[mark.status];
  const { pill, below } = markWords(mark);
  context.textAlign = "center";
  context.textBaseline = "middle";
  if (pill === null) {
    context.font = font(11, 500);
    context.fillStyle = colours.of("text3");
    context.fillText(below ?? "", x, mark.y + 0.5);
    return;
  }
  context.strokeStyle = colours.of("line2");
  context.lineWidth = 1;
  context.setLineDash([2, 3]);
  context.beginPath();
  context.moveTo(x - REACH, mark.y);
  context.lineTo(x + REACH, mark.y);
  context.stroke();
  context.setLineDash([]);
  const strong = font(11, 600);
  const width = Math.max(PILL_HEIGHT, textWidth(pill, strong) + 14);
  // The pill is centred on the box, and slightly higher if there is text below.
  const y = below === null ? mark.y : mark.y - 7;
  context.beginPath();
  context.roundRect(x - width / 2, y - PILL_HEIGHT / 2, width, PILL_HEIGHT, PILL_HEIGHT / 2);
  context.fillStyle = colours.of(look.fill);
  context.fill();
  context.strokeStyle = colours.of(look.outline);
  context.lineWidth = 1.25;
  context.stroke();
  context.font = strong;
  context.fillStyle = colours.of(look.text);
  context.fillText(pill, x, y + 0.5);
  if (below === null) return;
  context.font = font(11, 500);
  const ground = textWidth(below, context.font) + 6;
  context.fillStyle = colours.of("surface");
  context.fillRect(x - ground / 2, y + 10, ground, 14);
  context.fillStyle = colours.of("text3");
  context.fillText(below, x, y + 17.5);
}
